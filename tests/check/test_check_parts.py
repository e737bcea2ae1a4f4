"""Small parts of the checker by their figures: limits, cuts, counts and comparisons."""

import re
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.check.small_sessions import Records, call, data_of, output, prompt, reply, title, uuid, when

import steno.check
from steno.check.checkup import FAMILIES, RULES, check
from steno.check.client_readings import GENERATIONS, NEWEST_CLIENTS
from steno.check.doctor import LARGE_FILE, LARGE_LINE, inspection_of
from steno.check.drift_model import Sketch, sketch_fields, sort_types
from steno.check.evidence import (
    PlainBatch,
    RecordView,
    RuleHooks,
    are_usual_times,
    are_uuids,
    gather_evidence,
    read_plain,
)
from steno.check.file_reports import FileReport, total_bytes
from steno.check.findings import Findings, Location, Rule
from steno.check.repair.edits import MAX_VALUE_LENGTH, Change, field_changes, new_uuid
from steno.check.repair.record_repairs import just_after
from steno.check.repair.repair_job import find_record, repair_bytes, sessions_in
from steno.check.verdict import Verdict
from steno.errors import NotFound
from steno.format.paths import PathInfo as FilePlace
from steno.format.records import read_time, time_text
from steno.format.source import BytesSource, Span
from steno.session.transcript import load
from steno.store.discovery import DiscoveredFile

RULE = Rule("line.torn", "error", "a title", "a hint")


def place(offset: int, line: int = 1) -> Location:
    return Location(line, Span(offset, 1))


# Findings


@pytest.mark.parametrize("met", [99, 100, 101, 250])
def test_a_hundred_findings_of_a_rule_are_kept_and_all_are_counted(met: int) -> None:
    findings = Findings()
    for number in range(met):
        findings.add(RULE, place(number))
    findings.add(RULE, place(0), mild=True)
    assert findings.counts == {("line.torn", "error"): met, ("line.torn", "info"): 1}
    assert len(findings) == met + 1
    assert len(list(findings)) == min(met, 100) + 1


def test_findings_come_by_their_place_then_by_the_name_of_the_rule() -> None:
    findings = Findings()
    other = Rule("a.b", "info", "another title", "another hint")
    for rule, at in ((RULE, 5), (other, 5), (RULE, 2), (other, 9)):
        findings.add(rule, place(at), f"{rule.id} {at}")
    assert [each.message for each in findings] == ["line.torn 2", "a.b 5", "line.torn 5", "a.b 9"]


def test_what_was_put_off_weighs_less_where_it_is_not_sent() -> None:
    findings = Findings()
    assert not findings.has_deferred
    for node in (1, 2, 3):
        findings.defer(RULE, place(node), f"of {node}", node)
    assert findings.has_deferred
    assert list(findings) == []
    findings.resolve_deferred({2})
    assert not findings.has_deferred
    assert [(each.message, each.severity) for each in findings] == [
        ("of 1", "info"),
        ("of 2", "error"),
        ("of 3", "info"),
    ]
    findings.resolve_deferred({1, 2, 3})
    assert len(findings) == 3


def test_a_finding_without_words_has_the_title_and_the_hint_of_its_rule() -> None:
    findings = Findings()
    findings.add(RULE, place(0))
    findings.add(RULE, place(1), "words")
    assert [(each.message, each.hint) for each in findings] == [("a title", "a hint"), ("words", "a hint")]
    assert RULE.family == "line"


def test_every_family_looks_at_a_file_and_every_rule_is_of_one() -> None:
    assert [rule.id for family in FAMILIES for rule in family.rules] == list(RULES)
    assert all(rule.family for rule in RULES.values())
    assert all(rule.severity in ("error", "warning", "info") for rule in RULES.values())


_CHANGING = {"Diagnosis", "RepairJob", "RepairResult", "RecordView"}


def test_what_a_check_says_cannot_be_changed_afterwards() -> None:
    found = {
        kind
        for path in walk_packages(steno.check.__path__, "steno.check.")
        for kind in vars(import_module(path.name)).values()
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct)
    }
    kinds = {kind for kind in found if kind.__module__.startswith("steno.check.")}
    assert len(kinds) > 25
    assert {kind.__name__ for kind in kinds if not kind.__struct_config__.frozen} == _CHANGING


# Many at once

TIME, UUID = "2025-11-15T12:00:00.000Z", "62ecc684-5437-43FF-95cf-5c331fca7ea1"
USUAL = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]\.[0-9]{3}Z")


@pytest.mark.parametrize("count", [1, 4095, 4096, 4097, 8192, 8193])
@pytest.mark.parametrize("back", [1, 2])
def test_an_odd_text_is_found_wherever_it_stands_among_many(count: int, back: int) -> None:
    times, uuids = [TIME] * count, [UUID] * count
    assert are_usual_times(times)
    assert are_uuids(uuids)
    times[-back % count] = TIME.replace("T", "t")
    uuids[-back % count] = UUID.replace("e", "g")
    assert not are_usual_times(times)
    assert not are_uuids(uuids)
    times[-back % count], uuids[-back % count] = "", ""
    assert not are_usual_times(times)
    assert not are_uuids(uuids)


@given(st.text("0123456789abcdefABCDEFgG-\nxé", min_size=30, max_size=40), st.integers(0, 35))
def test_a_text_is_a_uuid_only_with_digits_and_dashes_in_their_places(text: str, at: int) -> None:
    plain = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
    for each in (text, UUID[:at] + text[0] + UUID[at + 1 :]):
        assert are_uuids([each]) is (plain.fullmatch(each) is not None)


@pytest.mark.parametrize("at", range(len(TIME)))
def test_a_time_is_usual_only_with_each_letter_in_its_place(at: int) -> None:
    for letter in "0123456789-T:.Zx":
        text = TIME[:at] + letter + TIME[at + 1 :]
        assert are_usual_times([text]) is (USUAL.fullmatch(text) is not None)


# Changes


def test_changes_are_told_field_by_field_and_block_by_block() -> None:
    before = {"a": 1, "b": {"c": 2, "d": [1, 2, {"x": 1}]}, "e": "same", "f": [1]}
    after = {"a": None, "b": {"c": 3, "d": [2, 5, {"x": 1}]}, "e": "same", "g": True, "f": {"x": 1}}
    assert list(field_changes(before, after)) == [
        Change("a", 1, None),
        Change("b.c", 2, 3),
        Change("b.d", [1], [5]),
        Change("f", [1], {"x": 1}),
        Change("g", None, True),
    ]
    assert list(field_changes(before, before)) == []


@pytest.mark.parametrize("size", [MAX_VALUE_LENGTH - 1, MAX_VALUE_LENGTH, MAX_VALUE_LENGTH + 1])
def test_a_long_value_is_cut_behind_two_thousand_characters(size: int) -> None:
    assert MAX_VALUE_LENGTH == 2000
    inner = "y" * (size - len('[""]'))
    (change,) = field_changes({"a": "x" * size}, {"a": [inner]})
    if size <= MAX_VALUE_LENGTH:
        assert change == Change("a", "x" * size, [inner])
    else:
        assert change == Change("a", f"{'x' * MAX_VALUE_LENGTH}…", f'["{inner}"…')


def test_an_id_made_of_the_same_things_is_the_same_and_a_uuid() -> None:
    assert new_uuid("a", 1) == "05a9c569-a185-4c60-8551-1f9760bc3f1a"
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}", new_uuid("a"))
    assert len({new_uuid("a"), new_uuid("b"), new_uuid("a", "b"), new_uuid("ab")}) == 4
    assert are_uuids([new_uuid("\ud800", None)])


# Parts of a file


def test_a_record_is_named_by_the_only_beginning_that_fits() -> None:
    records = [prompt(1, uuid="abc"), reply(2, uuid="abd"), prompt(3, uuid="ab"), reply(4, uuid="x")]
    transcript = load(BytesSource(data_of(records)))
    assert [find_record(transcript, name).index for name in ("abc", "abd", "ab", "x")] == [0, 1, 2, 3]
    with pytest.raises(NotFound, match="2 records match 'abc'"):
        find_record(load(BytesSource(data_of([prompt(1, uuid="abcd"), reply(2, uuid="abce")]))), "abc")
    for name in ("", "y"):
        with pytest.raises(NotFound, match=f"no record matches '{name}'"):
            find_record(transcript, name)


def test_records_without_a_session_go_with_the_one_before_or_the_first_behind() -> None:
    records = [
        title("x"),
        prompt(1, sessionId="s"),
        {"type": "y"},
        reply(2, sessionId="t"),
        {"type": "z"},
        prompt(3, sessionId="s"),
    ]
    found = sessions_in(load(BytesSource(data_of(records))))
    places = {name: [node.index for node in nodes] for name, nodes in found.items()}
    assert places == {"s": [0, 1, 2, 5], "t": [3, 4]}
    assert sessions_in(load(BytesSource(data_of([title("x")])))) == {}


# Sketches


def test_a_sketch_that_takes_in_another_has_met_what_both_have() -> None:
    one, other = Sketch(), Sketch()
    one.add({"a": 1, "b": [{"c": "x"}]}, "2.0")
    other.add([{"a": None}], "1.0")
    other.add({"a": "x", "d": True}, "3.0")
    one.merge(other)
    assert one.entry(("null",)) == {
        "types": ["obj", "arr", "null"],
        "optional": True,
        "versions": ["1.0", "3.0"],
        "of": ["obj"],
        "sub": {
            "a": {"types": ["str", "num"], "optional": True, "versions": ["2.0", "3.0"]},
            "b": {
                "types": ["arr"],
                "optional": True,
                "versions": ["2.0", "2.0"],
                "of": ["obj"],
                "items": {"c": {"types": ["str"], "optional": True, "versions": ["2.0", "2.0"]}},
            },
            "d": {"types": ["bool"], "optional": True, "versions": ["3.0", "3.0"]},
        },
        "items": {"a": {"types": ["null"], "optional": True, "versions": ["1.0", "1.0"]}},
    }
    free = Sketch()
    free.add({"a b": 1}, "")
    one.merge(free)
    assert one.free
    assert "sub" not in one.entry()
    assert "items" not in one.entry()
    assert list(sketch_fields({"b": free, "a": Sketch()})) == ["a", "b"]
    assert sort_types({"null", "str", "arr", "num", "obj", "bool"}) == [*("str", "num", "bool", "obj", "arr", "null")]


# The doctor's figures


def report(*, size: int = 1, longest: int = 1, **more: Any) -> FileReport:
    found = DiscoveredFile("/w/a.jsonl", size, 0, FilePlace("session"), "/w")
    return FileReport(found, longest=longest, **more)


@pytest.mark.parametrize(
    ("size", "longest", "large"), [(50_000_000, 10_000_000, False), (50_000_001, 1, True), (1, 10_000_001, True)]
)
def test_a_file_is_large_beyond_fifty_megabytes_or_a_line_of_ten(size: int, longest: int, *, large: bool) -> None:
    assert (LARGE_FILE, LARGE_LINE) == (50_000_000, 10_000_000)
    assert [each.longest for each in inspection_of(report(size=size, longest=longest)).large] == (
        [longest] if large else []
    )


@pytest.mark.parametrize(
    ("counts", "lost", "empty", "broken", "mendable"),
    [
        ({}, 0, False, False, True),
        ({("a.b", "warning"): 1}, 0, False, False, True),
        ({("a.b", "warning"): 1}, 2, False, True, True),
        ({("a.b", "info"): 1}, 2, False, False, True),
        ({("a.b", "error"): 1}, 0, False, True, True),
        ({("chain.empty", "error"): 1}, 0, True, True, False),
        ({("chain.empty", "error"): 1, ("a.b", "error"): 1}, 0, False, True, False),
        ({("chain.empty", "error"): 1, ("a.b", "info"): 1}, 0, True, True, False),
    ],
)
def test_what_is_broken_and_what_is_only_empty(
    counts: dict[Any, int], lost: int, *, empty: bool, broken: bool, mendable: bool
) -> None:
    verdict = Verdict(("2.1.325",), "partly", 5 - lost, 5, words="words")
    sight = inspection_of(report(counts=counts, verdicts=(verdict,), records=4, gaps=3))
    assert (sight.records, sight.gaps, sight.counts) == (4, 3, counts)
    assert (sight.empty, sight.broken is not None) == (empty, broken)
    if sight.broken is not None:
        assert (sight.broken.lost, sight.broken.total) == (lost, 5)
        assert (sight.broken.words, sight.broken.mendable) == ("words", mendable)


def test_the_bytes_of_a_session_are_its_own_and_its_agents() -> None:
    agents = tuple(DiscoveredFile(f"/{n}", n, 0, FilePlace("agent"), "/") for n in (5, 7))
    assert total_bytes(DiscoveredFile("/a", 3, 0, FilePlace("session"), "/", agents)) == 15


# Reading


def test_every_record_is_seen_with_its_line_and_its_bytes() -> None:
    records: Records = [prompt(1), call(2, "a"), output(3, "a"), reply(4)]
    data = data_of(records[:2]) + b"\nx\n" + data_of(records[2:])[:-1]
    seen: list[tuple[int, int, bytes, str, bytes]] = []

    def look(each: RecordView, _: Findings) -> None:
        record = each.record
        assert each.record is record
        seen.append((each.line, each.location.span.offset, record.line, each.location.uuid, record.ending))

    gather_evidence(BytesSource(data), hooks=RuleHooks(((look, None),)))
    lines = data.split(b"\n")
    assert [(line, raw) for line, _, raw, _, _ in seen] == [(number, lines[number - 1]) for number in (1, 2, 5, 6)]
    assert [data[at : at + len(raw)] for _, at, raw, _, _ in seen] == [raw for *_, raw, _, _ in seen]
    assert [name for *_, name, _ in seen] == [uuid(number) for number in (1, 2, 3, 4)]
    assert [ending for *_, ending in seen] == [b"\n", b"\n", b"\n", b""]


def test_plain_lines_are_read_together_and_odd_ones_alone() -> None:
    plain, odd = data_of([prompt(1)]), b'{"a":1,"a":2}\n'
    kinds = [type(each).__name__ for each in read_plain(BytesSource(plain * 3 + odd + plain))]
    assert kinds.count("Record") == 1
    assert {"PlainBatch", "Record"} == set(kinds)
    (first, last) = read_plain(BytesSource(plain * 3))
    assert isinstance(first, PlainBatch)
    assert isinstance(last, PlainBatch)
    assert len(first.fields) + len(last.fields) == 3


def test_a_repair_says_when_it_was_and_just_after() -> None:
    time = read_time(when(1))
    assert time is not None
    assert time_text(time) == when(1)
    assert time_text(just_after(time)) == when(1.001)
    done = repair_bytes(data_of([prompt(1, timestamp=None)]), written=1767603600.0)
    assert b'"timestamp":"2026-01-05T09:00:00.000Z"' in done.data


def test_each_generation_goes_by_its_newest_client() -> None:
    assert GENERATIONS == (("1.0.128", "2.0.76"), ("2.1.29", "2.1.42"), ("2.1.200",), ("2.1.325",))
    assert [client.version for client in NEWEST_CLIENTS.values()] == [each[-1] for each in GENERATIONS]


def test_the_rules_look_at_a_file_without_a_record() -> None:
    evidence = check(BytesSource(b""))
    assert [each.id for each in evidence.findings] == ["chain.empty"]
    assert evidence.name == ""
    assert evidence.agents is None
