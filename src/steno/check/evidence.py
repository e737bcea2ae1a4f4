"""What the rules look at: one file, read once, record by record and then as a whole."""

from array import array
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Final

import msgspec

from steno.check.findings import Findings, Place, Rule
from steno.check.graph import Graph
from steno.check.plain import Batch, Shape, decode_any, read_plain, shape_of
from steno.check.seen import Seen
from steno.format.dialects.detection import dialect_of_source, is_converted
from steno.format.dialects.names import Dialect
from steno.format.lines import LINE_CAP, read_line
from steno.format.records import Gap, Piece
from steno.format.source import Source
from steno.format.spans import Span
from steno.format.values import as_object
from steno.session.nodes import Node, node_of
from steno.session.transcript import Transcript

__all__ = ["AgentNote", "Evidence", "Watchers", "gather_evidence"]

_SHAPES_KEPT: Final = 1_024


class AgentNote(msgspec.Struct, frozen=True):
    """A sub-agent's own file, as it was found beside the session."""

    agent_id: str
    path: str
    records: int
    flagged: int
    """How many of its records say that they belong to a sub-agent."""


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
        self.as_written: Evidence = self
        """The file as real clients read it: of one in a dialect, before it was converted."""

    @cached_property
    def graph(self) -> Graph:
        """How the records hang together."""
        return Graph(self.transcript)

    @property
    def dialect(self) -> Dialect:
        """What most messages of the file are written in."""
        return dialect_of_source(self.transcript.source)

    @property
    def is_converted(self) -> bool:
        """Whether the file has records in a dialect, and the transcript is its converted form."""
        return is_converted(self.transcript.source)

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
Wants = Callable[[str, Shape | None], bool]
"""Whether to look at records of a type; of plain lines the shape is known as well."""


class Watchers(msgspec.Struct, frozen=True):
    """What looks at a file while it is read."""

    on_record: tuple[tuple[OnRecord, Wants | None], ...] = ()
    """With what says which records each looks at; None for all of them."""
    on_odd: tuple[OnRecord, ...] = ()
    """For records on lines that may have a flaw."""
    on_gap: tuple[OnGap, ...] = ()

    def of(self, kind: str, shape: Shape | None) -> tuple[OnRecord, ...]:
        """Return what looks at records of one type, and shape where that is known."""
        chosen = _chosen(tuple([wants for _, wants in self.on_record]), kind, shape)
        return tuple([self.on_record[at][0] for at in chosen])


@lru_cache(maxsize=4_096)
def _chosen(every: tuple[Wants | None, ...], kind: str, shape: Shape | None) -> tuple[int, ...]:
    """Return the places of those that look at such records: asked once, not for every file."""
    return tuple(at for at, wants in enumerate(every) if wants is None or wants(kind, shape))


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
    reading = _Reading(evidence, watchers or Watchers())
    for piece in read_plain(source, cap=cap):
        if isinstance(piece, Batch):
            reading.take_batch(piece)
        else:
            reading.take_piece(piece)
    transcript.close_last_line()
    return evidence


class _Reading:
    """A file on its way to the rules that look at single records."""

    def __init__(self, evidence: Evidence, watchers: Watchers) -> None:
        self._evidence = evidence
        self._watchers = watchers
        self._looks = _Table(watchers)
        self._line = 1

    def take_batch(self, batch: Batch) -> None:
        """Take in plain lines. Nearly all come this way: what is done here is done a million times."""
        stretch = batch.stretch
        data, offset, ended = stretch.data, stretch.offset, stretch.ended
        nodes, findings = self._evidence.transcript.nodes, self._evidence.findings
        lines, looks = self._evidence.lines, self._looks
        start = 0
        for fields in batch.fields:
            stop = data.find(b"\n", start)
            if stop < 0:
                stop = len(data)
            shape = shape_of(fields)
            if shape.fits:
                node = node_of(
                    fields,
                    shape.kind,
                    shape.subtype,
                    len(nodes),
                    offset + start,
                    stop - start + ended,
                    ended=ended,
                )
                nodes.append(node)
                lines.append(self._line)
                message = fields.get("message")
                if message.__class__ is not dict:
                    message = None
                seen = Seen(node, self._line, fields, shape, message, stretch)
                for look in looks[shape]:
                    look(seen, findings)
                self._line += ended
            else:
                for piece in read_line(stretch.part(start, stop)):
                    self.take_piece(piece)
            start = stop + 1

    def take_piece(self, piece: Piece) -> None:
        """Take in a gap, or a record whose line may have a flaw."""
        evidence, findings = self._evidence, self._evidence.findings
        if isinstance(piece, Gap):
            evidence.transcript.gaps.append(piece)
            for look in self._watchers.on_gap:
                look(piece, Place(self._line, piece.span), findings)
            # A gap holds at most one newline, and that at its end.
            self._line += _ends_line(evidence.transcript.source, piece)
            return
        fields = decode_any(piece)
        node = evidence.transcript.take(piece)
        evidence.lines.append(self._line)
        message = as_object(fields.get("message"))
        seen = Seen(node, self._line, fields, shape_of(fields), message, piece)
        for look in (*self._watchers.on_odd, *self._watchers.of(node.type, None)):
            look(seen, findings)
        self._line += node.ends_line


class _Table(dict[Shape, tuple[OnRecord, ...]]):
    """What looks at the records of plain lines, by their shape; filled as shapes are met."""

    def __init__(self, watchers: Watchers) -> None:
        super().__init__()
        self._watchers = watchers

    def __missing__(self, shape: Shape) -> tuple[OnRecord, ...]:
        found = self._watchers.of(shape.kind, shape)
        # Names are anybody's words: a file may have any number of shapes.
        if len(self) < _SHAPES_KEPT:
            self[shape] = found
        return found


def _ends_line(source: Source, gap: Gap) -> bool:
    return source.read(gap.offset + gap.length - 1, 1) == b"\n"
