"""Each way to break a file breaks it in that way and in no other."""

import json

import pytest
from tests.builders import Session, session


def four() -> Session:
    return session("2.1.42").turn("One.", "First.").turn("Two.", "Second.")


def sound() -> list[bytes]:
    return four().lines()


def test_a_sound_session_ends_every_line_with_a_newline() -> None:
    assert four().bytes() == b"".join(line + b"\n" for line in sound())


def test_a_torn_tail_cuts_the_last_line_and_its_newline() -> None:
    assert four().torn_tail(10).lines() == [*sound()[:3], sound()[3][:-10]]
    assert not four().torn_tail(10).bytes().endswith(b"\n")
    half = len(sound()[3]) - len(sound()[3]) // 2
    assert four().torn_tail().lines()[3] == sound()[3][:half]


def test_the_final_newline_can_be_left_out() -> None:
    assert four().no_final_newline().bytes() == four().bytes()[:-1]


def test_glue_joins_two_records_in_one_line() -> None:
    assert four().glue(1).lines() == [sound()[0], sound()[1] + sound()[2], sound()[3]]


def test_a_splice_cuts_a_record_and_lets_the_next_begin_there() -> None:
    assert four().splice(1, 40).lines() == [sound()[0], sound()[1][:40] + sound()[2], sound()[3]]


def test_a_nul_run_stands_before_its_record() -> None:
    assert four().nul_run(2, 16).lines()[2] == b"\0" * 16 + sound()[2]


def test_bom_and_crlf_leave_the_records_alone() -> None:
    data = four().bom().crlf().bytes()
    assert data.startswith(b"\xef\xbb\xbf{")
    assert data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n") == four().bytes()
    assert data.count(b"\r\n") == 4


def test_bad_utf8_cannot_be_decoded() -> None:
    line = four().bad_utf8(1).lines()[1]
    with pytest.raises(UnicodeDecodeError):
        line.decode()
    assert line.replace(b"\xff\xc3", b"") == sound()[1]


def test_a_lone_surrogate_is_json_but_no_text() -> None:
    line = four().lone_surrogate(1).lines()[1]
    assert b"\\ud83d" in line
    with pytest.raises(UnicodeEncodeError):
        json.dumps(json.loads(line), ensure_ascii=False).encode()


def test_a_duplicate_key_is_said_twice_with_another_value() -> None:
    pairs: list[tuple[str, object]] = []
    json.loads(four().duplicate_key(0).lines()[0], object_pairs_hook=pairs.extend)
    values = [value for key, value in pairs if key == "permissionMode"]
    assert values == ["default", "again"]


def test_a_huge_number_is_beyond_64_bits() -> None:
    assert json.loads(four().huge_int(0).lines()[0])["huge"] > 2**64


def test_depth_is_as_deep_as_asked() -> None:
    assert b'"deep":' + b"[" * 50 + b"]" * 50 in four().deep(0, 50).lines()[0]


def test_an_oversize_line_has_the_size_asked_for() -> None:
    line = four().oversize(2, 100_000).lines()[2]
    assert len(line) == 100_000
    assert json.loads(line)["uuid"] == four().uuids()[2]


def test_foreign_and_blank_lines_stand_before_their_record() -> None:
    lines = four().not_object(1).blank(3).lines()
    assert lines == [sound()[0], b'["no","object"]', *sound()[1:3], b"", sound()[3]]


def test_a_dropped_record_leaves_its_child_dangling() -> None:
    assert four().drop(1).lines() == [sound()[0], *sound()[2:]]


def test_a_retargeted_record_names_another_parent() -> None:
    line = json.loads(four().retarget(2, "nobody").lines()[2])
    assert line == {**four().records()[2], "parentUuid": "nobody"}


def test_a_cycle_has_no_root() -> None:
    records = [json.loads(line) for line in four().cycle().lines()]
    assert records[0]["parentUuid"] == records[-1]["uuid"]


def test_a_duplicate_uuid_comes_again_at_the_end_with_other_words() -> None:
    lines = four().duplicate_uuid(1, gitBranch="other").lines()
    assert json.loads(lines[-1]) == {**four().records()[1], "gitBranch": "other"}
    assert lines[:-1] == sound()


def test_line_numbers_stay_those_of_the_records_whatever_came_before() -> None:
    lines = four().drop(0).blank(1).glue(1).retarget(3, None).lines()
    assert lines[:2] == [b"", sound()[1] + sound()[2]]
    assert json.loads(lines[2])["parentUuid"] is None


def test_records_are_those_before_the_damage() -> None:
    assert four().drop(0).torn_tail().records() == four().records()
    assert four().drop(0).heal().bytes() == four().bytes()
