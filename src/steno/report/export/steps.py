"""A session as the pair `steps.jsonl` and `metadata.json` that a published description asks for.

A user's record is a USER_MESSAGE, or a TOOL_RESULT where it answers a call; an assistant's is an
ASSISTANT_MESSAGE, or a TOOL_CALL where it makes one. Summaries have 200 letters. Records of other
types, of sub-agents and of files that bear no session's id are left out, as there.
"""

from collections.abc import Iterator
from typing import Any, Final

from steno.format.encode import encode
from steno.format.paths import is_uuid
from steno.format.records import Record
from steno.report.export.opened import Leaving
from steno.session.session import Session

__all__ = ["is_listed", "metadata_of", "steps_of"]

_LONGEST: Final = 200
_FEW: Final = 5
_SOME: Final = 10
_RUNNING: Final = ("running", "waiting")


def steps_of(session: Session) -> list[dict[str, Any]]:
    """Return the steps, in the order of the file; none for a file that is no session's."""
    if not is_uuid(session.name):
        return []
    made = list(_steps(session))
    for number, step in enumerate(made, 1):
        step["step_id"] = number
    return made


def _steps(session: Session) -> Iterator[dict[str, Any]]:
    for node in session.transcript.nodes:
        if node.type not in ("user", "assistant") or node.sidechain:
            continue
        record = session.transcript.record(node)
        yield {
            "step_id": 0,
            "session_id": session.id,
            "type": _type(record),
            "timestamp": record.timestamp,
            "content_summary": _summary(record),
            "raw_uuid": record.uuid,
            "parent_uuid": record.parent_uuid,
            **_calls(record),
        }


def _type(record: Record) -> str:
    if record.type == "user":
        return "TOOL_RESULT" if record.tool_results else "USER_MESSAGE"
    return "TOOL_CALL" if record.tool_uses else "ASSISTANT_MESSAGE"


def _summary(record: Record) -> str:
    text = record.text
    if not text and record.tool_results:
        text = "\n".join(result.text for result in record.tool_results)
    if not text:
        text = ", ".join(use.name for use in record.tool_uses) or record.thinking
    return text.strip()[:_LONGEST]


def _calls(record: Record) -> dict[str, Any]:
    if record.type == "assistant":
        calls = [
            {
                "tool_call_id": use.id,
                "tool_name": use.name,
                "input_summary": encode(use.input).decode("utf-8", "replace")[:_LONGEST],
            }
            for use in record.tool_uses
        ]
        return {"tool_calls": calls} if calls else {}
    results = [
        {
            "tool_call_id": result.tool_use_id,
            "status": "error" if result.is_error else "success",
            "result_summary": result.text.strip()[:_LONGEST],
        }
        for result in record.tool_results
    ]
    return {"tool_results": results} if results else {}


def metadata_of(leaving: Leaving, steps: list[dict[str, Any]], age: float | None) -> dict[str, Any]:
    """Return what is said of the whole; `age` is how long ago its file was written to."""
    session = leaving.session
    times = [step["timestamp"] for step in steps if step["timestamp"]]
    running = session.status(age).standing in _RUNNING
    return {
        "session_id": session.id,
        "agent_type": "claude",
        "project_path": session.project,
        "started_at": times[0] if times else None,
        "ended_at": None if running or not times else times[-1],
        "last_activity": times[-1] if times else None,
        "status": "RUNNING" if running else "COMPLETED",
        "step_count": len(steps),
        "tool_call_count": sum(len(step.get("tool_calls", ())) for step in steps),
    }


def is_listed(metadata: dict[str, Any], steps: list[dict[str, Any]]) -> bool:
    """Say whether the description would show a session in a list: those of hardly a step are not."""
    count = metadata["step_count"]
    if metadata["status"] == "RUNNING" or count >= _SOME:
        return True
    answered = any(step["type"] == "ASSISTANT_MESSAGE" for step in steps)
    return count >= _FEW and answered
