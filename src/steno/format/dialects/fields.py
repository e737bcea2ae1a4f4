"""Records of a dialect, written as the real client writes them."""

import re
from datetime import timedelta
from typing import Any, Final, cast
from uuid import NAMESPACE_OID, uuid5

from steno.format.dialects.rows import Json, Row, content_of
from steno.format.records import read_time, time_text

__all__ = ["boundary_of", "client_fields", "client_time", "deleted_fields", "derived_uuid"]
__all__ += ["interruption_of", "keeps_parent", "leaf_marker", "link_to", "summary_of"]
__all__ += ["without_results"]

_INTERRUPTED: Final = "[Request interrupted by user]"
_INTERRUPTED_CALL: Final = "[Request interrupted by user for tool use]"
_OWN: Final = frozenset(
    (
        *("parentUuid", "logicalParentUuid", "isSidechain", "userType", "type", "subtype"),
        *("message", "toolName", "toolArguments", "uuid", "timestamp", "metadata"),
        *("isError", "isDeleted", "isAborted", "is_active", "compactMetadata"),
    )
)
"""Fields that are written anew or have no meaning to the client; all others are taken over."""
_STEP: Final = timedelta(milliseconds=1)
_CLIENT_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", re.ASCII)
_SESSION: Final = ("cwd", "sessionId", "version", "gitBranch")
_OPERATIONS: Final = {
    "compacting": "Compacting the conversation",
    "compacted": "Conversation compacted",
    "restoring": "Restoring the conversation",
    "restored": "Conversation restored",
}


def client_fields(fields: Json, row: Row) -> Json:
    """Return a record as the real client would have written it."""
    if row.is_client:
        return {**fields, "parentUuid": _parent_of(row)}
    match row.kind:
        case "prompt" | "preserved" | "summary":
            return _prompt(fields, row)
        case "answer":
            return _answer(fields, row)
        case "result":
            return _result(fields, row)
        case _:
            return _system(fields, row)


def link_to(row: Row | None) -> str | None:
    """Return the id that what follows a row has as its parent: the row's, or that behind it."""
    if row is None:
        return None
    if row.interrupts:
        return derived_uuid(row, "interruption")
    return derived_uuid(row, "summary") if row.cuts else row.uuid


def derived_uuid(row: Row, purpose: str) -> str:
    """Return the id of a record that is inserted beside a row; the same every time."""
    return str(uuid5(NAMESPACE_OID, f"{purpose} {row.uuid or ''} {row.offset}"))


def client_time(value: Any) -> Any:
    """Return a time as the client writes it; what is no time stays as it is.

    >>> client_time(1738160130123)
    '2025-01-29T14:15:30.123Z'
    >>> client_time("2025-01-29 14:15")
    '2025-01-29T14:15:00.000Z'
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    if isinstance(value, str) and _CLIENT_TIME.fullmatch(value):
        return value
    time = read_time(value)
    return value if time is None else time_text(time)


# The records of the file


def keeps_parent(row: Row) -> bool:
    """Whether a record follows what it says that it follows."""
    return not row.uuid or row.parent == row.uuid or _parent_of(row) == row.parent


def _parent_of(row: Row) -> str | None:
    if row.boundary:
        return derived_uuid(row, "boundary")
    # A parent that the file does not have stays named, so that it is found to be missing.
    is_known = row.above is not None or row.rooted
    return link_to(row.above) if is_known else row.parent


def _envelope(fields: Json, row: Row, kind: str) -> Json:
    extra = {key: value for key, value in fields.items() if key not in _OWN}
    return {
        "parentUuid": _parent_of(row),
        "isSidechain": row.sidechain,
        "userType": fields.get("userType", "external"),
        **extra,
        "type": kind,
        "uuid": fields.get("uuid"),
        "timestamp": client_time(fields.get("timestamp")),
    }


def _prompt(fields: Json, row: Row) -> Json:
    content = content_of(fields)
    if content is None and isinstance(fields.get("command"), str):
        content = fields["command"]
    if content is None:
        # A command that says nothing: nothing of it may be sent.
        return {
            **_envelope(fields, row, "system"),
            "subtype": "informational",
            "content": "",
            "level": "info",
        }
    record = _envelope(fields, row, "user")
    record["message"] = {**_message(fields), "role": "user", "content": content}
    if row.kind == "summary":
        record |= {"isCompactSummary": True, "isVisibleInTranscriptOnly": True}
    elif row.kind == "preserved":
        record["isMeta"] = True
    return record


def _answer(fields: Json, row: Row) -> Json:
    record = _envelope(fields, row, "assistant")
    message = _message(fields)
    content = content_of(fields)
    if not isinstance(content, list):
        content = _answer_blocks(fields, row, content)
    group = row.group or row
    record["message"] = {
        "type": "message",
        "role": "assistant",
        **message,
        "id": message.get("id") or f"msg_{derived_uuid(group, 'message').replace('-', '')[:24]}",
        "content": content,
        "stop_reason": message.get("stop_reason", "tool_use" if group.asks else "end_turn"),
    }
    if fields.get("isError") is True or fields.get("subtype") == "error":
        record["isApiErrorMessage"] = True
    if row.aborted:
        record["isAbortedMidStream"] = True
    return record


def _answer_blocks(fields: Json, row: Row, content: Any) -> list[Json]:
    words = content if isinstance(content, str) else ""
    subtype = fields.get("subtype")
    if subtype == "thinking":
        return [{"type": "thinking", "thinking": words, "signature": ""}]
    blocks: list[Json] = [{"type": "text", "text": words}] if words else []
    if subtype == "tool_use":
        arguments = fields.get("toolArguments")
        name = fields.get("toolName")
        call = {
            "type": "tool_use",
            "id": row.calls[0] if row.calls else "",
            "name": name if isinstance(name, str) else "",
            "input": cast("Json", arguments) if isinstance(arguments, dict) else {},
        }
        blocks.append(call)
    return blocks or [{"type": "text", "text": ""}]


def _result(fields: Json, row: Row) -> Json:
    record = _envelope(fields, row, "user")
    content = content_of(fields)
    failed = fields.get("isError") is True or fields.get("subtype") == "error"
    if isinstance(content, list) and _has_results(cast("list[Any]", content)):
        kept = [block for block in cast("list[Any]", content) if not _answers(block, row.gone)]
        blocks = [_outcome(block, failed=failed) for block in kept]
    else:
        block: Json = {"type": "tool_result", "content": "" if content is None else content}
        block["tool_use_id"] = row.results[0] if row.results else ""
        blocks = [_outcome(block, failed=failed)]
    record["message"] = {**_message(fields), "role": "user", "content": blocks}
    if row.aborted:
        record["toolUseResult"] = {"interrupted": True}
    return record


def without_results(fields: Json, calls: tuple[str, ...]) -> Json:
    """Return a record of the original file without the results of some calls."""
    content = content_of(fields)
    if not isinstance(content, list):
        return fields
    kept = [block for block in cast("list[Any]", content) if not _answers(block, calls)]
    message = fields.get("message")
    if isinstance(message, dict):
        return {**fields, "message": {**cast("Json", message), "content": kept}}
    return {**fields, "content" if message is None else "message": kept}


def _has_results(content: list[Any]) -> bool:
    return any(
        isinstance(block, dict) and cast("Json", block).get("type") == "tool_result"
        for block in content
    )


def _answers(block: Any, calls: tuple[str, ...]) -> bool:
    """Whether a block is the result of one of some calls."""
    if not calls or not isinstance(block, dict):
        return False
    return str(cast("Json", block).get("tool_use_id")) in calls


def _outcome(block: Any, *, failed: bool) -> Any:
    if not failed or not isinstance(block, dict):
        return block
    found = cast("Json", block)
    return {**found, "is_error": True} if found.get("type") == "tool_result" else found


def _system(fields: Json, row: Row) -> Json:
    record = _envelope(fields, row, "system")
    said = content_of(fields)
    if row.kind in _OPERATIONS:
        record["subtype"] = f"conversation_{row.kind}"
        record["content"] = _OPERATIONS[row.kind]
        if row.kind == "compacted":
            record["compactMetadata"] = _compact_metadata(row)
        if row.cuts:
            record["subtype"] = "compact_boundary"
            record["logicalParentUuid"], record["parentUuid"] = record["parentUuid"], None
        return record
    record["subtype"] = "informational"
    record["content"] = said if isinstance(said, str) else ""
    failed = fields.get("isError") is True or fields.get("subtype") == "error"
    record["level"] = "error" if failed else "info"
    return record


def _compact_metadata(row: Row) -> Json:
    named = {
        "totalMessages": "messagesBefore",
        "preservedMessages": "messagesKept",
        "compressionRatio": "compressionRatio",
    }
    found = {new: row.metadata[old] for old, new in named.items() if old in row.metadata}
    if row.cuts and row.kept:
        names = [name for each in row.kept for name in _names_of(each)]
        anchor = derived_uuid(row, "summary")
        found["preservedSegment"] = {
            "headUuid": names[0],
            "anchorUuid": anchor,
            "tailUuid": names[-1],
        }
        found["preservedMessages"] = {"anchorUuid": anchor, "uuids": names, "allUuids": names}
    return {"trigger": "manual" if row.by_command else "auto", **found}


def _names_of(row: Row) -> list[str | None]:
    """Return the ids of a message and of what is inserted behind it."""
    return [row.uuid, derived_uuid(row, "interruption")] if row.interrupts else [row.uuid]


def _message(fields: Json) -> Json:
    message = fields.get("message")
    return cast("Json", message) if isinstance(message, dict) else {}


# Records that are inserted


def _session(fields: Json) -> Json:
    return {key: fields[key] for key in _SESSION if key in fields}


def deleted_fields(fields: Json, row: Row) -> Json:
    """Return a deleted record: out of the conversation, and kept as it is."""
    kept = ("uuid", "parentUuid", "timestamp", "sessionId", "isSidechain")
    record = {key: fields[key] for key in kept if key in fields}
    record["parentUuid"] = link_to(row.above)
    record["timestamp"] = client_time(fields.get("timestamp"))
    said = _words(content_of(fields))
    answers = list(row.results) if row.kind == "result" else []
    return {"type": "deleted", **record, "content": said, "answers": answers, "deleted": fields}


def _words(content: Any) -> str:
    if isinstance(content, str):
        return content
    blocks = cast("list[Any]", content) if isinstance(content, list) else []
    texts = (cast("Json", block).get("text") for block in blocks if isinstance(block, dict))
    return "\n\n".join(text for text in texts if isinstance(text, str))


def boundary_of(fields: Json, row: Row) -> Json:
    """Return the boundary that stands before what a compaction wrote."""
    before = link_to(row.above)
    return {
        "parentUuid": None,
        "logicalParentUuid": before,
        "isSidechain": row.sidechain,
        "userType": "external",
        **_session(fields),
        "type": "system",
        "subtype": "compact_boundary",
        "content": "Conversation compacted",
        "level": "info",
        "compactMetadata": {"trigger": "auto", **row.metadata},
        "uuid": derived_uuid(row, "boundary"),
        "timestamp": client_time(fields.get("timestamp")),
    }


def summary_of(fields: Json, row: Row) -> Json:
    """Return the summary behind a compaction that keeps only some messages."""
    said = row.metadata.get("summary")
    if not isinstance(said, str) or not said:
        total, kept = row.metadata.get("totalMessages"), len(row.kept)
        of_all = f" of {total}" if isinstance(total, int) else ""
        said = (
            "This session is being continued from a previous conversation that was compacted. "
            f"{kept}{of_all} messages were kept; no summary of the others was recorded."
        )
    return {
        **_inserted(fields, row, "summary"),
        "parentUuid": row.uuid,
        "type": "user",
        "message": {"role": "user", "content": said},
        "isCompactSummary": True,
        "isVisibleInTranscriptOnly": True,
    }


def interruption_of(fields: Json, row: Row) -> Json:
    """Return the record that says that the user interrupted what stands before it."""
    content: Any = [{"type": "text", "text": _INTERRUPTED}]
    if row.interrupts == "calls":
        content = [
            {
                "type": "tool_result",
                "tool_use_id": call,
                "content": _INTERRUPTED_CALL,
                "is_error": True,
            }
            for call in row.open_calls
        ]
    return {
        **_inserted(fields, row, "interruption"),
        "parentUuid": row.uuid,
        "type": "user",
        "message": {"role": "user", "content": content},
    }


def leaf_marker(fields: Json, row: Row) -> Json:
    """Return the record that says where the active branch ends."""
    return {
        "type": "last-prompt",
        "leafUuid": link_to(row),
        "explicit": True,
        **({"sessionId": fields["sessionId"]} if "sessionId" in fields else {}),
    }


def _inserted(fields: Json, row: Row, purpose: str) -> Json:
    return {
        "isSidechain": row.sidechain,
        "userType": "external",
        **_session(fields),
        "uuid": derived_uuid(row, purpose),
        "timestamp": _just_after(fields.get("timestamp")),
    }


def _just_after(value: Any) -> Any:
    """Return a time as the client writes it, a millisecond later: some clients go by times."""
    time = read_time(value) if isinstance(value, str | int | float) else None
    return value if time is None else time_text(time + _STEP)
