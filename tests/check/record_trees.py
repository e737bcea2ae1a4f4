"""Sessions drawn record by record: who hangs on whom, and when it was said."""

import json
from typing import Any

from tests.check.repair_checks import Records

from steno.check.repair.repair_job import RepairResult, repair_bytes
from steno.format.encode import encode_line
from steno.session.resume.clients import LATEST
from steno.session.resume.replay import as_resumed

__all__ = ["calls", "data_of", "mended", "parents", "results", "said", "sent", "uuid"]

_SESSION = "11111111-1111-4111-8111-111111111111"


def uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


def said(number: int, parent: int, second: int, content: object, name: str = "", **more: object) -> dict[str, Any]:
    """Return a message on a parent, 0 for none: an answer if its response has a name."""
    role = "assistant" if name else "user"
    message: dict[str, object] = {"role": role, "content": content}
    if name:
        message = {"id": name, "model": "claude-x", "type": "message", **message}
    return {
        "parentUuid": uuid(parent) if parent else None,
        "isSidechain": False,
        "sessionId": _SESSION,
        "type": role,
        "message": message,
        "uuid": uuid(number),
        "timestamp": f"2026-01-05T09:{second // 60:02d}:{second % 60:02d}.000Z",
        **more,
    }


def calls(*ids: str) -> list[dict[str, Any]]:
    return [{"type": "tool_use", "id": each, "name": "Bash", "input": {}} for each in ids]


def results(*ids: str) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": e, "content": f"out of {e}"} for e in ids]


def data_of(records: Records) -> bytes:
    return b"".join(map(encode_line, records))


def mended(*records: dict[str, Any]) -> RepairResult:
    done = repair_bytes(data_of(list(records)))
    assert done.settled
    assert repair_bytes(done.data).edits == []
    return done


def parents(done: RepairResult) -> dict[int, int]:
    """Return for the number of each record in a mended file that of its parent; 0 for none."""
    records = [json.loads(line) for line in done.data.splitlines()]
    return {int(each["uuid"][-12:]): int((each["parentUuid"] or "0")[-12:]) for each in records if "parentUuid" in each}


def sent(done: RepairResult) -> str:
    return json.dumps(as_resumed(done.transcript, LATEST))
