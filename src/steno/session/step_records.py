"""Step records: the user and assistant records of a file, one line each in `steps.jsonl`.

A published description of the format counts a session's steps this way and decides by that count
which sessions a list shows. The steps of `steno show` (tool calls, notes) are a different figure.
Exports, `steno ls` and the explorer share the definitions here.
"""

from typing import Final, Literal, TypeAlias

import msgspec

from steno.format.records import Record

__all__ = [
    "FEW",
    "MANY",
    "StepCounts",
    "StepType",
    "count_record",
    "is_answer",
    "is_listed",
    "is_step_record",
    "step_type",
]

StepType: TypeAlias = Literal["USER_MESSAGE", "TOOL_RESULT", "ASSISTANT_MESSAGE", "TOOL_CALL"]
FEW: Final = 5
"""Completed sessions with fewer step records are not listed."""
MANY: Final = 10
"""Sessions with this many step records are always listed; below it one needs an answer."""
_TYPES: Final = frozenset(("user", "assistant"))


class StepCounts(msgspec.Struct, frozen=True):
    """How many step records a session has, and whether one is an assistant message with text."""

    records: int = 0
    answered: bool = False


def is_step_record(kind: str | None, *, sidechain: bool) -> bool:
    """Return whether a record of that type becomes a line of `steps.jsonl`."""
    return kind in _TYPES and not sidechain


def step_type(record: Record) -> StepType:
    """Return what kind of step a user or assistant record is."""
    if record.type == "user":
        return "TOOL_RESULT" if record.tool_results else "USER_MESSAGE"
    return "TOOL_CALL" if record.tool_uses else "ASSISTANT_MESSAGE"


def is_answer(record: Record) -> bool:
    """Return whether a step record is an assistant message with text."""
    return step_type(record) == "ASSISTANT_MESSAGE" and bool(record.text.strip())


def count_record(counts: StepCounts, record: Record) -> StepCounts:
    """Return the counts with one more record taken in."""
    if not is_step_record(record.type, sidechain=record.is_sidechain):
        return counts
    return StepCounts(counts.records + 1, counts.answered or is_answer(record))


def is_listed(counts: StepCounts, *, running: bool) -> bool:
    """Return whether the list rule shows a session.

    Running sessions and those with `MANY` step records are always shown. Of the others, those with
    fewer than `FEW` step records and those without an assistant message are hidden.

    >>> [is_listed(StepCounts(n, answered=True), running=False) for n in (4, 5, 9, 10)]
    [False, True, True, True]
    >>> [is_listed(StepCounts(n), running=False) for n in (4, 5, 9, 10)]
    [False, False, False, True]
    >>> is_listed(StepCounts(1), running=True)
    True
    """
    if running or counts.records >= MANY:
        return True
    return counts.records >= FEW and counts.answered
