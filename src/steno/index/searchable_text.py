"""The searchable text of a record, by role and kind.

The same function provides the text for the index and for excerpts; `steno.index.search.audit` checks it.
"""

import re
from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias, cast

import msgspec

from steno.format.lenient_json import DECODE_ERRORS, decode_lenient
from steno.format.message import CALL_TYPES
from steno.index.line_decoder import IndexedLine, LineBlock, ResultPart

TextKind: TypeAlias = Literal["prompt", "answer", "thinking", "input", "output", "note", "title", "summary"]
"""Kind of a searchable text.

prompt    text of the user
answer    text of the model
thinking  thinking of the model
input     input of a tool call: commands, paths, new text
output    result of a tool call
note      text of Claude Code: hooks, reminders, errors, attachments, records of unknown types
title     title of the session
summary   summary of a compaction
"""
TEXT_KINDS: Final[tuple[TextKind, ...]] = (
    "prompt",
    "answer",
    "thinking",
    "input",
    "output",
    "note",
    "title",
    "summary",
)
_MAX_UNSPACED_LENGTH: Final = 4_096
_SPACE_PATTERN: Final = re.compile(r"\s")
TITLE_TYPES: Final = frozenset(("custom-title", "ai-title", "summary", "tag", "agent-name"))
# Records that repeat others or contain only state.
_UNSEARCHED_TYPES: Final = frozenset(("progress", "file-history-snapshot", "last-prompt", "mode", "deleted"))
# First key of a structured copy of a tool result, for all known formats.
_COPY_PATTERN: Final = re.compile(
    rb'\{"(?:stdout|type|file|filePath|filenames|mode|oldTodos|newTodos|status|bytes|query|'
    rb'content|agentId|isAgent|success|commandName|message|plan|questions|matches|results)"|"'
)
# Fields of the envelope, which contain no searchable text.
ENVELOPE_FIELDS: Final = frozenset(
    (
        *("type", "subtype", "uuid", "parentUuid", "sessionId", "timestamp", "cwd", "version"),
        *("gitBranch", "userType", "entrypoint", "slug", "logicalParentUuid", "requestId"),
        *("leafUuid", "level", "operation", "hookEvent", "toolUseID", "messageId"),
        *("parentToolUseID", "agentId", "promptId"),
    )
)


class TextPart(msgspec.Struct, gc=False):
    """A searchable text of a record."""

    kind: TextKind
    text: str
    tool: str = ""
    """Name of the tool; for results, known only if the call was read."""
    call: str = ""
    failed: bool = False


def text_parts(line: IndexedLine, data: bytes) -> list[TextPart]:
    """Return the searchable texts of a record."""
    message = line.message
    if message is not None:
        return _message_parts(line, message.content)
    kind = line.type
    if kind in _UNSEARCHED_TYPES:
        return []
    if kind in TITLE_TYPES:
        title = line.custom_title or line.ai_title or line.summary
        if title:
            return [TextPart("title", title)]
    return _joined_part("note", _text_strings(_strip_envelope(data)))


def _message_parts(line: IndexedLine, content: str | list[LineBlock] | None) -> list[TextPart]:
    message_kind = _message_text_kind(line)
    if content.__class__ is str:
        return [TextPart(message_kind, cast("str", content))] if content else []
    parts: list[TextPart] = []
    for block in cast("list[LineBlock] | None", content) or ():
        kind = block.type
        if kind == "text":
            if block.text:
                parts.append(TextPart(message_kind, block.text))
        elif kind == "tool_result":
            parts.append(_result_part(line, block))
        elif kind == "thinking":
            if block.thinking:
                parts.append(TextPart("thinking", block.thinking))
        elif block.input is not None or kind in CALL_TYPES:
            parts += _input_parts(block)
    return parts


def _message_text_kind(line: IndexedLine) -> TextKind:
    if line.is_compact_summary:
        return "summary"
    if line.is_meta or line.is_api_error_message:
        return "note"
    return "answer" if line.type == "assistant" else "prompt"


def _input_parts(block: LineBlock) -> list[TextPart]:
    """Return the texts of a tool input, or of a block of unknown type."""
    strings = _text_strings(block.input)
    if block.type not in CALL_TYPES:
        return _joined_part("note", strings)
    return [TextPart("input", "\n".join(strings), block.name or "", block.id or "")]


def _result_part(line: IndexedLine, block: LineBlock) -> TextPart:
    content = block.content
    if content.__class__ is list:
        inner_parts = cast("list[ResultPart]", content)
        content = "\n".join(inner.text for inner in inner_parts if inner.text)
    text = cast("str", content or "")
    client_copy = line.tool_use_result
    if client_copy and not is_result_copy(client_copy):
        # An unknown format: add the strings that the result does not contain.
        additional = [string for string in _text_strings(decode_json(client_copy)) if string not in text]
        text = "\n".join((text, *additional))
    return TextPart("output", text, "", block.tool_use_id or "", bool(block.is_error))


def is_result_copy(client_copy: bytes | msgspec.Raw) -> bool:
    """Return whether a structured copy of a tool result repeats its text."""
    return _COPY_PATTERN.match(client_copy) is not None


def _strip_envelope(raw: bytes) -> Any:
    fields = decode_json(raw)
    if not isinstance(fields, dict):
        return None
    return {name: value for name, value in cast("dict[str, Any]", fields).items() if name not in ENVELOPE_FIELDS}


def decode_json(raw: bytes | msgspec.Raw) -> Any:
    """Decode JSON, even if it is damaged."""
    try:
        return msgspec.json.decode(raw)
    except DECODE_ERRORS:
        return decode_lenient(raw)


def _joined_part(kind: TextKind, strings: Iterator[str]) -> list[TextPart]:
    text = "\n".join(strings)
    return [TextPart(kind, text)] if text else []


def _text_strings(value: Any) -> Iterator[str]:
    if value.__class__ is str:
        if not is_binary(value):
            yield value
        return
    stack: list[Iterator[Any]] = [_child_values(value)]
    while stack:
        for item in stack[-1]:
            if item.__class__ is str:
                if not is_binary(item):
                    yield item
            elif item.__class__ is dict or item.__class__ is list:
                stack.append(_child_values(item))
                break
        else:
            stack.pop()


def _child_values(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        return iter(cast("dict[str, Any]", value).values())
    return iter(cast("list[Any]", value) if isinstance(value, list) else ())


def is_binary(text: str) -> bool:
    """Return whether a string is data rather than text: long and without whitespace."""
    return len(text) > _MAX_UNSPACED_LENGTH and not _SPACE_PATTERN.search(text, 0, _MAX_UNSPACED_LENGTH)
