"""One session of a comparison: steps in order, counts, files, commands and tools."""

import re
from collections.abc import Iterable, Iterator
from typing import Final, Literal, TypeAlias

import msgspec

from steno.report.actions.action import Action, SuiteCounts, TestResult, parse_test_counts
from steno.report.humanize import relative_to_project
from steno.report.usage.usage_report import UsageFigures
from steno.session.session import Session
from steno.session.session_status import StatusName, status_of
from steno.session.transcript import Node, Transcript
from steno.session.turns.session_facts import SessionCounts as Counted
from steno.session.turns.session_facts import count_session, find_abandoned_branches
from steno.session.turns.steps import Step, StepState
from steno.session.turns.turn_builder import Turn, build_turns

PathItemKind: TypeAlias = Literal["prompt", "tool", "agent", "error", "unknown"]
_MAX_PROMPT_LENGTH: Final = 2_000
"""Maximum number of characters of a prompt."""
_SPACE: Final = re.compile(r"\s+")


class PathItem(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt or a work step; a sub-agent counts as one step.

    Thinking, texts, notes and hooks are excluded, as they never match.
    """

    kind: PathItemKind
    key: tuple[str, str]
    """Equality key: for a step its verb and subject."""
    turn: int
    number: int = 0
    """Step number, starting at 1; for a prompt, the number of the preceding step."""
    verb: str = ""
    subject: str = ""
    """Subject of the step, or text of the prompt."""
    outcome: str = ""
    state: StepState = "ok"
    seconds: float | None = None
    tokens: int | None = None
    added: int = 0
    removed: int = 0
    place: str = ""
    """Offset of the record, and index of the step in the record."""
    uuid: str = ""
    agent: str = ""
    """Sub-agent ID, if known."""
    more: int = 0
    """Number of omitted characters of the prompt."""

    @property
    def is_prompt(self) -> bool:
        """Whether the item is a prompt."""
        return self.kind == "prompt"


def path_items(turns: Iterable[Turn], project: str) -> Iterator[PathItem]:
    """Yield the prompts and work steps in order, with paths relative to the project."""
    number = 0
    for turn in turns:
        if turn.prompt is not None:
            image_marks = " [image]" * turn.prompt.images
            yield _prompt_item(turn.prompt.text + image_marks, turn.number, number, turn.prompt.node)
        for position, step in _with_record_position(turn.steps):
            if step.kind == "queued":
                yield _prompt_item(step.subject, turn.number, number, step.call)
            elif step.is_work:
                number += 1
                yield _step_item(step, turn.number, number, position, project)


def _prompt_item(text: str, turn: int, number: int, node: Node | None) -> PathItem:
    prompt_text = text.strip()
    return PathItem(
        kind="prompt",
        key=("", _SPACE.sub(" ", prompt_text).casefold()),
        turn=turn,
        number=number,
        subject=prompt_text[:_MAX_PROMPT_LENGTH],
        more=max(0, len(prompt_text) - _MAX_PROMPT_LENGTH),
        uuid=_uuid(node),
    )


def _step_item(step: Step, turn: int, number: int, place: str, project: str) -> PathItem:
    subject = relative_to_project(step.subject, project)
    kind: PathItemKind = "tool"
    if step.kind in ("agent", "error", "unknown"):
        kind = step.kind
    touch = step.touch
    return PathItem(
        kind=kind,
        key=(step.verb, _SPACE.sub(" ", subject)),
        turn=turn,
        number=number,
        verb=step.verb,
        subject=subject,
        outcome=step.outcome,
        state=step.state,
        seconds=step.duration,
        tokens=step.tokens,
        added=touch.added if touch is not None else 0,
        removed=touch.removed if touch is not None else 0,
        place=place,
        uuid=_uuid(step.call),
        agent=step.agent.agent_id if step.agent is not None else "",
    )


def _with_record_position(steps: Iterable[Step]) -> Iterator[tuple[str, Step]]:
    steps_by_offset: dict[int, int] = {}
    for step in steps:
        node = step.call or step.result
        offset = -1 if node is None else node.offset
        number = steps_by_offset.get(offset, 0)
        steps_by_offset[offset] = number + 1
        yield f"{offset}-{number}" if node is not None else "", step


def _uuid(node: Node | None) -> str:
    return (node.uuid or "") if node is not None else ""


_MAX_NODES: Final = 25_000
"""Maximum number of records read from a conversation and from its sub-agents; further records are only counted."""
_STATUS_NODES: Final = 200
"""Number of records at the end of a long session from which its status is determined."""
_MAX_ITEMS: Final = 20_000
_MAX_ABANDONED_NODES: Final = 20_000
"""Maximum number of abandoned records read to count their tokens."""
_MAX_COMMAND_LENGTH: Final = 500


class IndexedFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a session from the index."""

    title: str = ""
    project: str = ""
    branch: str = ""
    models: tuple[str, ...] = ()
    """Models of the responses, most output tokens first."""
    figures: UsageFigures | None = None
    """Tokens and cost, without responses copied from another session."""
    counted: Counted = Counted()
    """Counts from the index, for sessions that are too long to read."""


class FileTouches(msgspec.Struct):
    """Touches of a file."""

    reads: int = 0
    edits: int = 0
    added: int = 0
    removed: int = 0


class CommandRuns(msgspec.Struct):
    """Runs of a command, and its last outcome."""

    times: int = 0
    failed: int = 0
    outcome: str = ""
    state: str = ""
    tests: SuiteCounts | None = None


class SessionSide(msgspec.Struct, frozen=True, kw_only=True):
    """One of two compared sessions. Times are in seconds since 1970; counts match the session page."""

    id: str
    known: IndexedFacts
    path: tuple[PathItem, ...]
    cut: int
    """Number of records or steps of the conversation that are not in the path."""
    unheard: int
    """Number of sub-agents that were too long to read; their files and commands are missing."""
    started: float | None
    ended: float | None
    worked: float
    """Working time of the turns in seconds."""
    standing: StatusName
    reason: str
    turns: int
    steps: int
    failed: int
    agents: int
    compactions: int
    branches: int
    """Number of abandoned branches."""
    abandoned: int | None
    """Tokens of abandoned branches; None if there were too many records to read."""
    files: dict[str, FileTouches]
    commands: dict[str, CommandRuns]
    tools: dict[str, tuple[int, int]]
    """Calls and failed calls of each tool."""
    last_tests: TestResult | None
    """Result of the last test run."""
    continues: tuple[str, ...]
    """Sessions that this session continues."""

    @property
    def changed(self) -> dict[str, FileTouches]:
        """Changed files."""
        return {path: touch for path, touch in self.files.items() if touch.edits}


def build_side(
    session: Session, indexed_facts: IndexedFacts, *, nodes: int = _MAX_NODES, items: int = _MAX_ITEMS
) -> SessionSide:
    """Return one side of a comparison; `nodes` and `items` limit the number of records and steps."""
    turns, remaining_nodes = _first_turns(session, nodes)
    path = tuple(path_items(turns, indexed_facts.project))
    subagent_turns, unheard = _subagent_turns(session, nodes)
    steps = [step for turn in (*turns, *subagent_turns) for step in turn.steps]
    started, ended = _time_span(turns)
    status = status_of(
        turns if not remaining_nodes else build_turns(session.transcript, remaining_nodes[-_STATUS_NODES:])
    )
    abandoned_branches = find_abandoned_branches(session.branches)
    readable = sum(len(branch.nodes) for branch in abandoned_branches) <= _MAX_ABANDONED_NODES
    figures = indexed_facts.counted if remaining_nodes else count_session(session)
    return SessionSide(
        id=session.id,
        known=indexed_facts,
        path=path[:items],
        cut=len(remaining_nodes) + max(0, len(path) - items),
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
        abandoned=sum(abandoned_branch.usage.total for abandoned_branch in abandoned_branches) if readable else None,
        files=_touched_files(steps, indexed_facts.project),
        commands=_command_runs(steps, indexed_facts.project),
        tools=_tool_calls(steps),
        last_tests=_last_tests(turns, session.transcript),
        continues=_source_sessions(session, nodes),
    )


def _first_turns(session: Session, max_nodes: int) -> tuple[list[Turn], list[Node]]:
    """Return the turns, only the first ones for a long session, and the remaining records."""
    if len(session.transcript.nodes) <= max_nodes:
        return session.turns(), []
    chain = session.conversation()
    if len(chain) <= max_nodes:
        return session.turns(), []
    agents = {name: thread for thread in session.all_agents for name in (thread.agent_id, thread.call_id)}
    agents.pop("", None)
    return build_turns(session.transcript, chain[:max_nodes], agents=agents), chain[max_nodes:]


def _subagent_turns(session: Session, max_nodes: int) -> tuple[list[Turn], int]:
    """Return the turns of sub-agents, and the number of sub-agents beyond the limit."""
    turns: list[Turn] = []
    unread = 0
    for thread in session.all_agents:
        max_nodes -= len(thread.nodes)
        if max_nodes < 0:
            unread += 1
        else:
            turns += thread.turns
    return turns, unread


def _source_sessions(session: Session, max_nodes: int) -> tuple[str, ...]:
    """Return the sessions that a session continues; empty for a long session."""
    return session.continues if len(session.transcript.nodes) <= max_nodes else ()


def _time_span(turns: list[Turn]) -> tuple[float | None, float | None]:
    times = [time for turn in turns for time in (turn.started, turn.ended) if time is not None]
    if not times:
        return None, None
    return min(times).timestamp(), max(times).timestamp()


def _touched_files(steps: list[Step], project: str) -> dict[str, FileTouches]:
    files: dict[str, FileTouches] = {}
    for step in steps:
        touch = step.touch
        if touch is None or not touch.path:
            continue
        touches = files.setdefault(relative_to_project(touch.path, project), FileTouches())
        touches.reads += not touch.changes
        touches.edits += touch.changes
        touches.added += touch.added
        touches.removed += touch.removed
    return files


def _command_runs(steps: list[Step], project: str) -> dict[str, CommandRuns]:
    commands: dict[str, CommandRuns] = {}
    for step in steps:
        command = relative_to_project(step.command.strip(), project)[:_MAX_COMMAND_LENGTH]
        if not command:
            continue
        runs = commands.setdefault(command, CommandRuns())
        runs.times += 1
        runs.failed += step.state == "failed"
        runs.outcome, runs.state = step.outcome, step.state
        runs.tests = parse_test_counts(step.outcome)
    return commands


def _last_tests(turns: list[Turn], transcript: Transcript) -> TestResult | None:
    for turn in reversed(turns):
        for step in reversed(turn.steps):
            tests = Action(step, transcript, turn.number, "").test_result
            if tests is not None:
                return tests
    return None


def _tool_calls(steps: list[Step]) -> dict[str, tuple[int, int]]:
    tools: dict[str, tuple[int, int]] = {}
    for step in steps:
        if step.kind in ("tool", "agent") and (step.call is not None and step.call.type == "assistant"):
            name = "Agent" if step.kind == "agent" else step.verb
            calls, failed = tools.get(name, (0, 0))
            tools[name] = (calls + 1, failed + (step.state == "failed"))
    return tools
