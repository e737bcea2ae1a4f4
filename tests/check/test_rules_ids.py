"""Rules about ids."""

import pytest
from tests.builders import Session, session
from tests.check.rule_findings import NAME, ids, joined, look, messages


def plain() -> Session:
    return session().user("Q1").assistant("A1").user("Q2").assistant("A2")


def test_a_plain_session_has_sound_ids() -> None:
    assert ids(look(plain()), "ids") == []


def test_a_record_that_is_there_twice_is_a_warning_on_the_first() -> None:
    assert ids(look(plain().duplicate_uuid(1)), "ids") == [("duplicate", "warning", 2)]


def test_the_same_words_at_another_time_are_a_duplicate() -> None:
    made = plain().duplicate_uuid(1, timestamp="2026-11-15T12:00:00.000Z")
    assert ids(look(made), "ids") == [("duplicate", "warning", 2)]


def test_a_duplicate_under_another_parent_says_so() -> None:
    found = look(plain().duplicate_uuid(3, parentUuid=None))
    assert messages(found, "ids.duplicate") == ["The same record is also on line 5, with a different parent"]


def test_other_words_under_one_id_are_an_error() -> None:
    made = plain().duplicate_uuid(0, message={"role": "user", "content": "other"})
    assert ids(look(made), "ids") == [("conflict", "error", 1)]


def test_other_words_under_one_id_are_mild_where_they_were_compacted_away() -> None:
    made = session().user("Q1").assistant("A1")
    twice = made.lines()[0].replace(b"Q1", b"Q0")
    made.compact("All of it.").user("Q2").assistant("A2")
    assert ids(look(twice + made.bytes()), "ids")[0] == ("conflict", "info", 1)


def test_a_snapshot_with_the_id_of_a_message_is_a_warning() -> None:
    made = plain()
    made.side({"type": "file-history-snapshot", "uuid": made.uuids()[0], "messageId": "x"})
    assert ids(look(made), "ids") == [("snapshot-collision", "warning", 1)]


def test_a_snapshot_that_names_its_message_is_sound() -> None:
    made = plain()
    made.snapshot(made.uuids()[0])
    assert ids(look(made), "ids") == []


def test_ids_that_are_no_uuids_are_told_once() -> None:
    made = plain()
    data = made.bytes()
    for number, uuid in enumerate(made.uuids()):
        data = data.replace(uuid.encode(), b"record-%d" % number)
    found = look(data, made.session_id)
    assert ids(found, "ids") == [("bad-uuid", "info", 1)]
    assert messages(found, "ids.bad-uuid") == ["Record ID 'record-0' and 3 more are not UUIDs"]


@pytest.mark.parametrize(("name", "found"), [("sess-001", [("file-name", "error", 1)]), ("x", [])])
def test_only_a_session_id_is_a_bad_file_name(name: str, found: list[tuple[str, str, int]]) -> None:
    made = plain()
    data = made.bytes().replace(made.session_id.encode(), b"sess-001")
    assert ids(look(data, name), "ids") == found


def test_records_of_another_session_than_the_file_are_told() -> None:
    assert ids(look(plain(), NAME), "ids") == [("session-mismatch", "info", 1)]


def test_records_of_two_sessions_are_told() -> None:
    made = plain()
    lines = made.lines()
    lines[0] = lines[0].replace(made.session_id.encode(), NAME.encode())
    assert ids(look(joined(*lines), made.session_id), "ids") == [("several-sessions", "info", 2)]


def test_records_without_a_session_are_sound() -> None:
    made = plain()
    data = made.bytes().replace(b'"sessionId"', b'"formerly"')
    assert ids(look(data), "ids") == []


def test_a_single_record_of_another_session_is_told_wherever_it_stands() -> None:
    made = session().turn("One.", "First.").turn("Two.", "Second.").turn("Three.", "Third.")
    lines = made.lines()
    lines[1] = lines[1].replace(made.session_id.encode(), NAME.encode())
    found = look(joined(*lines), made.session_id)
    assert ids(found, "ids") == [("several-sessions", "info", 2)]
    lines[3] = lines[3].replace(made.session_id.encode(), NAME[::-1].encode())
    found = look(joined(*lines), made.session_id)
    assert messages(found, "ids.several-sessions") == [
        f"Records have the session IDs {made.session_id!r}, {NAME!r} and 1 more"
    ]
