"""What a record is called: `type`, and behind a slash what tells its sub-kinds apart."""

from typing import TYPE_CHECKING, Any, cast

import msgspec

from steno.format.blocks import (
    RedactedThinking,
    ServerToolUse,
    Thinking,
    ToolResult,
    ToolUse,
)
from steno.format.loose import loose

if TYPE_CHECKING:
    from steno.format.records import Record

__all__ = ["kind_of"]


def kind_of(record: "Record") -> str:
    """Return the kind the catalogue knows a record by."""
    envelope = record.envelope
    match record.type:
        case "user":
            return f"user/{_user_kind(record)}"
        case "assistant":
            return f"assistant/{_assistant_kind(record)}"
        case "system" if envelope.subtype:
            return f"system/{envelope.subtype}"
        case "attachment":
            return _inner("attachment", envelope.attachment)
        case "progress":
            return _inner("progress", envelope.data)
        case "queue-operation" if envelope.operation:
            return f"queue-operation/{envelope.operation}"
        case other:
            return other or "untyped"


def _user_kind(record: "Record") -> str:
    envelope = record.envelope
    if any(isinstance(block, ToolResult) for block in record.blocks):
        return "tool_result"
    if envelope.is_compact_summary:
        return "compact_summary"
    return "meta" if envelope.is_meta else "prompt"


def _assistant_kind(record: "Record") -> str:
    if record.envelope.is_api_error_message:
        return "api_error"
    if record.dialect == "spec-000" and record.envelope.subtype:
        return record.envelope.subtype
    blocks = record.blocks
    if any(isinstance(block, ToolUse | ServerToolUse) for block in blocks):
        return "tool_use"
    if blocks and isinstance(blocks[0], Thinking):
        return "thinking"
    if blocks and isinstance(blocks[0], RedactedThinking):
        return "redacted_thinking"
    return "text"


def _inner(outer: str, raw: msgspec.Raw) -> str:
    value = loose(raw) if raw else None
    name: Any = cast("dict[str, Any]", value).get("type") if isinstance(value, dict) else None
    return f"{outer}/{name}" if isinstance(name, str) else outer
