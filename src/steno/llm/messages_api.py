"""Requests, responses and errors of the Messages API, and the encoding of requests."""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import msgspec

from steno.errors import BadRequest, StenoError
from steno.format.lenient_json import decode_lenient

Block: TypeAlias = dict[str, Any]
Message: TypeAlias = dict[str, Any]
MESSAGES_PATH: Final = "/v1/messages"
COUNT_PATH: Final = "/v1/messages/count_tokens"
RETRY_STATUSES: Final = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
"""HTTP statuses that are retried."""
_ERROR_CATEGORIES: Final = {
    "rate_limit_error": "rate_limit",
    "authentication_error": "authentication_failed",
    "permission_error": "authentication_failed",
    "billing_error": "billing_error",
    "invalid_request_error": "invalid_request",
    "request_too_large": "invalid_request",
    "not_found_error": "invalid_request",
    "api_error": "server_error",
    "overloaded_error": "server_error",
    "timeout_error": "server_error",
}
_REJECTED_STATUSES: Final = (400, 413)
_OVERFLOW_MESSAGES: Final = ("prompt is too long", "exceed context limit", "exceeds the maximum size")


class Request(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One request; fields are sent in this order, so that equal requests have equal bytes."""

    model: str
    max_tokens: int
    messages: Sequence[Message | msgspec.Raw]
    """Messages as values or as encoded bytes."""
    system: list[Block] = []
    tools: list[Block] = []
    tool_choice: dict[str, Any] | None = None
    thinking: dict[str, Any] | None = None
    output_config: dict[str, Any] | None = None
    temperature: float | None = None
    stop_sequences: list[str] = []
    metadata: dict[str, Any] | None = None
    stream: bool = False


class Response(msgspec.Struct, kw_only=True):
    """A response, complete or up to the interruption of its stream."""

    id: str = ""
    model: str = ""
    blocks: list[Block] = []
    stop_reason: str | None = None
    stop_sequence: str | None = None
    usage: dict[str, Any] = {}
    request_id: str = ""


class ApiError(StenoError):
    """An error response of the API, or a connection error."""

    def __init__(
        self, message: str, *, status: int = 0, kind: str = "", request_id: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        """HTTP status; 0 without a response."""
        self.kind = kind
        """Error type of the API: `overloaded_error`, `invalid_request_error`, …"""
        self.request_id = request_id
        self.retry_after = retry_after

    @property
    def is_transient(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status in RETRY_STATUSES or (not self.status and self.kind != "cancelled")

    @property
    def category(self) -> str:
        """The error category that hooks and records use, such as `rate_limit`."""
        return _ERROR_CATEGORIES.get(self.kind, "unknown")

    @property
    def is_context_overflow(self) -> bool:
        """Whether the request exceeds the context window."""
        message = str(self).lower()
        return self.status in _REJECTED_STATUSES and any(pattern in message for pattern in _OVERFLOW_MESSAGES)


class StreamInterrupted(ApiError):
    """A stream ended in the middle of a response."""

    def __init__(self, message: str, *, partial: Response) -> None:
        super().__init__(message, kind="stream_cut", request_id=partial.request_id)
        self.partial = partial
        """The finished blocks, and the start of an unfinished text block."""


class _CountRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The fields that the token counting endpoint accepts."""

    model: str
    messages: Sequence[Message | msgspec.Raw]
    system: list[Block] = []
    tools: list[Block] = []
    tool_choice: dict[str, Any] | None = None
    thinking: dict[str, Any] | None = None
    output_config: dict[str, Any] | None = None


def encode_request(value: msgspec.Struct) -> bytes:
    """Return the bytes of a request; equal requests have equal bytes.

    `stream` is the last key, so requesting a stream does not change the bytes before it.

    Raises:
        BadRequest: the request cannot be encoded as JSON.
    """
    return _encode(value)


def encode_message(message: Message) -> msgspec.Raw:
    """Encode a message once, to reuse its bytes in every request.

    Raises:
        BadRequest: the message cannot be encoded as JSON.
    """
    return msgspec.Raw(_encode(message))


def _encode(value: msgspec.Struct | Message) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        # A lone surrogate cannot be encoded; replace it instead of failing the conversation.
        import json

        builtins_value = msgspec.to_builtins(value, enc_hook=msgspec.json.decode)
        repaired = decode_lenient(json.dumps(builtins_value).encode())
        if repaired is not None:
            return msgspec.json.encode(repaired)
        raise BadRequest("the request is nested too deeply") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise BadRequest(f"cannot encode the request as JSON: {error}") from error


def encode_count_request(request: Request) -> bytes:
    """Return the bytes of a token counting request.

    Raises:
        BadRequest: the request cannot be encoded as JSON.
    """
    return encode_request(
        _CountRequest(
            model=request.model,
            messages=request.messages,
            system=request.system,
            tools=request.tools,
            tool_choice=request.tool_choice,
            thinking=request.thinking,
            output_config=request.output_config,
        )
    )
