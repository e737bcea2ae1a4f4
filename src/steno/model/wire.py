"""What goes over the wire to a Messages API, and what comes back of one response."""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import msgspec

from steno.errors import StenoError

__all__ = ["RETRIED", "ApiError", "Block", "Message", "Request", "Response", "StreamCut"]

Block: TypeAlias = dict[str, Any]
Message: TypeAlias = dict[str, Any]
RETRIED: Final = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
"""The statuses that are worth another try."""


class Request(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One request, in the order of keys it is sent in: the same request has the same bytes."""

    model: str
    max_tokens: int
    messages: Sequence[Message | msgspec.Raw]
    """As values, or as the bytes they were sent as before."""
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
    """What came of a request: whole, or as much as there was before a stream was cut."""

    id: str = ""
    model: str = ""
    blocks: list[Block] = []
    stop_reason: str | None = None
    stop_sequence: str | None = None
    usage: dict[str, Any] = {}
    request_id: str = ""


class ApiError(StenoError):
    """The API, or the way to it, refused a request."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        kind: str = "",
        request_id: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        """The HTTP status; 0 when there was no answer."""
        self.kind = kind
        """The API's own name for it: `overloaded_error`, `invalid_request_error`, …"""
        self.request_id = request_id
        self.retry_after = retry_after

    @property
    def passes(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status in RETRIED or (not self.status and self.kind != "cancelled")


class StreamCut(ApiError):
    """A stream ended in the middle of a response."""

    def __init__(self, message: str, *, partial: Response) -> None:
        super().__init__(message, kind="stream_cut", request_id=partial.request_id)
        self.partial = partial
        """The blocks that were whole, and the beginning of the one that was not."""
