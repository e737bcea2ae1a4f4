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
    """Days that follow each other; None where there is no first or no last."""

    first: date | None = None
    last: date | None = None

    @property
    def since(self) -> int | None:
        """When they begin, in milliseconds."""
        return None if self.first is None else midnight_millis(self.first.isoformat())

    @property
    def until(self) -> int | None:
        """When they are over."""
        if self.last is None:
            return None
        return midnight_millis((self.last + timedelta(days=1)).isoformat())

    @property
    def query(self) -> dict[str, str]:
        """How an address says them."""
        return {
            "from": "" if self.first is None else self.first.isoformat(),
            "to": "" if self.last is None else self.last.isoformat(),
        }

    def usage_query(self, by: str = "day") -> UsageQuery:
        """What to ask a report for."""
        return msgspec.structs.replace(UsageQuery(since=self.since, until=self.until), by=by)


class UsagePageParams(msgspec.Struct, frozen=True):
    """What the address asks for."""

    range: str
    days: DateRange
    today: date
    last: date
    """The newest day that is shown."""
    split: ChartSeries
    open: str
    """The table that is shown in full."""

    def url(self, **changes: str) -> str:
        """Return the address of this page with something else about it."""
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
        """The days before; nothing where there are none."""
        number = RANGES[self.range][0]
        return self.url(to=(self.last - timedelta(days=number)).isoformat()) if number else ""

    @property
    def later_url(self) -> str:
        """The days after; nothing where they are yet to come."""
        number = RANGES[self.range][0]
        if not number or self.last >= self.today:
            return ""
        last = min(self.today, self.last + timedelta(days=number))
        return self.url(to="" if last == self.today else last.isoformat())

    @property
    def previous_range(self) -> DateRange | None:
        """The same number of days before."""
        first = self.days.first
        if first is None:
            return None
        number = RANGES[self.range][0]
        return DateRange(first - timedelta(days=number), first - timedelta(days=1))

    def bar_unit(self, first: date) -> ChartInterval:
        """What one bar of a chart that begins with a day stands for."""
        number = (self.last - first).days + 1
        return "day" if number <= _MAX_DAILY_BARS else "week" if number <= _MAX_WEEKLY_DAYS else "month"


def usage_page_params(query_params: QueryParams, now: float) -> UsagePageParams:
    """Return what an address asks for.

    Raises:
        BadRequest: it names a day that is none.
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
        raise BadRequest(f"not a day: {query_params.get('to')!r}") from error
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
    """Return the day that a text names; None for nothing.

    Raises:
        BadRequest: it names none, or none that a clock has.
    """
    if not text:
        return None
    try:
        day = date.fromisoformat(text)
        midnight_millis((day + timedelta(days=1)).isoformat())
        midnight_millis((day - timedelta(days=800)).isoformat())
    except (ValueError, OverflowError) as error:
        raise BadRequest(f"not a day: {text!r}", hint="a day looks like 2026-11-15") from error
    return day


def format_days(first: date, last: date) -> str:
    """Return a range of days; the year stands once, unless there are two."""
    return f"{humanize.short_date(first, year=first.year != last.year)} to {humanize.short_date(last, year=True)}"


_MAX_ROWS: Final = 8
_MAX_ALL_ROWS: Final = 500
_MIN_CHANGE: Final = 0.005
_HIGH_FAILURE_RATE: Final = 0.05
_LOW_CACHE_SHARE: Final = 0.8


class SummaryFigure(msgspec.Struct, frozen=True):
    """One figure of the strip, and the way to what is behind it."""

    label: str
    value: str
    note: str
    href: str
    hint: str = ""


class UsageRow(msgspec.Struct, frozen=True):
    """A row of a table by something."""

    name: str
    detail: str
    """What else it is called, in a fainter ink."""
    page: str
    """Its own page, if it has one."""
    lines: str
    """What is behind it."""
    figures: UsageFigures
    cost: str
    bar: Markup
    low_cache: bool
    """Whether much of what it read was not in the cache."""


class UsageTable(msgspec.Struct, frozen=True):
    """A table by something."""

    name: str
    title: str
    head: str
    rows: list[UsageRow]
    total: int
    more: str
    """Where all of it is shown."""


class ToolUsageRow(msgspec.Struct, frozen=True):
    """A tool as the page shows it."""

    tool: ToolUsage
    icon: str
    rate: float
    bar: Markup
    calls: str
    failed: str


def format_amount(cost: int, figures: UsageFigures) -> str:
    """Return an amount; `?` where a price is missing, `≈` where a figure is a placeholder.

    >>> format_amount(12_345_678, UsageFigures()), format_amount(0, UsageFigures(unpriced={"x": 1}))
    ('$12.35', '?')
    """
    if not figures.has_cost:
        return "?"
    about = "≈" if figures.estimated else ""
    return f"{about}{money(cost or int(bool(figures.exact)))}{'+?' if figures.unpriced else ''}"


def cache_share(figures: UsageFigures) -> float | None:
    """Return how much of what was read came from the cache."""
    return figures.cache_read / figures.context if figures.context else None


# The strip


def summary_figures(
    params: UsagePageParams,
    report: UsageReport,
    sessions: int,
    saved: int,
    previous_cost: int,
    daily_costs: dict[str, int],
) -> list[SummaryFigure]:
    """Return the six figures. `before` is what the days before cost, `days` what each day did."""
    totals, query = report.totals, params.days.query
    lines = links().usage_lines(**query)
    output_tokens = f"{'≈' if totals.estimated else ''}{humanize.tokens_or_billions(totals.output)}"
    responses = humanize.count(totals.responses, "response")
    return [
        SummaryFigure(
            "Cost", format_amount(report.cost, totals), _comparison_note(params, report.cost, previous_cost), lines
        ),
        SummaryFigure("Sessions", f"{sessions:,}", responses, links().usage_sessions(**query)),
        SummaryFigure("Tokens out", output_tokens, f"{humanize.tokens_or_billions(totals.context)} in", lines),
        _cache_figure(cache_share(totals), lines),
        _savings_figure(saved, lines),
        _forecast_figure(params, daily_costs),
    ]


def _cache_figure(share: float | None, lines: str) -> SummaryFigure:
    value = "none" if share is None else f"{share:.1%}"
    return SummaryFigure("Read from cache", value, "of all tokens in", lines)


def _savings_figure(saved: int, lines: str) -> SummaryFigure:
    return SummaryFigure(
        "Saved by the cache",
        money(saved) if saved >= 0 else f"-{money(-saved)}",
        "after what writing it cost",
        lines,
        "What was read from the cache at the price of fresh input, less what it did cost, "
        "less what writing the cache cost more than fresh input.",
    )


def _forecast_figure(params: UsagePageParams, days: dict[str, int]) -> SummaryFigure:
    today = params.today
    left = monthrange(today.year, today.month)[1] - today.day
    so_far, month = month_forecast(days, today.isoformat(), left)
    return SummaryFigure(
        f"{today:%B}, if it goes on so",
        money(month),
        f"{money(so_far)} so far",
        links().usage_lines(**DateRange(today.replace(day=1)).query),
        "What this month cost so far, and for each day that is left the mean of the last seven days.",
    )


def _comparison_note(params: UsagePageParams, cost: int, previous_cost: int) -> str:
    number, name = RANGES[params.range]
    if not number:
        return "in all the time there is"
    if not previous_cost:
        return f"nothing in the {name.lower()} before"
    change = (cost - previous_cost) / previous_cost
    if abs(change) < _MIN_CHANGE:
        return "as much as before"
    if change > 1:
        return f"{cost / previous_cost:.1f} times as much as before"
    return f"{abs(change):.0%} {'more' if change > 0 else 'less'} than before"


# Tables


def usage_tables(
    params: UsagePageParams, reports: dict[str, UsageReport], parts: UsageBreakdown
) -> dict[str, UsageTable]:
    """Return the tables by model, project, branch and kind of sub-agent."""
    return {
        "models": _usage_table(params, "models", "By model", "Model", reports["model"]),
        "projects": _usage_table(params, "projects", "By project", "Project", reports["project"]),
        "branches": _usage_table(params, "branches", "By branch", "Branch", parts.branches),
        "kinds": _usage_table(params, "kinds", "By kind of sub-agent", "Asked by", parts.kinds),
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
    return humanize.model_name(model) or "no name", "", "", _filter_query("model", model)


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
        return "the session itself", "", "", {"agent": "self"}
    return kind or "a kind that is not known", "", "", {"agent": f"kind:{kind}"}


def _filter_query(name: str, value: str) -> dict[str, str]:
    """Return how an address chooses a value; it says nothing of what is empty, so that is named."""
    return {name: value} if value else {"without": name}


_NAME_FUNCTIONS: Final = {
    "models": _model_name,
    "projects": _project_name,
    "branches": _branch_name,
    "kinds": _kind_name,
}


# Tools


def tool_rows(params: UsagePageParams, tools: list[ToolUsage]) -> tuple[list[ToolUsageRow], str]:
    """Return the tools as the page shows them, and where all of them are."""
    max_rows = _MAX_ALL_ROWS if params.open == "tools" else _MAX_ROWS + 2
    highest_rate = max((tool.failed / tool.calls for tool in tools[:max_rows]), default=0)
    rows: list[ToolUsageRow] = []
    for tool in tools[:max_rows]:
        rate = tool.failed / tool.calls
        # A scale of its own would make much of nothing where hardly anything fails.
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


# What the figures do not say themselves


def usage_notes(report: UsageReport, undated: int) -> Iterator[tuple[str, str]]:
    """Yield a mark and a sentence for each thing that the figures leave out or guess."""
    totals = report.totals
    if totals.estimated:
        response_count = humanize.count(totals.estimated, "response")
        note = f"{response_count} of clients 2.1.0 to 2.1.52: their output is a placeholder, "
        yield "≈", note + "the truth is higher."
    for model, number in sorted(totals.unpriced.items()):
        name = model or "a model without a name"
        message = f"No price is known for {name} ({number:,} tokens), so its cost is in no sum here."
        yield "?", f"{message} A price file can name one."
    if totals.slow_price:
        response_count = humanize.count(totals.slow_price, "fast response")
        yield "", f"{response_count} at the normal price: no other is known, the truth is higher."
    if undated:
        response_count = humanize.count(undated, "response")
        yield "", f"{response_count} without a time: in the sums of all the time, and on no day."
