"""Transcript lines as decoded for the index: fields in one pass, times, and sizes of edits."""

from datetime import datetime
from typing import Any, Final, cast

import msgspec

from steno.format.lenient_json import DECODE_ERRORS, as_object, fill_struct
from steno.format.line_diff import common_ends
from steno.format.message import Block as FormatBlock
from steno.format.message import (
    CacheCreation,
    ForkOrigin,
    RecordFields,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    UnknownBlock,
    projection,
)
from steno.format.records import Record, read_time

_COMMON_LENGTH: Final = len("2026-11-15T12:00:00.000Z")
_parse_iso: Final = datetime.fromisoformat


def to_millis(timestamp: str | float | None) -> int | None:
    """Return a time in milliseconds since 1970; the format of Claude Code takes a fast path.

    >>> to_millis("1970-01-02T00:00:01.250Z")
    86401250
    """
    if (
        isinstance(timestamp, str)
        and len(timestamp) == _COMMON_LENGTH
        and timestamp[-1] == "Z"
        and timestamp[19] == "."
    ):
        try:
            return round(_parse_iso(timestamp).timestamp() * 1000)
        except (ValueError, OverflowError):
            pass
    time = read_time(timestamp) if timestamp is not None else None
    return round(time.timestamp() * 1000) if time is not None else None


class ResultPart(msgspec.Struct, gc=False):
    """A block inside a tool result."""

    type: str = ""
    text: str | None = None


class LineBlock(msgspec.Struct, gc=False):
    """A content block of any type; fields that a type lacks are empty."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None
    """Input of a tool call, or all fields of a block of unknown type."""
    tool_use_id: str | None = None
    content: str | list[ResultPart] | None = None
    is_error: bool | None = None


class _ServerToolUse(msgspec.Struct, gc=False):
    web_search_requests: int | None = 0


class LineUsage(msgspec.Struct, gc=False):
    """Usage figures of one line."""

    input_tokens: int | None = 0
    output_tokens: int | None = 0
    cache_creation_input_tokens: int | None = 0
    cache_read_input_tokens: int | None = 0
    cache_creation: CacheCreation | None = None
    server_tool_use: _ServerToolUse | None = None
    speed: str | None = None


class LineMessage(msgspec.Struct, gc=False):
    """The API message in a record."""

    id: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    content: str | list[LineBlock] | None = None
    usage: LineUsage | None = None


@projection(
    "parent_uuid is_sidechain cwd session_id version git_branch agent_id type subtype request_id "
    "tool_use_result is_meta uuid timestamp attachment leaf_uuid logical_parent_uuid is_compact_summary "
    "is_api_error_message content duration_ms repeats_compact_summary custom_title ai_title last_prompt "
    "summary pr_url"
)
class IndexedLine(RecordFields):
    """The fields of a record that the index uses."""

    message: LineMessage | None = None
    forked_from: ForkOrigin | None = None


decode_lines: Final = msgspec.json.Decoder(IndexedLine).decode_lines
"""The fast path. Raises on damage, on fields of unexpected types and on messages in a dialect."""


def line_from_record(record: Record) -> IndexedLine:
    """Convert any record, also a malformed one or one in a dialect."""
    line = fill_struct(IndexedLine, record.fields)
    if record.role:
        message = record.message
        line.type = record.role
        line.message = LineMessage(content=[_line_block(block) for block in record.blocks])
        if message is not None:
            line.message.id = message.id
            line.message.model = message.model
            line.message.stop_reason = message.stop_reason
            line.message.usage = _record_usage(record)
    return line


def _record_usage(record: Record) -> LineUsage | None:
    message = as_object(record.fields.get("message"))
    usage_fields = as_object(message.get("usage")) if message is not None else None
    return fill_struct(LineUsage, usage_fields) if usage_fields is not None else None


def _line_block(block: FormatBlock) -> LineBlock:
    match block:
        case Text():
            return LineBlock("text", text=block.text)
        case Thinking():
            return LineBlock("thinking", thinking=block.thinking)
        case ToolUse():
            return LineBlock("tool_use", id=block.id, name=block.name, input=block.input)
        case ToolResult():
            parts = [ResultPart("text", part.text) for part in block.blocks if isinstance(part, Text)]
            return LineBlock("tool_result", tool_use_id=block.tool_use_id, content=parts, is_error=block.is_error)
        case UnknownBlock():
            return LineBlock(block.type, input=block.fields)
        case _:
            return LineBlock(block.type)


class _PatchHunk(msgspec.Struct, gc=False):
    lines: list[str] = []


class _PatchResult(msgspec.Struct, rename="camel", gc=False):
    type: str | None = None
    structured_patch: list[_PatchHunk] | None = None


def count_patch_lines(result: msgspec.Raw) -> tuple[int, int] | None:
    """Count added and removed lines in the patch of a tool result; None if it has no patch.

    >>> count_patch_lines(msgspec.Raw(b'{"structuredPatch":[{"lines":[" a","-b","+c","+d"]}]}'))
    (2, 1)
    """
    try:
        decoded = msgspec.json.decode(result, type=_PatchResult)
    except DECODE_ERRORS:
        return None
    patch = decoded.structured_patch
    if patch is None or (not patch and decoded.type == "create"):
        return None
    prefixes = [line[:1] for hunk in patch for line in hunk.lines]
    return prefixes.count("+"), prefixes.count("-")


def count_changed_lines(tool_input: dict[str, Any]) -> tuple[int, int]:
    r"""Count the lines that a tool call requests to add and remove.

    >>> count_changed_lines({"old_string": "a\nb\nc", "new_string": "a\nx\ny\nc"})
    (2, 1)
    """
    edits = tool_input.get("edits")
    changes = cast("list[Any]", edits) if isinstance(edits, list) else [tool_input]
    added = removed = 0
    for change in changes:
        if isinstance(change, dict):
            texts = cast("dict[str, Any]", change)
            new = texts.get("new_string", texts.get("content", texts.get("new_source")))
            lines_added, lines_removed = _count_differences(_split_lines(texts.get("old_string")), _split_lines(new))
            added += lines_added
            removed += lines_removed
    return added, removed


def _count_differences(old: list[str], new: list[str]) -> tuple[int, int]:
    head, tail = common_ends(old, new)
    return len(new) - head - tail, len(old) - head - tail


def _split_lines(text: Any) -> list[str]:
    if not isinstance(text, str) or not text:
        return []
    return text.removesuffix("\n").split("\n")
