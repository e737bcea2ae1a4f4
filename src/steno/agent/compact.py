"""Compaction: a summary takes the place of what was said, before the window is full.

The last turn stays word for word. The summary is made from plain text, piece by piece if it must
be, so no conversation is too long to be compacted.
"""

import time
from collections.abc import Callable
from typing import Any, Final, Literal, Protocol, runtime_checkable

from steno.agent.asides import ask
from steno.agent.conversation import Tail
from steno.agent.events import Compacted, Noticed
from steno.agent.gates import Gate, is_too_long
from steno.agent.loop import Agent
from steno.agent.meter import window_of
from steno.agent.sizes import CHARACTERS_PER_TOKEN, estimate, text_of, tokens_of, told
from steno.agent.spoken import blocks_in
from steno.agent.trim import Trimmer, framing, taken
from steno.model.wire import ApiError, Message, Request

__all__ = ["Compactor"]

_RESERVE: Final = 0.08
"""The part of the window that is kept free for a summary to be made in."""
_TAIL: Final = 0.2
"""The part of the window that the last turn may fill and still stay as it is."""
_PIECE: Final = 0.5
"""The part of the window that one piece of a long conversation may fill."""
_NEAR: Final = 0.5
_SMALLEST: Final = 2_000
"""A piece of so few letters is not made smaller."""
_FILES: Final = 5
_FILE_SIZE: Final = 20_000
_ALL_FILES: Final = 0.1
"""The part of the window that files which were worked on may fill again."""
_SUMMARIZER: Final = (
    "You write down what happened in a session between a user and a coding agent, for the agent to "
    "go on from without having seen it. Be exact about names, paths, commands, errors, decisions, "
    "what the user asked for and insisted on, what is done and what is still to do. No preamble."
)
_ASK: Final = "Summarize this session.{wishes}\n\n<session>\n{text}\n</session>"
_ASK_ON: Final = (
    "This is the summary of a session so far:\n\n<summary>\n{summary}\n</summary>\n\nThe session "
    "goes on as follows. Write one summary of all of it.{wishes}\n\n<session>\n{text}\n</session>"
)
_OPENING: Final = (
    "This session goes on from an earlier conversation that became too long. What happened in it:"
)


class Compactor:
    """Makes room when the window fills up, or when asked to."""

    def __init__(self, *, window: int | None = None, automatic: bool = True) -> None:
        self._window = window
        self._automatic = automatic
        self._trim = Trimmer()

    async def __call__(self, agent: Agent) -> None:
        """Leave out old output, and compact if the next request might still not fit."""
        if not self._automatic:
            return
        window = self.window(agent)
        # A model that may write more than half a window would leave no room for anything.
        limit = max(window * (1 - _RESERVE) - agent.course.max_tokens, window // 2)
        if agent.meter.context:
            used = taken(agent)
        else:
            used = agent.meter.context = await _measured(agent, limit)
            agent.talk.uncounted = 0
        if self._trim(agent, used, window=window, limit=limit):
            used = taken(agent)
        if used >= limit:
            await self.compact(agent, "auto")

    async def make_room(self, agent: Agent) -> bool:
        """Compact because the API has refused what was guessed to fit; whether that was done."""
        return self._automatic and await self.compact(agent, "auto")

    def window(self, agent: Agent) -> int:
        """Return how many tokens the model takes in."""
        return self._window or window_of(agent.course.model)

    async def compact(
        self,
        agent: Agent,
        trigger: Literal["auto", "manual"],
        wishes: str = "",
        then: Callable[[], None] = lambda: None,
    ) -> bool:
        """Put a summary in the place of everything but the last turn; whether that was done.

        `then` is done right behind it, before anything else is said.

        Raises:
            ApiError: the model could not be asked for a summary.
        """
        messages = agent.talk.messages()
        if not messages:
            return False
        facts = {"trigger": trigger, "custom_instructions": wishes}
        gate = await agent.caller.gates("PreCompact", facts)
        _tell(agent, gate)
        if gate.blocked or gate.ends:
            return False
        wishes = " ".join(part for part in (wishes, *gate.context) if part)
        before, began = taken(agent), time.monotonic()
        head, tail = _parted(messages, round(self.window(agent) * _TAIL))
        summary = await self._summary(agent, head or messages, wishes)
        if not summary:
            agent.emit(Noticed("The model gave no summary: nothing was compacted.", "warning"))
            return False
        last = "" if tail and _is_prompt(tail[0]) else self._last_words(agent)
        said = "\n\n".join(part for part in (_OPENING, summary, last) if part)
        agent.talk.compact(
            said,
            Tail(tail, agent.course.model),
            trigger=trigger,
            tokens=before,
            after=tokens_of(blocks_in(said)) + estimate(tail),
            seconds=time.monotonic() - began,
        )
        then()
        files = _active_files(agent, self._characters(agent, _ALL_FILES))
        if files:
            agent.talk.prompt(files, meta=True)
        agent.meter.context = framing(agent) + agent.talk.tokens
        agent.talk.uncounted = 0
        agent.emit(Compacted(trigger, before, agent.meter.context, summary))
        facts = {"trigger": trigger, "compact_summary": summary}
        _tell(agent, await agent.caller.gates("PostCompact", facts))
        start = {"source": "compact", "model": agent.course.model}
        gate = await agent.caller.gates("SessionStart", start)
        _tell(agent, gate)
        agent.talk.keep(gate.kept)
        return True

    async def _summary(self, agent: Agent, messages: list[Message], wishes: str) -> str:
        wished = f" Above all: {wishes}" if wishes else ""
        size = self._characters(agent, _PIECE)
        rest = "\n\n".join(told(messages))
        summary = ""
        while rest:
            asked = _ASK_ON if summary else _ASK
            question = asked.format(wishes=wished, summary=summary, text=rest[:size])
            try:
                response = await ask(agent, _SUMMARIZER, question)
            except ApiError as error:
                # Some texts have far more tokens than letters let guess.
                if not is_too_long(error) or size <= _SMALLEST:
                    raise
                size = min(size, len(rest)) // 2
                continue
            summary, rest = text_of(response.blocks).strip(), rest[size:]
            # What was said before must not give way to nothing.
            if not summary or response.stop_reason == "refusal":
                return ""
        return summary

    def _last_words(self, agent: Agent) -> str:
        """Return what the user said last, which nothing may take the place of."""
        words = agent.talk.last_prompt[: self._characters(agent, _PIECE)]
        return f"The user's last words were:\n\n{words}" if words else ""

    def _characters(self, agent: Agent, part: float) -> int:
        """Return how many characters fill a part of the window."""
        return round(self.window(agent) * part) * CHARACTERS_PER_TOKEN


@runtime_checkable
class _Counting(Protocol):
    """A model that can say how many tokens a request has."""

    async def count_tokens(self, request: Request) -> int: ...


async def _measured(agent: Agent, limit: float) -> int:
    """Return what the next request takes, of a conversation that came without figures.

    A guess will do while it is far from the limit; near it the model is asked, since what does
    not fit is refused.
    """
    guess = taken(agent)
    if guess < limit * _NEAR or not isinstance(agent.model, _Counting):
        return guess
    try:
        return await agent.model.count_tokens(agent.request())
    except ApiError:
        return guess


def _tell(agent: Agent, gate: Gate) -> None:
    for words in gate.words:
        agent.emit(Noticed(words))


def _parted(messages: list[Message], room: int) -> tuple[list[Message], list[Message]]:
    """Return what is summed up and what stays: the last turn, or as much of its end as has room."""
    start = max(
        (place for place, each in enumerate(messages) if _is_prompt(each)), default=len(messages)
    )
    if estimate(messages[start:]) <= room:
        # Where there is only one turn all of it is summed up: to say it again would be no gain.
        return (messages[:start], messages[start:]) if start else (messages, [])
    # A tail that begins with an answer holds the calls of all results in it.
    for place in range(start, len(messages)):
        tail = messages[place:]
        if messages[place]["role"] == "assistant" and estimate(tail) <= room:
            return messages[:place], tail
    return messages, []


def _is_prompt(message: Message) -> bool:
    blocks: list[dict[str, Any]] = message["content"]
    return message["role"] == "user" and all(each.get("type") != "tool_result" for each in blocks)


def _active_files(agent: Agent, room: int) -> str:
    """Return what the files that were last worked on hold now, as many as have room."""
    shown: list[str] = []
    for path in reversed(list(agent.caller.context.seen)[-_FILES:]):
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read(_FILE_SIZE + 1)
        except (OSError, UnicodeDecodeError):
            continue
        if len(text) <= min(_FILE_SIZE, room):
            room -= len(text)
            shown.append(f"{path} as it is now:\n\n{text}")
    return "\n\n".join(shown)
