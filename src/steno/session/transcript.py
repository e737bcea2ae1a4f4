"""One session file, read once: its nodes in file order, its gaps, its state records."""

from bisect import bisect_left
from collections.abc import Iterator
from functools import cached_property
from typing import Final

from steno.errors import Unreadable
from steno.format.dialects.detection import (
    convert_source,
    converted,
    dialect_of_source,
    is_converted,
)
from steno.format.dialects.names import Dialect
from steno.format.lines import LINE_CAP, Stretch, make_record, read_bytes, read_pieces
from steno.format.records import Gap, Piece, Record
from steno.format.source import Source
from steno.format.spans import Damage, Span
from steno.session.nodes import Node, read_node

__all__ = ["Transcript", "grown", "load"]

_KEPT: Final = 8
_BACK: Final = 1 << 16
# Found again from the record's own bytes, and in some files on every line.
_FOUND_AGAIN: Final = frozenset(("line.crlf",))


class Transcript:
    """The records of one file as nodes, and a way back to their bytes."""

    def __init__(
        self, source: Source, nodes: list[Node], gaps: list[Gap], *, cap: int = LINE_CAP
    ) -> None:
        self.source = source
        self.nodes = nodes
        self.gaps = gaps
        self.cap = cap
        self.notes: dict[int, tuple[Damage, ...]] = {}
        self.has_dialect = False
        """Whether a record is in a form that the real client does not write; none is once the file
        is converted."""
        self._by_uuid: dict[str, Node] | None = None
        self._recent: dict[int, Record] = {}

    def take(self, record: Record, *, hold: bool = False) -> Node:
        """Take in the next record of the file; `hold` keeps it at hand."""
        node = read_node(record, len(self.nodes))
        self.nodes.append(node)
        if node.in_dialect:
            self.has_dialect = True
        if hold:
            self._recent[record.offset] = record
        if record.notes and not all(note.id in _FOUND_AGAIN for note in record.notes):
            self.notes[record.offset] = record.notes
        return node

    def close_last_line(self) -> None:
        """Say that the end of the file ends the last line, as it does for every reader."""
        last = self.nodes[-1] if self.nodes else None
        if last is not None and last.offset + last.length == self.source.size:
            last.ends_line = True

    def pieces(self) -> Iterator[Piece]:
        """Yield every record and gap again, in file order; they tile the file."""
        return read_pieces(self.source, cap=self.cap)

    def record(self, node: Node) -> Record:
        """Return the record behind a node, read again from its bytes.

        Raises:
            Unreadable: the file changed since it was loaded, and the record is no longer there.
        """
        held = self._recent.get(node.offset)
        if held is not None:
            return held
        record = self._read_again(node)
        if len(self._recent) >= _KEPT:
            self._recent.pop(next(iter(self._recent)))
        self._recent[node.offset] = record
        return record

    def written(self, node: Node) -> Record:
        """Return the record as it stands in the file: of one in a dialect, before it was converted.

        Raises:
            Unreadable: the file changed since it was loaded.
        """
        source = self.source
        return source.original_record(node.offset) if is_converted(source) else self.record(node)

    def _read_again(self, node: Node) -> Record:
        raw = self.source.read(node.offset, node.length)
        if raw.find(b"\n") == node.length - 1 and node.offset not in self.notes:
            sound = make_record(Stretch(raw[:-1], node.offset, ended=True))
            if sound is not None:
                return sound
        found = next(read_bytes(raw, cap=len(raw)), None)
        if not isinstance(found, Record) or found.length != node.length:
            raise Unreadable(
                f"the session changed while it was read: no record at byte {node.offset:,} any more",
                hint="open it again",
            )
        notes = self.notes.get(node.offset)
        if notes is None:
            notes = _moved(found.notes, node.offset) if node.ends_line else ()
        return Record(found.line, node.offset, found.ending, found.envelope, notes)

    def held(self, node: Node) -> Record | None:
        """Return the record behind a node if it is in memory already."""
        return self._recent.get(node.offset)

    @property
    def dialect(self) -> Dialect:
        """What most messages of the file are written in."""
        return dialect_of_source(self.source)

    @property
    def is_converted(self) -> bool:
        """Whether the file has records in a dialect, and this is its converted form."""
        return is_converted(self.source)

    @cached_property
    def as_written(self) -> "Transcript":
        """The file as a real client reads it: of one in a dialect, before it was converted."""
        source = self.source
        if not is_converted(source):
            return self
        return load(source.original, cap=self.cap, as_written=True)

    @property
    def by_uuid(self) -> dict[str, Node]:
        """The nodes by id. Of records with the same id the last one counts."""
        if self._by_uuid is None:
            self._by_uuid = {node.uuid: node for node in self.nodes if node.uuid}
        return self._by_uuid

    def of_type(self, kind: str) -> Iterator[Node]:
        """Yield the nodes of one type, in file order."""
        return (node for node in self.nodes if node.type == kind)

    def last(self, kind: str) -> Record | None:
        """Return the last record of a type: for state records, the one that counts."""
        for node in reversed(self.nodes):
            if node.type == kind:
                return self.record(node)
        return None


def load(
    source: Source, *, cap: int = LINE_CAP, hold: bool = False, as_written: bool = False
) -> Transcript:
    """Read a whole file into nodes; memory grows with the number of records, not their size.

    `hold` keeps the records as well, for whoever will ask for all of them. A file with records in a
    published dialect is converted to what the real client would have written, unless it is wanted
    `as_written`.
    """
    wanted = source if as_written else converted(source, cap=cap)
    transcript = Transcript(wanted, [], [], cap=cap)
    _take_from(transcript, 0, hold=hold)
    if transcript.has_dialect and not (as_written or is_converted(wanted)):
        return load(convert_source(source, cap=cap), cap=cap, hold=hold)
    return transcript


def grown(before: Transcript, source: Source) -> Transcript:
    """Return what `load` would of a file that was only added to; what is known is not read again.

    The nodes of whole lines are the very same ones.
    """
    if before.is_converted:
        # What is added may change what the records before it are.
        return load(source, cap=before.cap)
    start = _last_line(source, min(before.source.size, source.size))
    known = bisect_left(before.nodes, start, key=_offset)
    gaps = bisect_left(before.gaps, start, key=_offset)
    transcript = Transcript(source, before.nodes[:known], before.gaps[:gaps], cap=before.cap)
    transcript.notes = {at: notes for at, notes in before.notes.items() if at < start}
    _take_from(transcript, start)
    zeros = any(note.id == "line.nul-run" for gap in transcript.gaps[gaps:] for note in gap.damage)
    if zeros or transcript.has_dialect:
        # Where zero bytes are cut depends on where the reading began; a record in a dialect may
        # change what the records before it are.
        return load(source, cap=before.cap)
    return transcript


def _take_from(transcript: Transcript, start: int, *, hold: bool = False) -> None:
    for piece in read_pieces(transcript.source, start, cap=transcript.cap):
        if isinstance(piece, Record):
            transcript.take(piece, hold=hold)
        else:
            transcript.gaps.append(piece)
    transcript.close_last_line()


def _last_line(source: Source, end: int) -> int:
    """Return where the line begins that stands at `end`."""
    while end > 0:
        start = max(0, end - _BACK)
        found = source.read(start, end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _offset(piece: Node | Gap) -> int:
    return piece.offset


def _moved(notes: tuple[Damage, ...], by: int) -> tuple[Damage, ...]:
    """Return the notes of a record that was read alone, as they are in its file."""
    return tuple(
        Damage(note.id, Span(note.span.offset + by, note.span.length), note.message)
        for note in notes
    )
