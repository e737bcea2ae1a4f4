"""One session file, read once: nodes of its records in file order, its gaps and state records.

A node contains the fields of a record that the graph needs, so that large sessions fit in memory.
"""

from bisect import bisect_left
from collections.abc import Iterator
from functools import cached_property
from sys import intern
from types import NoneType
from typing import Any, Final

import msgspec

from steno.errors import Unreadable
from steno.format.dialects.detection import convert_if_dialect, convert_source, dialect_of_source, is_converted
from steno.format.lines import LINE_CAP, LineBatch, make_record, read_bytes, read_pieces
from steno.format.message import SYNTHETIC, ToolResult, ToolUse
from steno.format.records import DIALECT_TYPES, ROLES, SYSTEM_SUBTYPES, Dialect, Gap, Piece, Record
from steno.format.source import Damage, Source, Span

CONVERSATION: Final = frozenset(("user", "assistant", "system", "attachment"))
"""Record types of a conversation; `progress` and unknown types are only links."""
_FLAGS: Final = frozenset((bool, NoneType))
_TIMES: Final = frozenset((str, NoneType))
_REPEATS_FIELD: Final = b'"repeatsCompactSummary"'


class Node(msgspec.Struct, eq=False, gc=False):
    """The fields of a record that the graph needs. The record is read again on demand."""

    index: int
    offset: int
    length: int
    whole: bool
    ends_line: bool
    type: str
    subtype: str
    uuid: str | None
    parent: str | None
    logical_parent: str | None
    timestamp: str | int | float | None
    sidechain: bool
    meta: bool
    agent_id: str
    session: str
    version: str
    has_message: bool = False
    has_content: bool = False
    message_id: str | None = None
    model: str = ""
    synthetic_error: bool = False
    uses: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    in_dialect: bool = False
    """Whether the record is in a format that Claude Code does not write."""
    repeats: bool = False
    """Whether the record repeats, after a compaction, an earlier record."""

    def __repr__(self) -> str:
        return f"<Node {self.index} {self.type} {self.uuid}>"

    @property
    def converses(self) -> bool:
        """Whether the record belongs to the main conversation, not to a link or a sub-agent."""
        return self.type in CONVERSATION and not self.sidechain

    @property
    def is_message(self) -> bool:
        """Whether this is a user or assistant record."""
        return self.type in ROLES

    @property
    def is_boundary(self) -> bool:
        """Whether this is a compaction boundary."""
        return self.type == "system" and self.subtype == "compact_boundary"

    @property
    def is_result(self) -> bool:
        """Whether the record contains tool results."""
        return self.type == "user" and bool(self.results)


def read_node(record: Record, index: int) -> Node:
    """Return the node of a record."""
    envelope = record.envelope
    ending = record.ending
    kind = intern(envelope.type or "")
    node = Node(
        index,
        record.offset,
        len(record.line) + len(ending),
        not record.notes or record.whole,
        ending.endswith(b"\n"),
        kind,
        intern(envelope.subtype) if envelope.subtype else "",
        envelope.uuid,
        envelope.parent_uuid,
        envelope.logical_parent_uuid,
        envelope.timestamp,
        bool(envelope.is_sidechain),
        bool(envelope.is_meta),
        intern(envelope.agent_id) if envelope.agent_id else "",
        intern(envelope.session_id or ""),
        intern(envelope.version or ""),
    )
    if kind in ROLES:
        _read_message(node, record)
    elif kind in DIALECT_TYPES or (kind == "system" and node.subtype in SYSTEM_SUBTYPES):
        node.in_dialect = record.dialect != "claude"
    if kind == "user" and _REPEATS_FIELD in record.line:
        node.repeats = record.fields.get("repeatsCompactSummary") is True
    return node


def _read_message(node: Node, record: Record) -> None:
    message = record.message
    if message is None or node.timestamp.__class__ not in _TIMES:
        node.in_dialect = record.dialect != "claude"
    if message is None:
        return
    node.has_message = True
    node.has_content = message.content is not None
    node.message_id = message.id
    if message.model:
        node.model = intern(message.model)
        is_error = bool(record.envelope.is_api_error_message)
        node.synthetic_error = is_error and node.model == SYNTHETIC
    for block in () if isinstance(message.content, str) else message.content or ():
        if type(block) is ToolUse:
            node.uses += (block.id,)
        elif type(block) is ToolResult:
            node.results += (block.tool_use_id,)


def node_of_fields(
    fields: dict[str, Any], kind: str, subtype: str, index: int, offset: int, length: int, *, ended: bool
) -> Node:
    """Return the node of a valid line from its decoded fields, which is faster than `read_node`.

    Every field must have the type that the envelope declares, and a message must be an object.
    """
    get = fields.get
    node = Node(
        index,
        offset,
        length,
        True,
        ended,
        kind,
        subtype,
        get("uuid"),
        get("parentUuid"),
        get("logicalParentUuid"),
        get("timestamp"),
        get("isSidechain") or False,
        get("isMeta") or False,
        intern(get("agentId") or ""),
        intern(get("sessionId") or ""),
        intern(get("version") or ""),
    )
    if kind in ROLES:
        _read_decoded_message(node, fields["message"], is_error=bool(get("isApiErrorMessage")))
    if kind == "user":
        node.repeats = get("repeatsCompactSummary") is True
    return node


def _read_decoded_message(node: Node, message: dict[str, Any], *, is_error: bool) -> None:
    name: Any = message.get("id")
    model: Any = message.get("model")
    content: Any = message.get("content")
    node.has_message = True
    node.has_content = content is not None
    if name.__class__ is str:
        node.message_id = name
    if model.__class__ is str:
        node.model = intern(model)
        node.synthetic_error = is_error and model == SYNTHETIC
    if content.__class__ is str:
        return
    for block in content if content.__class__ is list else (content,):
        if block.__class__ is not dict:
            continue
        # A block without the form of a call or result counts as neither.
        kind = block.get("type")
        if kind == "tool_use":
            call = block.get("id", "")
            if call.__class__ is str and block.get("name", "").__class__ is str:
                node.uses += (call,)
        elif kind == "tool_result":
            call = block.get("tool_use_id", "")
            if call.__class__ is str and block.get("is_error").__class__ in _FLAGS:
                node.results += (call,)


_CACHED_RECORDS: Final = 8
_BLOCK_SIZE: Final = 1 << 16
# Detected again from the record's bytes; some files have this damage on every line.
_FOUND_AGAIN: Final = frozenset(("line.crlf",))


class Transcript:
    """Nodes of the records of one file, with access to their bytes."""

    def __init__(self, source: Source, nodes: list[Node], gaps: list[Gap], *, cap: int = LINE_CAP) -> None:
        self.source = source
        self.nodes = nodes
        self.gaps = gaps
        self.cap = cap
        self.notes: dict[int, tuple[Damage, ...]] = {}
        self.has_dialect = False
        """Whether a record is in a format that Claude Code does not write; False after conversion."""
        self._by_uuid: dict[str, Node] | None = None
        self._recent: dict[int, Record] = {}

    def add(self, record: Record, *, keep: bool = False) -> Node:
        """Add the next record of the file; `keep` caches the record."""
        node = read_node(record, len(self.nodes))
        self.nodes.append(node)
        if node.in_dialect:
            self.has_dialect = True
        if keep:
            self._recent[record.offset] = record
        if record.notes and not all(note.id in _FOUND_AGAIN for note in record.notes):
            self.notes[record.offset] = record.notes
        return node

    def close_last_line(self) -> None:
        """Mark the last line as complete: the end of the file ends it, as for every reader."""
        last = self.nodes[-1] if self.nodes else None
        if last is not None and last.offset + last.length == self.source.size:
            last.ends_line = True

    def pieces(self) -> Iterator[Piece]:
        """Yield every record and gap again in file order, covering the whole file."""
        return read_pieces(self.source, cap=self.cap)

    def record(self, node: Node) -> Record:
        """Return the record of a node, read again from its bytes.

        Raises:
            Unreadable: the file changed after it was loaded, and the record no longer exists.
        """
        recent = self._recent.get(node.offset)
        if recent is not None:
            return recent
        record = self._read_again(node)
        if len(self._recent) >= _CACHED_RECORDS:
            self._recent.pop(next(iter(self._recent)))
        self._recent[node.offset] = record
        return record

    def written(self, node: Node) -> Record:
        """Return the record as written in the file, before any dialect conversion.

        Raises:
            Unreadable: the file changed after it was loaded.
        """
        source = self.source
        return source.original_record(node.offset) if is_converted(source) else self.record(node)

    def _read_again(self, node: Node) -> Record:
        raw = self.source.read(node.offset, node.length)
        if raw.find(b"\n") == node.length - 1 and node.offset not in self.notes:
            record = make_record(LineBatch(raw[:-1], node.offset, ended=True))
            if record is not None:
                return record
        piece = next(read_bytes(raw, cap=len(raw)), None)
        if not isinstance(piece, Record) or piece.length != node.length:
            raise Unreadable(
                f"the session changed while it was read: no record at byte {node.offset:,}",
                hint="Open the session again.",
            )
        notes = self.notes.get(node.offset)
        if notes is None:
            notes = _shift_notes(piece.notes, node.offset) if node.ends_line else ()
        return Record(piece.line, node.offset, piece.ending, piece.envelope, notes)

    def cached(self, node: Node) -> Record | None:
        """Return the record of a node if it is cached."""
        return self._recent.get(node.offset)

    @property
    def dialect(self) -> Dialect:
        """Dialect of most messages of the file."""
        return dialect_of_source(self.source)

    @property
    def is_converted(self) -> bool:
        """Whether the file has dialect records, and this is its converted form."""
        return is_converted(self.source)

    @cached_property
    def as_written(self) -> "Transcript":
        """The file as Claude Code reads it: for a dialect file, its unconverted form."""
        source = self.source
        if not is_converted(source):
            return self
        return load(source.original, cap=self.cap, as_written=True)

    @property
    def by_uuid(self) -> dict[str, Node]:
        """Nodes by ID. Of records with the same ID, the last wins."""
        if self._by_uuid is None:
            self._by_uuid = {node.uuid: node for node in self.nodes if node.uuid}
        return self._by_uuid

    def of_type(self, kind: str) -> Iterator[Node]:
        """Yield the nodes of one type in file order."""
        return (node for node in self.nodes if node.type == kind)

    def last(self, kind: str) -> Record | None:
        """Return the last record of a type, which is the current one for state records."""
        for node in reversed(self.nodes):
            if node.type == kind:
                return self.record(node)
        return None


def load(source: Source, *, cap: int = LINE_CAP, keep: bool = False, as_written: bool = False) -> Transcript:
    """Read a whole file into nodes. Memory grows with the number of records, not their size.

    `keep` caches all records. A file with dialect records is converted to Claude Code's format unless `as_written`.
    """
    readable = source if as_written else convert_if_dialect(source, cap=cap)
    transcript = Transcript(readable, [], [], cap=cap)
    _load_pieces(transcript, 0, keep=keep)
    if transcript.has_dialect and not (as_written or is_converted(readable)):
        return load(convert_source(source, cap=cap), cap=cap, keep=keep)
    return transcript


def load_growth(before: Transcript, source: Source) -> Transcript:
    """Load a file that has grown, without reading known records again.

    The nodes of complete lines are reused.
    """
    if before.is_converted:
        # New records may change the conversion of earlier ones.
        return load(source, cap=before.cap)
    start = _last_line_start(source, min(before.source.size, source.size))
    known_nodes = bisect_left(before.nodes, start, key=_offset_of)
    gaps = bisect_left(before.gaps, start, key=_offset_of)
    transcript = Transcript(source, before.nodes[:known_nodes], before.gaps[:gaps], cap=before.cap)
    transcript.notes = {at: notes for at, notes in before.notes.items() if at < start}
    _load_pieces(transcript, start)
    has_zeros = any(note.id == "line.nul-run" for gap in transcript.gaps[gaps:] for note in gap.damage)
    if has_zeros or transcript.has_dialect:
        # The division of zero bytes depends on the start of reading, and new dialect records may change the conversion
        # of earlier records.
        return load(source, cap=before.cap)
    return transcript


def _load_pieces(transcript: Transcript, start: int, *, keep: bool = False) -> None:
    for piece in read_pieces(transcript.source, start, cap=transcript.cap):
        if isinstance(piece, Record):
            transcript.add(piece, keep=keep)
        else:
            transcript.gaps.append(piece)
    transcript.close_last_line()


def _last_line_start(source: Source, end: int) -> int:
    while end > 0:
        start = max(0, end - _BLOCK_SIZE)
        newline = source.read(start, end - start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def _offset_of(piece: Node | Gap) -> int:
    return piece.offset


def _shift_notes(notes: tuple[Damage, ...], offset: int) -> tuple[Damage, ...]:
    """Return the notes of a separately read record with offsets in its file."""
    return tuple(Damage(note.id, Span(note.span.offset + offset, note.span.length), note.message) for note in notes)
