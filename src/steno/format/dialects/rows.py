"""One record of a dialect, reduced to what the conversion of its file needs."""

from typing import Any, Final, Literal, TypeAlias, cast

import msgspec

from steno.format.dialects.names import Dialect

__all__ = ["Json", "Kind", "Row", "content_of", "row_of"]

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


class Row(msgspec.Struct, eq=False, kw_only=True):
    """One record. The fields up to `metadata` come from the record, the others from its file."""

    offset: int
    length: int
    kind: Kind
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
    names_call: bool = True
    """Whether a result says which call it answers; in `spec-000` none does."""
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
    by_command: bool = False
    """Whether the user asked for the compaction."""


def row_of(fields: Json, dialect: Dialect, offset: int, length: int) -> Row:
    """Return a record as the conversion needs it."""
    kind = _kind(fields)
    content = content_of(fields)
    row = Row(
        offset=offset,
        length=length,
        kind=kind,
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
        row.names_call = bool(row.results) or dialect == "spec-004"
    elif kind == "error":
        row.names_call = False
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
