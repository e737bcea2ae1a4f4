"""Files in the form of the description for OpenContext (003), record by record."""

import json
from typing import Any, Self, TypeAlias

from steno.format.source import BytesSource
from steno.report.brief import Brief, build_brief
from steno.session.session import Session
from steno.session.transcript import load

Json: TypeAlias = dict[str, Any]
SESSION = "0c9be80c-c704-4d9f-928e-22f500ed824f"
PROJECT = "/home/yu/projects/foo"


class ContextFile:
    """A session of 2.1.42 as 003 describes it; every record follows the one before."""

    def __init__(self) -> None:
        self.records: list[Json] = []
        self.last: str | None = None
        self._seconds = 0

    def time(self) -> str:
        self._seconds += 1
        return f"2026-02-14T13:{self._seconds // 60:02d}:{self._seconds % 60:02d}.053Z"

    def linked(self, kind: str, **fields: Any) -> Self:
        """Add a record of the conversation."""
        uuid = f"00000000-0000-4000-8000-{len(self.records):012d}"
        self.records.append(
            {
                "parentUuid": self.last,
                "isSidechain": False,
                "userType": "external",
                "cwd": PROJECT,
                "sessionId": SESSION,
                "version": "2.1.42",
                "gitBranch": "main",
                "type": kind,
                "uuid": uuid,
                "timestamp": self.time(),
                **fields,
            }
        )
        self.last = uuid
        return self

    def beside(self, kind: str, **fields: Any) -> Self:
        """Add a record that is not part of the conversation."""
        self.records.append({"type": kind, **fields})
        return self

    def user(self, content: Any, **fields: Any) -> Self:
        return self.linked("user", message={"role": "user", "content": content}, **fields)

    def assistant(self, *blocks: Json | str, **fields: Any) -> Self:
        content = [{"type": "text", "text": each} if isinstance(each, str) else each for each in blocks]
        message = {"id": f"msg_{len(self.records)}", "model": "claude-opus-4-6", "role": "assistant"}
        message = {**message, "content": content, "stop_reason": None, "usage": {}}
        return self.linked("assistant", message={**message, **fields.pop("message", {})}, **fields)

    def result(self, call: str, content: Any = "done", **fields: Any) -> Self:
        block = {"type": "tool_result", "tool_use_id": call, "content": content, **fields}
        return self.user([block])

    def snapshot(self, backups: Json, *, update: bool = False, message: str | None = None) -> Self:
        name = message or self.last
        inner = {"messageId": name, "timestamp": self.time(), "trackedFileBackups": backups}
        return self.beside("file-history-snapshot", messageId=name, isSnapshotUpdate=update, snapshot=inner)

    def queue(self, operation: str, content: str | None = None) -> Self:
        said = {} if content is None else {"content": content}
        fields = {"operation": operation, "timestamp": self.time(), "sessionId": SESSION}
        return self.beside("queue-operation", **fields, **said)

    def progress(self, call: str, data: Json) -> Self:
        ids = {"toolUseID": f"agent_{len(self.records)}", "parentToolUseID": call}
        return self.linked("progress", data=data, **ids)

    def microcompact(self, **metadata: Any) -> Self:
        return self.linked(
            "system", subtype="microcompact_boundary", content="Context microcompacted", microcompactMetadata=metadata
        )

    def data(self) -> bytes:
        return b"".join(json.dumps(record).encode() + b"\n" for record in self.records)

    def session(self) -> Session:
        return Session(load(BytesSource(self.data())), name=SESSION)

    def brief(self, **options: Any) -> Brief:
        return build_brief(self.session(), **options)


def call(name: str, tool: str, **given: Any) -> Json:
    """Return a tool call as a block."""
    return {"type": "tool_use", "id": name, "name": tool, "input": given}


def backup(name: str, version: int, **more: Any) -> Json:
    """Return what a snapshot says of a file."""
    time = f"2026-02-14T13:{version:02d}:00.000Z"
    return {"backupFileName": f"{name}@v{version}", "version": version, "backupTime": time, **more}
