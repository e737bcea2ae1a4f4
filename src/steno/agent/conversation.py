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
from steno.agent.sizes import text_of, tokens_of
from steno.agent.slugs import plan_slug, session_slug
from steno.agent.spoken import Spoken, blocks_in, reminder
from steno.errors import StenoError
from steno.format.compose import Timings
from steno.model.wire import Block, Message, Response
from steno.session.resume.entries import Origin, text_block
from steno.session.resume.images import MANY_IMAGES
from steno.session.resume.pictures import flaw_among_many, images_in, without_images
from steno.session.resume.trims import TRIM
from steno.session.story.repeats import repeated_id
from steno.tools.base import ToolResult

__all__ = ["BROKEN_OFF", "Conversation", "Figures", "Tail"]

BROKEN_OFF: Final = (
    "[Request interrupted by user]",
    "[Request interrupted by user for tool use]",
)
"""What stands where the user broke in: into an answer, into calls."""
_NAMED: Final = {"tool_use": "id", "tool_result": "tool_use_id"}


class Tail(msgspec.Struct, frozen=True):
    """The end of a conversation that stays as it is when the rest is compacted."""

    messages: list[Message]
    model: str
    """Whose answers are in it."""


class Figures(msgspec.Struct):
    """Figures of a session that its records carry on from one to the next."""

    turn_index: int = 0
    """How many turns there were."""
    prompt_index: int = 0
    """How many prompts were typed."""
    dropped_tokens: int = 0
    """How many tokens compactions have taken out."""

    def position(self) -> dict[str, int]:
        """Return where in the session a record is, as records say it."""
        return {"promptIndex": self.prompt_index, "turnIndex": self.turn_index}


class Conversation:
    """What was said so far, and where it is written down."""

    def __init__(
        self,
        recorder: Recorder,
        messages: Sequence[Message] = (),
        figures: Figures | None = None,
    ) -> None:
        self.recorder = recorder
        self.figures = figures or Figures()
        self._spoken = Spoken(messages)
        self._open: dict[str, Block] = {}
        self.last_prompt = ""
        self.uncounted = self._spoken.tokens
        """About how many tokens were said since the API has counted last."""

    def reset(self, messages: Sequence[Message], last_prompt: str, figures: Figures) -> None:
        """Say from now on what the file says, after a record of it could not be saved."""
        self.figures = figures
        self._spoken = Spoken(messages)
        self._open = {}
        self.last_prompt = last_prompt
        self.uncounted = self._spoken.tokens

    def messages(self) -> list[Message]:
        """Return what to send: always something that the API takes."""
        return self._spoken.messages()

    @property
    def tokens(self) -> int:
        """About how many tokens all of it takes, counted as it was said."""
        return self._spoken.tokens

    def wire(self) -> list[Message | msgspec.Raw]:
        """Return the same as it is sent: what was sent before as the bytes it was sent as."""
        return self._spoken.wire()

    @property
    def settled(self) -> Sequence[Message]:
        """The messages that will not change any more."""
        return self._spoken.settled

    def count_from_last_answer(self) -> None:
        """Take what stands before the last answer, and that itself, for counted."""
        self.uncounted = self._spoken.tokens_since

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
        self._say("user", blocks_in(content))
        return uuid

    def submit(
        self, content: str | list[Block], *, typed: str, mode: str, interactive: bool
    ) -> str:
        """Take down a prompt that begins a turn, given in a permission mode.

        `typed` is what the user typed, where that is something else.
        """
        figures = self.figures
        figures.turn_index += 1
        figures.prompt_index += interactive
        if mode == "plan":
            self.recorder.name(plan_slug(self.recorder.session_id, text_of(content)))
        who: dict[str, Any] = {"promptSource": "sdk", "turnOrigin": "sdk"}
        if interactive:
            who = {"origin": {"kind": "human"}, "promptSource": "typed", "turnOrigin": "human"}
        try:
            return self.prompt(
                content, typed=typed, permissionMode=mode, **who, turnPosition=figures.position()
            )
        except StenoError:
            figures.turn_index -= 1
            figures.prompt_index -= interactive
            raise

    def break_off(self, *, calls: bool) -> None:
        """Take down that the user broke in, which is nothing they said."""
        said = self.last_prompt
        self.prompt(BROKEN_OFF[calls])
        self.last_prompt = said

    def response(
        self, response: Response, timings: Timings | None = None, **asked: str
    ) -> tuple[str, ...]:
        """Take down what the model said, a line per block; nothing when it said nothing.

        `timings` says how long its parts took to come in, `asked` how it was asked for:
        `requestedModel`, `effort`.
        """
        blocks = response.blocks
        if not blocks:
            return ()
        records = self.recorder.compose.response(
            blocks,
            message_id=response.id,
            model=response.model,
            stop_reason=response.stop_reason,
            stop_sequence=response.stop_sequence,
            usage=response.usage,
            request_id=response.request_id,
            timings=timings,
            **{"requestedModel": response.model, **asked},
        )
        uuids = self.recorder.write(*records)
        self._say("assistant", blocks)
        self.uncounted = 0
        for block in blocks:
            if block.get("type") == "tool_use":
                self._open[str(block.get("id"))] = block
        return uuids

    def keep(self, kept: Iterable[Kept]) -> tuple[str, ...]:
        """Take down what was done around the conversation, and let the model read what is for it."""
        compose = self.recorder.compose
        uuids: tuple[str, ...] = ()
        for each in kept:
            if each.subtype:
                uuids += self.recorder.write(compose.note(each.subtype, **each.body))
                continue
            words = tuple(map(reminder, each.parts or filter(None, (each.words,))))
            # A picture stands in the attachment: clients make of it what they say themselves.
            rendered = () if each.image is not None else words
            role = "user" if each.parts else each.role
            record = compose.attachment(each.body, *rendered, role=role, beside=each.beside)
            uuids += self.recorder.write(record)
            blocks = [*map(text_block, words), *filter(None, (each.image,))]
            for block in blocks:
                self._say("user", [block], kind="reminder")
        return uuids

    def has_room_for(self, image: Block) -> bool:
        """Whether the API takes one more image beside those shown before."""
        return self._with_room_for([image]) == [image]

    def local(self, words: str, **fields: Any) -> None:
        """Take down what a command that the model has no part in has printed."""
        compose = self.recorder.compose
        note = {"content": words, "level": "info", "isMeta": False, **fields}
        self.recorder.write(compose.note("local_command", **note))
        self._say("user", [text_block(words)])

    def result(self, call: str, outcome: ToolResult, **more: Any) -> str:
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

    def settle(self, call: str, outcome: ToolResult, *, source: str | None) -> None:
        """Write down the result of a call of the record `source`, which messages have settled.

        It is written with whatever is said next: until then somebody may still be at work on it.
        """
        self.recorder.write_ahead(
            self.recorder.compose.result(
                call,
                outcome.content,
                is_error=outcome.is_error,
                detail=f"Error: {outcome.content}",
                sourceToolAssistantUUID=source,
            )
        )

    def failure(self, words: str, **why: Any) -> str:
        """Take down that no answer came, and `why`; it is not sent."""
        (uuid,) = self.recorder.write(self.recorder.compose.failure(words, **why))
        # But it has a place: reminders go no further up than it.
        self._spoken.fail(words)
        return uuid

    def compact(
        self, summary: str, tail: Tail, *, trigger: str, tokens: int, after: int, seconds: float
    ) -> None:
        """Let a summary stand for everything before, but for the tail, which is said again.

        `tokens` were taken before; what is said is about `after` tokens from now on, without what
        every request begins with. It took so many seconds.
        """
        figures, recorder = self.figures, self.recorder
        dropped = figures.dropped_tokens + max(tokens - after, 0)
        metadata = {
            "trigger": trigger,
            "preTokens": tokens,
            "durationMs": round(seconds * 1000),
            "postTokens": after,
            "cumulativeDroppedTokens": dropped,
        }
        recorder.name(session_slug(recorder.session_id))
        recorder.write(
            *recorder.compose.compaction(summary, metadata=metadata, position=figures.position())
        )
        figures.dropped_tokens = dropped
        self._spoken = Spoken()
        self._open = {}
        self._say("user", blocks_in(summary))
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

    def time_turn(self, seconds: float, *, pending_agents: int) -> None:
        """Take down how long a turn took, and how many sub-agents it left at work."""
        recorder = self.recorder
        recorder.write(
            recorder.compose.turn_duration(
                round(seconds * 1000),
                messages=recorder.message_count,
                pending_agents=pending_agents,
            )
        )

    def end_turn(self) -> None:
        """Say where the session stands."""
        self.recorder.end_turn(self.last_prompt)

    def _with_room_for(self, content: str | list[Block]) -> str | list[Block]:
        """Return it without the images that the API would refuse beside those shown before."""
        if isinstance(content, str) or not any(images_in(content)):
            return content
        shown = [image for each in self.messages() for image in images_in(each["content"])]

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
            name, calls = (
                repeated_id(self.recorder.leaf),
                any(b.get("type") == "tool_use" for b in blocks),
            )
            reason = "tool_use" if calls else "end_turn"
            self.response(Response(id=name, model=model, blocks=blocks, stop_reason=reason))
            return
        for block in blocks:
            if block.get("type") == "tool_result":
                outcome = ToolResult(
                    block.get("content", ""), is_error=bool(block.get("is_error", False))
                )
                self.result(str(block.get("tool_use_id")), outcome)
        words = [block for block in blocks if block.get("type") != "tool_result"]
        if words:
            said = self.last_prompt
            self.prompt(words, repeatsCompactSummary=True)
            self.last_prompt = said

    def _say(self, role: str, blocks: list[Block], kind: Origin = "message") -> None:
        self.uncounted += tokens_of(blocks)
        self._spoken.say(role, blocks, kind)


def _renamed(block: Block, names: dict[str, str]) -> Block:
    """Return a block with its call under a new name."""
    key = _NAMED.get(str(block.get("type")))
    if key is None:
        return block
    old = str(block.get(key))
    return {**block, key: names.setdefault(old, f"toolu_{new_id().replace('-', '')[:24]}")}
