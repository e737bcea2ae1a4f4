"""The charts of usage."""

import time
from bisect import bisect_right
from collections.abc import Sequence
from datetime import date, timedelta
from functools import lru_cache
from typing import Final

import msgspec
from markupsafe import Markup

from steno.report import words
from steno.report.usage.overview import Split, Stack, Step
from steno.report.usage.totals import Figures, Line, Report
from steno.web.paint import links, money
from steno.web.render import plots
from steno.web.spend.asked import Asked, Days, said
from steno.web.spend.figures import amount, share_of
from steno.web.tags import tag_of

__all__ = [
    "Bin",
    "Blocks",
    "Series",
    "Year",
    "bins_of",
    "blocks_of",
    "cache_of",
    "days_of_period",
    "spread_of",
    "stacked_of",
    "year_of",
]

_WEEK: Final = 7
_YEAR_WEEKS: Final = 52
_LEVELS: Final = 4
_CENT: Final = 10_000
_FIVE_HOURS: Final = 5 * 3_600_000
_HOUR: Final = 3_600_000
_TEN: Final = 10_000_000
_LEAST_BINS: Final = 6
"""A scale, even where all cost the same."""
_EDGES: Final = tuple(
    _CENT * cents for cents in (1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000)
)


class Year(msgspec.Struct, frozen=True):
    """A year of days."""

    chart: Markup
    cost: int
    active: int
    most: int
    months: list[tuple[str, str, str, int]]
    """Their names, what is behind them, what they cost, and on how many days."""


class Series(msgspec.Struct, frozen=True):
    """What one colour of a chart stands for."""

    name: str
    kind: str
    cost: int
    href: str


class Bin(msgspec.Struct, frozen=True):
    """Sessions that cost about the same: from so many micro-dollars up to so many."""

    label: str
    least: int
    most: int | None
    number: int
    href: str


class Blocks(msgspec.Struct, frozen=True):
    """Blocks of five hours."""

    chart: Markup
    rows: list[tuple[str, str, str, str, str]]
    """When they began, when they end, what they cost, how many responses, what is behind them."""
    ends: str
    """When the current one ends; nothing where there is none."""
    cost: str
    rate: str
    course: str
    most: int


# A year


def year_of(costs: dict[str, Line], last: date) -> Year:
    """Draw what each day of the 53 weeks up to a day cost."""
    first = last - timedelta(days=last.weekday(), weeks=_YEAR_WEEKS)
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    shown = {day: costs[day.isoformat()] for day in days if day.isoformat() in costs}
    ranked = sorted(line.cost for line in shown.values() if line.cost > 0)
    squares: list[plots.Day] = []
    months: dict[str, list[tuple[date, Line]]] = {}
    for day in days:
        line = shown.get(day)
        if line is None:
            squares.append(plots.Day(day, 0, ""))
            continue
        # A quarter of the days each: by the amounts a single dear day would leave all others alike.
        below = bisect_right(ranked, line.cost)
        level = -(-below * _LEVELS // len(ranked)) if line.cost > 0 else 1
        title = f"{day:%a} {said(day)}: {amount(line.cost, line.figures)}"
        squares.append(plots.Day(day, level, title, _lines(Days(day, day))))
        months.setdefault(f"{day:%B} {day.year}", []).append((day, line))
    chart = plots.heat(squares, f"Cost by day, {said(first, year=True)} to {said(last, year=True)}")
    table = [
        (
            name,
            _lines(days_of_period(some[0][0].isoformat()[:7], "month", first, last)),
            _sum([line for _, line in some]),
            len(some),
        )
        for name, some in reversed(months.items())
    ]
    return Year(chart, sum(ranked), len(shown), max(ranked, default=0), table)


def _sum(lines: Sequence[Line]) -> str:
    figures = Figures(unpriced={})
    for line in lines:
        figures.add(line.figures)
    return amount(sum(line.cost for line in lines), figures)


def _month(day: date) -> Days:
    first = day.replace(day=1)
    following = (first + timedelta(days=31)).replace(day=1)
    return Days(first, following - timedelta(days=1))


def _lines(days: Days, **query: str) -> str:
    return links().usage_lines(**days.query, **query) if query else _lines_of(days)


@lru_cache(maxsize=1024)
def _lines_of(days: Days) -> str:
    return links().usage_lines(**days.query)


# Cost by time


def days_of_period(name: str, step: Step, first: date, last: date) -> Days:
    """Return the days of a day, week or month, as far as they are shown."""
    if step == "day":
        days = Days(date.fromisoformat(name), date.fromisoformat(name))
    elif step == "week":
        monday = date.fromisocalendar(int(name[:4]), int(name[6:]), 1)
        days = Days(monday, monday + timedelta(days=6))
    else:
        days = _month(date.fromisoformat(f"{name}-01"))
    start, end = days.first or first, days.last or last
    return Days(max(start, first), min(end, last))


def _said_days(days: Days, step: Step) -> str:
    first, last = days.first, days.last
    if first is None or last is None:
        return ""
    if step == "day":
        return f"{first:%a} {said(first)}"
    return f"{said(first)} to {said(last, year=True)}"


def _label(days: Days, step: Step, *, named: bool) -> str:
    first = days.first
    if first is None:
        return ""
    if step == "month":
        return f"{first:%b} {first.year}" if first.month == 1 or named else f"{first:%b}"
    return said(first) if named or first.day <= _WEEK or step == "week" else str(first.day)


def stacked_of(stack: Stack, split: Split, first: date, last: date) -> tuple[Markup, list[Series]]:
    """Draw what each day, week or month cost, by model or by project, and say the sums."""
    series = [
        _series(place, name, costs, split) for place, (name, costs) in enumerate(stack.series)
    ]
    piles: list[plots.Pile] = []
    for place, name in enumerate(stack.names):
        days = days_of_period(name, stack.step, first, last)
        when = _said_days(days, stack.step)
        marks = [
            plots.Mark(
                costs[place],
                f"{when}, {each.name}: {money(costs[place])}",
                _lines(days, **_choice(split, what)),
                each.kind,
            )
            for each, (what, costs) in zip(series, stack.series, strict=True)
        ]
        total = sum(costs[place] for _, costs in stack.series)
        piles.append(
            plots.Pile(
                _label(days, stack.step, named=place == 0),
                f"{when}: {money(total)}",
                _lines(days),
                marks,
            )
        )
    return plots.stacked(piles, f"Cost by {stack.step} and {split}"), [
        msgspec.structs.replace(
            each, href=_lines(Days(first, last), **_choice(split, stack.series[place][0]))
        )
        for place, each in enumerate(series)
    ]


def _series(place: int, name: str | None, costs: list[int], split: Split) -> Series:
    shown = words.model_name if split == "model" else words.project_name
    label = "all others" if name is None else shown(name) or f"no {split}"
    return Series(label, f"f{7 if name is None else place + 1}", sum(costs), "")


def _choice(split: Split, name: str | None) -> dict[str, str]:
    if name is None:
        return {}
    if split == "project":
        return {"project": tag_of(name)}
    return {"model": name} if name else {"without": "model"}


# The cache


def cache_of(periods: Report, stack: Stack, first: date, last: date, mean: float | None) -> Markup:
    """Draw how much of what was read came from the cache."""
    known = {line.names[0]: line for line in periods.lines}
    marks: list[plots.Mark] = []
    labels: list[str] = []
    for name in stack.names:
        days = days_of_period(name, stack.step, first, last)
        line = known.get(name)
        share = None if line is None else share_of(line.figures)
        title = "" if share is None else f"{_said_days(days, stack.step)}: {share:.1%}"
        marks.append(plots.Mark(share, title, _lines(days)))
        labels.append(_label(days, stack.step, named=True))
    return plots.line(marks, labels, mean, "Share of tokens in that were read from the cache")


# Sessions


def bins_of(costs: Sequence[int], query: dict[str, str]) -> list[Bin]:
    """Sort sessions by what they cost, from the cheapest sort that there is to the dearest."""
    edges = (0, *_EDGES)
    numbers = [0] * len(edges)
    for cost in costs:
        numbers[bisect_right(edges, max(0, cost)) - 1] += 1
    some = [place for place, number in enumerate(numbers) if number]
    if not some:
        return []
    made: list[Bin] = []
    first = max(0, min(some[0], some[-1] + 1 - _LEAST_BINS))
    last = min(len(edges), max(some[-1] + 1, first + _LEAST_BINS))
    for place in range(first, last):
        least = edges[place]
        most = edges[place + 1] if place + 1 < len(edges) else None
        limits = {"least": str(least), "most": "" if most is None else str(most)}
        label = f"<{_short(most or 0)}" if not least else f"{_short(least)}{'' if most else '+'}"
        href = links().usage_sessions(**query, **limits)
        made.append(Bin(label, least, most, numbers[place], href))
    return made


def _short(micro: int) -> str:
    return f"{micro // _CENT}¢" if micro < 100 * _CENT else f"${micro / (100 * _CENT):g}"


def spread_of(bins: Sequence[Bin]) -> Markup:
    """Draw how many sessions cost how much."""
    piles = [
        plots.Pile(
            each.label,
            f"{words.count(each.number, 'session')} of {_span(each)}",
            each.href,
            [plots.Mark(each.number, "")],
        )
        for each in bins
    ]
    return plots.bars(piles, "Sessions by what they cost")


def _span(each: Bin) -> str:
    if each.most is None:
        return f"{money(each.least)} and more"
    return f"{money(each.least)} to less than {money(each.most)}"


# Blocks


def blocks_of(found: Sequence[tuple[int, Report]], asked: Asked, now: float) -> Blocks:
    """Draw the blocks of the last seven days."""
    moment = int(now * 1000)
    most = max((report.cost for _, report in found), default=0)
    items: list[plots.Block] = []
    rows: list[tuple[str, str, str, str, str]] = []
    current: tuple[int, Report] | None = None
    for start, report in found:
        is_now = start <= moment < start + _FIVE_HOURS
        if is_now:
            current = (start, report)
        cost = amount(report.cost, report.totals)
        begun, ends = _moment(start), words.clock((start + _FIVE_HOURS) / 1000)
        href = links().usage_lines(block=_address(start))
        title = f"{begun} to {ends}: {cost}{' so far' if is_now else ''}"
        share = report.cost / most if most else 0
        items.append(plots.Block(start, share, _brief(report.cost), title, href, is_now))
        rows.append((begun, ends, cost, words.count(report.totals.responses, "response"), href))
    days = [asked.last - timedelta(days=back) for back in range(6, -1, -1)]
    midnights = [(Days(day).since or 0, f"{day:%a} {said(day)}") for day in days]
    end = Days(None, asked.last).until or 0
    chart = plots.blocks(items, midnights, end, moment, "Five-hour blocks of seven days")
    rows.reverse()
    return Blocks(chart, rows, *_course(current, moment), most)


def _brief(micro: int) -> str:
    """Return an amount that has room above a block."""
    return f"${micro / 1e6:,.0f}" if micro >= _TEN else f"${micro / 1e6:.2f}"


def _course(current: tuple[int, Report] | None, moment: int) -> tuple[str, str, str, str]:
    """Return when the current block ends, its cost so far, by the hour, and where that leads."""
    if current is None:
        return "", "", "", ""
    start, report = current
    passed = max(moment - start, _HOUR // 4) / _HOUR
    rate = report.cost / passed
    return (
        words.clock((start + _FIVE_HOURS) / 1000),
        amount(report.cost, report.totals),
        money(round(rate)),
        money(round(rate * 5)),
    )


def _moment(moment: int) -> str:
    local = time.localtime(moment / 1000)
    day = date(*local[:3])
    return f"{day:%a} {said(day)} {local.tm_hour:02}:{local.tm_min:02}"


def _address(moment: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M", time.localtime(moment / 1000))
