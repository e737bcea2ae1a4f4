"""What the rules look at: one file, read once, record by record and then as a whole."""

from array import array
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any, Final, TypeAlias

import msgspec

from steno.check.findings import Findings, Place, Rule
from steno.check.graph import Graph
from steno.check.plain import PlainDecoder, Shape, decode_any, shape_of
from steno.format.dialects import Dialect, adapted_role
from steno.format.envelope import Envelope, decode_envelope
from steno.format.lines import LINE_CAP, make_record, read_with
from steno.format.records import Gap, Record
from steno.format.source import Source
from steno.format.spans import Span
from steno.session.nodes import Node
from steno.session.transcript import Transcript

__all__ = ["AgentNote", "Evidence", "Seen", "Watchers", "gather_evidence"]

_Line: TypeAlias = tuple[bytes, int, bytes]
_Plain: TypeAlias = tuple[dict[str, Any], Shape, _Line]
_ROLES: Final = frozenset(("user", "assistant"))
_KINDS_KEPT: Final = 1_024


class AgentNote(msgspec.Struct, frozen=True):
    """A sub-agent's own file, as it was found beside the session."""

    agent_id: str
    path: str
    records: int
    flagged: int
    """How many of its records say that they belong to a sub-agent."""


class Seen:
    """One record at the moment it is read: the only time its body is at hand for free."""

    __slots__ = ("_made", "fields", "line", "message", "node", "shape")

    def __init__(
        self, node: Node, line: int, fields: dict[str, Any], shape: Shape, made: Record | _Line
    ) -> None:
        self.node = node
        self.line = line
        self.fields = fields
        self.shape = shape
        message = fields.get("message")
        self.message: dict[str, Any] | None = message if message.__class__ is dict else None
        """The message in it, if it has one that is an object."""
        self._made = made

    @property
    def record(self) -> Record:
        """The record itself; of a plain line it is made when it is first asked for."""
        if not isinstance(self._made, Record):
            line, offset, ending = self._made
            self._made = Record(line, offset, ending, decode_envelope(line))
        return self._made

    @property
    def place(self) -> Place:
        """Where the record lies."""
        return Place(self.line, Span(self.node.offset, self.node.length), self.node.uuid or "")

    @property
    def dialect(self) -> Dialect:
        """Which family of writers it belongs to; a message with a role is the API's own."""
        if self.message is not None and "role" in self.message and self.node.is_message:
            return "claude"
        return self.record.dialect


class _Reader:
    """Makes of a sound line what it holds, if nothing about it is odd, or else a record."""

    def __init__(self) -> None:
        self._decode = PlainDecoder().decode

    def read(self, line: bytes, offset: int, ending: bytes) -> _Plain | Record | None:
        """Return what a line is; None when it is not sound."""
        fields = self._decode(line)
        if fields is not None:
            shape = shape_of(fields)
            if shape.fits and _is_usual(fields, shape):
                return fields, shape, (line, offset, ending)
        return make_record(line, offset, ending)


def _is_usual(fields: dict[str, Any], shape: Shape) -> bool:
    """Whether what a record says can be read off its fields: it is of no dialect."""
    kind = fields.get("type")
    if kind in _ROLES:
        return shape.has_message
    return not _speaks_otherwise(kind, fields.get("subtype"))


@lru_cache(maxsize=_KINDS_KEPT)
def _speaks_otherwise(kind: str | None, subtype: str | None) -> bool:
    return bool(adapted_role(Envelope(type=kind, subtype=subtype)))


class Evidence:
    """A transcript, where its lines lie, and what was found so far."""

    def __init__(
        self, transcript: Transcript, *, name: str = "", agents: Sequence[AgentNote] | None = None
    ) -> None:
        self.transcript = transcript
        self.name = name
        self.agents = agents
        """The sub-agents' files beside it; None when nobody looked for them."""
        self.findings = Findings()
        self.lines = array("L")
        """The number of each node's line."""

    @cached_property
    def graph(self) -> Graph:
        """How the records hang together."""
        return Graph(self.transcript)

    def place(self, node: Node) -> Place:
        """Return where a node's record lies."""
        span = Span(node.offset, node.length)
        return Place(self.lines[node.index], span, node.uuid or "")

    def settle(self) -> None:
        """Decide about the findings that depend on whether a record is sent."""
        if self.findings.is_open:
            self.findings.settle({node.index for node in self.graph.conversation})

    def note(self, rule: Rule, node: Node, message: str = "") -> None:
        """Note a breach at a node."""
        self.findings.add(rule, self.place(node), message)


OnRecord = Callable[[Seen, Findings], None]
OnGap = Callable[[Gap, Place, Findings], None]


class Watchers(msgspec.Struct, frozen=True):
    """What looks at a file while it is read."""

    on_record: tuple[tuple[OnRecord, frozenset[str] | None], ...] = ()
    """With the types of records that each looks at; None for all of them."""
    on_odd: tuple[OnRecord, ...] = ()
    """For records on lines that may have a flaw."""
    on_gap: tuple[OnGap, ...] = ()

    def of(self, kind: str) -> tuple[OnRecord, ...]:
        """Return what looks at records of one type."""
        return tuple(look for look, types in self.on_record if types is None or kind in types)


def gather_evidence(
    source: Source,
    *,
    name: str = "",
    agents: Sequence[AgentNote] | None = None,
    watchers: Watchers | None = None,
    cap: int = LINE_CAP,
) -> Evidence:
    """Read a file once, show every record and gap to the rules that look at single ones."""
    transcript = Transcript(source, [], [], cap=cap)
    evidence = Evidence(transcript, name=name, agents=agents)
    watchers = watchers or Watchers()
    looks = _Table(watchers)
    findings, lines = evidence.findings, evidence.lines
    take = transcript.take_fields
    line = 1
    for piece in read_with(_Reader().read, source, cap=cap):
        if isinstance(piece, tuple):
            # Nearly every line comes this way: whatever is done here is done a million times.
            fields, shape, made = piece
            seen = Seen(take(fields, made), line, fields, shape, made)
        elif isinstance(piece, Gap):
            transcript.gaps.append(piece)
            for look in watchers.on_gap:
                look(piece, Place(line, piece.span), findings)
            # A gap holds at most one newline, and that at its end.
            line += _ends_line(source, piece)
            continue
        else:
            seen = _odd(piece, transcript, line)
            for look in watchers.on_odd:
                look(seen, findings)
        lines.append(line)
        node = seen.node
        for look in looks[node.type]:
            look(seen, findings)
        line += node.ends_line
    transcript.close_last_line()
    return evidence


class _Table(dict[str, tuple[OnRecord, ...]]):
    """What looks at records, by their type; filled as types are met."""

    def __init__(self, watchers: Watchers) -> None:
        super().__init__()
        self._watchers = watchers

    def __missing__(self, kind: str) -> tuple[OnRecord, ...]:
        found = self._watchers.of(kind)
        # Types are anybody's words: a file may have any number of them.
        if len(self) < _KINDS_KEPT:
            self[kind] = found
        return found


def _odd(record: Record, transcript: Transcript, line: int) -> Seen:
    """Take a record into the transcript whose line may have a flaw."""
    fields = decode_any(record)
    return Seen(transcript.take(record), line, fields, shape_of(fields), record)


def _ends_line(source: Source, gap: Gap) -> bool:
    return source.read(gap.offset + gap.length - 1, 1) == b"\n"
