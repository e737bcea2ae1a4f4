"""A file with records in a dialect, read as the file that the real client would have written.

The bytes of the file are never changed; `ConvertedSource` makes each line when it is asked for.
Every layer that reads sessions reads this one, so that none needs to know of dialects. A place in
it is a place in the original file by `original_span`.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal, Self, TypeAlias, cast

import msgspec

from steno.errors import Unreadable
from steno.format.dialects import fields as client
from steno.format.dialects.compactions import plan_compactions
from steno.format.dialects.detection import vote_of
from steno.format.dialects.links import NOTES, link
from steno.format.dialects.names import Dialect
from steno.format.dialects.rows import Json, Row, decide_form, row_of
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

    def __init__(self, original: Source, *, cap: int = LINE_CAP) -> None:
        self.original = original
        votes: Counter[Dialect] = Counter()
        pieces = list(_pieces(original, votes, cap))
        rows = [piece for piece in pieces if isinstance(piece, Row)]
        self.dialect: Dialect = _most(votes)
        """What most messages of the file are written in; it may be the real client's own form."""
        for row in rows:
            decide_form(row, self.dialect)
        self._forms: dict[int, Dialect] = {
            row.offset: row.form for row in rows if row.form and not row.is_client
        }
        self.records_in_dialect = len(self._forms)
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
        made_from = self._line_at(offset).made_from
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

    def purpose_at(self, offset: int) -> str:
        """Return what the record at a place is for: `record`, or why it was inserted."""
        return self._line_at(offset).purpose

    def inserted(self, offset: int) -> bool:
        """Whether the record at a place is one that the original file does not have."""
        return self._line_at(offset).purpose not in ("record", "deleted", "gap")

    @property
    def label(self) -> str:
        """What the file is, in a few words."""
        if self.dialect != "claude":
            return f"dialect {self.dialect}, converted"
        return f"{self._some} in the dialect {self._names}, converted"

    @property
    def description(self) -> str:
        """What the file is, as the end of a sentence that begins with its name."""
        if self.dialect != "claude":
            return f"is written in the dialect {self.dialect}"
        return f"has {self._some} in the dialect {self._names}"

    @property
    def _some(self) -> str:
        number = self.records_in_dialect
        return f"{number:,} record{'s' if number != 1 else ''}"

    @property
    def _names(self) -> str:
        return " and ".join(sorted(set(self._forms.values())))

    def is_client(self, offset: int) -> bool:
        """Whether the real client wrote the record at a place, and it is not hidden."""
        line = self._line_at(offset)
        is_own = isinstance(line.made_from, Gap) or line.made_from.is_client
        return is_own and line.purpose in ("record", "gap")

    def changed(self, offset: int) -> bool:
        """Whether the record at a place is not, byte for byte, one of the original file."""
        line = self._line_at(offset)
        made_from = line.made_from
        return isinstance(made_from, Row) and not _is_kept(made_from, line.purpose)

    def form_at(self, offset: int) -> Dialect:
        """Return the form of the record at a place in the original file."""
        return self._forms.get(offset, "claude")

    def hidden(self) -> frozenset[str]:
        """Return the ids of what is not part of the conversation: deleted, or not active."""
        rows = (line.made_from for line in self._lines)
        return frozenset(
            row.uuid
            for row in rows
            if isinstance(row, Row) and row.uuid and (row.deleted or row.inactive)
        )

    def deleted(self) -> dict[int, tuple[str, ...]]:
        """Return which records of the original file are deleted, by where they lie.

        With each are the calls whose results alone are deleted of it; none where all of it is.
        """
        rows = (line.made_from for line in self._lines if line.purpose in ("record", "deleted"))
        return {
            row.offset: () if row.deleted else row.gone
            for row in rows
            if isinstance(row, Row) and (row.deleted or row.gone)
        }

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

    def undecided(self) -> frozenset[int]:
        """Return where results lie at the end of the file whose calls the next record may change.

        They name no call, and a call of their response has no result yet.
        """
        rows = [line.made_from for line in self._lines if line.purpose == "record"]
        last: list[Row] = []
        for row in reversed(rows):
            if isinstance(row, Gap) or row.is_client:
                break
            if row.kind not in NOTES and (row.kind != "result" or row.names_call):
                break
            last.append(row)
        calls = {row.call for row in last if row.call}
        answered = {call for row in rows if isinstance(row, Row) for call in row.results}
        groups = {id(row.group) for row in rows if isinstance(row, Row) and calls & {*row.calls}}
        is_open = any(
            call not in answered
            for row in rows
            if isinstance(row, Row) and row.group is not None and id(row.group) in groups
            for call in row.calls
        )
        return frozenset(row.offset for row in last) if is_open else frozenset()

    def _line_at(self, offset: int) -> _Line:
        return self._lines[max(0, bisect_right(self._starts, offset) - 1)]

    def _make(self, line: _Line) -> bytes:
        made_from = line.made_from
        raw = self.original.read(made_from.offset, made_from.length)
        if isinstance(made_from, Gap) or _is_kept(made_from, line.purpose):
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


def _pieces(source: Source, votes: Counter[Dialect], cap: int) -> Iterator[Row | Gap]:
    for piece in read_pieces(source, cap=cap):
        if isinstance(piece, Gap):
            yield piece
        else:
            votes.update(vote_of(piece))
            yield row_of(piece.fields, piece.dialect, piece.offset, piece.length)


def _most(votes: Counter[Dialect]) -> Dialect:
    if votes.total() <= 2 * votes["claude"]:
        return "claude"
    return "spec-000" if votes["spec-000"] >= votes["spec-004"] else "spec-004"


def _is_kept(row: Row, purpose: _Purpose) -> bool:
    """Whether a line is the original one: the client wrote it, and it stays where it was."""
    return purpose == "record" and row.is_client and client.keeps_parent(row)


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
