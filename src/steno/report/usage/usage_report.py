"""Usage report: rows with token counts and cost, their total, and their JSON form.

Costs are summed exactly, in millionths of a micro-dollar, and rounded once: the total to the nearest micro-dollar, the
rows up or down so that they add up to it. The total therefore does not depend on the grouping.
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from steno.report.clock import iso_time_from_ms
from steno.report.humanize import MICRO_DOLLARS_PER_DOLLAR
from steno.report.pricing import EXACT_PER_MICRO_DOLLAR, PriceTable, exact_cost
from steno.report.usage.usage_query import GROUP_PARTS, Bucket, Buckets, TokenCounts, UsageQuery

_TIME_GROUPINGS: Final = ("day", "week", "month", "hour", "block5h")


class UsageFigures(msgspec.Struct):
    """Token counts and cost."""

    responses: int = 0
    input: int = 0
    output: int = 0
    cache_5m: int = 0
    cache_1h: int = 0
    cache_read: int = 0
    searches: int = 0
    estimated: int = 0
    """Number of responses with placeholder token counts."""
    exact: int = 0
    """Cost of all priced usage, in millionths of a micro-dollar."""
    unpriced: dict[str, int] = {}
    """Tokens by model, for models without a price."""
    slow_price: int = 0
    """Number of fast responses priced at the normal rates, because the model has no fast rates."""

    @property
    def cache_write(self) -> int:
        """Cache write tokens."""
        return self.cache_5m + self.cache_1h

    @property
    def context(self) -> int:
        """Input, cache write and cache read tokens."""
        return self.input + self.cache_write + self.cache_read

    @property
    def has_cost(self) -> bool:
        """Whether any usage has a price, or none needs one."""
        return bool(self.exact) or not self.unpriced

    @property
    def cost(self) -> int | None:
        """Cost in micro-dollars; None if nothing has a price."""
        return rounded_micros(self.exact) if self.has_cost else None

    def add_bucket(self, bucket: Bucket, counts: TokenCounts, prices: PriceTable) -> None:
        """Add a bucket and its cost."""
        self.responses += counts[0]
        self.input += counts[1]
        self.output += counts[2]
        self.cache_5m += counts[3]
        self.cache_1h += counts[4]
        self.cache_read += counts[5]
        self.searches += counts[6]
        self.estimated += counts[7]
        _, day, model, fast, tier = bucket
        rates_found = prices.find_rates(model, day, tier, fast)
        if rates_found is not None:
            self.exact += exact_cost(counts, rates_found[0])
            self.slow_price += 0 if rates_found[1] else counts[0]
        elif tokens := sum(counts[1:6]):
            self.unpriced[model] = self.unpriced.get(model, 0) + tokens

    def add(self, other: "UsageFigures") -> None:
        """Add other figures."""
        self.responses += other.responses
        self.input += other.input
        self.output += other.output
        self.cache_5m += other.cache_5m
        self.cache_1h += other.cache_1h
        self.cache_read += other.cache_read
        self.searches += other.searches
        self.estimated += other.estimated
        self.exact += other.exact
        self.slow_price += other.slow_price
        for model, tokens in other.unpriced.items():
            self.unpriced[model] = self.unpriced.get(model, 0) + tokens


class ReportRow(msgspec.Struct):
    """A row of a report."""

    names: tuple[str, ...]
    figures: UsageFigures
    cost: int = 0
    """Micro-dollars."""
    title: str = ""
    project: str = ""
    calls: int = 0
    failed: int = 0


class UsageReport(msgspec.Struct):
    """Usage by group, with totals."""

    by: str
    lines: list[ReportRow]
    totals: UsageFigures
    cost: int
    """Micro-dollars."""
    abandoned: UsageFigures | None = None
    """Usage of abandoned branches, included in the totals; None if unknown."""
    unseen: int = 0
    """Number of sessions that may have abandoned branches but were not read."""
    complete: bool = True
    """Whether all files were read."""


def build_report(buckets: Buckets, grouping: str, prices: PriceTable) -> UsageReport:
    """Return a report; rows are ordered by time, or by cost in descending order."""
    prices.load({bucket[2] for bucket in buckets})
    rows: dict[tuple[str, ...], UsageFigures] = {}
    totals = UsageFigures(unpriced={})
    for cell, counts in buckets.items():
        figures = rows.get(cell[0])
        if figures is None:
            figures = rows[cell[0]] = UsageFigures(unpriced={})
        figures.add_bucket(cell, counts, prices)
    for figures in rows.values():
        totals.add(figures)
    report_rows = [ReportRow(names, figures) for names, figures in rows.items()]
    if grouping in _TIME_GROUPINGS:
        report_rows.sort(key=lambda line: line.names)
    else:
        report_rows.sort(key=lambda line: (-line.figures.exact, -line.figures.context, line.names))
    costs = apportion_micros([report_row.figures.exact for report_row in report_rows])
    for line, cost in zip(report_rows, costs, strict=True):
        line.cost = cost
    return UsageReport(grouping, report_rows, totals, sum(costs))


def sum_usage(buckets: Iterable[tuple[Bucket, TokenCounts]], prices: PriceTable) -> UsageFigures:
    """Return the sum of buckets."""
    figures = UsageFigures(unpriced={})
    for bucket, counts in buckets:
        figures.add_bucket(bucket, counts, prices)
    return figures


def rounded_micros(exact: int) -> int:
    """Round millionths of a micro-dollar to micro-dollars."""
    return (exact + EXACT_PER_MICRO_DOLLAR // 2) // EXACT_PER_MICRO_DOLLAR


def apportion_micros(exact: list[int]) -> list[int]:
    """Round amounts to micro-dollars so that they add up to their rounded sum.

    >>> apportion_micros([600_000, 600_000, 600_000])
    [1, 1, 0]
    """
    costs = [amount // EXACT_PER_MICRO_DOLLAR for amount in exact]
    missing = rounded_micros(sum(exact)) - sum(costs)
    largest_remainders = sorted(range(len(exact)), key=lambda place: (-(exact[place] % EXACT_PER_MICRO_DOLLAR), place))
    for index in largest_remainders[:missing]:
        costs[index] += 1
    return costs


def figures_json(figures: UsageFigures, cost: int) -> dict[str, Any]:
    """Return figures as JSON, with the field names of the API."""
    return {
        "responses": figures.responses,
        "input_tokens": figures.input,
        "output_tokens": figures.output,
        "cache_creation_input_tokens": figures.cache_write,
        "cache_creation_5m_input_tokens": figures.cache_5m,
        "cache_creation_1h_input_tokens": figures.cache_1h,
        "cache_read_input_tokens": figures.cache_read,
        "web_search_requests": figures.searches,
        "cost_usd": cost / MICRO_DOLLARS_PER_DOLLAR if figures.has_cost else None,
        "cost_micro_usd": cost if figures.has_cost else None,
        "estimated_responses": figures.estimated,
        "fast_at_normal_price": figures.slow_price,
        "unpriced_tokens": figures.unpriced,
    }


def group_json(grouping: str, names: tuple[str, ...]) -> dict[str, str]:
    """Return a group key as JSON, by the names of its parts."""
    return dict(zip(GROUP_PARTS.get(grouping, (grouping,)), names, strict=True))


def report_json(report: UsageReport, query: UsageQuery, limit: int = 0) -> dict[str, Any]:
    """Return a report as JSON."""
    abandoned = report.abandoned
    return {
        "by": report.by,
        "since": iso_time_from_ms(query.since),
        "until": iso_time_from_ms(query.until),
        "complete": report.complete,
        "rows": [row_json(report.by, line) for line in report.lines[: limit or None]],
        "totals": figures_json(report.totals, report.cost),
        "abandoned": None
        if abandoned is None
        else figures_json(abandoned, rounded_micros(abandoned.exact)) | {"sessions_not_seen": report.unseen},
    }


def row_json(grouping: str, report_row: ReportRow) -> dict[str, Any]:
    """Return a row of a report as JSON."""
    row: dict[str, Any] = group_json(grouping, report_row.names) | figures_json(report_row.figures, report_row.cost)
    if grouping in ("session", "agent"):
        row |= {"title": report_row.title, "project": report_row.project}
    if grouping == "tool":
        row |= {"calls": report_row.calls, "failed": report_row.failed}
    return row
