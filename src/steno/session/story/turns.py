"""Turns: the conversation as people remember it, a prompt and what came of it.

A turn begins where somebody asks for something: a person, a slash command that leads to an answer,
a shell escape, a background task that reports. What stands before the first prompt, or behind a
compaction, belongs to the prompt that follows it; commands that led to nothing belong to the turn
before them. A compaction begins no turn: where the work goes on behind it without a new prompt, the
turn goes on. Every record is in exactly one turn.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from steno.format.records import Record
from steno.session.nodes import Node
from steno.session.story.compactions import Compaction, is_seam, keeps_all
from steno.session.story.prompts import STARTS, Origin, Prompt, origin_of, prompt_of
from steno.session.story.repeats import Repeats
from steno.session.story.scenes import Scene
from steno.session.story.steps import Draft, FileTouch, Step
from steno.session.story.telling import Teller
from steno.session.story.usage import Totals
from steno.session.transcript import Transcript

if TYPE_CHECKING:
    from steno.session.story.threads import Thread

__all__ = ["Story", "Telling", "Turn", "tell"]


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt, the steps it led to, and the answer; what is deleted is left out."""

    number: int
    prompt: Prompt | None = None
    steps: tuple[Step, ...] = ()
    answer: str = ""
    """The words behind the last tool call."""
    before: int = 0
    """How many of the steps came before the answer; the others were noted behind it."""
    started: datetime | None = None
    ended: datetime | None = None
    duration: float | None = None
    """Seconds, as the client measured them where it did."""
    usage: Totals = Totals()
    files: tuple[FileTouch, ...] = ()
    commands: tuple[str, ...] = ()
    errors: int = 0
    """How many steps failed."""
    interrupted: bool = False
    done: bool = True
    """Whether the model had its last word."""
    nodes: tuple[Node, ...] = ()
    compaction: Compaction | None = None
    """The seam before it, or the first one within it."""
    closing: Compaction | None = None
    """The seam at its end, behind which nothing was asked so far; of several the last."""
    whole: tuple[tuple[Step, ...], int] | None = None
    """The steps with those that are deleted, and how many came before the answer; None where none
    is deleted."""

    def with_deleted(self) -> "Turn":
        """Return the turn with what is deleted of it."""
        if self.whole is None:
            return self
        steps, before = self.whole
        return msgspec.structs.replace(self, steps=steps, before=before, whole=None)

    @property
    def opening(self) -> Compaction | None:
        """The seam before it."""
        inside = any(step.seam is self.compaction for step in self.steps)
        return None if inside else self.compaction

    @property
    def inner_seams(self) -> tuple[Compaction, ...]:
        """The seams within it; a step each says where."""
        return tuple(step.seam for step in self.steps if step.seam is not None)

    @property
    def seams(self) -> tuple[Compaction, ...]:
        """The seam before it and those within it; not the one at its end."""
        inside = self.inner_seams
        return inside if self.opening is None else (self.opening, *inside)

    @property
    def failure(self) -> Step | None:
        """The error the turn ended with, if it did."""
        for step in reversed(self.steps):
            if step.kind == "error" and step.state == "failed":
                return step
            if step.kind not in ("note", "hook", "thought"):
                return None
        return None

    @property
    def by_person(self) -> bool:
        """Whether a person began it."""
        return self.prompt is not None and self.prompt.by_person


def tell(
    transcript: Transcript,
    nodes: Iterable[Node],
    *,
    agents: Mapping[str, "Thread"] | None = None,
    compactions: Mapping[int, Compaction] | None = None,
    agent: bool = False,
) -> list[Turn]:
    """Return the turns that a conversation is made of.

    `agents` are found by the call that started them, or by their own id; `agent` says that the
    conversation is a sub-agent's.
    """
    return Telling(agent=agent).turns(transcript, list(nodes), agents or {}, compactions or {})


class Telling:
    """A conversation that is told, and told again when it has grown: only what is new is read."""

    def __init__(self, *, agent: bool = False) -> None:
        self._agent = agent
        self._nodes: list[Node] = []
        self._cast: dict[str, tuple[Thread, str]] = {}
        self._seams: dict[int, Compaction] = {}
        self._story = Story({}, {}, agent=agent)

    def turns(
        self,
        transcript: Transcript,
        nodes: list[Node],
        agents: Mapping[str, "Thread"],
        compactions: Mapping[int, Compaction],
    ) -> list[Turn]:
        """Return the turns that a conversation is made of by now."""
        cast = {name: (thread, thread.kind) for name, thread in agents.items()}
        seams = {place: compactions.get(place) for place in self._seams}
        goes_on = nodes[: len(self._nodes)] == self._nodes
        if not goes_on or cast != self._cast or seams != self._seams:
            self._nodes = []
            self._story = Story(agents, compactions, agent=self._agent)
        self._story.compactions = compactions
        for node in nodes[len(self._nodes) :]:
            self._story.take(transcript.record(node), node)
        self._nodes, self._cast, self._seams = nodes, cast, dict(compactions)
        scenes = self._story.scenes()
        last = len(scenes)
        return [
            _turn(scene, number, final=number == last) for number, scene in enumerate(scenes, 1)
        ]


class Story:
    """Cuts a row of records into scenes."""

    def __init__(
        self, agents: Mapping[str, "Thread"], compactions: Mapping[int, Compaction], *, agent: bool
    ) -> None:
        self._teller = Teller(agents)
        self.compactions = compactions
        self._agent = agent
        self.done: list[Scene] = []
        """The turns before; the last one may still get what turns out to be no turn of its own."""
        self.now = Scene()
        self._repeats = Repeats()
        self._kept_all: Compaction | None = None
        """A compaction that left nothing out, which stands before the next turn."""

    def take(self, record: Record, node: Node) -> None:
        """Take in the next record."""
        seam = self.compactions.get(node.index)
        if seam is not None and keeps_all(node):
            # Nothing was left out of the conversation: the turn goes on.
            if self.now.answered:
                self._kept_all = seam
            else:
                if self.now.compaction is not None:
                    self.now.note(seam)
                self.now.compaction = self.now.compaction or seam
        elif seam is not None and is_seam(node):
            self._cut(Scene(seam))
        if self._repeated(record, node):
            self.now.nodes.append(node)
            return
        if node.type == "assistant":
            self._rejoin()
        now = self.now
        trail = now.trail
        if node.type == "assistant":
            now.nodes.append(node)
            self._teller.assistant(now, record, node)
        elif record.role:
            self._user(record, node)
            now = self.now
        else:
            now.nodes.append(node)
            self._teller.other(now, record, node)
        if now.trail == trail:
            now.trail = 0

    def call(self, call_id: str) -> Draft | None:
        """Return the step that a tool call began, by the call's id."""
        return self._teller.call(call_id)

    def scenes(self) -> list[Scene]:
        """Return the scenes so far; a last one that came to nothing goes to the one before."""
        last = self.now
        if self._kept_all is not None and last.compaction is None:
            last = last.copy()
            last.compaction = self._kept_all
        if self.done and last.is_faint:
            joined = self.done[-1].copy()
            joined.close(last.compaction)
            joined.take_over(last.copy())
            return [*self.done[:-1], joined]
        return [*self.done, last] if last.nodes else self.done

    def _user(self, record: Record, node: Node) -> None:
        if node.results:
            self.now.nodes.append(node)
            self._teller.results(self.now, record, node)
            return
        origin = origin_of(record, agent=self._agent)
        if origin in STARTS or (origin == "summary" and self.now.is_faint):
            self._begin(record, node, origin)
            self.now.nodes.append(node)
            return
        self.now.nodes.append(node)
        self._teller.user(self.now, record, node, origin)

    def _begin(self, record: Record, node: Node, origin: Origin) -> None:
        now = self.now
        stays = now.is_faint and (not self.done or now.compaction is not None)
        if not stays:
            self._cut(Scene())
        self.now.begin(prompt_of(record, node, origin))

    def _repeated(self, record: Record, node: Node) -> bool:
        """Whether a record only says again what stands before the last compaction."""
        if not self.compactions:
            return False
        if node.type == "assistant":
            return self._repeats.answer(node.parent, node.message_id, node.uses)
        if node.results:
            return self._repeats.results(node.results)
        return node.repeats and origin_of(record, agent=self._agent) in STARTS

    def _rejoin(self) -> None:
        """Go on in the turn before, if the model goes on behind a compaction unasked."""
        now = self.now
        if now.compaction is None or not now.is_faint or not self.done:
            return
        if now.prompt is not None and now.prompt.origin != "summary":
            return
        before = self.done.pop()
        before.reopen(now.compaction)
        before.take_over(now)
        before.compaction = before.compaction or now.compaction
        before.trail = 0
        self.now = before

    def _cut(self, scene: Scene) -> None:
        """Go on in a new scene."""
        now = self.now
        scene.compaction = scene.compaction or self._kept_all
        self._kept_all = None
        now.hand_over(scene)
        if self.done and now.is_faint:
            before = self.done[-1]
            before.close(now.compaction)
            before.take_over(now)
        elif now.nodes:
            self.done.append(now)
        self.now = scene


def _turn(scene: Scene, number: int, *, final: bool) -> Turn:
    files = scene.files()
    whole, answer, whole_before = scene.finish(final=final)
    steps = tuple(step for step in whole if not step.is_deleted)
    has_deleted = len(steps) < len(whole)
    before = sum(not step.is_deleted for step in whole[:whole_before])
    seconds = scene.seconds
    if seconds is None and scene.started is not None and scene.ended is not None:
        seconds = max(0.0, (scene.ended - scene.started).total_seconds())
    return Turn(
        number=number,
        prompt=scene.prompt,
        steps=steps,
        answer=answer,
        before=before,
        started=scene.started,
        ended=scene.ended,
        duration=seconds,
        usage=scene.counter.totals(),
        files=files,
        commands=tuple(step.command for step in steps if step.command),
        errors=sum(step.has_failed for step in steps),
        interrupted=scene.interrupted,
        done=scene.last in ("words", "end") or scene.is_idle,
        nodes=tuple(scene.nodes),
        compaction=scene.compaction,
        closing=scene.closing,
        whole=(whole, whole_before) if has_deleted else None,
    )
