"""A session to break and mend, and what is asked of every mend."""

import json
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from tests.builders import Session, session, tool

from steno.check.repair.repair_job import RepairResult, repair_bytes
from steno.format.encode import encode_line

__all__ = ["LOST", "Records", "at", "broken", "late", "line_of", "talk", "told"]

LOST: Final = "bbbbbbbb-0000-4000-8000-00000000dead"
Records: TypeAlias = list[dict[str, Any]]


def talk() -> Session:
    """Three prompts, one tool call."""
    made = session(seed="stages").user("One?").assistant(tool("Bash", command="ls"))
    made.result("a.py").assistant("One.").user("Two?").assistant("Two.")
    return made.user("Three?").assistant("Three.")


def broken(made: Session, change: Callable[[Records], object]) -> tuple[Records, RepairResult]:
    """Change a session's records, repair it, and check that only named lines differ."""
    records = made.records()
    change(records)
    lines = [encode_line(record) for record in records]
    done = repair_bytes(b"".join(lines))
    assert done.settled
    named = {edit.line for edit in done.edits if edit.action != "insert"}
    kept = set(done.data.splitlines(keepends=True))
    followed = {
        number
        for number, record in enumerate(records, 1)
        if any(record.get("parentUuid") == edit.uuid for edit in done.edits if edit.uuid)
    }
    for number, line in enumerate(lines, 1):
        assert line in kept or number in named | followed, number
    return [json.loads(line) for line in done.data.splitlines()], done


def told(done: RepairResult) -> list[tuple[str, str, int]]:
    return [(edit.finding, edit.action, edit.line) for edit in done.edits]


def at(records: Records, number: int) -> dict[str, Any]:
    """Return the n-th message of a file."""
    return [each for each in records if each["type"] in ("user", "assistant")][number]


def line_of(records: Records, number: int) -> int:
    return records.index(at(records, number)) + 1


def late(records: Records) -> None:
    """Let a result stand behind another response."""
    call, result, answer, prompt, other, last = (at(records, number) for number in range(1, 7))
    prompt["parentUuid"] = call["uuid"]
    result["parentUuid"] = other["uuid"]
    last["parentUuid"] = result["uuid"]
    records.remove(answer)
