"""Whether a file has records in a dialect, and the file as the real client would have written it.

A file of a dialect shows it at its beginning. Any other file is read first, as nearly none has such
a record; whoever reads it sees the first one, and reads the file again, converted.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, Final, TypeGuard

import msgspec

from steno.format.lenient_json import as_object
from steno.format.lines import LINE_CAP, read_bytes, read_pieces
from steno.format.records import ROLES, Dialect, Piece, Record
from steno.format.source import BytesSource, OpenSource, Source

if TYPE_CHECKING:
    from steno.format.dialects.converted_source import ConvertedSource


_MAX_RECORDS: Final = 100
_HEAD_SIZE: Final = 1 << 16
_CERTAIN_MARGIN: Final = 2
"""How many more messages must be of one kind than of others for the rest not to be looked at."""


def convert_if_dialect(source: Source, *, cap: int = LINE_CAP) -> Source:
    """Return a source as the real client would have written it, if its beginning is in a dialect.

    Records of a dialect further down are found by whoever reads them: `convert_source`.
    """
    if is_converted(source) or not begins_in_dialect(source, cap=cap):
        return source
    return convert_source(source, cap=cap)


def convert_source(source: Source, *, cap: int = LINE_CAP) -> "ConvertedSource":
    """Return a source as the real client would have written it."""
    from steno.format.dialects.converted_source import ConvertedSource

    return source if isinstance(source, ConvertedSource) else ConvertedSource(source, cap=cap)


def convert_open(source: OpenSource, *, known: bool | None = None) -> OpenSource:
    """Return an open file as the real client would have written it; it is closed with it.

    `known` says whether it has records in a dialect; without it only its beginning is looked at.
    """
    if not (begins_in_dialect(source) if known is None else known):
        return source
    return convert_source(source)


def begins_in_dialect(source: Source, *, cap: int = LINE_CAP) -> bool:
    """Whether most of the first messages of a file are written in a dialect."""
    votes: Counter[Dialect] = Counter()
    for number, piece in enumerate(_first_pieces(source, cap)):
        if isinstance(piece, Record):
            votes.update(dialect_votes(piece))
            in_dialect = votes.total() - votes["claude"]
            if abs(votes["claude"] - in_dialect) > _CERTAIN_MARGIN:
                break
        if number >= _MAX_RECORDS:
            break
    return votes.total() > 2 * votes["claude"]


def _first_pieces(source: Source, cap: int) -> Iterable[Piece]:
    """Return the pieces a file begins with; mostly a little of it is enough."""
    head = source.read(0, _HEAD_SIZE)
    end = len(head) if len(head) == source.size else head.rfind(b"\n") + 1
    return read_bytes(head[:end]) if head.count(b"\n", 0, end) > _CERTAIN_MARGIN else read_pieces(source, cap=cap)


def dialect_votes(record: Record) -> tuple[Dialect, ...]:
    """Return what a record is written in, where it says so."""
    kind = record.type
    if kind in ROLES and record.message is not None and record.message.role:
        return ("claude",)
    dialect = record.dialect
    return (dialect,) if dialect != "claude" else ()


def dialect_of_source(source: Source) -> Dialect:
    """Return the dialect that most messages of a file are written in."""
    return source.dialect if is_converted(source) else "claude"


def is_converted(source: object) -> TypeGuard["ConvertedSource"]:
    """Whether a source is the converted form of another one."""
    return getattr(source, "original", None) is not None and hasattr(source, "original_span")


def hidden_ids(source: object) -> frozenset[str]:
    """Return the ids of what is not part of a conversation: deleted, or on an inactive branch."""
    return source.hidden_ids() if is_converted(source) else frozenset()


def dialect_label(source: object) -> str:
    """Return what a file with records in a dialect is, in a few words; nothing for any other."""
    return source.label if is_converted(source) else ""


def records_in_dialect(source: object) -> int:
    """Return how many records of a file are in a form that the real client does not write."""
    return source.records_in_dialect if is_converted(source) else 0


# A file that is followed is never read as a whole: a record is converted with those shortly before
# it, enough to find the call of a result and the response of a line.
_FEED_RECORDS: Final = 1000
_FEED_BYTES: Final = 4 << 20
_INSERTED: Final = 1 << 62
"""Inserted records have no offset in the file: they are numbered from here on."""


class ConvertedFeed:
    """Converts the pieces of a growing file as they come; yields none twice."""

    def __init__(self) -> None:
        self._recent: deque[Record] = deque()
        self._size = 0
        self._returned: set[tuple[int, str]] = set()
        self._in_dialect = False
        self._inserted = _INSERTED

    def feed(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        """Add the next pieces; yield them and the records that the conversion inserts."""
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
                if len(pending) >= _FEED_RECORDS // 2:
                    yield from self._convert(pending)
                    pending = []
            else:
                self._returned.add((piece.offset, "record"))
                yield piece
        yield from self._convert(pending)

    def _remember(self, record: Record) -> None:
        self._recent.append(record)
        self._size += record.length
        while len(self._recent) > 1 and (len(self._recent) > _FEED_RECORDS or self._size > _FEED_BYTES):
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
            from steno.format.encode import encode_line

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
