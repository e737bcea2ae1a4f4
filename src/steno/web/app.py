"""The ASGI application: page routes, API endpoints, error responses.

A page is a function `(state, request) -> Response` that runs in a worker thread, because it reads files.
Streams are coroutines.
"""

import inspect
import sqlite3
import sys
from collections.abc import Awaitable, Callable, Container, Iterator
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
from steno.sanitize.terminal import clean
from steno.web.api.openapi import API_PATHS, ENDPOINTS, OPENAPI_PATH, Endpoint, document_bytes
from steno.web.api.parameters import Parameters, parse_parameters
from steno.web.api.responses import encode, error_response, is_api, json_response
from steno.web.auth import AuthMiddleware, LoginKeys
from steno.web.state.app_state import AppState, NotReady
from steno.web.templating import render_page

PageHandler = Callable[[AppState, Request], Response | Awaitable[Response]]

PAGES: Final = (
    ("/", "sessions:session_list_page"),
    ("/live", "sessions:session_list_stream"),
    ("/search", "search:redirect_search"),
    ("/s/{key}", "session:session_page"),
    ("/s/{key}/turns", "session:turn_range"),
    ("/s/{key}/sides", "session:abandoned_branches"),
    ("/s/{key}/branch/{number}", "session:abandoned_branch"),
    ("/s/{key}/panel", "session:side_panel"),
    ("/s/{key}/findings", "session:findings_section"),
    ("/s/{key}/live", "session:session_stream"),
    ("/s/{key}/export", "session:download"),
    ("/s/{key}/step/{place}", "records:step_page"),
    ("/s/{key}/records", "records:records_page"),
    ("/s/{key}/record/{offset}", "records:record_page"),
    ("/s/{key}/a/{agent}", "session:session_page"),
    ("/s/{key}/a/{agent}/turns", "session:turn_range"),
    ("/s/{key}/a/{agent}/panel", "session:side_panel"),
    ("/s/{key}/a/{agent}/findings", "session:findings_section"),
    ("/s/{key}/a/{agent}/live", "session:session_stream"),
    ("/s/{key}/a/{agent}/step/{place}", "records:step_page"),
    ("/s/{key}/a/{agent}/records", "records:records_page"),
    ("/s/{key}/a/{agent}/record/{offset}", "records:record_page"),
    ("/s/{key}/image/{place}", "records:image_response"),
    ("/s/{key}/a/{agent}/image/{place}", "records:image_response"),
    ("/usage", "usage_overview:usage_page"),
    ("/usage/lines", "usage_lines:responses_page"),
    ("/usage/calls", "usage_lines:calls_page"),
    ("/usage/sessions", "usage_lines:sessions_by_cost_page"),
    ("/usage/table.csv", "usage_overview:usage_csv"),
    ("/files", "files:files_page"),
    ("/files/{tag}", "files:file_page"),
    ("/compare", "compare:comparison_page"),
    ("/p/{tag}", "project:project_page"),
    ("/health", "health:health_page"),
    ("/palette", "palette:palette_items"),
    ("/static/{mark}/{name}", "static_files:static_file"),
    ("/favicon.ico", "static_files:favicon"),
)
"""URL patterns of all pages, with the module in `routes/` and the function that handles each."""
ADDRESSES: Final = (*(way for way, _ in PAGES), *API_PATHS)
"""URL patterns of all pages and API endpoints."""


def make_app(app_state: AppState, login_keys: LoginKeys, hosts: Container[str]) -> ASGIApp:
    """Return the ASGI application, wrapped in the request checks of `auth`."""
    routes = [Route(path, _page_endpoint(app_state, name)) for path, name in PAGES]
    routes += api_routes(app_state)
    app = Starlette(
        routes=routes,
        exception_handlers={
            StenoError: _error_handler(app_state),
            HTTPException: _error_handler(app_state),
            sqlite3.DatabaseError: _error_handler(app_state),
            Exception: _crash_handler(),
        },
    )
    # Only exact paths match: no redirects for trailing slashes.
    app.router.redirect_slashes = False
    return AuthMiddleware(app, login_keys, hosts)


def _page_endpoint(app_state: AppState, name: str) -> Callable[[Request], Awaitable[Response]]:
    module, _, function = name.partition(":")
    handler: PageHandler = getattr(import_module(f"steno.web.routes.{module}"), function)

    async def endpoint(request: Request) -> Response:
        if inspect.iscoroutinefunction(handler):
            return await handler(app_state, request)
        response: Any = await run_in_threadpool(handler, app_state, request)
        return response

    return endpoint


def _error_handler(app_state: AppState) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def handle_error(request: Request, error: Exception) -> Response:
        api = is_api(request.scope["path"])
        if isinstance(error, NotReady) or await run_in_threadpool(_recover_index, app_state, error):
            if api:
                message = "the index is being built"
                return error_response(503, message, "Try again in a second.", {"retry-after": "1"})
            text = await run_in_threadpool(render_page, app_state, "reading.html.j2", here="sessions")
            return HTMLResponse(text, 503, {"refresh": "1", "retry-after": "1"})
        if isinstance(error, HTTPException):
            status, message, hint = error.status_code, "page not found", ""
            if api:
                message, hint = "no such endpoint", f"See {OPENAPI_PATH} for all endpoints."
        else:
            status = next((code for kind, code in _STATUS_CODES.items() if isinstance(error, kind)), 500)
            message, hint = str(error), getattr(error, "hint", "") or ""
        if api:
            return error_response(status, message, hint)
        text = await run_in_threadpool(render_page, app_state, "error.html.j2", words=message, hint=hint)
        return HTMLResponse(text, status)

    return handle_error


def _recover_index(app_state: AppState, error: Exception) -> bool:
    """Replace a damaged index with a new one. Return whether the index was damaged."""
    from steno.index.recovery import recover

    if not recover(error, app_state.home.folder):
        return False
    app_state.reset_texts()
    app_state.rebuild()
    return True


def _crash_handler() -> Callable[[Request, Exception], Awaitable[Response]]:
    """Return a handler that answers with a plain page and logs each distinct crash once."""
    reported: set[tuple[str, str, int]] = set()

    async def handle_crash(request: Request, error: Exception) -> Response:
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        file, line = (trace.tb_frame.f_code.co_filename, trace.tb_lineno) if trace else ("", 0)
        fault = (type(error).__name__, file, line)
        if fault not in reported:
            reported.add(fault)
            _log_traceback(error)
        if is_api(request.scope["path"]):
            return error_response(500, "internal error", _CRASH_MESSAGE)
        return PlainTextResponse(_CRASH_MESSAGE, 500)

    return handle_crash


def _log_traceback(error: Exception) -> None:
    """Write a traceback to stderr without terminal control sequences from sessions."""
    import traceback

    for line in "".join(traceback.format_exception(error)).splitlines():
        sys.stderr.write(f"{clean(line)}\n")
    sys.stderr.flush()


_CRASH_MESSAGE: Final = "Internal error. The terminal that runs steno shows the traceback."
_STATUS_CODES: Final[dict[type[Exception], int]] = {NotFound: 404, BadRequest: 400}


def api_routes(app_state: AppState) -> Iterator[Route]:
    """Yield the routes of the API."""
    for endpoint in ENDPOINTS:
        yield Route(endpoint.path, _request_handler(app_state, endpoint))
    yield Route(OPENAPI_PATH, _serve_document)


def _request_handler(app_state: AppState, endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
    function = endpoint.load_handler

    def handle(request: Request) -> Response:
        query: bytes = request.scope["query_string"]
        parameters = parse_parameters(query, endpoint.parameters)
        return json_response(request, encode(function(app_state, request.path_params, parameters)))

    async def respond(request: Request) -> Response:
        # Handlers read files, so they run in a thread.
        return await run_in_threadpool(handle, request)

    return respond


async def _serve_document(request: Request) -> Response:
    parse_parameters(request.scope["query_string"], Parameters)
    return json_response(request, document_bytes())
