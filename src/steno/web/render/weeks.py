"""A small chart of weeks: a bar for each, the newest at the right."""

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from steno.web.render.charts import number, svg

__all__ = ["weeks"]

_WIDE: Final = 560
_TALL: Final = 96
_FOOT: Final = 18
_HEAD: Final = 16
_MONTHS: Final = (
    *("Jan", "Feb", "Mar", "Apr", "May", "Jun"),
    *("Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
)


def weeks(
    values: Sequence[int], mondays: Sequence[str], said: Sequence[str], label: str, top: str
) -> Markup:
    """Draw the weeks that begin on some days; `said` is what each bar says, `top` the highest."""
    slot = min(28.0, _WIDE / max(1, len(values)))
    most = max([1, *values])
    room = _TALL - _FOOT - _HEAD
    start = _WIDE - slot * len(values)
    parts = [
        Markup('<line class="axis" x1="0" y1="{0}" x2="{1}" y2="{0}"/>').format(
            _TALL - _FOOT, _WIDE
        ),
        Markup('<text x="{}" y="10" text-anchor="end">{}</text>').format(_WIDE, top),
    ]
    for place, (value, what) in enumerate(zip(values, said, strict=True)):
        tall = max(2.0, value / most * room) if value else 1.0
        kind = "fa" if place == len(values) - 1 else "f1" if value else "fline"
        parts.append(
            Markup(
                '<rect class="{}" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>'
            ).format(
                kind,
                number(start + place * slot + 1),
                number(_TALL - _FOOT - tall),
                number(slot - 2),
                number(tall),
                what,
            )
        )
    parts += _names(mondays, start, slot)
    return svg(_WIDE, _TALL, Markup("").join(parts), label=label)


def _names(mondays: Sequence[str], start: float, slot: float) -> list[Markup]:
    """Name each month where its first week begins, unless two names would meet."""
    made: list[Markup] = []
    last, free = "", 0.0
    for place, day in enumerate(mondays):
        month = day[:7]
        at = start + place * slot + 1
        if month != last and at >= free:
            name = _MONTHS[int(day[5:7]) - 1]
            made.append(Markup('<text x="{}" y="{}">{}</text>').format(number(at), _TALL - 4, name))
            free = at + 36
        last = month
    return made
