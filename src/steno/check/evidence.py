"""The data that rules read: a file decoded once, first record by record, then as a whole.

Most lines are plain: decoding and encoding again yields the same bytes, so they need no further checks. Lines and
timestamps are checked in batches, which is much faster than one by one.
"""

import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property, lru_cache
from itertools import chain
from string import hexdigits
from sys import intern
from typing import Annotated, Any, ClassVar, Final, TypeAlias, get_args

import msgspec

from steno.check.findings import Findings, Location, Rule
from steno.check.record_graph import RecordGraph
from steno.format.dialects.detection import dialect_of_source, is_converted
from steno.format.lenient_json import DECODE_ERRORS, as_object
from steno.format.lines import LINE_CAP, LineBatch, read_line, read_line_batches
from steno.format.message import CALL_TYPES, Envelope, decode_envelope
from steno.format.records import DIALECT_TYPES, ROLES, SYSTEM_SUBTYPES, Dialect, Gap, Piece, Record
from steno.format.source import Source, Span
from steno.session.transcript import Node, Transcript, node_of_fields

_BATCH_SIZE: Final = 4_096
_TIME_LENGTH: Final = 24
# Possessive quantifier: no backtracking state.
_TIMES: Final = re.compile(r"(?:[0-9]{4}-(?:0[1-9]|1[0-2])-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]\.[0-9]{3}Z\n)*+")
_UUID: Final = b"00000000-0000-0000-0000-000000000000\n"
_DIGITS_TO_ZERO: Final = bytes(ord("0") if chr(byte) in hexdigits else byte for byte in range(1 << 8))


def are_usual_times(texts: Sequence[str]) -> bool:
    """Return whether all texts are timestamps as Claude Code writes them, which sort as text.

    >>> are_usual_times(["2025-11-15T12:00:00.000Z"]), are_usual_times(["2025-11-15"])
    (True, False)
    """
    for start in range(0, len(texts), _BATCH_SIZE):
        batch = texts[start : start + _BATCH_SIZE]
        lines = "\n".join(chain(batch, ("",)))
        # A text that contains a newline could match as two lines, but changes the total length.
        if len(lines) != len(batch) * (_TIME_LENGTH + 1) or _TIMES.fullmatch(lines) is None:
            return False
    return True


def are_uuids(texts: Sequence[str]) -> bool:
    """Return whether all texts are UUIDs of any version in the usual notation.

    >>> are_uuids(["62ecc684-5437-43ff-95cf-5c331fca7ea1"]), are_uuids(["62ecc684"])
    (True, False)
    """
    for start in range(0, len(texts), _BATCH_SIZE):
        batch = texts[start : start + _BATCH_SIZE]
        lines = "\n".join(chain(batch, ("",)))
        # With every digit replaced by zero, all UUIDs are equal; a text with a newline adds a line.
        if not lines.isascii() or lines.encode().translate(_DIGITS_TO_ZERO) != _UUID * len(batch):
            return False
    return True


# Each level doubles the decoder's schema, and few records nest deeper.
_LEVELS: Final = 8
_MAX_EXACT_INTEGER: Final = 2**53
_MAX_SHAPES: Final = 4_096
_Scalar: TypeAlias = (
    str | Annotated[int, msgspec.Meta(ge=-_MAX_EXACT_INTEGER, le=_MAX_EXACT_INTEGER)] | float | bool | None
)
_DECODE: Final = msgspec.json.Decoder().decode
_ENCODE_LINES: Final = msgspec.json.Encoder().encode_lines


@cache
def _decoder() -> msgspec.json.Decoder[dict[str, Any]]:
    """Return a decoder that rejects deep nesting and integers that JavaScript cannot represent exactly."""
    value: Any = _Scalar
    for _ in range(_LEVELS):
        value = _union(_union(_Scalar, dict[str, value]), list[value])
    return msgspec.json.Decoder(dict[str, value])


def _union(first: Any, second: Any) -> Any:
    return first | second


class PlainBatch(msgspec.Struct, frozen=True, eq=False):
    """A batch of lines without flaws, with the fields of each line."""

    stretch: LineBatch
    fields: list[dict[str, Any]]


def read_plain(source: Source, *, cap: int = LINE_CAP) -> Iterator[PlainBatch | Piece]:
    """Yield a file as batches of plain lines, and all other pieces one by one.

    Lines are decoded in batches. If one line of a batch needs further checks, the batch is split into single pieces.
    """
    for stretch in read_line_batches(source, cap=cap):
        if isinstance(stretch, Gap):
            yield stretch
            continue
        fields = _decode_plain(stretch)
        if fields is not None:
            yield PlainBatch(stretch, fields)
            continue
        for line in stretch.lines():
            fields = _decode_plain(line)
            if fields is not None:
                yield PlainBatch(line, fields)
            else:
                yield from read_line(line)


def _decode_plain(stretch: LineBatch) -> list[dict[str, Any]] | None:
    """Return the fields of each line, or None if one of them needs further checks.

    Plain lines have limited nesting and exact integers, and encode to the same bytes again. So they have no duplicate
    keys, no unusual escapes, and no bytes outside the object.
    """
    if stretch.after_zeros:
        return None
    data = stretch.data
    try:
        fields = _decoder().decode_lines(data)
    except DECODE_ERRORS:
        return None
    again = _ENCODE_LINES(fields)
    # The batch does not include the newline of its last line.
    return fields if len(again) == len(data) + 1 and again.startswith(data) else None


def decode_record(record: Record) -> dict[str, Any]:
    """Return the fields of any record, with invalid JSON values replaced."""
    try:
        return _DECODE(record.line)
    except DECODE_ERRORS:
        return record.fields


class RecordShape:
    """Type and subtype of a record, the names of its fields and the types of their values.

    Shapes are compared by identity.
    """

    __slots__ = ("fits", "is_linked", "kind", "names", "subtype", "types")

    def __init__(self, kind: str, subtype: str, names: tuple[str, ...], types: tuple[type, ...]) -> None:
        self.kind = intern(kind)
        self.subtype = intern(subtype)
        self.names = names
        self.types = types
        self.fits = self._is_typed() and self._is_usual()
        """Whether envelope and speaker can be read directly from the fields."""
        self.is_linked = "parentUuid" in names and "message" in names
        """Whether the record has the fields that messages need, of any type."""

    def _is_typed(self) -> bool:
        known = _known_types()
        pairs = zip(self.names, self.types, strict=True)
        return all(kind in known.get(name, (kind,)) for name, kind in pairs)

    def _is_usual(self) -> bool:
        """Return whether a message is an object, and any other record is not in a dialect."""
        if self.kind in ROLES:
            in_millis = self.has("timestamp", int) or self.has("timestamp", float)
            return self.has("message", dict) and not in_millis
        if self.kind == "system":
            return self.subtype not in SYSTEM_SUBTYPES or "message" not in self.names
        return self.kind not in DIALECT_TYPES

    def has(self, name: str, kind: type) -> bool:
        """Return whether the record has a field with this name and type."""
        return (name, kind) in zip(self.names, self.types, strict=True)


def record_shape(fields: dict[str, Any]) -> RecordShape:
    """Return the cached shape of a record."""
    kind, subtype = fields.get("type"), fields.get("subtype")
    return _SHAPES[
        kind if kind.__class__ is str else "",
        subtype if subtype.__class__ is str else "",
        *fields,
        *map(type, fields.values()),
    ]


class _ShapeCache(dict[tuple[Any, ...], RecordShape]):
    """Cache of shapes by type, subtype, field names and value types."""

    def __missing__(self, key: tuple[Any, ...]) -> RecordShape:
        # Input controls names and types, so the number of shapes is unbounded.
        if len(self) >= _MAX_SHAPES:
            self.clear()
        kind, subtype, *rest = key
        half = len(rest) // 2
        shape = self[key] = RecordShape(kind, subtype, tuple(rest[:half]), tuple(rest[half:]))
        return shape


_SHAPES: Final = _ShapeCache()


@cache
def _known_types() -> dict[str, tuple[type, ...]]:
    fields = msgspec.structs.fields(Envelope)
    return {field.encode_name: types for field in fields if (types := get_args(field.type))}


INNER_FIELDS: Final = {"attachment": "attachment", "progress": "data"}


class RecordView(msgspec.Struct, eq=False, gc=False):
    """One record, with its decoded body while it is available.

    For a plain line, the record is created on first use, because that costs more than everything else.
    """

    node: Node
    line: int
    fields: dict[str, Any]
    shape: RecordShape
    message: dict[str, Any] | None
    """The record's message, if it is an object."""
    source: Record | LineBatch
    """The record, or the batch that contains its line."""

    @property
    def record(self) -> Record:
        """The record."""
        source = self.source
        if isinstance(source, LineBatch):
            start = self.node.offset - source.offset
            line = source.data[start : start + self.node.length - source.ended]
            ending = b"\n" if source.ended else b""
            source = self.source = Record(line, self.node.offset, ending, decode_envelope(line))
        return source

    @property
    def location(self) -> Location:
        """Line, span and ID of the record."""
        return Location(self.line, Span(self.node.offset, self.node.length), self.node.uuid or "")

    @property
    def kind(self) -> str:
        """Record kind in the catalogue, equal to the kind of the record."""
        return (self._is_plain and self._plain_kind()) or self.record.kind

    @property
    def _is_plain(self) -> bool:
        return isinstance(self.source, LineBatch)

    def _plain_kind(self) -> str:
        """Return the kind of a plain line, or an empty string if it needs the record."""
        node, fields = self.node, self.fields
        match node.type:
            case "user":
                return f"user/{self._user_kind()}"
            case "assistant" if fields.get("isApiErrorMessage"):
                return "assistant/api_error"
            case "assistant":
                return self._assistant_kind()
            case "system" if node.subtype:
                return f"system/{node.subtype}"
            case "attachment" | "progress" as outer:
                inner: Any = fields.get(INNER_FIELDS[outer])
                name = inner.get("type") if inner.__class__ is dict else None
                return f"{outer}/{name}" if isinstance(name, str) else outer
            case "queue-operation" if operation := fields.get("operation"):
                return f"queue-operation/{operation}"
            case other:
                return other

    def _user_kind(self) -> str:
        if self.node.results:
            return "tool_result"
        if self.fields.get("isCompactSummary"):
            return "compact_summary"
        return "meta" if self.node.meta else "prompt"

    def _assistant_kind(self) -> str:
        if self.node.uses:
            return "assistant/tool_use"
        content: Any = self.message.get("content") if self.message else None
        if isinstance(content, str):
            return "assistant/text"
        if content.__class__ is not list or not all(block.__class__ is dict for block in content):
            return ""
        kinds = [block.get("type") for block in content]
        # Whether blocks are well-formed is checked by other rules.
        needs_record = not kinds or not all(isinstance(kind, str) for kind in kinds)
        if needs_record or not CALL_TYPES.isdisjoint(kinds) or kinds[0].endswith("thinking"):
            return ""
        return "assistant/text"


_MAX_CACHED_SHAPES: Final = 1_024


class SubagentFileInfo(msgspec.Struct, frozen=True):
    """A sub-agent's file next to the session."""

    agent_id: str
    path: str
    records: int
    flagged: int
    """Number of records marked as sub-agent records."""


class Evidence:
    """A transcript, the line numbers of its records, and the findings so far."""

    def __init__(
        self, transcript: Transcript, *, name: str = "", agents: Sequence[SubagentFileInfo] | None = None
    ) -> None:
        self.transcript = transcript
        self.name = name
        self.agents = agents
        """Sub-agent files of the session; None if they were not looked up."""
        self.findings = Findings()
        self.lines = array("L")
        """Line number of each node."""
        self.as_written: Evidence = self
        """The file as Claude Code reads it; for a dialect file, its unconverted form."""

    @cached_property
    def graph(self) -> RecordGraph:
        """Graph of the records."""
        return RecordGraph(self.transcript)

    @property
    def dialect(self) -> Dialect:
        """Dialect of most messages of the file."""
        return dialect_of_source(self.transcript.source)

    @property
    def is_converted(self) -> bool:
        """Whether the file has dialect records, and the transcript is its converted form."""
        return is_converted(self.transcript.source)

    def location(self, node: Node) -> Location:
        """Return the location of a node's record."""
        span = Span(node.offset, node.length)
        return Location(self.lines[node.index], span, node.uuid or "")

    def resolve_deferred(self) -> None:
        """Decide the severity of findings that depend on whether a record is sent."""
        if self.findings.has_deferred:
            self.findings.resolve_deferred({node.index for node in self.graph.conversation})

    def add_finding(self, rule: Rule, node: Node, message: str = "") -> None:
        """Add a finding at a node."""
        self.findings.add(rule, self.location(node), message)


OnRecord = Callable[[RecordView, Findings], None]
OnGap = Callable[[Gap, Location, Findings], None]
AppliesTo = Callable[[str, RecordShape | None], bool]
"""Selects the record types that a hook receives; the shape is known for plain lines only."""


class RuleFamily:
    """The rules of one family. An instance checks one file. A class defines some of the methods below.

    on_record(view, findings)        for each record, or those that `applies_to` selects
    applies_to(kind, shape)          static; the shape is known for plain lines only
    on_irregular(view, findings)     for records on lines that may have a flaw
    on_gap(gap, location, findings)  for bytes that are not a record
    on_end(evidence)                 once, after the whole file was read
    """

    rules: ClassVar[tuple[Rule, ...]]


class RuleHooks(msgspec.Struct, frozen=True):
    """Hooks that run while a file is read."""

    on_record: tuple[tuple[OnRecord, AppliesTo | None], ...] = ()
    """Hooks with the filter of the records that each receives; None selects all records."""
    on_irregular: tuple[OnRecord, ...] = ()
    """Hooks for records on lines that may have a flaw."""
    on_gap: tuple[OnGap, ...] = ()

    def for_type(self, kind: str, shape: RecordShape | None) -> tuple[OnRecord, ...]:
        """Return the hooks for records of one type, and of one shape if known."""
        indexes = _matching_hooks(tuple([wants for _, wants in self.on_record]), kind, shape)
        return tuple([self.on_record[index][0] for index in indexes])


@lru_cache(maxsize=4_096)
def _matching_hooks(filters: tuple[AppliesTo | None, ...], kind: str, shape: RecordShape | None) -> tuple[int, ...]:
    """Return the indexes of the hooks that apply to a type and shape, cached across files."""
    return tuple(index for index, wants in enumerate(filters) if wants is None or wants(kind, shape))


def gather_evidence(
    source: Source,
    *,
    name: str = "",
    agents: Sequence[SubagentFileInfo] | None = None,
    hooks: RuleHooks | None = None,
    cap: int = LINE_CAP,
) -> Evidence:
    """Read a file once, and run the hooks on every record and gap."""
    transcript = Transcript(source, [], [], cap=cap)
    evidence = Evidence(transcript, name=name, agents=agents)
    reader = _RecordReader(evidence, hooks or RuleHooks())
    for piece in read_plain(source, cap=cap):
        if isinstance(piece, PlainBatch):
            reader.take_batch(piece)
        else:
            reader.take_piece(piece)
    transcript.close_last_line()
    return evidence


class _RecordReader:
    """Passes the pieces of a file to the hooks."""

    def __init__(self, evidence: Evidence, hooks: RuleHooks) -> None:
        self._evidence = evidence
        self._hooks = hooks
        self._hooks_by_shape = _HooksByShape(hooks)
        self._line = 1

    def take_batch(self, batch: PlainBatch) -> None:
        """Process a batch of plain lines. Hot path: most lines of a file arrive here."""
        stretch = batch.stretch
        data, offset, ended = stretch.data, stretch.offset, stretch.ended
        nodes, findings = self._evidence.transcript.nodes, self._evidence.findings
        lines, hooks = self._evidence.lines, self._hooks_by_shape
        start = 0
        for fields in batch.fields:
            stop = data.find(b"\n", start)
            if stop < 0:
                stop = len(data)
            shape = record_shape(fields)
            if shape.fits:
                node = node_of_fields(
                    fields, shape.kind, shape.subtype, len(nodes), offset + start, stop - start + ended, ended=ended
                )
                nodes.append(node)
                lines.append(self._line)
                message = fields.get("message")
                if message.__class__ is not dict:
                    message = None
                view = RecordView(node, self._line, fields, shape, message, stretch)
                for hook in hooks[shape]:
                    hook(view, findings)
                self._line += ended
            else:
                for piece in read_line(stretch.line_at(start, stop)):
                    self.take_piece(piece)
            start = stop + 1

    def take_piece(self, piece: Piece) -> None:
        """Process a gap, or a record whose line may have a flaw."""
        evidence, findings = self._evidence, self._evidence.findings
        if isinstance(piece, Gap):
            evidence.transcript.gaps.append(piece)
            for hook in self._hooks.on_gap:
                hook(piece, Location(self._line, piece.span), findings)
            # A gap contains at most one newline, at its end.
            self._line += piece.ends_line(evidence.transcript.source)
            return
        fields = decode_record(piece)
        node = evidence.transcript.add(piece)
        evidence.lines.append(self._line)
        message = as_object(fields.get("message"))
        view = RecordView(node, self._line, fields, record_shape(fields), message, piece)
        for hook in (*self._hooks.on_irregular, *self._hooks.for_type(node.type, None)):
            hook(view, findings)
        self._line += node.ends_line


class _HooksByShape(dict[RecordShape, tuple[OnRecord, ...]]):
    """Cache of the hooks for plain lines by shape."""

    def __init__(self, hooks: RuleHooks) -> None:
        super().__init__()
        self._watchers = hooks

    def __missing__(self, shape: RecordShape) -> tuple[OnRecord, ...]:
        hooks = self._watchers.for_type(shape.kind, shape)
        # Input controls field names, so the number of shapes is unbounded.
        if len(self) < _MAX_CACHED_SHAPES:
            self[shape] = hooks
        return hooks
