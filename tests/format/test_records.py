"""A record's views: what is in the bytes, typed, and never an exception."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from tests.builders import image, png, session, text, thinking, tool

from steno.format.lines import read_bytes
from steno.format.message import Image, Text, Thinking, ToolResult, ToolUse, UnknownBlock
from steno.format.records import Record, read_time


def records(data: bytes) -> list[Record]:
    return [piece for piece in read_bytes(data) if isinstance(piece, Record)]


def one(line: str) -> Record:
    (record,) = records(line.encode())
    return record


def test_the_envelope_is_read() -> None:
    record = records(session(version="2.1.42").user("hello").bytes())[0]
    assert record.type == record.role == "user"
    assert record.kind == "user/prompt"
    assert record.text == "hello"
    assert record.uuid
    assert record.parent_uuid is None
    assert record.envelope.version == "2.1.42"
    assert record.time is not None
    assert not record.is_sidechain


def test_blocks_are_typed() -> None:
    built = (
        session()
        .user([text("see"), image(png([[(0, 0, 0)]]))])
        .assistant(thinking("hm"), text("I look"), tool("Read", file_path="/a.py"))
    )
    built.result("line one", error=True)
    kinds = [type(block) for record in records(built.bytes()) for block in record.blocks]
    assert kinds == [Text, Image, Thinking, Text, ToolUse, ToolResult]


def test_tool_calls_and_results_open_up() -> None:
    built = session().user("go").assistant(tool("Grep", pattern="x", path="/p")).result("a\nb")
    _, call, result = [record for record in records(built.bytes()) if record.role][:3]
    (use,) = call.tool_uses
    assert use.name == "Grep"
    assert use.input["pattern"] == "x"
    (answer,) = result.tool_results
    assert answer.tool_use_id == use.id
    assert answer.text == "a\nb"
    assert result.kind == "user/tool_result"


def test_unknown_blocks_and_fields_are_kept() -> None:
    record = one('{"type":"assistant","new":1,"message":{"content":[{"type":"zzz","deep":[1]}]}}')
    (block,) = record.blocks
    assert isinstance(block, UnknownBlock)
    assert block.fields == {"type": "zzz", "deep": [1]}
    assert record.fields["new"] == 1


def test_a_field_of_the_wrong_type_costs_only_itself() -> None:
    record = one('{"type":"user","uuid":7,"sessionId":"s","message":{"content":5,"id":"m"}}')
    assert record.uuid is None
    assert record.session_id == "s"
    assert record.message is not None
    assert record.message.id == "m"
    assert record.text == ""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"type":"system","subtype":"turn_duration"}', "system/turn_duration"),
        ('{"type":"attachment","attachment":{"type":"date"}}', "attachment/date"),
        ('{"type":"attachment","attachment":5}', "attachment"),
        ('{"type":"progress","data":{"type":"bash_progress"}}', "progress/bash_progress"),
        ('{"type":"queue-operation","operation":"enqueue"}', "queue-operation/enqueue"),
        ('{"type":"user","isMeta":true,"message":{"content":"x"}}', "user/meta"),
        ('{"type":"user","isCompactSummary":true,"message":{"content":"x"}}', "user/compact_summary"),
        ('{"type":"assistant","isApiErrorMessage":true,"message":{}}', "assistant/api_error"),
        ('{"type":"next-years-type"}', "next-years-type"),
        ("{}", "untyped"),
    ],
)
def test_kinds_are_named_as_the_catalogue_names_them(line: str, expected: str) -> None:
    assert one(line).kind == expected


def test_usage_knows_both_cache_tiers() -> None:
    record = one(
        '{"type":"assistant","message":{"usage":{"input_tokens":3,"output_tokens":9,'
        '"cache_creation_input_tokens":12,"cache_read_input_tokens":10,'
        '"cache_creation":{"ephemeral_5m_input_tokens":2,"ephemeral_1h_input_tokens":10}}}}'
    )
    usage = record.usage
    assert usage is not None
    assert (usage.cache_5m, usage.cache_1h, usage.context) == (2, 10, 25)


def test_times_are_read_in_every_form() -> None:
    moment = datetime(2026, 11, 15, 5, 0, 1, tzinfo=UTC)
    assert read_time("2026-11-15T05:00:01.000Z") == moment
    assert read_time("2026-11-15T06:00:01+01:00") == moment
    assert read_time("2026-11-15T05:00:01") == moment
    assert read_time(moment.timestamp() * 1000) == moment
    assert read_time(moment.timestamp()) == moment
    for nonsense in ("yesterday", "", None, 1e300, float("nan")):
        assert read_time(nonsense) is None


def test_a_tool_use_result_is_an_object_a_string_or_a_list() -> None:
    assert one('{"type":"user","toolUseResult":{"stdout":"x"}}').tool_use_result == {"stdout": "x"}
    assert one('{"type":"user","toolUseResult":"Error: x"}').tool_use_result == "Error: x"
    assert one('{"type":"user","toolUseResult":[1]}').tool_use_result == [1]
    assert one('{"type":"user"}').tool_use_result is None


@pytest.mark.parametrize(
    ("content", "expected"),
    [('"hi"', "hi"), ('[{"type":"text","text":"hi"}]', (Text("hi"),)), ("null", None), ("[]", ())],
)
def test_content_is_the_same_on_both_ways_of_reading(content: str, expected: object) -> None:
    """A field of the wrong type sends the message down the tolerant way."""
    for role in ('"user"', "5"):
        message = one(f'{{"type":"user","message":{{"role":{role},"content":{content}}}}}').message
        assert message is not None
        assert message.content == expected


def test_content_may_hold_blocks_of_unknown_types_beside_known_ones() -> None:
    message = one('{"type":"user","message":{"content":[{"type":"zzz"},"hi"]}}').message
    assert message is not None
    assert message.content == (UnknownBlock("zzz", {"type": "zzz"}), Text("hi"))
    assert message.blocks == message.content


@pytest.mark.parametrize(
    "stamp",
    [
        "0001-01-01T00:00:00+14:00",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59-14:00",
        "9999-12-31T23:59:59.999Z",
        -62_135_596_800,
        253_402_300_799_000,
        float("inf"),
        float("nan"),
    ],
)
def test_a_moment_that_some_zone_cannot_tell_is_none(stamp: str | float) -> None:
    assert read_time(stamp) is None


@pytest.mark.parametrize("stamp", ["0001-01-04T00:00:00+14:00", "9999-12-28T23:59:59-14:00"])
def test_every_moment_that_is_read_can_be_told_in_every_zone(stamp: str) -> None:
    moment = read_time(stamp)
    assert moment is not None
    for hours in (-14, 14):
        assert moment.astimezone(timezone(timedelta(hours=hours))) == moment
    assert moment.utcoffset() == timedelta(0)
