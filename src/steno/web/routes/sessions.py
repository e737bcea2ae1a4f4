"""Session list page, filtered and grouped, with its event stream."""

from collections.abc import AsyncGenerator
from time import perf_counter
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from steno.errors import BadRequest, NotFound
from steno.index.database import SessionIndex
from steno.index.search.query_parser import QueryTooComplex
from steno.report.session_list import SORT_SQL, SessionListPage, list_sessions, live_sessions
from steno.web.routes.search import SESSIONS_PER_PAGE, search_sessions, title_matches
from steno.web.sse import KEEPALIVE, QUIET_SECONDS, RETRY, encode_event, pause_since, stream_response
from steno.web.state.app_state import AppState
from steno.web.templating import links, render_page, render_part
from steno.web.views.session_list import (
    VIEWS,
    SessionListParams,
    build_facets,
    limit_to_files,
    session_list_params,
    session_rows,
    session_sections,
)

_EMPTY_LISTING: Final = SessionListPage([], 0, more=False)

_OK: Final = 200
_BAD_REQUEST: Final = 400
_PAGE: Final = 50
_MAX_LIVE: Final = 5
"""Maximum live sessions shown at the top."""
_MIN_PAUSE: Final = 0.5


def session_list_page(app_state: AppState, request: Request) -> Response:
    """Return the list of sessions or search results.

    With `part=rows`, return only the next rows; with `part=page`, only the list and its filters.
    """
    # Read the stamp first: changes during the request belong to the next state.
    index_stamp = app_state.index_stamp()
    with app_state.index() as index:
        params = session_list_params(index, request, app_state.now(), app_state.health_monitor.damaged_paths)
        values = (
            _search_values(app_state, index, params) if params.search_text else _list_values(app_state, index, params)
        )
        if request.query_params.get("part") == "rows":
            template = "search-hits.html.j2" if params.search_text else "sessions-rows.html.j2"
            return HTMLResponse(render_page(app_state, template, **values), values["status"])
        values["facets"] = build_facets(
            app_state,
            index,
            values["counted"],
            # While a query is typed, every result differs, so it is not cached.
            lambda name, made: made() if params.search_text else app_state.index_cache.get(index_stamp, name, made),
        )
        values["all"] = index.connection.execute(
            "SELECT count(*), count(DISTINCT project) FROM sessions WHERE listed = 1"
        ).fetchone()
    values["views"] = [(view, params.url(view="" if view == "day" else view)) for view in VIEWS]
    values["sorts"] = [(sort, params.url(sort="" if sort == "newest" else sort)) for sort in SORT_SQL]
    only = request.query_params.get("part") == "page"
    template = "sessions-page.html.j2" if only else "sessions.html.j2"
    return HTMLResponse(render_page(app_state, template, **values), values["status"])


def _list_values(app_state: AppState, index: SessionIndex, params: SessionListParams) -> dict[str, Any]:
    """Return the template values of the rows."""
    on_top = params.choice.status is None
    live = live_sessions(index.connection, params.choice, _MAX_LIVE) if on_top else _EMPTY_LISTING
    listing = list_sessions(
        index.connection,
        params.choice,
        limit=_PAGE,
        after=params.cursor,
        excluded_files=[session.file for session in live.rows],
    )
    # Live sessions are shown on the first page only.
    live_rows = [] if params.cursor else live.rows
    dated = params.view != "day"
    rows = list(session_rows(app_state, index, [*live_rows, *listing.rows], dated=dated))
    return {
        "here": "sessions",
        "status": _OK,
        "params": params,
        "counted": params,
        "query": "",
        "listing": listing,
        "live": rows[: len(live_rows)],
        "live_total": live.total,
        "live_href": params.url(status="live"),
        "groups": session_sections(app_state, index, params.choice, rows[len(live_rows) :], params.view),
        "next": _next_page_url(listing, params),
        "source": links().sessions_live(**params.query),
    }


def _search_values(app_state: AppState, index: SessionIndex, params: SessionListParams) -> dict[str, Any]:
    """Return the template values of search results. An invalid query is reported on the page."""
    searched: int = index.connection.execute("SELECT count(*) FROM sessions WHERE agent = ''").fetchone()[0]
    values: dict[str, Any] = {
        "here": "sessions",
        "status": _OK,
        "params": params,
        "query": params.search_text,
        "searched": searched,
        "problem": "",
        "next": "",
        "orders": [
            (name, label, params.url(order="" if name == "newest" else name))
            for name, label in (("newest", "Newest"), ("rank", "Best"), ("oldest", "Oldest"))
        ],
    }
    try:
        (titles, files), results = (title_matches(index, params), search_sessions(app_state, index, params))
    except BadRequest as error:
        failure = {"problem": str(error), "hint": error.hint or "", "results": None, "titles": None}
        if isinstance(error, QueryTooComplex):
            values["status"] = _BAD_REQUEST
        return {**values, **failure, "counted": limit_to_files(params, ())}
    rows = titles.rows if titles is not None else []
    if results.more:
        values["next"] = params.url(**{"session": params.only_session, "from": params.start + SESSIONS_PER_PAGE})
    return {
        **values,
        "results": results,
        "titles": titles,
        "called": list(session_rows(app_state, index, rows, dated=True)),
        "counted": limit_to_files(params, (*results.files, *files)),
    }


def _next_page_url(listing: SessionListPage, params: SessionListParams) -> str:
    if not listing.more:
        return ""
    last = listing.rows[-1]
    return links().sessions(**params.query, after=f"{last.rank}_{last.file}")


# While they are written


async def session_list_stream(app_state: AppState, request: Request) -> Response:
    """Return the event stream of the first page of the list."""
    # Report invalid parameters before the stream starts.
    await run_in_threadpool(_first_page, app_state, request)
    return stream_response(_list_events(app_state, request))


async def _list_events(app_state: AppState, request: Request) -> AsyncGenerator[bytes]:
    last = 0
    async with app_state.pubsub.subscribe() as subscription:
        yield RETRY
        while not subscription.closed:
            started = perf_counter()
            try:
                text, more = await run_in_threadpool(_first_page, app_state, request)
            except NotFound:
                # The selected project was deleted from the index.
                return
            if hash(text) != last:
                last = hash(text)
                yield encode_event("rows", {"html": text, "more": more})
            else:
                yield KEEPALIVE
            await pause_since(started, _MIN_PAUSE)
            # Render regularly even without changes: live sessions may have become idle.
            await subscription.wait(QUIET_SECONDS)


def _first_page(app_state: AppState, request: Request) -> tuple[str, bool]:
    """Return the rows of the first page, and whether the list has further pages."""
    with app_state.index() as index:
        params = session_list_params(index, request, app_state.now(), app_state.health_monitor.damaged_paths)
        values = _list_values(app_state, index, params)
    return render_part("sessions-rows.html.j2", **{**values, "next": ""}), bool(values["next"])
