"""Composed records field by field, published dialects block by block, numbers digit by digit."""

import itertools
from typing import Any

import msgspec
import pytest

from steno.errors import BadRequest
from steno.format.catalogue import catalogue, load_catalogue
from steno.format.encode import Composer, SessionContext, encode, full_usage
from steno.format.message import SYNTHETIC, Block, Text, Thinking, ToolResult, ToolUse, read_envelope
from steno.format.records import dialect_blocks, dialect_of, dialect_role

USAGE = {"input_tokens": 5, "output_tokens": 6}


def composer(agent: str = "") -> Composer:
    ids = map("id{}".format, itertools.count(1))
    times = map("time{}".format, itertools.count(1))
    place = SessionContext(session_id="s", cwd="/w", version="2.1.325", git_branch="main", agent_id=agent)
    return Composer(place, new_uuid=lambda: next(ids), now=lambda: next(times))


ENVELOPE = {
    "isSidechain": False,
    "userType": "external",
    "cwd": "/w",
    "sessionId": "s",
    "version": "2.1.325",
    "gitBranch": "main",
}


def test_a_prompt_and_all_of_its_turn_have_one_id_in_common() -> None:
    made = composer()
    assert made.prompt("Q") == {
        "parentUuid": None,
        **ENVELOPE,
        "type": "user",
        "promptId": "id1",
        "message": {"role": "user", "content": "Q"},
        "uuid": "id2",
        "timestamp": "time1",
    }
    meta = made.prompt([{"type": "text", "text": "x"}], isMeta=True)
    assert (meta["promptId"], meta["isMeta"], meta["parentUuid"]) == ("id1", True, "id2")
    assert meta["message"]["content"] == [{"type": "text", "text": "x"}]
    assert made.result("none", "R")["promptId"] == "id1"
    assert made.prompt("next")["promptId"] not in ("id1", "")
    assert composer().result("none", "R")["promptId"] == "id1"


def test_the_records_of_a_sub_agent_say_so() -> None:
    record = composer("a1").prompt("Q")
    assert (record["isSidechain"], record["agentId"]) == (True, "a1")
    assert "agentId" not in composer().prompt("Q")


def test_a_response_is_a_record_for_each_block_with_everything_on_each() -> None:
    made = composer()
    blocks = [{"type": "text", "text": "x"}, {"type": "tool_use", "id": "t"}]
    records = made.response(blocks, message_id="m", model="M", stop_reason="tool_use", usage=USAGE, request_id="r", z=1)
    assert [record["parentUuid"] for record in records] == [None, records[0]["uuid"]]
    for index, record in enumerate(records):
        assert record["message"] == {
            "model": "M",
            "id": "m",
            "type": "message",
            "role": "assistant",
            "content": [blocks[index]],
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "usage": full_usage(USAGE),
            "stop_details": None,
        }
        assert record["type"] == "assistant"
        assert record.get("toolInputStreamMs") == (None, 0)[index]
        assert (record["apiBlockIndex"], record["requestId"], record["z"]) == (index, "r", 1)
        assert (record["madeBy"], record["promptCacheRequested"]) == ("model", "5m")
    bare = made.response(blocks[:1], message_id="m", model="M", stop_reason=None, usage=USAGE, stop_sequence=".")
    assert "requestId" not in bare[0]
    assert bare[0]["message"]["stop_sequence"] == "."
    result = made.result("t", "R", is_error=True, detail={"a": 1}, more=2)
    assert result["sourceToolAssistantUUID"] == records[1]["uuid"]
    assert (result["toolUseResult"], result["more"]) == ({"a": 1}, 2)
    assert result["message"] == {
        "role": "user",
        "content": [{"tool_use_id": "t", "type": "tool_result", "content": "R", "is_error": True}],
    }
    again = made.result("t", "R")
    assert "sourceToolAssistantUUID" not in again
    assert "toolUseResult" not in again
    assert "is_error" not in again["message"]["content"][0]


def test_a_compaction_is_a_boundary_without_a_parent_and_a_summary_below_it() -> None:
    made = composer()
    last = made.prompt("Q")["uuid"]
    boundary, summary = made.compaction("S", metadata={"trigger": "auto", "preTokens": 7})
    assert (boundary["parentUuid"], boundary["logicalParentUuid"]) == (None, last)
    assert (boundary["type"], boundary["subtype"]) == ("system", "compact_boundary")
    assert (boundary["content"], boundary["isMeta"]) == ("Conversation compacted", False)
    assert boundary["level"] == "info"
    assert boundary["compactMetadata"] == {"trigger": "auto", "preTokens": 7}
    assert summary["parentUuid"] == boundary["uuid"]
    assert summary["message"]["content"] == "S"
    assert summary["isVisibleInTranscriptOnly"] is True
    assert summary["isCompactSummary"] is True
    assert "turnPosition" not in summary
    place = {"promptIndex": 1, "turnIndex": 2}
    assert made.compaction("S", metadata={}, position=place)[1]["turnPosition"] == place


def test_the_duration_of_a_turn_counts_what_is_still_at_work_only_if_anything_is() -> None:
    made = composer()
    record = made.turn_duration(5, messages=7)
    assert (record["type"], record["subtype"], record["isMeta"]) == ("system", "turn_duration", False)
    assert (record["durationMs"], record["messageCount"]) == (5, 7)
    assert "pendingBackgroundAgentCount" not in record
    pending = made.turn_duration(5, messages=7, pending_agents=2)
    assert pending["pendingBackgroundAgentCount"] == 2
    assert pending["parentUuid"] == record["uuid"]


def test_the_way_in_and_the_name_in_words_stand_on_every_record_once_they_are_known() -> None:
    made = composer()
    assert not {"entrypoint", "slug"} & set(made.prompt("Q"))
    made.context = msgspec.structs.replace(made.context, entrypoint="cli", slug="a-b-c")
    for record in (made.prompt("Q"), made.note("x"), made.attachment({"type": "x"})):
        assert (record["entrypoint"], record["slug"]) == ("cli", "a-b-c")


def test_the_figures_of_the_api_stay_and_the_others_are_nothing() -> None:
    usage = full_usage({"input_tokens": 5, "service_tier": "priority", "new": 1})
    assert (usage["input_tokens"], usage["service_tier"], usage["new"]) == (5, "priority", 1)
    assert (usage["output_tokens"], usage["cache_read_input_tokens"]) == (0, 0)
    assert (usage["iterations"], usage["fallback_credit"]) == ([], None)
    assert usage["cache_creation"] == {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0}


def test_an_attachment_says_what_the_model_reads_of_it_and_may_hang_beside() -> None:
    made = composer()
    (call,) = made.response([{"type": "tool_use", "id": "t"}], message_id="m", model="M", stop_reason=None, usage={})
    note = made.note("turn_duration", ms=5)
    beside = made.attachment({"type": "hook"}, "a", "b", beside="t")
    assert beside["parentUuid"] == call["uuid"]
    assert beside["rendered"] == [{"content": "a"}, {"content": "b"}]
    assert beside["renderedRole"] == "system"
    assert made.leaf == note["uuid"]
    assert (note["type"], note["subtype"], note["ms"]) == ("system", "turn_duration", 5)
    plain = made.attachment({"type": "x"})
    assert (plain["type"], plain["attachment"]) == ("attachment", {"type": "x"})
    assert plain["parentUuid"] == note["uuid"]
    assert made.leaf == plain["uuid"]
    assert not {"rendered", "renderedRole"} & set(plain)
    mine = made.attachment({"type": "x"}, role="user", beside="unknown")
    assert mine["renderedRole"] == "user"
    assert "rendered" not in mine
    assert made.leaf == mine["uuid"]


def test_a_failure_stands_in_place_of_an_answer() -> None:
    made = composer()
    record = made.failure("no", status=529)
    message = record["message"]
    usage = message.pop("usage")
    assert (usage["input_tokens"], usage["output_tokens"], usage["service_tier"]) == (0, 0, None)
    assert message == {
        "diagnostics": None,
        "id": "id1",
        "container": None,
        "model": SYNTHETIC,
        "role": "assistant",
        "stop_details": None,
        "stop_reason": "stop_sequence",
        "stop_sequence": "",
        "type": "message",
        "content": [{"type": "text", "text": "no"}],
        "context_management": None,
    }
    assert record["error"] == "unknown"
    full = made.failure("no", kind="rate_limit", error_type="rate_limit_error")
    assert (full["error"], full["apiErrorType"]) == ("rate_limit", "rate_limit_error")
    assert "apiErrorType" not in record
    assert (record["type"], record["isApiErrorMessage"]) == ("assistant", True)
    assert (record["apiErrorStatus"], record["madeBy"]) == (529, "model")
    assert "apiErrorStatus" not in made.failure("no")
    assert SYNTHETIC == "<synthetic>"


def test_the_end_of_a_turn_and_a_title_name_their_session() -> None:
    made = composer()
    leaf = made.prompt("Q")["uuid"]
    assert made.turn_end(" a\nb ") == {"type": "last-prompt", "lastPrompt": "a b", "leafUuid": leaf, "sessionId": "s"}
    assert "lastPrompt" not in made.turn_end("")
    for size, shown in ((200, "x" * 200), (201, "x" * 200 + "…")):
        assert made.turn_end("x" * size)["lastPrompt"] == shown
    assert made.turn_end("x" * 199 + " y")["lastPrompt"] == "x" * 199 + "…"
    assert made.title("T") == {"type": "custom-title", "customTitle": "T", "sessionId": "s"}
    made.rewind("other")
    assert made.prompt("Q")["parentUuid"] == "other"


# Published dialects


def adapted(line: bytes) -> tuple[str, str, tuple[Block, ...]]:
    envelope = read_envelope(line)
    assert envelope is not None
    return dialect_of(envelope), dialect_role(envelope), dialect_blocks(envelope, line)


@pytest.mark.parametrize(
    ("line", "dialect", "role", "blocks"),
    [
        (b'{"type":"human","content":"x"}', "spec-004", "user", (Text("x"),)),
        (b'{"type":"compact_prelude"}', "spec-004", "user", ()),
        (b'{"type":"compact_recap","message":"x"}', "spec-004", "user", (Text("x"),)),
        (b'{"type":"user","timestamp":5,"message":"x"}', "spec-004", "", (Text("x"),)),
        (b'{"type":"user","timestamp":5.5,"message":"x"}', "spec-004", "", (Text("x"),)),
        (b'{"type":"user","timestamp":5}', "claude", "", ()),
        (b'{"type":"user","message":"x"}', "spec-000", "", (Text("x"),)),
        (b'{"type":"compact_system"}', "spec-000", "", ()),
        (b'{"type":"system","subtype":"other"}', "claude", "", ()),
        (b'{"type":"assistant","subtype":"thinking","message":"t"}', "spec-000", "", (Thinking("t"),)),
        (b'{"type":"assistant","subtype":"x"}', "spec-000", "", ()),
        (b'{"type":"assistant"}', "claude", "", ()),
        (b'{"type":"x"}', "claude", "", ()),
        (b'{"content":"y"}', "claude", "", (Text("y"),)),
    ],
)  # fmt: skip
def test_a_dialect_is_told_by_the_record_itself(
    line: bytes, dialect: str, role: str, blocks: tuple[Block, ...]
) -> None:
    assert adapted(line) == (dialect, role, blocks)


def test_calls_and_results_of_the_older_dialect_name_each_other_by_the_record() -> None:
    _, role, (block,) = adapted(b'{"type":"system","subtype":"tool_result","parentUuid":"p","message":"out"}')
    assert isinstance(block, ToolResult)
    assert (role, block.tool_use_id, block.text, block.is_error) == ("user", "p", "out", None)
    _, _, (block,) = adapted(b'{"type":"system","subtype":"tool_result"}')
    assert isinstance(block, ToolResult)
    assert (block.tool_use_id, block.text) == ("", "")
    _, _, (words, call) = adapted(
        b'{"type":"assistant","subtype":"tool_use","uuid":"u","message":"w","toolName":"Bash",'
        b'"toolArguments":{"command":"ls"}}'
    )
    assert words == Text("w")
    assert isinstance(call, ToolUse)
    assert (call.id, call.name, call.input) == ("u", "Bash", {"command": "ls"})
    _, _, (call,) = adapted(b'{"type":"assistant","subtype":"tool_use"}')
    assert isinstance(call, ToolUse)
    assert (call.id, call.name, call.input) == ("", "", {})


# The catalogue and numbers


def test_a_catalogue_is_written_as_it_is_read() -> None:
    facts = catalogue()
    dumped = facts.dump()
    assert load_catalogue(dumped) == facts
    assert dumped.startswith(b"{\n  ")
    assert dumped.endswith(b"}\n")
    for bad in (b"", b"{}", b"[]", b'{"records":5}'):
        with pytest.raises(BadRequest, match="not a catalogue"):
            load_catalogue(bad)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.0, "2"),
        (-0.0, "0"),
        (0.5, "0.5"),
        (1e-6, "0.000001"),
        (1.5e-6, "0.0000015"),
        (9.9e-7, "9.9e-7"),
        (1e-7, "1e-7"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (1.5e300, "1.5e+300"),
        (-1.5e-300, "-1.5e-300"),
        (2.0**53, "9007199254740992"),
        (float("inf"), "null"),
        (float("-inf"), "null"),
        (float("nan"), "null"),
        (123456.789, "123456.789"),
    ],
)
def test_numbers_are_written_as_javascript_writes_them(value: float, text: str) -> None:
    assert encode(value).decode() == text
    nested: Any = {"a": [value, {"b": (value,)}], "c": "\x00number:1"}
    assert encode(nested).decode() == (f'{{"a":[{text},{{"b":[{text}]}}],"c":"\\u0000number:1"}}')
