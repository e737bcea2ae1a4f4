"""The two published dialects that no real client writes, made out of ordinary records.

`spec-000` says everything in flat fields and gives results as `system`; `spec-004` says `human`,
counts time in milliseconds and keeps a response in one line.
"""

from datetime import datetime
from typing import Final

from tests.builders.blocks import Json
from tests.builders.paths import dialect_session_path

from steno.format.paths import dialect_slug, session_path, slug_for_path

__all__ = ["DIALECTS", "place", "translate"]

DIALECTS: Final = ("spec-000", "spec-004")


def translate(records: list[Json], dialect: str) -> list[Json]:
    """Return chain records in a dialect; other records have no place in either."""
    chain = [record for record in records if "uuid" in record]
    names = {record["uuid"]: number for number, record in enumerate(chain, 1)}
    if dialect == "spec-000":
        return [_flat(record, names) for record in chain]
    return _gathered(chain, names)


def place(dialect: str, cwd: str, session_id: str, stamp: str) -> str:
    """Return where a session's file lies below the configuration folder."""
    if dialect == "spec-004":
        return dialect_session_path(dialect_slug(cwd), stamp[:19].replace(":", "-"))
    return session_path(slug_for_path(cwd), session_id)


def _flat(record: Json, names: dict[str, int]) -> Json:
    parent = record["parentUuid"]
    base: Json = {"type": record["type"], "uuid": _name("msg-", names, record["uuid"])}
    if parent:
        base["parentUuid"] = _name("msg-", names, parent)
    base["timestamp"] = f"{record['timestamp'][:19]}Z"
    base["sessionId"] = record["sessionId"]
    body = _flat_body(record)
    if record["isSidechain"]:
        body |= {"isSidechain": True, "userType": "external"}
    return base | body


def _flat_body(record: Json) -> Json:
    if record.get("subtype") == "compact_boundary":
        return {"type": "compact_system", "message": "conversation_compacting"}
    if record.get("isCompactSummary"):
        counts = {"preservedMessages": 0, "totalMessages": 1, "compressionRatio": 0.1}
        return {
            "type": "compact_system",
            "message": "conversation_compacted",
            "metadata": {**counts, "summary": record["message"]["content"]},
        }
    if record["type"] == "system":
        return {"subtype": "meta", "isMeta": True, "message": str(record.get("content", ""))}
    content = record["message"]["content"]
    if isinstance(content, str):
        return {"message": content, **({"isMeta": True} if record.get("isMeta") else {})}
    return _flat_block(content[0])


def _flat_block(block: Json) -> Json:
    kind = block["type"]
    if kind == "tool_use":
        named = {"toolName": block["name"], "toolArguments": block["input"]}
        return {"subtype": "tool_use", **named}
    if kind == "tool_result":
        failed = bool(block.get("is_error"))
        said = {"type": "system", "message": str(block["content"])}
        return {**said, **({"isError": True} if failed else {}), "subtype": "error" if failed else "tool_result"}
    if kind == "thinking":
        return {"message": block["thinking"], "subtype": "thinking"}
    return {"message": str(block.get("text", "")), "subtype": "response"}


def _gathered(chain: list[Json], names: dict[str, int]) -> list[Json]:
    """One line a response: the blocks of one `message.id` stand together."""
    out: list[Json] = []
    stands_for: dict[str, str] = {}
    lines: dict[str, Json] = {}
    for record in chain:
        said = record.get("message", {})
        group = said.get("id") if record["type"] == "assistant" else None
        if group in lines:
            lines[group]["message"]["content"].extend(said["content"])
            stands_for[record["uuid"]] = lines[group]["uuid"]
            continue
        line = _spoken(record, names, stands_for)
        stands_for[record["uuid"]] = line["uuid"]
        if group:
            lines[group] = line
        out.append(line)
    return out


def _spoken(record: Json, names: dict[str, int], stands_for: dict[str, str]) -> Json:
    parent = record["parentUuid"]
    line: Json = {
        "uuid": _name("msg_", names, record["uuid"]),
        "parentUuid": stands_for.get(parent, "msg_missing") if parent else None,
        "sessionId": "session_" + record["sessionId"][:8],
        "type": _spoken_type(record),
        "timestamp": _milliseconds(record["timestamp"]),
        "version": record["version"],
    }
    if record["isSidechain"]:
        line |= {"isSidechain": True, "userType": "external"}
    content: str | list[Json] = record.get("message", record).get("content", "")
    kept = content if isinstance(content, str) else list(content)
    return {**line, "message": {"type": "message", "content": kept}}


def _spoken_type(record: Json) -> str:
    if record.get("subtype") == "compact_boundary":
        return "compact_prelude"
    if record.get("isCompactSummary"):
        return "compact_recap"
    if record["type"] != "user":
        return str(record["type"])
    content: str | list[Json] = record["message"]["content"]
    answers = not isinstance(content, str) and content[0]["type"] == "tool_result"
    return "tool_result" if answers else "human"


def _name(prefix: str, names: dict[str, int], uuid: str) -> str:
    return f"{prefix}{names[uuid]:03d}" if uuid in names else f"{prefix}missing"


def _milliseconds(stamp: str) -> int:
    return round(datetime.fromisoformat(stamp).timestamp() * 1000)
