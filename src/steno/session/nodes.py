"""A record reduced to what the graph needs, so that a whole session fits in little memory."""

from sys import intern
from typing import Final

from steno.format.records import Record

__all__ = ["CONVERSATION", "Node"]

CONVERSATION: Final = frozenset(("user", "assistant", "system", "attachment"))
"""The types that make up a conversation; `progress` and unknown types only link."""


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
