"""Sessions as the three descriptions of the client's own format make them: 001, 002 and 003."""

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.published.forms import Json, lines

MODEL = "claude-opus-4-5-20251101"
USAGE: Json = {
    "input_tokens": 2,
    "cache_creation_input_tokens": 38543,
    "cache_read_input_tokens": 0,
    "cache_creation": {"ephemeral_5m_input_tokens": 38543, "ephemeral_1h_input_tokens": 0},
    "output_tokens": 256,
    "service_tier": "standard",
}
_START = datetime(2026, 1, 3, 15, 44, 58, 325_000, UTC)
_FOLLOW = "the record before"


def full_id(head: str) -> str:
    """Complete an id of which a document shows the first eight digits."""
    return f"{head}-0000-4000-8000-000000000000"


class ClientForm:
    """A session file, record by record: each message in the common envelope."""

    def __init__(
        self,
        session: str = full_id("07c9cd52"),
        *,
        cwd: str = "/Users/ada/work/mtools",
        version: str = "2.1.29",
        slug: str = "virtual-puzzling-nygaard",
        agent: str = "",
    ) -> None:
        self.session = session
        self.envelope: Json = {
            "isSidechain": bool(agent),
            "userType": "external",
            "cwd": cwd,
            "version": version,
            "gitBranch": "main",
            "slug": slug,
        }
        if agent:
            self.envelope["agentId"] = agent
        self.records: list[Json] = []
        self.last: str | None = None
        self._responses = 0

    def now(self) -> str:
        """Return the time of the next record."""
        time = _START + timedelta(seconds=len(self.records))
        return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def put(self, kind: str, **fields: Any) -> None:
        """Add a record without the envelope."""
        self.records.append({"type": kind, **fields})

    def add(self, kind: str, *, parent: str | None = _FOLLOW, linked: bool = True, **fields: Any) -> str:
        """Add a record in the envelope; one that is not `linked` is followed by none."""
        number = len(self.records) + 1
        uuid = fields.pop("uuid", full_id(f"{number:08x}"))
        record: Json = {
            "type": kind,
            "parentUuid": self.last if parent == _FOLLOW else parent,
            "uuid": uuid,
            "timestamp": self.now(),
            "sessionId": self.session,
            **self.envelope,
            **fields,
        }
        self.records.append(record)
        if linked:
            self.last = uuid
        return uuid

    def user(self, content: Any, **fields: Any) -> str:
        return self.add("user", message={"role": "user", "content": content}, **fields)

    def result(self, call: str, content: Any, detail: Any = None, **fields: Any) -> str:
        block: Json = {"type": "tool_result", "tool_use_id": call, "content": content}
        if fields.pop("is_error", False):
            block["is_error"] = True
        if detail is not None:
            fields["toolUseResult"] = detail
        return self.user([block], **fields)

    def answer(self, *blocks: Any, stop: str | None = None, **fields: Any) -> list[str]:
        """Add a response: a line for each block, and the reason it stopped on the last."""
        self._responses += 1
        calls = any(isinstance(block, dict) and block.get("type") == "tool_use" for block in blocks)
        last = stop or ("tool_use" if calls else "end_turn")
        uuids: list[str] = []
        for place, block in enumerate(blocks, 1):
            message: Json = {
                "model": MODEL,
                "id": f"msg_01{self._responses:022d}",
                "type": "message",
                "role": "assistant",
                "content": [{"type": "text", "text": block} if isinstance(block, str) else block],
                "stop_reason": last if place == len(blocks) else None,
                "stop_sequence": None,
                "usage": dict(USAGE),
            }
            request = f"req_01{self._responses:022d}"
            uuids.append(self.add("assistant", requestId=request, message=message, **fields))
        return uuids

    def snapshot(self, message: str, backups: Json | None = None, **fields: Any) -> None:
        """Add a snapshot of the files that are tracked."""
        self.put(
            "file-history-snapshot",
            messageId=message,
            snapshot={"messageId": message, "trackedFileBackups": backups or {}, "timestamp": self.now()},
            **{"isSnapshotUpdate": False, **fields},
        )

    def queued(self, operation: str, **fields: Any) -> None:
        """Add an operation on the queue of prompts."""
        self.put("queue-operation", operation=operation, timestamp=self.now(), sessionId=self.session, **fields)

    def progress(self, call: str, **data: Any) -> str:
        """Add a record of progress, which no other record follows."""
        of = {"toolUseID": call, "parentToolUseID": call}
        return self.add("progress", linked=False, data=data, **of)

    def data(self) -> bytes:
        return lines(self.records)
