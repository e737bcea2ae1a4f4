"""What it cost by weekday and hour, or day by day, in four shades."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Final

from steno.cli.screen import Screen
from steno.report.usage.totals import Report
from steno.safe.terminal import Line as Words

__all__ = ["heat_map"]

_WEEKDAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_SHADES: Final = "·░▒▓█"
_PLAIN: Final = " .:*#"
_HOURS: Final = 24
_WEEK: Final = 7
_MICRO: Final = 1_000_000
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
    most = max(map(max, heat))
    heads = "".join(f"{hour:<6}" for hour in range(0, _HOURS, 3))
    yield [(" " * _LEFT + heads, "dim")]
    for name, row in zip(_WEEKDAYS, heat, strict=True):
        cells = "".join(_shade(cost, most, screen) * 2 for cost in row)
        yield [(f" {name}  ", "bold"), (cells, "blue"), (f"  ${sum(row) / _MICRO:,.2f}", "")]
    yield from _legend(most, "an hour of a weekday", screen)


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
    most = max(shown, default=0)
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
            cells += "  " if day > last else _shade(days.get(day, 0), most, screen) * 2
        yield [(f" {name}  ", "bold"), (cells, "blue")]
    yield from _legend(most, "a day", screen)


def _shade(cost: int, most: int, screen: Screen) -> str:
    shades = _SHADES if screen.paint.unicode else _PLAIN
    steps = len(shades) - 1
    return shades[0] if cost <= 0 else shades[min(steps, 1 + cost * steps // (most + 1))]


def _legend(most: int, of_what: str, screen: Screen) -> Iterator[Words]:
    shades = _SHADES if screen.paint.unicode else _PLAIN
    yield [
        (" " * _LEFT + "none ", "dim"),
        (shades, "blue"),
        (f" up to ${most / _MICRO:,.2f} for {of_what}", "dim"),
    ]
