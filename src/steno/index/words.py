"""What can be searched in a record: its words, by who said them and where.

The same function feeds the index and finds the excerpt of a hit; an audit holds it to its word.
"""

import re
from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias, cast

import msgspec

from steno.format.loose import REFUSED, loose
from steno.index.lines import Block, Inner, Line

__all__ = ["ENVELOPE", "KINDS", "TITLES", "Kind", "Part", "is_binary", "is_copy", "parts_of"]

Kind: TypeAlias = Literal[
    "prompt", "answer", "thinking", "input", "output", "note", "title", "summary"
]
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
KINDS: Final[tuple[Kind, ...]] = (
    "prompt",
    "answer",
    "thinking",
    "input",
    "output",
    "note",
    "title",
    "summary",
)
_BINARY: Final = 4_096
_CALLS: Final = frozenset(("tool_use", "server_tool_use"))
_SPACE: Final = re.compile(r"\s")
TITLES: Final = frozenset(("custom-title", "ai-title", "summary", "tag", "agent-name"))
# Records that repeat others, or hold nothing but the state of the client.
_SILENT: Final = frozenset(("progress", "file-history-snapshot", "last-prompt", "mode", "deleted"))
# The first key of a client's own copy of a result, in every shape that was seen.
_COPY: Final = re.compile(
    rb'\{"(?:stdout|type|file|filePath|filenames|mode|oldTodos|newTodos|status|bytes|query|'
    rb'content|agentId|isAgent|success|commandName|message|plan|questions|matches|results)"|"'
)
# Fields that say where a record belongs and what it is, and nothing else.
ENVELOPE: Final = frozenset(
    (
        *("type", "subtype", "uuid", "parentUuid", "sessionId", "timestamp", "cwd", "version"),
        *("gitBranch", "userType", "entrypoint", "slug", "logicalParentUuid", "requestId"),
        *("leafUuid", "level", "operation", "hookEvent", "toolUseID", "messageId"),
        *("parentToolUseID", "agentId", "promptId"),
    )
)


class Part(msgspec.Struct, gc=False):
    """Some words of a record."""

    kind: Kind
    text: str
    tool: str = ""
    """The tool they were given to; of results it is known only to who saw the call."""
    call: str = ""
    failed: bool = False


def parts_of(line: Line, raw: bytes) -> list[Part]:
    """Return what can be searched in a record."""
    message = line.message
    if message is not None:
        return _of_message(line, message.content)
    kind = line.type
    if kind in _SILENT:
        return []
    if kind in TITLES:
        title = line.custom_title or line.ai_title or line.summary
        if title:
            return [Part("title", title)]
    return _joined("note", _leaves(_without_envelope(raw)))


def _of_message(line: Line, content: str | list[Block] | None) -> list[Part]:
    said = _speaker(line)
    if content.__class__ is str:
        return [Part(said, cast("str", content))] if content else []
    parts: list[Part] = []
    for block in cast("list[Block] | None", content) or ():
        kind = block.type
        if kind == "text":
            if block.text:
                parts.append(Part(said, block.text))
        elif kind == "tool_result":
            parts.append(_result(line, block))
        elif kind == "thinking":
            if block.thinking:
                parts.append(Part("thinking", block.thinking))
        elif block.input is not None or kind in _CALLS:
            parts += _given(block)
    return parts


def _speaker(line: Line) -> Kind:
    if line.is_compact_summary:
        return "summary"
    if line.is_meta or line.is_api_error_message:
        return "note"
    return "answer" if line.type == "assistant" else "prompt"


def _given(block: Block) -> list[Part]:
    """Return what a tool is given, or what a block of an unknown type says."""
    leaves = _leaves(block.input)
    if block.type not in _CALLS:
        return _joined("note", leaves)
    return [Part("input", "\n".join(leaves), block.name or "", block.id or "")]


def _result(line: Line, block: Block) -> Part:
    content = block.content
    if content.__class__ is list:
        inside = cast("list[Inner]", content)
        content = "\n".join(inner.text for inner in inside if inner.text)
    text = cast("str", content or "")
    own = line.tool_use_result
    if own and not is_copy(own):
        # A shape nobody has seen: whatever the result does not say already.
        more = [leaf for leaf in _leaves(_decoded(own)) if leaf not in text]
        text = "\n".join((text, *more))
    return Part("output", text, "", block.tool_use_id or "", bool(block.is_error))


def is_copy(own: bytes | msgspec.Raw) -> bool:
    """Whether the client's own form of a result is one that says what the result says."""
    return _COPY.match(own) is not None


def _without_envelope(raw: bytes) -> Any:
    fields = _decoded(raw)
    if not isinstance(fields, dict):
        return None
    return {
        name: value
        for name, value in cast("dict[str, Any]", fields).items()
        if name not in ENVELOPE
    }


def _decoded(raw: bytes | msgspec.Raw) -> Any:
    try:
        return msgspec.json.decode(raw)
    except REFUSED:
        return loose(raw)


def _joined(kind: Kind, leaves: Iterator[str]) -> list[Part]:
    text = "\n".join(leaves)
    return [Part(kind, text)] if text else []


def _leaves(value: Any) -> Iterator[str]:
    """Yield the strings in a value, in order, without what is no text."""
    if value.__class__ is str:
        if not is_binary(value):
            yield value
        return
    stack: list[Iterator[Any]] = [_inside(value)]
    while stack:
        for item in stack[-1]:
            if item.__class__ is str:
                if not is_binary(item):
                    yield item
            elif item.__class__ is dict or item.__class__ is list:
                stack.append(_inside(item))
                break
        else:
            stack.pop()


def _inside(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        return iter(cast("dict[str, Any]", value).values())
    return iter(cast("list[Any]", value) if isinstance(value, list) else ())


def is_binary(text: str) -> bool:
    """Whether a string is data and not words: long, and without any space."""
    return len(text) > _BINARY and not _SPACE.search(text, 0, _BINARY)
