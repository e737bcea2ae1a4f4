"""A file in a dialect, read as the file that the real client would have written.

The bytes of the file are never changed; `ConvertedSource` makes each line when it is asked for.
Every layer that reads sessions reads this one, so that none needs to know of dialects. A place in
it is a place in the original file by `original_span`.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal, Self, TypeAlias, cast

import msgspec

from steno.errors import Unreadable
from steno.format.dialects import fields as client
from steno.format.dialects.compactions import plan_compactions
from steno.format.dialects.links import link
from steno.format.dialects.names import Dialect
from steno.format.dialects.rows import Json, Row, row_of
from steno.format.lines import LINE_CAP, read_bytes, read_pieces
from steno.format.loose import loose
from steno.format.records import Gap, Record
from steno.format.source import CHUNK, Source
from steno.format.spans import Span

__all__ = ["NO_MODEL", "ConvertedSource"]

NO_MODEL: Final = "unknown"
"""Clients need an answer to name a model; the dialects do not ask for one."""
_HELD: Final = 8 << 20
"""A converted file of at most so many bytes is kept in memory."""
_Purpose: TypeAlias = Literal[
    "record", "deleted", "boundary", "summary", "interruption", "leaf", "gap"
]


class _Line(msgspec.Struct, frozen=True, eq=False):
    """One line of the converted file: where it begins, and what it is made from."""

    start: int
    made_from: Row | Gap
    purpose: _Purpose


class ConvertedSource:
    """The converted file, as a source of bytes."""

    def __init__(self, original: Source, dialect: Dialect, *, cap: int = LINE_CAP) -> None:
        self.original = original
        self.dialect: Dialect = dialect
        pieces = list(_pieces(original, dialect, cap))
        rows = [piece for piece in pieces if isinstance(piece, Row)]
        link(rows)
        plan_compactions(rows)
        self._lines: list[_Line] = []
        self._starts: list[int] = []
        self._held: bytes | None = None
        self.size = 0
        held: list[bytes] = []
        for made_from, purpose in _planned(pieces, rows):
            line = _Line(self.size, made_from, purpose)
            made = self._make(line)
            self._lines.append(line)
            self._starts.append(self.size)
            self.size += len(made)
            if self.size <= _HELD:
                held.append(made)
        if self.size <= _HELD:
            self._held = b"".join(held)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the original, if it is one that can be closed."""
        close = getattr(self.original, "close", None)
        if close is not None:
            close()

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`."""
        end = min(offset + max(0, length), self.size)
        if offset >= end:
            return b""
        if self._held is not None:
            return self._held[offset:end]
        first = bisect_right(self._starts, offset) - 1
        parts: list[bytes] = []
        for line in self._lines[first:]:
            if line.start >= end:
                break
            parts.append(self._make(line))
        begin = offset - self._starts[first]
        return b"".join(parts)[begin : begin + end - offset]

    def chunks(self, start: int = 0) -> Iterator[bytes]:
        """Yield everything from `start` on, in order."""
        while start < self.size:
            chunk = self.read(start, CHUNK)
            yield chunk
            start += len(chunk)

    def original_span(self, offset: int) -> Span:
        """Return where the record lies in the original file that stands, or begins, at a place."""
        if not self._lines:
            return Span(0, 0)
        made_from = self._lines[max(0, bisect_right(self._starts, offset) - 1)].made_from
        return Span(made_from.offset, made_from.length)

    def original_record(self, offset: int) -> Record:
        """Return the record of the original file that the one at a place was made from."""
        span = self.original_span(offset)
        raw = self.original.read(span.offset, span.length)
        found = next((piece for piece in read_bytes(raw) if isinstance(piece, Record)), None)
        if found is None:
            raise Unreadable(
                f"the session changed while it was read: no record at byte {span.offset:,} any more",
                hint="open it again",
            )
        return Record(found.line, span.offset, found.ending, found.envelope, found.notes)

    def inserted(self, offset: int) -> bool:
        """Whether the record at a place is one that the original file does not have."""
        line = self._lines[max(0, bisect_right(self._starts, offset) - 1)]
        return line.purpose not in ("record", "deleted", "gap")

    def hidden(self) -> frozenset[str]:
        """Return the ids of what is not part of the conversation: deleted, or not active."""
        rows = (line.made_from for line in self._lines)
        return frozenset(
            row.uuid
            for row in rows
            if isinstance(row, Row) and row.uuid and (row.deleted or row.inactive)
        )

    def records_to_resume(self) -> Iterator[Json]:
        """Yield the records of a file that clients resume: what is hidden is left out."""
        hidden = self.hidden()
        for line in self._lines:
            row = line.made_from
            if isinstance(row, Gap) or row.deleted or (row.uuid or "") in hidden:
                continue
            fields = _fields(self._make(line))
            message = fields.get("message")
            if fields.get("type") == "assistant" and isinstance(message, dict):
                fields["message"] = {"model": NO_MODEL, **cast("Json", message)}
            yield fields

    def unmatched_results(self) -> frozenset[int]:
        """Return where results lie in the original file that no call could be found for."""
        rows = (line.made_from for line in self._lines if line.purpose == "record")
        return frozenset(
            row.offset
            for row in rows
            if isinstance(row, Row) and row.kind == "result" and not (row.names_call or row.call)
        )

    def _make(self, line: _Line) -> bytes:
        made_from = line.made_from
        raw = self.original.read(made_from.offset, made_from.length)
        if isinstance(made_from, Gap):
            return raw if raw.endswith(b"\n") else raw + b"\n"
        if made_from.kind == "other" and line.purpose == "record":
            return raw if raw.endswith(b"\n") else raw + b"\n"
        fields = _fields(raw)
        return msgspec.json.encode(_MAKERS[line.purpose](fields, made_from)) + b"\n"


_MAKERS: Final[dict[_Purpose, Callable[[Json, Row], Json]]] = {
    "record": client.client_fields,
    "deleted": client.deleted_fields,
    "boundary": client.boundary_of,
    "summary": client.summary_of,
    "interruption": client.interruption_of,
    "leaf": client.leaf_marker,
}


def _pieces(source: Source, dialect: Dialect, cap: int) -> Iterator[Row | Gap]:
    for piece in read_pieces(source, cap=cap):
        if isinstance(piece, Gap):
            yield piece
        else:
            own = piece.dialect
            used = dialect if own == "claude" else own
            yield row_of(piece.fields, used, piece.offset, piece.length)


def _planned(
    pieces: Sequence[Row | Gap], rows: Sequence[Row]
) -> Iterator[tuple[Row | Gap, _Purpose]]:
    """Yield what each line of the converted file is made from."""
    for piece in pieces:
        if isinstance(piece, Gap):
            yield piece, "gap"
            continue
        if piece.deleted:
            yield piece, "deleted"
            continue
        if piece.boundary:
            yield piece, "boundary"
        yield piece, "record"
        if piece.cuts:
            yield piece, "summary"
        if piece.interrupts:
            yield piece, "interruption"
    leaf = _active_leaf(rows)
    if leaf is not None:
        yield leaf, "leaf"


def _active_leaf(rows: Sequence[Row]) -> Row | None:
    """Return the end of the active branch, where another branch is not active."""
    if not any(row.inactive for row in rows):
        return None
    there = (row for row in reversed(rows) if not (row.deleted or row.sidechain or row.inactive))
    return next((row for row in there if row.kind != "other" and row.uuid), None)


def _fields(line: bytes) -> Json:
    value = loose(line)
    return cast("Json", value) if isinstance(value, dict) else {}
