"""The events of the API's stream → our events, and the response they make together.

What comes out of a block is what is sent back later, so nothing of it is touched that need not be:
fields nobody knows stay, and thinking keeps its signature to the byte.
"""

from typing import Any, Final, TypeAlias, TypeVar, cast

import msgspec

from steno.format.loose import REFUSED, loose
from steno.model.events import (
    BlockEnded,
    BlockStarted,
    Ended,
    Event,
    InputGrew,
    Started,
    TextGrew,
    ThinkingGrew,
)
from steno.model.retry import status_of
from steno.model.sse import Sse
from steno.model.wire import ApiError, Block, Response

__all__ = ["BAD_STREAM", "TOLD", "Assembly", "event_of"]

BAD_STREAM: Final = "bad_stream"
"""The kind of error for a stream that does not keep to the protocol."""

_Event: TypeAlias = dict[str, Any]
_KNOWN: Final = frozenset(
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
TOLD: Final = _KNOWN - {"error"}
"""The events of the API that an answer is made of."""
_Default = TypeVar("_Default", str, str | None)
_JSON: Final = msgspec.json.Decoder()


def event_of(sse: Sse) -> dict[str, Any] | None:
    """Return the API's event in an event of the stream; None when it is nothing to us.

    Raises:
        ApiError: the data is no JSON object although it should be.
    """
    try:
        value: Any = _JSON.decode(sse.data)
    except REFUSED:
        value = loose(sse.data.encode("utf-8", "replace"))
    if isinstance(value, dict):
        event = cast("dict[str, Any]", value)
        # Some servers name the event only where the stream does.
        return event if "type" in event else {"type": sse.event, **event}
    if sse.event in _KNOWN or sse.event == "message":
        raise _bad(f"the data of {sse.event} is no JSON object")
    return None


class Assembly:
    """Puts one response together.

    `take` is given the decoded events one by one and returns what they mean. `started` says
    whether anything has come, `whole_blocks` how many blocks are finished, `done` whether the
    response is.
    """

    def __init__(self, request_id: str = "") -> None:
        self.request_id = request_id
        self.started = False
        self.done = False
        self._id = ""
        self._model = ""
        self._open: dict[int, _Open] = {}
        self._whole: dict[int, Block] = {}
        self._stop_reason: str | None = None
        self._stop_sequence: str | None = None
        self._usage: dict[str, Any] = {}

    @property
    def whole_blocks(self) -> int:
        """How many blocks are finished."""
        return len(self._whole)

    def take(self, event: dict[str, Any]) -> list[Event]:
        """Take the next event of the API; events of unknown types mean nothing.

        Raises:
            ApiError: it is an error, or it does not fit what came before.
        """
        kind = event.get("type")
        if self.done or not isinstance(kind, str) or kind not in _KNOWN:
            return []
        if kind == "error":
            raise self._error(event)
        if self.started == (kind == "message_start"):
            raise _bad(f"{kind} came {'twice' if self.started else 'before message_start'}")
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

    def partial(self) -> Response:
        """Return what there is so far: whole blocks, and the text of one that is not.

        A call or a thought that is not whole cannot be sent back and is left out, and so is text
        of nothing but blanks.
        """
        blocks = dict(self._whole)
        for index, part in self._open.items():
            block, _ = part.close()
            if block["type"] == "text" and _text_or(block, "text", "").strip():
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

    def _message_start(self, event: _Event) -> list[Event]:
        message = _object(event, "message")
        self.started = True
        self._id = _text(message, "id")
        self._model = _text(message, "model")
        self._usage = _merged({}, _object(message, "usage", {}))
        return [Started(self._id, self._model)]

    def _block_start(self, event: _Event) -> list[Event]:
        index = _index(event)
        if index in self._open or index in self._whole:
            raise _bad(f"block {index} began twice")
        block = _object(event, "content_block")
        if not isinstance(block.get("type"), str):
            raise _bad(f"block {index} has no type")
        events: list[Event] = [BlockStarted(index, dict(block))]
        # Most servers begin with an empty text; to those who watch it is the same if not.
        if block["type"] == "text" and (text := _text_or(block, "text", "")):
            events.append(TextGrew(index, text))
        if block["type"] == "thinking" and (text := _text_or(block, "thinking", "")):
            events.append(ThinkingGrew(index, text))
        self._open[index] = _Open(block)
        return events

    def _block_delta(self, event: _Event) -> list[Event]:
        index = _index(event)
        part = self._open.get(index)
        if part is None:
            raise _bad(f"block {index} grew but is not open")
        return part.grow(index, _object(event, "delta"))

    def _block_stop(self, event: _Event) -> list[Event]:
        index = _index(event)
        part = self._open.pop(index, None)
        if part is None:
            raise _bad(f"block {index} ended but is not open")
        block, bad_input = part.close()
        self._whole[index] = block
        return [BlockEnded(index, block, bad_input)]

    def _message_delta(self, event: _Event) -> list[Event]:
        delta = _object(event, "delta", {})
        self._stop_reason = _text_or(delta, "stop_reason", self._stop_reason)
        self._stop_sequence = _text_or(delta, "stop_sequence", self._stop_sequence)
        self._usage = _merged(self._usage, _object(event, "usage", {}))
        return []

    def _message_stop(self) -> list[Event]:
        if self._open:
            raise _bad(f"the response ended but block {min(self._open)} did not")
        self.done = True
        return [Ended(self._response(self._whole))]

    def _error(self, event: _Event) -> ApiError:
        error = _object(event, "error", {})
        kind = _text_or(error, "type", "") or "api_error"
        return ApiError(
            _text_or(error, "message", "") or "the API broke the stream off without a word",
            status=status_of(kind),
            kind=kind,
            request_id=_text_or(event, "request_id", "") or self.request_id,
        )


class _Open:
    """A block that is still growing."""

    __slots__ = ("_block", "_grown", "_input")

    def __init__(self, block: Block) -> None:
        self._block = dict(block)
        self._grown: dict[str, list[str]] = {}
        self._input: list[str] = []

    def grow(self, index: int, delta: _Event) -> list[Event]:
        match delta.get("type"):
            case "text_delta":
                text = self._more(index, delta, "text")
                return [TextGrew(index, text)] if text else []
            case "thinking_delta":
                text = self._more(index, delta, "thinking")
                return [ThinkingGrew(index, text)] if text else []
            case "signature_delta":
                self._expect(index, "thinking")
                # It comes whole: a second one would be another signature, not the rest of it.
                self._block["signature"] = _text(delta, "signature")
            case "input_json_delta":
                if not self._is_call():
                    raise _bad(f"block {index} has input but is no call")
                text = _text(delta, "partial_json")
                self._input.append(text)
                return [InputGrew(index, text)] if text else []
            case "citations_delta":
                self._expect(index, "text")
                old = self._block.get("citations")
                before = cast("list[Any]", old) if isinstance(old, list) else []
                self._block["citations"] = [*before, _object(delta, "citation")]
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
        block["input"], bad_input = _input_of(block.get("input"), "".join(self._input))
        return block, bad_input

    def _is_call(self) -> bool:
        return self._block["type"].endswith("tool_use")

    def _expect(self, index: int, kind: str) -> None:
        if self._block["type"] != kind:
            raise _bad(f"block {index} is no {kind} block but grew as one")

    def _more(self, index: int, delta: _Event, key: str) -> str:
        self._expect(index, key)
        text = _text(delta, key)
        if key not in self._grown:
            self._grown[key] = [_text_or(self._block, key, "")]
        self._grown[key].append(text)
        return text


def _input_of(begun_with: object, text: str) -> tuple[dict[str, Any], str | None]:
    """Return the input of a call, and the text of it if that is no JSON object."""
    value: Any = begun_with
    if text:
        try:
            value = _JSON.decode(text)
        except REFUSED:
            return {}, text
    if isinstance(value, dict):
        return cast("dict[str, Any]", value), None
    if not text and value is None:
        return {}, None
    return {}, text or msgspec.json.encode(value).decode()


def _merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return figures with newer ones laid over them; a figure that is null says nothing."""
    merged = dict(old)
    for key, value in new.items():
        before = merged.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            inner = cast("dict[str, Any]", before)
            merged[key] = _merged(inner, cast("dict[str, Any]", value))
        elif value is not None or before is None:
            merged[key] = value
    return merged


# What a server sends is looked at before it is believed


def _bad(message: str) -> ApiError:
    return ApiError(f"the stream is broken: {message}", kind=BAD_STREAM)


def _index(event: _Event) -> int:
    index = event.get("index")
    if isinstance(index, bool) or not isinstance(index, int) or index < 0:
        raise _bad("a block has no number")
    return index


def _object(event: _Event, key: str, default: dict[str, Any] | None = None) -> dict[str, Any]:
    value = event.get(key)
    if value is None and default is not None:
        return default
    if not isinstance(value, dict):
        raise _bad(f"{key} is no object")
    return cast("dict[str, Any]", value)


def _text(event: _Event, key: str) -> str:
    value = event.get(key)
    if not isinstance(value, str):
        raise _bad(f"{key} is no text")
    return value


def _text_or(event: _Event, key: str, default: _Default) -> str | _Default:
    return default if event.get(key) is None else _text(event, key)
