r"""Decodes a streamed response: server-sent events → stream events, and the assembled response.

Unknown fields of blocks are kept, and thinking keeps its exact signature, because blocks are sent back later.

>>> parser = SseParser()
>>> parser.feed(b"event: ping\r\nda"), parser.feed(b"ta: {}\r"), parser.feed(b"\n\r\n")
([], [], [SseEvent(event='ping', data='{}')])
"""

import re
from typing import Any, Final, TypeAlias, TypeVar, cast

import msgspec

from steno.format.lenient_json import DECODE_ERRORS, decode_lenient
from steno.llm.messages_api import ApiError, Block, Response
from steno.llm.retry_policy import status_for_kind

MAX_EVENT_BYTES: Final = 32 << 20
"""Maximum bytes of one event; results of server tools arrive in a single event."""

_LINE_END: Final = re.compile(rb"\r\n|\n|\r")
_BOM: Final = b"\xef\xbb\xbf"
_LINE_FEED: Final = 0x0A


class SseEvent(msgspec.Struct, frozen=True):
    """One event: its name (`message` by default) and its data."""

    event: str
    data: str


class SseParser:
    """Parses a stream of server-sent events incrementally.

    An incomplete event at the end of the stream is dropped. If an event exceeds `max_bytes`, `overflowed` is set and
    parsing stops.
    """

    __slots__ = ("_after_cr", "_begun", "_data", "_event", "_held", "_most", "_size", "overflowed")

    def __init__(self, *, max_bytes: int = MAX_EVENT_BYTES) -> None:
        self._most = max_bytes
        self._held = bytearray()  # the start of an unfinished line
        self._after_cr = False
        self._begun = False
        self._event = b""
        self._data: list[bytes] = []
        self._size = 0
        self.overflowed = False

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Parse more bytes and return the events that are complete."""
        events: list[SseEvent] = []
        if not chunk or self.overflowed:
            return events
        start = 1 if self._after_cr and chunk[0] == _LINE_FEED else 0
        self._after_cr = chunk.endswith(b"\r")
        for end in _LINE_END.finditer(chunk, start):
            self._held += chunk[start : end.start()]
            start = end.end()
            if self._check_size():
                return events
            line = bytes(self._held)
            self._held.clear()
            self._read_line(line, events)
        self._held += chunk[start:]
        self._check_size()
        return events

    def _check_size(self) -> bool:
        if self._size + len(self._held) > self._most:
            self.overflowed = True
            self._held.clear()
            self._data.clear()
        return self.overflowed

    def _read_line(self, line: bytes, events: list[SseEvent]) -> None:
        if not self._begun:
            self._begun = True
            line = line.removeprefix(_BOM)
        if not line:
            self._emit(events)
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._size += len(line)
        elif field == b"event":
            self._event = value
        # Comments, and the fields for automatic reconnection, are ignored.

    def _emit(self, events: list[SseEvent]) -> None:
        if self._data:
            name = self._event.decode("utf-8", "replace") or "message"
            events.append(SseEvent(name, b"\n".join(self._data).decode("utf-8", "replace")))
        self._event = b""
        self._data = []
        self._size = 0


class ResponseStarted(msgspec.Struct, frozen=True):
    """The response has started."""

    id: str
    model: str


class BlockStarted(msgspec.Struct, frozen=True):
    """A block has started: its type, and the name and ID of a tool call."""

    index: int
    block: Block


class TextDelta(msgspec.Struct, frozen=True):
    """More text of a text block."""

    index: int
    text: str


class ThinkingDelta(msgspec.Struct, frozen=True):
    """More text of a thinking block."""

    index: int
    text: str


class InputDelta(msgspec.Struct, frozen=True):
    """More JSON of a tool call's input."""

    index: int
    text: str


class BlockFinished(msgspec.Struct, frozen=True):
    """A block is complete, as it is recorded and sent back.

    `bad_input` is the input text of a tool call if it is not a JSON object; the block's `input` is then `{}`.
    """

    index: int
    block: Block
    bad_input: str | None = None


class ResponseFinished(msgspec.Struct, frozen=True):
    """The response is complete."""

    response: Response


class RetryScheduled(msgspec.Struct, frozen=True):
    """A request failed and will be retried after a delay."""

    attempt: int
    of: int
    delay: float
    error: ApiError


class ApiEvent(msgspec.Struct, frozen=True):
    """A raw API event, sent before its stream events; only with `api_events`."""

    event: dict[str, Any]


StreamEvent: TypeAlias = (
    ResponseStarted
    | BlockStarted
    | TextDelta
    | ThinkingDelta
    | InputDelta
    | BlockFinished
    | ResponseFinished
    | RetryScheduled
    | ApiEvent
)


BAD_STREAM: Final = "bad_stream"
"""Error kind of a stream that violates the protocol."""

_Event: TypeAlias = dict[str, Any]
_KNOWN_EVENTS: Final = frozenset(
    {
        "content_block_delta",
        "content_block_start",
        "content_block_stop",
        "error",
        "message_delta",
        "message_start",
        "message_stop",
    }
)
RESPONSE_EVENTS: Final = _KNOWN_EVENTS - {"error"}
"""The API events that a response consists of."""
_Default = TypeVar("_Default", str, str | None)
_JSON_DECODER: Final = msgspec.json.Decoder()


def decode_event(sse_event: SseEvent) -> dict[str, Any] | None:
    """Return the API event in a server-sent event; None if it is irrelevant.

    Raises:
        ApiError: the data is not a JSON object but should be one.
    """
    try:
        value: Any = _JSON_DECODER.decode(sse_event.data)
    except DECODE_ERRORS:
        value = decode_lenient(sse_event.data.encode("utf-8", "replace"))
    if isinstance(value, dict):
        event = cast("dict[str, Any]", value)
        # Some servers only set the name of the server-sent event.
        return event if "type" in event else {"type": sse_event.event, **event}
    if sse_event.event in _KNOWN_EVENTS or sse_event.event == "message":
        raise _protocol_error(f"the data of {sse_event.event} is not a JSON object")
    return None


class ResponseAssembler:
    """Assembles one response.

    `feed` takes decoded events and returns stream events. `started` is set by the first event, `done` by the last one.
    """

    def __init__(self, request_id: str = "") -> None:
        self.request_id = request_id
        self.started = False
        self.done = False
        self._id = ""
        self._model = ""
        self._open_blocks: dict[int, _OpenBlock] = {}
        self._finished_blocks: dict[int, Block] = {}
        self._stop_reason: str | None = None
        self._stop_sequence: str | None = None
        self._usage: dict[str, Any] = {}

    @property
    def finished_block_count(self) -> int:
        """Number of finished blocks."""
        return len(self._finished_blocks)

    def feed(self, event: dict[str, Any]) -> list[StreamEvent]:
        """Process the next API event; unknown types are ignored.

        Raises:
            ApiError: the event is an error, or out of order.
        """
        kind = event.get("type")
        if self.done or not isinstance(kind, str) or kind not in _KNOWN_EVENTS:
            return []
        if kind == "error":
            raise self._error(event)
        if self.started == (kind == "message_start"):
            raise _protocol_error(f"{kind} received {'twice' if self.started else 'before message_start'}")
        match kind:
            case "message_start":
                return self._message_start(event)
            case "content_block_start":
                return self._block_start(event)
            case "content_block_delta":
                return self._block_delta(event)
            case "content_block_stop":
                return self._block_stop(event)
            case "message_delta":
                return self._message_delta(event)
            case _:
                return self._message_stop()

    def partial_response(self) -> Response:
        """Return the response so far: finished blocks, and the text of unfinished ones.

        Unfinished tool calls and thinking cannot be sent back and are left out, as is blank text.
        """
        blocks = dict(self._finished_blocks)
        for index, open_block in self._open_blocks.items():
            block, _ = open_block.close()
            if block["type"] == "text" and _get_text_or(block, "text", "").strip():
                blocks[index] = block
        return self._response(blocks)

    def _response(self, blocks: dict[int, Block]) -> Response:
        return Response(
            id=self._id,
            model=self._model,
            blocks=[blocks[index] for index in sorted(blocks)],
            stop_reason=self._stop_reason,
            stop_sequence=self._stop_sequence,
            usage=self._usage,
            request_id=self.request_id,
        )

    # Handlers by event type

    def _message_start(self, event: _Event) -> list[StreamEvent]:
        message = _get_object(event, "message")
        self.started = True
        self._id = _get_text(message, "id")
        self._model = _get_text(message, "model")
        self._usage = _merge_usage({}, _get_object(message, "usage", {}))
        return [ResponseStarted(self._id, self._model)]

    def _block_start(self, event: _Event) -> list[StreamEvent]:
        index = _block_index(event)
        if index in self._open_blocks or index in self._finished_blocks:
            raise _protocol_error(f"block {index} started twice")
        content_block = _get_object(event, "content_block")
        if not isinstance(content_block.get("type"), str):
            raise _protocol_error(f"block {index} has no type")
        events: list[StreamEvent] = [BlockStarted(index, dict(content_block))]
        # Most servers start with empty text; others put the first text here.
        if content_block["type"] == "text" and (text := _get_text_or(content_block, "text", "")):
            events.append(TextDelta(index, text))
        if content_block["type"] == "thinking" and (text := _get_text_or(content_block, "thinking", "")):
            events.append(ThinkingDelta(index, text))
        self._open_blocks[index] = _OpenBlock(content_block)
        return events

    def _block_delta(self, event: _Event) -> list[StreamEvent]:
        index = _block_index(event)
        open_block = self._open_blocks.get(index)
        if open_block is None:
            raise _protocol_error(f"delta for block {index}, which is not open")
        return open_block.apply_delta(index, _get_object(event, "delta"))

    def _block_stop(self, event: _Event) -> list[StreamEvent]:
        index = _block_index(event)
        open_block = self._open_blocks.pop(index, None)
        if open_block is None:
            raise _protocol_error(f"stop of block {index}, which is not open")
        block, bad_input = open_block.close()
        self._finished_blocks[index] = block
        return [BlockFinished(index, block, bad_input)]

    def _message_delta(self, event: _Event) -> list[StreamEvent]:
        delta = _get_object(event, "delta", {})
        self._stop_reason = _get_text_or(delta, "stop_reason", self._stop_reason)
        self._stop_sequence = _get_text_or(delta, "stop_sequence", self._stop_sequence)
        self._usage = _merge_usage(self._usage, _get_object(event, "usage", {}))
        return []

    def _message_stop(self) -> list[StreamEvent]:
        if self._open_blocks:
            raise _protocol_error(f"message_stop before the end of block {min(self._open_blocks)}")
        self.done = True
        return [ResponseFinished(self._response(self._finished_blocks))]

    def _error(self, event: _Event) -> ApiError:
        error = _get_object(event, "error", {})
        kind = _get_text_or(error, "type", "") or "api_error"
        return ApiError(
            _get_text_or(error, "message", "") or "the API ended the stream with an error without a message",
            status=status_for_kind(kind),
            kind=kind,
            request_id=_get_text_or(event, "request_id", "") or self.request_id,
        )


class _OpenBlock:
    """An unfinished block."""

    __slots__ = ("_block", "_grown", "_input")

    def __init__(self, block: Block) -> None:
        self._block = dict(block)
        self._grown: dict[str, list[str]] = {}
        self._input: list[str] = []

    def apply_delta(self, index: int, delta: _Event) -> list[StreamEvent]:
        match delta.get("type"):
            case "text_delta":
                text = self._append_text(index, delta, "text")
                return [TextDelta(index, text)] if text else []
            case "thinking_delta":
                text = self._append_text(index, delta, "thinking")
                return [ThinkingDelta(index, text)] if text else []
            case "signature_delta":
                self._expect_type(index, "thinking")
                # A signature is never split: a second one replaces the first.
                self._block["signature"] = _get_text(delta, "signature")
            case "input_json_delta":
                if not self._is_call():
                    raise _protocol_error(f"input for block {index}, which is not a tool call")
                text = _get_text(delta, "partial_json")
                self._input.append(text)
                return [InputDelta(index, text)] if text else []
            case "citations_delta":
                self._expect_type(index, "text")
                old = self._block.get("citations")
                citations = cast("list[Any]", old) if isinstance(old, list) else []
                self._block["citations"] = [*citations, _get_object(delta, "citation")]
            case _:
                pass
        return []

    def close(self) -> tuple[Block, str | None]:
        """Return the current block, and its input text if that is not a JSON object."""
        block = dict(self._block)
        for key, texts in self._grown.items():
            block[key] = "".join(texts)
        if not self._is_call():
            return block, None
        block["input"], bad_input = _parse_input(block.get("input"), "".join(self._input))
        return block, bad_input

    def _is_call(self) -> bool:
        return self._block["type"].endswith("tool_use")

    def _expect_type(self, index: int, kind: str) -> None:
        if self._block["type"] != kind:
            raise _protocol_error(f"{kind} delta for block {index}, which is not a {kind} block")

    def _append_text(self, index: int, delta: _Event, field: str) -> str:
        self._expect_type(index, field)
        text = _get_text(delta, field)
        if field not in self._grown:
            self._grown[field] = [_get_text_or(self._block, field, "")]
        self._grown[field].append(text)
        return text


def _parse_input(initial_input: object, text: str) -> tuple[dict[str, Any], str | None]:
    """Return the input of a tool call, and its text if it is not a JSON object."""
    value: Any = initial_input
    if text:
        try:
            value = _JSON_DECODER.decode(text)
        except DECODE_ERRORS:
            return {}, text
    if isinstance(value, dict):
        return cast("dict[str, Any]", value), None
    if not text and value is None:
        return {}, None
    return {}, text or msgspec.json.encode(value).decode()


def _merge_usage(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Merge newer usage fields into older ones; null does not replace a value."""
    merged = dict(old)
    for key, value in new.items():
        previous = merged.get(key)
        if isinstance(value, dict) and isinstance(previous, dict):
            inner = cast("dict[str, Any]", previous)
            merged[key] = _merge_usage(inner, cast("dict[str, Any]", value))
        elif value is not None or previous is None:
            merged[key] = value
    return merged


# Validation of server data


def _protocol_error(message: str) -> ApiError:
    return ApiError(f"invalid stream: {message}", kind=BAD_STREAM)


def _block_index(event: _Event) -> int:
    index = event.get("index")
    if isinstance(index, bool) or not isinstance(index, int) or index < 0:
        raise _protocol_error("block without a valid index")
    return index


def _get_object(event: _Event, key: str, default: dict[str, Any] | None = None) -> dict[str, Any]:
    value = event.get(key)
    if value is None and default is not None:
        return default
    if not isinstance(value, dict):
        raise _protocol_error(f"{key} is not an object")
    return cast("dict[str, Any]", value)


def _get_text(event: _Event, key: str) -> str:
    value = event.get(key)
    if not isinstance(value, str):
        raise _protocol_error(f"{key} is not a string")
    return value


def _get_text_or(event: _Event, key: str, default: _Default) -> str | _Default:
    return default if event.get(key) is None else _get_text(event, key)
