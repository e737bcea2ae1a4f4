"""A line as the index sees it: only the fields it counts or searches, decoded in one go."""

from typing import Any, Final

import msgspec

from steno.format.blocks import Block as FormatBlock
from steno.format.blocks import Text, Thinking, ToolResult, ToolUse, UnknownBlock
from steno.format.loose import fill
from steno.format.message import CacheCreation
from steno.format.records import Record
from steno.format.values import as_object

__all__ = ["Block", "Body", "Inner", "Line", "Usage", "decode_lines", "line_of"]

_NOTHING: Final = msgspec.Raw()


class Inner(msgspec.Struct, gc=False):
    """A block inside a tool result."""

    type: str = ""
    text: str | None = None


class Block(msgspec.Struct, gc=False):
    """A block of any type; what a type does not have is empty."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None
    """The arguments of a call; all the fields of a block of unknown type."""
    tool_use_id: str | None = None
    content: str | list[Inner] | None = None
    is_error: bool | None = None


class _Searches(msgspec.Struct, gc=False):
    web_search_requests: int | None = 0


class Usage(msgspec.Struct, gc=False):
    """The figures of one line."""

    input_tokens: int | None = 0
    output_tokens: int | None = 0
    cache_creation_input_tokens: int | None = 0
    cache_read_input_tokens: int | None = 0
    cache_creation: CacheCreation | None = None
    server_tool_use: _Searches | None = None
    speed: str | None = None


class Body(msgspec.Struct, gc=False):
    """The API message in a record."""

    id: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    content: str | list[Block] | None = None
    usage: Usage | None = None


class _Fork(msgspec.Struct, rename="camel", gc=False):
    session_id: str | None = None


class Line(msgspec.Struct, rename="camel", gc=False):
    """A record, as far as the index is concerned."""

    # In the order that clients write them: the decoder looks for the next one first.
    parent_uuid: str | None = None
    is_sidechain: bool | None = None
    cwd: str | None = None
    session_id: str | None = None
    version: str | None = None
    git_branch: str | None = None
    agent_id: str | None = None
    type: str | None = None
    subtype: str | None = None
    message: Body | None = None
    request_id: str | None = None
    tool_use_result: msgspec.Raw = _NOTHING
    duration_ms: float | None = None
    is_meta: bool | None = None
    repeats_compact_summary: bool | None = None
    uuid: str | None = None
    timestamp: str | int | float | None = None
    attachment: msgspec.Raw = _NOTHING
    logical_parent_uuid: str | None = None
    is_compact_summary: bool | None = None
    is_api_error_message: bool | None = None
    custom_title: str | None = None
    ai_title: str | None = None
    last_prompt: str | None = None
    summary: str | None = None
    leaf_uuid: str | None = None
    pr_url: str | None = None
    forked_from: _Fork | None = None
    content: msgspec.Raw = _NOTHING


decode_lines: Final = msgspec.json.Decoder(Line).decode_lines
"""The fast path. Raises on damage, on fields of unexpected types and on messages of dialects."""


def line_of(record: Record) -> Line:
    """Return any record as a line, however odd it is or whatever dialect it speaks."""
    line = fill(Line, record.fields)
    if record.role:
        message = record.message
        line.type = record.role
        line.message = Body(content=[_block(block) for block in record.blocks])
        if message is not None:
            line.message.id = message.id
            line.message.model = message.model
            line.message.stop_reason = message.stop_reason
            line.message.usage = _usage(record)
    return line


def _usage(record: Record) -> Usage | None:
    message = as_object(record.fields.get("message"))
    figures = as_object(message.get("usage")) if message is not None else None
    return fill(Usage, figures) if figures is not None else None


def _block(block: FormatBlock) -> Block:
    match block:
        case Text():
            return Block("text", text=block.text)
        case Thinking():
            return Block("thinking", thinking=block.thinking)
        case ToolUse():
            return Block("tool_use", id=block.id, name=block.name, input=block.input)
        case ToolResult():
            inner = [Inner("text", part.text) for part in block.blocks if isinstance(part, Text)]
            return Block(
                "tool_result",
                tool_use_id=block.tool_use_id,
                content=inner,
                is_error=block.is_error,
            )
        case UnknownBlock():
            return Block(block.type, input=block.fields)
        case _:
            return Block(block.type)
