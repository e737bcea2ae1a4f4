"""One record of a dialect: its parsed fields, and its form in Claude Code's format."""

import re
from datetime import timedelta
from typing import Any, Final, Literal, TypeAlias, cast
from uuid import NAMESPACE_OID, uuid5

import msgspec

from steno.format.records import DIALECT_TYPES, ROLES, SYSTEM_SUBTYPES, Dialect, read_time, time_text

Json: TypeAlias = dict[str, Any]
DialectRecordKind: TypeAlias = Literal[
    "prompt",
    "answer",
    "result",
    "error",
    "note",
    "compacting",
    "compacted",
    "restoring",
    "restored",
    "preserved",
    "summary",
    "other",
]
"""Purpose of a record.

prompt      text of a user
answer      text, thinking or tool calls of the model
result      the result of a tool call
error       an error, which may be the result of a tool call
note        any other message of the system
compacting, compacted, restoring, restored
            the four operations of `compact_system`
preserved   `compact_prelude`: an older message that a compaction kept
summary     `compact_recap`: the summary that a compaction wrote
other       a type that neither description defines; it is not changed
"""
_KINDS_BY_OPERATION: Final[dict[Any, DialectRecordKind]] = {
    "conversation_compacting": "compacting",
    "conversation_compacted": "compacted",
    "conversation_restoring": "restoring",
    "conversation_restored": "restored",
}
_KINDS_BY_TYPE: Final[dict[Any, DialectRecordKind]] = {
    "user": "prompt",
    "human": "prompt",
    "assistant": "answer",
    "tool_result": "result",
    "compact_prelude": "preserved",
    "compact_recap": "summary",
}
_KINDS_BY_SUBTYPE: Final[dict[Any, DialectRecordKind]] = {"tool_result": "result", "error": "error"}
_KNOWN_TYPES: Final = DIALECT_TYPES | ROLES | {"system"}


class DialectRecord(msgspec.Struct, eq=False, kw_only=True):
    """One record. The fields up to `metadata` come from the record, the others from its file."""

    offset: int
    length: int
    kind: DialectRecordKind
    form: Dialect | None = None
    """Dialect of the record; None if ambiguous, until the file decides."""
    likely: Dialect = "claude"
    """Dialect to assume if the file does not decide."""
    uuid: str | None = None
    parent: str | None = None
    has_parent: bool = False
    """Whether the record has a parent field, even if null."""
    sidechain: bool = False
    deleted: bool = False
    aborted: bool = False
    active: bool | None = None
    calls: tuple[str, ...] = ()
    """IDs of its tool calls."""
    results: tuple[str, ...] = ()
    """IDs of the calls whose results it contains."""
    deleted_calls: tuple[str, ...] = ()
    """IDs of deleted calls whose results it contains, in addition to others."""
    text: bool = False
    """Whether it has content."""
    compact_command: bool = False
    metadata: Json = msgspec.field(default_factory=dict)

    parent_record: "DialectRecord | None" = None
    """The previous record in the converted file."""
    parent_exists: bool = True
    """Whether the named parent exists in the file; true if none is named."""
    inactive: bool = False
    """Whether it is on an inactive branch."""
    response_start: "DialectRecord | None" = None
    """The first record of its response."""
    calls_tools: bool = False
    """Whether the response that starts with this record contains tool calls."""
    call: str = ""
    """Call of a result or error that does not name it."""
    interrupts: Literal["", "prompt", "calls"] = ""
    """What the user interrupted here; an interruption record is inserted after this one."""
    open_calls: tuple[str, ...] = ()
    """IDs of the interrupted calls."""
    boundary: bool = False
    """Whether a compaction boundary is inserted before it."""
    drops_messages: bool = False
    """Whether a compaction drops messages before it."""
    kept_messages: "tuple[DialectRecord, ...]" = ()
    """Messages before a compaction that it keeps."""
    names_call: bool = True
    """Whether a result names its call; false for all results in `spec-000`."""
    by_command: bool = False
    """Whether the user requested the compaction."""

    @property
    def is_client(self) -> bool:
        """Whether Claude Code wrote the record: it keeps its position, and dialect flags are ignored.

        Claude Code sends records in its own format regardless of `isDeleted` and `is_active`.
        """
        return self.form == "claude"


def read_dialect_record(fields: Json, dialect: Dialect, offset: int, length: int) -> DialectRecord:
    """Parse a record; `dialect` is the dialect suggested by the record itself."""
    kind = _kind_of(fields)
    content = message_content(fields)
    row = DialectRecord(
        offset=offset,
        length=length,
        kind=kind,
        form=None if _is_ambiguous(fields, dialect) else dialect,
        likely=dialect,
        uuid=_non_empty_text(fields.get("uuid")),
        parent=_non_empty_text(fields.get("parentUuid")),
        has_parent="parentUuid" in fields,
        sidechain=fields.get("isSidechain") is True,
        deleted=fields.get("isDeleted") is True,
        aborted=fields.get("isAborted") is True,
        active=_flag(fields.get("is_active")),
        text=bool(content),
    )
    if kind == "answer":
        row.calls = tuple(_block_ids(content, "tool_use", "id"))
        if fields.get("subtype") == "tool_use" and not row.calls:
            row.calls = (row.uuid or "",)
    elif kind == "result":
        row.results = tuple(_block_ids(content, "tool_result", "tool_use_id"))
    elif kind == "prompt":
        row.compact_command = isinstance(content, str) and content.lstrip().startswith("/compact")
        if fields.get("type") == "user" and isinstance(content, list):
            row.results = tuple(_block_ids(content, "tool_result", "tool_use_id"))
            row.kind = "result" if row.results else "prompt"
    elif kind == "compacted":
        metadata = fields.get("metadata")
        row.metadata = cast("Json", metadata) if isinstance(metadata, dict) else {}
    if kind in ("preserved", "summary"):
        metadata = fields.get("compactMetadata")
        row.metadata = cast("Json", metadata) if isinstance(metadata, dict) else {}
    return row


def assign_form(row: DialectRecord, dialect: Dialect) -> None:
    """Assign the dialect of the file to an ambiguous record."""
    if row.form is None:
        row.form = row.likely if dialect == "claude" else dialect
    if row.is_client:
        _clear_flags(row)
    if row.kind in ("result", "error"):
        row.names_call = bool(row.results) or row.form == "spec-004"


def _clear_flags(row: DialectRecord) -> None:
    row.deleted = row.aborted = False
    row.active = None
    if row.kind == "error":
        row.kind = "note"


def _is_ambiguous(fields: Json, dialect: Dialect) -> bool:
    """Return whether a record could be in another dialect than it seems, so that the file decides."""
    if dialect == "claude":
        return not _is_client_form(fields)
    # Plain text is used by one dialect, a time in milliseconds by the other.
    is_text = isinstance(fields.get("message"), str)
    return dialect == "spec-004" and is_text and fields.get("type") in ROLES


def _is_client_form(fields: Json) -> bool:
    """Return whether a record has features that only Claude Code's records have."""
    kind: Any = fields.get("type")
    if "cwd" in fields:
        return True
    if not isinstance(kind, str) or not kind:
        return False
    if kind not in _KNOWN_TYPES:
        return True
    if kind == "system":
        subtype: Any = fields.get("subtype") or ""
        is_known = isinstance(subtype, str) and subtype in SYSTEM_SUBTYPES
        return "content" in fields or not is_known
    message = fields.get("message")
    return isinstance(message, dict) and "role" in message


def _kind_of(fields: Json) -> DialectRecordKind:
    kind = fields.get("type")
    if kind == "system":
        return _lookup(_KINDS_BY_SUBTYPE, fields.get("subtype"), "note")
    if kind == "compact_system":
        return _lookup(_KINDS_BY_OPERATION, fields.get("message"), "note")
    return _lookup(_KINDS_BY_TYPE, kind, "other")


def _lookup(table: dict[Any, DialectRecordKind], value: Any, default: DialectRecordKind) -> DialectRecordKind:
    return table.get(value, default) if isinstance(value, str) else default


def message_content(fields: Json) -> Any:
    """Return the content of a record: text, a list of blocks, or None."""
    message: Any = fields.get("message")
    if isinstance(message, dict):
        return cast("Json", message).get("content")
    if message is None:
        message = fields.get("content")
    return cast("Any", message) if isinstance(message, str | list) else None


def _block_ids(content: Any, kind: str, key: str) -> list[str]:
    blocks = cast("list[Any]", content) if isinstance(content, list) else []
    objects = [cast("Json", block) for block in blocks if isinstance(block, dict)]
    return [str(block.get(key)) for block in objects if block.get("type") == kind]


def _non_empty_text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


_INTERRUPTED: Final = "[Request interrupted by user]"
_INTERRUPTED_CALL: Final = "[Request interrupted by user for tool use]"
_REWRITTEN_FIELDS: Final = frozenset(
    (
        *("parentUuid", "logicalParentUuid", "isSidechain", "userType", "type", "subtype"),
        *("message", "toolName", "toolArguments", "uuid", "timestamp", "metadata"),
        *("isError", "isDeleted", "isAborted", "is_active", "compactMetadata"),
    )
)
"""Fields that are rewritten or have no meaning for Claude Code; all others are copied."""
_MILLISECOND: Final = timedelta(milliseconds=1)
_CLIENT_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", re.ASCII)
_SESSION_FIELDS: Final = ("cwd", "sessionId", "version", "gitBranch")
_OPERATION_TEXTS: Final = {
    "compacting": "Compacting the conversation",
    "compacted": "Conversation compacted",
    "restoring": "Restoring the conversation",
    "restored": "Conversation restored",
}


def client_fields(fields: Json, row: DialectRecord) -> Json:
    """Return a record in Claude Code's format."""
    if row.is_client:
        return {**fields, "parentUuid": _parent_of(row)}
    match row.kind:
        case "prompt" | "preserved" | "summary":
            return _prompt_record(fields, row)
        case "answer":
            return _answer_record(fields, row)
        case "result":
            return _result_record(fields, row)
        case _:
            return _system_record(fields, row)


def successor_parent_id(row: DialectRecord | None) -> str | None:
    """Return the parent ID for records after a row: the row's ID, or that of an inserted record."""
    if row is None:
        return None
    if row.interrupts:
        return derived_uuid(row, "interruption")
    return derived_uuid(row, "summary") if row.drops_messages else row.uuid


def derived_uuid(row: DialectRecord, purpose: str) -> str:
    """Return the ID of a record inserted next to a row; deterministic."""
    return str(uuid5(NAMESPACE_OID, f"{purpose} {row.uuid or ''} {row.offset}"))


def client_time(value: Any) -> Any:
    """Format a time as Claude Code does; values that are not times are returned unchanged.

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


# Records of the file


def keeps_parent(row: DialectRecord) -> bool:
    """Return whether a record keeps the parent that it names."""
    return not row.uuid or row.parent == row.uuid or _parent_of(row) == row.parent


def _parent_of(row: DialectRecord) -> str | None:
    if row.boundary:
        return derived_uuid(row, "boundary")
    # A parent missing in the file stays named, so that checks report it.
    is_known = row.parent_record is not None or row.parent_exists
    return successor_parent_id(row.parent_record) if is_known else row.parent


def _envelope(fields: Json, row: DialectRecord, kind: str) -> Json:
    extra = {key: value for key, value in fields.items() if key not in _REWRITTEN_FIELDS}
    return {
        "parentUuid": _parent_of(row),
        "isSidechain": row.sidechain,
        "userType": fields.get("userType", "external"),
        **extra,
        "type": kind,
        "uuid": fields.get("uuid"),
        "timestamp": client_time(fields.get("timestamp")),
    }


def _prompt_record(fields: Json, row: DialectRecord) -> Json:
    content = message_content(fields)
    if content is None and isinstance(fields.get("command"), str):
        content = fields["command"]
    if content is None:
        # A command without content must not be sent.
        return {**_envelope(fields, row, "system"), "subtype": "informational", "content": "", "level": "info"}
    record = _envelope(fields, row, "user")
    record["message"] = {**_message_object(fields), "role": "user", "content": content}
    if row.kind == "summary":
        record |= {"isCompactSummary": True, "isVisibleInTranscriptOnly": True}
    elif row.kind == "preserved":
        record["isMeta"] = True
    return record


def _answer_record(fields: Json, row: DialectRecord) -> Json:
    record = _envelope(fields, row, "assistant")
    message = _message_object(fields)
    content = message_content(fields)
    if not isinstance(content, list):
        content = _answer_blocks(fields, row, content)
    group = row.response_start or row
    record["message"] = {
        "type": "message",
        "role": "assistant",
        **message,
        "id": message.get("id") or f"msg_{derived_uuid(group, 'message').replace('-', '')[:24]}",
        "content": content,
        "stop_reason": message.get("stop_reason", "tool_use" if group.calls_tools else "end_turn"),
    }
    if fields.get("isError") is True or fields.get("subtype") == "error":
        record["isApiErrorMessage"] = True
    if row.aborted:
        record["isAbortedMidStream"] = True
    return record


def _answer_blocks(fields: Json, row: DialectRecord, content: Any) -> list[Json]:
    text = content if isinstance(content, str) else ""
    subtype = fields.get("subtype")
    if subtype == "thinking":
        return [{"type": "thinking", "thinking": text, "signature": ""}]
    blocks: list[Json] = [{"type": "text", "text": text}] if text else []
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


def _result_record(fields: Json, row: DialectRecord) -> Json:
    record = _envelope(fields, row, "user")
    content = message_content(fields)
    failed = fields.get("isError") is True or fields.get("subtype") == "error"
    if isinstance(content, list) and _has_results(cast("list[Any]", content)):
        remaining = [block for block in cast("list[Any]", content) if not _is_result_of(block, row.deleted_calls)]
        blocks = [_result_block(block, failed=failed) for block in remaining]
    else:
        block: Json = {"type": "tool_result", "content": "" if content is None else content}
        block["tool_use_id"] = row.results[0] if row.results else ""
        blocks = [_result_block(block, failed=failed)]
    record["message"] = {**_message_object(fields), "role": "user", "content": blocks}
    if row.aborted:
        record["toolUseResult"] = {"interrupted": True}
    return record


def without_results(fields: Json, calls: tuple[str, ...]) -> Json:
    """Return a record of the original file without the results of some calls."""
    content = message_content(fields)
    if not isinstance(content, list):
        return fields
    remaining = [block for block in cast("list[Any]", content) if not _is_result_of(block, calls)]
    message = fields.get("message")
    if isinstance(message, dict):
        return {**fields, "message": {**cast("Json", message), "content": remaining}}
    return {**fields, "content" if message is None else "message": remaining}


def _has_results(content: list[Any]) -> bool:
    return any(isinstance(block, dict) and cast("Json", block).get("type") == "tool_result" for block in content)


def _is_result_of(block: Any, calls: tuple[str, ...]) -> bool:
    if not calls or not isinstance(block, dict):
        return False
    return str(cast("Json", block).get("tool_use_id")) in calls


def _result_block(block: Any, *, failed: bool) -> Any:
    if not failed or not isinstance(block, dict):
        return block
    fields = cast("Json", block)
    return {**fields, "is_error": True} if fields.get("type") == "tool_result" else fields


def _system_record(fields: Json, row: DialectRecord) -> Json:
    record = _envelope(fields, row, "system")
    content = message_content(fields)
    if row.kind in _OPERATION_TEXTS:
        record["subtype"] = f"conversation_{row.kind}"
        record["content"] = _OPERATION_TEXTS[row.kind]
        if row.kind == "compacted":
            record["compactMetadata"] = _compact_metadata(row)
        if row.drops_messages:
            record["subtype"] = "compact_boundary"
            record["logicalParentUuid"], record["parentUuid"] = record["parentUuid"], None
        return record
    record["subtype"] = "informational"
    record["content"] = content if isinstance(content, str) else ""
    failed = fields.get("isError") is True or fields.get("subtype") == "error"
    record["level"] = "error" if failed else "info"
    return record


def _compact_metadata(row: DialectRecord) -> Json:
    field_names = {
        "totalMessages": "messagesBefore",
        "preservedMessages": "messagesKept",
        "compressionRatio": "compressionRatio",
    }
    metadata = {new: row.metadata[old] for old, new in field_names.items() if old in row.metadata}
    if row.drops_messages and row.kept_messages:
        names = [name for message in row.kept_messages for name in _ids_with_interruption(message)]
        anchor = derived_uuid(row, "summary")
        metadata["preservedSegment"] = {"headUuid": names[0], "anchorUuid": anchor, "tailUuid": names[-1]}
        metadata["preservedMessages"] = {"anchorUuid": anchor, "uuids": names, "allUuids": names}
    return {"trigger": "manual" if row.by_command else "auto", **metadata}


def _ids_with_interruption(row: DialectRecord) -> list[str | None]:
    """Return the IDs of a message and of the interruption record inserted after it."""
    return [row.uuid, derived_uuid(row, "interruption")] if row.interrupts else [row.uuid]


def _message_object(fields: Json) -> Json:
    message = fields.get("message")
    return cast("Json", message) if isinstance(message, dict) else {}


# Inserted records


def _session_fields(fields: Json) -> Json:
    return {key: fields[key] for key in _SESSION_FIELDS if key in fields}


def deleted_fields(fields: Json, row: DialectRecord) -> Json:
    """Return a deleted record, which stays in the file but outside the conversation."""
    names = ("uuid", "parentUuid", "timestamp", "sessionId", "isSidechain")
    record = {key: fields[key] for key in names if key in fields}
    record["parentUuid"] = successor_parent_id(row.parent_record)
    record["timestamp"] = client_time(fields.get("timestamp"))
    text = _text_of(message_content(fields))
    answers = list(row.results) if row.kind == "result" else []
    return {"type": "deleted", **record, "content": text, "answers": answers, "deleted": fields}


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    blocks = cast("list[Any]", content) if isinstance(content, list) else []
    texts = (cast("Json", block).get("text") for block in blocks if isinstance(block, dict))
    return "\n\n".join(text for text in texts if isinstance(text, str))


def compaction_boundary(fields: Json, row: DialectRecord) -> Json:
    """Return the boundary record of a compaction."""
    before = successor_parent_id(row.parent_record)
    return {
        "parentUuid": None,
        "logicalParentUuid": before,
        "isSidechain": row.sidechain,
        "userType": "external",
        **_session_fields(fields),
        "type": "system",
        "subtype": "compact_boundary",
        "content": "Conversation compacted",
        "level": "info",
        "compactMetadata": {"trigger": "auto", **row.metadata},
        "uuid": derived_uuid(row, "boundary"),
        "timestamp": client_time(fields.get("timestamp")),
    }


def compaction_summary(fields: Json, row: DialectRecord) -> Json:
    """Return the summary record of a compaction that keeps only some messages."""
    text = row.metadata.get("summary")
    if not isinstance(text, str) or not text:
        total, kept_count = row.metadata.get("totalMessages"), len(row.kept_messages)
        of_all = f" of {total}" if isinstance(total, int) else ""
        text = (
            "This session is being continued from a previous conversation that was compacted. "
            f"{kept_count}{of_all} messages were kept; no summary of the others was recorded."
        )
    return {
        **_inserted_fields(fields, row, "summary"),
        "parentUuid": row.uuid,
        "type": "user",
        "message": {"role": "user", "content": text},
        "isCompactSummary": True,
        "isVisibleInTranscriptOnly": True,
    }


def interruption_record(fields: Json, row: DialectRecord) -> Json:
    """Return a record of an interruption by the user."""
    content: Any = [{"type": "text", "text": _INTERRUPTED}]
    if row.interrupts == "calls":
        content = [
            {"type": "tool_result", "tool_use_id": call, "content": _INTERRUPTED_CALL, "is_error": True}
            for call in row.open_calls
        ]
    return {
        **_inserted_fields(fields, row, "interruption"),
        "parentUuid": row.uuid,
        "type": "user",
        "message": {"role": "user", "content": content},
    }


def leaf_marker(fields: Json, row: DialectRecord) -> Json:
    """Return a record that marks the end of the active branch."""
    return {
        "type": "last-prompt",
        "leafUuid": successor_parent_id(row),
        "explicit": True,
        **({"sessionId": fields["sessionId"]} if "sessionId" in fields else {}),
    }


def _inserted_fields(fields: Json, row: DialectRecord, purpose: str) -> Json:
    return {
        "isSidechain": row.sidechain,
        "userType": "external",
        **_session_fields(fields),
        "uuid": derived_uuid(row, purpose),
        "timestamp": _time_after(fields.get("timestamp")),
    }


def _time_after(value: Any) -> Any:
    """Return a time one millisecond later, because some readers sort by time."""
    time = read_time(value) if isinstance(value, str | int | float) else None
    return value if time is None else time_text(time + _MILLISECOND)
