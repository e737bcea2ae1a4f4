"""What was said so far, as messages to send. What is proven and encoded once stays that way.

Only the end can still change: what users say is joined until there is an answer, and an answer
may be the last word or not. Messages before that are kept as they are sent, with their bytes, so
a request costs what is new in it, however long the conversation is.
"""

from collections.abc import Collection, Sequence
from typing import Any, Final

import msgspec

from steno.agent.sizes import estimate, tokens_of
from steno.model.bodies import message_bytes
from steno.model.wire import Block, Message
from steno.session.resume.clients import STENO
from steno.session.resume.entries import Entry, Origin, text_block
from steno.session.resume.replay import joined_users
from steno.session.resume.trims import trimmed
from steno.session.resume.valid import Proof

__all__ = ["Spoken", "blocks_in", "reminder"]

_REMINDER: Final = "<system-reminder>\n{}\n</system-reminder>"
_REMINDER_ENDS: Final = _REMINDER.split("{}")


class Spoken:
    """The messages of one conversation."""

    def __init__(self, messages: Sequence[Message] = ()) -> None:
        self._proof = Proof()
        self._proven: list[Message] = []
        self._tokens = 0
        """About how many of them the proven messages have."""
        self._bytes: list[msgspec.Raw] = []
        """Those of the first messages that are proven; the others have not been sent yet."""
        self._answer: Entry | None = None
        """The last answer, while nothing was said to it."""
        self._since: list[Entry] = []
        """What users said since, one by one: reminders have a place of their own among it."""
        entries = [Entry(each["role"], blocks_in(each["content"])) for each in messages]
        if entries and entries[-1].role == "user":
            self._since = _taken_apart(entries.pop().blocks)
        elif entries:
            self._answer = entries.pop()
        self._settle(entries)

    @property
    def settled(self) -> Sequence[Message]:
        """The messages that will not change any more, but for what is trimmed in them."""
        return self._proven

    @property
    def tokens(self) -> int:
        """About how many tokens all messages take."""
        return self._tokens + estimate(self._open())

    @property
    def tokens_since(self) -> int:
        """About how many tokens that takes which was said since the last answer."""
        return sum(tokens_of(entry.blocks) for entry in self._since)

    def messages(self) -> list[Message]:
        """Return all messages: always something that the API takes."""
        return [*self._proven, *self._open()]

    def wire(self) -> list[Message | msgspec.Raw]:
        """Return all messages as they are sent, the end of what may be cached marked."""
        for message in self._proven[len(self._bytes) :]:
            self._bytes.append(message_bytes(message))
        last = self._open()
        if last:
            return [*self._bytes, *last[:-1], _marked(last[-1])]
        return [*self._bytes[:-1], *map(_marked, self._proven[-1:])]

    def say(self, role: str, blocks: list[Block], kind: Origin = "message") -> None:
        """Take in what somebody says; what users say before an answer is joined."""
        if not blocks:
            return
        if role == "user":
            self._settle_answer()
            self._since.append(Entry(role, list(blocks), kind=kind))
            return
        self._settle_answer()
        since, self._since = self._since, []
        self._settle(joined_users(since, STENO))
        self._answer = Entry(role, list(blocks))

    def fail(self, words: str) -> None:
        """Take in what stands for an answer that never came: reminders go no further up than it."""
        self._since.append(Entry("assistant", [text_block(words)], error=True))

    def trim(self, calls: Collection[str]) -> None:
        """Put a note in the place of what calls have printed."""
        for place, message in enumerate(self._proven):
            new = trimmed(message, calls)
            if new is message:
                continue
            self._proven[place] = new
            self._tokens += estimate([new]) - estimate([message])
            if place < len(self._bytes):
                self._bytes[place] = message_bytes(new)

    def _settle_answer(self) -> None:
        answer, self._answer = self._answer, None
        if answer is not None:
            self._settle([answer])

    def _settle(self, entries: list[Entry]) -> None:
        for entry in entries:
            if entry.blocks:
                proven = self._proof.take(_message(entry))
                self._proven += proven
                self._tokens += estimate(proven)

    def _open(self) -> list[Message]:
        """Return the messages that can still change."""
        # An answer to which something was said is settled.
        said = [self._answer] if self._answer is not None else joined_users(self._since, STENO)
        return [
            each for entry in said if entry.blocks for each in self._proof.look(_message(entry))
        ]


def blocks_in(content: str | list[Block]) -> list[Block]:
    """Return the content of a message as blocks."""
    return [text_block(content)] if isinstance(content, str) else list(content)


def reminder(words: str) -> str:
    """Return words as the model is told that nobody said them."""
    return _REMINDER.format(words)


def _message(entry: Entry) -> Message:
    return {"role": entry.role, "content": list(entry.blocks)}


def _marked(message: Message) -> Message:
    """Return a message with a mark on its last block: up to there it may be cached."""
    blocks: list[dict[str, Any]] = message["content"]
    if blocks[-1].get("type") in ("thinking", "redacted_thinking"):
        return message
    marked = {**blocks[-1], "cache_control": {"type": "ephemeral"}}
    return {**message, "content": [*blocks[:-1], marked]}


def _as_said(block: Block) -> Block:
    """Return a part of a message without the newline that it got when it was joined."""
    return text_block(str(block["text"]).rstrip("\n")) if "text" in block else block


def _taken_apart(blocks: list[Block]) -> list[Entry]:
    """Return a message of the user's as it was before its parts were joined, reminders first."""
    reminders = 0
    opening, closing = _REMINDER_ENDS
    for block in blocks:
        text = str(block.get("text", ""))
        is_picture = reminders and block.get("type") == "image"
        is_one = text.startswith(opening) and text.rstrip("\n").endswith(closing.strip())
        if not is_one and not is_picture:
            break
        reminders += 1
    said = [Entry("user", [_as_said(block)], kind="reminder") for block in blocks[:reminders]]
    return [*said, Entry("user", blocks[reminders:])] if blocks[reminders:] else said
