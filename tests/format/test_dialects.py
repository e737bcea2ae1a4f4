"""Published descriptions of the format: every example in them reads into the same views."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.builders import session, text, tool

from steno.format.encode import encode_line
from steno.format.lines import read_bytes
from steno.format.message import Text, Thinking, ToolResult, ToolUse, UnknownBlock
from steno.format.records import Record

FENCE = re.compile(r"```jsonc?l?\n(.*?)```", re.DOTALL)
COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
ELLIPSIS = re.compile(r'("(?:[^"\\]|\\.)*")|\.\.\.')
TRAILING = re.compile(r",(\s*[}\]])")


def one(value: dict[str, Any]) -> Record:
    (record,) = read_bytes(encode_line(value))
    assert isinstance(record, Record)
    return record


def examples(path: Path) -> list[dict[str, Any]]:
    """Return the JSON objects in a document's fenced blocks, comments and gaps taken out."""
    found: list[dict[str, Any]] = []
    for fence in FENCE.findall(path.read_text()):
        plain = COMMENT.sub(lambda match: match.group(1) or "", fence)
        plain = ELLIPSIS.sub(lambda match: match.group(1) or "", plain)
        plain = TRAILING.sub(r"\1", plain).replace(" | null", "")
        found.extend(objects(plain))
    return found


def objects(text_: str) -> list[dict[str, Any]]:
    decoder, found, at = json.JSONDecoder(), [], 0
    while (at := text_.find("{", at)) >= 0:
        try:
            value, at = decoder.raw_decode(text_, at)
        except ValueError:
            at += 1
            continue
        found.append(value)
    return found


@pytest.mark.corpus
@pytest.mark.parametrize(("name", "least"), [("000", 8), ("001", 20), ("002", 8), ("003", 5), ("004", 8)])
def test_every_published_example_reads(shared: Path, name: str, least: int) -> None:
    values = examples(shared / "format" / "specs" / f"{name}.md")
    typed = [value for value in values if isinstance(value.get("type"), str)]
    assert len(typed) >= least
    for value in typed:
        record = one(value)
        assert record.type == value["type"]
        assert record.fields == value
        message = value.get("message")
        if isinstance(message, str):
            assert message in (record.text, record.thinking, *(r.text for r in record.tool_results))
        elif isinstance(message, dict) and record.role:
            assert not any(isinstance(block, UnknownBlock) for block in record.blocks)
            assert record.blocks or not message.get("content")


def test_strings_as_messages_read_as_text() -> None:
    record = one({"type": "user", "uuid": "m1", "message": "Please help", "timestamp": "x"})
    assert record.dialect == "spec-000"
    assert record.blocks == (Text("Please help"),)
    thought = one({"type": "assistant", "subtype": "thinking", "message": "hm"})
    assert thought.blocks == (Thinking("hm"),)
    assert one({"type": "compact_system", "message": "conversation_compacted"}).dialect == "spec-000"


def test_a_tool_call_in_fields_of_its_own_pairs_with_its_result() -> None:
    call = one(
        {
            "type": "assistant",
            "subtype": "tool_use",
            "uuid": "m4",
            "toolName": "Write",
            "toolArguments": {"file_path": "/a"},
        }
    )
    (use,) = call.blocks
    assert isinstance(use, ToolUse)
    assert (use.name, use.input) == ("Write", {"file_path": "/a"})
    result = one({"type": "system", "subtype": "tool_result", "parentUuid": "m4", "message": "created"})
    (answer,) = result.blocks
    assert isinstance(answer, ToolResult)
    assert answer.tool_use_id == use.id
    assert answer.text == "created"
    assert result.role == "user"


def test_types_of_the_other_dialect_stand_for_roles() -> None:
    stamp = 1738160130123
    human = one({"type": "human", "timestamp": stamp, "message": {"type": "message", "content": "Create"}})
    assert (human.dialect, human.role, human.text) == ("spec-004", "user", "Create")
    assert human.time is not None
    assert human.time.year == 2025
    for kind in ("tool_result", "compact_prelude", "compact_recap"):
        assert one({"type": kind, "message": {"content": "x"}}).role == "user"


@pytest.mark.parametrize("dialect", ["spec-000", "spec-004"])
def test_whole_sessions_of_a_dialect_tell_who_said_what(dialect: str) -> None:
    built = session(dialect=dialect).user("hi").assistant(text("hello"), tool("Read", file_path="/a"))
    built.result("content")
    records = [piece for piece in read_bytes(built.bytes()) if isinstance(piece, Record)]
    assert {record.dialect for record in records} <= {dialect, "claude"}
    said = [(record.role, record.text) for record in records if record.text]
    assert said[0] == ("user", "hi")
    assert ("assistant", "hello") in said
    uses = [use.id for record in records for use in record.tool_uses]
    assert [r.tool_use_id for record in records for r in record.tool_results] == uses
