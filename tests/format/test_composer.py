"""What is composed resumes in every studied client, word for word."""

import itertools
from typing import Any

import pytest
from tests.notation import notation

from steno.format.encode import Composer, SessionContext, encode_line
from steno.format.lines import read_bytes
from steno.format.source import BytesSource
from steno.session.resume.clients import CLIENTS
from steno.session.session import Session
from steno.session.transcript import load

SESSION = "aaaaaaaa-0000-4000-8000-000000000001"
USAGE = {"input_tokens": 5, "output_tokens": 5}


def composer() -> Composer:
    ids = (f"bbbbbbbb-0000-4000-8000-{n:012d}" for n in itertools.count(1))
    times = (f"2026-11-15T05:{n // 60:02d}:{n % 60:02d}.000Z" for n in itertools.count(1))
    place = SessionContext(session_id=SESSION, cwd="/home/ada/work", version="2.1.29", git_branch="main")
    return Composer(place, new_uuid=lambda: next(ids), now=lambda: next(times))


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def call(name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "Read", "input": {"file_path": "/a"}}


def reply(made: Composer, name: str, *blocks: dict[str, Any], stop: str = "end_turn") -> list[Any]:
    return made.response(blocks, message_id=name, model="claude-x", stop_reason=stop, usage=USAGE, request_id="r")


def golden() -> list[dict[str, Any]]:
    made = composer()
    records = [made.prompt("Q1")]
    thought = {"type": "thinking", "thinking": "T", "signature": "S"}
    records += reply(made, "m1", thought, said("look"), call("t1"), call("t2"), stop="tool_use")
    records += [made.result("t1", "R1", detail={"ok": 1}), made.result("t2", "R2", is_error=True)]
    records += [*reply(made, "m2", said("A1")), made.turn_end("Q1"), made.title("A title")]
    return records


TOLD = ["u:Q1", "a:<thinking> + look + USE(t1) + USE(t2)", "u:RES(t1:R1) + RES(t2:R2 ERR)", "a:A1"]


def sent(records: list[dict[str, Any]], client: str) -> list[str]:
    data = b"".join(encode_line(record) for record in records)
    return notation(Session(load(BytesSource(data)), name=SESSION).as_resumed(client))


@pytest.mark.parametrize("client", [client.version for client in CLIENTS])
def test_parallel_calls_resume(client: str) -> None:
    assert sent(golden(), client) == TOLD


@pytest.mark.parametrize("client", [client.version for client in CLIENTS])
def test_a_branch_resumes(client: str) -> None:
    made = composer()
    records = [made.prompt("Q1"), *reply(made, "m1", said("A1"))]
    fork = made.leaf
    records += [made.prompt("Q2"), *reply(made, "m2", said("A2")), made.turn_end("Q2")]
    made.rewind(fork)
    records += [made.prompt("Q2b"), *reply(made, "m3", said("A2b")), made.turn_end("Q2b")]
    assert sent(records, client) == ["u:Q1", "a:A1", "u:Q2b", "a:A2b"]


@pytest.mark.parametrize("client", [client.version for client in CLIENTS])
def test_a_compaction_resumes(client: str) -> None:
    made = composer()
    records = [made.prompt("Q1"), *reply(made, "m1", said("A1"))]
    records += made.compaction("SUMMARY", metadata={"trigger": "auto", "preTokens": 9})
    records += reply(made, "m2", said("A2"))
    assert sent(records, client) == ["u:SUMMARY", "a:A2"]


def test_of_a_long_prompt_the_end_of_a_turn_holds_the_beginning() -> None:
    made = composer()
    assert made.turn_end("one\ntwo")["lastPrompt"] == "one two"
    assert made.turn_end("x" * 200)["lastPrompt"] == "x" * 200
    assert made.turn_end("x" * 201)["lastPrompt"] == "x" * 200 + "…"
    assert "lastPrompt" not in made.turn_end("")


def test_what_is_composed_reads_back_without_a_note() -> None:
    data = b"".join(encode_line(record) for record in golden())
    assert [piece.damage for piece in read_bytes(data) if piece.damage] == []
    assert [record["parentUuid"] for record in golden()[:2]] == [None, golden()[0]["uuid"]]
    results = [record for record in golden() if "sourceToolAssistantUUID" in record]
    assert len(results) == 2
