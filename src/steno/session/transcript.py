"""One session file, read once: its nodes in file order, its gaps, its state records."""

from collections.abc import Iterator
from typing import Final

from steno.format.lines import LINE_CAP, read_bytes, read_pieces
from steno.format.records import Gap, Piece, Record
from steno.format.source import Source
from steno.session.nodes import Node

__all__ = ["Transcript", "load"]

_KEPT: Final = 8


class Transcript:
    """The records of one file as nodes, and a way back to their bytes."""

    def __init__(self, source: Source, nodes: list[Node], gaps: list[Gap]) -> None:
        self.source = source
        self.nodes = nodes
        self.gaps = gaps
        self._by_uuid: dict[str, Node] | None = None
        self._recent: dict[int, Record] = {}

    def pieces(self) -> Iterator[Piece]:
        """Yield every record and gap again, in file order; they tile the file."""
        return read_pieces(self.source)

    def record(self, node: Node) -> Record:
        """Return the record behind a node, read again from its bytes."""
        held = self._recent.get(node.offset)
        if held is not None:
            return held
        raw = self.source.read(node.offset, node.length)
        record = _first_record(raw, node.offset)
        if len(self._recent) >= _KEPT:
            self._recent.pop(next(iter(self._recent)))
        self._recent[node.offset] = record
        return record

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


def load(source: Source, *, cap: int = LINE_CAP) -> Transcript:
    """Read a whole file into nodes; memory grows with the number of records, not their size."""
    nodes: list[Node] = []
    gaps: list[Gap] = []
    for piece in read_pieces(source, cap=cap):
        if isinstance(piece, Record):
            nodes.append(Node(piece, len(nodes)))
        else:
            gaps.append(piece)
    if nodes and nodes[-1].offset + nodes[-1].length == source.size:
        nodes[-1].ends_line = True
    return Transcript(source, nodes, gaps)


def _first_record(raw: bytes, offset: int) -> Record:
    for piece in read_bytes(raw, cap=len(raw) + 1):
        if isinstance(piece, Record):
            return Record(piece.line, offset, piece.ending, piece.envelope, piece.notes)
    raise AssertionError("a node always stands on a record")
