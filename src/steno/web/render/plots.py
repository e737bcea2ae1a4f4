"""Charts of usage: values in, SVG out. Whatever stands for something is a link to what is behind it.

A drawing with links in it is a group, not a picture: those who do not see it can still follow them.
"""

from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from typing import Final

import msgspec
from markupsafe import Markup, escape

from steno.safe.html import words
from steno.web.render.charts import number

__all__ = ["Block", "Day", "Mark", "Pile", "axis_of", "bars", "blocks", "heat", "line", "stacked"]

_MICRO: Final = 1_000_000
_WEEK: Final = 7
_WEEKS: Final = 53
_STEPS: Final = 4
_WIDE: Final = 1192
_HOUR: Final = 3_600_000
_CENTS: Final = 2
_DIGITS: Final = 6
_FLOORS: Final = (0.0, 0.5, 0.9)
"""Where an axis of shares may begin."""
_WIDEST: Final = 64
"""No bar needs to be wider."""
_FEW: Final = 2
"""Points that no line would show."""
_LABEL: Final = 52
"""How much room a label of the time axis needs."""


class Day(msgspec.Struct, frozen=True):
    """A square of a year: how dark it is, from 0 to 4, what it says, and where it leads."""

    day: date
    level: int
    title: str
    href: str = ""


class Mark(msgspec.Struct, frozen=True):
    """A value that stands for something."""

    value: float | None
    title: str
    href: str = ""
    kind: str = ""


class Pile(msgspec.Struct, frozen=True):
    """Values on top of each other, and what all of them lead to."""

    label: str
    title: str
    href: str
    marks: list[Mark]


class Block(msgspec.Struct, frozen=True):
    """Five hours, from a moment in milliseconds."""

    start: int
    share: float
    label: str
    title: str
    href: str
    now: bool = False


def _drawing(width: float, height: float, body: Iterable[str], label: str, kind: str) -> Markup:
    return Markup(
        f'<svg class="chart {kind}" viewBox="0 0 {number(width)} {number(height)}" role="group" '
        f'aria-label="{words(label)}">{"".join(body)}</svg>'
    )


def _door(href: str, title: str, body: str, *, stop: bool = True) -> str:
    """Return marks that lead somewhere; only some of them are stops of the tab key."""
    said = f"<title>{words(title)}</title>"
    if not href:
        return f"<g>{said}{body}</g>"
    passed = "" if stop else ' tabindex="-1"'
    return f'<a href="{escape(href)}"{passed}>{said}{body}</a>'


def _text(x: float, y: float, said: str, anchor: str = "", kind: str = "") -> str:
    where = f' text-anchor="{anchor}"' if anchor else ""
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{number(x)}" y="{number(y)}"{where}>{words(said)}</text>'


def _rect(kind: str, x: float, y: float, width: float, height: float, round_: float = 0) -> str:
    corner = f' rx="{number(round_)}"' if round_ else ""
    return (
        f'<rect class="{kind}" x="{number(x)}" y="{number(y)}" width="{number(width)}" '
        f'height="{number(height)}"{corner}/>'
    )


def _level(kind: str, y: float, start: float, end: float) -> str:
    at = number(y)
    return f'<line class="{kind}" x1="{number(start)}" x2="{number(end)}" y1="{at}" y2="{at}"/>'


def heat(days: Sequence[Day], label: str) -> Markup:
    """Draw a year: a square for each day, a column for each week, Monday on top."""
    cell, gap, left, top = 16.6, 4.0, 34.0, 18.0
    pitch = cell + gap
    first = days[0].day - timedelta(days=days[0].day.weekday())
    body = [
        _text(left - 8, top + row * pitch + 12, name, "end")
        for name, row in (("Mon", 0), ("Wed", 2), ("Fri", 4))
    ]
    nothing: list[str] = []
    month = 0
    for each in days:
        column, row = divmod((each.day - first).days, _WEEK)
        x, y = left + column * pitch, top + row * pitch
        if row == 0 and each.day.day <= _WEEK and each.day.month != month:
            month = each.day.month
            body.append(_text(x, 10, f"{each.day:%b}"))
        if each.level:
            square = _rect(f"q{each.level}", x, y, cell, cell, 2.5)
            body.append(_door(each.href, each.title, square, stop=False))
        else:
            nothing.append(
                f"M{number(x)} {number(y)}h{number(cell)}v{number(cell)}h-{number(cell)}z"
            )
    body.insert(0, f'<path class="q0" d="{"".join(nothing)}"/>')
    wide = left + ((days[-1].day - first).days // _WEEK + 1) * pitch - gap
    return _drawing(wide, top + _WEEK * pitch - gap, body, label, "heat")


def axis_of(most: float) -> float:
    """Return the step of an axis on which four steps are enough.

    >>> axis_of(21.9), axis_of(0.11), axis_of(0)
    (6.0, 0.03, 0.25)
    """
    if most <= 0:
        return 0.25
    least = most / _STEPS
    scale = 10.0 ** (len(f"{least:.0f}") - 1) if least >= 1 else 1.0
    while scale > least:
        scale /= 10
    for step in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10):
        if step * scale >= least * 0.999:
            return round(step * scale, 10)
    return scale * 10


def _money(value: float, step: float) -> str:
    digits = 0 if step == int(step) else _CENTS
    while _CENTS <= digits < _DIGITS and abs(step - round(step, digits)) > step * 1e-6:
        digits += 1
    return f"${value:,.{digits}f}"


def stacked(piles: Sequence[Pile], label: str, width: float = 780, height: float = 236) -> Markup:
    """Draw costs in micro-dollars on top of each other, a pile for each piece of time."""
    bottom, top = 22.0, 8.0
    most = max((sum(mark.value or 0 for mark in pile.marks) for pile in piles), default=0)
    step = axis_of(most / _MICRO)
    right = 14.0 + 6.5 * len(_money(step * _STEPS, step))
    tall, wide = height - bottom - top, width - right
    scale = tall / (step * _STEPS * _MICRO)
    body = list(_money_grid(step, wide, top, tall))
    slot = wide / max(1, len(piles))
    gap = min(6.0, slot * 0.28)
    for place, pile in enumerate(piles):
        body.append(_pile(pile, place * slot + gap / 2, slot - gap, top, tall, scale))
    body += _times([pile.label for pile in piles], slot, height - 5, wide)
    return _drawing(width, height, body, label, "stacked")


def _money_grid(step: float, wide: float, top: float, tall: float) -> Iterable[str]:
    for place in range(_STEPS + 1):
        y = top + tall - place / _STEPS * tall
        yield _level("grid" if place else "axis", y, 0, wide)
        yield _text(wide + 8, y + 4, _money(step * place, step))


def _pile(pile: Pile, x: float, wide: float, top: float, tall: float, scale: float) -> str:
    """Return the marks of a pile before a column as high as the chart, which leads to all of it."""
    column = _rect("hit", x, top, wide, tall)
    if not any(mark.value for mark in pile.marks):
        return f"<g><title>{words(pile.title)}</title>{column}</g>"
    parts = [_door(pile.href, pile.title, column)]
    base = 0.0
    for mark in pile.marks:
        value = (mark.value or 0) * scale
        if value > 0:
            y = top + tall - base - value
            bar = _rect(mark.kind, x, y, wide, max(value - 1, 0.8))
            parts.append(_door(mark.href, mark.title, bar, stop=False))
        base += value
    return f"<g data-stop>{''.join(parts)}</g>"


def _times(labels: Sequence[str], slot: float, y: float, wide: float) -> Iterable[str]:
    """Yield labels below a chart, as many as there is room for; the last one is always there."""
    every = max(1, -(-_LABEL // max(1, int(slot))))
    last = len(labels) - 1
    for place, said in enumerate(labels):
        if (last - place) % every == 0:
            x = min(max((place + 0.5) * slot, 16), wide - 14)
            yield _text(x, y, said, "middle")


def line(
    marks: Sequence[Mark],
    labels: Sequence[str],
    mean: float | None,
    label: str,
    width: float = 420,
    height: float = 236,
) -> Markup:
    """Draw shares, from 0 to 1, over time, with their mean dashed and the lowest of them named."""
    left, right, bottom, top = 34.0, 8.0, 22.0, 8.0
    wide, tall = width - left - right, height - bottom - top
    known = [mark.value for mark in marks if mark.value is not None]
    worst = min(known, default=0.0)
    low = max(floor for floor in _FLOORS if floor <= max(0.0, worst))
    last = max(1, len(marks) - 1)

    def spot(place: int, share: float) -> tuple[float, float]:
        x = left + (place / last if len(marks) > 1 else 0.5) * wide
        return x, top + tall - (share - low) / (1 - low) * tall

    body: list[str] = []
    for share in (low, (1 + low) / 2, 1.0):
        _, y = spot(0, share)
        body.append(_level("axis" if share == low else "grid", y, left, width - right))
        body.append(_text(left - 8, y + 4, f"{share:.0%}", "end"))
    if mean is not None:
        body.append(_level("stroke two", spot(0, max(mean, low))[1], left, width - right))
    points = [
        f"{number(x)},{number(y)}"
        for x, y in (spot(k, m.value) for k, m in enumerate(marks) if m.value is not None)
    ]
    body.append(f'<polyline class="stroke" points="{" ".join(points)}"/>')
    for place, mark in enumerate(marks):
        if mark.value is not None:
            x, y = spot(place, mark.value)
            body.append(
                _point(mark, x, y, wide / last, seen=mark.value == worst or len(known) <= _FEW)
            )
    for place in sorted({0, last // 2, last}) if len(marks) > 1 else (0,):
        anchor = "start" if place == 0 else "end" if place == last else "middle"
        body.append(_text(spot(place, low)[0], height - 5, labels[place], anchor))
    return _drawing(width, height, body, label, "line")


def _point(mark: Mark, x: float, y: float, slot: float, *, seen: bool) -> str:
    wide = max(6.0, min(24.0, slot))
    hit = _rect("hit", x - wide / 2, y - 14, wide, 28)
    dot = f'<circle class="{"fa" if seen else "spot"}" cx="{number(x)}" cy="{number(y)}" r="3"/>'
    return _door(mark.href, mark.title, hit + dot, stop=False)


def bars(marks: Sequence[Pile], label: str, width: float = 580, height: float = 180) -> Markup:
    """Draw how many there are of each: a bar with its number above and its name below."""
    bottom, top = 22.0, 20.0
    tall = height - bottom - top
    most = max((mark.marks[0].value or 0 for mark in marks), default=0) or 1
    slot = width / max(1, len(marks))
    gap = max(slot - _WIDEST, min(12.0, slot * 0.2))
    body = [_level("axis", top + tall, 0, width)]
    for place, mark in enumerate(marks):
        value = mark.marks[0].value or 0
        high = max(value / most * tall, 1.5) if value else 0
        x = place * slot + gap / 2
        parts = _rect("hit", x, top, slot - gap, tall)
        parts += _rect("f7", x, top + tall - high, slot - gap, high, 2)
        if value:
            parts += _text(
                x + (slot - gap) / 2, top + tall - high - 6, f"{value:,.0f}", "middle", "b"
            )
            body.append(f"<g data-stop>{_door(mark.href, mark.title, parts)}</g>")
        body.append(_text(x + (slot - gap) / 2, height - 5, mark.label, "middle"))
    return _drawing(width, height, body, label, "bars")


def blocks(
    items: Sequence[Block], days: Sequence[tuple[int, str]], end: int, now: int, label: str
) -> Markup:
    """Draw blocks of five hours. `days` are the midnights and what they are called, in order."""
    top, bottom, height = 34.0, 20.0, 124.0
    tall = height - top - bottom
    start = days[0][0]

    def at(moment: int) -> float:
        return (moment - start) / (end - start) * _WIDE

    body: list[str] = []
    for midnight, name in days:
        x = number(at(midnight))
        body.append(f'<line class="axis" x1="{x}" x2="{x}" y1="0" y2="{number(height - bottom)}"/>')
        body.append(_text(at(midnight) + 6, 10, name))
        noon = midnight + 12 * _HOUR
        if noon < end:
            x = number(at(noon))
            body.append(
                f'<line class="grid" x1="{x}" x2="{x}" y1="{number(top)}" '
                f'y2="{number(height - bottom)}"/>'
            )
            body.append(_text(at(noon), height - 5, "12:00", "middle"))
    body.append(_level("axis", height - bottom, 0, _WIDE))
    for item in items:
        x, wide = at(item.start), at(start + 5 * _HOUR) - 2
        high = max(item.share * tall, 1.5)
        parts = _rect("fline", x, top, wide, tall, 2)
        parts += _rect("fa" if item.now else "f7", x, top + tall - high, wide, high, 2)
        parts += _text(x, top - 5, item.label, kind="b")
        body.append(f"<g data-stop>{_door(item.href, item.title, parts)}</g>")
    if start < now < end:
        x = number(at(now))
        body.append(
            f'<line class="nowline" x1="{x}" x2="{x}" y1="{number(top - 2)}" y2="{number(height - bottom)}"/>'
        )
    return _drawing(_WIDE, height, body, label, "blocks")
