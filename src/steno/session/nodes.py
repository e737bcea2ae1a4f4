"""A record reduced to what the graph needs, so that a whole session fits in little memory."""

from sys import intern
from typing import Any, Final

from steno.format.records import Record

__all__ = ["CONVERSATION", "Node", "node_of"]

CONVERSATION: Final = frozenset(("user", "assistant", "system", "attachment"))
"""The types that make up a conversation; `progress` and unknown types only link."""

_ROLES: Final = frozenset(("user", "assistant"))


class Node:
    """One record's place in the graph. The record itself is read again when it is wanted."""

    __slots__ = (
        "agent_id",
        "ends_line",
        "has_content",
        "has_message",
        "index",
        "length",
        "logical_parent",
        "message_id",
        "meta",
        "model",
        "offset",
        "parent",
        "results",
        "session",
        "sidechain",
        "subtype",
        "synthetic_error",
        "timestamp",
        "type",
        "uses",
        "uuid",
        "version",
        "whole",
    )

    def __init__(self, record: Record, index: int) -> None:
        envelope = record.envelope
        self.index = index
        self.offset = record.offset
        self.length = record.length
        self.whole = record.whole
        self.ends_line = record.ending.endswith(b"\n")
        self.type = intern(record.type)
        self.subtype = intern(envelope.subtype) if envelope.subtype else ""
        self.uuid = envelope.uuid
        self.parent = envelope.parent_uuid
        self.logical_parent = envelope.logical_parent_uuid
        self.timestamp = envelope.timestamp
        self.sidechain = bool(envelope.is_sidechain)
        self.meta = bool(envelope.is_meta)
        self.agent_id = intern(envelope.agent_id) if envelope.agent_id else ""
        self.session = intern(envelope.session_id) if envelope.session_id else ""
        self.version = intern(envelope.version) if envelope.version else ""
        self.message_id: str | None = None
        self.model = ""
        self.has_message = False
        self.has_content = False
        self.synthetic_error = False
        self.uses: tuple[str, ...] = ()
        self.results: tuple[str, ...] = ()
        if record.role:
            self._read_message(record)

    def _read_message(self, record: Record) -> None:
        message = record.message
        self.has_message = message is not None
        if message is not None:
            self.has_content = message.content is not None
            self.message_id = message.id
            self.model = intern(message.model) if message.model else ""
            self.synthetic_error = (
                bool(record.envelope.is_api_error_message) and self.model == "<synthetic>"
            )
        self.uses = tuple(block.id for block in record.tool_uses)
        self.results = tuple(block.tool_use_id for block in record.tool_results)

    def __repr__(self) -> str:
        return f"<Node {self.index} {self.type} {self.uuid}>"

    @property
    def converses(self) -> bool:
        """Whether it is part of the main conversation rather than a link or a sub-agent's."""
        return self.type in CONVERSATION and not self.sidechain

    @property
    def is_message(self) -> bool:
        """Whether it is a user or an assistant record."""
        return self.type in ("user", "assistant")

    @property
    def is_boundary(self) -> bool:
        """Whether the conversation was compacted here."""
        return self.type == "system" and self.subtype == "compact_boundary"

    @property
    def is_result(self) -> bool:
        """Whether it brings tool results."""
        return self.type == "user" and bool(self.results)


def node_of(fields: dict[str, Any], index: int, line: tuple[bytes, int, bytes]) -> Node:
    """Make the same node of a sound line that was decoded already, which is cheaper.

    Every field must be of the type that the envelope has it in, and a message an object.
    """
    get = fields.get
    body, offset, ending = line
    node = Node.__new__(Node)
    node.index = index
    node.offset = offset
    node.length = len(body) + len(ending)
    node.whole = True
    node.ends_line = bool(ending)
    node.type = intern(get("type") or "")
    node.subtype = intern(get("subtype") or "")
    node.uuid = get("uuid")
    node.parent = get("parentUuid")
    node.logical_parent = get("logicalParentUuid")
    node.timestamp = get("timestamp")
    node.sidechain = bool(get("isSidechain"))
    node.meta = bool(get("isMeta"))
    node.agent_id = intern(get("agentId") or "")
    node.session = intern(get("sessionId") or "")
    node.version = intern(get("version") or "")
    node.message_id = None
    node.model = ""
    node.has_message = node.has_content = node.synthetic_error = False
    node.uses = node.results = ()
    if node.type in _ROLES:
        _take_message(node, fields["message"], is_error=bool(get("isApiErrorMessage")))
    return node


def _take_message(node: Node, message: dict[str, Any], *, is_error: bool) -> None:
    name, model = message.get("id"), message.get("model")
    content: Any = message.get("content")
    node.has_message = True
    node.has_content = content is not None
    node.message_id = name if isinstance(name, str) else None
    node.model = intern(model) if isinstance(model, str) else ""
    node.synthetic_error = is_error and node.model == "<synthetic>"
    for block in content if content.__class__ is list else (content,):
        if block.__class__ is not dict:
            continue
        kind = block.get("type")
        if kind == "tool_use" and _is_call(block):
            node.uses += (block.get("id", ""),)
        elif kind == "tool_result" and _is_answer(block):
            node.results += (block.get("tool_use_id", ""),)


def _is_call(block: dict[str, Any]) -> bool:
    """Whether a block of that type is of the form that calls have."""
    return isinstance(block.get("id", ""), str) and isinstance(block.get("name", ""), str)


def _is_answer(block: dict[str, Any]) -> bool:
    named = isinstance(block.get("tool_use_id", ""), str)
    return named and isinstance(block.get("is_error"), bool | None)
