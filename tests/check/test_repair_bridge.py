"""What a record is hung on whose parent is of no use."""

import pytest
from tests.check.record_trees import calls, data_of, mended, parents, results, said, sent

from steno.check.checkup import check
from steno.check.record_graph import Ancestry, RecordGraph
from steno.check.repair import chain_repairs
from steno.format.source import BytesSource
from steno.session.transcript import Node, load

LOST = 999_999


def test_calls_that_hang_below_each_others_results_come_to_an_end() -> None:
    done = mended(
        said(1, 0, 0, "One?"),
        said(2, LOST, 10, results("first")),
        said(3, LOST, 11, results("second")),
        said(4, 2, 12, calls("second"), "a"),
        said(5, 3, 13, calls("first"), "b"),
        said(6, 5, 9, "Two?"),
    )
    assert parents(done)[2] == 5


def test_a_result_behind_a_compaction_is_not_hung_on_a_call_before_it() -> None:
    boundary = {
        **said(5, 0, 10, ""),
        "type": "system",
        "subtype": "compact_boundary",
        "content": "Conversation compacted",
        "compactMetadata": {"trigger": "auto", "preTokens": 1},
    }
    del boundary["message"]
    done = mended(
        said(1, 0, 0, "One?"),
        said(2, 1, 1, calls("first"), "a"),
        said(3, 2, 2, results("first")),
        said(4, 3, 3, "Done.", "b"),
        boundary,
        said(6, 5, 11, "Summary of it all.", isCompactSummary=True),
        said(7, LOST, 12, results("first")),
        said(8, 7, 13, "Going on.", "c"),
        said(9, 8, 14, "Next?"),
    )
    assert parents(done)[8] == 6
    assert "Summary of it all." in sent(done)
    assert "One?" not in sent(done)
    assert done.left == ()


def test_nothing_is_cut_for_a_result_that_goes_to_its_call() -> None:
    done = mended(
        said(1, 0, 0, "One?"),
        said(2, 1, 1, calls("first"), "a"),
        said(3, 6, 2, "Note."),
        said(4, LOST, 3, results("first")),
        said(5, 4, 4, "A.", "b"),
        said(6, 5, 5, "Two?"),
        said(7, 3, 6, "B.", "c"),
    )
    (edit,) = done.edits
    assert edit.what == "relink to its tool call: parent missing"
    assert parents(done) == {1: 0, 2: 1, 3: 6, 4: 2, 5: 4, 6: 5, 7: 3}


def test_a_first_record_is_not_cut_off_for_a_result_that_goes_to_its_call() -> None:
    done = mended(
        said(1, 3, 2, "One?"),
        said(2, 3, 1, "Nobody waits for this."),
        said(3, LOST, 3, results("first")),
        said(4, 0, 4, "Else?"),
        said(5, 4, 5, calls("first"), "a"),
        said(6, 1, 6, "B.", "b"),
    )
    assert parents(done)[3] == 5
    assert parents(done)[1] == 3


def test_of_two_calls_of_one_id_a_result_takes_the_one_that_came_before_it() -> None:
    records = [
        said(1, 0, 0, "One?"),
        said(2, 1, 1, calls("first"), "a"),
        said(3, LOST, 2, results("first")),
        said(4, 3, 3, "First.", "b"),
        said(5, 4, 4, "Two?"),
        said(6, 5, 5, "Second.", "c"),
        said(7, 1, 6, calls("first"), "d"),
        said(8, 7, 7, results("first")),
        said(9, 8, 8, "Other branch.", "e"),
        said(10, 6, 9, "Three?"),
        said(11, 10, 10, "Third.", "f"),
    ]
    done = mended(*records)
    assert parents(done)[3] == 2
    assert done.left == ()
    assert all(word in sent(done) for word in ("First.", "Second.", "Third."))


def test_of_two_calls_of_one_id_a_result_takes_the_one_that_leads_to_where_it_stood() -> None:
    done = mended(
        said(1, 0, 0, "One?"),
        said(2, 1, 1, calls("first"), "a"),
        said(3, 2, 4, "Wait."),
        said(4, 1, 2, calls("first"), "b"),
        said(5, LOST, 5, results("first")),
        said(6, 5, 6, "Done.", "c"),
    )
    assert parents(done)[5] == 2


@pytest.mark.parametrize("own", [False, True])
def test_an_answer_does_not_begin_a_file_that_a_prompt_begins(*, own: bool) -> None:
    done = mended(
        said(1, 2, 5, "Two?"),
        said(2, 2 if own else LOST, 3, "One.", "a"),
        said(3, 0, 6, "Three?"),
        said(4, 3, 7, "Three.", "b"),
    )
    assert parents(done)[1] == 0
    counts = check(BytesSource(done.data), name="11111111-1111-4111-8111-111111111111")
    assert {severity for _, severity in counts.findings.counts} <= {"info", "warning"}


def test_a_ring_is_cut_where_the_times_tell_of_a_prompt_that_came_first() -> None:
    first = said(1, 0, 0, "One?")
    done = mended(
        first,
        said(2, 1, 1, "One.", "a"),
        said(3, 2, 2, "Two?"),
        said(4, 3, 3, "Two.", "b"),
        said(5, 4, 4, "Three?"),
        said(6, 5, 5, "Three.", "c"),
        {**first, "parentUuid": said(0, 4, 0, "")["parentUuid"]},
    )
    assert parents(done) == {1: 0, 2: 1, 3: 2, 4: 3, 5: 4, 6: 5}
    assert done.left == ()


def test_a_first_prompt_with_a_wrong_clock_still_begins() -> None:
    done = mended(
        said(1, LOST, 600, "One?"), said(2, 1, 1, "One.", "a"), said(3, 2, 2, "Two?"), said(4, 3, 3, "Two.", "b")
    )
    assert parents(done) == {1: 0, 2: 1, 3: 2, 4: 3}


@pytest.mark.parametrize("ring", [False, True])
def test_a_file_from_end_to_beginning_is_gone_through_a_few_times(
    monkeypatch: pytest.MonkeyPatch, *, ring: bool
) -> None:
    count = 400
    records = [said(1, count if ring else LOST, 0, "1?")]
    records += [said(n, n - 1, n, f"{n}", f"m{n}" if n % 2 == 0 else "") for n in range(2, count + 1)]
    compared = 0
    plain = chain_repairs._is_earlier

    def counted(node: Node, other: Node) -> bool:
        nonlocal compared
        compared += 1
        return plain(node, other)

    monkeypatch.setattr(chain_repairs, "_is_earlier", counted)
    done = mended(*records[::-1])
    assert compared < 8 * count
    assert parents(done) == {n: n - 1 for n in range(1, count + 1)}


def test_what_hangs_on_what_is_known_in_rings_and_below_what_is_lost() -> None:
    data = data_of(
        [
            said(1, 0, 0, "One?"),
            said(2, 1, 1, "One.", "a"),
            said(3, LOST, 2, "Two?"),
            said(4, 5, 3, "Three?"),
            said(5, 4, 4, "Four?"),
            said(6, 5, 5, "Five?"),
            said(7, 1, 5, "Six?"),
        ]
    )
    graph = RecordGraph(load(BytesSource(data)))
    found = Ancestry(graph.members, graph.by_uuid)
    names = [None, *(said(n, 0, 0, "")["uuid"] for n in (1, 2, 3, 4, 5, 6, 7, LOST))]
    above = {n: {m for m, name in enumerate(names) if found.descends_from(names[n], name)} for n in range(8)}
    assert above == {0: {0}, 1: {0, 1}, 2: {0, 1, 2}, 3: {3, 8}, 4: {4, 5}, 5: {4, 5}, 6: {4, 5, 6}, 7: {0, 1, 7}}
