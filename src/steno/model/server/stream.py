"""A reply as it goes over the wire: the events of a stream in the API's order, or one message."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from steno.format.encode import encode
from steno.model.server.minds import Ping, Reply, Said, Wait
from steno.model.server.refusals import error_body

__all__ = ["Message", "event", "events", "whole"]

_PIECES: Final = 8
_SHORTEST: Final = 12
_LATE: Final = (
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "output_tokens",
)


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A reply with everything the server adds to it."""

    id: str
    model: str
    content: tuple[Said | Wait, ...]
    stop_reason: str
    usage: dict[str, Any]
    """The figures at the end."""
    reply: Reply
    request_id: str

    @property
    def blocks(self) -> list[dict[str, Any]]:
        """The blocks as they are when they are whole."""
        return [each.block for each in self.content if isinstance(each, Said)]


def whole(message: Message) -> dict[str, Any]:
    """Return the message of a request that does not stream."""
    return {
        "model": message.model,
        "id": message.id,
        "type": "message",
        "role": "assistant",
        "content": message.blocks,
        "stop_reason": message.stop_reason,
        "stop_sequence": message.reply.stop_sequence,
        "usage": message.usage,
    }


def events(message: Message) -> Iterator[bytes | Wait]:
    """Yield the events of a stream, and the waits between them."""
    begun: dict[str, Any] = {"content": [], "stop_reason": None, "stop_sequence": None}
    usage = {**message.usage, "output_tokens": 1}
    yield event("message_start", message={**whole(message), **begun, "usage": usage})
    index = 0
    for item in message.content:
        if not isinstance(item, Said):
            yield event("ping") if isinstance(item, Ping) else item
            continue
        yield from _block(item, index)
        index += 1
    if message.reply.breaks is not None:
        failure = message.reply.breaks
        yield event(
            "error",
            **error_body(failure.status, failure.kind, failure.message, message.request_id),
        )
        return
    stop = {"stop_reason": message.stop_reason, "stop_sequence": message.reply.stop_sequence}
    late = {key: message.usage[key] for key in _LATE if key in message.usage}
    yield event("message_delta", delta=stop, usage=late)
    yield event("message_stop")


def event(name: str, **fields: Any) -> bytes:
    """Return one event of a stream."""
    data = encode({"type": name, **fields})
    return b"event: %b\ndata: %b\n\n" % (name.encode("ascii"), data)


def _block(said: Said, index: int) -> Iterator[bytes | Wait]:
    yield event("content_block_start", index=index, content_block=_opening(said.block))
    if not index:
        yield event("ping")
    for piece in _pieces(said):
        if isinstance(piece, Ping):
            yield event("ping")
        elif isinstance(piece, str):
            yield event("content_block_delta", index=index, delta=_delta(said.block, piece))
        else:
            yield piece
    if said.block.get("type") == "thinking":
        signed = {"type": "signature_delta", "signature": said.block.get("signature", "")}
        yield event("content_block_delta", index=index, delta=signed)
    yield event("content_block_stop", index=index)


def _opening(block: dict[str, Any]) -> dict[str, Any]:
    """Return a block as it begins, before the first piece of it."""
    match block.get("type"):
        case "text":
            return {**block, "text": ""}
        case "thinking":
            return {**block, "thinking": "", "signature": ""}
        case "tool_use" | "server_tool_use":
            return {**block, "input": {}}
        case _:
            return block


def _pieces(said: Said) -> Iterator[str | Wait]:
    match said.block.get("type"):
        case "text":
            whole = said.block["text"]
        case "thinking":
            whole = said.block["thinking"]
        case "tool_use" | "server_tool_use":
            yield ""
            whole = encode(said.block["input"]).decode() if said.block["input"] else ""
        case _:
            return
    yield from said.pieces or _split(str(whole))


def _split(text: str) -> Iterator[str]:
    size = max(_SHORTEST, -(-len(text) // _PIECES))
    yield from (text[at : at + size] for at in range(0, len(text), size))


def _delta(block: dict[str, Any], piece: str) -> dict[str, str]:
    match block.get("type"):
        case "text":
            return {"type": "text_delta", "text": piece}
        case "thinking":
            return {"type": "thinking_delta", "thinking": piece}
        case _:
            return {"type": "input_json_delta", "partial_json": piece}
