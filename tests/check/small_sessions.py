"""Sessions of a few records, written in a line each: the input of the tables of recorded answers.

A record has a number. Its id, its time and, unless something else is said, its parent follow from
that: record 3 hangs on record 2 and was written in second 3.
"""

from typing import Any, Final

from steno.format.encode import encode_line

__all__ = [
    "ENVELOPE",
    "SESSION",
    "UNKNOWN",
    "Records",
    "blank",
    "boundary",
    "call",
    "calls",
    "data_of",
    "marker",
    "note",
    "output",
    "outputs",
    "picture",
    "prompt",
    "reply",
    "snapshot",
    "summary",
    "thought",
    "title",
    "uuid",
    "when",
    "words",
]

Records = list[dict[str, Any]]
SESSION: Final = "5e551017-0000-4000-8000-000000000001"
UNKNOWN: Final = "00000000-0000-4000-8000-00000000dead"
ENVELOPE: Final[dict[str, Any]] = {
    "userType": "external",
    "entrypoint": "cli",
    "cwd": "/w",
    "sessionId": SESSION,
    # No client: the catalogue asks for no field of it.
    "version": "0.9.0",
    "gitBranch": "main",
}
_MODEL: Final = "claude-opus-5-5"


def uuid(number: int) -> str:
    """Return the id of a record by its number."""
    return f"00000000-0000-4000-8000-{number:012d}"


def when(second: float) -> str:
    """Return a moment of the session, in seconds from its beginning."""
    thousandths = round(second * 1000)
    minutes, rest = divmod(thousandths, 60_000)
    return f"2026-01-05T09:{minutes:02d}:{rest // 1000:02d}.{rest % 1000:03d}Z"


def _record(number: int, on: int | None, body: dict[str, Any], more: dict[str, Any]) -> Any:
    above = number - 1 if on is None else on
    return {
        "parentUuid": uuid(above) if above else None,
        "isSidechain": False,
        **body,
        "uuid": uuid(number),
        "timestamp": when(number),
        **ENVELOPE,
        **more,
    }


# Messages


def prompt(number: int, content: Any = "", *, on: int | None = None, **more: Any) -> Any:
    """Return what the user says."""
    message = {"role": "user", "content": content or f"Prompt {number}?"}
    return _record(number, on, {"type": "user", "message": message}, more)


def reply(number: int, content: Any = "", of: str = "", *, on: int | None = None, **more: Any) -> Any:
    """Return a line of an answer; `of` names its response."""
    message = {
        "model": _MODEL,
        "id": of or f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "content": content or [words(f"Reply {number}.")],
        "stop_reason": "end_turn",
    }
    return _record(number, on, {"message": message, "type": "assistant"}, more)


def call(number: int, *ids: str, of: str = "", on: int | None = None, **more: Any) -> Any:
    """Return a line of an answer that calls tools, one for each id."""
    return reply(number, calls(*ids), of, on=on, **more)


def output(number: int, *ids: str, on: int | None = None, **more: Any) -> Any:
    """Return the results of calls, one for each id."""
    return prompt(number, outputs(*ids), on=on, **more)


def summary(number: int, *, on: int | None = None, **more: Any) -> Any:
    """Return what stands for all before a compaction."""
    return prompt(number, f"Summary {number}.", on=on, isCompactSummary=True, **more)


# Blocks


def words(text: Any) -> dict[str, Any]:
    return {"type": "text", "text": text}


def blank() -> dict[str, Any]:
    return words(" \n")


def thought(signature: Any = "c2lnbmVk") -> dict[str, Any]:
    return {"type": "thinking", "thinking": "Hm.", "signature": signature}


def calls(*ids: str) -> list[dict[str, Any]]:
    return [{"type": "tool_use", "id": each, "name": "Bash", "input": {}} for each in ids]


def outputs(*ids: str) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": each, "content": f"out {each}"} for each in ids]


def picture(data: str, media: str = "image/png") -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": media, "data": data}}


# What is no message


def note(number: int, kind: str = "system", *, on: int | None = None, **more: Any) -> Any:
    """Return a record of the conversation that is no message."""
    bodies: dict[str, dict[str, Any]] = {
        "system": {"subtype": "turn_duration", "durationMs": 5, "isMeta": False},
        "attachment": {"attachment": {"type": "todo", "content": []}},
        "progress": {"data": {"type": "hook_progress"}, "toolUseID": "t"},
    }
    return _record(number, on, {"type": kind, **bodies.get(kind, {})}, more)


def boundary(number: int, after: int | None = None, *, on: int = 0, **more: Any) -> Any:
    """Return where a session was compacted, after a record."""
    last = number - 1 if after is None else after
    body = {
        "logicalParentUuid": uuid(last) if last else None,
        "type": "system",
        "subtype": "compact_boundary",
        "content": "Conversation compacted",
    }
    return _record(number, on, body, more)


def marker(number: int, **more: Any) -> Any:
    """Return a word on which record the session goes on from."""
    leaf = {"type": "last-prompt", "lastPrompt": "", "leafUuid": uuid(number)}
    return {**leaf, "sessionId": SESSION, **more}


def title(text: Any, number: int = 0) -> Any:
    """Return a `summary` record, which clients take for a title."""
    return {"type": "summary", "summary": text, "leafUuid": uuid(number)}


def snapshot(message: int, **more: Any) -> Any:
    body = {"messageId": uuid(message), "trackedFileBackups": {}, "timestamp": when(message)}
    return {
        "type": "file-history-snapshot",
        "messageId": uuid(message),
        "snapshot": body,
        "isSnapshotUpdate": False,
        **more,
    }


def data_of(records: Records) -> bytes:
    """Return a file of some records."""
    return b"".join(map(encode_line, records))
