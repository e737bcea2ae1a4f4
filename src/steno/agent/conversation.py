"""The conversation so far: as messages to send, and, line by line, in the file.

Both are the same thing. What is in memory is put together by the rules by which the file is read
again, so a session that is resumed sends the very bytes it sent before, and pays for them once.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from steno.agent.recorder import Recorder, new_id
from steno.model.wire import Block, Message, Response
from steno.session.resume.clients import STENO
from steno.session.resume.entries import Entry
from steno.session.resume.rules import make_valid
from steno.tools.base import Outcome

__all__ = ["Conversation", "Tail", "text_of"]

_NAMED: Final = {"tool_use": "id", "tool_result": "tool_use_id"}


class Tail(msgspec.Struct, frozen=True):
    """The end of a conversation that stays as it is when the rest is compacted."""

    messages: list[Message]
    model: str
    """Whose answers are in it."""


class Conversation:
    """What was said so far, and where it is written down."""

    def __init__(self, recorder: Recorder, messages: Sequence[Message] = ()) -> None:
        self.recorder = recorder
        self._entries = [Entry(each["role"], _blocks(each["content"])) for each in messages]
        self._open: dict[str, Block] = {}
        self.last_prompt = ""

    def messages(self) -> list[Message]:
        """Return what to send: always something that the API takes."""
        return make_valid(self.said())

    def said(self) -> list[Message]:
        """Return what was said as it was said, which costs less than making sure it can be sent."""
        return [
            {"role": entry.role, "content": list(entry.blocks)}
            for entry in self._entries
            if entry.blocks
        ]

    @property
    def open_calls(self) -> list[Block]:
        """The calls that have no result yet, in their order."""
        return list(self._open.values())

    def prompt(self, content: str | list[Block], *, meta: bool = False, **extra: Any) -> str:
        """Take down what the user says; `meta` for what is said in their name."""
        if meta:
            extra["isMeta"] = True
        else:
            self.last_prompt = text_of(content) or self.last_prompt
        (uuid,) = self.recorder.write(self.recorder.compose.prompt(content, **extra))
        self._say("user", _blocks(content))
        return uuid

    def response(self, response: Response) -> tuple[str, ...]:
        """Take down what the model said, a line per block; nothing when it said nothing."""
        blocks = response.blocks
        if not blocks:
            return ()
        records = self.recorder.compose.response(
            blocks,
            message_id=response.id,
            model=response.model,
            stop_reason=response.stop_reason or "end_turn",
            usage=response.usage,
            request_id=response.request_id,
        )
        uuids = self.recorder.write(*records)
        self._say("assistant", blocks)
        for block in blocks:
            if block.get("type") == "tool_use":
                self._open[str(block.get("id"))] = block
        return uuids

    def result(self, call: str, outcome: Outcome) -> str:
        """Take down what a call came to."""
        record = self.recorder.compose.result(
            call, outcome.content, is_error=outcome.is_error, detail=outcome.detail
        )
        (uuid,) = self.recorder.write(record)
        self._say("user", record["message"]["content"])
        self._open.pop(call, None)
        return uuid

    def settle(self, call: str, outcome: Outcome) -> None:
        """Write down the result of a call that the messages have settled already."""
        self.recorder.write(
            self.recorder.compose.result(call, outcome.content, is_error=outcome.is_error)
        )

    def failure(self, words: str, *, status: int = 0) -> None:
        """Take down that no answer came; it is not sent."""
        self.recorder.write(self.recorder.compose.failure(words, status=status))

    def compact(self, summary: str, tail: Tail, *, trigger: str, tokens: int) -> None:
        """Let a summary stand for everything before, but for the tail, which is said again."""
        self.recorder.write(
            *self.recorder.compose.compaction(summary, trigger=trigger, tokens=tokens)
        )
        self._entries = []
        self._open = {}
        self._say("user", _blocks(summary))
        # Under new names: clients look for the results of a call in the whole file.
        names: dict[str, str] = {}
        for message in tail.messages:
            blocks = [_renamed(block, names) for block in _blocks(message["content"])]
            self._again(message["role"], blocks, tail.model)

    def end_turn(self) -> None:
        """Say where the session stands."""
        self.recorder.end_turn(self.last_prompt)

    def _again(self, role: str, blocks: list[Block], model: str) -> None:
        if role == "assistant":
            self.response(Response(id=f"msg_{self.recorder.leaf}", model=model, blocks=blocks))
            return
        for block in blocks:
            if block.get("type") == "tool_result":
                outcome = Outcome(
                    block.get("content", ""), is_error=bool(block.get("is_error", False))
                )
                self.result(str(block.get("tool_use_id")), outcome)
        words = [block for block in blocks if block.get("type") != "tool_result"]
        if words:
            self.prompt(words, repeatsCompactSummary=True)

    def _say(self, role: str, blocks: list[Block]) -> None:
        last = self._entries[-1] if self._entries else None
        if last is not None and last.role == role == "user":
            last.take_in(blocks, newline=STENO.joins_with_newline)
        else:
            self._entries.append(Entry(role, list(blocks)))


def text_of(content: str | list[Block]) -> str:
    """Return the words of a message."""
    if isinstance(content, str):
        return content
    return "\n".join(str(each.get("text", "")) for each in content if each.get("type") == "text")


def _renamed(block: Block, names: dict[str, str]) -> Block:
    """Return a block with its call under a new name."""
    key = _NAMED.get(str(block.get("type")))
    if key is None:
        return block
    old = str(block.get(key))
    return {**block, key: names.setdefault(old, f"toolu_{new_id().replace('-', '')[:24]}")}


def _blocks(content: str | list[Block]) -> list[Block]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
