"""Each stage of a repair: which edit it makes, which bytes change, and that no others do."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import pytest
from tests.builders import Session, image, png, session, text, thinking, tool

from steno.check.graph import Graph
from steno.check.repair.changes import LONGEST
from steno.check.repair.edits import ASIDE
from steno.check.repair.leaf import mend_leaf
from steno.check.repair.repair import Repaired, repair, repair_bytes
from steno.format.encode import encode_line
from steno.format.source import BytesSource
from steno.session.resume.clients import LATEST
from steno.session.resume.mend import INTERRUPTED
from steno.session.resume.replay import as_resumed, resumed_chain
from steno.session.transcript import load

LOST: Final = "bbbbbbbb-0000-4000-8000-00000000dead"
_Records = list[dict[str, Any]]


def talk() -> Session:
    """Three prompts, one tool call."""
    made = session(seed="stages").user("One?").assistant(tool("Bash", command="ls"))
    made.result("a.py").assistant("One.").user("Two?").assistant("Two.")
    return made.user("Three?").assistant("Three.")


def broken(made: Session, change: Callable[[_Records], object]) -> tuple[_Records, Repaired]:
    """Change a session's records, repair it, and check that only named lines differ."""
    records = made.records()
    change(records)
    lines = [encode_line(record) for record in records]
    done = repair_bytes(b"".join(lines))
    assert done.settled
    named = {edit.line for edit in done.edits if edit.action != "insert"}
    kept = set(done.data.splitlines(keepends=True))
    followed = {
        number
        for number, record in enumerate(records, 1)
        if any(record.get("parentUuid") == edit.uuid for edit in done.edits if edit.uuid)
    }
    for number, line in enumerate(lines, 1):
        assert line in kept or number in named | followed, number
    return [json.loads(line) for line in done.data.splitlines()], done


def told(done: Repaired) -> list[tuple[str, str, int]]:
    return [(edit.finding, edit.action, edit.line) for edit in done.edits]


def at(records: _Records, number: int) -> dict[str, Any]:
    """Return the n-th message of a file."""
    return [each for each in records if each["type"] in ("user", "assistant")][number]


def line_of(records: _Records, number: int) -> int:
    return records.index(at(records, number)) + 1


# Lines


def test_a_torn_tail_is_left_out_and_named() -> None:
    data = talk().bytes()
    done = repair_bytes(data + b'{"type":"user","mess')
    assert done.data == data
    assert told(done) == [("line.torn", "remove", data.count(b"\n") + 1)]
    assert '{"type":"user","mess' in done.lost[0]


def test_zeros_are_left_out_and_are_no_loss() -> None:
    data = talk().bytes()
    first = data.index(b"\n") + 1
    done = repair_bytes(data[:first] + b"\0" * 512 + data[first:])
    assert done.data == data
    assert [edit.finding for edit in done.edits] == ["line.nul-run"]
    assert done.lost == []


def test_glued_records_are_parted_and_nothing_else_changes() -> None:
    data = talk().bytes()
    lines = data.splitlines(keepends=True)
    done = repair_bytes(lines[0][:-1] + b"".join(lines[1:]))
    assert done.data == data
    assert [edit.finding for edit in done.edits] == ["line.glued"]
    assert done.lost == []


@pytest.mark.parametrize(
    ("odd", "finding", "lost"),
    [
        (b'"\xff"', "line.utf8", "bytes that are no UTF-8, in line 1"),
        (b'"\\ud83d"', "line.surrogate", "half a surrogate pair, in line 1"),
        (b"NaN", "line.number", "a number that JSON does not have (NaN or an infinity), in line 1"),
        (b'"\x01"', "line.control", ""),
    ],
)
def test_odd_bytes_are_written_soundly(odd: bytes, finding: str, lost: str) -> None:
    data = talk().bytes()
    done = repair_bytes(b'{"odd":' + odd + b"," + data[1:])
    assert told(done) == [(finding, "change", 1)]
    assert done.lost == ([lost] if lost else [])
    lines = done.data.splitlines(keepends=True)
    assert json.loads(lines[0])
    assert b"".join(lines[1:]) == data[data.index(b"\n") + 1 :]


def test_an_earlier_value_of_a_key_that_is_there_twice_is_named() -> None:
    records = talk().records()
    at(records, 2)["parentUuid"] = LOST
    lines = [encode_line(record) for record in records]
    number = line_of(records, 2)
    lines[number - 1] = b'{"slug":"early","slug":"late",' + lines[number - 1][1:]
    done = repair_bytes(b"".join(lines))
    assert any(f"keys that line {number} has twice" in each for each in done.lost)


# Shape


def test_a_message_without_an_id_gets_one() -> None:
    records, done = broken(talk(), lambda records: at(records, -1).pop("uuid"))
    assert [edit.finding for edit in done.edits] == ["fields.no-uuid"]
    assert len(at(records, -1)["uuid"]) == 36
    assert done.lost == []


def test_a_time_as_a_number_becomes_text() -> None:
    records, done = broken(
        talk(), lambda records: at(records, 1).update(timestamp=1_763_184_000_000)
    )
    assert [edit.finding for edit in done.edits] == ["time.number"]
    assert at(records, 1)["timestamp"] == "2025-11-15T05:20:00.000Z"


def test_a_time_that_cannot_be_read_is_replaced_and_named() -> None:
    _, done = broken(talk(), lambda records: at(records, 1).update(timestamp="yesterday"))
    assert [edit.finding for edit in done.edits] == ["time.not-iso"]
    assert "'yesterday'" in done.lost[0]


def test_a_message_that_says_nothing_is_set_aside_whole() -> None:
    before = talk().records()
    records, done = broken(talk(), lambda records: at(records, 4).update(message=None))
    (aside,) = [each for each in records if each["type"] == ASIDE]
    assert aside["finding"] == "fields.no-message"
    assert aside["record"] == {**at(before, 4), "message": None}
    assert at(records, 4)["parentUuid"] == at(before, 3)["uuid"]
    assert done.lost == []


@pytest.mark.parametrize("dialect", ["spec-000", "spec-004"])
def test_published_dialects_become_what_the_client_writes(dialect: str) -> None:
    made = (
        session(dialect=dialect).user("Where?").assistant(text("Here."), tool("Bash", command="ls"))
    )
    data = made.result("a.py").assistant("There.").bytes()
    assert not as_resumed(load(BytesSource(data)), LATEST)
    done = repair_bytes(data)
    assert {edit.finding for edit in done.edits} >= {"fields.dialect"}
    sent = json.dumps(as_resumed(done.transcript, LATEST))
    assert all(words in sent for words in ("Where?", "Here.", "a.py", "There."))
    assert repair_bytes(done.data).edits == []


# Ids


def test_a_copy_is_left_out_and_the_first_stays() -> None:
    made = talk()
    records, done = broken(made, lambda records: records.append(at(records, 2)))
    assert told(done) == [("ids.duplicate", "remove", len(made.records()) + 1)]
    assert records == made.records()
    assert done.lost == []


def test_the_other_time_of_a_copy_is_named() -> None:
    time = "2026-11-15T05:00:00.000Z"
    _, done = broken(talk(), lambda records: records.append({**at(records, 2), "timestamp": time}))
    assert time in done.lost[0]


def test_of_two_records_with_one_id_the_later_counts_and_the_earlier_is_kept_aside() -> None:
    def conflict(records: _Records) -> None:
        later = at(records, 3)
        earlier = {**later, "message": {**later["message"], "content": [text("Nothing.")]}}
        records.insert(records.index(later), earlier)

    records, done = broken(talk(), conflict)
    assert [edit.finding for edit in done.edits] == ["ids.conflict"]
    (aside,) = [each for each in records if each["type"] == ASIDE]
    assert aside["record"]["message"]["content"] == [text("Nothing.")]
    assert [each for each in records if each["type"] != ASIDE] == talk().records()


# The chain


@pytest.mark.parametrize("number", range(1, 8))
def test_a_lost_parent_is_bridged_to_what_the_client_takes(number: int) -> None:
    made = talk()
    damaged = made.records()
    at(damaged, number)["parentUuid"] = LOST
    data = b"".join(encode_line(record) for record in damaged)
    chain = resumed_chain(load(BytesSource(data)), LATEST) or []
    names = [node.uuid for node in chain]
    place = names.index(at(damaged, number)["uuid"])
    records, done = broken(made, lambda records: at(records, number).update(parentUuid=LOST))
    assert done.edits[0].finding == "chain.dangling"
    assert place > 0
    assert at(records, number)["parentUuid"] == names[place - 1]
    assert records == made.records()


def test_a_sub_agents_lost_parent_is_bridged_inside_the_sub_agent() -> None:
    records = talk().records()
    aside = [{**each, "isSidechain": True, "agentId": "a1"} for each in talk().records()]
    names = {each["uuid"]: f"{n:08x}-0000-4000-8000-000000000000" for n, each in enumerate(aside)}
    for each in aside:
        each["uuid"], each["parentUuid"] = names[each["uuid"]], names.get(each["parentUuid"])
    aside[4]["parentUuid"] = LOST
    done = repair_bytes(b"".join(encode_line(each) for each in [*records, *aside]))
    (edit,) = done.edits
    assert edit.changes[0].after == aside[3]["uuid"]


def test_a_record_that_is_its_own_parent_hangs_on_the_one_before() -> None:
    made = talk()
    records, done = broken(
        made, lambda records: at(records, 5).update(parentUuid=at(records, 5)["uuid"])
    )
    assert [edit.finding for edit in done.edits] == ["chain.self-parent"]
    assert records == made.records()


def test_a_ring_is_cut_at_its_first_record() -> None:
    made = talk()
    records, done = broken(
        made, lambda records: at(records, 4).update(parentUuid=at(records, 6)["uuid"])
    )
    assert done.edits[0].finding == "chain.cycle"
    assert done.edits[0].line == line_of(made.records(), 4)
    assert records == made.records()


def test_many_lost_parents_in_a_file_with_a_link_forward_are_bridged_in_order() -> None:
    made = session(seed="many")
    for number in range(60):
        made.user(f"{number}?").assistant(f"{number}.")

    def blow(records: _Records) -> None:
        for number in range(2, 120, 2):
            at(records, number)["parentUuid"] = LOST
        records.append(records.pop(records.index(at(records, 1))))

    _, done = broken(made, blow)
    assert {edit.finding for edit in done.edits} >= {"chain.dangling"}
    sent = as_resumed(done.transcript, LATEST) or []
    assert len(sent) == 120


# Compaction


def test_a_summary_kept_as_a_title_is_sent_again() -> None:
    made = session(seed="compact").user("Old?").assistant("Old.").compact("All that was.")
    made.user("New?").assistant("New.")

    def as_title(records: _Records) -> None:
        place = next(n for n, each in enumerate(records) if each.get("isCompactSummary"))
        summary = records[place]
        boundary = summary["parentUuid"]
        records[place] = {"type": "summary", "summary": "All that was.", "leafUuid": boundary}
        for each in records:
            if each.get("parentUuid") == summary["uuid"]:
                each["parentUuid"] = None

    records, done = broken(made, as_title)
    assert {edit.finding for edit in done.edits} == {"compaction.title-form"}
    (summary,) = [each for each in records if each.get("isCompactSummary")]
    assert summary["message"] == {"role": "user", "content": "All that was."}
    sent = json.dumps(as_resumed(done.transcript, LATEST))
    assert "All that was." in sent
    assert "Old?" not in sent
    assert done.lost == []


def test_a_boundary_without_a_summary_is_set_aside_and_all_is_sent() -> None:
    made = session(seed="compact").user("Old?").assistant("Old.").compact("All that was.")
    made.user("New?").assistant("New.")

    def without(records: _Records) -> None:
        summary = next(each for each in records if each.get("isCompactSummary"))
        for each in records:
            if each.get("parentUuid") == summary["uuid"]:
                each["parentUuid"] = summary["parentUuid"]
        behind = records.index(summary)
        records.remove(summary)
        answer = next(each for each in records[behind:] if each["type"] == "assistant")
        prompt = next(each for each in records if each.get("uuid") == answer["parentUuid"])
        answer["parentUuid"] = prompt["parentUuid"]
        records.remove(prompt)

    records, done = broken(made, without)
    assert {edit.finding for edit in done.edits} == {"compaction.no-summary"}
    (aside,) = [each for each in records if each["type"] == ASIDE]
    assert aside["record"]["subtype"] == "compact_boundary"
    assert "Old?" in json.dumps(as_resumed(done.transcript, LATEST))
    assert done.lost == []


def test_many_boundaries_without_a_summary_are_all_set_aside() -> None:
    made = session(seed="many").user("First?").assistant("First.")
    for number in range(20):
        made.compact(f"Summary {number}").user(f"{number}?").assistant(f"{number}.")
    hidden: dict[str | None, str | None] = {}
    records: _Records = []
    for record in made.records():
        above = record.get("parentUuid")
        if record.get("isCompactSummary") or (above in hidden and record["type"] == "user"):
            hidden[record["uuid"]] = hidden.get(above, above)
        else:
            records.append({**record, "parentUuid": hidden.get(above, above)})
    done = repair_bytes(b"".join(encode_line(record) for record in records))
    assert done.settled
    sent = json.dumps(as_resumed(done.transcript, LATEST))
    assert all(words in sent for words in ("First?", "First.", *(f"{n}." for n in range(20))))
    assert done.lost == []


# Content


@pytest.mark.parametrize("inside", [False, True])
def test_a_poisoned_image_becomes_a_note_wherever_it_is(*, inside: bool) -> None:
    bad = image(png([[(0, 0, 0)]]))
    bad["source"]["data"] = "no base64!"
    made = session(seed="image")
    if inside:
        made.user("See.").assistant(tool("Read", file_path="/a.png")).result([bad])
    else:
        made.user([text("See."), bad])
    records, done = broken(made.assistant("Seen."), lambda _: None)
    assert [edit.finding for edit in done.edits] == ["message.image"]
    messages = json.dumps([each["message"] for each in records])
    assert "no base64!" not in messages
    assert "image left out" in messages
    assert "put a note in place of what the API refuses" in done.lost[0]


def test_thinking_without_a_signature_is_taken_out_and_named() -> None:
    made = session(seed="think").user("Why?").assistant(thinking("Because."), text("So."))

    def unsign(records: _Records) -> None:
        for record in records:
            for block in record["message"]["content"]:
                if isinstance(block, dict):
                    block.pop("signature", None)

    records, done = broken(made, unsign)
    assert {edit.finding for edit in done.edits} == {"message.unsigned-thinking"}
    kept = [each for each in records if each["type"] == "assistant"]
    assert all(block["type"] != "thinking" for each in kept for block in each["message"]["content"])


def test_a_prompt_of_which_nothing_can_be_sent_gets_words_and_the_loss_is_named() -> None:
    def poison(records: _Records) -> None:
        at(records, 4)["message"]["content"] = [{"type": "hologram", "data": "x"}]

    records, done = broken(talk(), poison)
    assert [edit.finding for edit in done.edits] == ["message.unknown-block"]
    assert at(records, 4)["message"]["content"] == [text("(no content)")]
    assert "hologram" in done.lost[0]
    (change,) = done.edits[0].changes
    assert change.field == "message.content"
    assert change.before == [{"type": "hologram", "data": "x"}]


def test_an_empty_prompt_gets_words() -> None:
    records, done = broken(talk(), lambda records: at(records, 4)["message"].update(content=""))
    assert [edit.finding for edit in done.edits] == ["message.empty-text"]
    assert at(records, 4)["message"]["content"] == [text("(no content)")]
    assert done.lost == []


def test_what_a_change_shows_is_cut_to_what_can_be_read() -> None:
    def poison(records: _Records) -> None:
        long = {"type": "hologram", "data": "x" * 10_000}
        at(records, 4)["message"]["content"] = [text("Fine."), long]

    _, done = broken(talk(), poison)
    (change,) = done.edits[0].changes
    assert isinstance(change.before, str)
    assert len(change.before) == LONGEST + 1
    assert change.after == []


# Tool calls


def without_result(records: _Records) -> None:
    result, answer = at(records, 2), at(records, 3)
    answer["parentUuid"] = result["parentUuid"]
    records.remove(result)


def test_a_call_without_a_result_is_answered_with_an_error() -> None:
    made = talk()
    records, done = broken(made, without_result)
    call = at(made.records(), 1)
    (edit,) = [edit for edit in done.edits if edit.action == "insert"]
    assert (edit.finding, edit.line) == ("tools.unanswered", line_of(made.records(), 1))
    answer = next(each for each in records if each.get("uuid") == edit.uuid)
    (block,) = answer["message"]["content"]
    assert block["tool_use_id"] == call["message"]["content"][0]["id"]
    assert (block["content"], block["is_error"]) == (INTERRUPTED, True)
    assert answer["parentUuid"] == answer["sourceToolAssistantUUID"] == call["uuid"]
    for field in ("sessionId", "cwd", "version", "userType"):
        assert answer[field] == call[field]
    assert answer["timestamp"] > call["timestamp"]
    assert done.lost == []


def test_the_answer_of_a_repair_is_the_same_every_time() -> None:
    records = talk().records()
    without_result(records)
    data = b"".join(encode_line(record) for record in records)
    assert repair_bytes(data).data == repair_bytes(data).data


def test_a_result_without_its_call_is_set_aside_whole() -> None:
    made = talk()
    result = at(made.records(), 2)

    def orphan(records: _Records) -> None:
        call = at(records, 1)
        at(records, 2)["parentUuid"] = call["parentUuid"]
        records.remove(call)

    records, done = broken(made, orphan)
    assert "tools.orphan-result" in {edit.finding for edit in done.edits}
    (aside,) = [each for each in records if each["type"] == ASIDE]
    assert aside["record"]["message"] == result["message"]


def test_a_second_result_in_one_message_is_taken_out_and_named() -> None:
    def twice(records: _Records) -> None:
        content = at(records, 2)["message"]["content"]
        content.append({**content[0], "content": "again"})

    records, done = broken(talk(), twice)
    assert [edit.finding for edit in done.edits] == ["tools.duplicate-result"]
    assert "a second result of a call" in done.lost[0]
    assert [block["content"] for block in at(records, 2)["message"]["content"]] == ["a.py"]


def test_a_result_before_its_call_is_hung_behind_it() -> None:
    made = talk()

    def swap(records: _Records) -> None:
        prompt, call, result, answer = (at(records, n) for n in range(4))
        result["parentUuid"] = prompt["uuid"]
        call["parentUuid"] = result["uuid"]
        answer["parentUuid"] = call["uuid"]

    _, done = broken(made, swap)
    assert "tools.result-before-use" in {edit.finding for edit in done.edits}
    assert "a.py" in json.dumps(as_resumed(done.transcript, LATEST))
    assert done.lost == []


def test_a_call_under_the_id_of_an_earlier_one_gets_its_own() -> None:
    made = session(seed="ids").user("One?").assistant(tool("Bash", command="ls")).result("a.py")
    made.assistant("One.").user("Two?").assistant(tool("Bash", command="ls")).result("b.py")
    made.assistant("Two.")

    def reuse(records: _Records) -> None:
        first = at(records, 1)["message"]["content"][0]["id"]
        at(records, 5)["message"]["content"][0]["id"] = first
        at(records, 6)["message"]["content"][0]["tool_use_id"] = first

    records, done = broken(made, reuse)
    assert {edit.finding for edit in done.edits} == {"tools.duplicate-use"}
    call = at(records, 5)["message"]["content"][0]["id"]
    assert call == at(records, 6)["message"]["content"][0]["tool_use_id"]
    assert call != at(records, 1)["message"]["content"][0]["id"]
    assert done.lost == []


# The beginning and the leaf


def test_a_conversation_that_begins_with_an_answer_gets_a_prompt() -> None:
    made = talk()

    def behead(records: _Records) -> None:
        at(records, 3)["parentUuid"] = None
        del records[: records.index(at(records, 3))]

    records, done = broken(made, behead)
    assert {edit.finding for edit in done.edits} == {"chain.headless"}
    assert at(records, 0)["type"] == "user"
    assert at(records, 1)["parentUuid"] == at(records, 0)["uuid"]


def test_a_session_goes_on_where_it_stood() -> None:
    made = session(seed="leaf").user("One?").assistant("One.").user("Two?").assistant("Two.")
    stood = made.records()[-1]["uuid"]
    data = made.rewind(1).user("Other?").assistant("Other.").bytes()
    graph = Graph(load(BytesSource(data)))
    stage = partial(mend_leaf, client=LATEST, goal=stood)
    done = repair(graph, [stage], lambda chunks: BytesSource(b"".join(chunks)))
    assert told(done) == [("chain.leaf", "insert", data.count(b"\n"))]
    assert done.data.startswith(data)
    assert json.loads(done.data[len(data) :])["leafUuid"] == stood
    chain = resumed_chain(done.transcript, LATEST) or []
    assert chain[-1].uuid == stood


# All together


def test_what_no_stage_touches_stays_byte_for_byte() -> None:
    made = talk()
    records = made.records()
    odd = [b'{"type":"zzz" , "x": 1.0}\n', b"\n"]
    lines = [encode_line(record) for record in records]
    data = odd[0] + b"".join(lines) + odd[1]
    assert repair_bytes(data).edits == []
    done = repair_bytes(data + b'{"torn')
    assert done.data == data
