"""Detection of dialects, and conversion of files and streams to Claude Code's format.

A file in a dialect can usually be recognized by its beginning. Because dialects are rare, other files are read
unconverted first; when a reader finds a record in a dialect, it reads the file again, converted.
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
"""Lead in votes at which the dialect is decided without reading further messages."""


def convert_if_dialect(source: Source, *, cap: int = LINE_CAP) -> Source:
    """Return a converted source if the beginning of the file is in a dialect.

    If a reader finds later records in a dialect, it must call `convert_source`.
    """
    if is_converted(source) or not begins_in_dialect(source, cap=cap):
        return source
    return convert_source(source, cap=cap)


def convert_source(source: Source, *, cap: int = LINE_CAP) -> "ConvertedSource":
    """Return a source converted to Claude Code's format."""
    from steno.format.dialects.converted_source import ConvertedSource

    return source if isinstance(source, ConvertedSource) else ConvertedSource(source, cap=cap)


def convert_open(source: OpenSource, *, known: bool | None = None) -> OpenSource:
    """Return an open file, converted if needed; closing the result closes the file.

    `known` states whether the file has records in a dialect; with None, its beginning decides.
    """
    if not (begins_in_dialect(source) if known is None else known):
        return source
    return convert_source(source)


def begins_in_dialect(source: Source, *, cap: int = LINE_CAP) -> bool:
    """Return whether most of the first messages of a file are in a dialect."""
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
    """Return the first pieces of a file; usually a small part of the file is sufficient."""
    head = source.read(0, _HEAD_SIZE)
    end = len(head) if len(head) == source.size else head.rfind(b"\n") + 1
    return read_bytes(head[:end]) if head.count(b"\n", 0, end) > _CERTAIN_MARGIN else read_pieces(source, cap=cap)


def dialect_votes(record: Record) -> tuple[Dialect, ...]:
    """Return the dialects that a record is evidence for, or an empty tuple if it is ambiguous."""
    kind = record.type
    if kind in ROLES and record.message is not None and record.message.role:
        return ("claude",)
    dialect = record.dialect
    return (dialect,) if dialect != "claude" else ()


def dialect_of_source(source: Source) -> Dialect:
    """Return the dialect of most messages of a file."""
    return source.dialect if is_converted(source) else "claude"


def is_converted(source: object) -> TypeGuard["ConvertedSource"]:
    """Return whether a source is a converted file."""
    return getattr(source, "original", None) is not None and hasattr(source, "original_span")


def hidden_ids(source: object) -> frozenset[str]:
    """Return the IDs of records outside the conversation: deleted, or on an inactive branch."""
    return source.hidden_ids() if is_converted(source) else frozenset()


def dialect_label(source: object) -> str:
    """Return a short description of a file with records in a dialect; empty for other files."""
    return source.label if is_converted(source) else ""


def records_in_dialect(source: object) -> int:
    """Return the number of records in a file that are in a dialect."""
    return source.records_in_dialect if is_converted(source) else 0


# A followed file is never read completely: each record is converted together with the preceding ones, enough to find
# the call of a result and the response of a line.
_FEED_RECORDS: Final = 1000
_FEED_BYTES: Final = 4 << 20
_INSERTED: Final = 1 << 62
"""Inserted records have no offset in the file; they are numbered from this value."""


class ConvertedFeed:
    """Converts the pieces of a growing file as they arrive; yields each piece once."""

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
                # On an inactive branch.
                continue
            self._returned.add(key)
            yield self._at_file_offset(piece, key[0], inserted=source.is_inserted(piece.offset))

    def _at_file_offset(self, record: Record, offset: int, *, inserted: bool) -> Record:
        """Return a record with its file offset, without a stop reason that may not be final."""
        if inserted:
            self._inserted += 1
            offset = self._inserted
        line = record.line
        if record.type == "assistant":
            from steno.format.encode import encode_line

            fields = record.fields
            message = as_object(fields.get("message")) or {}
            if message.get("stop_reason") is not None:
                # More lines of the response may follow.
                fields["message"] = {**message, "stop_reason": None}
                line = encode_line(fields).rstrip(b"\n")
        piece = next(iter(read_pieces(BytesSource(line + b"\n"))))
        if not isinstance(piece, Record):
            return record
        return msgspec.structs.replace(piece, offset=offset)
