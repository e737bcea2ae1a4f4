"""What becomes of each field and each value of the two dialects when their files are read."""

import json
from functools import cache
from typing import Any

import pytest
from tests.published.dialect_examples import FLAT_TOOLS, NESTED_TOOLS
from tests.published.examples import EXAMPLES
from tests.published.files import PNG

from steno.format.source import BytesSource
from steno.session.resume.replay import valid_messages
from steno.session.session import Session
from steno.session.transcript import load

FLAT = "flat_examples"
NESTED = "nested_examples"
HELP = "I'll help you create a Python script."
READ: tuple[tuple[str, str, str, str, Any], ...] = (
    ("000.1.user", FLAT, "msg-001", "type", "user"),
    ("000.1.assistant", FLAT, "msg-003", "type", "assistant"),
    ("000.1.system", FLAT, "msg-006", "message.content.0.type", "tool_result"),
    ("000.1.compact_system", FLAT, "msg-010", "type", "system"),
    ("000.2.type", FLAT, "msg-001", "message.role", "user"),
    ("000.2.uuid", FLAT, "msg-001", "uuid", "msg-001"),
    ("000.2.timestamp", FLAT, "msg-001", "timestamp", "2025-01-27T10:00:00Z"),
    ("000.2.sessionId", FLAT, "msg-001", "sessionId", "session-123"),
    ("000.2.message", FLAT, "msg-001", "message.content", "Please help me write a Python script"),
    ("000.2.parentUuid", FLAT, "msg-001", "parentUuid", "msg-000"),
    ("000.2.isSidechain", FLAT, "msg-002", "isSidechain", True),
    ("000.2.userType", FLAT, "msg-002", "userType", "external"),
    ("000.2.sidechain-root", FLAT, "msg-002", "parentUuid", None),
    ("000.3.type", FLAT, "msg-003", "message.role", "assistant"),
    ("000.3.uuid", FLAT, "msg-003", "uuid", "msg-003"),
    ("000.3.timestamp", FLAT, "msg-003", "timestamp", "2025-01-27T10:00:10Z"),
    ("000.3.sessionId", FLAT, "msg-003", "sessionId", "session-123"),
    ("000.3.message", FLAT, "msg-003", "message.content.0.text", HELP),
    ("000.3.parentUuid", FLAT, "msg-004", "parentUuid", "msg-003"),
    ("000.3.toolName", FLAT, "msg-004", "message.content.0.name", "Write"),
    ("000.3.toolArguments", FLAT, "msg-004", "message.content.0.input.file_path",
     "/path/to/script.py"),
    ("000.3.isSidechain", "sidechain", "msg-004", "isSidechain", True),
    ("000.3.response", FLAT, "msg-003", "message.content.0.type", "text"),
    ("000.3.tool_use", FLAT, "msg-004", "message.content.0.type", "tool_use"),
    ("000.3.thinking", "flat_answers", "msg-002", "message.content.0.thinking",
     "Internal reasoning first."),
    ("000.3.command", "flat_answers", "msg-003", "message.content.0.text", "/status"),
    ("000.3.error", "flags", "msg-011", "isApiErrorMessage", True),
    ("000.4.type", FLAT, "msg-006", "type", "user"),
    ("000.4.uuid", FLAT, "msg-006", "uuid", "msg-006"),
    ("000.4.timestamp", FLAT, "msg-006", "timestamp", "2025-01-27T10:00:25Z"),
    ("000.4.sessionId", FLAT, "msg-006", "sessionId", "session-123"),
    ("000.4.message", FLAT, "msg-006", "message.content.0.content",
     "File created successfully at: /path/to/script.py"),
    ("000.4.parentUuid", FLAT, "msg-006", "parentUuid", "msg-005"),
    ("000.4.isError", FLAT, "msg-007", "message.content.0.is_error", True),
    ("000.4.isMeta", "flat_answers", "msg-005", "isMeta", True),
    ("000.4.subtype", FLAT, "msg-006", "message.content.0.tool_use_id", "msg-004"),
    ("000.4.error", FLAT, "msg-007", "message.content.0.tool_use_id", "msg-005"),
    ("000.4.meta", "flat_answers", "msg-005", "subtype", "informational"),
    ("000.4.none", "flat_answers", "msg-006", "content", "Status update"),
    ("000.5.uuid", FLAT, "msg-010", "uuid", "msg-010"),
    ("000.5.timestamp", FLAT, "msg-010", "timestamp", "2025-01-27T10:00:45Z"),
    ("000.5.sessionId", FLAT, "msg-010", "sessionId", "session-123"),
    ("000.5.message", FLAT, "msg-010", "subtype", "conversation_compacted"),
    ("000.5.parentUuid", FLAT, "msg-010", "parentUuid", "msg-009"),
    ("000.5.preservedMessages", FLAT, "msg-010", "compactMetadata.messagesKept", 15),
    ("000.5.totalMessages", FLAT, "msg-010", "compactMetadata.messagesBefore", 150),
    ("000.5.compressionRatio", FLAT, "msg-010", "compactMetadata.compressionRatio", 0.1),
    ("000.5.conversation_compacting", FLAT, "msg-009", "subtype", "conversation_compacting"),
    ("000.5.conversation_compacted", "restoration", "msg-004", "compactMetadata.messagesKept", 1),
    ("000.5.conversation_restoring", "restoration", "msg-005", "subtype",
     "conversation_restoring"),
    ("000.5.conversation_restored", "restoration", "msg-006", "subtype", "conversation_restored"),
    ("000.7.isSidechain", "sidechain", "msg-003", "isSidechain", True),
    ("000.7.isDeleted", "flags", "msg-003", "type", "deleted"),
    ("000.7.isAborted", "flags", "msg-007", "isAbortedMidStream", True),
    ("000.7.isMeta", "flags", "msg-008", "isMeta", True),
    ("000.7.isError", "error_recovery", "msg-004", "message.content.0.is_error", True),
    ("004.2.uuid", NESTED, "msg_user_001", "uuid", "msg_user_001"),
    ("004.2.parentUuid", NESTED, "msg_user_001", "parentUuid", "msg_assistant_000"),
    ("004.2.root", NESTED, "msg_hello", "parentUuid", None),
    ("004.2.sessionId", NESTED, "msg_user_001", "sessionId", "session_123"),
    ("004.2.type", NESTED, "msg_user_001", "type", "user"),
    ("004.2.timestamp", NESTED, "msg_user_001", "timestamp", "2025-01-29T14:15:30.123Z"),
    ("004.2.version", NESTED, "msg_user_001", "version", "1.0.128"),
    ("004.2.message", NESTED, "msg_user_001", "message.role", "user"),
    ("004.2.isSidechain", "nested_sidechain", "msg_sidechain_001", "isSidechain", True),
    ("004.2.userType", "nested_sidechain", "msg_sidechain_001", "userType", "external"),
    ("004.2.isError", "failed_and_deleted", "msg_tool_result_003", "message.content.0.is_error",
     True),
    ("004.2.isDeleted", "failed_and_deleted", "msg_human_004", "type", "deleted"),
    ("004.2.isAborted", "failed_and_deleted", "msg_assistant_007", "isAbortedMidStream", True),
    ("004.2.is_active", "active_branch", "", "leafUuid", "msg_assistant_004"),
    ("004.3.human", NESTED, "msg_user_001", "message.content",
     "Create a Python script to parse JSON files"),
    ("004.3.assistant", NESTED, "msg_assistant_002", "message.role", "assistant"),
    ("004.3.tool_result", NESTED, "msg_result_003", "message.role", "user"),
    ("004.3.compact_prelude", "compact_messages", "msg_compact_prelude_003", "isMeta", True),
    ("004.3.compact_recap", "compact_messages", "msg_compact_recap_004", "isCompactSummary", True),
    ("004.4.text", NESTED, "msg_text_004", "message.content", "This is a text message"),
    ("004.4.mixed", NESTED, "msg_mixed_005", "message.content.1.name", "Read"),
    ("004.4.tool_use", NESTED, "msg_assistant_002", "message.content.1.input.file_path",
     "/parse_json.py"),
    ("004.4.tool_result", NESTED, "msg_result_003", "message.content.0.content",
     "File created successfully"),
    ("004.4.is_error", NESTED, "msg_result_003", "message.content.0.is_error", False),
    ("004.4.image", "pictures", "msg_human_001", "message.content.1.source.data", PNG),
    ("004.5.sidechain-root", "nested_sidechain", "msg_sidechain_001", "parentUuid", None),
    ("004.5.prelude-after-boundary", "compact_messages", "msg_human_005", "parentUuid",
     "msg_compact_recap_004"),
    ("004.7.correlation", NESTED, "msg_result_006", "message.content.0.tool_use_id",
     "toolu_xyz789"),
)  # fmt: skip


@cache
def converted(name: str) -> dict[str, dict[str, Any]]:
    """Return the records of an example as all of steno reads them, by their ids."""
    transcript = load(BytesSource(EXAMPLES[name].data))
    records = [json.loads(transcript.record(node).line) for node in transcript.nodes]
    return {record.get("uuid", ""): record for record in records}


def at(value: Any, path: str) -> Any:
    """Return what a path of names and numbers leads to."""
    for step in path.split("."):
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value


@pytest.mark.parametrize(("name", "uuid", "path", "value"), [row[1:] for row in READ], ids=[row[0] for row in READ])
def test_a_field_of_a_dialect_becomes_the_clients(name: str, uuid: str, path: str, value: Any) -> None:
    assert at(converted(name)[uuid], path) == value


TOOLS = [("flat_tools", tool) for tool in FLAT_TOOLS] + [("nested_tools", tool) for tool in NESTED_TOOLS]


@pytest.mark.parametrize(("name", "tool"), TOOLS)
def test_a_tool_of_a_dialect_is_a_call_with_its_result(name: str, tool: str) -> None:
    transcript = load(BytesSource(EXAMPLES[name].data))
    blocks = [
        block for message in valid_messages(transcript) for block in message["content"] if isinstance(block, dict)
    ]
    (asked,) = [block for block in blocks if block.get("name") == tool]
    (result,) = [block for block in blocks if block.get("tool_use_id") == asked["id"]]
    assert list(asked["input"].values()) == [f"for {tool}"]
    assert f"The result of {tool}." in json.dumps(result["content"])
    steps = [step for turn in Session(transcript).turns() for step in turn.steps if step.is_work]
    assert len(steps) == len(FLAT_TOOLS if name == "flat_tools" else NESTED_TOOLS)
    assert {step.state for step in steps} == {"ok"}


def test_in_a_sidechain_the_user_is_the_model_that_delegates() -> None:
    for name, prompt in (
        ("sidechain", "Analyze this code for potential improvements"),
        ("nested_sidechain", "Analyze this codebase for potential improvements"),
        ("delegation", "Find bugs in auth module"),
    ):
        (agent,) = Session(load(BytesSource(EXAMPLES[name].data))).all_agents
        assert agent.prompt == prompt
        assert agent.turns[0].answer


def test_a_meta_message_of_004_is_not_a_prompt() -> None:
    data = EXAMPLES["nested_unknown_fields"].data.replace(b'"isMeta": false', b'"isMeta": true')
    turns = Session(load(BytesSource(data))).turns()
    assert [turn.prompt for turn in turns if turn.prompt and turn.prompt.origin == "human"] == []


def test_unknown_fields_and_a_missing_version_cost_nothing() -> None:
    records = converted("nested_unknown_fields")
    assert len(records) == 2
    assert [each["message"]["role"] for each in records.values()] == ["user", "assistant"]


def test_the_figures_of_a_compaction_reach_the_turn_behind_it() -> None:
    turns = Session(load(BytesSource(EXAMPLES["dropped_by_compaction"].data))).turns()
    (seam,) = [turn.compaction for turn in turns if turn.compaction is not None]
    assert (seam.messages_before, seam.messages_kept, seam.ratio) == (4, 2, 0.5)


def test_lines_are_read_one_by_one_and_in_utf_8() -> None:
    """A torn line costs itself; letters beyond ASCII stay as they are."""
    data = EXAMPLES["development"].data.replace(b"Fix the bug", "Bügle ß".encode())
    lines = data.splitlines(keepends=True)
    torn = b"".join([*lines[:2], lines[2][:40] + b"\n", *lines[3:]])
    transcript = load(BytesSource(torn))
    assert len(transcript.nodes) == len(lines) - 1
    prompt = Session(transcript).turns()[0].prompt
    assert prompt is not None
    assert "Bügle ß" in prompt.text
