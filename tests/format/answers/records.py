"""Records and blocks of every shape: what each says, and when."""

import json
from collections.abc import Iterator
from typing import Any, Final

from steno.format.lenient_json import as_list, as_object, describe_value
from steno.format.lines import read_bytes
from steno.format.message import (
    Block,
    Document,
    Image,
    RedactedThinking,
    ServerToolUse,
    Text,
    Thinking,
    ToolReference,
    ToolResult,
    ToolUse,
    UnknownBlock,
    decode_blocks,
    read_blocks,
)
from steno.format.record_views import View, input_view, result_view, view_of
from steno.format.records import Gap, Record, read_time

__all__ = ["answers"]

_BLOCKS: Final[dict[str, Any]] = {
    "text": {"type": "text", "text": "x"},
    "text null": {"type": "text", "text": None},
    "text missing": {"type": "text"},
    "thinking": {"type": "thinking", "thinking": "x", "signature": "s"},
    "thinking unsigned": {"type": "thinking", "thinking": "x"},
    "redacted": {"type": "redacted_thinking", "data": "x"},
    "call": {"type": "tool_use", "id": "a", "name": "n", "input": {"x": 1}},
    "call without input": {"type": "tool_use", "id": "a", "name": "n"},
    "call input a list": {"type": "tool_use", "id": "a", "name": "n", "input": [1]},
    "call id a number": {"type": "tool_use", "id": 5, "name": "n", "input": {}},
    "server call": {"type": "server_tool_use", "id": "a", "name": "n", "input": {"x": 1}},
    "result": {"type": "tool_result", "tool_use_id": "a", "content": "x"},
    "result of blocks": {
        "type": "tool_result",
        "tool_use_id": "a",
        "content": [{"type": "text", "text": "x"}, {"type": "image"}, {"type": "text", "text": "y"}],
    },
    "result empty": {"type": "tool_result", "tool_use_id": "a", "is_error": True},
    "result error a text": {"type": "tool_result", "tool_use_id": "a", "is_error": "yes"},
    "image": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "x"}},
    "image source a text": {"type": "image", "source": "x"},
    "image without source": {"type": "image"},
    "document": {"type": "document", "source": {"media_type": "application/pdf"}, "title": "t"},
    "reference": {"type": "tool_reference", "tool_name": "n"},
    "unknown": {"type": "zzz", "x": [1]},
    "no type": {"x": 1},
    "type a number": {"type": 5},
    "a text": "x",
    "a number": 5,
    "null": None,
    "a list": [1],
}
_RECORDS: Final[dict[str, Any]] = {
    "words": {"type": "user", "message": {"role": "user", "content": "x"}},
    "blocks": {
        "type": "assistant",
        "message": {
            "id": "m",
            "model": "o",
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "t"},
                {"type": "text", "text": "x"},
                {"type": "thinking", "thinking": "u"},
                {"type": "text", "text": "y"},
                {"type": "tool_use", "id": "a", "name": "n", "input": {}},
            ],
            "usage": {"input_tokens": 1, "output_tokens": 2},
        },
    },
    "result": {
        "type": "user",
        "message": {"content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]},
        "toolUseResult": {"stdout": "x"},
        "isSidechain": True,
    },
    "result a text": {"type": "user", "message": {"content": "x"}, "toolUseResult": "Error"},
    "unknown block": {"type": "user", "message": {"content": [{"type": "zzz"}], "id": 5}},
    "odd usage": {"type": "assistant", "message": {"usage": {"input_tokens": "x"}, "content": [5]}},
    "content null": {"type": "user", "message": {"content": None}},
    "content an object": {"type": "user", "message": {"content": {"type": "text", "text": "x"}}},
    "message null": {"type": "user", "message": None},
    "message a list": {"type": "user", "message": [1]},
    "message a text": {"type": "user", "message": "x"},
    "answer a text": {"type": "assistant", "message": "x"},
    "answer a call": {
        "type": "assistant",
        "subtype": "tool_use",
        "uuid": "u",
        "message": "x",
        "toolName": "n",
        "toolArguments": {"a": 1},
    },
    "answer a call without words": {"type": "assistant", "subtype": "tool_use", "toolName": 5},
    "answer a thought": {"type": "assistant", "subtype": "thinking", "message": "x"},
    "answer of a subtype": {"type": "assistant", "subtype": "zzz", "message": "x"},
    "a result of the system": {"type": "system", "subtype": "tool_result", "parentUuid": "p", "message": "x"},
    "a result of the system, empty": {"type": "system", "subtype": "tool_result"},
    "a result of the system, an object": {"type": "system", "subtype": "tool_result", "message": {"a": 1}},
    "compact system": {"type": "compact_system", "message": "x"},
    "compact system, content": {"type": "compact_system", "content": "x"},
    "human": {"type": "human", "message": {"content": "x"}, "timestamp": 1763184000000},
    "human, content": {"type": "human", "content": "x"},
    "human, content a list": {"type": "human", "content": ["x"]},
    "a result of its own": {"type": "tool_result", "content": "x"},
    "prelude": {"type": "compact_prelude", "content": "x"},
    "recap": {"type": "compact_recap", "message": "x"},
    "a number for a time": {"type": "assistant", "message": {"content": "x"}, "timestamp": 5},
    "a number for a time, no message": {"type": "system", "timestamp": 5},
    "system": {"type": "system", "subtype": "turn_duration", "durationMs": 5},
    "system without subtype": {"type": "system"},
    "a title": {"type": "summary", "summary": "x"},
    "nothing": {},
    "type a number": {"type": 5},
}
_TIMES: Final[tuple[Any, ...]] = (
    None,
    "2026-11-15T06:00:01.000Z",
    "2026-11-15T06:00:01.000+01:00",
    "2026-11-15T06:00:01",
    "2026-11-15",
    "yesterday",
    "",
    "0001-01-02T23:59:59Z",
    "0001-01-03T00:00:00Z",
    "0001-01-03T00:00:01Z",
    "9999-12-29T23:59:59Z",
    "9999-12-30T00:00:00Z",
    "9999-12-31T00:00:00+23:00",
    0,
    1,
    -1,
    1763184000,
    1763184000000,
    1763184000.5,
    1e11,
    1e11 + 1,
    -1e11 - 1,
    1e300,
    float("inf"),
    float("nan"),
)


def _block(block: Block) -> str:
    match block:
        case Text():
            said: Any = block.text
        case Thinking():
            said = (block.thinking, block.signature)
        case RedactedThinking():
            said = block.data
        case ToolUse() | ServerToolUse():
            assert block.input is block.input
            said = (block.id, block.name, block.input)
        case ToolResult():
            assert block.blocks is block.blocks
            inner = [_block(each) for each in block.blocks]
            said = (block.tool_use_id, block.is_error, block.text, inner)
        case Document():
            said = (block.source, block.media_type, block.title)
        case Image():
            said = (block.source, block.media_type)
        case ToolReference():
            said = block.tool_name
        case UnknownBlock():
            said = block.fields
    return f"{type(block).__name__} {block.type} {said!r}"


def _record(fields: Any) -> str:
    line = json.dumps(fields).encode()
    (record,) = read_bytes(line)
    if isinstance(record, Gap):
        return f"a gap: {record.damage}"
    return _said(record)


def _view(view: Any) -> str:
    """Return a view with the fields that it has."""
    if not isinstance(view, View):
        return repr(view)
    fields = {name: getattr(view, name) for name in view.__struct_fields__}
    said = {name: _inner(value) for name, value in fields.items() if value is not None}
    return f"{type(view).__name__} {said}"


def _inner(value: Any) -> Any:
    return [_view(each) for each in value] if isinstance(value, list) else value


def _said(record: Record) -> str:
    head = f"{record.kind} {record.dialect} role {record.role!r} {record!r}"
    body = f"text {record.text!r} thinking {record.thinking!r}"
    calls = f"{[each.id for each in record.tool_uses]} {[each.tool_use_id for each in record.tool_results]}"
    message = record.message
    named = (message.id, message.model, message.role, message.stop_reason) if message else None
    more = f"message {named} usage {record.usage} kept {record.tool_use_result!r}"
    blocks = [_block(each) for each in record.blocks]
    place = (record.type, record.subtype, record.uuid, record.parent_uuid, record.is_sidechain)
    return "\n    ".join((head, body, calls, more, str(blocks), f"{place} {record.time} {_view(record.view)}"))


def answers() -> Iterator[tuple[str, str]]:
    """Yield each record, block, time and view, and what is read from it."""
    for name, block in _BLOCKS.items():
        raw = json.dumps([block]).encode()
        strict, late = decode_blocks(raw), read_blocks([block])
        assert list(map(_block, strict)) == list(map(_block, late))
        alone = [_block(each) for each in decode_blocks(json.dumps(block).encode())]
        yield f"block {name}", f"{[_block(each) for each in strict]} alone {alone}"
    for name, fields in _RECORDS.items():
        yield f"record {name}", _record(fields)
    for time in _TIMES:
        yield f"time {time!r}", str(read_time(time))
    for value in ("x", "y" * 61, 5, None, True, [], {}, 1.5):
        yield (f"shown {value!r}"[:30], f"{describe_value(value)} {as_list(value)} {as_object(value)}")
    for name, raw in _VIEWS.items():
        yield f"view {name}", _view(view_of(name.partition(",")[0], raw))
    for name, (tool, raw) in _RESULTS.items():
        yield f"result {name}", _view(result_view(tool, raw))
    for name, (tool, raw) in _INPUTS.items():
        yield f"input {name}", _view(input_view(tool, raw))


_VIEWS: Final[dict[str, bytes]] = {
    "system/turn_duration": b'{"type":"system","durationMs":5,"messageCount":2}',
    "system/turn_duration, odd": b'{"type":"system","durationMs":"x","messageCount":2}',
    "attachment/hook_success": b'{"type":"attachment","attachment":{"type":"hook_success","exitCode":1},"rendered":[{"content":"x"}]}',
    "attachment/hook_success, odd": b'{"type":"attachment","attachment":{"exitCode":"x","command":"c"}}',
    "attachment/hook_success, no object": b'{"type":"attachment","attachment":[1],"uuid":"u"}',
    "attachment/zzz": b'{"type":"attachment","attachment":{"a":1},"b":2,"uuid":"u"}',
    "progress/hook_progress": b'{"type":"progress","data":{"type":"hook_progress","hookName":"n"}}',
    "zzz": b'{"type":"zzz","a":1,"uuid":"u"}',
    "zzz, a list": b"[1]",
    "summary": b'{"type":"summary","summary":"x","leafUuid":"l"}',
    "summary, odd": b'{"type":"summary","summary":5,"leafUuid":"l\\ud83d"}',
}
_RESULTS: Final[dict[str, tuple[str, bytes]]] = {
    "of Bash": ("Bash", b'{"stdout":"x","interrupted":false}'),
    "of Bash, odd": ("Bash", b' {"stdout":5,"stderr":"y"}'),
    "of Bash, a text": ("Bash", b'"Error"'),
    "of Bash, a list": ("Bash", b"[1]"),
    "of Bash, a number": ("Bash", b"5"),
    "of nobody": ("Zzz", b'{"a":1}'),
    "of Edit": ("Edit", b'{"filePath":"/a","structuredPatch":[{"oldStart":1,"lines":["x"]}]}'),
    "of Edit, odd inside": ("Edit", b'{"filePath":"/a","structuredPatch":[{"oldStart":"x","lines":["x"]}]}'),
    "of Edit, odder": ("Edit", b'{"filePath":"/a","structuredPatch":[5]}'),
}
_INPUTS: Final[dict[str, tuple[str, bytes]]] = {
    "of Edit": ("Edit", b'{"file_path":"/a","old_string":"x","new_string":"y"}'),
    "of Edit, odd": ("Edit", b'{"file_path":5,"old_string":"x"}'),
    "of nobody": ("Zzz", b'{"a":1}'),
    "of nobody, a list": ("Zzz", b"[1]"),
    "of TodoWrite, odd": ("TodoWrite", b'{"todos":[{"content":"x","status":5}]}'),
}
