"""Usage: URL parameters, summary figures, tables and notes."""

import time
from calendar import monthrange
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Final

import msgspec
from markupsafe import Markup
from starlette.datastructures import QueryParams

from steno.errors import BadRequest
from steno.format.tool_catalogue import tool_facts
from steno.report import humanize
from steno.report.humanize import money
from steno.report.usage.usage_overview import ChartInterval, ChartSeries, ToolUsage, UsageBreakdown, month_forecast
from steno.report.usage.usage_query import UsageQuery, midnight_millis
from steno.report.usage.usage_report import ReportRow, UsageFigures, UsageReport
from steno.web.render.charts import meter
from steno.web.templating import links
from steno.web.urls import path_tag

RANGES: Final[dict[str, tuple[int, str]]] = {
    "7d": (7, "7 days"),
    "30d": (30, "30 days"),
    "90d": (90, "90 days"),
    "year": (365, "Year"),
    "all": (0, "All"),
}
_DEFAULT_RANGE: Final = "30d"
_SPLITS: Final[dict[str, ChartSeries]] = {"model": "model", "project": "project"}
_MAX_DAILY_BARS: Final = 92
_MAX_WEEKLY_DAYS: Final = 53 * 7 * 2
_TABLES: Final = ("projects", "branches", "kinds", "models", "tools")


class DateRange(msgspec.Struct, frozen=True):
    """A range of days; None for an open start or end."""

    first: date | None = None
    last: date | None = None

    @property
    def since(self) -> int | None:
        """Return the start in milliseconds."""
        return None if self.first is None else midnight_millis(self.first.isoformat())

    @property
    def until(self) -> int | None:
        """Return the end in milliseconds, exclusive."""
        if self.last is None:
            return None
        return midnight_millis((self.last + timedelta(days=1)).isoformat())

    @property
    def query(self) -> dict[str, str]:
        """Return the range as URL parameters."""
        return {
            "from": "" if self.first is None else self.first.isoformat(),
            "to": "" if self.last is None else self.last.isoformat(),
        }

    def usage_query(self, by: str = "day") -> UsageQuery:
        """Return the range as a usage query."""
        return msgspec.structs.replace(UsageQuery(since=self.since, until=self.until), by=by)


class UsagePageParams(msgspec.Struct, frozen=True):
    """Parameters of the usage page."""

    range: str
    days: DateRange
    today: date
    last: date
    """The last day shown."""
    split: ChartSeries
    open: str
    """Name of the table that is shown in full."""

    def url(self, **changes: str) -> str:
        """Return the URL of the page with changed parameters."""
        query = {
            "range": self.range,
            "to": "" if self.last == self.today else self.last.isoformat(),
            "by": self.split,
            **changes,
        }
        if query["range"] == _DEFAULT_RANGE:
            query["range"] = ""
        if query["by"] == "model":
            query["by"] = ""
        return links().usage(**query)

    @property
    def earlier_url(self) -> str:
        """Return the URL of the previous range; empty if there is none."""
        number = RANGES[self.range][0]
        return self.url(to=(self.last - timedelta(days=number)).isoformat()) if number else ""

    @property
    def later_url(self) -> str:
        """Return the URL of the next range; empty if it is in the future."""
        number = RANGES[self.range][0]
        if not number or self.last >= self.today:
            return ""
        last = min(self.today, self.last + timedelta(days=number))
        return self.url(to="" if last == self.today else last.isoformat())

    @property
    def previous_range(self) -> DateRange | None:
        """Return the preceding range of the same length."""
        first = self.days.first
        if first is None:
            return None
        number = RANGES[self.range][0]
        return DateRange(first - timedelta(days=number), first - timedelta(days=1))

    def bar_unit(self, first: date) -> ChartInterval:
        """Return the period of one bar in a chart that starts on a day."""
        number = (self.last - first).days + 1
        return "day" if number <= _MAX_DAILY_BARS else "week" if number <= _MAX_WEEKLY_DAYS else "month"


def usage_page_params(query_params: QueryParams, now: float) -> UsagePageParams:
    """Return the parameters of a request.

    Raises:
        BadRequest: A date is invalid.
    """
    today = date(*time.localtime(now)[:3])
    name = query_params.get("range", _DEFAULT_RANGE)
    name = name if name in RANGES else _DEFAULT_RANGE
    last = parse_day(query_params.get("to", "")) or today
    number = RANGES[name][0]
    if not number or last > today:
        last = today
    try:
        first = last - timedelta(days=number - 1) if number else None
    except OverflowError as error:
        raise BadRequest(f"invalid date {query_params.get('to')!r}") from error
    days = DateRange(first, None if last == today else last)
    open_table = query_params.get("open", "")
    return UsagePageParams(
        name,
        days,
        today,
        last,
        _SPLITS.get(query_params.get("by", ""), "model"),
        open_table if open_table in _TABLES else "",
    )


def parse_day(text: str) -> date | None:
    """Return the date in a text; None if the text is empty.

    Raises:
        BadRequest: The date is invalid or out of range.
    """
    if not text:
        return None
    try:
        day = date.fromisoformat(text)
        midnight_millis((day + timedelta(days=1)).isoformat())
        midnight_millis((day - timedelta(days=800)).isoformat())
    except (ValueError, OverflowError) as error:
        raise BadRequest(f"invalid date {text!r}", hint="Use the format 2026-11-15.") from error
    return day


def format_days(first: date, last: date) -> str:
    """Return a range of days as text, with the year only once if both days are in the same year."""
    return f"{humanize.short_date(first, year=first.year != last.year)} to {humanize.short_date(last, year=True)}"


_MAX_ROWS: Final = 8
_MAX_ALL_ROWS: Final = 500
_MIN_CHANGE: Final = 0.005
_HIGH_FAILURE_RATE: Final = 0.05
_LOW_CACHE_SHARE: Final = 0.8


class SummaryFigure(msgspec.Struct, frozen=True):
    """A summary figure with a link to its data."""

    label: str
    value: str
    note: str
    href: str
    hint: str = ""


class UsageRow(msgspec.Struct, frozen=True):
    """A row of a usage table."""

    name: str
    detail: str
    """Additional name, shown dimmed."""
    page: str
    """URL of the item's page; may be empty."""
    lines: str
    """URL of the responses."""
    figures: UsageFigures
    cost: str
    bar: Markup
    low_cache: bool
    """Whether the cache hit rate is low."""


class UsageTable(msgspec.Struct, frozen=True):
    """A usage table."""

    name: str
    title: str
    head: str
    rows: list[UsageRow]
    total: int
    more: str
    """URL of the full table."""


class ToolUsageRow(msgspec.Struct, frozen=True):
    """A row of the tools table."""

    tool: ToolUsage
    icon: str
    rate: float
    bar: Markup
    calls: str
    failed: str


def format_amount(cost: int, figures: UsageFigures) -> str:
    """Return an amount; with `?` if a price is unknown and `≈` if a figure is estimated.

    >>> format_amount(12_345_678, UsageFigures()), format_amount(0, UsageFigures(unpriced={"x": 1}))
    ('$12.35', '?')
    """
    if not figures.has_cost:
        return "?"
    about = "≈" if figures.estimated else ""
    return f"{about}{money(cost or int(bool(figures.exact)))}{'+?' if figures.unpriced else ''}"


def cache_share(figures: UsageFigures) -> float | None:
    """Return the cache hit rate; None without input tokens."""
    return figures.cache_read / figures.context if figures.context else None


# Summary


def summary_figures(
    params: UsagePageParams,
    report: UsageReport,
    sessions: int,
    saved: int,
    previous_cost: int,
    daily_costs: dict[str, int],
) -> list[SummaryFigure]:
    """Return the six summary figures, given the cost of the preceding range and of each day."""
    totals, query = report.totals, params.days.query
    lines = links().usage_lines(**query)
    output_tokens = f"{'≈' if totals.estimated else ''}{humanize.tokens_or_billions(totals.output)}"
    responses = humanize.count(totals.responses, "response")
    return [
        SummaryFigure(
            "Cost", format_amount(report.cost, totals), _comparison_note(params, report.cost, previous_cost), lines
        ),
        SummaryFigure("Sessions", f"{sessions:,}", responses, links().usage_sessions(**query)),
        SummaryFigure("Output tokens", output_tokens, f"{humanize.tokens_or_billions(totals.context)} input", lines),
        _cache_figure(cache_share(totals), lines),
        _savings_figure(saved, lines),
        _forecast_figure(params, daily_costs),
    ]


def _cache_figure(share: float | None, lines: str) -> SummaryFigure:
    value = "none" if share is None else f"{share:.1%}"
    return SummaryFigure("Cache hit rate", value, "of input tokens", lines)


def _savings_figure(saved: int, lines: str) -> SummaryFigure:
    return SummaryFigure(
        "Cache savings",
        money(saved) if saved >= 0 else f"-{money(-saved)}",
        "net of cache writes",
        lines,
        "Cost of the cache read tokens at the input price, minus their actual cost, "
        "minus the extra cost of cache writes.",
    )


def _forecast_figure(params: UsagePageParams, days: dict[str, int]) -> SummaryFigure:
    today = params.today
    left = monthrange(today.year, today.month)[1] - today.day
    so_far, month = month_forecast(days, today.isoformat(), left)
    return SummaryFigure(
        f"{today:%B} forecast",
        money(month),
        f"{money(so_far)} so far",
        links().usage_lines(**DateRange(today.replace(day=1)).query),
        "Cost of this month so far, plus the daily average of the last seven days for each remaining day.",
    )


def _comparison_note(params: UsagePageParams, cost: int, previous_cost: int) -> str:
    number, name = RANGES[params.range]
    if not number:
        return "all time"
    if not previous_cost:
        return f"no cost in previous {name.lower()}"
    change = (cost - previous_cost) / previous_cost
    if abs(change) < _MIN_CHANGE:
        return "same as previous {name.lower()}"
    if change > 1:
        return f"{cost / previous_cost:.1f} times previous {name.lower()}"
    return f"{abs(change):.0%} {'more' if change > 0 else 'less'} than previous {name.lower()}"


# Tables


def usage_tables(
    params: UsagePageParams, reports: dict[str, UsageReport], parts: UsageBreakdown
) -> dict[str, UsageTable]:
    """Return the tables by model, project, branch and type of sub-agent."""
    return {
        "models": _usage_table(params, "models", "By model", "Model", reports["model"]),
        "projects": _usage_table(params, "projects", "By project", "Project", reports["project"]),
        "branches": _usage_table(params, "branches", "By branch", "Branch", parts.branches),
        "kinds": _usage_table(params, "kinds", "By sub-agent type", "Type", parts.kinds),
    }


def _usage_table(params: UsagePageParams, name: str, title: str, head: str, report: UsageReport) -> UsageTable:
    max_rows = _MAX_ALL_ROWS if params.open == name else _MAX_ROWS
    highest_cost = max((line.cost for line in report.lines), default=0)
    rows = [_usage_row(params, name, line, highest_cost) for line in report.lines[:max_rows]]
    more = params.url(open=name) if len(report.lines) > len(rows) and max_rows < _MAX_ALL_ROWS else ""
    return UsageTable(name, title, head, rows, len(report.lines), more)


def _usage_row(params: UsagePageParams, name: str, line: ReportRow, highest_cost: int) -> UsageRow:
    named, more, page, query = _NAME_FUNCTIONS[name](line.names)
    share = cache_share(line.figures)
    return UsageRow(
        named,
        more,
        page,
        links().usage_lines(**params.days.query, **query),
        line.figures,
        format_amount(line.cost, line.figures),
        meter(line.cost / highest_cost if highest_cost else 0, "f1"),
        share is not None and share < _LOW_CACHE_SHARE,
    )


_NameParts = tuple[str, str, str, dict[str, str]]


def _model_name(names: tuple[str, ...]) -> _NameParts:
    (model,) = names
    return humanize.model_name(model) or "unnamed", "", "", _filter_query("model", model)


def _project_name(names: tuple[str, ...]) -> _NameParts:
    (path,) = names
    tag = path_tag(path)
    page = links().project(tag) if path else ""
    return humanize.project_name(path) or "no project", "", page, {"project": tag}


def _branch_name(names: tuple[str, ...]) -> _NameParts:
    path, branch = names
    query = {"project": path_tag(path), **_filter_query("branch", branch)}
    return branch or "no branch", humanize.project_name(path), "", query


def _kind_name(names: tuple[str, ...]) -> _NameParts:
    whose, kind = names
    if not whose:
        return "main session", "", "", {"agent": "self"}
    return kind or "unknown type", "", "", {"agent": f"kind:{kind}"}


def _filter_query(name: str, value: str) -> dict[str, str]:
    """Return the URL parameter for a value; `without` selects an empty value."""
    return {name: value} if value else {"without": name}


_NAME_FUNCTIONS: Final = {
    "models": _model_name,
    "projects": _project_name,
    "branches": _branch_name,
    "kinds": _kind_name,
}


# Tools


def tool_rows(params: UsagePageParams, tools: list[ToolUsage]) -> tuple[list[ToolUsageRow], str]:
    """Return the rows of the tools table and the URL of the full table."""
    max_rows = _MAX_ALL_ROWS if params.open == "tools" else _MAX_ROWS + 2
    highest_rate = max((tool.failed / tool.calls for tool in tools[:max_rows]), default=0)
    rows: list[ToolUsageRow] = []
    for tool in tools[:max_rows]:
        rate = tool.failed / tool.calls
        # Use a minimum scale so that low failure rates look low.
        full = max(highest_rate, _HIGH_FAILURE_RATE * 2)
        query = {**params.days.query, **({"tool": tool.name} if tool.name else {"without": "tool"})}
        rows.append(
            ToolUsageRow(
                tool,
                tool_facts(tool.name).icon,
                rate,
                meter(rate / full, "fbad" if rate >= _HIGH_FAILURE_RATE else "fink"),
                links().usage_calls(**query),
                links().usage_calls(**query, failed="1") if tool.failed else "",
            )
        )
    more = params.url(open="tools") if len(tools) > len(rows) and max_rows < _MAX_ALL_ROWS else ""
    return rows, more


# Notes


def usage_notes(report: UsageReport, undated: int) -> Iterator[tuple[str, str]]:
    """Yield a mark and a note for each estimate and exclusion."""
    totals = report.totals
    if totals.estimated:
        response_count = humanize.count(totals.estimated, "response")
        note = f"{response_count} with under-reported output tokens (Claude Code 2.1.0 to 2.1.52): "
        yield "≈", note + "the actual cost is higher."
    for model, number in sorted(totals.unpriced.items()):
        name = model or "an unnamed model"
        message = f"No price known for {name} ({number:,} tokens): excluded from all costs."
        yield "?", f"{message} Add a price to the price file."
    if totals.slow_price:
        response_count = humanize.count(totals.slow_price, "fast response")
        yield "", f"{response_count} at the normal price, as no fast price is known: the actual cost is higher."
    if undated:
        response_count = humanize.count(undated, "response")
        yield "", f"{response_count} without a time: included only in totals of all time."
