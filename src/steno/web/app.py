"""The table of routes, and what an error looks like.

A page is a plain function `(house, request) -> Response`; it runs in a thread of its own, because
it reads files. Streams are coroutines.
"""

import inspect
import sqlite3
import sys
from collections.abc import Awaitable, Callable, Container
from importlib import import_module
from typing import Any, Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from steno.errors import BadRequest, NotFound, StenoError
from steno.safe.terminal import clean
from steno.web.api.endpoints import api_routes
from steno.web.api.responses import error_response, is_api
from steno.web.api.routes import DOCUMENT, PATHS
from steno.web.gate import Gate, Keys
from steno.web.house import House, NotReady
from steno.web.paint import page

__all__ = ["ADDRESSES", "PAGES", "make_app"]

Page = Callable[[House, Request], Response | Awaitable[Response]]

PAGES: Final = (
    ("/", "sessions:sessions"),
    ("/live", "sessions:live"),
    ("/search", "search:search"),
    ("/s/{key}", "session:session"),
    ("/s/{key}/turns", "session:turns"),
    ("/s/{key}/sides", "session:sides"),
    ("/s/{key}/branch/{number}", "session:branch"),
    ("/s/{key}/panel", "session:panel"),
    ("/s/{key}/findings", "session:findings"),
    ("/s/{key}/live", "live:live"),
    ("/s/{key}/export", "export:export"),
    ("/s/{key}/step/{place}", "step:step"),
    ("/s/{key}/records", "records:records"),
    ("/s/{key}/record/{offset}", "records:record"),
    ("/s/{key}/a/{agent}", "session:session"),
    ("/s/{key}/a/{agent}/turns", "session:turns"),
    ("/s/{key}/a/{agent}/panel", "session:panel"),
    ("/s/{key}/a/{agent}/findings", "session:findings"),
    ("/s/{key}/a/{agent}/live", "live:live"),
    ("/s/{key}/a/{agent}/step/{place}", "step:step"),
    ("/s/{key}/a/{agent}/records", "records:records"),
    ("/s/{key}/a/{agent}/record/{offset}", "records:record"),
    ("/s/{key}/image/{place}", "image:image"),
    ("/s/{key}/a/{agent}/image/{place}", "image:image"),
    ("/usage", "usage:usage"),
    ("/usage/lines", "usage_lines:lines"),
    ("/usage/calls", "usage_lines:calls"),
    ("/usage/sessions", "usage_lines:sessions"),
    ("/usage/table.csv", "usage:table"),
    ("/files", "files:files"),
    ("/files/{tag}", "file:file"),
    ("/compare", "compare:pair"),
    ("/p/{tag}", "project:project"),
    ("/health", "health:health"),
    ("/palette", "palette:palette"),
    ("/static/{mark}/{name}", "static:static"),
    ("/favicon.ico", "static:icon"),
)
"""Every page, and who answers: a module of `pages/` and a function in it."""
ADDRESSES: Final = (*(way for way, _ in PAGES), *PATHS)
"""Every address: the pages and the API."""


def make_app(house: House, keys: Keys, hosts: Container[str]) -> ASGIApp:
    """Return the explorer of a house, with the gate before it."""
    routes = [Route(way, _endpoint(house, name)) for way, name in PAGES]
    routes += api_routes(house)
    app = Starlette(
        routes=routes,
        exception_handlers={
            StenoError: _failed(house),
            HTTPException: _failed(house),
            sqlite3.DatabaseError: _failed(house),
            Exception: _broke(),
        },
    )
    # An address is itself, or it is none of ours: no guesses that lead elsewhere.
    app.router.redirect_slashes = False
    return Gate(app, keys, hosts)


def _endpoint(house: House, name: str) -> Callable[[Request], Awaitable[Response]]:
    module, _, function = name.partition(":")
    answer: Page = getattr(import_module(f"steno.web.pages.{module}"), function)

    async def endpoint(request: Request) -> Response:
        if inspect.iscoroutinefunction(answer):
            return await answer(house, request)
        made: Any = await run_in_threadpool(answer, house, request)
        return made

    return endpoint


def _failed(house: House) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def failed(request: Request, error: Exception) -> Response:
        api = is_api(request.scope["path"])
        if isinstance(error, NotReady) or await run_in_threadpool(_recovered, house, error):
            if api:
                words = "the sessions are being read for the first time"
                return error_response(503, words, "Try again in a second.", {"retry-after": "1"})
            text = await run_in_threadpool(page, house, "reading.html.j2", here="sessions")
            return HTMLResponse(text, 503, {"refresh": "1", "retry-after": "1"})
        if isinstance(error, HTTPException):
            status, words, hint = error.status_code, "There is no such page.", ""
            if api:
                words, hint = "no such endpoint", f"{DOCUMENT} lists the endpoints"
        else:
            status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 500)
            words, hint = str(error), getattr(error, "hint", "") or ""
        if api:
            return error_response(status, words, hint)
        text = await run_in_threadpool(page, house, "error.html.j2", words=words, hint=hint)
        return HTMLResponse(text, status)

    return failed


def _recovered(house: House, error: Exception) -> bool:
    """Set a damaged index aside and have it made anew; whether it was damaged."""
    from steno.index.recovery import recover

    if not recover(error, house.home.folder):
        return False
    house.forget_words()
    house.rebuild()
    return True


def _broke() -> Callable[[Request, Exception], Awaitable[Response]]:
    """Return what answers for a fault of ours: a plain page, and one report for each fault."""
    told: set[tuple[str, str, int]] = set()

    async def broke(request: Request, error: Exception) -> Response:
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        file, line = (trace.tb_frame.f_code.co_filename, trace.tb_lineno) if trace else ("", 0)
        fault = (type(error).__name__, file, line)
        if fault not in told:
            told.add(fault)
            _report(error)
        if is_api(request.scope["path"]):
            return error_response(500, "internal error", _FAULT)
        return PlainTextResponse(_FAULT, 500)

    return broke


def _report(error: Exception) -> None:
    """Tell whoever started the explorer, where the words of a session may do no harm."""
    import traceback

    for line in "".join(traceback.format_exception(error)).splitlines():
        sys.stderr.write(f"{clean(line)}\n")
    sys.stderr.flush()


_FAULT: Final = "Something in steno broke here. What it was stands in the terminal it runs in."
_STATUS: Final[dict[type[Exception], int]] = {NotFound: 404, BadRequest: 400}
