"""Usage charts: year, cost over time, cache hit rate, cost per session, 5-hour blocks."""

import time
from bisect import bisect_right
from collections.abc import Sequence
from datetime import date, timedelta
from functools import lru_cache
from typing import Final

import msgspec
from markupsafe import Markup

from steno.report import humanize
from steno.report.humanize import money
from steno.report.usage.usage_overview import ChartInterval, ChartSeries, CostChart
from steno.report.usage.usage_query import BLOCK_MILLIS
from steno.report.usage.usage_report import ReportRow, UsageFigures, UsageReport
from steno.web.render import charts
from steno.web.templating import links
from steno.web.urls import path_tag
from steno.web.views.usage_figures import DateRange, UsagePageParams, cache_share, format_amount

_WEEK: Final = 7
_YEAR_WEEKS: Final = 52
_LEVELS: Final = 4
_CENT: Final = 10_000
_HOUR_MS: Final = 3_600_000
_TEN_DOLLARS: Final = 10_000_000
_MIN_BINS: Final = 6
"""Minimum number of bins, even if all sessions cost the same."""
_BIN_EDGES: Final = tuple(_CENT * cents for cents in (1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000))


class YearView(msgspec.Struct, frozen=True):
    """Daily cost of a year."""

    chart: Markup
    cost: int
    active: int
    highest_cost: int
    months: list[tuple[str, str, str, int]]
    """Month name, URL, cost and active days."""


class LegendEntry(msgspec.Struct, frozen=True):
    """A series in the legend of a chart."""

    name: str
    kind: str
    cost: int
    href: str


class CostBin(msgspec.Struct, frozen=True):
    """Number of sessions in a range of costs, in micro-dollars."""

    label: str
    least: int
    most: int | None
    number: int
    href: str


class BlocksView(msgspec.Struct, frozen=True):
    """The 5-hour blocks."""

    chart: Markup
    rows: list[tuple[str, str, str, str, str]]
    """Start, end, cost, responses and URL of each block."""
    ends: str
    """End of the current block; empty if none is active."""
    cost: str
    rate: str
    projected: str
    highest_cost: int


# Year


def year_chart(costs: dict[str, ReportRow], last: date) -> YearView:
    """Draw the daily cost of the 53 weeks up to a day."""
    first = last - timedelta(days=last.weekday(), weeks=_YEAR_WEEKS)
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    line_by_day = {day: costs[day.isoformat()] for day in days if day.isoformat() in costs}
    ranked = sorted(line.cost for line in line_by_day.values() if line.cost > 0)
    squares: list[charts.HeatmapDay] = []
    months: dict[str, list[tuple[date, ReportRow]]] = {}
    for day in days:
        line = line_by_day.get(day)
        if line is None:
            squares.append(charts.HeatmapDay(day, 0, ""))
            continue
        # Levels are quartiles of days: with a linear scale, one expensive day would make all others look alike.
        rank = bisect_right(ranked, line.cost)
        level = -(-rank * _LEVELS // len(ranked)) if line.cost > 0 else 1
        title = f"{day:%a} {humanize.short_date(day)}: {format_amount(line.cost, line.figures)}"
        squares.append(charts.HeatmapDay(day, level, title, _lines_url(DateRange(day, day))))
        months.setdefault(f"{day:%B} {day.year}", []).append((day, line))
    chart = charts.year_heatmap(
        squares, f"Cost by day, {humanize.short_date(first, year=True)} to {humanize.short_date(last, year=True)}"
    )
    table = [
        (
            name,
            _lines_url(period_range(month_lines[0][0].isoformat()[:7], "month", first, last)),
            _total_amount([line for _, line in month_lines]),
            len(month_lines),
        )
        for name, month_lines in reversed(months.items())
    ]
    return YearView(chart, sum(ranked), len(line_by_day), max(ranked, default=0), table)


def _total_amount(lines: Sequence[ReportRow]) -> str:
    figures = UsageFigures(unpriced={})
    for line in lines:
        figures.add(line.figures)
    return format_amount(sum(line.cost for line in lines), figures)


def _month_range(day: date) -> DateRange:
    first = day.replace(day=1)
    following = (first + timedelta(days=31)).replace(day=1)
    return DateRange(first, following - timedelta(days=1))


def _lines_url(days: DateRange, **query: str) -> str:
    return links().usage_lines(**days.query, **query) if query else _range_url(days)


@lru_cache(maxsize=1024)
def _range_url(days: DateRange) -> str:
    return links().usage_lines(**days.query)


# Cost over time


def period_range(name: str, step: ChartInterval, first: date, last: date) -> DateRange:
    """Return the dates of a day, week or month, limited to the shown range."""
    if step == "day":
        days = DateRange(date.fromisoformat(name), date.fromisoformat(name))
    elif step == "week":
        monday = date.fromisocalendar(int(name[:4]), int(name[6:]), 1)
        days = DateRange(monday, monday + timedelta(days=6))
    else:
        days = _month_range(date.fromisoformat(f"{name}-01"))
    start, end = days.first or first, days.last or last
    return DateRange(max(start, first), min(end, last))


def _format_range(days: DateRange, step: ChartInterval) -> str:
    first, last = days.first, days.last
    if first is None or last is None:
        return ""
    if step == "day":
        return f"{first:%a} {humanize.short_date(first)}"
    return f"{humanize.short_date(first)} to {humanize.short_date(last, year=True)}"


def _axis_label(days: DateRange, step: ChartInterval, *, named: bool) -> str:
    first = days.first
    if first is None:
        return ""
    if step == "month":
        return f"{first:%b} {first.year}" if first.month == 1 or named else f"{first:%b}"
    return humanize.short_date(first) if named or first.day <= _WEEK or step == "week" else str(first.day)


def stacked_chart(stack: CostChart, split: ChartSeries, first: date, last: date) -> tuple[Markup, list[LegendEntry]]:
    """Draw the cost per day, week or month by model or project. Return the chart and its legend."""
    series = [_chart_series(position, name, costs, split) for position, (name, costs) in enumerate(stack.series)]
    piles: list[charts.StackedBar] = []
    for place, name in enumerate(stack.names):
        days = period_range(name, stack.step, first, last)
        when = _format_range(days, stack.step)
        marks = [
            charts.ChartMark(
                costs[place],
                f"{when}, {item.name}: {money(costs[place])}",
                _lines_url(days, **_split_query(split, name_of_series)),
                item.kind,
            )
            for item, (name_of_series, costs) in zip(series, stack.series, strict=True)
        ]
        total = sum(costs[place] for _, costs in stack.series)
        piles.append(
            charts.StackedBar(
                _axis_label(days, stack.step, named=place == 0), f"{when}: {money(total)}", _lines_url(days), marks
            )
        )
    return charts.stacked_bars(piles, f"Cost by {stack.step} and {split}"), [
        msgspec.structs.replace(
            each, href=_lines_url(DateRange(first, last), **_split_query(split, stack.series[place][0]))
        )
        for place, each in enumerate(series)
    ]


def _chart_series(position: int, name: str | None, costs: list[int], split: ChartSeries) -> LegendEntry:
    format_name = humanize.model_name if split == "model" else humanize.project_name
    label = "Other" if name is None else format_name(name) or f"no {split}"
    return LegendEntry(label, f"f{7 if name is None else position + 1}", sum(costs), "")


def _split_query(split: ChartSeries, name: str | None) -> dict[str, str]:
    if name is None:
        return {}
    if split == "project":
        return {"project": path_tag(name)}
    return {"model": name} if name else {"without": "model"}


# Cache


def cache_chart(periods: UsageReport, stack: CostChart, first: date, last: date, mean: float | None) -> Markup:
    """Draw the cache hit rate over time."""
    line_by_period = {line.names[0]: line for line in periods.lines}
    marks: list[charts.ChartMark] = []
    labels: list[str] = []
    for name in stack.names:
        days = period_range(name, stack.step, first, last)
        line = line_by_period.get(name)
        share = None if line is None else cache_share(line.figures)
        title = "" if share is None else f"{_format_range(days, stack.step)}: {share:.1%}"
        marks.append(charts.ChartMark(share, title, _lines_url(days)))
        labels.append(_axis_label(days, stack.step, named=True))
    return charts.share_line(marks, labels, mean, "Cache hit rate")


# Sessions


def cost_bins(costs: Sequence[int], query: dict[str, str]) -> list[CostBin]:
    """Count sessions by cost, in ascending bins."""
    edges = (0, *_BIN_EDGES)
    numbers = [0] * len(edges)
    for cost in costs:
        numbers[bisect_right(edges, max(0, cost)) - 1] += 1
    used = [position for position, number in enumerate(numbers) if number]
    if not used:
        return []
    bins: list[CostBin] = []
    first = max(0, min(used[0], used[-1] + 1 - _MIN_BINS))
    last = min(len(edges), max(used[-1] + 1, first + _MIN_BINS))
    for place in range(first, last):
        min_cost = edges[place]
        max_cost = edges[place + 1] if place + 1 < len(edges) else None
        limits = {"least": str(min_cost), "most": "" if max_cost is None else str(max_cost)}
        label = (
            f"<{_short_amount(max_cost or 0)}"
            if not min_cost
            else f"{_short_amount(min_cost)}{'' if max_cost else '+'}"
        )
        href = links().usage_sessions(**query, **limits)
        bins.append(CostBin(label, min_cost, max_cost, numbers[place], href))
    return bins


def _short_amount(micro: int) -> str:
    return f"{micro // _CENT}¢" if micro < 100 * _CENT else f"${micro / (100 * _CENT):g}"


def cost_histogram(bins: Sequence[CostBin]) -> Markup:
    """Draw the number of sessions per cost range."""
    piles = [
        charts.StackedBar(
            cost_bin.label,
            f"{humanize.count(cost_bin.number, 'session')} at {_bin_range(cost_bin)}",
            cost_bin.href,
            [charts.ChartMark(cost_bin.number, "")],
        )
        for cost_bin in bins
    ]
    return charts.labelled_bars(piles, "Sessions by cost")


def _bin_range(cost_bin: CostBin) -> str:
    if cost_bin.most is None:
        return f"{money(cost_bin.least)} or more"
    return f"{money(cost_bin.least)} to under {money(cost_bin.most)}"


# 5-hour blocks


def blocks_chart(block_reports: Sequence[tuple[int, UsageReport]], params: UsagePageParams, now: float) -> BlocksView:
    """Draw the blocks of the last seven days."""
    moment = int(now * 1000)
    highest_cost = max((report.cost for _, report in block_reports), default=0)
    items: list[charts.TimeBlock] = []
    rows: list[tuple[str, str, str, str, str]] = []
    current: tuple[int, UsageReport] | None = None
    for start, report in block_reports:
        is_now = start <= moment < start + BLOCK_MILLIS
        if is_now:
            current = (start, report)
        cost = format_amount(report.cost, report.totals)
        start_label, end_label = (_format_moment(start), humanize.time_of_day((start + BLOCK_MILLIS) / 1000))
        href = links().usage_lines(block=_block_parameter(start))
        title = f"{start_label} to {end_label}: {cost}{' so far' if is_now else ''}"
        share = report.cost / highest_cost if highest_cost else 0
        items.append(charts.TimeBlock(start, share, _short_cost(report.cost), title, href, is_now))
        rows.append((start_label, end_label, cost, humanize.count(report.totals.responses, "response"), href))
    days = [params.last - timedelta(days=back) for back in range(6, -1, -1)]
    midnights = [(DateRange(day).since or 0, f"{day:%a} {humanize.short_date(day)}") for day in days]
    end = DateRange(None, params.last).until or 0
    chart = charts.time_blocks(items, midnights, end, moment, "5-hour blocks of the last seven days")
    rows.reverse()
    return BlocksView(chart, rows, *_current_block(current, moment), highest_cost)


def _short_cost(micro: int) -> str:
    """Return a cost short enough to fit above a block."""
    return f"${micro / 1e6:,.0f}" if micro >= _TEN_DOLLARS else f"${micro / 1e6:.2f}"


def _current_block(current: tuple[int, UsageReport] | None, moment: int) -> tuple[str, str, str, str]:
    """Return the end of the current block, its cost, its cost per hour and its forecast."""
    if current is None:
        return "", "", "", ""
    start, report = current
    passed = max(moment - start, _HOUR_MS // 4) / _HOUR_MS
    rate = report.cost / passed
    return (
        humanize.time_of_day((start + BLOCK_MILLIS) / 1000),
        format_amount(report.cost, report.totals),
        money(round(rate)),
        money(round(rate * 5)),
    )


def _format_moment(moment: int) -> str:
    local = time.localtime(moment / 1000)
    day = date(*local[:3])
    return f"{day:%a} {humanize.short_date(day)} {local.tm_hour:02}:{local.tm_min:02}"


def _block_parameter(moment: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M", time.localtime(moment / 1000))
