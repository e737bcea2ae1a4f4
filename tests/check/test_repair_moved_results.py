"""Results that stand elsewhere than behind their call."""

import pytest
from tests.check.record_trees import calls, data_of, mended, parents, results, said, sent

from steno.check.repair.repair_job import repair_bytes


@pytest.mark.parametrize("count", [3, 450])
def test_results_beside_their_calls_are_hung_on_them_all_at_once(count: int) -> None:
    records = [said(1, 0, 0, "Go")]
    for n in range(1, 2 * count, 2):
        records.append(said(n + 1, n, n, calls(f"t{n}"), f"m{n}"))
        records.append(said(n + 2, n, n + 1, results(f"t{n}")))
    records.append(said(2 * count + 2, 2 * count + 1, 2 * count, "End", "end"))
    done = repair_bytes(data_of(records))
    assert done.settled
    assert not done.endless
    assert parents(done) == {n: n - 1 for n in range(1, 2 * count + 3)}
    assert {edit.what for edit in done.edits} == {"relink the tool result to its call"}


def test_two_results_that_lead_to_each_others_calls_make_no_ring() -> None:
    done = mended(
        said(1, 0, 0, "Go"),
        said(2, 1, 1, results("a")),
        said(3, 2, 2, results("b")),
        said(4, 3, 3, calls("a"), "m1"),
        said(5, 2, 4, calls("b"), "m2"),
        said(6, 3, 5, "End", "m3"),
    )
    seen = parents(done)
    at, way = 6, list[int]()
    while at:
        assert at not in way
        way.append(at)
        at = seen[at]
    assert {1, 6} <= set(way)


def test_late_results_of_one_response_on_one_line_move_together() -> None:
    done = mended(
        said(1, 0, 0, "One?"),
        said(2, 1, 1, calls("a", "b"), "m1"),
        said(3, 2, 2, "Two?"),
        said(4, 3, 3, "Two.", "m2"),
        said(5, 4, 4, results("a", "b")),
        said(6, 5, 5, "End.", "m3"),
    )
    assert [(edit.finding, edit.action) for edit in done.edits] == [("tools.result-late", "change")]
    assert parents(done) == {1: 0, 2: 1, 3: 2, 4: 3, 5: 2, 6: 4}
    assert all(word in sent(done) for word in ("out of a", "out of b", "Two.", "End."))


@pytest.mark.parametrize("own", [False, True])
def test_late_results_of_two_responses_on_one_line_part(*, own: bool) -> None:
    last = [said(9, 6, 6, calls("c"), "m5")] if own else []
    done = mended(
        said(1, 0, 0, "One?"),
        said(2, 1, 1, calls("a"), "m1"),
        said(3, 2, 2, "Two?"),
        said(4, 3, 3, calls("b"), "m2"),
        said(5, 4, 4, "Three?"),
        said(6, 5, 5, "Three.", "m3"),
        *last,
        said(7, 9 if own else 6, 7, results("a", "b", *("c" if own else ()))),
        said(8, 7, 8, "End.", "m4"),
    )
    assert {edit.finding for edit in done.edits} == {"tools.result-late"}
    assert done.lost == []
    assert all(f"out of {each}" in sent(done) for each in ("a", "b", *("c" if own else ())))
    assert all(word in sent(done) for word in ("Two?", "Three.", "End."))


def test_a_result_that_nothing_but_its_call_hangs_on_is_not_called_one_of_no_call() -> None:
    done = mended(said(1, 0, 0, results("a")), said(2, 1, 1, calls("a"), "m1"), said(3, 2, 2, "Done.", "m2"))
    aside = [edit for edit in done.edits if edit.action == "set aside"]
    assert [edit.finding for edit in aside] == ["tools.result-before-use"]
    assert "of no call" not in aside[0].what


@pytest.mark.parametrize("lines", [1, 2])
@pytest.mark.parametrize("answers", [1, 2])
def test_a_call_under_the_id_of_another_one_of_its_response_gets_its_own(lines: int, answers: int) -> None:
    answered = [said(4 + n, 3, 4 + n, results("a")) for n in range(answers)]
    called = (
        [said(2, 1, 1, "Wait.", "m1"), said(3, 2, 2, calls("a", "a"), "m1")]
        if lines == 1
        else [said(2, 1, 1, calls("a"), "m1"), said(3, 2, 2, calls("a"), "m1")]
    )
    done = mended(said(1, 0, 0, "One?"), *called, *answered, said(9, 3 + answers, 9, "Done.", "m2"))
    assert done.edits[0].finding == "tools.duplicate-use"
    assert done.lost == []
    assert not [edit for edit in done.edits if edit.action == "set aside"]
    assert sent(done).count("out of a") == answers
    assert sent(done).count('"tool_use"') == 2
