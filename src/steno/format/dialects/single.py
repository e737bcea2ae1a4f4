"""A record of a dialect by itself: which dialect it has, its role and its blocks.

A dialect is told by the record itself, so a file may mix them.
"""

from typing import Any, cast

import msgspec

from steno.format.blocks import Block, Text, Thinking, ToolResult, ToolUse, decode_blocks
from steno.format.dialects.names import MESSAGE_TYPES, Dialect
from steno.format.envelope import Envelope
from steno.format.loose import loose

__all__ = ["adapted_blocks", "adapted_role", "dialect_of"]


def dialect_of(envelope: Envelope) -> Dialect:
    """Return which family of writers a record belongs to."""
    kind = envelope.type or ""
    if kind in MESSAGE_TYPES or (isinstance(envelope.timestamp, int | float) and envelope.message):
        return "spec-004"
    if kind == "compact_system" or (kind == "system" and envelope.subtype == "tool_result"):
        return "spec-000"
    if _is_text(envelope.message) or (
        kind == "assistant" and envelope.subtype and not envelope.message
    ):
        return "spec-000"
    return "claude"


def adapted_role(envelope: Envelope) -> str:
    """Return the role a dialect's own type stands for, or nothing."""
    kind = envelope.type or ""
    if kind == "system" and envelope.subtype == "tool_result":
        return "user"
    return "user" if kind in MESSAGE_TYPES else ""


def adapted_blocks(envelope: Envelope, line: bytes) -> tuple[Block, ...]:
    """Return what a dialect's record says, as the blocks the real client would have written.

    A tool result of `spec-000` names no call; the parent of the record is the call.
    """
    raw: msgspec.Raw = envelope.message or msgspec.Raw()
    text = loose(raw) if raw else None
    words = text if isinstance(text, str) else ""
    kind, subtype = envelope.type, envelope.subtype
    if kind == "assistant" and subtype == "tool_use":
        return (*((Text(words),) if words else ()), _tool_use(envelope, line))
    if kind == "assistant" and subtype == "thinking":
        return (Thinking(words),)
    if kind == "system" and subtype == "tool_result":
        said = raw or msgspec.Raw(b'""')
        return (ToolResult(envelope.parent_uuid or "", said, is_error=None),)
    if words:
        return (Text(words),)
    return decode_blocks(envelope.content) if _is_text(envelope.content) else ()


def _tool_use(envelope: Envelope, line: bytes) -> ToolUse:
    value = loose(line)
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    arguments = msgspec.Raw(msgspec.json.encode(fields.get("toolArguments", {})))
    return ToolUse(envelope.uuid or "", str(fields.get("toolName", "")), arguments)


def _is_text(value: Any) -> bool:
    return isinstance(value, msgspec.Raw) and bytes(memoryview(value)[:1]) == b'"'
