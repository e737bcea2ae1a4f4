"""The conversation so far: as messages to send, and, line by line, in the file.

Both are the same thing. What is in memory is put together by the rules by which the file is read
again, so a session that is resumed sends the very bytes it sent before, and pays for them once.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from steno.agent.gates import Kept
from steno.agent.recorder import Recorder, new_id
from steno.agent.sayable import sayable_content, sayable_outcome
from steno.agent.sizes import tokens_of
from steno.model.wire import Block, Message, Response
from steno.session.resume.clients import STENO
from steno.session.resume.entries import Entry, Origin, text_block
from steno.session.resume.images import MANY_IMAGES
from steno.session.resume.replay import joined_users
from steno.session.resume.rules import flaw_among_many, images_in, make_valid, without_images
from steno.tools.base import Outcome

__all__ = ["BROKEN_OFF", "Conversation", "Tail", "text_of"]

BROKEN_OFF: Final = (
    "[Request interrupted by user]",
    "[Request interrupted by user for tool use]",
)
"""What stands where the user broke in: into an answer, into calls."""
_NAMED: Final = {"tool_use": "id", "tool_result": "tool_use_id"}
_REMINDER: Final = "<system-reminder>\n{}\n</system-reminder>"
_REMINDER_ENDS: Final = _REMINDER.split("{}")


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
        """What is settled: everything up to the last answer."""
        self._said: list[Entry] = []
        """What users said since, one by one: reminders have a place of their own among it."""
        if self._entries and self._entries[-1].role == "user":
            self._said = _taken_apart(self._entries.pop().blocks)
        self._open: dict[str, Block] = {}
        self.last_prompt = ""
        self.uncounted = sum(tokens_of(entry.blocks) for entry in (*self._entries, *self._said))
        """About how many tokens were said since the API has counted last."""

    def messages(self) -> list[Message]:
        """Return what to send: always something that the API takes."""
        return make_valid(self.said())

    def said(self) -> list[Message]:
        """Return what was said as it was said, which costs less than making sure it can be sent."""
        return [
            {"role": entry.role, "content": list(entry.blocks)}
            for entry in (*self._entries, *joined_users(self._said, STENO))
            if entry.blocks
        ]

    def count_from_last_answer(self) -> None:
        """Take what stands before the last answer, and that itself, for counted."""
        self.uncounted = sum(tokens_of(entry.blocks) for entry in self._said)

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
        content = self._with_room_for(sayable_content(content))
        if meta:
            extra["isMeta"] = True
        else:
            # Of a command that was typed as nothing, nothing stays.
            words = text_of(content if typed is None else typed and sayable_content(typed))
            self.last_prompt = words or self.last_prompt
        (uuid,) = self.recorder.write(self.recorder.compose.prompt(content, **extra))
        self._say("user", _blocks(content))
        return uuid

    def break_off(self, *, calls: bool) -> None:
        """Take down that the user broke in, which is nothing they said."""
        said = self.last_prompt
        self.prompt(BROKEN_OFF[calls])
        self.last_prompt = said

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
        self.uncounted = 0
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
            words = _REMINDER.format(each.words) if each.words else ""
            record = compose.attachment(each.body, words=words, role=each.role, beside=each.beside)
            self.recorder.write(record)
            if words:
                self._say("user", [text_block(words)], kind="reminder")

    def local(self, words: str, **fields: Any) -> None:
        """Take down what a command that the model has no part in has printed."""
        compose = self.recorder.compose
        note = {"content": words, "level": "info", "isMeta": False, **fields}
        self.recorder.write(compose.note("local_command", **note))
        self._say("user", [text_block(words)])

    def result(self, call: str, outcome: Outcome, **more: Any) -> str:
        """Take down what a call came to; `more` are further fields of its record."""
        outcome = sayable_outcome(outcome)
        record = self.recorder.compose.result(
            call,
            self._with_room_for(outcome.content),
            is_error=outcome.is_error,
            detail=outcome.detail,
            **more,
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
        # But it has a place: reminders go no further up than it.
        self._said.append(Entry("assistant", [text_block(words)], error=True))

    def compact(self, summary: str, tail: Tail, *, trigger: str, tokens: int) -> None:
        """Let a summary stand for everything before, but for the tail, which is said again."""
        self.recorder.write(
            *self.recorder.compose.compaction(summary, trigger=trigger, tokens=tokens)
        )
        self._entries = []
        self._said = []
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

    def _with_room_for(self, content: str | list[Block]) -> str | list[Block]:
        """Return it without the images that the API would refuse beside those shown before."""
        if isinstance(content, str) or not any(images_in(content)):
            return content
        entries = (*self._entries, *self._said)
        shown = [image for entry in entries for image in images_in(entry.blocks)]

        def reason(image: Block) -> str:
            together = [*shown, image]
            flaws = [flaw for each in together if (flaw := flaw_among_many(each))]
            if flaws and len(together) > MANY_IMAGES:
                return flaws[0]
            shown.append(image)
            return ""

        return without_images(content, reason)

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

    def _say(self, role: str, blocks: list[Block], kind: Origin = "message") -> None:
        self.uncounted += tokens_of(blocks)
        if role == "user":
            self._said.append(Entry(role, list(blocks), kind=kind))
            return
        self._entries += [*joined_users(self._said, STENO), Entry(role, list(blocks))]
        self._said = []


def text_of(content: str | list[Block]) -> str:
    """Return the words of a message."""
    if isinstance(content, str):
        return content
    return "\n".join(str(each.get("text", "")) for each in content if each.get("type") == "text")


def _taken_apart(blocks: list[Block]) -> list[Entry]:
    """Return a message of the user's as it was before its parts were joined, reminders first."""
    reminders = 0
    opening, closing = _REMINDER_ENDS
    for block in blocks:
        text = str(block.get("text", ""))
        if not (text.startswith(opening) and text.rstrip("\n").endswith(closing.strip())):
            break
        reminders += 1
    said = [
        Entry("user", [text_block(str(block["text"]).rstrip("\n"))], kind="reminder")
        for block in blocks[:reminders]
    ]
    return [*said, Entry("user", blocks[reminders:])] if blocks[reminders:] else said


def _renamed(block: Block, names: dict[str, str]) -> Block:
    """Return a block with its call under a new name."""
    key = _NAMED.get(str(block.get("type")))
    if key is None:
        return block
    old = str(block.get(key))
    return {**block, key: names.setdefault(old, f"toolu_{new_id().replace('-', '')[:24]}")}


def _blocks(content: str | list[Block]) -> list[Block]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
