"""Damage inside of a line: which bytes each note is about, to the byte."""

from collections.abc import Iterable, Iterator

import pytest

from steno.format.lines import read_bytes, read_pieces
from steno.format.records import Gap, Piece, Record
from steno.format.source import DAMAGE_HINTS, BytesSource, Damage, Span

GOOD = b'{"type":"user","uuid":"a","sessionId":"s"}'
NEXT = b'{"type":"user","uuid":"b","sessionId":"s"}'


def notes(data: bytes) -> list[tuple[str, int, int]]:
    """Return the id, the offset and the length of every note, in order."""
    found: list[Damage] = []
    for piece in read_bytes(data):
        found += piece.damage if isinstance(piece, Gap) else piece.notes
    return [(note.id, note.span.offset, note.span.length) for note in found]


def laid(data: bytes) -> list[tuple[str, int, int]]:
    """Return what kind each piece is, and where it lies."""
    return [
        ("record" if isinstance(piece, Record) else "gap", piece.offset, piece.length) for piece in read_bytes(data)
    ]


FIRST = GOOD + b"\n"
AT = len(FIRST)
"""Where the second line begins: offsets are those of the file, not of the line."""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"\xef\xbb\xbf" + NEXT, [("line.bom", AT, 3)]),
        (NEXT + b"\r", [("line.crlf", AT + len(NEXT), 1)]),
        (NEXT + b" \t\r", [("line.crlf", AT + len(NEXT) + 2, 1)]),
        (NEXT + b"\r ", []),
        (NEXT + b"\r" + NEXT, [("line.glued", AT + len(NEXT) + 1, 0)]),
        (GOOD + NEXT, [("line.glued", AT + len(GOOD), 0)]),
        (b'{"type":"us' + NEXT, [("line.torn", AT, 11), ("line.spliced", AT + 11, 0)]),
        (b"\0\0\0" + NEXT, [("line.nul-run", AT, 3)] * 2),
        (
            GOOD + b"\0\0" + NEXT,
            [
                ("line.nul-run", AT + len(GOOD), 2),
                ("line.glued", AT + len(GOOD), 0),
                ("line.nul-run", AT + len(GOOD), 2),
            ],
        ),
        (b'{"type":"user","uuid":"b\x01"}', [("line.control", AT, 27)]),
        (b'  {"type":"user","uuid":"b\x01"}', [("line.control", AT + 2, 27)]),
        (b'{"type":"user","uuid":"b","x":NaN}', [("line.number", AT, 34)]),
        (b'  {"type":"user","uuid":"b","x":NaN}', [("line.number", AT + 2, 34)]),
        (b"[1,2]", [("line.not-object", AT, 5)]),
        (b"word", [("line.not-json", AT, 4)]),
        (GOOD + b"[1,2]", [("line.not-json", AT + len(GOOD), 5)]),
        (b"\t \r", []),
        (b'{"type":"user","x":' + b"[" * 300, [("line.depth", AT, 319)]),
    ],
)
def test_each_note_says_which_bytes_it_is_about(line: bytes, expected: list[tuple[str, int, int]]) -> None:
    for end in (b"\n", b""):
        assert notes(FIRST + line + end) == expected
        assert notes(FIRST + line + b"\n" + GOOD + end)[: len(expected)] == expected
        whole = laid(FIRST + line + end)
        assert whole[0] == ("record", 0, AT)
        assert sum(length for _, _, length in whole) == AT + len(line) + len(end)


def test_messages_say_what_was_met() -> None:
    def said(line: bytes) -> list[str]:
        pieces = list(read_bytes(line + b"\n"))
        notes = [*pieces[0].damage] if isinstance(pieces[0], Gap) else [*pieces[0].notes]
        return [note.message for note in notes]

    assert said(bytes(1234) + GOOD) == ["1,234 bytes"]
    assert said(b'{"type":"user","uuid":"b","x":-Infinity,"y":NaN}') == ["-Infinity"]
    assert said(b'{"type":"user","x":' + b"[" * 1300) == ["1,301 levels"]
    assert said(b'{"type":"us') == [""]


@pytest.mark.parametrize("key", ["uuid", "sessionId", "messageId", "leafUuid", "hash"])
def test_behind_a_wreck_only_what_has_a_type_and_names_a_place_is_a_record(key: str) -> None:
    wreck = b'{"type":"us'
    assert [kind for kind, _, _ in laid(wreck + b'{"type":"x","%s":"y"}' % key.encode())] == ["gap", "record"]
    for other in (b'{"type":"x"}', b'{"%s":"y"}' % key.encode(), b'{"type":"x","%s":5}'):
        line = wreck + (other % key.encode() if b"%s" in other else other)
        assert [kind for kind, _, _ in laid(line)] == ["gap"], line
    assert [kind for kind, _, _ in laid(wreck + b'{"type":5,"%s":"y"}' % key.encode())] == ["gap"]


def test_where_a_value_may_stand_only_what_names_its_session_is_a_record() -> None:
    for before in (b'{"a":', b'{"a":[', b'{"a":[1,'):
        for key, kinds in (("sessionId", ["gap", "record"]), ("uuid", ["gap"])):
            line = before + b'{"type":"x","%s":"y"}' % key.encode()
            assert [kind for kind, _, _ in laid(line)] == kinds, line


@pytest.mark.parametrize("behind", [b"}", b"]", b',"x":1}', b'"', b"x"])
def test_an_object_with_more_of_the_wreck_behind_it_is_part_of_the_wreck(behind: bytes) -> None:
    assert [kind for kind, _, _ in laid(b'{"type":"us' + GOOD + behind)] == ["gap"]


@pytest.mark.parametrize("behind", [b"", b" ", b"\t\r", b"\0\0", b"  " + NEXT, b'{"type":'])
def test_an_object_with_nothing_or_another_behind_it_is_a_record(behind: bytes) -> None:
    assert [kind for kind, _, _ in laid(b'{"type":"us' + GOOD + behind)][:2] == ["gap", "record"]


def test_the_head_of_a_gap_is_all_of_a_short_one_and_the_first_4096_bytes_of_a_long_one() -> None:
    for size in (1, 4095, 4096, 4097, 9000):
        for byte in (b"x", b"\0"):
            (gap, *_) = read_bytes(byte * size + b"\n")
            assert isinstance(gap, Gap)
            assert gap.length >= size
            assert gap.head.rstrip(b"\n") == byte * min(size, 4096), (size, byte)
            if size == gap.length - 1 <= 4096 and byte == b"x":
                assert gap.head.endswith(b"\n")


class Cut(BytesSource):
    """A source whose bytes come in chunks that end where one likes."""

    def __init__(self, data: bytes, size: int) -> None:
        super().__init__(data)
        self._cut = size

    def chunks(self, start: int = 0) -> Iterator[bytes]:
        data = b"".join(super().chunks(start))
        yield from (data[at : at + self._cut] for at in range(0, len(data), self._cut))


ODD = b"".join(
    [
        *(GOOD, b"\n", b"\0" * 7, b"\n", b"\0" * 9, NEXT, b"\n", b"\0" * 5, b"x\n", GOOD, b"\0\0\n"),
        *(b"\0", b"\0\n\n", NEXT, NEXT, b"\r\n", b'{"type":"us', GOOD, b"\n", b"\0" * 4),
    ]
)


@pytest.mark.parametrize("size", range(1, 40))
def test_wherever_chunks_end_the_pieces_are_the_same(size: int) -> None:
    def seen(pieces: Iterable[Piece]) -> list[tuple[int, bytes, set[str]]]:
        found: list[tuple[int, bytes, set[str]]] = []
        place = 0
        for piece in pieces:
            assert piece.offset == place
            place += piece.length
            if isinstance(piece, Record):
                found.append((piece.offset, piece.line, {note.id for note in piece.notes}))
        assert place == len(ODD)
        return found

    assert len(seen(read_bytes(ODD))) == 6
    assert seen(read_pieces(Cut(ODD, size))) == seen(read_bytes(ODD))


@pytest.mark.parametrize("cap", [40, 41, 42, 43, 60])
def test_the_cap_is_the_most_a_line_may_have(cap: int) -> None:
    assert len(GOOD) == 42
    pieces = list(read_bytes(GOOD + b"\n" + NEXT + b"\n" + GOOD, cap=cap))
    assert [isinstance(piece, Record) for piece in pieces] == [cap >= 42] * 3
    assert [piece.length for piece in pieces] == [43, 43, 42]
    if cap < 42:
        (note,) = pieces[0].damage
        assert (note.id, note.span) == ("line.oversize", Span(0, 42))
        assert note.message == f"42 bytes, the cap is {cap}"


def test_every_damage_has_its_hint() -> None:
    for name, hint in DAMAGE_HINTS.items():
        assert Damage(name, Span(0, 0)).hint == hint
        assert name.partition(".")[0] in ("line", "sidecar")
    assert Damage("line.unheard-of", Span(0, 0)).hint == ""
    assert Span(3, 4).end == 7
