"""Files in the published dialects, made as the descriptions make them."""

import json
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]
_START = 1738160130123


class Flat:
    """A session as 000 describes it: flat fields, times as text."""

    def __init__(self, session: str = "session-123") -> None:
        self.session = session
        self.records: list[Json] = []

    def add(self, kind: str, message: str | None = None, **fields: Any) -> str:
        """Add a record that follows the last one, unless `parentUuid` says otherwise."""
        number = len(self.records) + 1
        uuid = f"msg-{number:03d}"
        record: Json = {"type": kind, "uuid": uuid}
        if self.records:
            record["parentUuid"] = self.records[-1]["uuid"]
        record["timestamp"] = f"2025-01-27T10:{number // 60:02d}:{number % 60:02d}Z"
        record["sessionId"] = self.session
        if message is not None:
            record["message"] = message
        record.update(fields)
        self.records.append(record)
        return uuid

    def user(self, text: str, **fields: Any) -> str:
        return self.add("user", text, **fields)

    def says(self, text: str, **fields: Any) -> str:
        return self.add("assistant", text, **{"subtype": "response", **fields})

    def calls(self, tool: str, **fields: Any) -> str:
        arguments = fields.pop("arguments", {"file_path": "/path/to/script.py"})
        given = {"subtype": "tool_use", "toolName": tool, "toolArguments": arguments}
        return self.add("assistant", None, **{**given, **fields})

    def result(self, text: str, **fields: Any) -> str:
        return self.add("system", text, subtype="tool_result", **fields)

    def fails(self, text: str, **fields: Any) -> str:
        return self.add("system", text, isError=True, subtype="error", **fields)

    def compacts(self, operation: str, **fields: Any) -> str:
        return self.add("compact_system", f"conversation_{operation}", **fields)

    def data(self) -> bytes:
        return lines(self.records)


class Nested:
    """A session as 004 describes it: `message` objects, times in milliseconds."""

    def __init__(self, session: str = "session_123") -> None:
        self.session = session
        self.records: list[Json] = []

    def add(self, kind: str, content: Any, **fields: Any) -> str:
        number = len(self.records) + 1
        uuid = f"msg_{kind}_{number:03d}"
        record: Json = {
            "uuid": uuid,
            "parentUuid": self.records[-1]["uuid"] if self.records else None,
            "sessionId": self.session,
            "type": kind,
            "timestamp": _START + number * 1000,
            "version": "1.0.128",
            "message": {"type": "message", "content": content},
        }
        record.update(fields)
        self.records.append(record)
        return uuid

    def human(self, text: Any, **fields: Any) -> str:
        return self.add("human", text, **fields)

    def says(self, *blocks: Any, **fields: Any) -> str:
        content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
        return self.add("assistant", content, **fields)

    def result(self, call: str, text: Any, **fields: Any) -> str:
        block = {"type": "tool_result", "tool_use_id": call, "content": text, "is_error": False}
        return self.add("tool_result", [block], **fields)

    def data(self) -> bytes:
        return lines(self.records)


def call(name: str, tool: str, **asked: Any) -> Json:
    """Return a tool call as a block."""
    return {"type": "tool_use", "id": name, "name": tool, "input": asked}


def lines(records: list[Json]) -> bytes:
    """Return records as the bytes of a file."""
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


class Client:
    """A session of the real client, in which records of the dialects may stand."""

    def __init__(self) -> None:
        self.records: list[Json] = []
        self._response = 0

    def _base(self) -> Json:
        number = len(self.records) + 1
        return {
            "parentUuid": self.records[-1]["uuid"] if self.records else None,
            "uuid": f"{number:08d}-0000-4000-8000-000000000000",
            "sessionId": "0c9be80c-c704-4d9f-928e-22f500ed824f",
            "timestamp": f"2026-01-01T10:{number // 60:02d}:{number % 60:02d}.000Z",
        }

    def add(self, kind: str, message: Json, **fields: Any) -> str:
        """Add a record of the client's own form."""
        self._response += kind != "assistant"
        record: Json = {
            **self._base(),
            "isSidechain": False,
            "userType": "external",
            "cwd": "/home/ada/work",
            "version": "2.1.200",
            "gitBranch": "main",
            "type": kind,
            "message": message,
            **fields,
        }
        self.records.append(record)
        return record["uuid"]

    def user(self, text: str, **fields: Any) -> str:
        return self.add("user", {"role": "user", "content": text}, **fields)

    def says(self, *blocks: Any, **fields: Any) -> str:
        message = {
            "id": f"msg_{self._response}",
            "type": "message",
            "role": "assistant",
            "model": "claude-x",
            "content": [{"type": "text", "text": each} if isinstance(each, str) else each for each in blocks],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 5, "output_tokens": 7},
        }
        return self.add("assistant", message, **fields)

    def result(self, name: str, text: str, **fields: Any) -> str:
        block = {"type": "tool_result", "tool_use_id": name, "content": text}
        return self.add("user", {"role": "user", "content": [block]}, **fields)

    def raw(self, **fields: Any) -> str:
        """Add a record as it is given."""
        self._response += 1
        record = {**self._base(), **fields}
        self.records.append(record)
        return record["uuid"]

    def data(self) -> bytes:
        return lines(self.records)
