"""The OpenAPI document, generated from the table of endpoints and the types they name."""

import inspect
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, cast

import msgspec

from steno.web.api.models.base import ErrorResponse
from steno.web.api.parameters import Parameters
from steno.web.api.responses import JSON
from steno.web.api.routes import DOCUMENT, ENDPOINTS, Endpoint

_REF: Final = "#/components/schemas/{name}"
_HOLE: Final = re.compile(r"\{(\w+)\}")
_PLACES: Final = {
    "key": "A session's `key`: its id, plus `~` and a number where several files have that id.",
    "id": "A session's `key`.",
    "tag": "A file's `id` in `/api/v1/files`.",
}
_ERRORS: Final = {
    "400": (
        "BadRequest",
        "A parameter is unknown, repeated, missing or wrong; the message names it.",
    ),
    "401": ("Unauthorized", "No valid token."),
    "403": ("Forbidden", "The request comes from another site."),
    "404": ("NotFound", "Nothing has that name."),
    "405": ("MethodNotAllowed", "The method is neither GET nor HEAD."),
    "421": ("Misdirected", "The `Host` header does not name this server."),
    "500": ("InternalError", "A bug; the terminal that runs steno shows the traceback."),
    "503": ("NotReady", "The index is being made. Try again after the time in `Retry-After`."),
}
_ALWAYS: Final = ("400", "401", "403", "405", "421", "500", "503")
_ABOUT: Final = (
    "A read-only API to the sessions that `steno explore` shows. Every endpoint answers GET and "
    "HEAD.\n\n"
    "**Authentication.** Set `STENO_TOKEN` or `--token-file` when starting `steno explore` and send "
    "`Authorization: Bearer TOKEN`. A browser that opened the explorer is authenticated by its "
    "cookie.\n\n"
    "**Caching.** Every response has a strong `ETag`; send it back as `If-None-Match` to get 304 "
    "while nothing has changed.\n\n"
    "**Pages.** Lists take `limit` and `cursor`; `next_cursor` is null on the last page.\n\n"
    "**Text** is returned as it is in the session, as the pages show it: secrets are not masked."
)


def document() -> dict[str, Any]:
    """Return the document."""
    types = [*(endpoint.response for endpoint in ENDPOINTS), ErrorResponse]
    _, schemas = msgspec.json.schema_components(types, ref_template=_REF)
    paths = {endpoint.path: {"get": _operation(endpoint)} for endpoint in ENDPOINTS}
    paths[DOCUMENT] = {"get": _own()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "steno",
            "version": "1",
            "summary": "Claude Code sessions, read-only.",
            "description": _ABOUT,
        },
        "servers": [{"url": "/", "description": "The address that `steno explore` prints."}],
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": {name: _tidy(schemas[name]) for name in sorted(schemas)},
            "responses": {name: _error(status, about) for status, (name, about) in _ERRORS.items()},
            "headers": _headers(),
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The token that `steno explore` was started with.",
                }
            },
        },
    }


@lru_cache(maxsize=1)
def document_bytes() -> bytes:
    """Return the document as JSON."""
    return msgspec.json.format(msgspec.json.encode(document()), indent=2) + b"\n"


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    holes = _HOLE.findall(endpoint.path)
    parameters = [*map(_in_path, holes), *_in_query(endpoint.parameters)]
    return {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "tags": [endpoint.tag],
        **({"parameters": parameters} if parameters else {}),
        "responses": _responses(
            {"$ref": _REF.format(name=endpoint.response.__name__)},
            _paragraph(endpoint.response),
            [*_ALWAYS, "404"] if holes else _ALWAYS,
        ),
    }


def _own() -> dict[str, Any]:
    return {
        "operationId": "get_openapi",
        "summary": "Get this document",
        "tags": ["document"],
        "responses": _responses(
            {"type": "object"},
            "An OpenAPI 3.1 document.",
            [each for each in _ALWAYS if each != "503"],
        ),
    }


def _responses(schema: dict[str, Any], about: str, errors: Iterable[str]) -> dict[str, Any]:
    headers = {name: {"$ref": f"#/components/headers/{name}"} for name in _headers()}
    return {
        "200": {
            "description": about,
            "headers": headers,
            "content": {JSON: {"schema": schema}},
        },
        "304": {"description": "Nothing has changed.", "headers": headers},
        **{
            status: {"$ref": f"#/components/responses/{_ERRORS[status][0]}"}
            for status in sorted(errors)
        },
    }


def _headers() -> dict[str, Any]:
    return {
        "ETag": {"description": "A strong entity tag.", "schema": {"type": "string"}},
        "Cache-Control": {
            "description": "Always `private, no-cache`.",
            "schema": {"type": "string"},
        },
    }


def _error(status: str, about: str) -> dict[str, Any]:
    made: dict[str, Any] = {
        "description": about,
        "content": {JSON: {"schema": {"$ref": _REF.format(name="ErrorResponse")}}},
    }
    if status == "503":
        made["headers"] = {
            "Retry-After": {"description": "Seconds.", "schema": {"type": "integer"}}
        }
    return made


def _in_path(name: str) -> dict[str, Any]:
    schema = {"type": "string", "minLength": 1}
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": _PLACES[name],
        "schema": schema,
    }


def _in_query(kind: type[Parameters]) -> Iterable[dict[str, Any]]:
    _, schemas = msgspec.json.schema_components((kind,), ref_template=_REF)
    schema = _tidy(schemas[kind.__name__])
    for name, each in schema["properties"].items():
        about = each.pop("description", "")
        examples = each.pop("examples", None)
        yield {
            "name": name,
            "in": "query",
            **({"description": about} if about else {}),
            **({"required": True} if name in schema.get("required", ()) else {}),
            "schema": each,
            **({"example": examples[0]} if examples else {}),
        }


def _tidy(schema: Any) -> Any:
    """Return a schema with plain descriptions and with the types of enumerations."""
    if isinstance(schema, list):
        return [_tidy(each) for each in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    pairs = cast("dict[str, Any]", schema).items()
    made: dict[str, Any] = {name: _tidy(each) for name, each in pairs}
    if isinstance(made.get("description"), str):
        made["description"] = inspect.cleandoc(made["description"])
    values: list[object] = made.get("enum", [])
    if values and all(isinstance(each, str) for each in values):
        made = {"type": "string", **made}
    return made


def _paragraph(kind: type) -> str:
    return inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0]
