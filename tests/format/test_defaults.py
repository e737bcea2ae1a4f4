"""What is not there reads as nothing: no field, block or small file makes up a value."""

import importlib
import pkgutil
from typing import Any

import msgspec
import pytest

import steno.format
from steno.format import message, sidecars
from steno.format.client_settings import MASK, Settings, read_settings
from steno.format.lenient_json import decode_lenient
from steno.format.salvage import find_flaws
from steno.format.source import Span


def structs() -> list[type[msgspec.Struct]]:
    """Return every struct that the package defines."""
    found: dict[str, type[msgspec.Struct]] = {}
    for module in pkgutil.walk_packages(steno.format.__path__, "steno.format."):
        for value in vars(importlib.import_module(module.name)).values():
            is_struct = isinstance(value, type) and issubclass(value, msgspec.Struct)
            if is_struct and value.__module__ == module.name:
                found[f"{module.name}.{value.__qualname__}"] = value
    return [found[name] for name in sorted(found)]


# Read bit by bit, as they are asked for.
FILLED_LATER = {"Record", "Envelope", "RecordFields", "_StrictEnvelope", "_LenientEnvelope", "DialectRecord"}


@pytest.mark.parametrize("kind", structs(), ids=lambda kind: kind.__qualname__)
def test_what_was_read_cannot_be_changed(kind: type[msgspec.Struct]) -> None:
    assert kind.__struct_config__.frozen == (kind.__name__ not in FILLED_LATER)


READERS = [
    sidecars.read_agent_meta,
    sidecars.read_custom_title,
    sidecars.read_task,
    sidecars.read_live_process,
    sidecars.read_sessions_index,
]


@pytest.mark.parametrize("reader", READERS)
def test_a_small_file_that_says_nothing_reads_as_nothing(reader: Any) -> None:
    value, damage = reader(b"{}")
    assert damage == ()
    assert not any(msgspec.structs.astuple(value))


@pytest.mark.parametrize("kind", [sidecars.TodoItem, sidecars.HistoryEntry, sidecars.Paste, sidecars.IndexEntry])
def test_an_entry_that_says_nothing_reads_as_nothing(kind: type[msgspec.Struct]) -> None:
    assert not any(msgspec.structs.astuple(kind()))


def test_a_shape_that_is_odd_is_named_with_its_field_and_its_place() -> None:
    entries, damage = sidecars.read_history(b'{"display":"a"}\n\n{"display":5,"timestamp":"x"}\n[]\n5x')
    assert [entry.display for entry in entries] == ["a", ""]
    assert [(note.id, note.span, note.message) for note in damage] == [
        ("sidecar.shape", Span(17, 29), "unexpected display"),
        ("sidecar.shape", Span(17, 29), "unexpected timestamp"),
        ("sidecar.not-object", Span(47, 2), "JSON, but not an object"),
        ("sidecar.not-json", Span(50, 2), "not JSON"),
    ]
    items, damage = sidecars.read_todos(b'[{"content":"a"}, 5, {"content":6}]')
    assert [item.content for item in items] == ["a", ""]
    assert [note.message for note in damage] == ["unexpected todo", "unexpected content"]
    nothing, (note,) = sidecars.read_todos(b"{}")
    assert (nothing, note.message) == ((), "JSON, but not a list")
    (entry,), damage = sidecars.read_history(b'{"pastedContents":{"1":{"id":1},"2":7}}')
    assert [paste.id for paste in entry.pasted_contents] == [1]
    assert [note.message for note in damage] == ["unexpected pastedContents"]
    (entry,), damage = sidecars.read_history(b'{"pastedContents":[]}')
    assert (entry.pasted_contents, len(damage)) == ((), 1)


@pytest.mark.parametrize(
    ("raw", "number"),
    [
        (b"5", 5),
        (b"-5", -5),
        (b"5.9", 5),
        (b"9223372036854775807", 2**63 - 1),
        (b"9223372036854775808", 0),
        (b"-9223372036854775808", 0),
        (b"true", 0),
        (b'"5"', 0),
        (b"[5]", 0),
    ],
)
def test_a_number_is_one_that_fits(raw: bytes, number: int) -> None:
    value, damage = sidecars.read_live_process(b'{"pid":' + raw + b"}")
    assert value is not None
    assert (value.pid, bool(damage)) == (number, number == 0)


def test_lists_of_words_are_all_words_or_none() -> None:
    for raw, words in ((b'["a","b"]', ("a", "b")), (b'["a",5]', ()), (b'"a"', ()), (b"[]", ())):
        value, damage = sidecars.read_task(b'{"blocks":' + raw + b"}")
        assert value is not None
        assert (value.blocks, bool(damage)) == (words, raw not in (b'["a","b"]', b"[]"))


def test_the_older_name_of_a_session_counts_where_the_newer_is_missing() -> None:
    def named(raw: bytes) -> str:
        value, _ = sidecars.read_live_process(raw)
        return value.session_id if value else "?"

    assert named(b'{"session_id":"old"}') == "old"
    assert named(b'{"session_id":"old","sessionId":"new"}') == "new"
    assert named(b'{"session_id":5}') == ""
    assert named(b"[]") == "?"


def test_bytes_that_are_not_utf8_are_named_by_their_place() -> None:
    value, (note,) = sidecars.read_text(b"ab\xff\xfec")
    assert value == "ab��c"
    assert (note.id, note.span) == ("line.utf8", Span(2, 1))
    assert sidecars.read_text("ü".encode()) == ("ü", ())


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("0123456789abcdef@v1", ("0123456789abcdef", 1)),
        ("0123456789abcdef@v123456789", ("0123456789abcdef", 123456789)),
        ("0123456789abcdef@v1234567890", None),
        ("0123456789abcde@v1", None),
        ("0123456789abcdefa@v1", None),
        ("0123456789ABCDEF@v1", None),
        ("0123456789abcdef@v", None),
        ("x0123456789abcdef@v1", None),
        ("0123456789abcdef@v1x", None),
    ],
)
def test_a_backup_is_known_by_its_name(name: str, found: tuple[str, int] | None) -> None:
    backup = sidecars.parse_backup_name(name)
    assert (backup and (backup.digest, backup.version)) == found


def test_usage_that_says_nothing_counts_nothing() -> None:
    usage = message.Usage()
    assert usage.counts == (0, 0, 0, 0, 0)
    assert (usage.cache_1h, usage.cache_5m, usage.context, usage.service_tier) == (0, 0, 0, None)
    assert message.CacheCreation().ephemeral_1h_input_tokens == 0
    assert message.CacheCreation().ephemeral_5m_input_tokens == 0
    tiers = message.CacheCreation(ephemeral_5m_input_tokens=3, ephemeral_1h_input_tokens=4)
    whole = message.Usage(1, 100, 5, tiers, 2)
    assert whole.counts == (1, 2, 3, 4, 5)
    assert whole.context == 106
    assert message.Usage(1, 100, 5, None, 2).counts == (1, 2, 100, 0, 5)
    assert message.Usage(-1, -2, -3, None, -4).counts == (0, 0, 0, 0, 0)
    assert message.Usage(-1, 7, 3, None, 4).counts == (0, 4, 7, 0, 3)


def read(content: str) -> tuple[message.Block, ...]:
    return message.decode_blocks(content.encode())


def test_blocks_without_their_fields_are_empty() -> None:
    call, result, image, document, reference, text, thinking = read(
        '[{"type":"tool_use"},{"type":"tool_result"},{"type":"image"},{"type":"document"},'
        '{"type":"tool_reference"},{"type":"text"},{"type":"thinking"}]'
    )
    assert isinstance(call, message.ToolUse)
    assert (call.id, call.name, call.input, call.input) == ("", "", {}, {})
    assert isinstance(result, message.ToolResult)
    assert (result.tool_use_id, result.blocks, result.text, result.is_error) == ("", (), "", None)
    assert isinstance(image, message.Image)
    assert (image.source, image.media_type) == ({}, "")
    assert isinstance(document, message.Document)
    assert document.title is None
    assert isinstance(reference, message.ToolReference)
    assert reference.tool_name == ""
    assert isinstance(text, message.Text)
    assert text.text == ""
    assert isinstance(thinking, message.Thinking)
    assert not any(msgspec.structs.astuple(thinking))


def test_hidden_thinking_without_its_data_is_empty() -> None:
    (block,) = read('[{"type":"redacted_thinking"}]')
    assert block == message.RedactedThinking("")


def test_what_a_block_holds_is_read_once() -> None:
    (call,) = read('[{"type":"tool_use","input":{"a":1}}]')
    assert isinstance(call, message.ToolUse)
    assert call.input == {"a": 1}
    assert call.input is call.input
    (result,) = read('[{"type":"tool_result","content":["x",{"type":"text","text":"y"},5]}]')
    assert isinstance(result, message.ToolResult)
    assert result.blocks is result.blocks
    assert result.text == "x\ny"
    assert result.blocks[2] == message.UnknownBlock("", {"value": 5})
    for odd in ("[1]", '"x"', "5"):
        (call,) = read('[{"type":"tool_use","input":' + odd + "}]")
        assert isinstance(call, message.ToolUse)
        assert call.input == {}


def test_content_of_every_shape_is_blocks() -> None:
    assert read('"x"') == (message.Text("x"),)
    assert read("null") == ()
    assert read("[]") == ()
    assert read("5") == (message.UnknownBlock("", {"value": 5}),)
    odd = {"type": "text", "text": 5}
    assert read('{"type":"text","text":5}') == (message.UnknownBlock("text", odd),)
    assert read('[{"text":"x"}]') == (message.UnknownBlock("", {"text": "x"}),)
    assert message.read_blocks(None) == ()
    assert message.read_blocks("x") == (message.Text("x"),)


def test_settings_show_what_is_set_and_mask_what_is_secret() -> None:
    raw = b"""{"model":"m","permissions":{"allow":["a",5],"ask":["b"],"deny":["c"]},
      "env":{"PLAIN":"value","ON":true},"apiKeyHelper":"run","nested":[{"token":"t","n":null}],
      "hooks":{"Stop":[{"matcher":"x","hooks":[{"command":"go"},{"command":5}]}, 7], "Odd": 5}}"""
    value, damage = read_settings(raw)
    assert damage == ()
    assert value is not None
    assert (value.model, value.allow, value.ask, value.deny) == ("m", ("a",), ("b",), ("c",))
    assert value.env_names == ("PLAIN", "ON")
    hooks = [(hook.event, hook.matcher, hook.command) for hook in value.hooks]
    assert hooks == [("Stop", "x", "go"), ("Stop", "x", "")]
    shown = msgspec.json.decode(value.masked)
    assert shown["env"] == {"PLAIN": MASK, "ON": True}
    assert shown["nested"] == [{"token": MASK, "n": None}]
    assert shown["permissions"]["allow"] == ["a", 5]
    assert shown["model"] == "m"
    for bad, name, words in (
        (b"[]", "sidecar.not-object", "JSON, but not an object"),
        (b"{", "sidecar.not-json", "not JSON"),
    ):
        nothing, (note,) = read_settings(bad)
        assert nothing is None
        assert (note.id, note.span, note.message) == (name, Span(0, len(bad)), words)
    assert msgspec.structs.astuple(Settings()) == ("", (), (), (), (), (), "{}")
    empty, _ = read_settings(b"{}")
    assert empty is not None
    assert (empty.model, empty.allow, empty.hooks, empty.env_names) == ("", (), (), ())


def noted(line: bytes, offset: int = 100) -> list[tuple[str, int, int, str]]:
    return [(note.id, note.span.offset - offset, note.span.length, note.message) for note in find_flaws(line, offset)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"a":"\\ud83d\\ude00"}', []),
        (b'{"a":"\\ud83d"}', [("line.surrogate", 6, 6, "\\ud83d")]),
        (b'{"ab":"x\\uDE00"}', [("line.surrogate", 8, 6, "\\uDE00")]),
        (b'{"a":"\\\\ud83d"}', []),
        (b'{"a":"\\\\\\ud83d"}', [("line.surrogate", 8, 6, "\\ud83d")]),
        (b'{"a":"x\xff"}', [("line.utf8", 7, 1, "invalid start byte")]),
        (b'{"a":"x\xe2\x82"}', [("line.utf8", 7, 2, "invalid continuation byte")]),
        (b'{"a":1,"b":2,"a":3}', [("line.duplicate-key", 0, 19, "a")]),
        (b'{"x":{"b":1,"b":2},"a":1,"a":2}', [("line.duplicate-key", 0, 31, "b")]),
        (b'{"a":9007199254740992}', []),
        (b'{"a":-9007199254740992}', []),
        (b'{"a":9007199254740993}', [("line.bigint", 0, 22, "9007199254740993")]),
        (b'{"a":-9007199254740993}', [("line.bigint", 0, 23, "-9007199254740993")]),
        (b'{"a":' + b"7" * 30 + b"}", [("line.bigint", 0, 36, "7" * 24)]),
        (b'{"a":' + b"7" * 30 + b',"b":' + b"8" * 30 + b"}", [("line.bigint", 0, 71, "7" * 24)]),
        (b'{"a":' + b"[" * 256 + b"]" * 256 + b"}", [("line.depth", 0, 518, "257 levels")]),
        (b'{"a":' + b"[" * 255 + b"]" * 255 + b"}", []),
        (b'{"a":NaN}', []),
        (b"{", []),
    ],
)
def test_what_is_odd_inside_of_a_line_is_named_to_the_byte(
    line: bytes, expected: list[tuple[str, int, int, str]]
) -> None:
    assert noted(line) == expected


def test_values_that_strict_json_does_not_have_are_made_harmless() -> None:
    assert decode_lenient(b'{"a":NaN,"b":-Infinity}') == {"a": None, "b": None}
    assert decode_lenient(b'{"\\ud800":["\\ud800x",{"k":"\\udfff"}]}') == {"\ufffd": ["\ufffdx", {"k": "\ufffd"}]}
    # What is refused for another reason is decoded by another decoder, with a bound of its own.
    for digits, number in ((3999, int("7" * 3999)), (4000, float("7" * 4000))):
        assert decode_lenient(b'{"n":NaN,"a":' + b"7" * digits + b"}") == {"n": None, "a": number}
    assert decode_lenient(b" \t\0{}\0\n") == {}
    assert decode_lenient("\ufeff{}".encode()) == {}
    assert decode_lenient(b'{"a":"x\xffy"}') == {"a": "x\ufffdy"}
    assert decode_lenient(b'{"a":true,"b":null,"c":1.5,"d":"x"}') == {"a": True, "b": None, "c": 1.5, "d": "x"}
    assert decode_lenient(b"{") is None
    for depth, read in ((512, True), (513, False)):
        assert (decode_lenient(b"[" * depth + b"]" * depth) is not None) == read, depth
