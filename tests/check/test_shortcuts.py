"""The short cuts of a check come to the same as the long way."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.builders import VERSIONS
from tests.check.damaged_sessions import damages_of
from tests.check.rule_findings import NAME

from steno.check.checkup import check
from steno.check.client_readings import NEWEST_CLIENTS, ClientReadings
from steno.check.evidence import RecordView, RuleHooks, are_usual_times, gather_evidence
from steno.check.findings import Finding, Findings
from steno.check.record_graph import RecordGraph, pair_tools
from steno.check.rules.record_format import TimeRules
from steno.format.source import BytesSource
from steno.session.resume.record_chain import LeafMarker
from steno.session.resume.replay import resumed_chain
from steno.session.transcript import CONVERSATION, Node, Transcript, load
from steno.session.turns.branches import load_all_records

ODD = (
    b'{"type":"user","uuid":"a","message":{"role":"user","content":{"type":"tool_result"}}}',
    b'{"type":"user","uuid":"a","message":{"content":[{"type":"tool_result","is_error":0}]}}',
    b'{"type":"user","uuid":"a","message":{"content":[{"type":"tool_result","tool_use_id":1}]}}',
    b'{"type":"assistant","uuid":"a","message":{"content":[{"type":"tool_use","id":null}]}}',
    b'{"type":"assistant","uuid":"a","message":{"content":[{"type":"tool_use","name":1}]}}',
    b'{"type":"assistant","uuid":"a","message":{"id":1,"model":[],"content":[7,"x",{}]}}',
    b'{"type":"assistant","uuid":"a","uuid":"b","message":{"id":"m","id":"n"}}',
    b'{"type":"assistant","isApiErrorMessage":true,"message":{"model":"<synthetic>"}}',
    b'{"type":"user","uuid":1,"parentUuid":"p","isMeta":"yes","message":{"content":null}}',
    b'{"type":"system","subtype":"tool_result","uuid":"a","parentUuid":"b","message":"text"}',
    b'{"type":"human","uuid":"a","timestamp":1763184000000,"message":{"content":"x"}}',
    b'{"uuid":"a","subtype":null,"sessionId":"s","agentId":"","version":"2.1.0"}',
)

SAID = CONVERSATION | {"human", "tool_result", "compact_prelude", "compact_recap", "compact_system"}


def files(shared: Path) -> Iterator[bytes]:
    for version in VERSIONS:
        yield from (data for _, data in damages_of(version))
    for path in sorted((shared / "corpus").rglob("*.jsonl")):
        yield path.read_bytes()


def values(node: Node) -> dict[str, Any]:
    return {name: getattr(node, name) for name in Node.__struct_fields__}


@pytest.mark.parametrize("line", ODD)
def test_a_node_of_odd_fields_is_the_node_of_the_record(line: bytes) -> None:
    source = BytesSource(line + b"\n")
    nodes = check(source, name=NAME).transcript.nodes
    assert list(map(values, nodes)) == list(map(values, load(source).nodes))


def test_nodes_are_the_same_whether_lines_or_records_were_read(shared: Path) -> None:
    for data in files(shared):
        source = BytesSource(data)
        nodes = check(source, name=NAME).transcript.nodes
        assert list(map(values, nodes)) == list(map(values, load(source).nodes))


def test_the_kind_is_the_same_whether_lines_or_records_were_read(shared: Path) -> None:
    def compare(seen: RecordView, _: Findings) -> None:
        kind = seen.kind
        assert kind == seen.record.kind
        assert seen.node.in_dialect == (seen.record.dialect != "claude")

    watchers = RuleHooks(((compare, None),))
    for data in (*(line + b"\n" for line in ODD), *files(shared)):
        gather_evidence(BytesSource(data), name=NAME, hooks=watchers)


def test_calls_and_results_pair_up_the_same_the_long_way(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conversations = [RecordGraph(load(BytesSource(data))).conversation for data in files(shared)]
    short = [pair_tools(each) for each in conversations]
    monkeypatch.setattr("steno.check.record_graph._all_answered", never)
    assert short == [pair_tools(each) for each in conversations]


def never(_: list[Node]) -> bool:
    return False


def test_readings_of_a_graph_are_those_of_the_clients(shared: Path) -> None:
    for data in files(shared):
        transcript = load(BytesSource(data), as_written=True)
        graph = RecordGraph(transcript)
        for client in NEWEST_CLIENTS.values():
            short, long = graph.readings.of(client), ClientReadings(transcript).of(client)
            assert (short.leaf, short.refused) == (long.leaf, long.refused)
            chain = resumed_chain(transcript, client)
            assert (short.chain is None) is (chain is None)
            assert places(short.chain) == places(chain)


def test_the_last_mark_and_message_are_those_of_reading_on(shared: Path) -> None:
    for data in files(shared):
        transcript = load(BytesSource(data))
        loaded = load_all_records(transcript)
        newest, marker = read_on(transcript)
        assert loaded.newest is newest
        assert loaded.marker == marker


def read_on(transcript: Transcript) -> tuple[Node | None, LeafMarker | None]:
    newest: Node | None = None
    marker: LeafMarker | None = None
    for node in transcript.nodes:
        if node.type == "last-prompt":
            envelope = transcript.record(node).envelope
            marker = LeafMarker(envelope.leaf_uuid, bool(envelope.explicit))
        elif node.uuid and is_said(node) and transcript.by_uuid[node.uuid] is node:
            newest = node
            if marker is not None:
                marker.stale = True
            if node.is_boundary:
                marker = None
    return newest, marker


def is_said(node: Node) -> bool:
    return not node.sidechain and node.type in SAID


def test_times_are_judged_the_same_one_by_one(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = [BytesSource(data) for data in files(shared)]
    short = [judged_times(source) for source in sources]
    monkeypatch.setattr("steno.check.rules.record_format.are_usual_times", one_by_one)
    assert short == [judged_times(source) for source in sources]


def judged_times(source: BytesSource) -> list[Finding]:
    evidence = gather_evidence(source, name=NAME)
    TimeRules().on_end(evidence)
    evidence.findings.resolve_deferred(())
    return list(evidence.findings)


def one_by_one(texts: Sequence[str]) -> bool:
    return len(texts) == 1 and are_usual_times(texts)


def places(chain: list[Node] | None) -> set[int]:
    return {node.index for node in chain or () if node.is_message}


def test_nothing_is_out_of_reach_where_everything_is_connected(shared: Path) -> None:
    for data in files(shared):
        graph = RecordGraph(load(BytesSource(data)))
        tops = {graph.top_ancestors[node.index] for node in graph.members}
        begun = {graph.top_ancestors[node.index] for node in graph.roots}
        aside = {top for top in tops if graph.transcript.nodes[top].sidechain}
        odd = graph.dangling or graph.self_parents or graph.forward or graph.cut_off
        if not odd and tops <= begun | aside:
            assert graph.unreachable == []
