"""The conversation so far: as messages to send, and, line by line, in the file.

Both are the same thing. What is in memory is put together by the rules by which the file is read
again, so a session that is resumed sends the very bytes it sent before, and pays for them once.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from steno.agent.gates import Kept
from steno.agent.recorder import Recorder, new_id
from steno.agent.sizes import CHARACTERS_PER_TOKEN, text_of
from steno.agent.spoken import Spoken, blocks_in, reminder
from steno.model.wire import Block, Message, Response
from steno.session.resume.entries import text_block
from steno.session.resume.trims import TRIM
from steno.tools.base import Outcome

__all__ = ["Conversation", "Tail"]

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
        self._spoken = Spoken(messages)
        self._open: dict[str, Block] = {}
        self.last_prompt = ""

    def messages(self) -> list[Message]:
        """Return what to send: always something that the API takes."""
        return self._spoken.messages()

    @property
    def tokens(self) -> int:
        """About how many tokens all of it takes, counted as it was said."""
        return self._spoken.characters // CHARACTERS_PER_TOKEN

    def wire(self) -> list[Message | msgspec.Raw]:
        """Return the same as it is sent: what was sent before as the bytes it was sent as."""
        return self._spoken.wire()

    @property
    def settled(self) -> Sequence[Message]:
        """The messages that will not change any more."""
        return self._spoken.settled

    @property
    def open_calls(self) -> list[Block]:
        """The calls that have no result yet, in their order."""
        return list(self._open.values())

    def prompt(
        self,
        content: str | list[Block],
        *,
        meta: bool = False,
        typed: str | None = None,
        **extra: Any,
    ) -> str:
        """Take down what the user says; `meta` for what is said in their name.

        `typed` is what they typed, where that is something else.
        """
        if meta:
            extra["isMeta"] = True
        else:
            self.last_prompt = (text_of(content) if typed is None else typed) or self.last_prompt
        (uuid,) = self.recorder.write(self.recorder.compose.prompt(content, **extra))
        self._spoken.say("user", blocks_in(content))
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
        self._spoken.say("assistant", blocks)
        for block in blocks:
            if block.get("type") == "tool_use":
                self._open[str(block.get("id"))] = block
        return uuids

    def keep(self, kept: Iterable[Kept]) -> None:
        """Take down what was done around the conversation, and let the model read what is for it."""
        compose = self.recorder.compose
        for each in kept:
            if each.subtype:
                self.recorder.write(compose.note(each.subtype, **each.body))
                continue
            words = reminder(each.words) if each.words else ""
            record = compose.attachment(each.body, words=words, role=each.role, beside=each.beside)
            self.recorder.write(record)
            if words:
                self._spoken.say("user", [text_block(words)], kind="reminder")

    def local(self, words: str, **fields: Any) -> None:
        """Take down what a command that the model has no part in has printed."""
        compose = self.recorder.compose
        note = {"content": words, "level": "info", "isMeta": False, **fields}
        self.recorder.write(compose.note("local_command", **note))
        self._spoken.say("user", [text_block(words)])

    def result(self, call: str, outcome: Outcome, **more: Any) -> str:
        """Take down what a call came to; `more` are further fields of its record."""
        record = self.recorder.compose.result(
            call, outcome.content, is_error=outcome.is_error, detail=outcome.detail, **more
        )
        (uuid,) = self.recorder.write(record)
        self._spoken.say("user", record["message"]["content"])
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
        # But it has a place: reminders go no further up than it.
        self._spoken.fail(words)

    def compact(self, summary: str, tail: Tail, *, trigger: str, tokens: int) -> None:
        """Let a summary stand for everything before, but for the tail, which is said again."""
        self.recorder.write(
            *self.recorder.compose.compaction(summary, trigger=trigger, tokens=tokens)
        )
        self._spoken = Spoken()
        self._open = {}
        self._spoken.say("user", blocks_in(summary))
        # Under new names: clients look for the results of a call in the whole file.
        names: dict[str, str] = {}
        for message in tail.messages:
            blocks = [_renamed(block, names) for block in blocks_in(message["content"])]
            self._again(message["role"], blocks, tail.model)

    def trim(self, calls: Sequence[str], *, tokens: int, saved: int) -> None:
        """Leave out what calls have printed, from now on; the file keeps it."""
        told = {
            "trigger": "auto",
            "preTokens": tokens,
            "tokensSaved": saved,
            "compactedToolIds": list(calls),
            "clearedAttachmentUUIDs": [],
        }
        self.recorder.write(
            self.recorder.compose.note(
                TRIM,
                content="Context microcompacted",
                isMeta=False,
                level="info",
                microcompactMetadata=told,
            )
        )
        self._spoken.trim(frozenset(calls))

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


def _renamed(block: Block, names: dict[str, str]) -> Block:
    """Return a block with its call under a new name."""
    key = _NAMED.get(str(block.get("type")))
    if key is None:
        return block
    old = str(block.get(key))
    return {**block, key: names.setdefault(old, f"toolu_{new_id().replace('-', '')[:24]}")}
