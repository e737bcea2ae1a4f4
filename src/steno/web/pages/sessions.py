"""All sessions, newest first: filtered, grouped, and with what stands beside each title."""

import asyncio
from collections.abc import AsyncGenerator
from time import perf_counter
from typing import Any, Final

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse

from steno.errors import BadRequest, NotFound
from steno.index.opened import Index
from steno.index.search.language import TooComplex
from steno.report.listing import SORTS, Listing, list_sessions, live_sessions
from steno.web.house import House
from steno.web.listed.asked import VIEWS, Asked, asked_of
from steno.web.listed.facets import among, facets_for
from steno.web.listed.found import SESSIONS, called, look_for
from steno.web.listed.groups import sections_of
from steno.web.listed.rows import rows_of
from steno.web.paint import links, page, part

__all__ = ["live", "sessions"]

_NONE: Final = Listing([], 0, more=False)

_OK: Final = 200
_BAD_REQUEST: Final = 400
_PAGE: Final = 50
_LIVE: Final = 5
"""How many live sessions are shown on top."""
_PATIENCE: Final = 15.0
"""Seconds after which the list is looked at without news: what is live may have come to rest."""
_LEAST: Final = 0.5
_MOST: Final = 10.0
_REST: Final = 4.0
"""How much longer than the work took is waited before the next."""


def sessions(house: House, request: Request) -> Response:
    """Return the list of sessions, or what was found in them.

    With `part=rows` only what comes next in it, with `part=page` only what is not the same on
    every page.
    """
    # Before anything is read: what changes meanwhile belongs to another state.
    stamp = house.stamp()
    with house.index() as index:
        asked = asked_of(index, request, house.now(), house.ward.broken)
        values = _found(house, index, asked) if asked.words else _listed(house, index, asked)
        if request.query_params.get("part") == "rows":
            template = "search-hits.html.j2" if asked.words else "sessions-rows.html.j2"
            return HTMLResponse(page(house, template, **values), values["status"])
        values["facets"] = facets_for(
            house,
            index,
            values["counted"],
            # Whoever types asks something new with each letter.
            lambda name, made: made() if asked.words else house.kept.get(stamp, name, made),
        )
        values["all"] = index.connection.execute(
            "SELECT count(*), count(DISTINCT project) FROM sessions WHERE listed = 1"
        ).fetchone()
    values["views"] = [(view, asked.but(view="" if view == "day" else view)) for view in VIEWS]
    values["sorts"] = [(sort, asked.but(sort="" if sort == "newest" else sort)) for sort in SORTS]
    only = request.query_params.get("part") == "page"
    template = "sessions-page.html.j2" if only else "sessions.html.j2"
    return HTMLResponse(page(house, template, **values), values["status"])


def _listed(house: House, index: Index, asked: Asked) -> dict[str, Any]:
    """Return what the rows are drawn from."""
    on_top = asked.choice.status is None
    live = live_sessions(index.connection, asked.choice, _LIVE) if on_top else _NONE
    listing = list_sessions(
        index.connection,
        asked.choice,
        limit=_PAGE,
        after=asked.after,
        without=[each.file for each in live.rows],
    )
    # Whoever goes on in the list has seen the live ones.
    first = [] if asked.after else live.rows
    dated = asked.view != "day"
    rows = list(rows_of(house, index, [*first, *listing.rows], dated=dated))
    return {
        "here": "sessions",
        "status": _OK,
        "asked": asked,
        "counted": asked,
        "query": "",
        "listing": listing,
        "live": rows[: len(first)],
        "live_total": live.total,
        "live_href": asked.but(status="live"),
        "groups": sections_of(house, index, asked.choice, rows[len(first) :], asked.view),
        "next": _next(listing, asked),
        "source": links().sessions_live(**asked.query),
    }


def _found(house: House, index: Index, asked: Asked) -> dict[str, Any]:
    """Return what the hits are drawn from. What is wrong with the words is told, not thrown."""
    searched: int = index.connection.execute(
        "SELECT count(*) FROM sessions WHERE agent = ''"
    ).fetchone()[0]
    values: dict[str, Any] = {
        "here": "sessions",
        "status": _OK,
        "asked": asked,
        "query": asked.words,
        "searched": searched,
        "problem": "",
        "next": "",
        "orders": [
            (name, label, asked.but(order="" if name == "newest" else name))
            for name, label in (("newest", "Newest"), ("rank", "Best"), ("oldest", "Oldest"))
        ],
    }
    try:
        (titles, files), finds = called(index, asked), look_for(house, index, asked)
    except BadRequest as error:
        nothing = {"problem": str(error), "hint": error.hint or "", "finds": None, "titles": None}
        if isinstance(error, TooComplex):
            values["status"] = _BAD_REQUEST
        return {**values, **nothing, "counted": among(asked, ())}
    rows = titles.rows if titles is not None else []
    if finds.more:
        values["next"] = asked.but(**{"session": asked.only, "from": asked.start + SESSIONS})
    return {
        **values,
        "finds": finds,
        "titles": titles,
        "called": list(rows_of(house, index, rows, dated=True)),
        "counted": among(asked, (*finds.files, *files)),
    }


def _next(listing: Listing, asked: Asked) -> str:
    if not listing.more:
        return ""
    last = listing.rows[-1]
    return links().sessions(**asked.query, after=f"{last.rank}_{last.file}")


# While they are written


async def live(house: House, request: Request) -> Response:
    """Return the stream of what changes on the first page of the list."""
    # What is wrong with the address is told before anything is streamed.
    await run_in_threadpool(_first_page, house, request)
    return StreamingResponse(
        _events(house, request),
        media_type="text/event-stream",
        headers={"x-accel-buffering": "no"},
    )


async def _events(house: House, request: Request) -> AsyncGenerator[bytes]:
    last = 0
    async with house.news.heard() as hearing:
        yield b"retry: 2000\n\n"
        while not hearing.over:
            begun = perf_counter()
            try:
                text, more = await run_in_threadpool(_first_page, house, request)
            except NotFound:
                # The project that was asked for is not there any more.
                return
            if hash(text) != last:
                last = hash(text)
                data = msgspec.json.encode({"html": text, "more": more}).decode()
                yield f"event: rows\ndata: {data}\n\n".encode()
            else:
                yield b": here\n\n"
            took = perf_counter() - begun
            await asyncio.sleep(min(_MOST, max(_LEAST, took * _REST)))
            await hearing.next(_PATIENCE)


def _first_page(house: House, request: Request) -> tuple[str, bool]:
    """Return the rows of the first page, and whether there are others behind it."""
    with house.index() as index:
        asked = asked_of(index, request, house.now(), house.ward.broken)
        values = _listed(house, index, asked)
    return part("sessions-rows.html.j2", **{**values, "next": ""}), bool(values["next"])
