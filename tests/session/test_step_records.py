"""002, list rules: which sessions a list shows, by their step records, answers and status."""

import json

import pytest
from tests.builders.step_files import session_id, step_lines

from steno.format.lines import read_bytes
from steno.format.records import Record
from steno.session.step_records import (
    StepCounts,
    count_record,
    is_listed,
    is_step_record,
    step_type,
)

TABLE = [
    # step records, answered, running: shown
    *((records, answered, True, True) for records in (0, 4, 5, 9, 10) for answered in (0, 1)),
    *((records, answered, False, False) for records in (0, 1, 4) for answered in (0, 1)),
    *((records, True, False, True) for records in (5, 6, 9)),
    *((records, False, False, False) for records in (5, 6, 9)),
    *((records, answered, False, True) for records in (10, 11, 500) for answered in (0, 1)),
]


@pytest.mark.parametrize(("records", "answered", "running", "shown"), TABLE)
def test_002_list_rule_at_every_limit(
    records: int, answered: bool, running: bool, shown: bool
) -> None:
    assert is_listed(StepCounts(records, bool(answered)), running=running) is shown


def _record(kind: str, content: object, **fields: object) -> Record:
    message = {"role": kind, "content": content}
    made = {"type": kind, "uuid": "u", "message": message, **fields}
    (record,) = read_bytes(json.dumps(made).encode())
    assert isinstance(record, Record)
    return record


TEXT = {"type": "text", "text": "High at noon."}
CALL = {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t", "content": "ok"}


@pytest.mark.parametrize(
    ("kind", "content", "step", "answered"),
    [
        ("user", "Go", "USER_MESSAGE", False),
        ("user", [RESULT], "TOOL_RESULT", False),
        ("user", [TEXT], "USER_MESSAGE", False),
        ("assistant", [TEXT], "ASSISTANT_MESSAGE", True),
        ("assistant", "High at noon.", "ASSISTANT_MESSAGE", True),
        ("assistant", [TEXT, CALL], "TOOL_CALL", False),
        ("assistant", [CALL], "TOOL_CALL", False),
        ("assistant", [{"type": "thinking", "thinking": "Hm."}], "ASSISTANT_MESSAGE", False),
        ("assistant", [{"type": "text", "text": " \n"}], "ASSISTANT_MESSAGE", False),
        ("assistant", [], "ASSISTANT_MESSAGE", False),
    ],
)
def test_002_an_answer_is_an_assistant_message_with_text(
    kind: str, content: object, step: str, answered: bool
) -> None:
    record = _record(kind, content)
    assert step_type(record) == step
    assert count_record(StepCounts(2), record) == StepCounts(3, answered)


def test_002_metadata_and_sidechain_records_are_no_steps() -> None:
    kinds = ("queue-operation", "system", "summary", "file-history-snapshot", "human", "", None)
    assert not any(is_step_record(kind, sidechain=False) for kind in kinds)
    counts = StepCounts(3, answered=False)
    assert count_record(counts, _record("assistant", [TEXT], isSidechain=True)) == counts
    assert count_record(counts, _record("system", [TEXT])) == counts


def test_the_session_files_of_these_tests_have_the_steps_they_are_asked_for() -> None:
    for records in (1, 2, 4, 5, 9, 10, 12):
        for answered in (True, False):
            counts = StepCounts()
            for piece in read_bytes(step_lines(session_id(1), records, answered=answered)):
                assert isinstance(piece, Record)
                counts = count_record(counts, piece)
            assert counts == StepCounts(records, answered and records > 2)
