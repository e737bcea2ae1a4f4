"""Trimming: what tools printed long ago leaves the window before anything has to be summed up.

Output is left out in large lots, and what is left out stays so: between two trimmings the
beginning of every request is the same, byte for byte, so the API finds it in its cache. The file
keeps everything; a record in it names the calls, so that a resumed session sends the same.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from steno.agent.events import Trimmed
from steno.agent.sizes import CHARACTERS_PER_TOKEN, estimate, tokens_of
from steno.format.tool_catalogue import facts_of
from steno.model.wire import Message
from steno.session.resume.trims import output_size

if TYPE_CHECKING:
    from steno.agent.loop import Agent

__all__ = ["Trimmer", "framing", "taken"]

_FROM: Final = 0.7
"""The part of what fits before a compaction from which on output is left out."""
_KEPT: Final = 0.2
"""The part of the window at the end of which all output stays."""
_WORTH: Final = 0.1
"""The part of the window that a trimming must save: each one costs the cache."""
_BIG: Final = 2_000
"""How many characters output has that is worth leaving out."""


class Trimmer:
    """Leaves out old output when the window fills up."""

    def __init__(self) -> None:
        self._next = 0.0
        """With less in the window than this, there is no use in looking."""

    def __call__(self, agent: "Agent", context: int, *, window: int, limit: float) -> bool:
        """Trim if it is time and worth it; whether it was done.

        `context` is what the next request takes of the window, `limit` what fits.
        """
        if context < limit * _FROM:
            self._next = 0.0
            return False
        if context < self._next:
            return False
        calls, saved = _old_output(agent.talk.settled, round(window * _KEPT))
        done = saved >= window * _WORTH
        if done:
            agent.talk.trim(calls, tokens=context, saved=saved)
            agent.meter.context = max(context - saved, 0)
            agent.talk.uncounted = 0
            agent.emit(Trimmed(context, taken(agent), tuple(calls)))
        self._next = taken(agent) + window * _WORTH
        return done


def taken(agent: "Agent") -> int:
    """Return how much of the window the next request takes: as counted last, and what came since."""
    return (agent.meter.context or framing(agent)) + agent.talk.uncounted


def framing(agent: "Agent") -> int:
    """Return how much everything takes that is no message."""
    return tokens_of([*agent.course.system, *agent.caller.tools.wire()])


def _old_output(messages: Sequence[Message], kept: int) -> tuple[list[str], int]:
    """Return the calls whose output is large and old, oldest first, and the tokens it takes."""
    tools = {
        str(block.get("id")): str(block.get("name"))
        for message in messages
        for block in message["content"]
        if block.get("type") == "tool_use"
    }
    end = len(messages)
    while end and kept > 0:
        end -= 1
        kept -= estimate(messages[end : end + 1])
    found: list[str] = []
    saved = 0
    for message in messages[:end]:
        for block in message["content"]:
            call = str(block.get("tool_use_id"))
            repeatable = facts_of(tools.get(call, "")).repeatable
            if block.get("type") != "tool_result" or not repeatable:
                continue
            size = output_size(block)
            if size >= _BIG:
                found.append(call)
                saved += size // CHARACTERS_PER_TOKEN
    return found, saved
