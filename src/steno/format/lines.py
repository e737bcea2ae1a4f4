r"""Splits bytes into pieces that cover the file: records, and gaps for other bytes.

Lines are split at `\n` only. A valid line takes the fast path. In any other line (incomplete, joined, with zero bytes
or a byte order mark, …) every readable record is recovered; each flaw becomes a damage note with its span. No byte is
omitted: the concatenated pieces are the file.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from steno.format.lenient_json import DECODE_ERRORS
from steno.format.message import decode_envelope
from steno.format.records import Gap, Piece, Record
from steno.format.source import BytesSource, Damage, Source, Span

LINE_CAP: Final = 64 << 20
_HEAD_SIZE: Final = 4096
# Smaller batches take longer per byte; larger ones are not faster.
_BATCH_SIZE: Final = 1 << 16
_OPEN: Final = ord("{")
_CLOSE: Final = ord("}")
_BatchPart = tuple[int, bytes | Gap, bool]


def read_bytes(data: bytes, *, cap: int = LINE_CAP) -> Iterator[Piece]:
    r"""Yield the pieces of a file in memory.

    >>> [type(p).__name__ for p in read_bytes(b'{"type":"tag"}{"type":"mode"}\n\x00\n')]
    ['Record', 'Record', 'Gap']
    """
    return read_pieces(BytesSource(data), cap=cap)


def read_records(source: Source, start: int = 0, *, cap: int = LINE_CAP) -> Iterator[Record]:
    """Yield the records of a source, skipping gaps."""
    return (piece for piece in read_pieces(source, start, cap=cap) if isinstance(piece, Record))


def read_pieces(source: Source, start: int = 0, *, cap: int = LINE_CAP) -> Iterator[Piece]:
    """Yield the pieces of `source` from `start`, which must be the beginning of a line."""
    # Equivalent to `read_line_batches` with `read_line`, without a call for every line.
    after_zeros = False
    for offset, data, ended in _split_batches(source.chunks(start), start, cap):
        if isinstance(data, Gap):
            yield data
            after_zeros = not ended
            continue
        ending = b"\n" if ended else b""
        begin, size = 0, len(data)
        while begin <= size:
            # Most lines are long, so searching for each newline is faster than splitting all lines.
            stop = data.find(b"\n", begin)
            stop = size if stop < 0 else stop
            line = data[begin:stop]
            try:
                envelope = decode_envelope(line)
            except DECODE_ERRORS:
                envelope = None
            at = offset + begin
            if envelope is not None and line[0] == _OPEN and line[-1] == _CLOSE and not after_zeros:
                yield Record(line, at, ending, envelope)
            else:
                yield from _salvage(line, at, ended=ended, after_zeros=after_zeros)
            begin = stop + 1
            after_zeros = False


class LineBatch:
    """Consecutive lines as bytes, without the last newline."""

    __slots__ = ("after_zeros", "data", "ended", "offset")

    def __init__(self, data: bytes, offset: int, *, ended: bool, after_zeros: bool = False) -> None:
        self.data = data
        self.offset = offset
        self.ended = ended
        """Whether a newline follows; false only for the last line of a file."""
        self.after_zeros = after_zeros
        """Whether zero bytes precede it on its first line."""

    def line_at(self, start: int, stop: int) -> "LineBatch":
        """Return the line with the given start and end."""
        zeros = self.after_zeros and not start
        return LineBatch(self.data[start:stop], self.offset + start, ended=self.ended, after_zeros=zeros)

    def lines(self) -> Iterator["LineBatch"]:
        """Yield each line as a separate batch."""
        start = 0
        for line in self.data.split(b"\n"):
            yield self.line_at(start, start + len(line))
            start += len(line) + 1


def read_line_batches(source: Source, start: int = 0, *, cap: int = LINE_CAP) -> Iterator[LineBatch | Gap]:
    """Yield a source in batches of many lines; zero bytes and oversize lines are gaps.

    `start` must be the beginning of a line.
    """
    after_zeros = False
    for offset, data, ended in _split_batches(source.chunks(start), start, cap):
        if isinstance(data, Gap):
            yield data
            after_zeros = not ended
        else:
            yield LineBatch(data, offset, ended=ended, after_zeros=after_zeros)
            after_zeros = False


def read_line(line: LineBatch) -> Iterator[Piece]:
    """Yield the pieces of a single line."""
    record = None if line.after_zeros else make_record(line)
    if record is not None:
        yield record
    else:
        yield from _salvage(line.data, line.offset, ended=line.ended, after_zeros=line.after_zeros)


def _salvage(data: bytes, offset: int, *, ended: bool, after_zeros: bool) -> Iterator[Piece]:
    from steno.format.salvage import salvage

    return salvage(data, offset, ended=ended, after_zeros=after_zeros)


def make_record(line: LineBatch) -> Record | None:
    """Return the record of a valid line; None for any other line."""
    data = line.data
    try:
        envelope = decode_envelope(data)
    except DECODE_ERRORS:
        return None
    if data[0] != _OPEN or data[-1] != _CLOSE:
        return None
    return Record(data, line.offset, b"\n" if line.ended else b"", envelope)


def _split_batches(chunks: Iterable[bytes], offset: int, cap: int) -> Iterator[_BatchPart]:
    """Yield (offset, lines without the last newline, whether a newline follows), and gaps."""
    parts: list[bytes] = []
    buffered = 0
    for chunk in _extract_zero_runs(chunks):
        if isinstance(chunk, int):
            yield offset, _zero_gap(offset, chunk), False
            offset += chunk
            continue
        first = chunk.find(b"\n")
        if first < 0:
            rest = chunk
        else:
            yield _line_part(offset, [*parts, chunk[:first]], buffered + first, cap, b"\n")
            offset += buffered + first + 1
            parts, buffered = [], 0
            last = chunk.rfind(b"\n")
            for start, stop in _batch_bounds(chunk, first + 1, last, min(cap, _BATCH_SIZE)):
                # Only a batch of a single line can exceed the maximum size.
                yield _line_part(offset, [chunk[start:stop]], stop - start, cap, b"\n")
                offset += stop - start + 1
            rest = chunk[last + 1 :]
        if rest:
            parts.append(rest)
            buffered += len(rest)
            if buffered > cap:
                parts = [b"".join(parts)[:_HEAD_SIZE]]
    if buffered:
        yield _line_part(offset, parts, buffered, cap, b"")


def _batch_bounds(chunk: bytes, start: int, last: int, max_size: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds of batches up to the last newline; each has at least one line."""
    while start <= last:
        stop = chunk.rfind(b"\n", start, start + max_size + 1)
        if stop < 0:
            stop = chunk.find(b"\n", start + max_size)
        yield start, stop
        start = stop + 1


def _extract_zero_runs(chunks: Iterable[bytes]) -> Iterator[bytes | int]:
    """Yield the chunks, with runs of zeros from line start to line end replaced by their length.

    A run may span any number of chunks without being held in memory.
    """
    zeros = 0
    in_line = False
    for chunk in chunks:
        body = _without_leading_zeros(chunk) if zeros else chunk
        zeros += len(chunk) - len(body)
        if not body:
            continue
        if zeros:
            yield zeros
            zeros = 0
        start = body.rfind(b"\n") + 1
        if (start or not in_line) and _all_zero(body[start:] if body.endswith(b"\0") else b""):
            zeros = len(body) - start
            body = body[:start]
        if body:
            yield body
        in_line = len(body) > start
    if zeros:
        yield zeros


def _without_leading_zeros(chunk: bytes) -> bytes:
    # Comparing is much faster than stripping, and holes of gigabytes consist only of zeros.
    return b"" if _all_zero(chunk) else chunk.lstrip(b"\0")


def _line_part(offset: int, parts: list[bytes], length: int, cap: int, ending: bytes) -> _BatchPart:
    line = b"".join(parts)
    if length <= cap:
        return offset, line, bool(ending)
    note = Damage("line.oversize", Span(offset, length), f"{length:,} bytes, the cap is {cap:,}")
    return offset, Gap(offset, length + len(ending), line[:_HEAD_SIZE], (note,)), True


def _all_zero(chunk: bytes) -> bool:
    return bool(chunk) and chunk[0] == 0 and chunk == bytes(len(chunk))


def _zero_gap(offset: int, length: int) -> Gap:
    note = Damage("line.nul-run", Span(offset, length), f"{length:,} zero bytes")
    return Gap(offset, length, bytes(min(length, _HEAD_SIZE)), (note,))


class LineFeed:
    """Yields each piece of a growing file once it is complete, however its bytes are split."""

    def __init__(self, start: int = 0, *, cap: int = LINE_CAP) -> None:
        self.offset = start
        """Offset of the incomplete line."""
        self.buffered = 0
        """Number of bytes of the incomplete line so far."""
        # When starting in the middle of a file, the beginning of the first line is unknown.
        self._inside = start > 0
        self._cap = cap
        self._parts: list[bytes] = []

    def feed(self, data: bytes) -> Iterator[Piece]:
        """Add the next bytes of the file; yield the pieces that they complete."""
        end = data.rfind(b"\n") + 1
        if end:
            yield from self._complete_lines(data[:end])
        self._buffer(data[end:])
        yield from self._complete_last_line()

    def _complete_lines(self, data: bytes) -> Iterator[Piece]:
        if self._inside:
            begin = data.find(b"\n") + 1
            self.offset += self.buffered + begin
            data, self._inside = data[begin:], False
        elif self.buffered > self._cap:
            end = data.find(b"\n") + 1
            yield self._oversize(self.buffered + end)
            self.offset += self.buffered + end
            data = data[end:]
        else:
            data = b"".join((*self._parts, data))
        self._parts, self.buffered = [], 0
        start, self.offset = self.offset, self.offset + len(data)
        yield from read_pieces(BytesSource(data, start), start, cap=self._cap)

    def _buffer(self, rest: bytes) -> None:
        if not rest:
            return
        self.buffered += len(rest)
        if self._inside:
            return
        if self.buffered <= self._cap:
            self._parts.append(rest)
        elif len(self._parts) != 1 or len(self._parts[0]) > _HEAD_SIZE:
            self._parts = [b"".join((*self._parts, rest))[:_HEAD_SIZE]]

    def _complete_last_line(self) -> Iterator[Piece]:
        """Yield a last line that only lacks its newline: an incomplete record never decodes."""
        if not self._parts or self.buffered > self._cap or not self._parts[-1].endswith(b"}"):
            return
        record = make_record(LineBatch(b"".join(self._parts), self.offset, ended=False))
        if record is not None:
            self.offset += self.buffered
            self._parts, self.buffered = [], 0
            yield record

    def _oversize(self, length: int) -> Gap:
        note = Damage("line.oversize", Span(self.offset, length), f"{length:,} bytes")
        return Gap(self.offset, length, self._parts[0][:_HEAD_SIZE] if self._parts else b"", (note,))
