"""What a repair brings back into the conversation, and what it names when it does not."""

import json
from pathlib import Path

import pytest
from tests.builders import Session, session, tool
from tests.check.record_trees import mended, results, said, sent, uuid
from tests.check.repair_checks import LOST, Records, at, broken, late, talk, told
from tests.interop.judge import missing_texts, names_much

from steno.check.repair.repair_job import repair_bytes
from steno.format.encode import encode_line
from steno.format.source import BytesSource
from steno.session.resume.clients import LATEST
from steno.session.resume.replay import as_resumed, resumed_chain
from steno.session.transcript import load


def pair() -> Session:
    """Two calls in one response, their results on one line each, and a second prompt."""
    made = session(seed="left").user("One?")
    made.assistant(tool("Bash", command="a"), tool("Bash", command="b"))
    made.result("first", of=0).result("second", of=1)
    return made.assistant("One.").user("Two?").assistant("Two.")


@pytest.mark.parametrize("number", [1, 3, 4, 5, 6, 7])
def test_of_records_of_one_time_the_client_and_the_repair_take_the_same(number: int) -> None:
    records = talk().records()
    for each in records:
        if "timestamp" in each:
            each["timestamp"] = "2026-01-05T09:00:00.000Z"
    at(records, number)["parentUuid"] = LOST
    data = b"".join(map(encode_line, records))
    before = resumed_chain(load(BytesSource(data)), LATEST)
    done = repair_bytes(data)
    after = resumed_chain(done.transcript, LATEST)
    assert [node.uuid for node in after or []] == [node.uuid for node in before or []]
    assert done.left == ()


def test_messages_that_a_ring_led_to_are_named_when_they_leave() -> None:
    made = session(seed="ring").user("One?").assistant("One.").user("Never mind.").assistant("No.")
    made.user("Two?").assistant("Two.")

    def taken_back(records: Records) -> None:
        at(records, 4)["parentUuid"] = at(records, 1)["uuid"]
        at(records, 0)["parentUuid"] = at(records, 3)["uuid"]

    records, done = broken(made, taken_back)
    assert at(records, 0)["parentUuid"] is None
    named = [at(records, number)["uuid"] for number in (2, 3)]
    assert [each.uuid for each in done.left] == named
    lines = done.data.splitlines()
    assert all(each.uuid.encode() in lines[each.line - 1] for each in done.left)
    assert repair_bytes(done.data).left == ()


def test_a_sound_session_and_a_wish_leave_nothing() -> None:
    made = talk()
    assert repair_bytes(made.bytes()).left == ()
    _, done = broken(made, lambda records: at(records, 4).update(parentUuid=LOST))
    assert done.left == ()


def test_a_result_without_a_parent_goes_to_its_call_wherever_it_stands() -> None:
    made = talk()

    def moved(records: Records) -> None:
        result = at(records, 2)
        at(records, 3)["parentUuid"] = result["parentUuid"]
        records.remove(result)
        records.append({**result, "parentUuid": None, "timestamp": "2027-01-01T00:00:00.000Z"})

    call = at(made.records(), 1)["uuid"]
    records, done = broken(made, moved)
    (result,) = [each for each in records if "toolUseResult" in each]
    assert result["parentUuid"] == call
    assert "a.py" in sent(done)


def test_a_link_to_what_came_later_is_cut_rather_than_the_conversation() -> None:
    made = talk()

    def bent(records: Records) -> None:
        at(records, 1)["parentUuid"] = at(records, 5)["uuid"]
        at(records, 5)["parentUuid"] = LOST

    records, done = broken(made, bent)
    assert records == made.records()
    assert {edit.finding for edit in done.edits} == {"chain.dangling", "chain.forward"}
    assert done.left == ()


def test_a_first_record_is_not_cut_off_where_lines_were_only_swapped() -> None:
    made = talk()

    def swapped(records: Records) -> None:
        first, later = at(records, 0), at(records, 5)
        first["parentUuid"] = first["uuid"]
        one, other = records.index(first), records.index(later)
        records[one], records[other] = later, first

    _, done = broken(made, swapped)
    assert [edit.finding for edit in done.edits] == ["chain.self-parent"]
    assert all(word in sent(done) for word in ("One?", "a.py", "Two?", "Three."))


def test_a_result_beside_its_call_is_hung_on_it_again() -> None:
    made = talk()
    records, done = broken(made, lambda records: at(records, 2).update(parentUuid=at(records, 0)["uuid"]))
    assert told(done) == [("tools.orphan-result", "change", records.index(at(records, 2)) + 1)]
    assert records == made.records()


def test_a_result_behind_another_response_is_hung_on_its_call() -> None:
    made = talk()

    _, done = broken(made, late)
    assert "tools.result-late" in {edit.finding for edit in done.edits}
    assert all(word in sent(done) for word in ("a.py", "Two?", "Two.", "Three?"))


def test_a_name_that_comes_back_behind_results_and_a_prompt_is_not_its_own() -> None:
    made = session(seed="name").user("One?").assistant(tool("Bash", command="a")).result("first")
    made.assistant(tool("Bash", command="b")).result("second").user("And?")
    made.assistant(tool("Bash", command="c")).result("third").assistant("So.")

    def renamed(records: Records) -> None:
        at(records, 6)["message"]["id"] = at(records, 1)["message"]["id"]

    _, done = broken(made, renamed)
    assert [edit.finding for edit in done.edits] == ["message.mixed"]
    assert all(word in sent(done) for word in ("first", "second", "third"))


def test_of_two_results_the_one_beside_the_way_goes() -> None:
    made = pair()
    again = "aaaaaaaa-0000-4000-8000-000000000001"

    def doubled(records: Records) -> None:
        result = next(each for each in records if "toolUseResult" in each)
        content = [{**result["message"]["content"][0], "content": "again"}]
        message = {**result["message"], "content": content}
        copy = {**result, "uuid": again, "parentUuid": result["uuid"], "message": message}
        records.insert(records.index(result) + 1, copy)

    records, done = broken(made, doubled)
    assert [(edit.finding, edit.uuid) for edit in done.edits] == [("tools.duplicate-result", again)]
    assert [each for each in records if each["type"] != "steno-aside"] == made.records()


def test_what_is_left_of_a_response_stays_in_the_conversation() -> None:
    made = pair()

    def emptied(records: Records) -> None:
        at(records, 1)["message"]["content"] = None
        first = next(each for each in records if "toolUseResult" in each)
        at(records, 5)["parentUuid"] = first["uuid"]

    _, done = broken(made, emptied)
    assert "second" in sent(done)
    assert "One." in sent(done)


@pytest.mark.parametrize("same", [False, True])
def test_a_message_is_named_though_a_record_of_its_id_was_taken_out(*, same: bool) -> None:
    ring = [said(1, 4, 0, "One?"), said(2, 1, 1, "One.", "a"), said(3, 2, 2, "Never mind."), said(4, 3, 3, "No.", "b")]
    copy = dict(ring[3]) if same else {**ring[3], "message": ring[1]["message"]}
    done = mended(*ring[:3], *([ring[3], copy] if same else [copy, ring[3]]), said(5, 2, 4, "Two?"))
    assert {edit.uuid for edit in done.edits} >= {ring[3]["uuid"]}
    lines = 4 if same else 5
    assert [(each.line, each.uuid) for each in done.left] == [(3, uuid(3)), (lines, uuid(4))]


def test_what_the_client_came_to_and_steno_did_not_is_named() -> None:
    untimed = said(3, 2, 2, "Two?")
    del untimed["timestamp"]
    last = {"type": "last-prompt", "lastPrompt": "x", "leafUuid": untimed["uuid"]}
    done = mended(
        said(1, 0, 0, "One?"),
        said(2, 1, 1, "One.", "a"),
        untimed,
        said(4, 2, 3, "Three?"),
        said(5, 4, 4, "Three.", "b"),
        {**last, "sessionId": untimed["sessionId"]},
    )
    assert "Three." not in sent(done)
    assert [each.line for each in done.left] == [4, 5]


def test_a_session_whose_leaf_is_taken_out_goes_on_from_what_came_before() -> None:
    done = mended(
        said(1, 0, 0, "One?"),
        said(2, 1, 1, "One.", "a"),
        said(3, 0, 2, "Aside?"),
        said(4, 3, 3, "Aside.", "b"),
        said(5, 2, 4, results("nobody asked")),
    )
    assert "set aside" in {edit.action for edit in done.edits}
    assert "One." in sent(done)
    assert "Aside." not in sent(done)


def test_no_random_session_loses_a_text_that_is_not_named(shared: Path) -> None:
    file = shared / "corpus" / "resume-fuzz" / f"{LATEST.version}.jsonl"
    missing: dict[str, list[str]] = {}
    much: list[str] = []
    cases = [json.loads(line) for line in file.read_bytes().splitlines()]
    for case in cases:
        data = case["before"].encode()
        done = repair_bytes(data)
        found = missing_texts(data, done, as_resumed(done.transcript, LATEST) or [])
        if found:
            missing[case["name"]] = found
        if names_much(data, done):
            much.append(case["name"])
    assert missing == {}
    # To name what is lost is no excuse for losing it.
    assert len(much) <= len(cases) * 0.01, much
