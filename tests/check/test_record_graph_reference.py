"""How records hang together, held against plain definitions that look at everything every time."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.check.small_sessions import UNKNOWN, call, data_of, note, output, prompt, reply, uuid

from steno.check.record_graph import Ancestry, RecordGraph
from steno.format.source import BytesSource
from steno.session.transcript import Node, load

_MOST = 7


def _made(number: int, kind: str) -> dict[str, Any]:
    match kind:
        case "prompt":
            return prompt(number)
        case "reply":
            return reply(number)
        case "call":
            return call(number, f"t{number}")
        case "output":
            return output(number, f"t{number - 1}")
        case _:
            return note(number, kind)


_KINDS = st.sampled_from(["prompt", "reply", "call", "output", "system", "attachment", "progress", "zzz"])


@st.composite
def _sessions(draw: st.DrawFn) -> RecordGraph:
    """A few records that hang on each other, on nothing, on themselves, or on what is not there."""
    count = draw(st.integers(1, _MOST))
    records: list[dict[str, Any]] = []
    for number in range(1, count + 1):
        made = _made(number, draw(_KINDS))
        above = draw(st.integers(-1, count))
        made["parentUuid"] = UNKNOWN if above < 0 else uuid(above) if above else None
        made["isSidechain"] = draw(st.sampled_from([False, False, False, True]))
        if draw(st.integers(0, 9)) == 0:
            made["logicalParentUuid"] = uuid(draw(st.integers(1, count)))
        if draw(st.integers(0, 9)) == 0:
            made["uuid"] = uuid(draw(st.integers(1, count)))
        records.append(made)
    return RecordGraph(load(BytesSource(data_of(records))))


def _members(graph: RecordGraph) -> list[Node]:
    """Return the last record of each id, in the order of the file."""
    last = {node.uuid: node for node in graph.transcript.nodes if node.uuid}
    return sorted(last.values(), key=lambda node: node.index)


def _above(graph: RecordGraph, node: Node) -> Node | None:
    return next((each for each in _members(graph) if each.uuid == node.parent), None)


def _way_up(graph: RecordGraph, node: Node) -> list[Node]:
    """Return a record and all that it hangs on, until nothing is above or one comes again."""
    way = [node]
    while (higher := _above(graph, way[-1])) is not None and higher not in way:
        way.append(higher)
    return way


@settings(max_examples=60)
@given(_sessions())
def test_records_are_sorted_by_what_their_parents_are_like(graph: RecordGraph) -> None:
    members = _members(graph)
    assert graph.members == members
    named = [node for node in members if node.parent is not None]
    assert graph.dangling == [node for node in named if _above(graph, node) is None]
    assert graph.self_parents == [node for node in named if _above(graph, node) is node]
    assert graph.forward == [
        node for node in named if (above := _above(graph, node)) is not None and above.index > node.index
    ]
    spoken = [node for node in members if node.converses]
    assert graph.roots == [node for node in spoken if node.parent is None]
    first = next((node for node in spoken if node.is_message), None)
    assert graph.cut_off == [
        node for node in graph.roots if node is not first and (node.type == "assistant" or node.is_result)
    ]
    everything = [node for node in graph.transcript.nodes if node.uuid]
    assert graph.duplicates == [(node, graph.by_uuid[node.uuid or ""]) for node in everything if node not in members]


@settings(max_examples=60)
@given(_sessions())
def test_rings_are_those_that_walking_up_comes_round_in(graph: RecordGraph) -> None:
    rings: set[frozenset[int]] = set()
    for node in _members(graph):
        way = _way_up(graph, node)
        if len(way) > 1 and _above(graph, way[-1]) is node:
            rings.add(frozenset(each.index for each in way))
    assert {frozenset(each.index for each in ring) for ring in graph.cycles} == rings
    assert len(graph.cycles) == len(rings)
    for ring in graph.cycles:
        assert all(_above(graph, low) is high for low, high in pairwise([*ring, ring[0]]))


@settings(max_examples=60)
@given(_sessions())
def test_one_record_leads_to_another_if_walking_up_comes_by_it(graph: RecordGraph) -> None:
    ancestry = Ancestry(graph.members, graph.by_uuid)
    for node in graph.members:
        way = _way_up(graph, node)
        for other in graph.members:
            assert ancestry.descends_from(node.uuid, other.uuid) is (other in way)
        end = way[-1]
        is_open = _above(graph, end) is None
        assert ancestry.descends_from(node.uuid, None) is (is_open and end.parent is None)
        assert ancestry.descends_from(node.uuid, UNKNOWN) is (is_open and end.parent == UNKNOWN)


@settings(max_examples=60)
@given(_sessions())
def test_the_top_of_a_record_is_where_walking_up_past_compactions_ends(graph: RecordGraph) -> None:
    for node in graph.members:
        seen = [node]
        while True:
            higher = _above(graph, seen[-1]) or next(
                (each for each in graph.members if each.uuid == seen[-1].logical_parent), None
            )
            if higher is None or higher in seen:
                break
            seen.append(higher)
        top = graph.top_ancestors[node.index]
        if higher is None:
            assert top == seen[-1].index
        else:
            assert top in {each.index for each in seen}


@pytest.mark.parametrize("missing", ["", UNKNOWN])
def test_a_record_that_is_not_there_leads_nowhere(missing: str) -> None:
    graph = RecordGraph(load(BytesSource(data_of([prompt(1), reply(2)]))))
    assert not graph.ancestry.descends_from(missing, uuid(1))
    assert not graph.ancestry.descends_from(uuid(2), missing)
