"""Status and liveness of sessions, and the rule for which sessions lists show.

A session was active at the time of its last record, or when its file was observed to grow. The modification time of the
file is not used, because a copy or restore changes it for every file. These functions read neither the clock nor files.

Step records are the user and assistant records of a file, one line each in `steps.jsonl`. A published description of
the format counts a session's steps this way, and lists show sessions by that count. The steps of `steno show` (tool
calls, notes) are counted differently.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast

import msgspec

from steno.format.records import Record
from steno.format.tool_catalogue import AWAITED_TOOLS

if TYPE_CHECKING:
    from steno.session.turns.steps import Step
    from steno.session.turns.turn_builder import Turn

Ending: TypeAlias = Literal[
    "", "question", "tool", "prompt", "refused", "answered", "finished", "interrupted", "failed"
]
"""How the records of a session end, independent of time.

(empty)      no message
question     an unanswered question of the agent
tool         a tool call without a result
prompt       a prompt or tool result without an answer
refused      an API error that Claude Code may still retry
answered     an answer; Claude Code may still be open
finished     an answer, and Claude Code was closed
interrupted  interrupted by the user, or by closing Claude Code
failed       an API error
"""
LastMessage: TypeAlias = Literal["", "prompt", "interrupt", "answer", "error", "other"]
"""Type of the last message of the conversation; a tool result counts as a prompt."""
SessionStatus: TypeAlias = Literal["running", "waiting", "finished", "interrupted", "failed", "empty"]
MODEL_SECONDS: Final = 300.0
"""Maximum time in seconds for a model to respond without a new record."""
TOOL_SECONDS: Final = 1800.0
"""Maximum time in seconds for a tool to run without a new record."""
WAITING_SECONDS: Final = 900.0
"""Time in seconds for which an answered session counts as waiting for input."""
_QUESTION_SECONDS: Final = 86_400.0
LIVE_SECONDS: Final[dict[Ending, float]] = {
    "tool": TOOL_SECONDS,
    "prompt": MODEL_SECONDS,
    "refused": MODEL_SECONDS,
    "answered": WAITING_SECONDS,
    "question": _QUESTION_SECONDS,
}
"""Seconds after its last activity for which a session with this ending is live."""
CLOCK_SKEW: Final = 300.0
"""Maximum time in seconds by which a record may be ahead of this machine's clock and still count as recent."""
_STATUS_AFTERWARDS: Final[dict[Ending, SessionStatus]] = {
    "": "empty",
    "question": "waiting",
    "tool": "interrupted",
    "prompt": "interrupted",
    "refused": "failed",
    "answered": "finished",
    "finished": "finished",
    "interrupted": "interrupted",
    "failed": "failed",
}
_STATUS_WHILE_LIVE: Final[dict[Ending, SessionStatus]] = {
    "question": "waiting",
    "tool": "running",
    "prompt": "running",
    "refused": "running",
    "answered": "waiting",
}


def ending_of(last: LastMessage, open_tools: Collection[str], *, left: bool, refused: bool) -> Ending:
    """Return the ending of a session.

    `open_tools` names the tools called by the last message that have no result; `left` means that Claude Code was
    closed afterwards, `refused` that the API returned an error afterwards.

    >>> ending_of("answer", ["Bash"], left=False, refused=False)
    'tool'
    """
    if not last:
        return ""
    if open_tools:
        if left:
            return "interrupted"
        return "question" if AWAITED_TOOLS.intersection(open_tools) else "tool"
    if last == "error":
        return "failed"
    if refused:
        return "failed" if left else "refused"
    if last == "interrupt":
        return "interrupted"
    if last == "prompt":
        return "interrupted" if left else "prompt"
    return "finished" if left else "answered"


def activity_age(now: float, last_record: float | None, growth_time: float | None = None) -> float:
    """Return the seconds since the last activity of a session, or infinity if unknown.

    A record ahead of the clock by more than `CLOCK_SKEW` is not recent.

    >>> activity_age(1000.0, 400.0, 900.0), activity_age(1000.0, 5000.0), activity_age(1000.0, None)
    (100.0, inf, inf)
    """
    times = [time for time in (last_record, growth_time) if time is not None and time <= now + CLOCK_SKEW]
    return max(0.0, now - max(times)) if times else float("inf")


def is_live(ending: Ending, age: float) -> bool:
    """Return whether a session is running, or waits for a user who may still be present.

    >>> is_live("answered", 60.0), is_live("answered", 3600.0), is_live("finished", 0.0)
    (True, False, False)
    """
    return age <= LIVE_SECONDS.get(ending, -1.0)


def status_at(ending: Ending, age: float) -> SessionStatus:
    """Return the status of a session that was active `age` seconds ago.

    >>> status_at("tool", 60.0), status_at("tool", 3600.0), status_at("question", 1e9)
    ('running', 'interrupted', 'waiting')
    """
    return _STATUS_WHILE_LIVE[ending] if is_live(ending, age) else _STATUS_AFTERWARDS[ending]


StatusName: TypeAlias = Literal["running", "waiting", "finished", "interrupted", "failed"]


class Status(msgspec.Struct, frozen=True):
    """Status of a session, with the reason."""

    standing: StatusName
    reason: str = ""

    def __str__(self) -> str:
        return self.standing


def status_of(turns: "list[Turn]", *, seconds_since_write: float | None = None, left: bool = False) -> Status:
    """Return the status after the last turn; `left` means that Claude Code was closed afterwards."""
    if not turns:
        return Status("finished", "no messages")
    turn = turns[-1]
    # An answer after a call without a result shows that the agent continued without it.
    step = None if turn.done else next((step for step in reversed(turn.steps) if step.state == "open"), None)
    last: LastMessage = "answer" if turn.done else "prompt"
    if turn.interrupted or turn.failure is not None:
        last = "interrupt" if turn.interrupted else "error"
    ending = ending_of(last, [step.verb] if step is not None else [], left=left, refused=False)
    age = float("inf") if seconds_since_write is None else seconds_since_write
    status = cast("StatusName", status_at(ending, age))
    return Status(
        status, _step_reason(step, status) if step is not None else _turn_reason(turn, last, status, left=left)
    )


def _step_reason(step: "Step", status: StatusName) -> str:
    if status == "waiting":
        return "question unanswered"
    return f"{step.verb} {step.subject}".strip() if status == "running" else f"{step.verb} returned no result"


def _turn_reason(turn: "Turn", last: LastMessage, status: StatusName, *, left: bool) -> str:
    if last == "interrupt":
        return "interrupted by the user"
    if turn.failure is not None:
        return turn.failure.subject or turn.failure.verb
    if last == "prompt":
        return "waiting for the model" if status == "running" else "no answer recorded"
    if status == "waiting":
        return "waiting for the next prompt"
    return "Claude Code was closed" if left else "last prompt answered"


StepType: TypeAlias = Literal["USER_MESSAGE", "TOOL_RESULT", "ASSISTANT_MESSAGE", "TOOL_CALL"]
MIN_STEP_RECORDS: Final = 5
"""Finished sessions with fewer step records are not listed."""
ALWAYS_LISTED_STEP_RECORDS: Final = 10
"""Sessions with at least this many step records are always listed; others need an answer."""
_TYPES: Final = frozenset(("user", "assistant"))


class StepCounts(msgspec.Struct, frozen=True):
    """Number of step records of a session, and whether one is an assistant message with text."""

    records: int = 0
    answered: bool = False


def is_step_record(kind: str | None, *, sidechain: bool) -> bool:
    """Return whether a record of this type becomes a line of `steps.jsonl`."""
    return kind in _TYPES and not sidechain


def step_type(record: Record) -> StepType:
    """Return the step type of a user or assistant record."""
    if record.type == "user":
        return "TOOL_RESULT" if record.tool_results else "USER_MESSAGE"
    return "TOOL_CALL" if record.tool_uses else "ASSISTANT_MESSAGE"


def is_answer(record: Record) -> bool:
    """Return whether a step record is an assistant message with text."""
    return step_type(record) == "ASSISTANT_MESSAGE" and bool(record.text.strip())


def count_record(counts: StepCounts, record: Record) -> StepCounts:
    """Return the counts with one more record."""
    if not is_step_record(record.type, sidechain=record.is_sidechain):
        return counts
    return StepCounts(counts.records + 1, counts.answered or is_answer(record))


def is_listed(counts: StepCounts, *, running: bool) -> bool:
    """Return whether lists show a session.

    Running sessions and those with `ALWAYS_LISTED_STEP_RECORDS` step records are always shown. Of the others, those
    with fewer than `MIN_STEP_RECORDS` step records and those without an assistant message are hidden.

    >>> [is_listed(StepCounts(n, answered=True), running=False) for n in (4, 5, 9, 10)]
    [False, True, True, True]
    >>> [is_listed(StepCounts(n), running=False) for n in (4, 5, 9, 10)]
    [False, False, False, True]
    >>> is_listed(StepCounts(1), running=True)
    True
    """
    if running or counts.records >= ALWAYS_LISTED_STEP_RECORDS:
        return True
    return counts.records >= MIN_STEP_RECORDS and counts.answered
