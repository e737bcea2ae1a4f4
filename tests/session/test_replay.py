"""What is sent on resume, rule by rule, on sessions made for it."""

from itertools import pairwise
from typing import Any

import msgspec
import pytest
from tests.builders import ZERO, answer, session, text, thinking, tool
from tests.builders import Session as Built
from tests.notation import notation

from steno.errors import BadRequest
from steno.format.source import BytesSource
from steno.session.resume.api_rules import find_breaches
from steno.session.resume.clients import CLIENTS, client_for
from steno.session.resume.replay import as_resumed, make_valid, resumed_leaf, valid_messages
from steno.session.session import Session
from steno.session.transcript import load


def sent(built: Built | bytes, client: str = "2.1.325") -> list[str]:
    data = built if isinstance(built, bytes) else built.bytes()
    return notation(as_resumed(load(BytesSource(data)), client_for(client)) or [])


def thought(model: str, last: str, client: str) -> list[str]:
    """Let two models think in turn, and return what the client sends back."""
    built = session(model=model).user("Q1").assistant(thinking("one"), text("A1"))
    records = built.user("Q2").assistant(thinking("two"), text("A2")).records()
    for record in records[-2:]:
        record["message"]["model"] = last
    return sent(b"".join(msgspec.json.encode(record) + b"\n" for record in records), client)


_OPUS, _SONNET, _GONE = "claude-opus-4-5-20251101", "claude-sonnet-4-5-20250929", "claude-opus-4-1"


@pytest.mark.parametrize(
    ("model", "last", "client", "kept"),
    [
        (_OPUS, _SONNET, "2.1.325", ["a:A1", "a:<thinking> + A2"]),
        (_SONNET, _OPUS, "2.1.200", ["a:A1", "a:<thinking> + A2"]),
        (_OPUS, _GONE, "2.1.325", ["a:A1", "a:A2"]),
        (_GONE, _OPUS, "2.1.325", ["a:A1", "a:<thinking> + A2"]),
        (_OPUS, _SONNET, "2.1.42", ["a:<thinking> + A1", "a:<thinking> + A2"]),
    ],
)
def test_only_the_thinking_of_the_model_that_is_asked_is_sent(
    model: str, last: str, client: str, kept: list[str]
) -> None:
    answers = [each for each in thought(model, last, client) if each.startswith("a:")]
    assert answers == kept


def test_a_mark_counts_when_what_was_written_last_does_not_continue_it() -> None:
    built = session().user("Q1").assistant(text("A1")).user("Q2").assistant(text("A2"))
    first = next(r["uuid"] for r in built.records() if r.get("type") == "assistant")
    boundary = {
        "parentUuid": None,
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": "bbbbbbbb-0000-4000-8000-0000000000bb",
        "timestamp": "2036-01-01T00:00:00.000Z",
    }
    mark = {"type": "last-prompt", "leafUuid": first}
    data = built.bytes() + b"".join(msgspec.json.encode(r) + b"\n" for r in (boundary, mark))
    assert sent(data) == ["u:Q1", "a:A1"]


def test_a_plain_session_is_sent_as_it_was() -> None:
    built = session().user("Q1").assistant(text("A1")).user("Q2").assistant(text("A2"))
    assert sent(built) == ["u:Q1", "a:A1", "u:Q2", "a:A2"]


@pytest.mark.parametrize("version", ["1.0.128", "2.0.76", "2.1.29", "2.1.42", "2.1.200", "2.1.325"])
def test_parallel_calls_of_every_generation_come_back_whole(version: str) -> None:
    built = session(version=version).user("Q1")
    built.assistant(text("look"), tool("Bash", command="a"), tool("Bash", command="b"))
    built.results("R1", "R2").assistant(text("A1"))
    calls = [block["id"] for record in built.records() for block in uses(record)]
    assert sent(built) == [
        "u:Q1",
        f"a:look + USE({calls[0]}) + USE({calls[1]})",
        f"u:RES({calls[0]}:R1) + RES({calls[1]}:R2)",
        "a:A1",
    ]


def uses(record: dict[str, Any]) -> list[dict[str, Any]]:
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    blocks = content if isinstance(content, list) else []
    return [block for block in blocks if block.get("type") == "tool_use"]


def test_results_written_while_the_response_streams_are_gathered() -> None:
    built = session(version="2.1.325").user("Q1")
    built.assistant(tool("Read", file_path="/a"), answer("R1"), tool("Read", file_path="/b"))
    built.result("R2").assistant(text("A1"))
    assert [line.count("RES(") for line in sent(built)] == [0, 0, 2, 0]


def test_older_clients_lose_parallel_results_that_hang_on_their_calls() -> None:
    built = session(version="2.1.29").user("Q1")
    built.assistant(tool("Read", file_path="/a"), tool("Read", file_path="/b"))
    built.results("R1", "R2").assistant(text("A1"))
    assert [line.count("RES(") for line in sent(built, "2.1.42")] == [0, 0, 1, 0]


def test_an_abandoned_branch_is_not_sent() -> None:
    built = session().user("Q1").assistant(text("A1")).user("Q2").assistant(text("A2"))
    built.rewind(1).user("Q2 edited").assistant(text("A2 new"))
    assert sent(built) == ["u:Q1", "a:A1", "u:Q2 edited", "a:A2 new"]


def test_an_explicit_mark_rewinds_and_later_messages_override_it() -> None:
    built = session().user("Q1").assistant(text("A1")).user("Q2").assistant(text("A2"))
    first = built.uuids()[1]
    built.side({"type": "last-prompt", "leafUuid": first, "explicit": True, "sessionId": "s"})
    assert sent(built) == ["u:Q1", "a:A1"]
    built.user("Q3").assistant(text("A3"))
    assert sent(built)[-1] == "a:A3"
    built.side({"type": "last-prompt", "leafUuid": ZERO, "explicit": True, "sessionId": "s"})
    assert sent(built)[-1] == "a:A3"


def test_compaction_leaves_the_summary_and_what_follows() -> None:
    built = session(version="2.0.76").user("Q1").assistant(text("A1")).compact("SUMMARY")
    built.user("Q2").assistant(text("A2"))
    words = sent(built)
    assert "SUMMARY" in words[0]
    assert words[-1] == "a:A2"
    assert not any("Q1" in line for line in words)


def test_a_cut_off_call_is_answered_and_so_is_a_lonely_prompt() -> None:
    built = session().user("Q1").assistant(tool("Bash", command="ls"))
    words = sent(built)
    assert words[2].startswith("u:RES(")
    assert words[2].endswith("ERR)")
    assert words[-1] == "a:No response requested."
    assert sent(session().user("Q1")) == ["u:Q1", "a:No response requested."]


def test_reasoning_without_an_answer_is_left_out() -> None:
    built = session().user("Q1").assistant(thinking("hm"))
    assert sent(built) == ["u:Q1", "a:No response requested."]


def test_a_missing_parent_is_bridged_within_five_seconds_only() -> None:
    for gap, expected in ((5, ["u:Q1", "a:A1"]), (6, ["a:A1"])):
        near = message("user", "1", None, 0, "Q1") + message("assistant", "2", "gone", gap, "A1")
        assert sent(near) == expected


def message(kind: str, uuid: str, parent: str | None, second: int, words: str) -> bytes:
    name = f'"{parent}"' if parent else "null"
    return (
        f'{{"type":"{kind}","uuid":"{uuid}","parentUuid":{name},'
        f'"timestamp":"2026-01-01T00:00:{second:02d}.000Z",'
        f'"message":{{"id":"m{uuid}","model":"x","content":[{{"type":"text","text":"{words}"}}]}}}}\n'
    ).encode()


def test_files_without_a_conversation_are_refused() -> None:
    for data in (b"", b'{"type":"summary","summary":"x","leafUuid":"y"}\n', b"\x00\x01binary"):
        assert as_resumed(load(BytesSource(data))) is None
        assert Session(load(BytesSource(data))).as_resumed() == []


def test_a_million_links_are_walked_without_recursion() -> None:
    count = 200_000
    lines = [message("user", "0", None, 0, "Q")]
    lines += [f'{{"type":"attachment","uuid":"{n}","parentUuid":"{n - 1}"}}\n'.encode() for n in range(1, count)]
    transcript = load(BytesSource(b"".join(lines)))
    leaf = resumed_leaf(transcript)
    assert leaf is not None
    assert leaf.uuid == str(count - 1)
    assert notation(as_resumed(transcript) or []) == ["u:Q", "a:No response requested."]


def test_a_ring_of_records_ends() -> None:
    ring = b"".join(message("user", str(n), str((n + 1) % 5000), n % 60, f"Q{n}") for n in range(5000))
    assert as_resumed(load(BytesSource(ring))) is not None


def test_an_unstudied_client_counts_as_the_one_before_it() -> None:
    assert [client_for(client.version) for client in CLIENTS] == list(CLIENTS)
    assert client_for("2.1.250").version == "2.1.200"
    assert client_for("3.0.0").version == "2.1.325"
    for nonsense in ("newest", "", "1.0.0"):
        with pytest.raises(BadRequest):
            client_for(nonsense)


def test_messages_are_valid_whatever_the_session_holds() -> None:
    built = session().assistant(text("no user before"))
    built.user([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "!"}}])
    built.assistant(thinking("unsigned", signature=""), text("A")).user("Q").assistant(tool("Bash", command="x"))
    messages = valid_messages(load(BytesSource(built.bytes())))
    assert find_breaches(messages) == []
    assert messages[0]["role"] == "user"


@pytest.mark.parametrize(
    ("messages", "rule"),
    [
        ([{"role": "robot", "content": "x"}], "role.known"),
        ([{"role": "user", "content": []}], "content.empty"),
        ([{"role": "user", "content": [{"type": "text", "text": " "}]}], "block.text"),
        ([{"role": "user", "content": [{"type": "zzz"}]}], "block.known"),
        ([{"role": "user", "content": [{"type": "tool_use"}]}], "block.known"),
        (
            [
                {"role": "user", "content": "x"},
                {"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}]},
            ],
            "block.thinking",
        ),
        ([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}], "tool_result.called"),
        ([{"role": "assistant", "content": "x"}], "role.first"),
        (
            [
                {"role": "user", "content": "x"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "n", "input": {}}]},
            ],
            "tool_use.answered",
        ),
        (
            [
                {
                    "role": "user",
                    "content": [
                        {"type": "image", "source": {"type": "base64", "media_type": "image/bmp", "data": "AA=="}}
                    ],
                }
            ],
            "block.image",
        ),
    ],
)
def test_each_rule_of_the_api_can_be_broken(messages: list[dict[str, Any]], rule: str) -> None:
    assert rule in {breach.rule for breach in find_breaches(messages)}


def test_mending_leaves_sound_messages_alone() -> None:
    messages = [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]
    assert make_valid(messages) == messages


def test_a_call_id_that_two_responses_use_is_made_unique() -> None:
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "x"}
    again = [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    messages = [{"role": "user", "content": "go"}, *again, *again, *again]
    assert {breach.rule for breach in find_breaches(messages)} == {"tool_use.unique"}
    assert find_breaches(make_valid(messages)) == []


@pytest.mark.parametrize("marked", [False, True])
def test_a_client_that_said_where_it_left_off_looks_no_further_than_the_files_end(*, marked: bool) -> None:
    """An early record at the end of the file: else the client goes on to what hangs on it."""
    built = session().user("Q1").assistant(text("A1")).user("Q2").assistant(text("A2"))
    records = [each for each in built.records() if "uuid" in each]
    mark = {"type": "last-prompt", "leafUuid": records[1]["uuid"]}
    moved = [records[0], *records[2:], records[1], *([mark] if marked else [])]
    data = b"".join(msgspec.json.encode(each) + b"\n" for each in moved)
    assert sent(data) == ["u:Q1", "a:A1", *([] if marked else ["u:Q2", "a:A2"])]


def test_a_call_left_open_by_an_earlier_response_of_the_last_turn_is_still_sent() -> None:
    built = session().user("go").assistant(tool("Bash", command="one"))
    first = built.records()[-1]["message"]["content"][0]["id"]
    built.assistant(tool("Bash", command="two")).result("done")
    said = sent(built)
    roles = [each[0] for each in said]
    assert f"USE({first})" in " ".join(said)
    assert all(one != other for one, other in pairwise(roles)), said
