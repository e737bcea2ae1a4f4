"""Usage page: tokens and cost by day, model, project, branch, tool; CSV download."""

import sqlite3
from datetime import date, timedelta
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from steno.index.database import SessionIndex, database_stamp
from steno.report.pricing import PriceTable
from steno.report.usage.usage_overview import (
    UsageBreakdown,
    add_session_titles,
    cache_savings,
    cost_chart,
    daily_usage,
    five_hour_blocks,
    interval_report,
    reports_by_grouping,
    usage_breakdown,
    usage_in_range,
)
from steno.report.usage.usage_query import Buckets
from steno.report.usage.usage_report import ReportRow, UsageReport, build_report
from steno.sanitize.csv import csv_row
from steno.web.state.app_state import AppState
from steno.web.templating import links, render_page
from steno.web.views.usage_charts import (
    blocks_chart,
    cache_chart,
    cost_bins,
    cost_histogram,
    period_range,
    stacked_chart,
    year_chart,
)
from steno.web.views.usage_figures import (
    RANGES,
    DateRange,
    UsagePageParams,
    cache_share,
    format_amount,
    format_days,
    summary_figures,
    tool_rows,
    usage_notes,
    usage_page_params,
    usage_tables,
)

_MAX_TOP_SESSIONS: Final = 10
_DAYS_PER_WEEK: Final = 7
_SPLITS: Final = ("model", "project")
_NO_COST: Final = 0


class _TopSession(msgspec.Struct, frozen=True):
    """A session in the list of sessions by cost."""

    line: ReportRow
    page: str
    lines: str
    cost: str
    share: float | None


class _PeriodRow(msgspec.Struct, frozen=True):
    """A day, week or month in the table."""

    name: str
    line: ReportRow
    cost: str
    share: float | None
    href: str


def usage_page(app_state: AppState, request: Request) -> Response:
    """Return the usage page."""
    params = usage_page_params(request.query_params, app_state.now())
    # Read the stamp first: changes during the request belong to the next state.
    index_stamp = database_stamp(app_state.home.folder)
    with app_state.index() as index:
        # Read all figures of a page from the same state of the index.
        index.connection.execute("BEGIN")
        values = app_state.index_cache.get(
            index_stamp, ("usage", params), lambda: _values(app_state, index, params, index_stamp)
        )
        week = DateRange(params.last - timedelta(days=_DAYS_PER_WEEK - 1), params.days.last)
        block_reports = app_state.index_cache.get(
            index_stamp,
            ("blocks", week),
            lambda: five_hour_blocks(index.connection, week.usage_query("block5h"), app_state.prices),
        )
    text = render_page(
        app_state,
        "usage.html.j2",
        here="usage",
        params=params,
        ranges=[(name, label, params.url(range=name, to="")) for name, (_, label) in RANGES.items()],
        splits=[(name, params.url(by=name)) for name in _SPLITS],
        blocks=blocks_chart(block_reports, params, app_state.now()),
        **values,
    )
    return HTMLResponse(text)


def _values(
    app_state: AppState, index: SessionIndex, params: UsagePageParams, index_stamp: tuple[int, ...]
) -> dict[str, Any]:
    """Return the template values, which change only with the index and the current day."""
    connection, prices = index.connection, app_state.prices
    everything = app_state.index_cache.get(index_stamp, "daily", lambda: daily_usage(connection, prices))
    days = app_state.index_cache.get(
        index_stamp, "days", lambda: _lines_by_day(interval_report(everything, prices, "day"))
    )
    parts = app_state.index_cache.get(
        index_stamp, ("parts", params.days), lambda: usage_breakdown(connection, params.days.usage_query(), prices)
    )
    cells = usage_in_range(everything, params.days.usage_query())
    reports = reports_by_grouping(cells, prices)
    return {
        **_total_values(params, reports["day"]),
        **_chart_values(params, cells, reports["day"], days, prices),
        **_session_values(params, parts, connection),
        "strip": summary_figures(
            params,
            reports["day"],
            len(parts.sessions.lines),
            cache_savings(cells, prices),
            _previous_cost(params, everything, prices),
            {day: line.cost for day, line in days.items()},
        ),
        "tables": usage_tables(params, reports, parts),
    }


def _previous_cost(params: UsagePageParams, everything: Buckets, prices: PriceTable) -> int:
    """Return the cost of the preceding range."""
    if params.previous_range is None:
        return 0
    return build_report(usage_in_range(everything, params.previous_range.usage_query()), "day", prices).cost


def _total_values(params: UsagePageParams, report: UsageReport) -> dict[str, Any]:
    undated = sum(line.figures.responses for line in report.lines if not line.names[0])
    return {
        "report": report,
        "cached": cache_share(report.totals),
        "notes": list(usage_notes(report, undated)),
        "undated": links().usage_lines(undated="1") if undated else "",
        "csv": links().usage_csv(range=params.range, to=params.days.query["to"]),
    }


def _chart_values(
    params: UsagePageParams, cells: Buckets, report: UsageReport, days: dict[str, ReportRow], prices: PriceTable
) -> dict[str, Any]:
    """Return the values of the charts over time."""
    first, last = _first_day(params, report), params.last
    step = params.bar_unit(first)
    day_names = [(first + timedelta(days=k)).isoformat() for k in range((last - first).days + 1)]
    stack = cost_chart(cells, prices, params.split, day_names, step)
    periods = interval_report(cells, prices, step)
    chart, series = stacked_chart(stack, params.split, first, last)
    return {
        "first": first,
        "span": format_days(first, params.last),
        "year": year_chart(days, last),
        "stack": stack,
        "stacked": chart,
        "series": series,
        "cache": cache_chart(periods, stack, first, last, cache_share(report.totals)),
        "periods": _period_rows(periods, stack.step, first, last),
    }


def _session_values(params: UsagePageParams, parts: UsageBreakdown, connection: sqlite3.Connection) -> dict[str, Any]:
    """Return the values of the tables and charts of sessions and tools."""
    lines = parts.sessions.lines
    costs = [line.cost for line in lines]
    bins = cost_bins(costs, params.days.query)
    tools, more_tools = tool_rows(params, parts.tools)
    return {
        "bins": bins,
        "spread": cost_histogram(bins),
        "middle": _median(costs),
        "top": [_top_session(params, line) for line in add_session_titles(connection, lines[:_MAX_TOP_SESSIONS])],
        "sessions": len(lines),
        "tools": tools,
        "all_tools": len(parts.tools),
        "more_tools": more_tools,
    }


def _lines_by_day(report: UsageReport) -> dict[str, ReportRow]:
    return {line.names[0]: line for line in report.lines if line.names[0]}


def _first_day(params: UsagePageParams, report: UsageReport) -> date:
    """Return the first day of the charts."""
    if params.days.first is not None:
        return params.days.first
    names = [line.names[0] for line in report.lines if line.names[0]]
    return min(date.fromisoformat(names[0]), params.last) if names else params.last


def _period_rows(report: UsageReport, step: Any, first: date, last: date) -> list[_PeriodRow]:
    rows: list[_PeriodRow] = []
    for line in reversed(report.lines):
        name = line.names[0]
        href = (
            links().usage_lines(**period_range(name, step, first, last).query)
            if name
            else links().usage_lines(undated="1")
        )
        rows.append(
            _PeriodRow(name or "no day", line, format_amount(line.cost, line.figures), cache_share(line.figures), href)
        )
    return rows


def _median(costs: list[int]) -> int:
    """Return the median of some costs."""
    ranked = sorted(costs)
    return ranked[len(ranked) // 2] if ranked else _NO_COST


def _top_session(params: UsagePageParams, line: ReportRow) -> _TopSession:
    session = line.names[0]
    return _TopSession(
        line,
        links().session(session),
        links().usage_lines(**params.days.query, session=session),
        format_amount(line.cost, line.figures),
        cache_share(line.figures),
    )


def usage_csv(app_state: AppState, request: Request) -> Response:
    """Return the usage per day as CSV."""
    params = usage_page_params(request.query_params, app_state.now())
    with app_state.index() as index:
        cells = usage_in_range(daily_usage(index.connection, app_state.prices), params.days.usage_query())
        report = reports_by_grouping(cells, app_state.prices)["day"]
    columns = [
        *("day", "responses", "input_tokens", "output_tokens", "cache_creation_input_tokens"),
        *("cache_read_input_tokens", "cost_usd", "estimated_responses", "unpriced_tokens"),
    ]
    lines = [csv_row(columns)]
    for line in report.lines:
        totals = line.figures
        figures = (totals.responses, totals.input, totals.output, totals.cache_write, totals.cache_read)
        cost = f"{line.cost / 1e6:.6f}" if totals.has_cost else ""
        lines.append(csv_row([line.names[0], *figures, cost, totals.estimated, sum(totals.unpriced.values())]))
    return Response(
        "".join(lines), media_type="text/csv", headers={"content-disposition": 'attachment; filename="usage.csv"'}
    )
