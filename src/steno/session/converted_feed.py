"""Records of a growing file, those of a dialect as the real client would have written them.

A file that is followed is never read as a whole, so a record is converted by those shortly before
it: enough to find the call of a result and the response of a line. What was given out once is not
given out again, whatever comes after it.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Final

import msgspec

from steno.format.dialects.detection import convert_source
from steno.format.encode import encode_line
from steno.format.lines import read_pieces
from steno.format.records import Piece, Record
from steno.format.source import BytesSource
from steno.format.values import as_object

__all__ = ["ConvertedFeed"]

_RECORDS: Final = 1000
_BYTES: Final = 4 << 20
_INSERTED: Final = 1 << 62
"""Records that are inserted have no place in the file: they get numbers from here on."""


class ConvertedFeed:
    """Takes the pieces of a file as they come, and gives them out converted."""

    def __init__(self) -> None:
        self._recent: deque[Record] = deque()
        self._size = 0
        self._given: set[tuple[int, str]] = set()
        self._in_dialect = False
        self._inserted = _INSERTED

    def take(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        """Take in the next pieces; yield them, and what the conversion inserts among them."""
        waiting: list[Record] = []
        for piece in pieces:
            if not isinstance(piece, Record):
                yield from self._converted(waiting)
                waiting = []
                yield piece
                continue
            self._hold(piece)
            self._in_dialect = self._in_dialect or piece.dialect != "claude"
            if self._in_dialect:
                waiting.append(piece)
                if len(waiting) >= _RECORDS // 2:
                    yield from self._converted(waiting)
                    waiting = []
            else:
                self._given.add((piece.offset, "record"))
                yield piece
        yield from self._converted(waiting)

    def _hold(self, record: Record) -> None:
        self._recent.append(record)
        self._size += record.length
        while len(self._recent) > 1 and (len(self._recent) > _RECORDS or self._size > _BYTES):
            gone = self._recent.popleft()
            self._size -= gone.length
            self._given = {key for key in self._given if key[0] != gone.offset}

    def _converted(self, waiting: list[Record]) -> Iterator[Record]:
        if not waiting:
            return
        lines = [record.line + b"\n" for record in self._recent]
        starts = list(accumulate(map(len, lines), initial=0))
        offsets = {
            start: record.offset for start, record in zip(starts, self._recent, strict=False)
        }
        source = convert_source(BytesSource(b"".join(lines)))
        hidden, undecided = source.hidden(), source.undecided()
        for piece in read_pieces(source):
            if not isinstance(piece, Record):
                continue
            purpose = source.purpose_at(piece.offset)
            place = source.original_span(piece.offset).offset
            if place in undecided:
                continue
            key = offsets[place], purpose
            if key in self._given or purpose == "leaf":
                continue
            if purpose == "record" and piece.uuid in hidden:
                # On a branch that is not active.
                continue
            self._given.add(key)
            yield self._placed(piece, key[0], inserted=source.inserted(piece.offset))

    def _placed(self, record: Record, offset: int, *, inserted: bool) -> Record:
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
        made = next(iter(read_pieces(BytesSource(line + b"\n"))))
        if not isinstance(made, Record):
            return record
        return msgspec.structs.replace(made, offset=offset)
