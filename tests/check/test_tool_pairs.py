"""Calls and results that do not pair up."""

import pytest
from tests.builders import Session, session, text, tool
from tests.check.record_trees import calls as calls_of
from tests.check.record_trees import data_of, results, said
from tests.check.rule_findings import calls, joined

from steno.check.record_graph import ToolBlock, ToolPairs, pair_tools
from steno.format.source import BytesSource
from steno.session.transcript import load


def pairs(made: Session | bytes) -> ToolPairs:
    data = made if isinstance(made, bytes) else made.bytes()
    return pair_tools(load(BytesSource(data)).nodes)


def places(blocks: tuple[ToolBlock, ...]) -> list[tuple[int, str]]:
    return [(block.node.index, block.id) for block in blocks]


def test_answered_calls_are_sound() -> None:
    made = session().user("Q").assistant(tool("Bash", command="a"), tool("Bash", command="b"))
    made.results("R1", "R2").assistant("A")
    assert pairs(made).is_complete


def test_nothing_is_sound() -> None:
    assert pair_tools([]).is_complete


def test_a_call_at_the_end_is_interrupted() -> None:
    made = session().user("Q").assistant(text("look"), tool("Bash", command="a"))
    found = pairs(made)
    assert places(found.interrupted) == [(2, calls(made)[0])]
    assert found.open == ()


def test_one_of_two_calls_of_the_last_response_is_interrupted() -> None:
    made = session().user("Q").assistant(tool("Bash", command="a"), tool("Bash", command="b"))
    made.result("R2", of=1)
    assert places(pairs(made).interrupted) == [(1, calls(made)[0])]


def test_a_call_that_a_prompt_follows_is_open() -> None:
    made = session().user("Q").assistant(tool("Bash", command="a")).user("Q2")
    found = pairs(made)
    assert places(found.open) == [(1, calls(made)[0])]
    assert found.interrupted == ()


def test_a_call_that_another_response_follows_is_open() -> None:
    made = session().user("Q").assistant(tool("Bash", command="a")).assistant("A")
    assert places(pairs(made).open) == [(1, calls(made)[0])]


def test_a_result_without_a_call_is_an_orphan() -> None:
    made = session().user("Q").assistant(tool("Bash", command="a")).result("R").assistant("A")
    assert places(pairs(made.drop(1)).orphans) == [(1, calls(made)[0])]


def test_the_second_result_of_a_call_is_repeated() -> None:
    made = session().user("Q").assistant(tool("Bash", command="a")).result("R")
    made.result("R again", of=0).assistant("A")
    found = pairs(made)
    assert places(found.repeated) == [(3, calls(made)[0])]
    assert found.orphans == ()


def test_a_result_before_its_call_is_early() -> None:
    made = session().user("Q").assistant(tool("Bash", command="a")).result("R").assistant("A")
    lines = made.lines()
    swapped = joined(lines[0], lines[2], lines[1], lines[3])
    found = pairs(swapped)
    assert places(found.early) == [(1, calls(made)[0])]
    assert found.orphans == found.open == ()


def test_an_id_that_two_responses_use_is_reused() -> None:
    made = session().user("Q").assistant(tool("Bash", command="a")).result("R1")
    made.assistant(tool("Bash", command="b")).result("R2").assistant("A")
    first, second = calls(made)
    found = pairs(made.bytes().replace(second.encode(), first.encode()))
    assert places(found.reused) == [(3, first)]
    assert found.repeated == found.open == ()


def test_a_call_whose_id_is_used_again_before_it_was_answered_is_open() -> None:
    made = session().user("Q").assistant(tool("Bash", command="a")).user("Q2")
    made.assistant(tool("Bash", command="b")).result("R2").assistant("A")
    first, second = calls(made)
    found = pairs(made.bytes().replace(second.encode(), first.encode()))
    assert places(found.open) == [(1, first)]


@pytest.mark.parametrize("lines", [1, 2])
def test_an_id_that_two_calls_of_one_response_have_is_reused(lines: int) -> None:
    told = [said(2, 1, 1, calls_of("a", "a"), "m")]
    if lines == 2:
        told = [said(2, 1, 1, calls_of("a"), "m"), said(3, 2, 1, calls_of("a"), "m")]
    found = pairs(data_of([said(1, 0, 0, "Q"), *told, said(4, 3, 2, results("a"))]))
    assert places(found.reused) == [(lines, "a")]


def test_a_copy_of_a_line_repeats_no_call() -> None:
    made = session().user("Q").assistant(tool("Bash", command="a"))
    lines = made.lines()
    assert pairs(joined(*lines, lines[1])).reused == ()
