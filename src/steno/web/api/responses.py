"""JSON bodies, entity tags and errors."""

import re
from hashlib import blake2b
from typing import Any, Final, cast

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from steno.web.api.schemas import ErrorBody, ErrorResponse, Model

API_PREFIX: Final = "/api/"
JSON: Final = "application/json"
_CODES: Final = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    421: "misdirected_request",
    500: "internal_error",
    503: "not_ready",
}
_CACHE: Final = {"cache-control": "private, no-cache"}
_NOT_MODIFIED: Final = 304
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def is_api(path: str) -> bool:
    """Return whether a path belongs to the API, so that its errors are JSON."""
    return path.startswith(API_PREFIX)


def encode(value: Model) -> bytes:
    """Return a response as JSON, with unpaired surrogates replaced."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_replace_surrogates(msgspec.to_builtins(value)))


def _replace_surrogates(value: Any) -> Any:
    """Return a value with unpaired surrogates replaced; strings keep their length."""
    if isinstance(value, str):
        return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return {_replace_surrogates(name): _replace_surrogates(item) for name, item in pairs}
    if isinstance(value, list | tuple):
        return [_replace_surrogates(each) for each in cast("list[Any]", value)]
    return value


def json_response(request: Request, body: bytes) -> Response:
    """Return a body with its entity tag, or 304 if the client already has it."""
    tag = f'"{blake2b(body, digest_size=16).hexdigest()}"'
    headers = {**_CACHE, "etag": tag}
    if _has_tag(request.headers.getlist("if-none-match"), tag):
        return Response(status_code=_NOT_MODIFIED, headers=headers)
    return Response(body, media_type=JSON, headers=headers)


def _has_tag(lines: list[str], tag: str) -> bool:
    tags = [candidate.strip() for line in lines for candidate in line.split(",")]
    return any(each == "*" or each.removeprefix("W/") == tag for each in tags)


def error_body(status: int, message: str, hint: str = "") -> bytes:
    """Return the body of an error."""
    code = _CODES.get(status, "internal_error")
    return encode(ErrorResponse(error=ErrorBody(code=code, message=message, hint=hint)))


def error_response(status: int, message: str, hint: str = "", headers: dict[str, str] | None = None) -> Response:
    """Return an error."""
    return Response(error_body(status, message, hint), status, headers, JSON)
