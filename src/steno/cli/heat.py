"""What it cost by weekday and hour, or day by day, in four shades.

Each shade has a quarter of the squares that cost anything. By the amounts themselves a single dear
hour would leave all the others alike.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from typing import Final

from steno.cli.screen import Screen
from steno.cli.usage_table import dollars
from steno.report.usage.totals import Report
from steno.safe.terminal import Line as Words
from steno.safe.terminal import width, wrap

__all__ = ["heat_map"]

_WEEKDAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_SHADES: Final = "·░▒▓█"
_PLAIN: Final = " .:*#"
_HOURS: Final = 24
_WEEK: Final = 7
_LEFT: Final = 6


def heat_map(report: Report, screen: Screen, *, by_days: bool) -> Iterator[Words]:
    """Draw a report by hours."""
    costs: defaultdict[tuple[str, int], int] = defaultdict(int)
    for line in report.lines:
        if line.names[0]:
            day, _, hour = line.names[0].partition(" ")
            costs[day, int(hour[:2])] += line.cost
    if by_days:
        yield from _days(costs, screen)
    else:
        yield from _hours(costs, screen)


def _hours(costs: dict[tuple[str, int], int], screen: Screen) -> Iterator[Words]:
    heat = [[0] * _HOURS for _ in _WEEKDAYS]
    for (day, hour), cost in costs.items():
        heat[date.fromisoformat(day).weekday()][hour] += cost
    scale = _Scale((cost for row in heat for cost in row), screen)
    sums = [dollars(sum(row)) for row in heat]
    room = screen.width - _LEFT - 2 - max(map(width, sums))
    wide = 2 if room >= 2 * _HOURS else 1
    heads = "".join(f"{hour:<{3 * wide}}" for hour in range(0, _HOURS, 3))
    yield [(" " * _LEFT + heads, "dim")]
    for name, row, total in zip(_WEEKDAYS, heat, sums, strict=True):
        cells = "".join(scale.shade(cost) * wide for cost in row)
        told = f"  {total}" if room >= _HOURS else ""
        yield [(f" {name}  ", "bold"), (cells, "blue"), told]
    yield from scale.legend("an hour of a weekday")


def _days(costs: dict[tuple[str, int], int], screen: Screen) -> Iterator[Words]:
    days: defaultdict[date, int] = defaultdict(int)
    for (day, _), cost in costs.items():
        days[date.fromisoformat(day)] += cost
    if not days:
        return
    last = max(days)
    first = min(days)
    passed = (last.toordinal() - last.weekday()) - (first.toordinal() - first.weekday())
    weeks = min((screen.width - _LEFT - 1) // 2, passed // _WEEK + 1)
    monday = last - timedelta(days=last.weekday(), weeks=weeks - 1)
    shown = [cost for day, cost in days.items() if day >= monday]
    scale = _Scale(shown, screen)
    months = ""
    for week in range(weeks):
        start = monday + timedelta(weeks=week)
        if (not week or start.day <= _WEEK) and len(months) <= 2 * week:
            months = months.ljust(2 * week) + f"{start:%b} "
    yield [(" " * _LEFT + months, "dim")]
    for weekday, name in enumerate(_WEEKDAYS):
        cells = ""
        for week in range(weeks):
            day = monday + timedelta(weeks=week, days=weekday)
            cells += "  " if day > last else scale.shade(days.get(day, 0)) * 2
        yield [(f" {name}  ", "bold"), (cells, "blue")]
    yield from scale.legend("a day")


class _Scale:
    """Which amounts have which shade."""

    def __init__(self, costs: Iterable[int], screen: Screen) -> None:
        self._costs = sorted(cost for cost in costs if cost > 0)
        self._shades = _SHADES if screen.paint.unicode else _PLAIN
        self._width = screen.width

    def shade(self, cost: int) -> str:
        """Return the shade of an amount; equal ones have the same, the highest the last."""
        if cost <= 0:
            return self._shades[0]
        below = bisect_right(self._costs, cost)
        steps = len(self._shades) - 1
        return self._shades[-(-below * steps // len(self._costs))]

    def legend(self, of_what: str) -> Iterator[Words]:
        """Say what the shades mean."""
        most = dollars(self._costs[-1]) if self._costs else dollars(0)
        said = f"a quarter each, up to {most} for {of_what}"
        first: Words = [(" " * _LEFT + "none ", "dim"), (self._shades, "blue")]
        room = self._width - _LEFT
        if len("none ") + len(self._shades) + 1 + width(said) <= room:
            yield [*first, (f" {said}", "dim")]
            return
        yield first
        for text in wrap(said, room):
            yield [(" " * _LEFT + text, "dim")]
