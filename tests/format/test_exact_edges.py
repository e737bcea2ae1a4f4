"""The edges of reading lines: which object is still tried, which line is sound, what begins where."""

import json
from itertools import product

import pytest

from steno.format import lenient_json as loose_module
from steno.format import salvage
from steno.format.client_settings import MASK, read_settings
from steno.format.lenient_json import decode_lenient
from steno.format.lines import LineBatch, make_record, read_bytes, read_line, read_line_batches
from steno.format.path_rewriter import PathRewriter
from steno.format.paths import PathInfo, classify_transcript
from steno.format.record_views import GenericView, view_of
from steno.format.records import Gap, Record
from steno.format.salvage import ObjectScanner
from steno.format.source import BytesSource

GOOD = b'{"type":"user","uuid":"a","sessionId":"s"}'
PER_TRY = 512
FREE = 1 << 20
PER_BYTE = 32
ITEMS = {"whole": (b'{"a":1}', 7), "hopeless": (b'{"a":!', 5)}
"""An object, and how far it is read."""


def line_of(item: bytes, count: int, blanks: int) -> bytes:
    return b" " * blanks + item * count + b" " + GOOD


def spends_exactly(item: bytes, read: int) -> tuple[int, int]:
    """Return how many items and blanks make a line whose items use up all that may be spent."""
    for count in range(3000, 6000):
        left = count * (PER_TRY + read) - FREE - PER_BYTE * len(line_of(item, count, 1))
        if left >= 0 and left % PER_BYTE == 0:
            return count, 1 + left // PER_BYTE
    raise AssertionError(item)


@pytest.mark.parametrize("kind", list(ITEMS))
def test_objects_are_tried_until_more_than_the_allowance_is_spent(kind: str) -> None:
    """The allowance is 1 MiB and 32 times the line; a try costs 512 and what it has read."""
    item, read = ITEMS[kind]
    count, blanks = spends_exactly(item, read)
    for spare, found in ((1, True), (0, True), (-1, False)):
        line = line_of(item, count, blanks + spare)
        last = [each.fields for each in ObjectScanner(line).objects_from(1)][-1:]
        assert (last == [{"type": "user", "uuid": "a", "sessionId": "s"}]) is found, spare


def test_objects_where_a_value_may_stand_have_an_allowance_of_their_own() -> None:
    item, read = b'{"a":!', 5
    count, blanks = spends_exactly(item, read)
    line = line_of(item, count, blanks - 9)
    assert not [each for each in ObjectScanner(line).objects_from(1) if "type" in each.fields]
    inner = line[: -len(GOOD) - 1] + b"," + GOOD
    (found,) = [each for each in ObjectScanner(inner).objects_from(1) if "type" in each.fields]
    assert (found.start, found.stop, found.inner) == (len(line) - len(GOOD), len(line), True)


def test_an_object_begins_at_its_brace_or_at_blanks_before_it() -> None:
    line = ObjectScanner(b'x \t\r{"a":1} {"b":2}')
    first = line.object_at(1)
    assert first is not None
    assert tuple(first) == (1, 11, False, {"a": 1})
    assert line.object_at(0) is None
    assert ObjectScanner(b'{"a":1').object_at(0) is None
    # None begins behind the last place that names a type.
    assert list(ObjectScanner(b' {"a":1}').objects_from(0)) == []
    whole = b' {"type":"x"}'
    assert [tuple(each) for each in ObjectScanner(whole).objects_from(0)] == [(1, 13, False, {"type": "x"})]
    assert list(ObjectScanner(whole).objects_from(2)) == []


@pytest.mark.parametrize("before", [1, 2, 3])
def test_a_record_is_found_right_behind_the_bytes_that_are_none(before: int) -> None:
    gap, record = read_bytes(b"x" * before + GOOD + b"\n")
    assert isinstance(gap, Gap)
    assert isinstance(record, Record)
    assert (gap.offset, gap.length, gap.head) == (0, before, b"x" * before)
    assert (record.offset, record.line, record.ending) == (before, GOOD, b"\n")
    (note,) = record.notes
    assert (note.id, note.span.offset, note.span.length) == ("line.spliced", before, 0)
    assert note.message == "after an incomplete record"


def test_only_a_line_from_brace_to_brace_is_sound() -> None:
    for ended, ending in ((True, b"\n"), (False, b"")):
        record = make_record(LineBatch(GOOD, 70, ended=ended))
        assert record is not None
        assert (record.line, record.offset, record.ending) == (GOOD, 70, ending)
        assert record.uuid == "a"
        assert not record.notes
    for line in (b" " + GOOD, GOOD + b" ", GOOD + b"\r", GOOD[:-1], GOOD[1:], b"[]", b"", b"5"):
        assert make_record(LineBatch(line, 70, ended=True)) is None, line


@pytest.mark.parametrize("after_zeros", [False, True])
def test_zeros_stand_before_the_first_line_of_a_stretch_alone(*, after_zeros: bool) -> None:
    stretch = LineBatch(b"ab\n\ncde", 10, ended=False, after_zeros=after_zeros)
    assert [(line.data, line.offset, line.ended, line.after_zeros) for line in stretch.lines()] == [
        (b"ab", 10, False, after_zeros),
        (b"", 13, False, False),
        (b"cde", 14, False, False),
    ]
    assert not LineBatch(b"", 0, ended=True).after_zeros


def test_reading_in_stretches_may_start_at_any_line() -> None:
    second = len(GOOD) + 1
    data = GOOD + b"\n" + GOOD + b"\n" + b"\0\0\0"
    whole, end = read_line_batches(BytesSource(data), second)
    assert isinstance(whole, LineBatch)
    assert (whole.offset, whole.data, whole.ended, whole.after_zeros) == (second, GOOD, True, False)
    assert isinstance(end, Gap)
    assert (end.offset, end.length, end.head) == (2 * second, 3, b"\0\0\0")
    (note,) = end.damage
    assert (note.id, note.span, note.message) == ("line.nul-run", end.span, "3 zero bytes")


def test_what_an_attachment_holds_is_lifted_however_its_kind_goes_on() -> None:
    line = b'{"type":"attachment","uuid":"a","attachment":{"type":"x/y","z":1},"own":2}'
    for kind in ("attachment/x/y", "attachment/x", "attachment"):
        view = view_of(kind, line)
        assert isinstance(view, GenericView)
        assert view.fields == {"type": "x/y", "z": 1, "own": 2}, kind
    other = view_of("unheard/attachment", line)
    assert isinstance(other, GenericView)
    assert other.fields == {"attachment": {"type": "x/y", "z": 1}, "own": 2}


def test_settings_are_shown_with_two_blanks_for_each_level() -> None:
    read, notes = read_settings(b'{"model":"m","env":{"A":"x"},"list":[1,{"my_key":[2,null]}]}')
    assert read is not None
    assert not notes
    assert read.masked == "\n".join(
        [
            "{",
            '  "model": "m",',
            '  "env": {',
            f'    "A": "{MASK}"',
            "  },",
            '  "list": [',
            "    1,",
            "    {",
            '      "my_key": [',
            f'        "{MASK}",',
            "        null",
            "      ]",
            "    }",
            "  ]",
            "}",
        ]
    )


@pytest.mark.parametrize(("levels", "shown"), [(63, "x"), (64, MASK), (65, MASK)])
def test_settings_are_shown_64_levels_deep(levels: int, shown: str) -> None:
    for opened, closed in ((b"[", b"]"), (b'{"b":', b"}")):
        read, _ = read_settings(b'{"a":' + opened * levels + b'"x"' + closed * levels + b"}")
        assert read is not None
        assert read.masked.count(shown) == 1
        other = MASK if shown == "x" else '"x"'
        assert other not in read.masked


@pytest.mark.parametrize("raw", [b'[1,2.5,"x",true,null,{"a":[-1e300]}]', b'"x"', b"0", b"null"])
def test_every_kind_of_value_is_read_by_the_decoder_for_what_is_shallow(raw: bytes) -> None:
    loose_module._shallow_decoder.cache_clear()
    decoder = loose_module._shallow_decoder()
    expected = [1, 2.5, "x", True, None, {"a": [-1e300]}] if raw.startswith(b"[") else None
    if expected is not None:
        assert decoder.decode(raw) == expected
    assert decoder.decode(raw) == decode_lenient(raw)
    assert [type(each) for each in decoder.decode(b'[1,1.0,"1",false]')] == [int, float, str, bool]


def test_sound_lines_are_not_searched_for_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearly all lines are sound, and to search one takes many times longer."""

    def refuse(line: bytes, offset: int, **_: bool) -> None:
        raise AssertionError((line, offset))

    monkeypatch.setattr(salvage, "salvage", refuse)
    data = (GOOD + b"\n") * 3 + b"{}\n" + GOOD
    assert [piece.offset for piece in read_bytes(data)] == [0, 43, 86, 129, 132]
    for part in read_line_batches(BytesSource(data)):
        assert isinstance(part, LineBatch)
        assert all(isinstance(p, Record) for line in part.lines() for p in read_line(line))
    with pytest.raises(AssertionError):
        list(read_bytes(b" " + GOOD))


@pytest.mark.parametrize(("cap", "lines"), [(10, 1), (20, 1), (21, 2), (31, 2), (32, 3), (33, 3)])
def test_a_stretch_has_as_many_lines_as_fit_below_the_cap(cap: int, lines: int) -> None:
    data = b"0123456789\n" * 13
    first, *parts = read_line_batches(BytesSource(data), cap=cap)
    assert isinstance(first, LineBatch)
    # The first line of a chunk may go on from the chunk before.
    assert (first.offset, first.data) == (0, b"0123456789")
    assert [(part.offset, len(list(part.lines()))) for part in parts if isinstance(part, LineBatch)] == [
        (11 + 11 * at, lines) for at in range(0, 12, lines)
    ]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (b'{"type":"us', "torn"),
        (b' \t{"type":"us', "torn"),
        (b'{"type":"us \t', "torn"),
        (b'x{"type":"us', "not-json"),
        (b" x {", "not-json"),
        (b" [1] ", "not-object"),
    ],
)
def test_what_begins_with_a_brace_behind_blanks_is_torn(line: bytes, name: str) -> None:
    (gap,) = read_bytes(line + b"\n")
    assert isinstance(gap, Gap)
    assert [(note.id, note.span.length) for note in gap.damage] == [(f"line.{name}", len(line))]


@pytest.mark.parametrize("rest", ["", "/a", "/a/ö"])
def test_a_path_is_put_elsewhere_however_json_spells_it(rest: str) -> None:
    paths = PathRewriter([("/home/ada/wörk", "/srv/nëw")])
    for ascii_only, escaped in product((False, True), (False, True)):
        before, after = (
            json.dumps({"cwd": folder + rest}, ensure_ascii=ascii_only) for folder in ("/home/ada/wörk", "/srv/nëw")
        )
        if escaped:
            before, after = before.replace("/", "\\/"), after.replace("/", "\\/")
        assert paths.rewrite(before.encode()) == (after.encode(), 1)
        assert paths.inverse().rewrite(after.encode()) == (before.encode(), 1)


def test_a_folder_of_sub_agents_is_a_folder_and_no_file() -> None:
    assert classify_transcript(("a", "b", "subagents")) == PathInfo("unknown", "subagents", "b")
    assert classify_transcript(("a", "b", "subagents", "x.jsonl")) == PathInfo("unknown", "x.jsonl", "a", "b")


def test_bytes_in_memory_come_from_the_beginning_unless_told_otherwise() -> None:
    source = BytesSource(b"abc")
    assert [list(source.chunks()), list(source.chunks(1))] == [[b"abc"], [b"bc"]]
    assert [list(source.chunks(at)) for at in (2, 3, 4)] == [[b"c"], [], []]
    assert (source.size, source.read(1, 1), source.read(2, 9)) == (3, b"b", b"c")
