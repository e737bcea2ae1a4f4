"""Records of every dialect: which it is taken for, who speaks, its kind and its blocks."""

from collections.abc import Iterator
from itertools import product
from typing import Any, Final

from steno.format.encode import encode_line
from steno.format.lines import read_bytes
from steno.format.records import Record

__all__ = ["answers"]

_TYPES: Final = (
    *("user", "assistant", "system", "human", "tool_result", "compact_prelude", "compact_recap"),
    *("compact_system", "other", None),
)
_SUBTYPES: Final = (None, "tool_result", "tool_use", "thinking", "x")
_MESSAGES: Final[tuple[Any, ...]] = (None, "", "words", {"role": "user", "content": "said"}, 5)
_BLOCKS: Final[tuple[Any, ...]] = (
    "x",
    [],
    None,
    5,
    {"type": "text", "text": "x"},
    ["x", 5, None, {"type": "text", "text": "y"}],
    [{"type": "text", "text": 5}, {"type": "unheard", "a": 1}, {"a": 1}],
    [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, {"type": "thinking"}],
    [{"type": "thinking", "thinking": "t"}, {"type": "thinking", "thinking": "u"}],
    [{"type": "redacted_thinking", "data": "d"}, {"type": "text", "text": "x"}],
    [{"type": "text", "text": "x"}, {"type": "thinking", "thinking": "t"}],
    [{"type": "server_tool_use", "id": "c", "name": "n", "input": {"a": 1}}],
    [{"type": "tool_use", "id": "c", "name": "n", "input": {"a": 1}}],
    [{"type": "tool_result", "tool_use_id": "c", "content": "x", "is_error": True}],
    [{"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "x"}] * 2}],
    [{"type": "tool_result", "tool_use_id": "c"}],
    [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "x"}}],
    [{"type": "document", "title": "t", "source": "odd"}, {"type": "image"}],
    [{"type": "tool_reference", "tool_name": "n"}],
)


def _record(**fields: Any) -> Record:
    said = {name: value for name, value in fields.items() if value is not None}
    (record,) = read_bytes(encode_line(said))
    assert isinstance(record, Record)
    return record


def _told(record: Record) -> str:
    blocks = [_block(block) for block in record.blocks]
    return f"{record.dialect} {record.role or '-'} {record.kind} {record.text!r} {blocks}"


def _block(block: Any) -> str:
    """Return a block by its kind and what is in it."""
    parts = {name: getattr(block, name) for name in block.__struct_fields__}
    more = {name: getattr(block, name) for name in _MORE if hasattr(block, name)}
    kept = {name: value for name, value in parts.items() if not name.startswith("raw_")}
    return f"{type(block).__name__} {kept | more}"


_MORE: Final = ("text", "media_type", "source", "input")


def answers() -> Iterator[tuple[str, str]]:
    """Yield each record, and what it is taken for."""
    for kind, subtype in product(_TYPES, _SUBTYPES):
        told = [
            _told(_record(type=kind, subtype=subtype, uuid="u", parentUuid="p", message=message))
            for message in _MESSAGES
        ]
        yield f"{kind}, {subtype}", "\n    ".join(told)
    for kind, time, message in product(
        ("user", "assistant", "other"), ("2026-11-15", 5, 5.5), (None, "words", {"content": "said"})
    ):
        record = _record(type=kind, timestamp=time, message=message)
        yield f"{kind} at {time!r} with {message!r}", _told(record)
    for arguments in (None, {}, {"a": 1}, "x"):
        record = _record(type="assistant", subtype="tool_use", uuid="u", toolName="n", toolArguments=arguments)
        yield f"arguments {arguments!r}", _told(record)
    for content in ("x", [{"type": "text", "text": "x"}], 5, None):
        yield f"content {content!r}", _told(_record(type="human", content=content))
        both = _record(type="human", message="words", content=content)
        yield f"content {content!r} and words", _told(both)
    yield from _kinds()


def _kinds() -> Iterator[tuple[str, str]]:
    """Yield records by what tells their kinds apart."""
    for kind, blocks in product(("user", "assistant"), _BLOCKS):
        record = _record(type=kind, message={"content": blocks})
        yield f"{kind} of {blocks!r}", f"{_told(record)} {record.thinking!r}"
    for field in ("isMeta", "isCompactSummary", "isApiErrorMessage", "isSidechain"):
        for kind in ("user", "assistant"):
            record = _record(type=kind, message={"content": "x"}, **{field: True})
            yield f"{kind} that {field}", f"{record.kind} {record.is_sidechain}"
    for kind, field in (("attachment", "attachment"), ("progress", "data"), ("other", "data")):
        for inner in (None, {"type": "x/y"}, {"type": 5}, {}, "x", []):
            yield f"{kind} of {inner!r}", _record(type=kind, **{field: inner}).kind
    for kind in ("queue-operation", "mode"):
        for operation in (None, "", "enqueue"):
            yield f"{kind} {operation!r}", _record(type=kind, operation=operation).kind
