r"""Decodes a streamed response: server-sent events → our events, and the assembled response.

Fields of a block that nobody knows stay, and thinking keeps its signature to the byte, because
blocks are sent back later.

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
"""The most bytes one event may have; results of the API's own tools come whole in one."""

_LINE_END: Final = re.compile(rb"\r\n|\n|\r")
_BOM: Final = b"\xef\xbb\xbf"
_LINE_FEED: Final = 0x0A


class SseEvent(msgspec.Struct, frozen=True):
    """One event: its name (`message` where it has none) and its data."""

    event: str
    data: str


class SseParser:
    """Reads a stream of events piece by piece.

    An event that the stream ends in the middle of is never given. When one is larger than `max_bytes`
    bytes, `overflowed` is set and nothing more is read.
    """

    __slots__ = ("_after_cr", "_begun", "_data", "_event", "_held", "_most", "_size", "overflowed")

    def __init__(self, *, max_bytes: int = MAX_EVENT_BYTES) -> None:
        self._most = max_bytes
        self._held = bytearray()  # the beginning of a line
        self._after_cr = False
        self._begun = False
        self._event = b""
        self._data: list[bytes] = []
        self._size = 0
        self.overflowed = False

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Read some more bytes and return the events that are whole now."""
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
        # What is left is comments, and fields for those who connect again by themselves.

    def _emit(self, events: list[SseEvent]) -> None:
        if self._data:
            name = self._event.decode("utf-8", "replace") or "message"
            events.append(SseEvent(name, b"\n".join(self._data).decode("utf-8", "replace")))
        self._event = b""
        self._data = []
        self._size = 0


class ResponseStarted(msgspec.Struct, frozen=True):
    """The response has begun."""

    id: str
    model: str


class BlockStarted(msgspec.Struct, frozen=True):
    """A block of the response has begun: its kind, and for a call its name and id."""

    index: int
    block: Block


class TextDelta(msgspec.Struct, frozen=True):
    """More of an answer's text."""

    index: int
    text: str


class ThinkingDelta(msgspec.Struct, frozen=True):
    """More of what the model thinks."""

    index: int
    text: str


class InputDelta(msgspec.Struct, frozen=True):
    """More of the JSON of a call's input."""

    index: int
    text: str


class BlockFinished(msgspec.Struct, frozen=True):
    """A block is whole, as it is recorded and sent back.

    `bad_input` holds the text of a call's input that is no JSON object; the block's `input` is
    then `{}`.
    """

    index: int
    block: Block
    bad_input: str | None = None


class ResponseFinished(msgspec.Struct, frozen=True):
    """The response is whole."""

    response: Response


class RetryScheduled(msgspec.Struct, frozen=True):
    """A request failed and will be made again after a pause."""

    attempt: int
    of: int
    delay: float
    error: ApiError


class ApiEvent(msgspec.Struct, frozen=True):
    """An event of the API as it came, ahead of what it means; only for those who ask for it."""

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
"""The kind of error for a stream that does not keep to the protocol."""

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
"""The events of the API that an answer is made of."""
_Default = TypeVar("_Default", str, str | None)
_JSON_DECODER: Final = msgspec.json.Decoder()


def decode_event(sse_event: SseEvent) -> dict[str, Any] | None:
    """Return the API's event in an event of the stream; None when it is nothing to us.

    Raises:
        ApiError: the data is no JSON object although it should be.
    """
    try:
        value: Any = _JSON_DECODER.decode(sse_event.data)
    except DECODE_ERRORS:
        value = decode_lenient(sse_event.data.encode("utf-8", "replace"))
    if isinstance(value, dict):
        event = cast("dict[str, Any]", value)
        # Some servers name the event only where the stream does.
        return event if "type" in event else {"type": sse_event.event, **event}
    if sse_event.event in _KNOWN_EVENTS or sse_event.event == "message":
        raise _protocol_error(f"the data of {sse_event.event} is no JSON object")
    return None


class ResponseAssembler:
    """Puts one response together.

    `feed` is given the decoded events one by one and returns what they mean. `started` says
    whether anything has come, `finished_block_count` how many blocks are finished, `done` whether the
    response is.
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
        """How many blocks are finished."""
        return len(self._finished_blocks)

    def feed(self, event: dict[str, Any]) -> list[StreamEvent]:
        """Take the next event of the API; events of unknown types mean nothing.

        Raises:
            ApiError: it is an error, or it does not fit what came before.
        """
        kind = event.get("type")
        if self.done or not isinstance(kind, str) or kind not in _KNOWN_EVENTS:
            return []
        if kind == "error":
            raise self._error(event)
        if self.started == (kind == "message_start"):
            raise _protocol_error(f"{kind} came {'twice' if self.started else 'before message_start'}")
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
        """Return what there is so far: whole blocks, and the text of one that is not.

        A call or a thought that is not whole cannot be sent back and is left out, and so is text
        of nothing but blanks.
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

    # One function for each type of event

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
            raise _protocol_error(f"block {index} began twice")
        content_block = _get_object(event, "content_block")
        if not isinstance(content_block.get("type"), str):
            raise _protocol_error(f"block {index} has no type")
        events: list[StreamEvent] = [BlockStarted(index, dict(content_block))]
        # Most servers begin with an empty text; to those who watch it is the same if not.
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
            raise _protocol_error(f"block {index} grew but is not open")
        return open_block.apply_delta(index, _get_object(event, "delta"))

    def _block_stop(self, event: _Event) -> list[StreamEvent]:
        index = _block_index(event)
        open_block = self._open_blocks.pop(index, None)
        if open_block is None:
            raise _protocol_error(f"block {index} ended but is not open")
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
            raise _protocol_error(f"the response ended but block {min(self._open_blocks)} did not")
        self.done = True
        return [ResponseFinished(self._response(self._finished_blocks))]

    def _error(self, event: _Event) -> ApiError:
        error = _get_object(event, "error", {})
        kind = _get_text_or(error, "type", "") or "api_error"
        return ApiError(
            _get_text_or(error, "message", "") or "the API broke the stream off without a word",
            status=status_for_kind(kind),
            kind=kind,
            request_id=_get_text_or(event, "request_id", "") or self.request_id,
        )


class _OpenBlock:
    """A block that is still growing."""

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
                # It comes whole: a second one would be another signature, not the rest of it.
                self._block["signature"] = _get_text(delta, "signature")
            case "input_json_delta":
                if not self._is_call():
                    raise _protocol_error(f"block {index} has input but is no call")
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
        """Return the block as it is now, and its input if that is no JSON object."""
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
            raise _protocol_error(f"block {index} is no {kind} block but grew as one")

    def _append_text(self, index: int, delta: _Event, field: str) -> str:
        self._expect_type(index, field)
        text = _get_text(delta, field)
        if field not in self._grown:
            self._grown[field] = [_get_text_or(self._block, field, "")]
        self._grown[field].append(text)
        return text


def _parse_input(initial_input: object, text: str) -> tuple[dict[str, Any], str | None]:
    """Return the input of a call, and the text of it if that is no JSON object."""
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
    """Return figures with newer ones laid over them; a figure that is null says nothing."""
    merged = dict(old)
    for key, value in new.items():
        previous = merged.get(key)
        if isinstance(value, dict) and isinstance(previous, dict):
            inner = cast("dict[str, Any]", previous)
            merged[key] = _merge_usage(inner, cast("dict[str, Any]", value))
        elif value is not None or previous is None:
            merged[key] = value
    return merged


# What a server sends is looked at before it is believed


def _protocol_error(message: str) -> ApiError:
    return ApiError(f"the stream is broken: {message}", kind=BAD_STREAM)


def _block_index(event: _Event) -> int:
    index = event.get("index")
    if isinstance(index, bool) or not isinstance(index, int) or index < 0:
        raise _protocol_error("a block has no number")
    return index


def _get_object(event: _Event, key: str, default: dict[str, Any] | None = None) -> dict[str, Any]:
    value = event.get(key)
    if value is None and default is not None:
        return default
    if not isinstance(value, dict):
        raise _protocol_error(f"{key} is no object")
    return cast("dict[str, Any]", value)


def _get_text(event: _Event, key: str) -> str:
    value = event.get(key)
    if not isinstance(value, str):
        raise _protocol_error(f"{key} is no text")
    return value


def _get_text_or(event: _Event, key: str, default: _Default) -> str | _Default:
    return default if event.get(key) is None else _get_text(event, key)
