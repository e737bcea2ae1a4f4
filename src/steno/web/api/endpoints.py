"""Requests to endpoints: parameters in, JSON with an entity tag out."""

from collections.abc import Awaitable, Callable, Iterator

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from steno.web.api.openapi import document_bytes
from steno.web.api.parameters import Parameters, parse_parameters
from steno.web.api.responses import encode, json_response
from steno.web.api.routes import DOCUMENT, ENDPOINTS, Endpoint
from steno.web.house import House


def api_routes(house: House) -> Iterator[Route]:
    """Yield the routes of the API."""
    for endpoint in ENDPOINTS:
        yield Route(endpoint.path, _answering(house, endpoint))
    yield Route(DOCUMENT, _document)


def _answering(house: House, endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
    function = endpoint.function

    def answer(request: Request) -> Response:
        query: bytes = request.scope["query_string"]
        parameters = parse_parameters(query, endpoint.parameters)
        return json_response(request, encode(function(house, request.path_params, parameters)))

    async def respond(request: Request) -> Response:
        # It reads files, so it runs in a thread of its own.
        return await run_in_threadpool(answer, request)

    return respond


async def _document(request: Request) -> Response:
    parse_parameters(request.scope["query_string"], Parameters)
    return json_response(request, document_bytes())
