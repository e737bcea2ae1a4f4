"""Lines, shapes and ids: which edit is made, which bytes change, and that no others do."""

import json

import pytest
from tests.builders import session, text, tool
from tests.check.repair_checks import LOST, Records, at, broken, line_of, talk, told

from steno.check.record_graph import RecordGraph
from steno.check.repair.edits import ASIDE_TYPE, EditPlan
from steno.check.repair.repair_job import repair, repair_bytes
from steno.format.encode import encode_line
from steno.format.source import BytesSource
from steno.session.resume.clients import LATEST
from steno.session.resume.replay import as_resumed
from steno.session.transcript import load

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
        (b'"\xff"', "line.utf8", "invalid UTF-8 bytes, in line 1"),
        (b'"\\ud83d"', "line.surrogate", "an unpaired surrogate, in line 1"),
        (b"NaN", "line.number", "a number that JSON does not allow (NaN or an infinity), in line 1"),
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
    assert any(f"duplicate keys in line {number}" in each for each in done.lost)


# Shape


def test_a_message_without_an_id_gets_one() -> None:
    records, done = broken(talk(), lambda records: at(records, -1).pop("uuid"))
    assert [edit.finding for edit in done.edits] == ["fields.no-uuid"]
    assert len(at(records, -1)["uuid"]) == 36
    assert done.lost == []


def test_a_message_whose_id_is_empty_gets_one() -> None:
    records, done = broken(talk(), lambda records: at(records, 2).update(uuid=""))
    assert done.edits[0].finding == "fields.no-uuid"
    assert at(records, 3)["parentUuid"] == at(records, 2)["uuid"]


def test_a_time_as_a_number_becomes_text() -> None:
    records, done = broken(talk(), lambda records: at(records, 1).update(timestamp=1_763_184_000_000))
    assert [edit.finding for edit in done.edits] == ["time.number"]
    assert at(records, 1)["timestamp"] == "2025-11-15T05:20:00.000Z"


def test_a_time_that_cannot_be_read_is_replaced_and_named() -> None:
    _, done = broken(talk(), lambda records: at(records, 1).update(timestamp="yesterday"))
    assert [edit.finding for edit in done.edits] == ["time.not-iso"]
    assert "'yesterday'" in done.lost[0]


def test_a_message_that_says_nothing_is_set_aside_whole() -> None:
    before = talk().records()
    records, done = broken(talk(), lambda records: at(records, 4).update(message=None))
    (aside,) = [each for each in records if each["type"] == ASIDE_TYPE]
    assert aside["finding"] == "fields.no-message"
    assert aside["record"] == {**at(before, 4), "message": None}
    assert at(records, 4)["parentUuid"] == at(before, 3)["uuid"]
    assert done.lost == []


@pytest.mark.parametrize("leaf", [[], {}, 5])
def test_a_leaf_that_is_no_id_does_no_harm_when_a_record_is_set_aside(leaf: object) -> None:
    def blow(records: Records) -> None:
        at(records, 4)["message"] = None
        records.append({"type": "last-prompt", "leafUuid": leaf})

    _, done = broken(talk(), blow)
    assert [edit.finding for edit in done.edits] == ["fields.no-message"]


@pytest.mark.parametrize("dialect", ["spec-000", "spec-004"])
def test_published_dialects_become_what_the_client_writes(dialect: str) -> None:
    made = session(dialect=dialect).user("Where?").assistant(text("Here."), tool("Bash", command="ls"))
    data = made.result("a.py").assistant("There.").bytes()
    assert not as_resumed(load(BytesSource(data)), LATEST)
    done = repair_bytes(data)
    assert {edit.finding for edit in done.edits} >= {"fields.dialect"}
    sent = json.dumps(as_resumed(done.transcript, LATEST))
    assert all(words in sent for words in ("Where?", "Here.", "a.py", "There."))
    assert repair_bytes(done.data).edits == []


def test_a_main_file_of_nothing_but_a_sub_agents_messages_loses_the_marks() -> None:
    made = talk()

    def mark(records: Records) -> None:
        for record in records:
            record["isSidechain"] = True

    records, done = broken(made, mark)
    assert {edit.finding for edit in done.edits} == {"sidechain.all"}
    assert records == made.records()
    assert as_resumed(done.transcript, LATEST)


def test_one_message_of_the_main_conversation_keeps_the_marks_of_the_others() -> None:
    def mark(records: Records) -> None:
        for record in records[1:]:
            record["isSidechain"] = True

    _, done = broken(talk(), mark)
    assert "sidechain.all" not in {edit.finding for edit in done.edits}


@pytest.mark.parametrize("message", [5, "words", [], None])
def test_a_record_without_a_type_that_says_nothing_is_set_aside(message: object) -> None:
    def strip(records: Records) -> None:
        record = at(records, 4)
        record["message"] = message
        del record["type"]

    records, done = broken(talk(), strip)
    assert "fields.no-type" in {edit.finding for edit in done.edits}
    assert all("type" in each for each in records)
    assert done.lost == []


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


def test_a_copy_with_another_parent_goes_and_the_later_one_stays() -> None:
    first = at(talk().records(), 1)["uuid"]
    moved = {**at(talk().records(), 3), "parentUuid": first}
    records, done = broken(talk(), lambda records: records.append(moved))
    assert [edit.finding for edit in done.edits if edit.action == "remove"] == ["ids.duplicate"]
    (kept,) = [each for each in records if each.get("uuid") == moved["uuid"]]
    assert kept["parentUuid"] == first
    assert "parentUuid" in done.lost[0]


def test_of_two_records_with_one_id_the_later_counts_and_the_earlier_is_kept_aside() -> None:
    def conflict(records: Records) -> None:
        later = at(records, 3)
        earlier = {**later, "message": {**later["message"], "content": [text("Nothing.")]}}
        records.insert(records.index(later), earlier)

    records, done = broken(talk(), conflict)
    assert [edit.finding for edit in done.edits] == ["ids.conflict"]
    (aside,) = [each for each in records if each["type"] == ASIDE_TYPE]
    assert aside["record"]["message"]["content"] == [text("Nothing.")]
    assert [each for each in records if each["type"] != ASIDE_TYPE] == talk().records()


@pytest.mark.parametrize("early", [False, True])
def test_a_snapshot_under_the_id_of_a_message_gives_it_up(*, early: bool) -> None:
    made = talk()
    message = at(made.records(), 2)
    snapshot = {"type": "file-history-snapshot", "messageId": message["uuid"], "snapshot": {}}

    def collide(records: Records) -> None:
        place = 0 if early else len(records)
        records.insert(place, {**snapshot, "uuid": message["uuid"]})

    records, done = broken(made, collide)
    assert {edit.finding for edit in done.edits} == {"ids.snapshot-collision"}
    assert snapshot in records
    assert [each for each in records if each != snapshot] == made.records()
    assert done.lost == []


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


def test_a_stage_that_does_the_same_again_and_again_is_stopped() -> None:
    graph = RecordGraph(load(BytesSource(talk().bytes())))
    runs: list[int] = []

    def restless(drafts: EditPlan) -> None:
        runs.append(1)
        node = drafts.transcript.nodes[0]
        drafts.rewrite(node, "line.utf8", "write it again")

    done = repair(graph, [restless], lambda chunks: BytesSource(b"".join(chunks)))
    assert not done.settled
    assert len(runs) == 2
