"""Charts as SVG: geometry in attributes, colour by class, so that no policy has to be loosened."""

from collections.abc import Collection, Sequence

from markupsafe import Markup

__all__ = ["meter", "number", "spark", "svg"]


def number(value: float) -> str:
    """Return a length, short."""
    return f"{value:.1f}".rstrip("0").rstrip(".")


def svg(
    width: float,
    height: float,
    body: Markup,
    kind: str = "chart",
    *,
    label: str = "",
    fill: bool = False,
) -> Markup:
    """Return a drawing; without a label it says nothing to those who do not see it."""
    spoken = (
        Markup('role="img" aria-label="{}"').format(label)
        if label
        else Markup('aria-hidden="true"')
    )
    stretch = Markup(' preserveAspectRatio="none"') if fill else Markup("")
    return Markup('<svg class="{}" viewBox="0 0 {} {}" {}{}>{}</svg>').format(
        kind, number(width), number(height), spoken, stretch, body
    )


def spark(values: Sequence[int], failed: Collection[int] = ()) -> Markup:
    """Draw activity over the life of a session: a bar for each slice, red where a step failed."""
    width, height, gap = 112.0, 20.0, 1.5
    bar = (width - gap * (len(values) - 1)) / len(values)
    most = max(values) or 1
    bars: list[Markup] = []
    for place, value in enumerate(values):
        tall = max(1.5, value / most * (height - 2)) if value else 1.0
        kind = "e" if place in failed else ("" if value else "z")
        bars.append(
            Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}" rx=".5"/>').format(
                kind, number(place * (bar + gap)), number(height - tall), number(bar), number(tall)
            )
        )
    return svg(width, height, Markup("").join(bars), "spark", fill=True)


def meter(share: float, kind: str = "fa") -> Markup:
    """Draw how full something is."""
    body = Markup(
        '<rect class="rest" width="100" height="4"/><rect class="{}" width="{}" height="4"/>'
    ).format(kind, number(min(1.0, max(0.0, share)) * 100))
    return svg(100, 4, body, "meter", fill=True)
