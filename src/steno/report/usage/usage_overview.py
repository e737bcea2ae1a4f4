"""Usage overview of a date range, in several groupings, with few queries.

The daily sums provide the reports by day, model and project; one query over the responses provides those by session,
branch and sub-agent.
"""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec

from steno.index.session_stats import FILE_ID_SHIFT
from steno.report.humanize import MS_PER_SECOND
from steno.report.pricing import PriceTable
from steno.report.usage.usage_from_index import count_by_origin, count_indexed_usage, transcript_owners
from steno.report.usage.usage_query import (
    Bucket,
    Buckets,
    UsageQuery,
    add_counts,
    day_of_slot,
    midnight_millis,
    month_of,
    week_of,
    with_clock_names,
)
from steno.report.usage.usage_report import ReportRow, UsageReport, build_report, rounded_micros

_CLOCK_SLACK: Final = 86_400_000
"""Milliseconds that a call may precede its response, as clocks may be set back."""
_FROM_TOOL_CALLS: Final = (
    f"FROM tool_calls t JOIN usage u ON u.file = t.message >> {FILE_ID_SHIFT} AND u.key = t.response"
)
_OFFSET_BITS: Final = (1 << FILE_ID_SHIFT) - 1


class ToolUsage(msgspec.Struct, frozen=True):
    """Usage of a tool. Times are in seconds; None if no call has an end."""

    name: str
    calls: int
    failed: int
    median: float | None
    high: float | None
    """95th percentile."""


class ToolCallRow(msgspec.Struct, frozen=True):
    """A tool call."""

    file: int
    offset: int
    time: int | None
    seconds: float | None
    failed: bool
    answered: bool
    path: str
    """Path of the file, for a call of a file tool."""


def tool_usage(connection: sqlite3.Connection, query: UsageQuery) -> list[ToolUsage]:
    """Return the tools called in a time range, most frequent first."""
    where, values = _time_condition(query)
    times: dict[str, list[int]] = {}
    counts: dict[str, list[int]] = {}
    for name, duration, failed in connection.execute(
        f"SELECT t.name, t.ended - t.time, t.failed {_FROM_TOOL_CALLS} WHERE {where}", values
    ):
        count = counts.get(name)
        if count is None:
            count = counts[name] = [0, 0]
            times[name] = []
        count[0] += 1
        if failed:
            count[1] += 1
        if duration is not None:
            times[name].append(duration)
    tools = [ToolUsage(name, calls, failed, *_median_and_high(times[name])) for name, (calls, failed) in counts.items()]
    return sorted(tools, key=lambda tool: (-tool.calls, tool.name))


def tool_calls(
    connection: sqlite3.Connection,
    query: UsageQuery,
    name: str,
    *,
    failed: bool = False,
    limit: int = 50,
    offset: int = 0,
) -> tuple[list[ToolCallRow], int]:
    """Return calls of a tool, newest first, and the total."""
    where, values = _time_condition(query)
    where += " AND t.name = ?" + (" AND t.failed" if failed else "")
    values.append(name)
    (total,) = connection.execute(f"SELECT count(*) {_FROM_TOOL_CALLS} WHERE {where}", values).fetchone()
    rows = connection.execute(
        "SELECT t.message, t.time, t.ended - t.time, coalesce(t.failed, 0), t.result IS NOT NULL, "
        f"t.path {_FROM_TOOL_CALLS} WHERE {where} ORDER BY t.time DESC, t.message DESC, t.place DESC "
        "LIMIT ? OFFSET ?",
        [*values, limit, offset],
    )
    calls = [
        ToolCallRow(
            message >> FILE_ID_SHIFT,
            message & _OFFSET_BITS,
            time,
            None if duration is None else max(0, duration) / MS_PER_SECOND,
            bool(is_failed),
            bool(answered),
            path,
        )
        for message, time, duration, is_failed, answered, path in rows
    ]
    return calls, total


def _time_condition(query: UsageQuery) -> tuple[str, list[Any]]:
    """Return the SQL condition for a time range; as in all reports, the time of the response decides."""
    where, values = ["u.counts"], list[Any]()
    if query.is_bounded:
        where.append("u.time IS NOT NULL")
    if query.since is not None:
        where.append("u.time >= ? AND (t.time >= ? OR t.time IS NULL)")
        values += [query.since, query.since - _CLOCK_SLACK]
    if query.until is not None:
        where.append("u.time < ?")
        values.append(query.until)
    return " AND ".join(where), values


def _median_and_high(durations: list[int]) -> tuple[float | None, float | None]:
    """Return the median and the 95th percentile of durations, in seconds."""
    if not durations:
        return None, None
    durations.sort()
    last = len(durations) - 1
    middle = (durations[last // 2] + durations[(last + 1) // 2]) / 2
    high = durations[-(-len(durations) * 19 // 20) - 1]
    return max(0, middle) / MS_PER_SECOND, max(0, high) / MS_PER_SECOND


ChartSeries: TypeAlias = Literal["model", "project"]
ChartInterval: TypeAlias = Literal["day", "week", "month"]
_PERIODS: Final[dict[ChartInterval, Callable[[str], str]]] = {"day": str, "week": week_of, "month": month_of}
OWN_REQUESTS: Final = ""
"""Sub-agent type of the requests of the session itself."""
_SLOT_LENGTH: Final = 900_000
_SLOTS_PER_DAY: Final = 96
_NOON_SLOT: Final = 48


class UsageBreakdown(msgspec.Struct):
    """Reports by session, branch, sub-agent type and tool."""

    sessions: UsageReport
    branches: UsageReport
    kinds: UsageReport
    tools: list[ToolUsage]


class CostChart(msgspec.Struct):
    """Cost by time interval and series, in micro-dollars."""

    step: ChartInterval
    names: list[str]
    """Consecutive days, weeks or months."""
    series: list[tuple[str | None, list[int]]]
    """Most expensive series first; None for the sum of all others."""


def daily_usage(connection: sqlite3.Connection, prices: PriceTable) -> Buckets:
    """Return the daily sums by project; buckets also contain day and model."""
    buckets = count_indexed_usage(connection, UsageQuery("project"), prices)
    prices.load({bucket[2] for bucket in buckets})
    return buckets


def usage_in_range(buckets: Buckets, query: UsageQuery) -> Buckets:
    """Return the daily sums in a date range; if it is bounded, usage without a day is excluded."""
    if not query.is_bounded:
        return buckets
    since = "0" if query.since is None else day_of_slot(query.since // _SLOT_LENGTH)
    until = "~" if query.until is None else day_of_slot(query.until // _SLOT_LENGTH)
    return {bucket: counts for bucket, counts in buckets.items() if since <= bucket[1] < until}


def reports_by_grouping(buckets: Buckets, prices: PriceTable) -> dict[str, UsageReport]:
    """Return the reports by day, model and project."""
    return {
        "day": build_report(_regroup(buckets, lambda bucket: (bucket[1],)), "day", prices),
        "model": build_report(_regroup(buckets, lambda cell: (cell[2],)), "model", prices),
        "project": build_report(buckets, "project", prices),
    }


def _regroup(buckets: Buckets, name: Callable[[Bucket], tuple[str, ...]]) -> Buckets:
    """Return buckets with new group keys, merging buckets with equal keys."""
    regrouped: Buckets = {}
    for bucket, counts in buckets.items():
        _, day, model, fast, tier = bucket
        add_counts(regrouped, (name(bucket), day, model, fast, tier), counts)
    return regrouped


def interval_report(buckets: Buckets, prices: PriceTable, interval: ChartInterval) -> UsageReport:
    """Return the report by day, week or month."""
    period = _PERIODS[interval]
    return build_report(_regroup(buckets, lambda bucket: (period(bucket[1]),)), interval, prices)


def cache_savings(buckets: Buckets, prices: PriceTable) -> int:
    """Return the savings by the cache in micro-dollars.

    Savings are the cache read tokens at the input price, minus their price, minus the surcharge for cache writes.
    """
    exact = 0
    for (_, day, model, fast, tier), counts in buckets.items():
        rates_found = prices.find_rates(model, day, tier, fast)
        if rates_found is None:
            continue
        rates = rates_found[0]
        _, _, _, cache_write_5m, cache_write_1h, cache_read, _, _ = counts
        exact += cache_read * (rates.input - rates.cache_read)
        exact -= cache_write_5m * (rates.cache_5m - rates.input) + cache_write_1h * (rates.cache_1h - rates.input)
    return rounded_micros(exact)


def cost_chart(
    buckets: Buckets,
    prices: PriceTable,
    series_by: ChartSeries,
    days: list[str],
    interval: ChartInterval,
    max_series: int = 6,
) -> CostChart:
    """Return the cost of consecutive days by model or by project."""
    period = _PERIODS[interval]
    by_period = _regroup(
        buckets, lambda bucket: (period(bucket[1]), bucket[2] if series_by == "model" else bucket[0][0])
    )
    names = list(dict.fromkeys(period(day) for day in days))
    positions = {name: number for number, name in enumerate(names)}
    sums: dict[str, int] = {}
    costs: dict[str, list[int]] = {}
    for report_row in build_report(by_period, series_by, prices).lines:
        period_name, series_name = report_row.names
        if period_name not in positions:
            continue
        sums[series_name] = sums.get(series_name, 0) + report_row.cost
        costs.setdefault(series_name, [0] * len(names))[positions[period_name]] += report_row.cost
    ranked = sorted((name for name, cost in sums.items() if cost), key=lambda name: -sums[name])
    visible = ranked if len(ranked) <= max_series + 1 else ranked[:max_series]
    series: list[tuple[str | None, list[int]]] = [(name, costs[name]) for name in visible]
    if len(visible) < len(ranked):
        remaining_costs = (costs[name] for name in ranked[max_series:])
        series.append((None, [sum(column) for column in zip(*remaining_costs, strict=True)]))
    return CostChart(interval, names, series)


def usage_breakdown(connection: sqlite3.Connection, query: UsageQuery, prices: PriceTable) -> UsageBreakdown:
    """Return the reports by session, branch, sub-agent type and tool."""
    buckets = count_by_origin(connection, query, prices)
    places = transcript_owners(connection)
    types = subagent_types(connection)

    def session(cell: Bucket) -> tuple[str, ...]:
        return (places[int(cell[0][0])][0],)

    def branch(cell: Bucket) -> tuple[str, ...]:
        return places[int(cell[0][0])][2], cell[0][2]

    def kind(cell: Bucket) -> tuple[str, ...]:
        agent = cell[0][1] or places[int(cell[0][0])][1]
        return ("agent", types.get(agent, "")) if agent else ("", OWN_REQUESTS)

    return UsageBreakdown(
        build_report(_regroup(buckets, session), "session", prices),
        build_report(_regroup(buckets, branch), "branch", prices),
        build_report(_regroup(buckets, kind), "kind", prices),
        tool_usage(connection, query),
    )


def add_session_titles(connection: sqlite3.Connection, report_rows: Sequence[ReportRow]) -> Sequence[ReportRow]:
    """Add titles and projects to rows of sessions."""
    for report_row in report_rows:
        row = connection.execute(
            "SELECT title, project FROM sessions WHERE id = ? AND agent = '' ORDER BY file LIMIT 1", report_row.names
        ).fetchone()
        if row is not None:
            report_row.title, report_row.project = row
    return report_rows


def subagent_types(connection: sqlite3.Connection) -> dict[str, str]:
    """Return the type of each sub-agent that was started with a type."""
    rows = connection.execute("SELECT target, max(note) FROM links WHERE kind = 'agent' AND note != '' GROUP BY target")
    return dict(rows)


def five_hour_blocks(
    connection: sqlite3.Connection, query: UsageQuery, prices: PriceTable
) -> list[tuple[int, UsageReport]]:
    """Return the 5-hour blocks of a time range by start, each as a report."""
    buckets = with_clock_names(count_indexed_usage(connection, query, prices), "block5h")
    starts: dict[int, Buckets] = {}
    for bucket, counts in buckets.items():
        if bucket[0][0]:
            starts.setdefault(_block_start(bucket[0][0]), {})[bucket] = counts
    return [(start, build_report(block_buckets, "block5h", prices)) for start, block_buckets in sorted(starts.items())]


def _block_start(name: str) -> int:
    day, _, clock = name.partition(" ")
    hour, _, minute = clock.partition(":")
    return midnight_millis(day) + (int(hour) * 60 + int(minute)) * 60_000


def month_forecast(days: dict[str, int], today: str, days_left: int) -> tuple[int, int]:
    """Return the cost of the month so far, and the forecast for the whole month.

    The forecast uses the mean of the last seven days, without the incomplete current day, for each remaining day.
    """
    so_far = sum(cost for day, cost in days.items() if day[:7] == today[:7] and day <= today)
    end = midnight_millis(today) // _SLOT_LENGTH
    week = {day_of_slot(end - days_ago * _SLOTS_PER_DAY + _NOON_SLOT) for days_ago in range(1, 8)}
    mean = sum(days.get(day, 0) for day in week) / len(week)
    return so_far, so_far + round(mean * days_left)
