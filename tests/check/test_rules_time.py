"""Times that clients cannot use are found; those that are only unusual are not."""

from typing import Any

import pytest
from tests.builders import Session, session
from tests.check.changed_records import changed, found, named


def two() -> Session:
    return session().turn("One.", "First.").turn("Two.", "Second.")


def stamped(stamp: Any, at: int = 2) -> bytes:
    return changed(two(), lambda records: records[at].update(timestamp=stamp))


def test_a_sound_session_has_none() -> None:
    assert named(two(), "time") == []


def test_a_message_without_a_time_is_an_error() -> None:
    assert named(changed(two(), lambda records: records[2].pop("timestamp")), "time") == [("missing", "error")]


@pytest.mark.parametrize("stamp", [None, ["2026"], {}, True])
def test_a_time_that_is_neither_text_nor_number_is_missing(stamp: Any) -> None:
    assert named(stamped(stamp), "time") == [("missing", "error")]


def test_an_abandoned_message_without_a_time_is_an_info() -> None:
    made = two().rewind(1).user("Anew.").assistant("Yes.")
    data = changed(made, lambda records: records[2].pop("timestamp"))
    assert named(data, "time") == [("missing", "info")]


def test_a_record_that_is_no_message_needs_no_time() -> None:
    made = session().turn("One.", "First.").side({"type": "mode", "mode": "normal"})
    assert named(made, "time") == []


@pytest.mark.parametrize("stamp", [1794723881510, 1794723881.5])
def test_a_number_is_an_error(stamp: float) -> None:
    (finding,) = found(stamped(stamp), "time")
    assert (finding.id, finding.severity) == ("time.number", "error")
    assert str(stamp) in finding.message


def test_a_number_is_right_in_the_dialect_that_has_it() -> None:
    assert named(session(dialect="spec-004").turn("One.", "First."), "time") == []


@pytest.mark.parametrize(
    "stamp", ["yesterday", "", "2026-11-15 05:00:01", "2026-13-15T05:00:01.000Z", "20261115T050001Z"]
)
def test_text_of_another_form_is_a_warning(stamp: str) -> None:
    assert ("not-iso", "warning") in named(stamped(stamp), "time")


@pytest.mark.parametrize("ending", ["Z", "+00:00", ".123456Z", "+0000"])
def test_other_forms_of_iso_are_fine(ending: str) -> None:
    moment = two().records()[2]["timestamp"][:19]
    assert named(stamped(f"{moment}{ending}"), "time") == []


def shifted(seconds: int) -> bytes:
    """Return a session that stands still but for its third record, which is that much earlier."""

    def shift(records: list[dict[str, Any]]) -> None:
        for record in records:
            record["timestamp"] = "2026-11-15T05:10:00.000Z"
        back = 600 - seconds
        records[2]["timestamp"] = f"2026-11-15T05:{back // 60:02}:{back % 60:02}.000Z"

    return changed(two(), shift)


def test_more_than_a_minute_back_is_an_info() -> None:
    assert named(shifted(60), "time") == []
    (finding,) = found(shifted(61), "time")
    assert (finding.id, finding.severity) == ("time.backwards", "info")
    assert finding.message == "Timestamp is 61 seconds before the previous one"


@pytest.mark.parametrize("stamp", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_beyond_the_calendar_is_no_time(stamp: str) -> None:
    assert named(stamped(stamp), "time") == [("not-iso", "warning")]
