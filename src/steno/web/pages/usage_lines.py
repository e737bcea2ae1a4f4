"""What is behind a figure of usage: responses with their lines, calls of a tool, sessions."""

import re
import time
from datetime import date
from typing import Any, Final

import msgspec
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from steno.errors import BadRequest
from steno.index.database import stamp_of
from steno.index.opened import Index
from steno.report import words
from steno.report.usage.behind import (
    Behind,
    Spot,
    responses_behind,
    spots_of,
    total_behind,
)
from steno.report.usage.explain import LineSeen
from steno.report.usage.explain import Response as Answered
from steno.report.usage.overview import parts_of, told
from steno.report.usage.tools import Called, calls_of
from steno.report.usage.totals import Line
from steno.web.house import House
from steno.web.paint import links, money, page
from steno.web.spend.asked import Days, day_in, said
from steno.web.spend.figures import amount, share_of
from steno.web.tags import tagged

__all__ = ["calls", "lines", "sessions"]

_RESPONSES: Final = 25
_CALLS: Final = 50
_SESSIONS: Final = 50
_FIVE_HOURS: Final = 5 * 3_600_000
_BLOCK: Final = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})T([01][0-9]|2[0-3]):([0-5][0-9])")
_NUMBER: Final = re.compile(r"[0-9]{1,15}")
_KEPT: Final = (
    *("from", "to", "undated", "block", "model", "project", "session", "branch", "agent"),
    *("without", "tool", "failed", "least", "most"),
)
_PAGES: Final = 100_000


class _Chip(msgspec.Struct, frozen=True):
    """Something that narrows what is shown, and the address without it."""

    text: str
    away: str


class _Seen(msgspec.Struct, frozen=True):
    """A line of a response, and the way to it."""

    line: LineSeen
    spot: Spot | None
    page: str
    raw: str


class _Shown(msgspec.Struct, frozen=True):
    """A response with its lines."""

    answer: Answered
    when: str
    cost: str
    page: str
    title: str
    lines: list[_Seen]


class _Leaf(msgspec.Struct, frozen=True):
    """Where one is in a long list."""

    start: int
    end: int
    total: int
    newer: str
    older: str


def lines(house: House, request: Request) -> Response:
    """Return the responses behind a figure, some at a time, and the very lines of each."""
    given = request.query_params
    number = _page(given)
    with house.index() as index:
        behind, chips = _behind(index, given)
        index.connection.execute("BEGIN")
        report = total_behind(index.connection, behind, house.prices)
        start = number * _RESPONSES
        found, files = responses_behind(
            index.connection, behind, house.prices, limit=_RESPONSES, start=start
        )
        spots = spots_of(index.connection, files.values())
    of_path = {path: spots.get(file) for path, file in files.items()}
    total = report.totals.responses
    text = page(
        house,
        "usage-lines.html.j2",
        here="usage",
        what=_title(chips),
        chips=chips,
        report=report,
        cost=amount(report.cost, report.totals),
        cached=share_of(report.totals),
        shown=[_shown(each, of_path) for each in found],
        leaf=_leaf("usage_lines", given, number, _RESPONSES, total),
    )
    return HTMLResponse(text)


def calls(house: House, request: Request) -> Response:
    """Return the calls of a tool, the newest first."""
    given = request.query_params
    number = _page(given)
    name = given.get("tool", "")
    if not name and given.get("without") != "tool":
        raise BadRequest("which tool?", hint="the page on usage lists them")
    failed = given.get("failed") == "1"
    days, chips = _days(given, "usage_calls")
    if failed:
        chips.append(_Chip("failed", links().usage_calls(**_query(given, without="failed"))))
    with house.index() as index:
        found, total = calls_of(
            index.connection,
            days.wanted(),
            name,
            failed=failed,
            limit=_CALLS,
            start=number * _CALLS,
        )
        spots = spots_of(index.connection, (each.file for each in found))
    text = page(
        house,
        "usage-calls.html.j2",
        here="usage",
        tool=name or "a tool without a name",
        chips=chips,
        total=total,
        failed=failed,
        about=any(each.path for each in found),
        shown=[_call(each, spots.get(each.file)) for each in found],
        only_failed=links().usage_calls(**{**_query(given), "failed": "1"}),
        leaf=_leaf("usage_calls", given, number, _CALLS, total),
    )
    return HTMLResponse(text)


def sessions(house: House, request: Request) -> Response:
    """Return sessions by what they cost in some days, the dearest first."""
    given = request.query_params
    number = _page(given)
    days, chips = _days(given, "usage_sessions")
    least, most = _whole(given, "least"), _whole(given, "most")
    if least is not None or most is not None:
        less = f" to less than {money(most)}" if most is not None else " and more"
        away = links().usage_sessions(**{**_query(given), "least": "", "most": ""})
        chips.append(_Chip(f"{money(least or 0)}{less}", away))
    stamp = stamp_of(house.home.folder)
    with house.index() as index:
        parts = house.kept.get(
            stamp,
            ("parts", days),
            lambda: parts_of(index.connection, days.wanted(), house.prices),
        )
        fitting = [
            line
            for line in parts.sessions.lines
            if (least is None or line.cost >= least) and (most is None or line.cost < most)
        ]
        start = number * _SESSIONS
        some = told(index.connection, fitting[start : start + _SESSIONS])
    text = page(
        house,
        "usage-sessions.html.j2",
        here="usage",
        chips=chips,
        total=len(fitting),
        cost=money(sum(line.cost for line in fitting)),
        shown=[_session(line, days) for line in some],
        leaf=_leaf("usage_sessions", given, number, _SESSIONS, len(fitting)),
    )
    return HTMLResponse(text)


# What is asked for


def _query(given: QueryParams, **changes: str) -> dict[str, str]:
    """Return the address again; `without` takes one of its parts away."""
    away = changes.get("without")
    return {name: given[name] for name in _KEPT if given.get(name) and name != away}


def _page(given: QueryParams) -> int:
    text = given.get("page", "1")
    if _NUMBER.fullmatch(text) is None or not 1 <= int(text) <= _PAGES:
        raise BadRequest(f"not a page of a list: {text!r}")
    return int(text) - 1


def _whole(given: QueryParams, name: str) -> int | None:
    text = given.get(name, "")
    if not text:
        return None
    if _NUMBER.fullmatch(text) is None:
        raise BadRequest(f"not an amount: {text!r}")
    return int(text)


def _days(given: QueryParams, where: str) -> tuple[Days, list[_Chip]]:
    days = Days(day_in(given.get("from", "")), day_in(given.get("to", "")))
    if days.first is None and days.last is None:
        return days, []
    away = getattr(links(), where)(**{**_query(given), "from": "", "to": ""})
    return days, [_Chip(_said(days), away)]


def _said(days: Days) -> str:
    first, last = days.first, days.last
    if first == last and first is not None:
        return f"{first:%A} {said(first, year=True)}"
    if first is None:
        return f"up to {said(last or date.max, year=True)}"
    if last is None:
        return f"since {said(first, year=True)}"
    return f"{said(first, year=first.year != last.year)} to {said(last, year=True)}"


def _behind(index: Index, given: QueryParams) -> tuple[Behind, list[_Chip]]:
    days, chips = _days(given, "usage_lines")
    since, until = days.since, days.until
    if given.get("block"):
        since = _block(given["block"])
        until = since + _FIVE_HOURS
        clock = words.clock(until / 1000)
        day = date(*time.localtime(since / 1000)[:3])
        begun = f"{day:%A} {said(day, year=True)} {words.clock(since / 1000)}"
        chips.append(_Chip(f"{begun} to {clock}", _away(given, "block")))
    undated = given.get("undated") == "1"
    if undated:
        chips.append(_Chip("without a time", _away(given, "undated")))
    chosen: dict[str, str | None] = {"model": given.get("model"), "branch": given.get("branch")}
    for name in given.get("without", "").split(","):
        if name in chosen:
            chosen[name] = ""
    session = given.get("session") or None
    project = _project(index, given)
    for name, text in _words(index, given, chosen, project, session):
        chips.append(_Chip(text, _away(given, name)))
    behind = Behind(
        since,
        until,
        undated,
        chosen["model"],
        project,
        session,
        chosen["branch"],
        _kind(given.get("agent", "")),
    )
    return behind, chips


def _words(
    index: Index,
    given: QueryParams,
    chosen: dict[str, str | None],
    project: str | None,
    session: str | None,
) -> list[tuple[str, str]]:
    """Return what narrows the responses, in words, and by which part of the address."""
    said_: list[tuple[str, str]] = []
    for name, value in chosen.items():
        if value is not None:
            shown = words.model_name(value) if name == "model" else value
            said_.append((name if value else "without", shown or f"no {name}"))
    if project is not None:
        said_.append(("project", words.project_name(project) or "no project"))
    if session is not None:
        row = index.connection.execute(
            "SELECT title FROM sessions WHERE id = ? AND agent = '' ORDER BY file DESC", (session,)
        ).fetchone()
        said_.append(("session", (row[0] if row else "") or session))
    kind = _kind(given.get("agent", ""))
    if kind is not None:
        named = kind[1] or "sub-agents of a kind that is not known"
        said_.append(("agent", named if kind[0] else "the sessions themselves"))
    return said_


def _away(given: QueryParams, name: str) -> str:
    return links().usage_lines(**_query(given, without=name))


def _kind(text: str) -> tuple[str, str] | None:
    if not text:
        return None
    return ("agent", text.removeprefix("kind:")) if text.startswith("kind:") else ("", "")


def _project(index: Index, given: QueryParams) -> str | None:
    if not given.get("project"):
        return None
    paths = index.connection.execute("SELECT DISTINCT project FROM sessions")
    return tagged(given["project"], (path for (path,) in paths))


def _block(text: str) -> int:
    found = _BLOCK.fullmatch(text)
    if found is None:
        raise BadRequest(f"not a time: {text!r}", hint="a block is named by when it began")
    day = day_in(found[1])
    return (Days(day).since or 0) + (int(found[2]) * 60 + int(found[3])) * 60_000


def _title(chips: list[_Chip]) -> str:
    return ", ".join(chip.text for chip in chips) or "Everything"


def _leaf(where: str, given: QueryParams, number: int, size: int, total: int) -> _Leaf:
    way = getattr(links(), where)
    query = _query(given)
    start = number * size
    return _Leaf(
        start + 1,
        min(start + size, total),
        total,
        way(**query, page="" if number == 1 else number) if number else "",
        way(**query, page=number + 2) if start + size < total else "",
    )


# What is shown


def _shown(answer: Answered, spots: dict[str, Spot | None]) -> _Shown:
    seen = [_seen(line, spots.get(line.path)) for line in answer.lines]
    first = seen[0]
    return _Shown(
        answer,
        _moment(answer.time),
        "no price known" if answer.cost is None else f"${answer.cost / 1e6:.4f}",
        first.page,
        first.spot.title if first.spot is not None else "",
        seen,
    )


def _seen(line: LineSeen, spot: Spot | None) -> _Seen:
    if spot is None:
        return _Seen(line, None, "", "")
    return _Seen(line, spot, _way(spot, line.offset), _raw(spot, line.offset))


def _way(spot: Spot, offset: int) -> str:
    if spot.agent:
        return links().agent(spot.key, spot.agent, at=offset)
    return links().session(spot.key, at=offset)


def _raw(spot: Spot, offset: int) -> str:
    return links().record(spot.key, offset, spot.agent)


def _moment(moment: int | None) -> str:
    if moment is None:
        return "time unknown"
    local = time.localtime(moment / 1000)
    return f"{said(date(*local[:3]), year=True)} {time.strftime('%H:%M:%S', local)}"


def _call(each: Called, spot: Spot | None) -> dict[str, Any]:
    return {
        "call": each,
        "when": _moment(each.time),
        "spot": spot,
        "page": _way(spot, each.offset) if spot is not None else "",
        "raw": _raw(spot, each.offset) if spot is not None else "",
    }


def _session(line: Line, days: Days) -> dict[str, Any]:
    session = line.names[0]
    return {
        "line": line,
        "page": links().session(session),
        "lines": links().usage_lines(**days.query, session=session),
        "cost": amount(line.cost, line.figures),
        "share": share_of(line.figures),
    }
