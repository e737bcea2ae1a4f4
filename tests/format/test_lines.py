"""Bytes become pieces that tile the file; every kind of damage is named and read around."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import session, text, tool
from tests.corpus import transcripts

from steno.format.encode import encode
from steno.format.lines import LINE_CAP, read_bytes, read_line, read_line_batches, read_pieces
from steno.format.records import Gap, Piece, Record
from steno.format.source import BytesSource

USER = b'{"type":"user","uuid":"u1","sessionId":"s","message":{"role":"user","content":"hi"}}'
MODE = b'{"type":"mode","mode":"normal","sessionId":"s"}'


def laid_out(data: bytes, *, cap: int = 1 << 26) -> list[Piece]:
    """Read all pieces and check the promise that they tile the bytes."""
    pieces = list(read_bytes(data, cap=cap))
    at = 0
    for piece in pieces:
        assert piece.offset == at
        if isinstance(piece, Record):
            assert piece.raw == data[at : at + piece.length]
        else:
            assert data[at : at + piece.length].startswith(piece.head)
        at += piece.length
    assert at == len(data)
    return pieces


def shape(data: bytes, *, cap: int = 1 << 26) -> list[str]:
    """Return the pieces in short: a record by its type, a gap in brackets, damage behind it."""
    return [
        " ".join([_name(piece), *(note.id.removeprefix("line.") for note in piece.damage)])
        for piece in laid_out(data, cap=cap)
    ]


def _name(piece: Piece) -> str:
    return piece.type if isinstance(piece, Record) else f"[{piece.length}]"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b"\n", ["[1]"]),
        (USER + b"\n" + MODE + b"\n", ["user", "mode"]),
        (USER, ["user"]),
        (USER + b"\r\n" + MODE + b"\r\n", ["user crlf", "mode crlf"]),
        (b"\xef\xbb\xbf" + USER + b"\n", ["[3] bom", "user"]),
        (USER + MODE + b"\n", ["user", "mode glued"]),
        (USER + b"  " + MODE + b"\n", ["user", "mode glued"]),
        (b"\0" * 300 + USER + b"\n", ["[300] nul-run", "user nul-run"]),
        (b"\0" * 5, ["[5] nul-run"]),
        (USER[:40] + MODE + b"\n", ["[40] torn", "mode spliced"]),
        (USER[:40] + b"\0" * 9 + MODE + b"\n", ["[49] torn", "mode spliced"]),
        (USER + b"\n" + USER[:40], ["user", "[40] torn"]),
        (USER[:40] + b"\n" + USER + b"\n", ["[41] torn", "user"]),
        (b"[1,2]\n" + MODE + b"\n", ["[6] not-object", "mode"]),
        (b"17\n", ["[3] not-object"]),
        (b"hello\n", ["[6] not-json"]),
        (USER + b"trash\n", ["user", "[6] not-json"]),
        (b'{"type":"mode","x":NaN}\n', ["mode number"]),
        (b'{"type":"mode","x":"a\tb"}\n', ["mode control"]),
        (b'{"type":"mode","x":"\xff"}\n', ["mode utf8"]),
        (b'{"type":"mode","x":"\\ud800"}\n', ["mode surrogate"]),
        (b'{"type":"mode","x":"\\ud83d\\ude00"}\n', ["mode"]),
        (b'{"type":"mode","x":"\\\\ud800"}\n', ["mode"]),
        (b'{"type":"mode","x":1,"x":2}\n', ["mode duplicate-key"]),
        (b'{"type":"mode","x":12345678901234567890}\n', ["mode bigint"]),
        (b'{"type":"mode","x":' + b"9" * 5000 + b"}\n", ["mode bigint"]),
        (b'{"type":"mode","x":' + b"[" * 300 + b"]" * 300 + b"}\n", ["mode depth"]),
        (b'{"type":"mode","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n", ["[200021] depth"]),
    ],
)
def test_each_damage_is_named_and_read_around(data: bytes, expected: list[str]) -> None:
    assert shape(data) == expected


def test_lines_are_split_at_newlines_only() -> None:
    words = "a\u2028b\u0085c\x0b"
    line = encode({"type": "mode", "mode": words})
    (piece,) = laid_out(line + b"\n")
    assert isinstance(piece, Record)
    assert piece.fields["mode"] == words


def test_a_line_over_the_cap_is_a_gap_and_reading_goes_on() -> None:
    long = b'{"type":"mode","mode":"' + b"x" * 5000 + b'"}'
    assert shape(long + b"\n" + MODE + b"\n", cap=1000) == [f"[{len(long) + 1}] oversize", "mode"]
    assert shape(MODE + b"\n" + long, cap=1000) == ["mode", f"[{len(long)}] oversize"]


def test_long_lines_cross_chunks() -> None:
    long = b'{"type":"mode","mode":"' + b"x" * (3 << 20) + b'"}'
    assert shape(MODE + b"\n" + long + b"\n" + USER + b"\n") == ["mode", "mode", "user"]


def test_a_hole_of_zeros_is_crossed_without_holding_it() -> None:
    """The record behind megabytes of zero bytes is found, and said not to be a line of its own."""
    pieces = laid_out(MODE + b"\n" + bytes(5 << 20) + USER + b"\n")
    last = pieces[-1]
    assert isinstance(last, Record)
    assert last.type == "user"
    assert not last.whole
    assert all(isinstance(piece, Gap) and len(piece.head) <= 4096 for piece in pieces[1:-1])


@pytest.mark.parametrize("behind", [b"", b"\n", USER + b"\n", b"\n" + USER + b"\n", b'{"torn'])
@pytest.mark.parametrize("size", [1, 4096, (1 << 20) - 48, 1 << 20, (3 << 20) + 5])
def test_a_hole_of_zeros_is_one_gap_however_long(size: int, behind: bytes) -> None:
    pieces = laid_out(MODE + b"\n" + bytes(size) + behind)
    zeros = [note for piece in pieces if isinstance(piece, Gap) for note in piece.damage if note.id == "line.nul-run"]
    assert [(note.span.offset, note.span.length) for note in zeros] == [(len(MODE) + 1, size)]


def test_inner_objects_of_a_torn_record_are_not_taken_for_records() -> None:
    inner = {"type": "user", "uuid": "x", "message": {"role": "user", "content": "hi"}}
    outer = encode({"type": "progress", "sessionId": "s", "data": {"message": inner}})
    assert shape(outer[:-2]) == [f"[{len(outer) - 2}] torn"]
    blocks = encode({"type": "user", "message": {"content": [{"type": "text", "text": "done"}]}})
    assert shape(blocks[:-3]) == [f"[{len(blocks) - 3}] torn"]


def test_reading_may_start_at_any_line() -> None:
    data = USER + b"\n" + MODE + b"\n"
    (piece,) = read_pieces(BytesSource(data), len(USER) + 1)
    assert piece.offset == len(USER) + 1


@pytest.mark.corpus
def test_every_file_of_the_corpus_is_tiled_and_every_sound_line_re_encodes(shared: Path) -> None:
    files = transcripts(shared)
    assert len(files) > 400
    records = 0
    for path in files:
        for piece in laid_out(path.read_bytes()):
            if isinstance(piece, Record) and not piece.notes:
                records += 1
                assert encode(json.loads(piece.line)) == piece.line, path
    assert records > 9000


def sound() -> bytes:
    built = session(seed=3).user("one").assistant(text("two"), tool("Read", file_path="/a")).result("x")
    return built.user("three ✓ 四").assistant(text("done")).bytes()


SOUND = sound()


@st.composite
def blows(draw: st.DrawFn) -> bytes:
    """A sound file after up to four blows of the kinds that really happen, and some that do not."""
    data = SOUND
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        match draw(st.sampled_from(["cut", "zeros", "glue", "insert", "flip", "drop"])):
            case "cut":
                data = data[:at]
            case "zeros":
                data = data[:at] + bytes(draw(st.integers(1, 700))) + data[at:]
            case "glue":
                data = data[:at].removesuffix(b"\n") + data[at:]
            case "insert":
                data = data[:at] + draw(st.binary(max_size=20)) + data[at:]
            case "flip" if at < len(data):
                data = data[:at] + bytes([draw(st.integers(0, 255))]) + data[at + 1 :]
            case _:
                data = data[:at] + data[at + draw(st.integers(0, 200)) :]
    return data


@given(blows())
def test_damaged_files_are_tiled(data: bytes) -> None:
    for piece in laid_out(data):
        if isinstance(piece, Record):
            views(piece)


@given(st.binary(max_size=400))
def test_any_bytes_are_tiled(data: bytes) -> None:
    for piece in laid_out(data):
        if isinstance(piece, Record):
            views(piece)


def views(record: Record) -> None:
    """Ask for everything a record can tell; nothing may raise."""
    assert isinstance(record.kind, str)
    assert isinstance(record.text, str)
    assert isinstance(record.fields, dict)
    _ = (record.time, record.usage, record.tool_use_result, record.view, record.thinking)


def boundaries() -> Iterator[int]:
    return (at for at in range(len(SOUND)) if at == 0 or SOUND[at - 1 : at] == b"\n")


@pytest.mark.parametrize("at", list(boundaries()))
def test_real_damage_costs_only_what_it_hits(at: int) -> None:
    """At every record boundary: a splice, a missing newline and zeros lose no whole record."""
    whole = len(SOUND.splitlines())
    zeros = SOUND[:at] + bytes(400) + SOUND[at:]
    assert count(zeros) == whole
    glued = SOUND[: at - 1] + SOUND[at:] if at else SOUND
    assert count(glued) == whole
    for cut in (1, 7, 40):
        spliced = SOUND[: max(0, at - cut)] + SOUND[at:]
        assert count(spliced) >= whole - 1


def count(data: bytes) -> int:
    return sum(isinstance(piece, Record) for piece in laid_out(data))


@pytest.mark.parametrize("cap", [8, 40, LINE_CAP])
def test_lines_of_stretches_make_the_same_pieces(cap: int) -> None:
    lines = [b'{"type":"mode"}', b"", b"\0\0" + b'{"type":"tag"}', b"x" * 90_000, b'{"torn', b"{}"]
    data = b"\n".join(lines * 40)
    made: list[Piece] = []
    for stretch in read_line_batches(BytesSource(data), cap=cap):
        if isinstance(stretch, Gap):
            made.append(stretch)
        else:
            made += [piece for line in stretch.lines() for piece in read_line(line)]
    assert list(map(tiles, made)) == list(map(tiles, read_bytes(data, cap=cap)))


def tiles(piece: Piece) -> tuple[type, int, int]:
    return type(piece), piece.span.offset, piece.span.length
