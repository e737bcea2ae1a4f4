"""A catalogue of a few entries, cut back to each version: exactly what is left of every entry."""

from datetime import UTC, datetime, timedelta

import pytest

from steno.format.catalogue import (
    BlockEntry,
    Catalogue,
    ClientVersions,
    Field,
    Fields,
    KindEntry,
    ToolEntry,
    load_catalogue,
    version_key,
)
from steno.format.lines import LineBatch, read_line
from steno.format.records import Record, read_time

OLD: Fields = {"old": Field(("str",), versions=("1.0.0", "3.0.0"))}
LATE: Fields = {"late": Field(("num",), versions=("2.0.0", "2.5.0"))}
BARE: Fields = {"bare": Field(("bool",))}
NESTED: Fields = {"outer": Field(("obj",), sub={**OLD, **LATE}, items=LATE, values=OLD)}


def kind(name: str, fields: Fields, *seen: str) -> KindEntry:
    return KindEntry(name, "claude", "side", fields, seen)


SMALL = Catalogue(
    client_versions=ClientVersions(
        driven=("1.0.0", "2.0.0"),
        surveyed=("1.0.0", "3.0.0"),
        claimed=("0.1.0", "9.0.0"),
        known=("1.0.0", "1.5.0", "2.0.0", "3.0.0"),
    ),
    envelopes={"claude": {**OLD, **LATE, **BARE}},
    records={
        "claude": {
            each.name: each
            for each in (
                kind("dated", OLD, "1.0.0", "3.0.0"),
                kind("late", LATE, "2.0.0"),
                kind("undated", LATE),
                kind("nothing", {}),
                kind("nested", NESTED, "1.0.0"),
            )
        }
    },
    blocks={"old": BlockEntry(OLD, ("1.0.0",)), "late": BlockEntry(OLD, ("2.0.0",))},
    usage={**OLD, **LATE},
    tools={
        "input": ToolEntry(OLD, {}),
        "result": ToolEntry({}, OLD),
        "late input": ToolEntry(LATE, {}),
        "late result": ToolEntry({}, LATE),
        "one of both": ToolEntry(OLD, LATE),
        "neither": ToolEntry(LATE, LATE),
        "bare": ToolEntry({}, {}),
        "dated": ToolEntry(LATE, LATE, seen=("1.0.0", "2.0.0")),
        "late": ToolEntry(OLD, OLD, seen=("2.0.0",)),
        "mcp__*": ToolEntry({}, {}, ("arr",)),
    },
    enums={"x": ("a", "b")},
)


def until(version: str) -> Fields:
    return {"old": Field(("str",), versions=("1.0.0", version))}


def test_of_each_entry_is_left_what_its_fields_leave() -> None:
    cut = SMALL.as_of("1.7.0")
    old = until("1.5.0")
    assert cut.tools == {
        "input": ToolEntry(old, {}),
        "result": ToolEntry({}, old),
        "one of both": ToolEntry(old, {}),
        "bare": ToolEntry({}, {}),
        "dated": ToolEntry({}, {}, seen=("1.0.0",)),
        "mcp__*": ToolEntry({}, {}, ("arr",)),
    }
    assert cut.records == {
        "claude": {
            "dated": kind("dated", old, "1.0.0"),
            "nothing": kind("nothing", {}),
            "nested": kind("nested", {"outer": Field(("obj",), sub=old, items={}, values=old)}, "1.0.0"),
        }
    }
    assert cut.blocks == {"old": BlockEntry(old, ("1.0.0",))}
    assert cut.usage == old
    assert cut.envelopes == {"claude": {**old, **BARE}}
    assert cut.enums == SMALL.enums
    assert cut.client_versions == ClientVersions(
        driven=("1.0.0",), surveyed=("1.0.0", "1.5.0"), claimed=("0.1.0", "9.0.0"), known=("1.0.0", "1.5.0")
    )
    assert cut.newest == "1.5.0"


def test_the_very_version_that_brought_something_has_it() -> None:
    before, cut = SMALL.as_of("1.99.99"), SMALL.as_of("2.0.0")
    assert set(cut.tools) == set(SMALL.tools)
    assert set(SMALL.tools) - set(before.tools) == {*("late input", "late result", "neither", "late")}
    assert set(cut.records["claude"]) == set(SMALL.records["claude"])
    assert cut.usage == {**until("2.0.0"), "late": Field(("num",), versions=("2.0.0", "2.0.0"))}
    assert SMALL.as_of("3.0.0") == SMALL


def test_a_catalogue_is_read_as_it_was_written_and_asked_by_name() -> None:
    assert load_catalogue(SMALL.dump()) == SMALL
    assert SMALL.dump().startswith(b'{\n  "client_versions": {\n    "driven": [\n      "1.0.0",')
    assert SMALL.dump().endswith(b"}\n")
    assert SMALL.tool("mcp__server__x") == SMALL.tool("mcp__*") == SMALL.tools["mcp__*"]
    assert SMALL.tool("mcp_") is None
    assert SMALL.kind("late") == SMALL.kind("late", "claude") == kind("late", LATE, "2.0.0")
    assert SMALL.kind("none") is None
    assert SMALL.block("old") == SMALL.blocks["old"]
    assert SMALL.fields(kind("x", BARE)) == BARE
    graph = KindEntry("x", "claude", "graph", {"own": Field(("str",))})
    assert SMALL.fields(graph) == {**SMALL.envelopes["claude"], "own": Field(("str",))}


@pytest.mark.parametrize(
    ("version", "key"),
    [
        ("2.1.9", (2, 1, 9)),
        ("2.1.9-beta.3", (2, 1, 9)),
        ("-2", ()),
        ("", ()),
        ("v10.20", (10, 20)),
        ("1234567890", (123456789, 0)),
        ("1-2-3", (1,)),
    ],
)
def test_versions_sort_by_their_numbers(version: str, key: tuple[int, ...]) -> None:
    assert version_key(version) == key


def test_a_field_is_known_from_its_first_version_to_its_last() -> None:
    field = Field(("str",), versions=("1.2.0", "1.3.0", "1.4.0"))
    known = {v: field.known_in(v) for v in ("1.1.9", "1.2.0", "1.3.5", "1.4.0", "1.4.1")}
    assert list(known.values()) == [False, True, True, True, False]
    assert Field(("str",)).known_in("0")


# Records


@pytest.mark.parametrize("ended", [True, False])
def test_a_line_behind_zeros_is_no_line_of_its_own(*, ended: bool) -> None:
    line = b'{"type":"user","uuid":"a","sessionId":"s"}'
    for zeros, notes in ((False, []), (True, [("line.nul-run", 7, 0, "preceded by zero bytes")])):
        (record,) = read_line(LineBatch(line, 7, ended=ended, after_zeros=zeros))
        assert isinstance(record, Record)
        assert (record.offset, record.raw) == (7, line + b"\n" * ended)
        assert [(note.id, note.span.offset, note.span.length, note.message) for note in record.notes] == notes
        assert record.whole is not zeros


def test_times_are_read_up_to_two_days_from_the_ends_of_the_calendar() -> None:
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    step, edge = timedelta(microseconds=1), timedelta(days=2)
    for time, there in (
        (first + edge, False),
        (first + edge + step, True),
        (last - edge, False),
        (last - edge - step, True),
    ):
        assert (read_time(time.isoformat()) == time) is there, time
    assert read_time("2026-11-15T06:00:01") == datetime(2026, 11, 15, 6, 0, 1, tzinfo=UTC)
    shifted = read_time("2026-11-15T06:00:01-02:30")
    assert shifted is not None
    assert (shifted.isoformat(), shifted.tzinfo) == ("2026-11-15T08:30:01+00:00", UTC)
    assert read_time("yesterday") is None
    assert read_time(float("nan")) is None
    assert read_time(1e300) is None
    assert read_time(0) == datetime(1970, 1, 1, tzinfo=UTC)
