"""A file with records in a dialect, converted to Claude Code's format.

The bytes of the file are never changed; `ConvertedSource` encodes each line on demand. All code that reads sessions
reads through it, so that no other module needs to handle dialects. `original_span` returns positions in the original
file.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal, Self, TypeAlias, cast

import msgspec

from steno.errors import Unreadable
from steno.format.dialects import dialect_record as client
from steno.format.dialects.detection import dialect_votes
from steno.format.dialects.dialect_record import DialectRecord, Json, assign_form, read_dialect_record
from steno.format.dialects.record_links import NOTE_KINDS, link_records, plan_compactions
from steno.format.lenient_json import decode_lenient
from steno.format.lines import LINE_CAP, read_bytes, read_pieces
from steno.format.records import Dialect, Gap, Record
from steno.format.source import CHUNK_SIZE, Source, Span

NO_MODEL: Final = "unknown"
"""Model name for answers without one: Claude Code requires it, the dialects do not."""
_MAX_CACHED_BYTES: Final = 8 << 20
"""Maximum size of a converted file that is kept in memory."""
_Purpose: TypeAlias = Literal["record", "deleted", "boundary", "summary", "interruption", "leaf", "gap"]


class _ConvertedLine(msgspec.Struct, frozen=True, eq=False):
    start: int
    made_from: DialectRecord | Gap
    purpose: _Purpose


class ConvertedSource:
    """The converted file as a byte source."""

    def __init__(self, original: Source, *, cap: int = LINE_CAP) -> None:
        self.original = original
        votes: Counter[Dialect] = Counter()
        pieces = list(_read_rows(original, votes, cap))
        rows = [piece for piece in pieces if isinstance(piece, DialectRecord)]
        self.dialect: Dialect = _majority_dialect(votes)
        """Dialect of most messages of the file; can be `claude`."""
        for row in rows:
            assign_form(row, self.dialect)
        self._forms: dict[int, Dialect] = {row.offset: row.form for row in rows if row.form and not row.is_client}
        self.records_in_dialect = len(self._forms)
        link_records(rows)
        plan_compactions(rows)
        self._lines: list[_ConvertedLine] = []
        self._starts: list[int] = []
        self._cached: bytes | None = None
        self.size = 0
        cached: list[bytes] = []
        for made_from, purpose in _plan_lines(pieces, rows):
            line = _ConvertedLine(self.size, made_from, purpose)
            encoded = self._encode_line(line)
            self._lines.append(line)
            self._starts.append(self.size)
            self.size += len(encoded)
            if self.size <= _MAX_CACHED_BYTES:
                cached.append(encoded)
        if self.size <= _MAX_CACHED_BYTES:
            self._cached = b"".join(cached)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the original source if it can be closed."""
        close = getattr(self.original, "close", None)
        if close is not None:
            close()

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`."""
        end = min(offset + max(0, length), self.size)
        if offset >= end:
            return b""
        if self._cached is not None:
            return self._cached[offset:end]
        first = bisect_right(self._starts, offset) - 1
        parts: list[bytes] = []
        for line in self._lines[first:]:
            if line.start >= end:
                break
            parts.append(self._encode_line(line))
        begin = offset - self._starts[first]
        return b"".join(parts)[begin : begin + end - offset]

    def chunks(self, start: int = 0) -> Iterator[bytes]:
        """Yield all bytes from `start` on, in order."""
        while start < self.size:
            chunk = self.read(start, CHUNK_SIZE)
            yield chunk
            start += len(chunk)

    def original_span(self, offset: int) -> Span:
        """Return the span in the original file of the record at an offset."""
        if not self._lines:
            return Span(0, 0)
        made_from = self._line_at(offset).made_from
        return Span(made_from.offset, made_from.length)

    def original_record(self, offset: int) -> Record:
        """Return the record of the original file for the converted record at an offset."""
        span = self.original_span(offset)
        raw = self.original.read(span.offset, span.length)
        original = next((piece for piece in read_bytes(raw) if isinstance(piece, Record)), None)
        if original is None:
            raise Unreadable(
                f"the session changed while it was read: no record at byte {span.offset:,}",
                hint="Open the session again.",
            )
        return Record(original.line, span.offset, original.ending, original.envelope, original.notes)

    def purpose_at(self, offset: int) -> str:
        """Return the purpose of the record at an offset: `record`, or why it was inserted."""
        return self._line_at(offset).purpose

    def is_inserted(self, offset: int) -> bool:
        """Return whether the record at an offset is inserted and not in the original file."""
        return self._line_at(offset).purpose not in ("record", "deleted", "gap")

    @property
    def label(self) -> str:
        """Short description of the file."""
        if self.dialect != "claude":
            return f"dialect {self.dialect}, converted"
        return f"{self._record_count} in the dialect {self._names}, converted"

    @property
    def description(self) -> str:
        """Description of the file as the predicate of a sentence."""
        if self.dialect != "claude":
            return f"is written in the dialect {self.dialect}"
        return f"has {self._record_count} in the dialect {self._names}"

    @property
    def _record_count(self) -> str:
        number = self.records_in_dialect
        return f"{number:,} record{'s' if number != 1 else ''}"

    @property
    def _names(self) -> str:
        return " and ".join(sorted(set(self._forms.values())))

    def is_client(self, offset: int) -> bool:
        """Return whether Claude Code wrote the record at an offset and it is not hidden."""
        line = self._line_at(offset)
        is_own = isinstance(line.made_from, Gap) or line.made_from.is_client
        return is_own and line.purpose in ("record", "gap")

    def is_changed(self, offset: int) -> bool:
        """Return whether the record at an offset differs from the original bytes."""
        line = self._line_at(offset)
        made_from = line.made_from
        return isinstance(made_from, DialectRecord) and not _is_unchanged(made_from, line.purpose)

    def form_at(self, offset: int) -> Dialect:
        """Return the dialect of the record at an offset of the original file."""
        return self._forms.get(offset, "claude")

    def hidden_ids(self) -> frozenset[str]:
        """Return the IDs of records outside the conversation: deleted or inactive."""
        rows = (line.made_from for line in self._lines)
        return frozenset(
            row.uuid for row in rows if isinstance(row, DialectRecord) and row.uuid and (row.deleted or row.inactive)
        )

    def deleted_records(self) -> dict[int, tuple[str, ...]]:
        """Return the deleted records of the original file by offset.

        The value lists the calls of which only the results are deleted; empty if the whole record is deleted.
        """
        rows = (line.made_from for line in self._lines if line.purpose in ("record", "deleted"))
        return {
            row.offset: () if row.deleted else row.deleted_calls
            for row in rows
            if isinstance(row, DialectRecord) and (row.deleted or row.deleted_calls)
        }

    def records_to_resume(self) -> Iterator[Json]:
        """Yield the records of a resumable file, without hidden records."""
        hidden = self.hidden_ids()
        for line in self._lines:
            row = line.made_from
            if isinstance(row, Gap) or row.deleted or (row.uuid or "") in hidden:
                continue
            fields = _decode_object(self._encode_line(line))
            message = fields.get("message")
            if fields.get("type") == "assistant" and isinstance(message, dict):
                fields["message"] = {"model": NO_MODEL, **cast("Json", message)}
            yield fields

    def unmatched_results(self) -> frozenset[int]:
        """Return the offsets in the original file of results without a matching call."""
        rows = (line.made_from for line in self._lines if line.purpose == "record")
        return frozenset(
            row.offset
            for row in rows
            if isinstance(row, DialectRecord) and row.kind == "result" and not (row.names_call or row.call)
        )

    def undecided_results(self) -> frozenset[int]:
        """Return the offsets of results at the end of the file whose calls the next record may change.

        They name no call, and their response has another call without a result.
        """
        rows = [line.made_from for line in self._lines if line.purpose == "record"]
        trailing: list[DialectRecord] = []
        for row in reversed(rows):
            if isinstance(row, Gap) or row.is_client:
                break
            if row.kind not in NOTE_KINDS and (row.kind != "result" or row.names_call):
                break
            trailing.append(row)
        calls = {row.call for row in trailing if row.call}
        answered = {call for row in rows if isinstance(row, DialectRecord) for call in row.results}
        groups = {id(row.response_start) for row in rows if isinstance(row, DialectRecord) and calls & {*row.calls}}
        is_open = any(
            call not in answered
            for row in rows
            if isinstance(row, DialectRecord) and row.response_start is not None and id(row.response_start) in groups
            for call in row.calls
        )
        return frozenset(row.offset for row in trailing) if is_open else frozenset()

    def _line_at(self, offset: int) -> _ConvertedLine:
        return self._lines[max(0, bisect_right(self._starts, offset) - 1)]

    def _encode_line(self, line: _ConvertedLine) -> bytes:
        made_from = line.made_from
        raw = self.original.read(made_from.offset, made_from.length)
        if isinstance(made_from, Gap) or _is_unchanged(made_from, line.purpose):
            return raw if raw.endswith(b"\n") else raw + b"\n"
        fields = _decode_object(raw)
        return msgspec.json.encode(_MAKERS[line.purpose](fields, made_from)) + b"\n"


_MAKERS: Final[dict[_Purpose, Callable[[Json, DialectRecord], Json]]] = {
    "record": client.client_fields,
    "deleted": client.deleted_fields,
    "boundary": client.compaction_boundary,
    "summary": client.compaction_summary,
    "interruption": client.interruption_record,
    "leaf": client.leaf_marker,
}


def _read_rows(source: Source, votes: Counter[Dialect], cap: int) -> Iterator[DialectRecord | Gap]:
    for piece in read_pieces(source, cap=cap):
        if isinstance(piece, Gap):
            yield piece
        else:
            votes.update(dialect_votes(piece))
            yield read_dialect_record(piece.fields, piece.dialect, piece.offset, piece.length)


def _majority_dialect(votes: Counter[Dialect]) -> Dialect:
    if votes.total() <= 2 * votes["claude"]:
        return "claude"
    return "spec-000" if votes["spec-000"] >= votes["spec-004"] else "spec-004"


def _is_unchanged(row: DialectRecord, purpose: _Purpose) -> bool:
    """Return whether a line is identical to the original: written by Claude Code and not moved."""
    return purpose == "record" and row.is_client and client.keeps_parent(row)


def _plan_lines(
    pieces: Sequence[DialectRecord | Gap], rows: Sequence[DialectRecord]
) -> Iterator[tuple[DialectRecord | Gap, _Purpose]]:
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
        if piece.drops_messages:
            yield piece, "summary"
        if piece.interrupts:
            yield piece, "interruption"
    leaf = _active_leaf(rows)
    if leaf is not None:
        yield leaf, "leaf"


def _active_leaf(rows: Sequence[DialectRecord]) -> DialectRecord | None:
    if not any(row.inactive for row in rows):
        return None
    active = (row for row in reversed(rows) if not (row.deleted or row.sidechain or row.inactive))
    return next((row for row in active if row.kind != "other" and row.uuid), None)


def _decode_object(line: bytes) -> Json:
    value = decode_lenient(line)
    return cast("Json", value) if isinstance(value, dict) else {}
