"""Turns: a prompt, its steps, and the answer.

A turn starts with a request: a user prompt, a slash command that leads to an answer, a shell escape, or the report of a
background task. Records before the first prompt, or after a compaction, belong to the next prompt; commands without an
effect belong to the previous turn. A compaction does not start a turn: if the work continues after it without a new
prompt, the turn continues. Every record belongs to exactly one turn.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from steno.format.records import Record
from steno.session.transcript import Node, Transcript
from steno.session.turns.compactions import Compaction, RepeatTracker, is_compaction, keeps_all
from steno.session.turns.prompts import (
    Origin,
    Prompt,
    begins_turn,
    is_unprompted,
    origin_of,
    read_prompt,
    takes_turn_over,
)
from steno.session.turns.step_builder import StepBuilder, TurnDraft
from steno.session.turns.steps import FileTouch, Step, StepDraft
from steno.session.turns.usage import Totals

if TYPE_CHECKING:
    from steno.session.turns.subagents import Thread


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt, its steps, and the answer, without deleted steps."""

    number: int
    prompt: Prompt | None = None
    steps: tuple[Step, ...] = ()
    answer: str = ""
    """Text after the last tool call."""
    before: int = 0
    """Number of steps before the answer; later ones are notes after it."""
    started: datetime | None = None
    ended: datetime | None = None
    duration: float | None = None
    """Duration in seconds, as measured by Claude Code if available."""
    usage: Totals = Totals()
    files: tuple[FileTouch, ...] = ()
    commands: tuple[str, ...] = ()
    errors: int = 0
    """Number of failed steps."""
    interrupted: bool = False
    done: bool = True
    """Whether the model finished the turn."""
    nodes: tuple[Node, ...] = ()
    compaction: Compaction | None = None
    """Compaction before the turn, or the first one within it."""
    closing: Compaction | None = None
    """Last compaction at the end of the turn, without a later prompt."""
    whole: tuple[tuple[Step, ...], int] | None = None
    """All steps including deleted ones, and the number before the answer; None if no step is deleted."""

    def with_deleted(self) -> "Turn":
        """Return the turn including deleted steps."""
        if self.whole is None:
            return self
        steps, before = self.whole
        return msgspec.structs.replace(self, steps=steps, before=before, whole=None)

    @property
    def opening(self) -> Compaction | None:
        """Compaction before the turn."""
        inside = any(step.seam is self.compaction for step in self.steps)
        return None if inside else self.compaction

    @property
    def inner_seams(self) -> tuple[Compaction, ...]:
        """Compactions within the turn; a step marks the position of each."""
        return tuple(step.seam for step in self.steps if step.seam is not None)

    @property
    def seams(self) -> tuple[Compaction, ...]:
        """Compactions before and within the turn, except the one at its end."""
        inside = self.inner_seams
        return inside if self.opening is None else (self.opening, *inside)

    @property
    def failure(self) -> Step | None:
        """Error that ended the turn, if any."""
        for step in reversed(self.steps):
            if step.kind == "error" and step.state == "failed":
                return step
            if step.kind not in ("note", "hook", "thought"):
                return None
        return None

    @property
    def by_person(self) -> bool:
        """Whether a user started the turn."""
        return self.prompt is not None and self.prompt.by_person


def work_milliseconds(turns: Iterable[Turn]) -> int:
    """Return the total duration of turns in milliseconds."""
    return sum(round(turn.duration * 1000) for turn in turns if turn.duration is not None)


def build_turns(
    transcript: Transcript,
    nodes: Iterable[Node],
    *,
    agents: Mapping[str, "Thread"] | None = None,
    compactions: Mapping[int, Compaction] | None = None,
    agent: bool = False,
) -> list[Turn]:
    """Return the turns of a conversation.

    `agents` maps call IDs and agent IDs to sub-agents; `agent` marks the conversation of a sub-agent.
    """
    return TurnReader(agent=agent).turns(transcript, list(nodes), agents or {}, compactions or {})


class TurnReader:
    """Builds the turns of a conversation, and reads only new records after it has grown."""

    def __init__(self, *, agent: bool = False) -> None:
        self._agent = agent
        self._nodes: list[Node] = []
        self._agents: dict[str, tuple[Thread, str]] = {}
        self._compactions: dict[int, Compaction] = {}
        self._builder = TurnBuilder({}, {}, agent=agent)

    def turns(
        self,
        transcript: Transcript,
        nodes: list[Node],
        agents: Mapping[str, "Thread"],
        compactions: Mapping[int, Compaction],
    ) -> list[Turn]:
        """Return the current turns of a conversation."""
        known_agents = {name: (thread, thread.kind) for name, thread in agents.items()}
        known_compactions = {index: compactions.get(index) for index in self._compactions}
        goes_on = nodes[: len(self._nodes)] == self._nodes
        if not goes_on or known_agents != self._agents or known_compactions != self._compactions:
            self._nodes = []
            self._builder = TurnBuilder(agents, compactions, agent=self._agent)
        self._builder.compactions = compactions
        for node in nodes[len(self._nodes) :]:
            self._builder.add(transcript.record(node), node)
        self._nodes, self._agents, self._compactions = nodes, known_agents, dict(compactions)
        drafts = self._builder.turns_so_far()
        last = len(drafts)
        return [_build_turn(turn, number, final=number == last) for number, turn in enumerate(drafts, 1)]


class TurnBuilder:
    """Groups records into turns."""

    def __init__(self, agents: Mapping[str, "Thread"], compactions: Mapping[int, Compaction], *, agent: bool) -> None:
        self._steps = StepBuilder(agents)
        self.compactions = compactions
        self._agent = agent
        self.finished: list[TurnDraft] = []
        """Finished turns; the last one may still absorb a turn without effect."""
        self.current = TurnDraft()
        self._repeats = RepeatTracker()
        self._pending_compaction: Compaction | None = None
        """A compaction that kept all messages, placed before the next turn."""

    def add(self, record: Record, node: Node) -> None:
        """Process the next record."""
        compaction = self.compactions.get(node.index)
        if compaction is not None and keeps_all(node):
            # No messages were removed from the conversation, so the turn continues.
            if self.current.answered:
                self._pending_compaction = compaction
            else:
                if self.current.compaction is not None:
                    self.current.add_compaction_note(compaction)
                self.current.compaction = self.current.compaction or compaction
        elif compaction is not None and is_compaction(node):
            self._start_turn(TurnDraft(compaction))
        if self._is_repeated(record, node):
            self.current.nodes.append(node)
            return
        if node.type == "assistant":
            self._continue_previous()
        current = self.current
        trail = current.trailing_count
        if node.type == "assistant":
            current.nodes.append(node)
            self._steps.add_response_line(current, record, node)
        elif record.role:
            self._add_user_record(record, node)
            current = self.current
        else:
            current.nodes.append(node)
            self._steps.add_other_record(current, record, node)
        if current.trailing_count == trail:
            current.trailing_count = 0

    def step_of_call(self, call_id: str) -> StepDraft | None:
        """Return the step of a tool call by its ID."""
        return self._steps.step_of_call(call_id)

    def turns_so_far(self) -> list[TurnDraft]:
        """Return the turns so far; a last one without effect is merged into the previous one."""
        last = self.current
        if self._pending_compaction is not None and last.compaction is None:
            last = last.copy()
            last.compaction = self._pending_compaction
        if self.finished and last.is_conditional:
            joined = self.finished[-1].copy()
            joined.set_closing_compaction(last.compaction)
            joined.absorb(last.copy())
            return [*self.finished[:-1], joined]
        return [*self.finished, last] if last.nodes else self.finished

    def _add_user_record(self, record: Record, node: Node) -> None:
        if node.results:
            self.current.nodes.append(node)
            self._steps.add_results(self.current, record, node)
            return
        origin = origin_of(record, agent=self._agent)
        if begins_turn(origin, tentative=self.current.is_conditional):
            self._begin_turn(record, node, origin)
            self.current.nodes.append(node)
            return
        self.current.nodes.append(node)
        self._steps.add_user_record(self.current, record, node, origin)

    def _begin_turn(self, record: Record, node: Node, origin: Origin) -> None:
        current = self.current
        if not takes_turn_over(
            tentative=current.is_conditional, first=not self.finished, after_compaction=current.compaction is not None
        ):
            self._start_turn(TurnDraft())
        self.current.set_prompt(read_prompt(record, node, origin))

    def _is_repeated(self, record: Record, node: Node) -> bool:
        """Return whether a record repeats one from before the last compaction."""
        if not self.compactions:
            return False
        if node.type == "assistant":
            return self._repeats.is_repeated_answer(node.parent, node.message_id, node.uses)
        if node.results:
            return self._repeats.are_repeated_results(node.results)
        return node.repeats and begins_turn(origin_of(record, agent=self._agent))

    def _continue_previous(self) -> None:
        """Continue the previous turn if the model continues after a compaction without a prompt."""
        current = self.current
        if current.compaction is None or current.answered or not self.finished:
            return
        if not is_unprompted(current.origin, after_compaction=True):
            return
        before = self.finished.pop()
        before.continue_after(current.compaction)
        before.absorb(current)
        before.compaction = before.compaction or current.compaction
        before.trailing_count = 0
        self.current = before

    def _start_turn(self, turn: TurnDraft) -> None:
        current = self.current
        turn.compaction = turn.compaction or self._pending_compaction
        self._pending_compaction = None
        current.pass_trailing_records(turn)
        if self.finished and current.is_conditional:
            before = self.finished[-1]
            before.set_closing_compaction(current.compaction)
            before.absorb(current)
        elif current.nodes:
            self.finished.append(current)
        self.current = turn


def _build_turn(turn: TurnDraft, number: int, *, final: bool) -> Turn:
    files = turn.files()
    all_steps, answer, all_before = turn.build(final=final)
    steps = tuple(step for step in all_steps if not step.is_deleted)
    has_deleted = len(steps) < len(all_steps)
    before = sum(not step.is_deleted for step in all_steps[:all_before])
    seconds = turn.seconds
    if seconds is None and turn.started is not None and turn.ended is not None:
        seconds = max(0.0, (turn.ended - turn.started).total_seconds())
    return Turn(
        number=number,
        prompt=turn.prompt,
        steps=steps,
        answer=answer,
        before=before,
        started=turn.started,
        ended=turn.ended,
        duration=seconds,
        usage=turn.counter.totals(),
        files=files,
        commands=tuple(step.command for step in steps if step.command),
        errors=sum(step.has_failed for step in steps),
        interrupted=turn.interrupted,
        done=turn.last in ("words", "end") or turn.is_idle,
        nodes=tuple(turn.nodes),
        compaction=turn.compaction,
        closing=turn.closing,
        whole=(all_steps, all_before) if has_deleted else None,
    )
