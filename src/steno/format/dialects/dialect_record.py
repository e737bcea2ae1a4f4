"""One record of a dialect: what the conversion needs of it, and the record in the client's form."""

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
"""What a record is for.

prompt      words of a user
answer      words, thinking or tool calls of the model
result      the result of a tool call
error       an error, which may be the result of a tool call
note        any other message of the system
compacting, compacted, restoring, restored
            the four operations of `compact_system`
preserved   `compact_prelude`: an older message that a compaction kept
summary     `compact_recap`: the summary that a compaction wrote
other       a type that neither description has; it is left as it is
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
    """The form it is written in; None where it could be of several, until its file decides."""
    likely: Dialect = "claude"
    """The form it has if its file does not decide."""
    uuid: str | None = None
    parent: str | None = None
    has_parent: bool = False
    """Whether it says anything about its parent, be it that there is none."""
    sidechain: bool = False
    deleted: bool = False
    aborted: bool = False
    active: bool | None = None
    calls: tuple[str, ...] = ()
    """The ids of its tool calls."""
    results: tuple[str, ...] = ()
    """The ids of the calls that it says it answers."""
    deleted_calls: tuple[str, ...] = ()
    """The ids of deleted calls that it has results of, beside those of others."""
    text: bool = False
    """Whether it has anything to say."""
    compact_command: bool = False
    metadata: Json = msgspec.field(default_factory=dict)

    parent_record: "DialectRecord | None" = None
    """The record it follows in the converted file."""
    parent_exists: bool = True
    """Whether the file has the parent that it names, if it names one."""
    inactive: bool = False
    """Whether it is on a branch that is not the active one."""
    response_start: "DialectRecord | None" = None
    """The first record of the response that it belongs to."""
    calls_tools: bool = False
    """Whether the response that begins with it calls tools."""
    call: str = ""
    """The call that a result or an error answers, where the record does not say so itself."""
    interrupts: Literal["", "prompt", "calls"] = ""
    """What the user interrupted with it; a record that says so is inserted behind it."""
    open_calls: tuple[str, ...] = ()
    """The calls that were interrupted with it."""
    boundary: bool = False
    """Whether the boundary of a compaction is inserted before it."""
    drops_messages: bool = False
    """Whether a compaction leaves out messages before it."""
    kept_messages: "tuple[DialectRecord, ...]" = ()
    """The messages before a compaction that it keeps."""
    names_call: bool = True
    """Whether a result says which call it answers; in `spec-000` none does."""
    by_command: bool = False
    """Whether the user asked for the compaction."""

    @property
    def is_client(self) -> bool:
        """Whether the real client wrote it: it keeps its place, and flags of a dialect say nothing.

        The client sends a record of its own form whatever `isDeleted` or `is_active` it has.
        """
        return self.form == "claude"


def read_dialect_record(fields: Json, dialect: Dialect, offset: int, length: int) -> DialectRecord:
    """Return a record as the conversion needs it; `dialect` is what the record shows of its form."""
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
    """Say that a record which could be of any form is of the form of its file."""
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
    """Whether a record could be of another form than it seems: its file decides."""
    if dialect == "claude":
        return not _is_client_form(fields)
    # A text is of one dialect, a time in milliseconds of the other.
    is_text = isinstance(fields.get("message"), str)
    return dialect == "spec-004" and is_text and fields.get("type") in ROLES


def _is_client_form(fields: Json) -> bool:
    """Whether a record has what only those of the real client have."""
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
    """Return what a record says: text, or a list of blocks; None where it says nothing."""
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
"""Fields that are written anew or have no meaning to the client; all others are taken over."""
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
    """Return a record as the real client would have written it."""
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
    """Return the id that what follows a row has as its parent: the row's, or that behind it."""
    if row is None:
        return None
    if row.interrupts:
        return derived_uuid(row, "interruption")
    return derived_uuid(row, "summary") if row.drops_messages else row.uuid


def derived_uuid(row: DialectRecord, purpose: str) -> str:
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


def keeps_parent(row: DialectRecord) -> bool:
    """Whether a record follows what it says that it follows."""
    return not row.uuid or row.parent == row.uuid or _parent_of(row) == row.parent


def _parent_of(row: DialectRecord) -> str | None:
    if row.boundary:
        return derived_uuid(row, "boundary")
    # A parent that the file does not have stays named, so that it is found to be missing.
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
        # A command that says nothing: nothing of it may be sent.
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
    """Return the ids of a message and of what is inserted behind it."""
    return [row.uuid, derived_uuid(row, "interruption")] if row.interrupts else [row.uuid]


def _message_object(fields: Json) -> Json:
    message = fields.get("message")
    return cast("Json", message) if isinstance(message, dict) else {}


# Records that are inserted


def _session_fields(fields: Json) -> Json:
    return {key: fields[key] for key in _SESSION_FIELDS if key in fields}


def deleted_fields(fields: Json, row: DialectRecord) -> Json:
    """Return a deleted record: out of the conversation, and kept as it is."""
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
    """Return the boundary that stands before what a compaction wrote."""
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
    """Return the summary behind a compaction that keeps only some messages."""
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
    """Return the record that says that the user interrupted what stands before it."""
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
    """Return the record that says where the active branch ends."""
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
    """Return a time as the client writes it, a millisecond later: some clients go by times."""
    time = read_time(value) if isinstance(value, str | int | float) else None
    return value if time is None else time_text(time + _MILLISECOND)
