"""A record reduced to what the graph needs, so that a whole session fits in little memory."""

from sys import intern
from types import NoneType
from typing import Any, Final

import msgspec

from steno.format.blocks import ToolResult, ToolUse
from steno.format.dialects.names import OWN_TYPES, ROLES, SYSTEM_SUBTYPES
from steno.format.records import Record

__all__ = ["CONVERSATION", "ROLES", "Node", "node_of", "read_node"]

CONVERSATION: Final = frozenset(("user", "assistant", "system", "attachment"))
"""The types that make up a conversation; `progress` and unknown types only link."""
_FLAGS: Final = frozenset((bool, NoneType))
_TIMES: Final = frozenset((str, NoneType))
_REPEATS: Final = b'"repeatsCompactSummary"'


class Node(msgspec.Struct, eq=False, gc=False):
    """One record's place in the graph. The record itself is read again when it is wanted."""

    index: int
    offset: int
    length: int
    whole: bool
    ends_line: bool
    type: str
    subtype: str
    uuid: str | None
    parent: str | None
    logical_parent: str | None
    timestamp: str | int | float | None
    sidechain: bool
    meta: bool
    agent_id: str
    session: str
    version: str
    has_message: bool = False
    has_content: bool = False
    message_id: str | None = None
    model: str = ""
    synthetic_error: bool = False
    uses: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    in_dialect: bool = False
    """Whether the record is in a form that the real client does not write."""
    repeats: bool = False
    """Whether it says again, behind a compaction, what stands before it."""

    def __repr__(self) -> str:
        return f"<Node {self.index} {self.type} {self.uuid}>"

    @property
    def converses(self) -> bool:
        """Whether it is part of the main conversation rather than a link or a sub-agent's."""
        return self.type in CONVERSATION and not self.sidechain

    @property
    def is_message(self) -> bool:
        """Whether it is a user or an assistant record."""
        return self.type in ROLES

    @property
    def is_boundary(self) -> bool:
        """Whether the conversation was compacted here."""
        return self.type == "system" and self.subtype == "compact_boundary"

    @property
    def is_result(self) -> bool:
        """Whether it brings tool results."""
        return self.type == "user" and bool(self.results)


def read_node(record: Record, index: int) -> Node:
    """Make the node of a record."""
    envelope = record.envelope
    ending = record.ending
    kind = intern(envelope.type or "")
    node = Node(
        index,
        record.offset,
        len(record.line) + len(ending),
        not record.notes or record.whole,
        ending.endswith(b"\n"),
        kind,
        intern(envelope.subtype) if envelope.subtype else "",
        envelope.uuid,
        envelope.parent_uuid,
        envelope.logical_parent_uuid,
        envelope.timestamp,
        bool(envelope.is_sidechain),
        bool(envelope.is_meta),
        intern(envelope.agent_id) if envelope.agent_id else "",
        intern(envelope.session_id or ""),
        intern(envelope.version or ""),
    )
    if kind in ROLES:
        _read_message(node, record)
    elif kind in OWN_TYPES or (kind == "system" and node.subtype in SYSTEM_SUBTYPES):
        node.in_dialect = record.dialect != "claude"
    if kind == "user" and _REPEATS in record.line:
        node.repeats = record.fields.get("repeatsCompactSummary") is True
    return node


def _read_message(node: Node, record: Record) -> None:
    message = record.message
    if message is None or node.timestamp.__class__ not in _TIMES:
        node.in_dialect = record.dialect != "claude"
    if message is None:
        return
    node.has_message = True
    node.has_content = message.content is not None
    node.message_id = message.id
    if message.model:
        node.model = intern(message.model)
        is_error = bool(record.envelope.is_api_error_message)
        node.synthetic_error = is_error and node.model == "<synthetic>"
    for block in () if isinstance(message.content, str) else message.content or ():
        if type(block) is ToolUse:
            node.uses += (block.id,)
        elif type(block) is ToolResult:
            node.results += (block.tool_use_id,)


def node_of(
    fields: dict[str, Any],
    kind: str,
    subtype: str,
    index: int,
    offset: int,
    length: int,
    *,
    ended: bool,
) -> Node:
    """Make the same node of a sound line that was decoded already, which is cheaper.

    Every field must be of the type that the envelope has it in, and a message an object.
    """
    get = fields.get
    node = Node(
        index,
        offset,
        length,
        True,
        ended,
        kind,
        subtype,
        get("uuid"),
        get("parentUuid"),
        get("logicalParentUuid"),
        get("timestamp"),
        get("isSidechain") or False,
        get("isMeta") or False,
        intern(get("agentId") or ""),
        intern(get("sessionId") or ""),
        intern(get("version") or ""),
    )
    if kind in ROLES:
        _take_message(node, fields["message"], is_error=bool(get("isApiErrorMessage")))
    if kind == "user":
        node.repeats = get("repeatsCompactSummary") is True
    return node


def _take_message(node: Node, message: dict[str, Any], *, is_error: bool) -> None:
    name: Any = message.get("id")
    model: Any = message.get("model")
    content: Any = message.get("content")
    node.has_message = True
    node.has_content = content is not None
    if name.__class__ is str:
        node.message_id = name
    if model.__class__ is str:
        node.model = intern(model)
        node.synthetic_error = is_error and model == "<synthetic>"
    if content.__class__ is str:
        return
    for block in content if content.__class__ is list else (content,):
        if block.__class__ is not dict:
            continue
        # One that is not of the form that calls, or results, have is none.
        kind = block.get("type")
        if kind == "tool_use":
            call = block.get("id", "")
            if call.__class__ is str and block.get("name", "").__class__ is str:
                node.uses += (call,)
        elif kind == "tool_result":
            call = block.get("tool_use_id", "")
            if call.__class__ is str and block.get("is_error").__class__ in _FLAGS:
                node.results += (call,)
