"""The steps of a session and of its sub-agents in order, and the records behind them."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from steno.format.blocks import ServerToolUse, Text, ToolResult, ToolUse
from steno.format.loose import loose
from steno.format.values import as_object
from steno.report.deeds.outcomes import tests_said
from steno.report.deeds.shell import Shell, shell_of
from steno.report.deeds.suites import Verdict
from steno.session.story.steps import State, Step
from steno.session.story.threads import Thread
from steno.session.story.turns import Turn
from steno.session.transcript import Transcript

if TYPE_CHECKING:
    from steno.session.story.spawns import Notice

__all__ = ["CUT", "Deed", "deeds_of", "loose_deeds"]

CUT: Final = 20_000
"""How many letters of one text are looked at and kept."""
_LAUNCHED: Final = "async_launched"


class Deed:
    """A step: where it stands, whose it is, and what the records behind it say."""

    def __init__(self, step: Step, transcript: Transcript, turn: int, agent: str) -> None:
        self.step = step
        self.turn = turn
        self.agent = agent
        """The sub-agent that did it; empty for the session itself."""
        self.notice: Notice | None = None
        """What the sub-agent reported that it started in the background and that has no records."""
        self._transcript = transcript

    @property
    def is_call(self) -> bool:
        """Whether it begins with a call; a report that came later is none."""
        call = self.step.call
        return self.step.kind in ("tool", "agent") and call is not None and call.type == "assistant"

    @cached_property
    def shell(self) -> Shell | None:
        """Its command, where it is one."""
        return shell_of(self.step.command) if self.step.command else None

    @property
    def given(self) -> dict[str, Any]:
        """What the tool was given."""
        if self.step.call is None:
            return {}
        for block in self._transcript.record(self.step.call).blocks:
            if isinstance(block, ToolUse | ServerToolUse) and block.id == self.step.call_id:
                return block.input
        return {}

    @property
    def printed(self) -> str:
        """What the tool gave back: the beginning and the end of it where it is long."""
        if self.step.result is None:
            return ""
        for block in self._transcript.record(self.step.result).blocks:
            if isinstance(block, ToolResult) and block.tool_use_id == self.step.call_id:
                text = block.text
                return text if len(text) <= CUT else f"{text[: CUT // 2]}\n{text[-CUT // 2 :]}"
        return ""

    @property
    def kept(self) -> dict[str, Any]:
        """What the client kept of the result, where that is an object, of this call alone."""
        if self.step.result is None:
            return {}
        record = self._transcript.record(self.step.result)
        raw = record.envelope.tool_use_result
        if not raw or len(record.tool_results) != 1:
            return {}
        return as_object(loose(raw)) or {}

    @property
    def told_status(self) -> str:
        """How the sub-agent ended that it started, by the call and the notice alone."""
        stated = self.kept.get("status")
        if self.notice is not None and self.notice.status:
            return self.notice.status
        if isinstance(stated, str) and stated:
            return "unknown" if stated == _LAUNCHED else stated
        if self.step.state == "ok":
            return "completed"
        return "running" if self.step.state == "open" else self.step.state

    @property
    def told_report(self) -> str:
        """What that sub-agent reported, by the call and the notice alone."""
        if self.notice is not None:
            return self.notice.report
        if self.kept.get("status") == _LAUNCHED:
            return ""
        return self.printed if self.step.state == "ok" else self.step.outcome

    @property
    def words(self) -> str:
        """The words that it says."""
        if self.step.call is None:
            return ""
        blocks = self._transcript.record(self.step.call).blocks
        return "\n\n".join(block.text for block in blocks if isinstance(block, Text))[:CUT]

    @cached_property
    def tests(self) -> Verdict | None:
        """What the tests came to that it ran; None where it ran none."""
        shell = self.shell
        if shell is None or self.step.state not in ("ok", "failed"):
            return None
        if shell.only_looks and not shell.tests:
            # A look at what some tests said before.
            return None
        return tests_said(self.step, lambda: self.printed, by_name=shell.tests)

    @property
    def verdict(self) -> State:
        """How it ended: of tests what they said, whatever became of the command."""
        if self.tests is None:
            return self.step.state
        return "ok" if self.tests.ok else "failed"


def deeds_of(turn: Turn, transcript: Transcript, seen: set[int]) -> Iterator[Deed]:
    """Yield what happened in a turn; what a sub-agent did stands behind the call that started it.

    `seen` remembers the sub-agents that were told already: a report names them once more.
    """
    return _told(turn.steps, transcript, turn.number, "", seen)


def loose_deeds(threads: Iterable[Thread], turn: int, seen: set[int]) -> Iterator[Deed]:
    """Yield what sub-agents did that no call was found for."""
    for thread in threads:
        if id(thread) not in seen and not thread.warmup:
            seen.add(id(thread))
            yield from _told(thread.steps, thread.transcript, turn, _name(thread), seen)


def _told(
    steps: Iterable[Step], transcript: Transcript, turn: int, agent: str, seen: set[int]
) -> Iterator[Deed]:
    # No recursion: sub-agents may start others as deep as somebody likes to write.
    stack = [(iter(steps), transcript, agent)]
    while stack:
        rest, source, name = stack[-1]
        step = next(rest, None)
        if step is None:
            stack.pop()
            continue
        yield Deed(step, source, turn, name)
        thread = step.agent
        if thread is not None and id(thread) not in seen and not thread.warmup:
            seen.add(id(thread))
            stack.append((iter(thread.steps), thread.transcript, _name(thread)))


def _name(thread: Thread) -> str:
    return thread.agent_id or "agent"
