"""One session as it stands beside another: its path, its figures, its files and commands."""

from datetime import datetime
from typing import Final

import msgspec

from steno.report.compare.path import Item, items_of
from steno.report.deeds.deed import Deed
from steno.report.deeds.suites import SuiteRun, Verdict, suite_run
from steno.report.usage.totals import Figures
from steno.report.words import below
from steno.session.nodes import Node
from steno.session.session import Session
from steno.session.story.figures import Figures as Counted
from steno.session.story.figures import figures_of, given_up
from steno.session.story.status import Standing, status_of
from steno.session.story.steps import Step
from steno.session.story.turns import Turn, tell
from steno.session.transcript import Transcript

__all__ = ["Known", "Ran", "Side", "Touched", "side_of"]

_NODES: Final = 25_000
"""How many records of a conversation, and of its sub-agents, are told; the rest is only counted."""
_END: Final = 200
"""How many records at the end of a huge session say how it stands."""
_ITEMS: Final = 20_000
_ABANDONED: Final = 20_000
"""How many records off the conversation are read to count their tokens."""
_LONGEST: Final = 500


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What the index knows of a session without reading it."""

    title: str = ""
    project: str = ""
    branch: str = ""
    models: tuple[str, ...] = ()
    """Those that answered, the one with the most tokens first."""
    figures: Figures | None = None
    """Its tokens and their cost; what another session paid for already is not among them."""
    counted: Counted = Counted()
    """What the index counted, for a session that is too long to be told."""


class Touched(msgspec.Struct):
    """What was done to a file."""

    reads: int = 0
    edits: int = 0
    added: int = 0
    removed: int = 0


class Ran(msgspec.Struct):
    """A command: how often it was run, and how it ended the last time."""

    times: int = 0
    failed: int = 0
    outcome: str = ""
    state: str = ""
    tests: SuiteRun | None = None


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One of two sessions. Times are seconds since 1970; the figures are those of its page."""

    id: str
    known: Known
    path: tuple[Item, ...]
    cut: int
    """How many records, or steps, of the conversation are not in the path."""
    unheard: int
    """How many sub-agents did more than could be read; their files and commands are not known."""
    started: float | None
    ended: float | None
    worked: float
    """What its turns took."""
    standing: Standing
    reason: str
    turns: int
    steps: int
    failed: int
    agents: int
    compactions: int
    branches: int
    """How often somebody went back and went on differently."""
    abandoned: int | None
    """The tokens of what was given up; None where there was too much to read."""
    files: dict[str, Touched]
    commands: dict[str, Ran]
    tools: dict[str, tuple[int, int]]
    """How often each tool was called, and how often it failed."""
    last_tests: Verdict | None
    """What the last run of tests came to."""
    continues: tuple[str, ...]
    """The sessions it was made from."""

    @property
    def changed(self) -> dict[str, Touched]:
        """The files that were changed, not only read."""
        return {path: touch for path, touch in self.files.items() if touch.edits}


def side_of(session: Session, known: Known, *, nodes: int = _NODES, items: int = _ITEMS) -> Side:
    """Return what is compared of a session; `nodes` and `items` bound how much of it is told."""
    turns, left = _turns(session, nodes)
    path = tuple(items_of(turns, known.project))
    threads, unheard = _threads(session, nodes)
    steps = [step for turn in (*turns, *threads) for step in turn.steps]
    started, ended = _span(turns)
    status = status_of(turns if not left else tell(session.transcript, left[-_END:]))
    left_behind = given_up(session.branches)
    readable = sum(len(branch.nodes) for branch in left_behind) <= _ABANDONED
    figures = known.counted if left else figures_of(session)
    return Side(
        id=session.id,
        known=known,
        path=path[:items],
        cut=len(left) + max(0, len(path) - items),
        unheard=unheard,
        started=started,
        ended=ended,
        worked=figures.worked / 1000,
        standing=status.standing,
        reason=status.reason,
        turns=figures.turns,
        steps=figures.steps,
        failed=figures.failed,
        agents=figures.agents,
        compactions=figures.compactions,
        branches=figures.branches,
        abandoned=sum(each.usage.total for each in left_behind) if readable else None,
        files=_files(steps, known.project),
        commands=_commands(steps, known.project),
        tools=_tools(steps),
        last_tests=_last_tests(turns, session.transcript),
        continues=_origin(session, nodes),
    )


def _turns(session: Session, most: int) -> tuple[list[Turn], list[Node]]:
    """Return the turns, of a huge session only the first; and the records that are left."""
    if len(session.transcript.nodes) <= most:
        return session.turns(), []
    chain = session.conversation()
    if len(chain) <= most:
        return session.turns(), []
    agents = {
        name: thread for thread in session.all_agents for name in (thread.agent_id, thread.call_id)
    }
    agents.pop("", None)
    return tell(session.transcript, chain[:most], agents=agents), chain[most:]


def _threads(session: Session, most: int) -> tuple[list[Turn], int]:
    """Return what sub-agents did, and how many of them there was no room for."""
    turns: list[Turn] = []
    unheard = 0
    for thread in session.all_agents:
        most -= len(thread.nodes)
        if most < 0:
            unheard += 1
        else:
            turns += thread.turns
    return turns, unheard


def _origin(session: Session, most: int) -> tuple[str, ...]:
    """Return where a session comes from; in a huge one nobody looks for it."""
    return session.continues if len(session.transcript.nodes) <= most else ()


def _span(turns: list[Turn]) -> tuple[float | None, float | None]:
    times = [time for turn in turns for time in (turn.started, turn.ended) if time is not None]
    if not times:
        return None, None
    return _seconds(min(times)), _seconds(max(times))


def _seconds(time: datetime) -> float:
    return time.timestamp()


def _files(steps: list[Step], project: str) -> dict[str, Touched]:
    files: dict[str, Touched] = {}
    for step in steps:
        touch = step.touch
        if touch is None or not touch.path:
            continue
        found = files.setdefault(below(touch.path, project), Touched())
        found.reads += not touch.changes
        found.edits += touch.changes
        found.added += touch.added
        found.removed += touch.removed
    return files


def _commands(steps: list[Step], project: str) -> dict[str, Ran]:
    commands: dict[str, Ran] = {}
    for step in steps:
        words = below(step.command.strip(), project)[:_LONGEST]
        if not words:
            continue
        found = commands.setdefault(words, Ran())
        found.times += 1
        found.failed += step.state == "failed"
        found.outcome, found.state = step.outcome, step.state
        found.tests = suite_run(step.outcome)
    return commands


def _last_tests(turns: list[Turn], transcript: Transcript) -> Verdict | None:
    for turn in reversed(turns):
        for step in reversed(turn.steps):
            tests = Deed(step, transcript, turn.number, "").tests
            if tests is not None:
                return tests
    return None


def _tools(steps: list[Step]) -> dict[str, tuple[int, int]]:
    tools: dict[str, tuple[int, int]] = {}
    for step in steps:
        if step.kind in ("tool", "agent") and _called(step.call):
            name = "Agent" if step.kind == "agent" else step.verb
            calls, failed = tools.get(name, (0, 0))
            tools[name] = (calls + 1, failed + (step.state == "failed"))
    return tools


def _called(node: Node | None) -> bool:
    """Whether a step begins with a call; a report that came later is no call."""
    return node is not None and node.type == "assistant"
