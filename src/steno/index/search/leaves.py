"""The strings of a record by what becomes of them: searched, or left out and why.

This goes by the place of a string in the record, and not by what `steno.index.words` does with it,
so that the one can be held against the other.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, cast

import msgspec

from steno.format.loose import REFUSED, loose
from steno.index.lines import Line
from steno.index.texts import LONGEST_WORD
from steno.index.words import ENVELOPE, TITLES, is_binary, is_copy

__all__ = ["Leaves", "leaves_of", "reason_of_silence"]

_SILENT: Final = {
    "progress": "progress",
    "last-prompt": "repeat",
    "file-history-snapshot": "state",
    "mode": "state",
}
_TITLE_FIELDS: Final = ("customTitle", "aiTitle", "summary")
_PICTURES: Final = frozenset(("image", "document"))
# A word of 512 bytes has at least 128 letters.
_LONG: Final = re.compile(r"[^\W_]{128,}")


class Leaves(msgspec.Struct):
    """How many bytes of strings a record has, by what becomes of them."""

    sizes: Counter[str]
    odd: bool = False
    """Whether the index was given other words than these."""


def reason_of_silence(line: Line) -> str:
    """Return why nothing of a record is searched; nothing for most records."""
    return _SILENT.get(line.type or "", "") if line.message is None else ""


def leaves_of(line: Line, raw: bytes, said: str) -> Leaves:
    """Return what becomes of the strings of a record, of which `said` is searched."""
    fields = _decoded(raw)
    found = list(_sorted_out(line, fields, said))
    letters = sum(_letters(leaf) for reason, leaf in found if reason == "words")
    odd = letters != _letters(said)
    if odd:
        # Not laid out as messages are: in a dialect, or damaged.
        found = [("words" if leaf in said else "state", leaf) for leaf in _strings(fields)]
    sizes: Counter[str] = Counter()
    for reason, leaf in found:
        size = len(leaf.encode("utf-8", "replace"))
        sizes[reason] += size
        if reason == "words" and size >= LONGEST_WORD:
            long = sum(map(_size, _LONG.findall(leaf)))
            sizes["long"] += long
            sizes["words"] -= long
    expected = len(said.replace("\n", "").encode("utf-8", "replace"))
    return Leaves(sizes, odd and sizes["words"] + sizes["long"] < expected)


def _letters(text: str) -> int:
    """Return how many letters a text has; line ends may have been put between strings."""
    return len(text) - text.count("\n")


def _size(word: str) -> int:
    size = len(word.encode("utf-8", "replace"))
    return size if size >= LONGEST_WORD else 0


def _decoded(raw: bytes | msgspec.Raw) -> Any:
    try:
        return msgspec.json.decode(raw)
    except REFUSED:
        return loose(raw)


def _sorted_out(line: Line, fields: Any, said: str) -> Iterator[tuple[str, str]]:
    if not isinstance(fields, dict):
        return
    for name, value in cast("dict[str, Any]", fields).items():
        if name in ENVELOPE:
            continue
        if line.message is None:
            yield from _note(line, name, value)
        elif name == "message":
            if isinstance(value, dict):
                yield from _content(cast("dict[str, Any]", value).get("content"))
        elif name == "toolUseResult":
            yield from _own_copy(line, value, said)
        else:
            yield from _as("state", value)


def _note(line: Line, name: str, value: Any) -> Iterator[tuple[str, str]]:
    if line.type in TITLES and (line.custom_title or line.ai_title or line.summary):
        title = name in _TITLE_FIELDS and value
        yield from _as("words" if title else "state", value)
        return
    yield from _words(value)


def _own_copy(line: Line, value: Any, said: str) -> Iterator[tuple[str, str]]:
    """Yield the strings of the client's own copy of a result."""
    if is_copy(line.tool_use_result) or not _has_result(line):
        yield from _as("repeat", value)
        return
    content = line.message.content if line.message is not None else None
    results = [block for block in content or () if not isinstance(block, str)]
    texts = ["\n".join(_texts(block.content)) for block in results]
    for leaf in _strings(value):
        if is_binary(leaf):
            yield "data", leaf
        else:
            # It was added to each result that does not say it.
            for block, text in zip(results, texts, strict=True):
                if block.type == "tool_result" and leaf not in text:
                    yield "words", leaf
            if leaf in said and all(leaf in text for text in texts):
                yield "repeat", leaf


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [inner.text for inner in content or () if inner.text]


def _has_result(line: Line) -> bool:
    content = line.message.content if line.message is not None else None
    return isinstance(content, list) and any(block.type == "tool_result" for block in content)


def _content(content: Any) -> Iterator[tuple[str, str]]:
    if isinstance(content, str):
        yield "words", content
        return
    for block in cast("list[Any]", content) if isinstance(content, list) else ():
        if isinstance(block, dict):
            yield from _block(cast("dict[str, Any]", block))


def _block(block: dict[str, Any]) -> Iterator[tuple[str, str]]:
    kind = block.get("type")
    for name, value in block.items():
        if name in ("type", "id", "name", "tool_use_id", "is_error", "cache_control"):
            continue
        if (kind, name) in (("text", "text"), ("thinking", "thinking")):
            yield from _as("words", value)
        elif kind in ("tool_use", "server_tool_use") and name == "input":
            yield from _words(value)
        elif kind == "tool_result" and name == "content":
            yield from _result(value)
        elif (
            kind in _PICTURES
            or (kind, name) == ("thinking", "signature")
            or kind == "redacted_thinking"
        ):
            yield from _as("base64", value)
        else:
            yield from _as("state", value)


def _result(content: Any) -> Iterator[tuple[str, str]]:
    if isinstance(content, str):
        yield "words", content
        return
    for inner in cast("list[Any]", content) if isinstance(content, list) else ():
        if not isinstance(inner, dict):
            continue
        block = cast("dict[str, Any]", inner)
        picture = block.get("type") in _PICTURES
        for name, value in block.items():
            if name == "text":
                yield from _as("words", value)
            elif name != "type":
                yield from _as("base64" if picture else "state", value)


def _words(value: Any) -> Iterator[tuple[str, str]]:
    return (("data" if is_binary(leaf) else "words", leaf) for leaf in _strings(value))


def _as(reason: str, value: Any) -> Iterator[tuple[str, str]]:
    return ((reason, leaf) for leaf in _strings(value))


def _strings(value: Any) -> Iterator[str]:
    """Yield the strings in a value, in any order."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            stack.extend(cast("dict[str, Any]", item).values())
        elif isinstance(item, list):
            stack.extend(cast("list[Any]", item))
