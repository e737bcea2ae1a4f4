"""Rules about tool calls and results."""

import pytest
from tests.builders import VERSIONS, session, tool
from tests.check.repair_checks import late, line_of, talk
from tests.check.rule_findings import calls, ids, look, messages

from steno.format.encode import encode_line


@pytest.mark.parametrize("version", VERSIONS)
def test_calls_with_their_results_are_sound_in_every_version(version: str) -> None:
    made = session(version).user("Q")
    made.assistant("look", tool("Bash", command="a"), tool("Bash", command="b"))
    made.results("R1", "R2").assistant("A")
    assert ids(look(made), "tools") == []


def test_a_result_whose_call_was_lost_is_an_orphan() -> None:
    made = session().user("Q").assistant("look", tool("Bash", command="a")).result("R")
    made.assistant("A").drop(2)
    assert ids(look(made), "tools") == [("orphan-result", "error", 3)]


def test_a_call_in_the_middle_without_a_result_is_an_error() -> None:
    made = session().user("Q").assistant(tool("Bash", command="a")).user("Q2").assistant("A2")
    found = look(made)
    assert ids(found, "tools") == [("unanswered", "error", 2)]
    assert calls(made)[0] in messages(found, "tools.unanswered")[0]


def test_a_call_at_the_end_without_a_result_is_a_warning() -> None:
    made = session().user("Q").assistant(tool("Bash", command="a"))
    assert ids(look(made), "tools") == [("interrupted", "warning", 2)]


def test_a_second_result_is_an_error() -> None:
    made = session().user("Q").assistant(tool("Bash", command="a")).result("R")
    made.result("R again", of=0).assistant("A")
    assert ids(look(made), "tools") == [("duplicate-result", "error", 4)]


def test_a_result_before_its_call_is_a_warning() -> None:
    made = session().user("Q").assistant(tool("Bash", command="a")).result("R").assistant("A")
    first, call, result, _ = made.uuids()
    made.retarget(2, first).retarget(1, result).retarget(3, call)
    assert ids(look(made), "tools") == [("result-before-use", "warning", 3)]


def test_a_result_behind_another_response_is_an_error() -> None:
    records = talk().records()
    late(records)
    data = b"".join(map(encode_line, records))
    assert ids(look(data), "tools") == [("result-late", "error", line_of(records, 2))]


def test_one_id_on_calls_of_two_responses_is_an_error() -> None:
    made = session().user("Q").assistant(tool("Bash", command="a")).result("R1")
    made.assistant(tool("Bash", command="b")).result("R2").assistant("A")
    first, second = (call.encode() for call in calls(made))
    assert ids(look(made.bytes().replace(second, first)), "tools") == [("duplicate-use", "error", 4)]


@pytest.mark.parametrize("given", [b'"ls"', b"null", b"[1]"])
def test_an_input_that_is_no_object_is_an_error(given: bytes) -> None:
    made = session().user("Q").assistant(tool("Bash", command="a")).result("R").assistant("A")
    data = made.bytes().replace(b'{"command":"a"}', given, 1)
    assert ids(look(data), "tools") == [("input", "error", 2)]


def test_an_input_that_is_missing_is_said_to_be() -> None:
    made = session().user("Q").assistant(tool("Bash", command="a")).result("R").assistant("A")
    data = made.bytes().replace(b',"input":{"command":"a"}', b"", 1)
    assert messages(look(data), "tools.input")[0].endswith("is missing")


def test_an_odd_input_that_was_taken_back_is_mild() -> None:
    made = session().user("Q").assistant("A").user("Q2").assistant(tool("Bash", command="a"))
    made.result("R").rewind(1).user("Q3").assistant("A3")
    data = made.bytes().replace(b'{"command":"a"}', b'"a"', 1)
    assert ids(look(data), "tools") == [("input", "info", 4)]


def test_calls_that_were_compacted_away_do_not_count() -> None:
    made = session().user("Q").assistant(tool("Bash", command="a")).user("Q2").assistant("A2")
    made.compact("All of it.").user("Q3").assistant("A3")
    assert ids(look(made), "tools") == []
