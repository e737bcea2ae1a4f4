"""The searchable text of a record, by role and kind.

The same function feeds the index and locates excerpts; `steno.index.search.audit` checks it.
"""

import re
from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias, cast

import msgspec

from steno.format.lenient_json import DECODE_ERRORS, decode_lenient
from steno.format.message import CALL_TYPES
from steno.index.line_decoder import IndexedLine, LineBlock, ResultPart

TextKind: TypeAlias = Literal["prompt", "answer", "thinking", "input", "output", "note", "title", "summary"]
"""Whose words they are.

prompt    what the user said
answer    what the model said
thinking  what it thought
input     what it gave to a tool: commands, paths, new text
output    what the tool gave back
note      what the client said: hooks, reminders, errors, attachments, records of unknown types
title     what the session is called
summary   what a compaction left
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
# Records that repeat others, or hold nothing but the state of the client.
_UNSEARCHED_TYPES: Final = frozenset(("progress", "file-history-snapshot", "last-prompt", "mode", "deleted"))
# The first key of a client's own copy of a result, in every shape that was seen.
_COPY_PATTERN: Final = re.compile(
    rb'\{"(?:stdout|type|file|filePath|filenames|mode|oldTodos|newTodos|status|bytes|query|'
    rb'content|agentId|isAgent|success|commandName|message|plan|questions|matches|results)"|"'
)
# Fields that say where a record belongs and what it is, and nothing else.
ENVELOPE_FIELDS: Final = frozenset(
    (
        *("type", "subtype", "uuid", "parentUuid", "sessionId", "timestamp", "cwd", "version"),
        *("gitBranch", "userType", "entrypoint", "slug", "logicalParentUuid", "requestId"),
        *("leafUuid", "level", "operation", "hookEvent", "toolUseID", "messageId"),
        *("parentToolUseID", "agentId", "promptId"),
    )
)


class TextPart(msgspec.Struct, gc=False):
    """Some words of a record."""

    kind: TextKind
    text: str
    tool: str = ""
    """The tool they were given to; of results it is known only to who saw the call."""
    call: str = ""
    failed: bool = False


def text_parts(line: IndexedLine, data: bytes) -> list[TextPart]:
    """Return what can be searched in a record."""
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
    """Return what a tool is given, or what a block of an unknown type says."""
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
        # A shape nobody has seen: whatever the result does not say already.
        additional = [string for string in _text_strings(decode_json(client_copy)) if string not in text]
        text = "\n".join((text, *additional))
    return TextPart("output", text, "", block.tool_use_id or "", bool(block.is_error))


def is_result_copy(client_copy: bytes | msgspec.Raw) -> bool:
    """Whether the client's own form of a result is one that says what the result says."""
    return _COPY_PATTERN.match(client_copy) is not None


def _strip_envelope(raw: bytes) -> Any:
    fields = decode_json(raw)
    if not isinstance(fields, dict):
        return None
    return {name: value for name, value in cast("dict[str, Any]", fields).items() if name not in ENVELOPE_FIELDS}


def decode_json(raw: bytes | msgspec.Raw) -> Any:
    """Return the value of some JSON, however damaged."""
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
    """Whether a string is data and not words: long, and without any space."""
    return len(text) > _MAX_UNSPACED_LENGTH and not _SPACE_PATTERN.search(text, 0, _MAX_UNSPACED_LENGTH)
