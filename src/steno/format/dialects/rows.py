"""One record of a dialect, reduced to what the conversion of its file needs."""

from typing import Any, Final, Literal, TypeAlias, cast

import msgspec

from steno.format.dialects.names import OWN_TYPES, ROLES, SYSTEM_SUBTYPES, Dialect

__all__ = ["Json", "Kind", "Row", "content_of", "decide_form", "row_of"]

Json: TypeAlias = dict[str, Any]
Kind: TypeAlias = Literal[
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
_OPERATIONS: Final[dict[Any, Kind]] = {
    "conversation_compacting": "compacting",
    "conversation_compacted": "compacted",
    "conversation_restoring": "restoring",
    "conversation_restored": "restored",
}
_KINDS: Final[dict[Any, Kind]] = {
    "user": "prompt",
    "human": "prompt",
    "assistant": "answer",
    "tool_result": "result",
    "compact_prelude": "preserved",
    "compact_recap": "summary",
}
_SYSTEM: Final[dict[Any, Kind]] = {"tool_result": "result", "error": "error"}
_FORMS: Final = OWN_TYPES | ROLES | {"system"}


class Row(msgspec.Struct, eq=False, kw_only=True):
    """One record. The fields up to `metadata` come from the record, the others from its file."""

    offset: int
    length: int
    kind: Kind
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
    gone: tuple[str, ...] = ()
    """The ids of deleted calls that it has results of, beside those of others."""
    text: bool = False
    """Whether it has anything to say."""
    compact_command: bool = False
    metadata: Json = msgspec.field(default_factory=dict)

    above: "Row | None" = None
    """The record it follows in the converted file."""
    rooted: bool = True
    """Whether the file has the parent that it names, if it names one."""
    inactive: bool = False
    """Whether it is on a branch that is not the active one."""
    group: "Row | None" = None
    """The first record of the response that it belongs to."""
    asks: bool = False
    """Whether the response that begins with it calls tools."""
    call: str = ""
    """The call that a result or an error answers, where the record does not say so itself."""
    interrupts: Literal["", "prompt", "calls"] = ""
    """What the user interrupted with it; a record that says so is inserted behind it."""
    open_calls: tuple[str, ...] = ()
    """The calls that were interrupted with it."""
    boundary: bool = False
    """Whether the boundary of a compaction is inserted before it."""
    cuts: bool = False
    """Whether a compaction leaves out messages before it."""
    kept: "tuple[Row, ...]" = ()
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


def row_of(fields: Json, dialect: Dialect, offset: int, length: int) -> Row:
    """Return a record as the conversion needs it; `dialect` is what the record shows of its form."""
    kind = _kind(fields)
    content = content_of(fields)
    row = Row(
        offset=offset,
        length=length,
        kind=kind,
        form=None if _is_ambiguous(fields, dialect) else dialect,
        likely=dialect,
        uuid=_name(fields.get("uuid")),
        parent=_name(fields.get("parentUuid")),
        has_parent="parentUuid" in fields,
        sidechain=fields.get("isSidechain") is True,
        deleted=fields.get("isDeleted") is True,
        aborted=fields.get("isAborted") is True,
        active=_flag(fields.get("is_active")),
        text=bool(content),
    )
    if kind == "answer":
        row.calls = tuple(_named(content, "tool_use", "id"))
        if fields.get("subtype") == "tool_use" and not row.calls:
            row.calls = (row.uuid or "",)
    elif kind == "result":
        row.results = tuple(_named(content, "tool_result", "tool_use_id"))
    elif kind == "prompt":
        row.compact_command = isinstance(content, str) and content.lstrip().startswith("/compact")
        if fields.get("type") == "user" and isinstance(content, list):
            row.results = tuple(_named(content, "tool_result", "tool_use_id"))
            row.kind = "result" if row.results else "prompt"
    elif kind == "compacted":
        metadata = fields.get("metadata")
        row.metadata = cast("Json", metadata) if isinstance(metadata, dict) else {}
    if kind in ("preserved", "summary"):
        metadata = fields.get("compactMetadata")
        row.metadata = cast("Json", metadata) if isinstance(metadata, dict) else {}
    return row


def decide_form(row: Row, dialect: Dialect) -> None:
    """Say that a record which could be of any form is of the form of its file."""
    if row.form is None:
        row.form = row.likely if dialect == "claude" else dialect
    if row.is_client:
        _clear_flags(row)
    if row.kind in ("result", "error"):
        row.names_call = bool(row.results) or row.form == "spec-004"


def _clear_flags(row: Row) -> None:
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
    if kind not in _FORMS:
        return True
    if kind == "system":
        subtype: Any = fields.get("subtype") or ""
        is_known = isinstance(subtype, str) and subtype in SYSTEM_SUBTYPES
        return "content" in fields or not is_known
    message = fields.get("message")
    return isinstance(message, dict) and "role" in message


def _kind(fields: Json) -> Kind:
    kind = fields.get("type")
    if kind == "system":
        return _known(_SYSTEM, fields.get("subtype"), "note")
    if kind == "compact_system":
        return _known(_OPERATIONS, fields.get("message"), "note")
    return _known(_KINDS, kind, "other")


def _known(table: dict[Any, Kind], value: Any, otherwise: Kind) -> Kind:
    return table.get(value, otherwise) if isinstance(value, str) else otherwise


def content_of(fields: Json) -> Any:
    """Return what a record says: text, or a list of blocks; None where it says nothing."""
    message: Any = fields.get("message")
    if isinstance(message, dict):
        return cast("Json", message).get("content")
    if message is None:
        message = fields.get("content")
    return cast("Any", message) if isinstance(message, str | list) else None


def _named(content: Any, kind: str, key: str) -> list[str]:
    blocks = cast("list[Any]", content) if isinstance(content, list) else []
    found = [cast("Json", block) for block in blocks if isinstance(block, dict)]
    return [str(block.get(key)) for block in found if block.get("type") == kind]


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None
