"""Bytes of a growing file → pieces, each when it is complete; dialect records are converted.

A line that is still being written waits. The pieces do not depend on how the bytes were split. A
file that is followed is never read as a whole, so a record is converted with the records shortly
before it: enough to find the call of a result and the response of a line. No record is returned
twice.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Final

import msgspec

from steno.format.dialects.detection import convert_source
from steno.format.encode import encode_line
from steno.format.lenient_json import as_object
from steno.format.lines import LINE_CAP, LineBatch, make_record, read_pieces
from steno.format.records import Gap, Piece, Record
from steno.format.source import BytesSource, Damage, Span

_HEAD_SIZE: Final = 4096


class LineFeed:
    """Takes bytes in and gives pieces out."""

    def __init__(self, start: int = 0, *, cap: int = LINE_CAP) -> None:
        self.offset = start
        """Where the line begins that is not whole yet."""
        self.buffered = 0
        """How many bytes of it are there."""
        # In the middle of a file nobody knows where a line begins.
        self._inside = start > 0
        self._cap = cap
        self._parts: list[bytes] = []

    def feed(self, data: bytes) -> Iterator[Piece]:
        """Take in the next bytes of the file and yield what has become whole."""
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
        yield from read_pieces(_BytesAtOffset(data, start), start, cap=self._cap)

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
        """Yield a last line that wants nothing but its newline: no part of a record is one."""
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


class _BytesAtOffset:
    """Some bytes of a file, at their place in it."""

    def __init__(self, data: bytes, start: int) -> None:
        self._data = data
        self._start = start

    @property
    def size(self) -> int:
        """Where they end."""
        return self._start + len(self._data)

    def read(self, offset: int, length: int) -> bytes:
        """Return some of them."""
        return self._data[offset - self._start : offset - self._start + length]

    def chunks(self, start: int = 0) -> Iterator[bytes]:
        """Yield them from `start` on."""
        yield self._data[start - self._start :]


_RECORDS: Final = 1000
_BYTES: Final = 4 << 20
_INSERTED: Final = 1 << 62
"""Records that are inserted have no place in the file: they get numbers from here on."""


class ConvertedFeed:
    """Takes the pieces of a file as they come, and gives them out converted."""

    def __init__(self) -> None:
        self._recent: deque[Record] = deque()
        self._size = 0
        self._returned: set[tuple[int, str]] = set()
        self._in_dialect = False
        self._inserted = _INSERTED

    def feed(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        """Take in the next pieces; yield them, and what the conversion inserts among them."""
        pending: list[Record] = []
        for piece in pieces:
            if not isinstance(piece, Record):
                yield from self._convert(pending)
                pending = []
                yield piece
                continue
            self._remember(piece)
            self._in_dialect = self._in_dialect or piece.dialect != "claude"
            if self._in_dialect:
                pending.append(piece)
                if len(pending) >= _RECORDS // 2:
                    yield from self._convert(pending)
                    pending = []
            else:
                self._returned.add((piece.offset, "record"))
                yield piece
        yield from self._convert(pending)

    def _remember(self, record: Record) -> None:
        self._recent.append(record)
        self._size += record.length
        while len(self._recent) > 1 and (len(self._recent) > _RECORDS or self._size > _BYTES):
            oldest = self._recent.popleft()
            self._size -= oldest.length
            self._returned = {key for key in self._returned if key[0] != oldest.offset}

    def _convert(self, pending: list[Record]) -> Iterator[Record]:
        if not pending:
            return
        lines = [record.line + b"\n" for record in self._recent]
        starts = list(accumulate(map(len, lines), initial=0))
        offsets = {start: record.offset for start, record in zip(starts, self._recent, strict=False)}
        source = convert_source(BytesSource(b"".join(lines)))
        hidden, undecided = source.hidden_ids(), source.undecided_results()
        for piece in read_pieces(source):
            if not isinstance(piece, Record):
                continue
            purpose = source.purpose_at(piece.offset)
            original_offset = source.original_span(piece.offset).offset
            if original_offset in undecided:
                continue
            key = offsets[original_offset], purpose
            if key in self._returned or purpose == "leaf":
                continue
            if purpose == "record" and piece.uuid in hidden:
                # On a branch that is not active.
                continue
            self._returned.add(key)
            yield self._at_file_offset(piece, key[0], inserted=source.is_inserted(piece.offset))

    def _at_file_offset(self, record: Record, offset: int, *, inserted: bool) -> Record:
        """Return a record at its place in the file, without an end that may not be one."""
        if inserted:
            self._inserted += 1
            offset = self._inserted
        line = record.line
        if record.type == "assistant":
            fields = record.fields
            message = as_object(fields.get("message")) or {}
            if message.get("stop_reason") is not None:
                # More lines of the response may come.
                fields["message"] = {**message, "stop_reason": None}
                line = encode_line(fields).rstrip(b"\n")
        piece = next(iter(read_pieces(BytesSource(line + b"\n"))))
        if not isinstance(piece, Record):
            return record
        return msgspec.structs.replace(piece, offset=offset)
