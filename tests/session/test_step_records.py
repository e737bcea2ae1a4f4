"""002, list rules: which sessions a list shows, by their step records, answers and status."""

import json

import pytest
from tests.builders.step_files import session_id, step_lines

from steno.format.lines import read_bytes
from steno.format.records import Record
from steno.session.session_status import StepCounts, count_record, is_listed, is_step_record, step_type

TABLE: list[tuple[StepCounts, bool, bool]] = [
    # counts, whether it is running, whether it is shown
    *((StepCounts(n, answered), True, True) for n in (0, 4, 5, 9, 10) for answered in (False, True)),
    *((StepCounts(n, answered), False, False) for n in (0, 1, 4) for answered in (False, True)),
    *((StepCounts(n, answered=True), False, True) for n in (5, 6, 9)),
    *((StepCounts(n, answered=False), False, False) for n in (5, 6, 9)),
    *((StepCounts(n, answered), False, True) for n in (10, 11, 500) for answered in (False, True)),
]


@pytest.mark.parametrize("row", TABLE)
def test_002_list_rule_at_every_limit(row: tuple[StepCounts, bool, bool]) -> None:
    counts, running, shown = row
    assert is_listed(counts, running=running) is shown


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
    ("kind", "content", "expected"),
    [
        ("user", "Go", "USER_MESSAGE"),
        ("user", [RESULT], "TOOL_RESULT"),
        ("user", [TEXT], "USER_MESSAGE"),
        ("assistant", [TEXT], "ASSISTANT_MESSAGE, an answer"),
        ("assistant", "High at noon.", "ASSISTANT_MESSAGE, an answer"),
        ("assistant", [TEXT, CALL], "TOOL_CALL"),
        ("assistant", [CALL], "TOOL_CALL"),
        ("assistant", [{"type": "thinking", "thinking": "Hm."}], "ASSISTANT_MESSAGE"),
        ("assistant", [{"type": "text", "text": " \n"}], "ASSISTANT_MESSAGE"),
        ("assistant", [], "ASSISTANT_MESSAGE"),
    ],
)
def test_002_an_answer_is_an_assistant_message_with_text(kind: str, content: object, expected: str) -> None:
    record = _record(kind, content)
    step, _, answer = expected.partition(", ")
    assert step_type(record) == step
    assert count_record(StepCounts(2), record) == StepCounts(3, answered=bool(answer))


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
