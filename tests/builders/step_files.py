"""Session files with a chosen number of step records, for the list rule and the folder of steps."""

import json
from pathlib import Path
from typing import Any, Final
from uuid import UUID

__all__ = ["OVER", "RUNNING", "session_file", "session_id", "step_lines"]

OVER: Final = "2026-11-15T08:00:00.000Z"
"""A time hours before the time of the tests."""
RUNNING: Final = "2026-11-15T11:59:50.000Z"
"""A time seconds before it: what ends in a prompt is still being answered."""


def session_id(number: int) -> str:
    """Return the id of a session by a number."""
    return str(UUID(int=number, version=4))


def _record(number: int, name: str, kind: str, content: Any, time: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": kind, "content": content}
    if kind == "assistant":
        message |= {"id": f"msg_{number}", "type": "message", "model": "claude-opus-5-5"}
    return {
        "parentUuid": str(UUID(int=number - 1)) if number > 1 else None,
        "isSidechain": False,
        "cwd": "/home/ada/tide",
        "sessionId": name,
        "version": "2.0.76",
        "type": kind,
        "message": message,
        "uuid": str(UUID(int=number)),
        "timestamp": time,
    }


def step_lines(name: str, records: int, *, answered: bool = True, time: str = OVER, word: str = "Go on") -> bytes:
    """Return a session of so many step records that ends with a prompt.

    Without `answered` the assistant only calls tools, which is no answer.
    """
    made: list[dict[str, Any]] = [_record(1, name, "user", f"{word} 1", time)]
    while len(made) < records:
        number = len(made) + 1
        if number % 2 or number == records:
            made.append(_record(number, name, "user", f"{word} {number}", time))
        elif answered and number == 2:
            content = [{"type": "text", "text": "High at noon."}]
            made.append(_record(number, name, "assistant", content, time))
        else:
            call = {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {}}
            made.append(_record(number, name, "assistant", [call], time))
    return b"".join(json.dumps(record).encode() + b"\n" for record in made[:records])


def session_file(
    root: Path, number: int, records: int, *, answered: bool = True, time: str = OVER, word: str = "Go on"
) -> Path:
    """Write such a session below a config folder."""
    name = session_id(number)
    path = root / "projects" / "-home-ada-tide" / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(step_lines(name, records, answered=answered, time=time, word=word))
    return path
