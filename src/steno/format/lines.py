r"""Bytes → pieces that tile the file: records, and gaps for what is none.

Split on `\n` only. A sound line takes the fast path. Anything else (torn, glued, spliced, zero
bytes, byte order mark, …) is searched for every record that can still be read; each oddity becomes
a damage note with its span, and no byte is left out: the pieces laid end to end are the file.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from steno.format.envelope import decode_envelope
from steno.format.loose import REFUSED
from steno.format.records import Gap, Piece, Record
from steno.format.salvage import salvage
from steno.format.source import BytesSource, Source
from steno.format.spans import Damage, Span

__all__ = ["LINE_CAP", "make_record", "read_bytes", "read_pieces", "read_records", "read_with"]

LINE_CAP: Final = 64 << 20
_HEAD: Final = 4096
_OPEN: Final = ord("{")
_CLOSE: Final = ord("}")
_T = TypeVar("_T")
_Split = tuple[int, bytes | Gap, bool]


def read_bytes(data: bytes, *, cap: int = LINE_CAP) -> Iterator[Piece]:
    r"""Yield the pieces of a whole file held in memory.

    >>> [type(p).__name__ for p in read_bytes(b'{"type":"tag"}{"type":"mode"}\n\x00\n')]
    ['Record', 'Record', 'Gap']
    """
    return read_pieces(BytesSource(data), cap=cap)


def read_records(source: Source, start: int = 0, *, cap: int = LINE_CAP) -> Iterator[Record]:
    """Yield the records of a source and pass over the gaps."""
    return (piece for piece in read_pieces(source, start, cap=cap) if isinstance(piece, Record))


def read_pieces(source: Source, start: int = 0, *, cap: int = LINE_CAP) -> Iterator[Piece]:
    """Yield the pieces of `source` from `start`, which must be the beginning of a line."""
    # As `read_with` and `make_record` together, without a call for every line.
    after_zeros = False
    for offset, line, ended in _split(source.chunks(start), start, cap):
        if isinstance(line, Gap):
            yield line
            after_zeros = not ended
            continue
        try:
            envelope = decode_envelope(line)
        except REFUSED:
            envelope = None
        if envelope is not None and line[0] == _OPEN and line[-1] == _CLOSE and not after_zeros:
            yield Record(line, offset, b"\n" if ended else b"", envelope)
        else:
            yield from salvage(line, offset, ended=ended, after_zeros=after_zeros)
        after_zeros = False


def read_with(
    make: Callable[[bytes, int, bytes], _T | None],
    source: Source,
    start: int = 0,
    *,
    cap: int = LINE_CAP,
) -> Iterator[_T | Piece]:
    """Yield what `make` makes of each line (its bytes, offset and ending), else its pieces."""
    after_zeros = False
    for offset, line, ended in _split(source.chunks(start), start, cap):
        if isinstance(line, Gap):
            yield line
            after_zeros = not ended
            continue
        made = None if after_zeros else make(line, offset, b"\n" if ended else b"")
        if made is not None:
            yield made
        else:
            yield from salvage(line, offset, ended=ended, after_zeros=after_zeros)
        after_zeros = False


def make_record(line: bytes, offset: int, ending: bytes) -> Record | None:
    """Return the record of a line that is sound, as nearly all are; None for any other."""
    try:
        envelope = decode_envelope(line)
    except REFUSED:
        return None
    if line[0] != _OPEN or line[-1] != _CLOSE:
        return None
    return Record(line, offset, ending, envelope)


def _split(chunks: Iterable[bytes], offset: int, cap: int) -> Iterator[_Split]:
    """Yield (offset, line without its newline, had a newline); what is no line comes as a gap."""
    parts: list[bytes] = []
    held = 0
    for chunk in _holes(chunks):
        if isinstance(chunk, int):
            yield offset, _zeros(offset, chunk), False
            offset += chunk
            continue
        first = chunk.find(b"\n")
        if first < 0:
            rest = chunk
        else:
            yield _line(offset, [*parts, chunk[:first]], held + first, cap, b"\n")
            offset += held + first + 1
            parts, held = [], 0
            last = chunk.rfind(b"\n")
            if last > first:
                for line in chunk[first + 1 : last].split(b"\n"):
                    size = len(line)
                    yield (
                        (offset, line, True)
                        if size <= cap
                        else _line(offset, [line], size, cap, b"\n")
                    )
                    offset += size + 1
            rest = chunk[last + 1 :]
        if rest:
            parts.append(rest)
            held += len(rest)
            if held > cap:
                parts = [b"".join(parts)[:_HEAD]]
    if held:
        yield _line(offset, parts, held, cap, b"")


def _holes(chunks: Iterable[bytes]) -> Iterator[bytes | int]:
    """Yield the chunks; zeros that begin a line and go on to the end of one come as their number.

    However many chunks they fill, they are one hole, and none of it is held.
    """
    zeros = 0
    begun = False
    for chunk in chunks:
        body = _behind_zeros(chunk) if zeros else chunk
        zeros += len(chunk) - len(body)
        if not body:
            continue
        if zeros:
            yield zeros
            zeros = 0
        start = body.rfind(b"\n") + 1
        if (start or not begun) and _all_zero(body[start:] if body.endswith(b"\0") else b""):
            zeros = len(body) - start
            body = body[:start]
        if body:
            yield body
        begun = not zeros and (len(body) > start or (begun and not start))
    if zeros:
        yield zeros


def _behind_zeros(chunk: bytes) -> bytes:
    # To compare is many times faster than to strip, and in a hole of gigabytes all are equal.
    return b"" if _all_zero(chunk) else chunk.lstrip(b"\0")


def _line(offset: int, parts: list[bytes], length: int, cap: int, ending: bytes) -> _Split:
    line = b"".join(parts)
    if length <= cap:
        return offset, line, bool(ending)
    note = Damage("line.oversize", Span(offset, length), f"{length:,} bytes, the cap is {cap:,}")
    return offset, Gap(offset, length + len(ending), line[:_HEAD], (note,)), True


def _all_zero(chunk: bytes) -> bool:
    return bool(chunk) and chunk[0] == 0 and chunk == bytes(len(chunk))


def _zeros(offset: int, length: int) -> Gap:
    note = Damage("line.nul-run", Span(offset, length), f"{length:,} zero bytes")
    return Gap(offset, length, bytes(min(length, _HEAD)), (note,))
