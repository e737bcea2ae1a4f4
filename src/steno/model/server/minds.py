"""What a mind is asked and what it answers: the values between the server and who thinks for it."""

import asyncio
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from steno.format.values import as_list, as_object
from steno.model.server.refusals import KINDS

__all__ = [
    "PING",
    "Answer",
    "Asked",
    "Failure",
    "Gate",
    "Item",
    "Mind",
    "Pause",
    "Ping",
    "Reply",
    "Said",
    "Wait",
    "bad_tool",
    "block",
    "cut",
    "error",
    "own_text",
    "redacted",
    "refuse",
    "search",
    "text",
    "thinking",
    "tool",
]

_REMINDER: Final = "<system-reminder>"


class Asked(msgspec.Struct, frozen=True):
    """One request as a mind sees it."""

    body: dict[str, Any]
    number: int = 1
    """Which request to the messages endpoint it is, from 1 on."""
    headers: dict[str, str] = {}

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation so far."""
        return [as_object(each) or {} for each in as_list(self.body.get("messages")) or ()]

    @property
    def prompt(self) -> str:
        """The last thing the user said, reminders and tool results left out."""
        at = self._prompt_at
        return own_text(self.messages[at]) if at >= 0 else ""

    @property
    def step(self) -> int:
        """How many answers there have been to that prompt."""
        later = self.messages[self._prompt_at + 1 :]
        return sum(message.get("role") == "assistant" for message in later)

    @property
    def prompt_is_last(self) -> bool:
        """Whether the user said something in their last message, beside any results."""
        return all(each.get("role") != "user" for each in self.messages[self._prompt_at + 1 :])

    @property
    def _prompt_at(self) -> int:
        messages = self.messages
        places = range(len(messages) - 1, -1, -1)
        said = (at for at in places if messages[at].get("role") == "user")
        return next((at for at in said if own_text(messages[at])), -1)

    @property
    def results(self) -> list[dict[str, Any]]:
        """The tool results in the last message of the user."""
        theirs = [each for each in self.messages if each.get("role") == "user"]
        blocks = as_list(theirs[-1].get("content")) if theirs else None
        found = [as_object(each) or {} for each in blocks or ()]
        return [each for each in found if each.get("type") == "tool_result"]


def own_text(message: dict[str, Any]) -> str:
    """Return what somebody says in a message, without the reminders put beside it."""
    content = message.get("content")
    if isinstance(content, str):
        texts: list[Any] = [content]
    else:
        blocks = [as_object(each) or {} for each in as_list(content) or ()]
        texts = [each.get("text") for each in blocks if each.get("type") == "text"]
    words = (each.strip() for each in texts if isinstance(each, str))
    return "\n".join(each for each in words if each and not each.startswith(_REMINDER))


class Pause(msgspec.Struct, frozen=True):
    """A wait by the server's clock."""

    seconds: float


class Ping(msgspec.Struct, frozen=True):
    """A sign of life in the middle of a stream."""


PING: Final = Ping()


class Gate:
    """A place where an answer waits until somebody opens it, from whatever thread or loop."""

    def __init__(self) -> None:
        self._reached: Future[None] = Future()
        self._opened: Future[None] = Future()

    def open(self) -> None:
        """Let the answer go on, now or whenever it comes here."""
        if not self._opened.done():
            self._opened.set_result(None)

    def wait_reached(self, timeout: float = 30) -> None:
        """Block until an answer waits here.

        Raises:
            TimeoutError: none came in so many seconds.
        """
        self._reached.result(timeout)

    async def reached(self) -> None:
        """Wait, in a loop, until an answer waits here."""
        await asyncio.shield(asyncio.wrap_future(self._reached))

    async def pass_through(self) -> None:
        """Wait here; the server calls it."""
        if not self._reached.done():
            self._reached.set_result(None)
        # Shielded: whoever stops waiting must not close the gate for others.
        await asyncio.shield(asyncio.wrap_future(self._opened))


Wait: TypeAlias = Pause | Gate | Ping


class Said(msgspec.Struct, frozen=True):
    """One block of an answer, and the pieces it is sent in; waits may stand between them."""

    block: dict[str, Any]
    pieces: tuple[str | Wait, ...] = ()
    """Of text, of thinking or of the JSON of an input; of the whole when there are none."""


Item: TypeAlias = Said | Wait


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """An answer of the model, and how it goes over the wire."""

    content: tuple[Item, ...] = ()
    stop_reason: str = ""
    """`tool_use` where a tool is called, else `end_turn`, unless it is said here."""
    stop_sequence: str | None = None
    usage: dict[str, Any] = {}
    """Figures that are used instead of the counted ones."""
    model: str = ""
    id: str = ""
    after: Wait | None = None
    """What is waited for before anything is sent, headers included."""
    cut_after: int | None = None
    """The connection ends after so many bytes of the body."""
    breaks: "Failure | None" = None
    """An error that the stream ends in, instead of a stop."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """An error instead of an answer; with status 0 the connection ends without a word."""

    status: int = 500
    kind: str = ""
    message: str = ""
    headers: dict[str, str] = {}
    after: Wait | None = None


Answer: TypeAlias = Reply | Failure


class Mind(Protocol):
    """Whoever thinks for the server."""

    def answer(self, asked: Asked) -> Answer:
        """Return what to answer; called once for each request that was not refused."""
        ...

    def vouches(self, thinking: str, signature: str) -> bool:
        """Whether thinking that the server did not sign is genuine all the same."""
        ...


def text(*pieces: str | Wait) -> Said:
    """Return words of the model; each piece is sent on its own, waits between them are kept."""
    return Said({"type": "text", "text": _whole(pieces)}, pieces if len(pieces) > 1 else ())


def thinking(*pieces: str | Wait, signature: str = "") -> Said:
    """Return thinking; the server signs it when no signature is given."""
    block = {"type": "thinking", "thinking": _whole(pieces), "signature": signature}
    return Said(block, pieces if len(pieces) > 1 else ())


def redacted(data: str = "EmwKAhgBEgy3va3pzix/LafPsn4=") -> Said:
    """Return thinking that only the API can read."""
    return Said({"type": "redacted_thinking", "data": data})


def tool(name: str, /, tool_id: str = "", **arguments: object) -> Said:
    """Return a tool call; the server names it when no id is given."""
    return Said({"type": "tool_use", "id": tool_id, "name": name, "input": arguments})


def bad_tool(name: str, raw: str, /, tool_id: str = "") -> Said:
    """Return a tool call whose input is that text, JSON or not; `{}` where nothing streams."""
    call = {"type": "tool_use", "id": tool_id, "name": name, "input": dict[str, object]()}
    return Said(call, (raw,))


def search(
    query: str, /, *found: tuple[str, str], tool_id: str = "", error_code: str = ""
) -> tuple[Said, Said]:
    """Return a search that the server makes itself, and what it found: titles and addresses.

    Both blocks stand in one answer: `[*search("tides", ("Tides", "https://…")), "They turn."]`.
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
        for title, url in found
    ]
    if error_code:
        results = {"type": "web_search_tool_result_error", "error_code": error_code}
    # Without a name it is about the call before it, and gets that one's.
    result = {"type": "web_search_tool_result", "tool_use_id": tool_id, "content": results}
    return Said({**call, "input": {"query": query}}), Said(result)


def block(kind: str, /, **fields: object) -> Said:
    """Return a block of any kind."""
    return Said({"type": kind, **fields})


_STATUS: Final = {kind: status for status, kind in KINDS.items()}


def error(
    status: int | str = 529,
    message: str = "",
    *,
    kind: str = "",
    retry_after: float | None = None,
    after: Wait | None = None,
) -> Failure:
    """Return an error by its status or by the API's name for it."""
    if isinstance(status, str):
        kind, status = status, _STATUS.get(status, 500)
    headers = {} if retry_after is None else {"retry-after": f"{retry_after:g}"}
    return Failure(status=status, kind=kind, message=message, headers=headers, after=after)


def cut(content: Iterable[Item], after: int) -> Reply:
    """Return an answer whose connection ends after so many bytes of its body."""
    return Reply(content=tuple(content), cut_after=after)


def refuse(words: str = "") -> Reply:
    """Return an answer in which the model declines."""
    return Reply(content=(text(words),) if words else (), stop_reason="refusal")


def _whole(pieces: Iterable[str | Wait]) -> str:
    return "".join(each for each in pieces if isinstance(each, str))
