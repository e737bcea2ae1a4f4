"""One stretch of a transcript → rows for the index: reading that can stop and go on anywhere.

What a stretch must know of those before it is in a `State`. A file read in one go and a file read
in any number of stretches give the same rows; a sync relies on that, whatever was appended when.
"""

import re
from collections.abc import Iterator
from typing import Final, TypeAlias, cast

from steno.format.dialects.detection import hidden_in
from steno.format.dialects.names import OWN_TYPES
from steno.format.lines import LINE_CAP, Stretch, read_line, read_stretches
from steno.format.loose import REFUSED
from steno.format.records import Gap, Piece, Record
from steno.format.source import Source
from steno.index.fold import Fold
from steno.index.lines import Block, Line, decode_lines, line_of
from steno.index.state import Harvest, State
from steno.store.uuids import uuids_in

__all__ = ["harvest", "lines_of"]

_OPEN: Final = ord("{")
_CLOSE: Final = ord("}")
_LINE: Final = re.compile(rb"[^\n]+")
_ROLES: Final = frozenset(("user", "assistant"))
_KNOWN: Final = frozenset(
    (
        "text",
        "thinking",
        "redacted_thinking",
        "tool_use",
        "tool_result",
        "image",
        "document",
        "server_tool_use",
        "tool_reference",
    )
)
_NUMBERS: Final = frozenset((int, float))
_Told: TypeAlias = tuple[Stretch, list[Line]]


def harvest(
    source: Source,
    file: int,
    start: int = 0,
    state: State | None = None,
    *,
    limit: int = 1 << 62,
    cap: int = LINE_CAP,
) -> Harvest:
    """Read a file from `start` on, up to about `limit` bytes.

    It ends at a record in a dialect: such a file is to be read again, converted.
    """
    fold = Fold(file, start, state or State(), hidden_in(source))
    for piece in _read(source, start, cap):
        if isinstance(piece, tuple):
            _take_lines(fold, *piece)
        elif isinstance(piece, Record):
            if piece.dialect != "claude":
                return Harvest(file, start, start, fold.result(source.size).state, in_dialect=True)
            fold.take(line_of(piece), piece.line, piece.offset, piece.length, piece)
        elif _ends_line(source, piece):
            fold.done = piece.offset + piece.length
        if fold.done - start >= limit:
            break
    if far := fold.summaries.far_leaves:
        fold.summaries.place(uuids_in(source, far, fold.done))
    found = fold.result(source.size)
    if not found.more or found.done == found.start:
        _tell(source, found.state)
    return found


def _tell(source: Source, state: State) -> None:
    """Count a session that is not plain by telling all of it."""
    course = state.course
    if course.loose and state.main:
        from steno.session.session import Session
        from steno.session.story.figures import figures_of
        from steno.session.transcript import load

        session = Session(load(source))
        leaf = session.leaf
        course.tell(figures_of(session), leaf.uuid or "" if leaf is not None else "")


def _take_lines(fold: Fold, stretch: Stretch, lines: list[Line]) -> None:
    """Take in lines that were decoded together. Nearly all of a file comes this way."""
    data, first, ended = stretch.data, stretch.offset, stretch.ended
    start = 0
    for line in lines:
        stop = data.find(b"\n", start)
        if stop < 0:
            stop = len(data)
        fold.take(line, data[start:stop], first + start, stop - start + ended)
        start = stop + 1


def lines_of(
    source: Source, start: int = 0, *, cap: int = LINE_CAP
) -> Iterator[tuple[Line, bytes, int, bool] | Record | Gap]:
    """Yield the lines of a file as the index takes them, its odd records, and its gaps.

    A line comes with its bytes, its offset, and whether a newline ends it.
    """
    for piece in _read(source, start, cap):
        if not isinstance(piece, tuple):
            yield piece
            continue
        stretch, lines = piece
        for line, part in zip(lines, stretch.lines(), strict=True):
            yield line, part.data, part.offset, part.ended


def _read(source: Source, start: int, cap: int) -> Iterator[_Told | Piece]:
    """Yield lines as many at a time as can be decoded together; what is odd comes alone."""
    for stretch in read_stretches(source, start, cap=cap):
        if isinstance(stretch, Gap):
            yield stretch
            continue
        lines = _decoded(stretch)
        if lines is not None:
            yield stretch, lines
            continue
        yield from _read_lines(stretch)


def _read_lines(stretch: Stretch) -> Iterator[_Told | Piece]:
    """Yield the lines of a stretch one by one; blank ones behind one another are one gap."""
    data, end = stretch.data, 0
    for match in _LINE.finditer(data):
        start, stop = match.span()
        if start > end:
            yield Gap(stretch.offset + end, start - end, b"", ())
        part = stretch.part(start, stop)
        lines = _decoded(part)
        if lines is not None:
            yield part, lines
        else:
            yield from read_line(part)
        end = stop + 1
    if end <= len(data) and (blank := len(data) - end + stretch.ended):
        yield Gap(stretch.offset + end, blank, b"", ())


def _decoded(stretch: Stretch) -> list[Line] | None:
    """Return the lines of a stretch; None where one of them is not of the usual form."""
    if stretch.after_zeros:
        return None
    data = stretch.data
    try:
        lines = decode_lines(data)
    except REFUSED:
        return None
    # The decoder passes over blanks, newlines inside records among them; what is usual has none.
    newlines = data.count(b"\n")
    if len(lines) != newlines + 1 or data.count(b"}\n{") != newlines:
        return None
    if data[0] != _OPEN or data[-1] != _CLOSE:
        return None
    return lines if all(map(_is_usual, lines)) else None


def _is_usual(line: Line) -> bool:
    message = line.message
    if line.type not in _ROLES:
        return message is None and line.type not in OWN_TYPES and line.subtype != "tool_result"
    if message is None or line.timestamp.__class__ in _NUMBERS:
        return False
    content = message.content
    if content.__class__ is not list:
        return True
    return all(block.type in _KNOWN for block in cast("list[Block]", content))


def _ends_line(source: Source, gap: Gap) -> bool:
    """Whether bytes that are no record will never become one: their line has ended."""
    return source.read(gap.offset + gap.length - 1, 1) == b"\n"
