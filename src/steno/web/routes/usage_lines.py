"""Detail pages of a usage figure: responses with their records, calls of a tool, sessions."""

import re
import time
from datetime import date
from typing import Any, Final

import msgspec
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from steno.errors import BadRequest
from steno.index.database import SessionIndex, database_stamp
from steno.report import humanize
from steno.report.humanize import money
from steno.report.usage.usage_explanation import (
    ExplainedLine,
    ResponseFilter,
    TranscriptOrigin,
    find_responses,
    total_of_responses,
    transcript_origins,
)
from steno.report.usage.usage_explanation import ExplainedResponse as Answered
from steno.report.usage.usage_overview import ToolCallRow, add_session_titles, tool_calls, usage_breakdown
from steno.report.usage.usage_query import BLOCK_MILLIS
from steno.report.usage.usage_report import ReportRow
from steno.web.state.app_state import AppState
from steno.web.templating import links, render_page
from steno.web.urls import path_for_tag
from steno.web.views.usage_figures import DateRange, cache_share, format_amount, format_days, parse_day

_RESPONSES_PER_PAGE: Final = 25
_CALLS_PER_PAGE: Final = 50
_SESSIONS_PER_PAGE: Final = 50
_BLOCK_PATTERN: Final = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})T([01][0-9]|2[0-3]):([0-5][0-9])")
_NUMBER_PATTERN: Final = re.compile(r"[0-9]{1,15}")
_FILTER_NAMES: Final = (
    *("from", "to", "undated", "block", "model", "project", "session", "branch", "agent"),
    *("without", "tool", "failed", "least", "most"),
)
_MAX_PAGE: Final = 100_000


class _FilterChip(msgspec.Struct, frozen=True):
    """A filter, and the URL without it."""

    text: str
    remove_url: str


class _LineView(msgspec.Struct, frozen=True):
    """A record of a response, with its URL."""

    line: ExplainedLine
    location: TranscriptOrigin | None
    session_url: str
    record_url: str


class _ResponseView(msgspec.Struct, frozen=True):
    """A response with its records."""

    answer: Answered
    when: str
    cost: str
    page: str
    title: str
    lines: list[_LineView]


class _Pagination(msgspec.Struct, frozen=True):
    """The position in a paged list."""

    start: int
    end: int
    total: int
    newer: str
    older: str


def responses_page(app_state: AppState, request: Request) -> Response:
    """Return a page of the responses of a figure, with the records of each."""
    query = request.query_params
    page_number = _page_number(query)
    with app_state.index() as index:
        response_filter, chips = _response_filter(index, query)
        index.connection.execute("BEGIN")
        report = total_of_responses(index.connection, response_filter, app_state.prices)
        start = page_number * _RESPONSES_PER_PAGE
        responses, files = find_responses(
            index.connection, response_filter, app_state.prices, limit=_RESPONSES_PER_PAGE, offset=start
        )
        locations = transcript_origins(index.connection, files.values())
    location_by_path = {path: locations.get(file) for path, file in files.items()}
    total = report.totals.responses
    text = render_page(
        app_state,
        "usage-lines.html.j2",
        here="usage",
        what=_filter_title(chips),
        chips=chips,
        report=report,
        cost=format_amount(report.cost, report.totals),
        cached=cache_share(report.totals),
        shown=[_response_view(response, location_by_path) for response in responses],
        leaf=_pagination("usage_lines", query, page_number, _RESPONSES_PER_PAGE, total),
    )
    return HTMLResponse(text)


def calls_page(app_state: AppState, request: Request) -> Response:
    """Return the calls of a tool, newest first."""
    query = request.query_params
    page_number = _page_number(query)
    name = query.get("tool", "")
    if not name and query.get("without") != "tool":
        raise BadRequest("missing parameter `tool`", hint="Choose a tool on the usage page.")
    failed = query.get("failed") == "1"
    days, chips = _days_filter(query, "usage_calls")
    if failed:
        chips.append(_FilterChip("failed", links().usage_calls(**_filter_query(query, without="failed"))))
    with app_state.index() as index:
        page_calls, total = tool_calls(
            index.connection,
            days.usage_query(),
            name,
            failed=failed,
            limit=_CALLS_PER_PAGE,
            offset=page_number * _CALLS_PER_PAGE,
        )
        locations = transcript_origins(index.connection, (tool_call.file for tool_call in page_calls))
    text = render_page(
        app_state,
        "usage-calls.html.j2",
        here="usage",
        tool=name or "unnamed tool",
        chips=chips,
        total=total,
        failed=failed,
        about=any(each.path for each in page_calls),
        shown=[_call_values(each, locations.get(each.file)) for each in page_calls],
        only_failed=links().usage_calls(**{**_filter_query(query), "failed": "1"}),
        leaf=_pagination("usage_calls", query, page_number, _CALLS_PER_PAGE, total),
    )
    return HTMLResponse(text)


def sessions_by_cost_page(app_state: AppState, request: Request) -> Response:
    """Return sessions by cost, highest first."""
    query = request.query_params
    page_number = _page_number(query)
    days, chips = _days_filter(query, "usage_sessions")
    min_cost, max_cost = _cost_parameter(query, "least"), _cost_parameter(query, "most")
    if min_cost is not None or max_cost is not None:
        upper_label = f" to under {money(max_cost)}" if max_cost is not None else " or more"
        remove_url = links().usage_sessions(**{**_filter_query(query), "least": "", "most": ""})
        chips.append(_FilterChip(f"{money(min_cost or 0)}{upper_label}", remove_url))
    index_stamp = database_stamp(app_state.home.folder)
    with app_state.index() as index:
        parts = app_state.index_cache.get(
            index_stamp,
            ("parts", days),
            lambda: usage_breakdown(index.connection, days.usage_query(), app_state.prices),
        )
        matching = [
            line
            for line in parts.sessions.lines
            if (min_cost is None or line.cost >= min_cost) and (max_cost is None or line.cost < max_cost)
        ]
        start = page_number * _SESSIONS_PER_PAGE
        titled_lines = add_session_titles(index.connection, matching[start : start + _SESSIONS_PER_PAGE])
    text = render_page(
        app_state,
        "usage-sessions.html.j2",
        here="usage",
        chips=chips,
        total=len(matching),
        cost=money(sum(line.cost for line in matching)),
        shown=[_session_values(line, days) for line in titled_lines],
        leaf=_pagination("usage_sessions", query, page_number, _SESSIONS_PER_PAGE, len(matching)),
    )
    return HTMLResponse(text)


# Parameters


def _filter_query(query_params: QueryParams, **changes: str) -> dict[str, str]:
    """Return the URL parameters; `without` removes one."""
    removed = changes.get("without")
    return {name: query_params[name] for name in _FILTER_NAMES if query_params.get(name) and name != removed}


def _page_number(query_params: QueryParams) -> int:
    text = query_params.get("page", "1")
    if _NUMBER_PATTERN.fullmatch(text) is None or not 1 <= int(text) <= _MAX_PAGE:
        raise BadRequest(f"invalid page number {text!r}")
    return int(text) - 1


def _cost_parameter(query_params: QueryParams, name: str) -> int | None:
    text = query_params.get(name, "")
    if not text:
        return None
    if _NUMBER_PATTERN.fullmatch(text) is None:
        raise BadRequest(f"invalid amount {text!r}")
    return int(text)


def _days_filter(query_params: QueryParams, link_name: str) -> tuple[DateRange, list[_FilterChip]]:
    days = DateRange(parse_day(query_params.get("from", "")), parse_day(query_params.get("to", "")))
    if days.first is None and days.last is None:
        return days, []
    remove_url = getattr(links(), link_name)(**{**_filter_query(query_params), "from": "", "to": ""})
    return days, [_FilterChip(_format_days(days), remove_url)]


def _format_days(days: DateRange) -> str:
    first, last = days.first, days.last
    if first == last and first is not None:
        return f"{first:%A} {humanize.short_date(first, year=True)}"
    if first is None:
        return f"up to {humanize.short_date(last or date.max, year=True)}"
    return format_days(first, last) if last else f"since {humanize.short_date(first, year=True)}"


def _response_filter(index: SessionIndex, query_params: QueryParams) -> tuple[ResponseFilter, list[_FilterChip]]:
    days, chips = _days_filter(query_params, "usage_lines")
    since, until = days.since, days.until
    if query_params.get("block"):
        since = _block_start(query_params["block"])
        until = since + BLOCK_MILLIS
        clock = humanize.time_of_day(until / 1000)
        day = date(*time.localtime(since / 1000)[:3])
        start_label = f"{day:%A} {humanize.short_date(day, year=True)} {humanize.time_of_day(since / 1000)}"
        chips.append(_FilterChip(f"{start_label} to {clock}", _remove_url(query_params, "block")))
    undated = query_params.get("undated") == "1"
    if undated:
        chips.append(_FilterChip("no time", _remove_url(query_params, "undated")))
    columns: dict[str, str | None] = {"model": query_params.get("model"), "branch": query_params.get("branch")}
    for name in query_params.get("without", "").split(","):
        if name in columns:
            columns[name] = ""
    session = query_params.get("session") or None
    project = _project_path(index, query_params)
    for name, text in _filter_labels(index, query_params, columns, project, session):
        chips.append(_FilterChip(text, _remove_url(query_params, name)))
    behind = ResponseFilter(
        since,
        until,
        undated,
        columns["model"],
        project,
        session,
        columns["branch"],
        _subagent_kind(query_params.get("agent", "")),
    )
    return behind, chips


def _filter_labels(
    index: SessionIndex,
    query_params: QueryParams,
    columns: dict[str, str | None],
    project: str | None,
    session: str | None,
) -> list[tuple[str, str]]:
    """Return the label of each filter of the responses, with its URL parameter."""
    labels: list[tuple[str, str]] = []
    for name, value in columns.items():
        if value is not None:
            shown = humanize.model_name(value) if name == "model" else value
            labels.append((name if value else "without", shown or f"no {name}"))
    if project is not None:
        labels.append(("project", humanize.project_name(project) or "no project"))
    if session is not None:
        row = index.connection.execute(
            "SELECT title FROM sessions WHERE id = ? AND agent = '' ORDER BY file DESC", (session,)
        ).fetchone()
        labels.append(("session", (row[0] if row else "") or session))
    kind = _subagent_kind(query_params.get("agent", ""))
    if kind is not None:
        subagent_label = kind[1] or "sub-agents of unknown type"
        labels.append(("agent", subagent_label if kind[0] else "main sessions"))
    return labels


def _remove_url(query_params: QueryParams, name: str) -> str:
    return links().usage_lines(**_filter_query(query_params, without=name))


def _subagent_kind(text: str) -> tuple[str, str] | None:
    if not text:
        return None
    return ("agent", text.removeprefix("kind:")) if text.startswith("kind:") else ("", "")


def _project_path(index: SessionIndex, query_params: QueryParams) -> str | None:
    if not query_params.get("project"):
        return None
    paths = index.connection.execute("SELECT DISTINCT project FROM sessions")
    return path_for_tag(query_params["project"], (path for (path,) in paths))


def _block_start(text: str) -> int:
    match = _BLOCK_PATTERN.fullmatch(text)
    if match is None:
        raise BadRequest(f"invalid time {text!r}", hint="Use the start of a block in milliseconds.")
    day = parse_day(match[1])
    return (DateRange(day).since or 0) + (int(match[2]) * 60 + int(match[3])) * 60_000


def _filter_title(chips: list[_FilterChip]) -> str:
    return ", ".join(chip.text for chip in chips) or "All responses"


def _pagination(link_name: str, query_params: QueryParams, page_number: int, size: int, total: int) -> _Pagination:
    page_url = getattr(links(), link_name)
    query = _filter_query(query_params)
    start = page_number * size
    return _Pagination(
        start + 1,
        min(start + size, total),
        total,
        page_url(**query, page="" if page_number == 1 else page_number) if page_number else "",
        page_url(**query, page=page_number + 2) if start + size < total else "",
    )


# Content


def _response_view(response: Answered, locations: dict[str, TranscriptOrigin | None]) -> _ResponseView:
    line_views = [_line_view(line, locations.get(line.path)) for line in response.lines]
    first = line_views[0]
    return _ResponseView(
        response,
        _format_moment(response.time),
        "no price known" if response.cost is None else humanize.dollars(response.cost, 4),
        first.session_url,
        first.location.title if first.location is not None else "",
        line_views,
    )


def _line_view(line: ExplainedLine, location: TranscriptOrigin | None) -> _LineView:
    if location is None:
        return _LineView(line, None, "", "")
    return _LineView(line, location, _location_url(location, line.offset), _record_url(location, line.offset))


def _location_url(location: TranscriptOrigin, offset: int) -> str:
    return links().thread(location.key, location.agent, at=offset)


def _record_url(location: TranscriptOrigin, offset: int) -> str:
    return links().record(location.key, offset, location.agent)


def _format_moment(moment: int | None) -> str:
    if moment is None:
        return "unknown time"
    local = time.localtime(moment / 1000)
    return f"{humanize.short_date(date(*local[:3]), year=True)} {time.strftime('%H:%M:%S', local)}"


def _call_values(tool_call: ToolCallRow, location: TranscriptOrigin | None) -> dict[str, Any]:
    return {
        "call": tool_call,
        "when": _format_moment(tool_call.time),
        "spot": location,
        "page": _location_url(location, tool_call.offset) if location is not None else "",
        "raw": _record_url(location, tool_call.offset) if location is not None else "",
    }


def _session_values(line: ReportRow, days: DateRange) -> dict[str, Any]:
    session = line.names[0]
    return {
        "line": line,
        "page": links().session(session),
        "lines": links().usage_lines(**days.query, session=session),
        "cost": format_amount(line.cost, line.figures),
        "share": cache_share(line.figures),
    }
