"""Requests and replies of responders, and the encoding of replies and errors as the API sends them."""

import asyncio
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from steno.format.encode import encode
from steno.format.lenient_json import as_list, as_object
from steno.llm.retry_policy import ERROR_STATUSES

ERROR_KINDS: Final = {
    **{status: kind for kind, status in ERROR_STATUSES.items()},
    405: "invalid_request_error",
    409: "conflict_error",
}
"""Error types by HTTP status."""
_SERVER_ERRORS: Final = 500
_DEFAULT_MESSAGES: Final = {
    401: "invalid x-api-key",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    413: "Request exceeds the maximum size",
    429: "This request would exceed your rate limit",
    500: "Internal server error",
    504: "The request timed out",
    529: "Overloaded",
}


class Refusal(msgspec.Struct, frozen=True):
    """The reason why a request is refused."""

    message: str
    status: int = 400
    kind: str = ""

    def body(self, request_id: str) -> dict[str, Any]:
        """Return the error body that the API sends."""
        return error_body(self.status, self.kind, self.message, request_id)


def error_kind(status: int) -> str:
    """Return the error type of an HTTP status."""
    return ERROR_KINDS.get(status) or ("invalid_request_error" if status < _SERVER_ERRORS else "api_error")


def error_body(status: int, kind: str, message: str, request_id: str) -> dict[str, Any]:
    """Return an error body; missing fields are derived from the status."""
    text = message or _DEFAULT_MESSAGES.get(status, "Error")
    error = {"type": kind or error_kind(status), "message": text}
    return {"type": "error", "error": error, "request_id": request_id}


_REMINDER_TAG: Final = "<system-reminder>"


class ResponderRequest(msgspec.Struct, frozen=True):
    """One request to a responder."""

    body: dict[str, Any]
    number: int = 1
    """Number of the request to the messages endpoint, from 1."""
    headers: dict[str, str] = {}

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages of the request."""
        return [as_object(message) or {} for message in as_list(self.body.get("messages")) or ()]

    @property
    def prompt(self) -> str:
        """The last prompt, without reminders and tool results."""
        index = self._prompt_index
        return user_text(self.messages[index]) if index >= 0 else ""

    @property
    def reply_count(self) -> int:
        """Number of responses after the last prompt."""
        messages_after = self.messages[self._prompt_index + 1 :]
        return sum(message.get("role") == "assistant" for message in messages_after)

    @property
    def prompt_is_last(self) -> bool:
        """Whether the last user message contains a prompt."""
        return all(message.get("role") != "user" for message in self.messages[self._prompt_index + 1 :])

    @property
    def _prompt_index(self) -> int:
        messages = self.messages
        indexes = range(len(messages) - 1, -1, -1)
        user_indexes = (index for index in indexes if messages[index].get("role") == "user")
        return next((at for at in user_indexes if user_text(messages[at])), -1)

    @property
    def results(self) -> list[dict[str, Any]]:
        """The tool results in the last user message."""
        user_messages = [message for message in self.messages if message.get("role") == "user"]
        blocks = as_list(user_messages[-1].get("content")) if user_messages else None
        content_blocks = [as_object(each) or {} for each in blocks or ()]
        return [each for each in content_blocks if each.get("type") == "tool_result"]


def user_text(message: dict[str, Any]) -> str:
    """Return the text of a message, without reminders."""
    content = message.get("content")
    if isinstance(content, str):
        texts: list[Any] = [content]
    else:
        blocks = [as_object(content_block) or {} for content_block in as_list(content) or ()]
        texts = [each.get("text") for each in blocks if each.get("type") == "text"]
    stripped = (each.strip() for each in texts if isinstance(each, str))
    return "\n".join(each for each in stripped if each and not each.startswith(_REMINDER_TAG))


class Pause(msgspec.Struct, frozen=True):
    """A pause before the next part of a reply, in seconds of the server's clock."""

    seconds: float


class Ping(msgspec.Struct, frozen=True):
    """A ping event in a stream."""


PING: Final = Ping()


class ReleaseEvent:
    """A point where a reply waits until it is released, from any thread or event loop."""

    def __init__(self) -> None:
        self._reached: Future[None] = Future()
        self._opened: Future[None] = Future()

    def release(self) -> None:
        """Release the reply, now or when it arrives."""
        if not self._opened.done():
            self._opened.set_result(None)

    def wait_reached(self, timeout: float = 30) -> None:
        """Block until a reply waits here.

        Raises:
            TimeoutError: no reply arrived in `timeout` seconds.
        """
        self._reached.result(timeout)

    async def wait_until_reached(self) -> None:
        """Wait asynchronously until a reply waits here."""
        await asyncio.shield(asyncio.wrap_future(self._reached))

    async def wait_for_release(self) -> None:
        """Wait for the release; called by the server."""
        if not self._reached.done():
            self._reached.set_result(None)
        # Shielded: cancelling one waiter must not release the others.
        await asyncio.shield(asyncio.wrap_future(self._opened))


Wait: TypeAlias = Pause | ReleaseEvent | Ping


class ReplyBlock(msgspec.Struct, frozen=True):
    """One block of a reply, and the pieces in which it is streamed, with waits between them."""

    block: dict[str, Any]
    pieces: tuple[str | Wait, ...] = ()
    """Pieces of text, thinking or input JSON; empty to split the block automatically."""


ReplyItem: TypeAlias = ReplyBlock | Wait


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A reply of the model, and how it is sent."""

    content: tuple[ReplyItem, ...] = ()
    stop_reason: str = ""
    """Defaults to `tool_use` if a tool is called, else `end_turn`."""
    stop_sequence: str | None = None
    usage: dict[str, Any] = {}
    """Usage fields that replace the computed ones."""
    model: str = ""
    id: str = ""
    after: Wait | None = None
    """A wait before anything is sent, including headers."""
    cut_after: int | None = None
    """Number of body bytes after which the connection is closed."""
    breaks: "ErrorReply | None" = None
    """An error that ends the stream."""


class ErrorReply(msgspec.Struct, frozen=True, kw_only=True):
    """An error instead of a reply; with status 0 the connection is closed without a response."""

    status: int = 500
    kind: str = ""
    message: str = ""
    headers: dict[str, str] = {}
    after: Wait | None = None


Answer: TypeAlias = Reply | ErrorReply


class Responder(Protocol):
    """Produces the replies of the server."""

    def answer(self, request: ResponderRequest) -> Answer:
        """Return the reply to a request; called once for each accepted request."""
        ...

    def accepts_thinking(self, thinking: str, signature: str) -> bool:
        """Return whether to accept thinking that the server did not sign."""
        ...


def text(*pieces: str | Wait) -> ReplyBlock:
    """Return a text block; each piece is sent separately, with the waits between them."""
    return ReplyBlock({"type": "text", "text": _joined_text(pieces)}, pieces if len(pieces) > 1 else ())


def thinking(*pieces: str | Wait, signature: str = "") -> ReplyBlock:
    """Return a thinking block; the server signs it if no signature is given."""
    block = {"type": "thinking", "thinking": _joined_text(pieces), "signature": signature}
    return ReplyBlock(block, pieces if len(pieces) > 1 else ())


def redacted_thinking(data: str = "EmwKAhgBEgy3va3pzix/LafPsn4=") -> ReplyBlock:
    """Return a redacted thinking block."""
    return ReplyBlock({"type": "redacted_thinking", "data": data})


def tool(name: str, /, tool_id: str = "", **arguments: object) -> ReplyBlock:
    """Return a tool call; the server assigns an ID if none is given."""
    return ReplyBlock({"type": "tool_use", "id": tool_id, "name": name, "input": arguments})


def invalid_tool_call(name: str, raw: str, /, tool_id: str = "") -> ReplyBlock:
    """Return a tool call with raw input text, valid JSON or not; without streaming the input is `{}`."""
    call = {"type": "tool_use", "id": tool_id, "name": name, "input": dict[str, object]()}
    return ReplyBlock(call, (raw,))


def search(
    query: str, /, *found_pages: tuple[str, str], tool_id: str = "", error_code: str = ""
) -> tuple[ReplyBlock, ReplyBlock]:
    """Return a server-side web search and its results, as pairs of title and URL.

    Both blocks belong to one reply: `[*search("tides", ("Tides", "https://…")), "They turn."]`.
    """
    from base64 import b64encode

    call = {"type": "server_tool_use", "id": tool_id, "name": "web_search"}
    results: Any = [
        {
            "type": "web_search_result",
            "title": title,
            "url": url,
            "encrypted_content": b64encode(url.encode()).decode(),
            "page_age": None,
        }
        for title, url in found_pages
    ]
    if error_code:
        results = {"type": "web_search_tool_result_error", "error_code": error_code}
    # A result without an ID gets that of the preceding call.
    result = {"type": "web_search_tool_result", "tool_use_id": tool_id, "content": results}
    return ReplyBlock({**call, "input": {"query": query}}), ReplyBlock(result)


_STATUS: Final = {kind: status for status, kind in ERROR_KINDS.items()}


def error_reply(
    status: int | str = 529,
    message: str = "",
    *,
    kind: str = "",
    retry_after: float | None = None,
    after: Wait | None = None,
) -> ErrorReply:
    """Return an error by its HTTP status or error type."""
    if isinstance(status, str):
        kind, status = status, _STATUS.get(status, 500)
    headers = {} if retry_after is None else {"retry-after": f"{retry_after:g}"}
    return ErrorReply(status=status, kind=kind, message=message, headers=headers, after=after)


def cut_reply(content: Iterable[ReplyItem], after: int) -> Reply:
    """Return a reply whose connection is closed after some bytes of its body."""
    return Reply(content=tuple(content), cut_after=after)


def refusal_reply(refusal_text: str = "") -> Reply:
    """Return a reply with stop reason `refusal`."""
    return Reply(content=(text(refusal_text),) if refusal_text else (), stop_reason="refusal")


def _joined_text(pieces: Iterable[str | Wait]) -> str:
    return "".join(piece for piece in pieces if isinstance(piece, str))


_PIECE_COUNT: Final = 8
_MIN_PIECE: Final = 12
_FINAL_USAGE_FIELDS: Final = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")


class ReplyMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A reply with the fields that the server adds."""

    id: str
    model: str
    content: tuple[ReplyBlock | Wait, ...]
    stop_reason: str
    usage: dict[str, Any]
    """The final usage."""
    reply: Reply
    request_id: str

    @property
    def blocks(self) -> list[dict[str, Any]]:
        """The complete blocks."""
        return [item.block for item in self.content if isinstance(item, ReplyBlock)]


def message_body(message: ReplyMessage) -> dict[str, Any]:
    """Return the body of a response without streaming."""
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


def stream_events(message: ReplyMessage) -> Iterator[bytes | Wait]:
    """Yield the events of a streamed response, and the waits between them."""
    initial_fields: dict[str, Any] = {"content": [], "stop_reason": None, "stop_sequence": None}
    usage = {**message.usage, "output_tokens": 1}
    yield encode_event("message_start", message={**message_body(message), **initial_fields, "usage": usage})
    index = 0
    for item in message.content:
        if not isinstance(item, ReplyBlock):
            yield encode_event("ping") if isinstance(item, Ping) else item
            continue
        yield from _block_events(item, index)
        index += 1
    if message.reply.breaks is not None:
        failure = message.reply.breaks
        yield encode_event("error", **error_body(failure.status, failure.kind, failure.message, message.request_id))
        return
    stop_fields = {"stop_reason": message.stop_reason, "stop_sequence": message.reply.stop_sequence}
    final_usage = {key: message.usage[key] for key in _FINAL_USAGE_FIELDS if key in message.usage}
    yield encode_event("message_delta", delta=stop_fields, usage=final_usage)
    yield encode_event("message_stop")


def encode_event(name: str, **fields: Any) -> bytes:
    """Return one encoded server-sent event."""
    data = encode({"type": name, **fields})
    return b"event: %b\ndata: %b\n\n" % (name.encode("ascii"), data)


def _block_events(reply_block: ReplyBlock, index: int) -> Iterator[bytes | Wait]:
    yield encode_event("content_block_start", index=index, content_block=_block_start(reply_block.block))
    if not index:
        yield encode_event("ping")
    for piece in _block_pieces(reply_block):
        if isinstance(piece, Ping):
            yield encode_event("ping")
        elif isinstance(piece, str):
            yield encode_event("content_block_delta", index=index, delta=_block_delta(reply_block.block, piece))
        else:
            yield piece
    if reply_block.block.get("type") == "thinking":
        signature_delta = {"type": "signature_delta", "signature": reply_block.block.get("signature", "")}
        yield encode_event("content_block_delta", index=index, delta=signature_delta)
    yield encode_event("content_block_stop", index=index)


def _block_start(block: dict[str, Any]) -> dict[str, Any]:
    match block.get("type"):
        case "text":
            return {**block, "text": ""}
        case "thinking":
            return {**block, "thinking": "", "signature": ""}
        case "tool_use" | "server_tool_use":
            return {**block, "input": {}}
        case _:
            return block


def _block_pieces(reply_block: ReplyBlock) -> Iterator[str | Wait]:
    match reply_block.block.get("type"):
        case "text":
            full_text = reply_block.block["text"]
        case "thinking":
            full_text = reply_block.block["thinking"]
        case "tool_use" | "server_tool_use":
            yield ""
            full_text = encode(reply_block.block["input"]).decode() if reply_block.block["input"] else ""
        case _:
            return
    yield from reply_block.pieces or _split_text(str(full_text))


def _split_text(text: str) -> Iterator[str]:
    size = max(_MIN_PIECE, -(-len(text) // _PIECE_COUNT))
    yield from (text[start : start + size] for start in range(0, len(text), size))


def _block_delta(block: dict[str, Any], piece: str) -> dict[str, str]:
    match block.get("type"):
        case "text":
            return {"type": "text_delta", "text": piece}
        case "thinking":
            return {"type": "thinking_delta", "thinking": piece}
        case _:
            return {"type": "input_json_delta", "partial_json": piece}
