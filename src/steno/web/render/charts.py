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
    gap = 1
    bar = (112 - gap * (len(values) - 1)) // len(values)
    most = max(values) or 1
    ways: dict[str, list[str]] = {}
    for place, value in enumerate(values):
        tall = max(2, round(value / most * 18)) if value else 1
        kind = "e" if place in failed else ("" if value else "z")
        ways.setdefault(kind, []).append(f"M{place * (bar + gap)} {20 - tall}h{bar}v{tall}h-{bar}z")
    body = Markup("").join(
        Markup('<path class="{}" d="{}"/>').format(kind, "".join(way)) for kind, way in ways.items()
    )
    return svg(len(values) * (bar + gap) - gap, 20, body, "spark", fill=True)


def meter(share: float, kind: str = "fa") -> Markup:
    """Draw how full something is."""
    body = Markup(
        '<rect class="rest" width="100" height="4"/><rect class="{}" width="{}" height="4"/>'
    ).format(kind, number(min(1.0, max(0.0, share)) * 100))
    return svg(100, 4, body, "meter", fill=True)
