"""Compare page: comparison of two sessions, or session choice."""

from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from steno.errors import NotFound
from steno.index.database import SessionIndex
from steno.report import humanize
from steno.report.clock import seconds_from_ms
from steno.report.compare import SessionSide, compare
from steno.report.compare.comparison import (
    RELATION_TEXTS,
    comparison_rows,
    divergence_text,
    facts_from_index,
    prompts_of_both,
)
from steno.report.compare.comparison_candidates import comparison_candidates, search_sessions, session_row_of
from steno.report.session_list import SessionRow
from steno.web.state.app_state import AppState
from steno.web.state.caches import SessionRef
from steno.web.templating import links, render_page
from steno.web.urls import path_tag
from steno.web.views.comparison import cached_side, compare_paths, session_choices

_FOLDED_ROWS: Final = 40
"""Maximum files, commands and tools listed before the rest is folded."""
_MAX_ROWS: Final = 2_000
_MAX_QUERY: Final = 200


class _ColumnHeader(msgspec.Struct, frozen=True):
    """The header of a session's column."""

    letter: str
    key: str
    title: str
    project: str
    tag: str
    branch: str
    when: str
    href: str
    replace_url: str
    """URL to choose another session for this column."""


def comparison_page(app_state: AppState, request: Request) -> Response:
    """Return the comparison of `a` and `b`, or the session choice if one is missing."""
    query = request.query_params
    keys = [query.get("a", ""), query.get("b", "")]
    with app_state.index() as index:
        session_refs = [app_state.session_ref(index, key) if key else None for key in keys]
        if session_refs[0] is not None and session_refs[1] is not None and session_refs[0] != session_refs[1]:
            return _comparison(app_state, index, (session_refs[0], session_refs[1]), show_all=bool(query.get("all")))
        chosen = session_refs[0] or session_refs[1]
        same = session_refs[0] is not None and session_refs[0] == session_refs[1]
        return _session_choice(app_state, index, chosen, query.get("q", "")[:_MAX_QUERY].strip(), same=same)


# Two sessions


def _comparison(
    app_state: AppState, index: SessionIndex, session_refs: tuple[SessionRef, SessionRef], *, show_all: bool
) -> Response:
    sides: list[SessionSide] = []
    heads: list[_ColumnHeader] = []
    for letter, session_ref, other_place in zip("ab", session_refs, reversed(session_refs), strict=True):
        listed = _indexed_session(index, session_ref)
        metadata = facts_from_index(index.connection, listed, app_state.prices)
        with app_state.open_session(session_ref) as session:
            sides.append(cached_side(session, metadata))
        heads.append(_column_header(letter, session_ref, listed, app_state.now(), other_place))
    comparison = compare(*sides)
    keys = (session_refs[0].key, session_refs[1].key)
    max_rows = _MAX_ROWS if show_all else _FOLDED_ROWS
    values: dict[str, Any] = {
        "here": "compare",
        "found": comparison,
        "heads": heads,
        "alike": RELATION_TEXTS[comparison.relation],
        "rows": comparison_rows(comparison, humanize.spaced_duration),
        "said": divergence_text(comparison),
        "asked": list(prompts_of_both(comparison)),
        "both_files": sum(one is not None and other is not None for _, one, other in comparison.files),
        "path": compare_paths(comparison, keys, links(), show_all=show_all),
        "whole": show_all,
        "most": max_rows,
        "all": links().compare(a=keys[0], b=keys[1], all=1),
        "folded": links().compare(a=keys[0], b=keys[1]),
        "swap": links().compare(a=keys[1], b=keys[0], all=1 if show_all else None),
        "keys": keys,
    }
    return HTMLResponse(render_page(app_state, "compare.html.j2", **values))


def _indexed_session(index: SessionIndex, session_ref: SessionRef) -> SessionRow:
    indexed = session_row_of(index.connection, session_ref.id, session_ref.file)
    if indexed is None:
        raise NotFound("session has no prompts", hint="Choose another session to compare.")
    return indexed


def _column_header(
    letter: str, session_ref: SessionRef, listed: SessionRow, now: float, other: SessionRef
) -> _ColumnHeader:
    started = seconds_from_ms(listed.started)
    return _ColumnHeader(
        letter,
        session_ref.key,
        listed.title or "Untitled",
        listed.project,
        path_tag(listed.project),
        listed.branch,
        "" if started is None else humanize.day_and_time(started, now),
        links().session(session_ref.key),
        links().compare(a=other.key),
    )


# Session choice


def _session_choice(
    app_state: AppState, index: SessionIndex, chosen: SessionRef | None, query: str, *, same: bool
) -> Response:
    connection = index.connection
    values: dict[str, Any] = {"here": "compare", "chosen": None, "likely": [], "words": query, "same": same}
    first_session = None
    if chosen is not None:
        first_session = _indexed_session(index, chosen)
        values["chosen"] = _column_header("a", chosen, first_session, app_state.now(), chosen)
        partners = comparison_candidates(connection, first_session)
        values["likely"] = session_choices(app_state, index, ((choice.session, choice.reason) for choice in partners))
    suggested = {each.listed.file for each in values["likely"]} if not query else set[int]()
    others = [
        (each, "")
        for each in search_sessions(connection, query)
        if (first_session is None or each.file != first_session.file) and each.file not in suggested
    ]
    values["others"] = session_choices(app_state, index, others)
    return HTMLResponse(render_page(app_state, "compare-pick.html.j2", **values))
