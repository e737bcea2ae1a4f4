"""The table of endpoints and the OpenAPI document generated from it."""

import inspect
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib import import_module
from typing import Any, Final, cast

import msgspec

from steno.web.api import parameters as queries
from steno.web.api.parameters import Parameters
from steno.web.api.responses import JSON
from steno.web.api.schemas import (
    DriftReport,
    ErrorResponse,
    FileHistory,
    FileList,
    HealthReport,
    Model,
    SearchResult,
    SessionDetail,
    SessionList,
    StepList,
    TaskDetail,
    TaskList,
    TurnList,
    UsageReport,
)
from steno.web.state.app_state import AppState

API_V1_PREFIX: Final = "/api/v1"
EndpointHandler = Callable[[AppState, dict[str, str], Any], Model]


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """An endpoint of the API."""

    path: str
    name: str
    """The operation ID."""
    handler: str
    """Module in this package and function."""
    summary: str
    parameters: type[queries.Parameters] = queries.Parameters
    response: type[Model]
    tag: str

    @property
    def load_handler(self) -> EndpointHandler:
        """Return the handler function."""
        module, _, name = self.handler.partition(":")
        handler: EndpointHandler = getattr(import_module(f"steno.web.api.{module}"), name)
        return handler


ENDPOINTS: Final = (
    Endpoint(
        path=f"{API_V1_PREFIX}/sessions",
        name="list_sessions",
        handler="session_endpoints:list_sessions_page",
        summary="List sessions",
        parameters=queries.SessionParameters,
        response=SessionList,
        tag="sessions",
    ),
    Endpoint(
        path=f"{API_V1_PREFIX}/sessions/{{key}}",
        name="get_session",
        handler="session_endpoints:get_session",
        summary="Get one session",
        response=SessionDetail,
        tag="sessions",
    ),
    Endpoint(
        path=f"{API_V1_PREFIX}/sessions/{{key}}/turns",
        name="list_turns",
        handler="session_endpoints:list_turns",
        summary="List the turns of a session",
        parameters=queries.TurnParameters,
        response=TurnList,
        tag="sessions",
    ),
    Endpoint(
        path=f"{API_V1_PREFIX}/sessions/{{key}}/steps",
        name="list_steps",
        handler="session_endpoints:list_steps",
        summary="List the steps of a session, as `steno export --format steps` writes them",
        parameters=queries.Paged,
        response=StepList,
        tag="sessions",
    ),
    Endpoint(
        path=f"{API_V1_PREFIX}/search",
        name="search",
        handler="search_endpoint:search",
        summary="Search all sessions",
        parameters=queries.SearchParameters,
        response=SearchResult,
        tag="search",
    ),
    Endpoint(
        path=f"{API_V1_PREFIX}/usage",
        name="get_usage",
        handler="usage_endpoint:get_usage",
        summary="Get token usage and cost, as `steno usage --json` prints it",
        parameters=queries.UsageParameters,
        response=UsageReport,
        tag="usage",
    ),
    Endpoint(
        path=f"{API_V1_PREFIX}/files",
        name="list_files",
        handler="file_endpoints:list_files",
        summary="List the files that sessions read or changed",
        parameters=queries.FileParameters,
        response=FileList,
        tag="files",
    ),
    Endpoint(
        path=f"{API_V1_PREFIX}/files/{{tag}}",
        name="get_file",
        handler="file_endpoints:file_history",
        summary="Get a file with its sessions and versions",
        parameters=queries.Paged,
        response=FileHistory,
        tag="files",
    ),
    Endpoint(
        path=f"{API_V1_PREFIX}/health",
        name="get_health",
        handler="health_endpoints:get_health",
        summary="Get the problems of all sessions, as the health page shows them",
        response=HealthReport,
        tag="health",
    ),
    Endpoint(
        path=f"{API_V1_PREFIX}/drift",
        name="get_drift",
        handler="health_endpoints:get_drift",
        summary="Get the differences from the known format, as `steno drift --json` prints them",
        response=DriftReport,
        tag="health",
    ),
    Endpoint(
        path=f"{API_V1_PREFIX}/tasks",
        name="list_tasks",
        handler="task_endpoints:list_tasks",
        summary="List sessions as tasks",
        parameters=queries.TaskParameters,
        response=TaskList,
        tag="tasks",
    ),
    Endpoint(
        path=f"{API_V1_PREFIX}/tasks/{{id}}",
        name="get_task",
        handler="task_endpoints:get_task",
        summary="Get a session as a task with its steps",
        parameters=queries.Paged,
        response=TaskDetail,
        tag="tasks",
    ),
)
OPENAPI_PATH: Final = f"{API_V1_PREFIX}/openapi.json"
"""Path of the OpenAPI document."""
API_PATHS: Final = (*(endpoint.path for endpoint in ENDPOINTS), OPENAPI_PATH)


_REF: Final = "#/components/schemas/{name}"
_PATH_PARAMETER: Final = re.compile(r"\{(\w+)\}")
_PATH_PARAMETER_DOCS: Final = {
    "key": "The `key` of a session: its ID, plus `~` and a number if several files have that ID.",
    "id": "A session's `key`.",
    "tag": "The `id` of a file in `/api/v1/files`.",
}
_ERRORS: Final = {
    "400": ("BadRequest", "A parameter is unknown, repeated, missing or invalid; the message names it."),
    "401": ("Unauthorized", "The token is missing or invalid."),
    "403": ("Forbidden", "The request comes from another site."),
    "404": ("NotFound", "The resource does not exist."),
    "405": ("MethodNotAllowed", "The method is neither GET nor HEAD."),
    "421": ("Misdirected", "The `Host` header does not name this server."),
    "500": ("InternalError", "A bug; the terminal that runs steno shows the traceback."),
    "503": ("NotReady", "The index is being built. Retry after the time in `Retry-After`."),
}
_COMMON_ERRORS: Final = ("400", "401", "403", "405", "421", "500", "503")
_DESCRIPTION: Final = (
    "A read-only API for the sessions in `steno explore`. Every endpoint answers GET and "
    "HEAD.\n\n"
    "**Authentication.** Set `STENO_TOKEN` or `--token-file` when starting `steno explore` and send "
    "`Authorization: Bearer TOKEN`. A browser that opened the explorer is authenticated by its "
    "cookie.\n\n"
    "**Caching.** Every response has a strong `ETag`; send it back as `If-None-Match` to get 304 "
    "while nothing has changed.\n\n"
    "**Pages.** Lists take `limit` and `cursor`; `next_cursor` is null on the last page.\n\n"
    "**Text** is returned unchanged: secrets are not masked."
)


def document() -> dict[str, Any]:
    """Return the OpenAPI document."""
    types = [*(endpoint.response for endpoint in ENDPOINTS), ErrorResponse]
    _, schemas = msgspec.json.schema_components(types, ref_template=_REF)
    paths = {endpoint.path: {"get": _operation(endpoint)} for endpoint in ENDPOINTS}
    paths[OPENAPI_PATH] = {"get": _document_operation()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "steno",
            "version": "1",
            "summary": "Read-only access to Claude Code sessions.",
            "description": _DESCRIPTION,
        },
        "servers": [{"url": "/", "description": "The address that `steno explore` prints."}],
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": {name: _clean_schema(schemas[name]) for name in sorted(schemas)},
            "responses": {name: _error_response(status, about) for status, (name, about) in _ERRORS.items()},
            "headers": _headers(),
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The token set when starting `steno explore`.",
                }
            },
        },
    }


@lru_cache(maxsize=1)
def document_bytes() -> bytes:
    """Return the OpenAPI document as JSON."""
    return msgspec.json.format(msgspec.json.encode(document()), indent=2) + b"\n"


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    holes = _PATH_PARAMETER.findall(endpoint.path)
    parameters = [*map(_path_parameter, holes), *_query_parameters(endpoint.parameters)]
    return {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "tags": [endpoint.tag],
        **({"parameters": parameters} if parameters else {}),
        "responses": _responses(
            {"$ref": _REF.format(name=endpoint.response.__name__)},
            _first_paragraph(endpoint.response),
            [*_COMMON_ERRORS, "404"] if holes else _COMMON_ERRORS,
        ),
    }


def _document_operation() -> dict[str, Any]:
    return {
        "operationId": "get_openapi",
        "summary": "Get this document",
        "tags": ["document"],
        "responses": _responses(
            {"type": "object"}, "An OpenAPI 3.1 document.", [status for status in _COMMON_ERRORS if status != "503"]
        ),
    }


def _responses(schema: dict[str, Any], about: str, errors: Iterable[str]) -> dict[str, Any]:
    headers = {name: {"$ref": f"#/components/headers/{name}"} for name in _headers()}
    return {
        "200": {"description": about, "headers": headers, "content": {JSON: {"schema": schema}}},
        "304": {"description": "Nothing has changed.", "headers": headers},
        **{status: {"$ref": f"#/components/responses/{_ERRORS[status][0]}"} for status in sorted(errors)},
    }


def _headers() -> dict[str, Any]:
    return {
        "ETag": {"description": "A strong entity tag.", "schema": {"type": "string"}},
        "Cache-Control": {"description": "Always `private, no-cache`.", "schema": {"type": "string"}},
    }


def _error_response(status: str, about: str) -> dict[str, Any]:
    error_response: dict[str, Any] = {
        "description": about,
        "content": {JSON: {"schema": {"$ref": _REF.format(name="ErrorResponse")}}},
    }
    if status == "503":
        error_response["headers"] = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}
    return error_response


def _path_parameter(name: str) -> dict[str, Any]:
    schema = {"type": "string", "minLength": 1}
    return {"name": name, "in": "path", "required": True, "description": _PATH_PARAMETER_DOCS[name], "schema": schema}


def _query_parameters(kind: type[Parameters]) -> Iterable[dict[str, Any]]:
    _, schemas = msgspec.json.schema_components((kind,), ref_template=_REF)
    schema = _clean_schema(schemas[kind.__name__])
    for name, property_schema in schema["properties"].items():
        about = property_schema.pop("description", "")
        examples = property_schema.pop("examples", None)
        yield {
            "name": name,
            "in": "query",
            **({"description": about} if about else {}),
            **({"required": True} if name in schema.get("required", ()) else {}),
            "schema": property_schema,
            **({"example": examples[0]} if examples else {}),
        }


def _clean_schema(schema: Any) -> Any:
    """Return a schema with dedented descriptions and with types for enumerations."""
    if isinstance(schema, list):
        return [_clean_schema(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    pairs = cast("dict[str, Any]", schema).items()
    cleaned: dict[str, Any] = {name: _clean_schema(each) for name, each in pairs}
    if isinstance(cleaned.get("description"), str):
        cleaned["description"] = inspect.cleandoc(cleaned["description"])
    values: list[object] = cleaned.get("enum", [])
    if values and all(isinstance(each, str) for each in values):
        cleaned = {"type": "string", **cleaned}
    return cleaned


def _first_paragraph(kind: type) -> str:
    return inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0]
