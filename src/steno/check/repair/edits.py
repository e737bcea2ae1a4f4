"""Edits: what a repair does to a file, in words for people and in bytes for the new file."""

from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from typing import Any, Final, Literal, TypeAlias

import msgspec

from steno.check.graph import Graph
from steno.check.repair.changes import Change, changes_of
from steno.format.encode import encode_line
from steno.format.flaws import flaws
from steno.format.records import Gap, Piece, Record
from steno.session.nodes import Node

__all__ = ["ASIDE", "GONE", "Action", "Drafts", "Edit", "Left", "new_uuid"]

Action: TypeAlias = Literal["change", "insert", "remove", "set aside"]
ASIDE: Final = "steno-aside"
"""The type of a record that keeps another one out of the conversation. It has no id, so every
client passes over it, and nothing of the record is lost."""
GONE: Final = object()
"""The value of a field that is to be left out."""
_TWICE: Final = "line.duplicate-key"
_UNREAD: Final = "line.oversize"


class Edit(msgspec.Struct, frozen=True):
    """One thing a repair does, tied to the finding it mends."""

    finding: str
    action: Action
    line: int
    """The line in the file the repair began with; for a new record, the one it stands behind."""
    uuid: str
    what: str
    lost: str = ""
    """What the new file no longer holds because of it; mostly nothing."""
    changes: tuple[Change, ...] = ()


class Left(msgspec.Struct, frozen=True):
    """A message that stays in the file, but no longer in the conversation.

    Clients bridge a lost parent and go round in a ring, and so come to what nobody said there.
    """

    line: int
    """The line in the file the repair began with."""
    uuid: str


class Drafts:
    """Edits being collected for one stage, over the transcript as that stage found it.

    Of a record that is changed only the new values are held; the rest is read again from the file
    when the new one is written.
    """

    def __init__(
        self,
        graph: Graph,
        line_of: Callable[[int], int],
        unlinked: Mapping[str, str | None] | None = None,
    ) -> None:
        self.graph = graph
        self.transcript = graph.transcript
        self.edits: list[Edit] = []
        self._line_of = line_of
        self._patches: dict[int, dict[str, Any]] = {}
        self._asides: dict[int, str] = {}
        self._removed: set[int] = set()
        self._ahead: dict[int, list[dict[str, Any]]] = {}
        self._behind: dict[int, list[dict[str, Any]]] = {}
        self.unlinked: dict[str, str | None] = {}
        """What was taken out of its place in the chain, with what stood above."""
        self._unlinked_before = unlinked or {}

    def __bool__(self) -> bool:
        return bool(self.edits)

    @property
    def hides_records(self) -> bool:
        """Whether a line is too long to be read: what seems to be missing may stand there."""
        return any(note.id == _UNREAD for gap in self.transcript.gaps for note in gap.damage)

    def fields(self, node: Node) -> dict[str, Any]:
        """Return the fields of a record as they stand in the draft."""
        return self._drafted(self.transcript.record(node))

    def _drafted(self, record: Record) -> dict[str, Any]:
        patch = self._patches.get(record.offset)
        if not patch:
            return record.fields
        after = {**record.fields, **patch}
        return {key: each for key, each in after.items() if each is not GONE}

    def change(
        self, node: Node, finding: str, what: str, fields: dict[str, Any], *, lost: str = ""
    ) -> None:
        """Give fields of a record other values; `GONE` leaves one out."""
        before = self.fields(node)
        shown = {key: None if new is GONE else new for key, new in fields.items()}
        changes = tuple(changes_of({key: before.get(key) for key in fields}, shown))
        self._patches.setdefault(node.offset, {}).update(fields)
        self._note(finding, "change", node, what, lost, changes)

    def rewrite(self, node: Node, finding: str, what: str, *, lost: str = "") -> None:
        """Write a record again as sound JSON, the values as they were read."""
        self._patches.setdefault(node.offset, {})
        self._note(finding, "change", node, what, lost)

    def insert(
        self,
        node: Node,
        record: dict[str, Any],
        finding: str,
        what: str,
        *,
        before: bool = False,
    ) -> None:
        """Put a new record behind another, or before it."""
        places = self._ahead if before else self._behind
        places.setdefault(node.offset, []).append(record)
        line = self._line_of(node.offset)
        self.edits.append(Edit(finding, "insert", line, str(record.get("uuid") or ""), what))

    def set_aside(self, node: Node, finding: str, what: str, *, unlink: bool = True) -> None:
        """Keep a record out of the conversation, and its children in it."""
        self._asides[node.offset] = finding
        if unlink and node.uuid is not None:
            self.unlink(node)
        self._note(finding, "set aside", node, what, "")

    def unlink(self, node: Node) -> None:
        """Let the children of a record hang on its parent, or on what is left of its response."""
        if node.uuid is not None and node.parent != node.uuid:
            self.unlinked[node.uuid] = node.parent

    def left_of(self, uuid: str) -> Node | None:
        """Return a record, or if earlier stages took it out, what its children hang on since."""
        seen: set[str] = set()
        above: str | None = uuid
        while above is not None and above not in self.transcript.by_uuid and above not in seen:
            seen.add(above)
            above = self._unlinked_before.get(above)
        return self.transcript.by_uuid.get(above or "")

    def remove(self, place: Node | Gap, finding: str, what: str, *, lost: str = "") -> None:
        """Leave bytes out."""
        self._removed.add(place.offset)
        uuid = (place.uuid or "") if isinstance(place, Node) else ""
        line = self._line_of(place.offset)
        self.edits.append(Edit(finding, "remove", line, uuid, what, lost))

    def leave_out(self, node: Node) -> None:
        """Leave a record out and its children in; the caller tells of it."""
        self.unlink(node)
        self._removed.add(node.offset)

    def put(self, node: Node, fields: dict[str, Any]) -> None:
        """Give fields of a record other values; the caller tells of it."""
        self._patches.setdefault(node.offset, {}).update(fields)

    def keep_only(self, wanted: Callable[[int], bool], edit: Edit) -> None:
        """Leave out all pieces but those at wanted offsets, as one edit."""
        self._removed.update(
            piece.offset for piece in self.transcript.pieces() if not wanted(piece.offset)
        )
        self.edits.append(edit)

    def line(self, place: Node | Gap) -> int:
        """Return the line of a record or gap in the file the repair began with."""
        return self._line_of(place.offset)

    def is_removed(self, node: Node) -> bool:
        """Whether a record is left out of the draft."""
        return node.offset in self._removed

    def mend_line(self, node: Node, finding: str, what: str) -> None:
        """End a record's line behind it: every line of the new file ends in a newline."""
        self._note(finding, "change", node, what, "")

    def _note(
        self,
        finding: str,
        action: Action,
        node: Node,
        what: str,
        lost: str,
        changes: tuple[Change, ...] = (),
    ) -> None:
        line = self._line_of(node.offset)
        lost = "; ".join(each for each in (lost, self._lost_by_writing(node)) if each)
        self.edits.append(Edit(finding, action, line, node.uuid or "", what, lost, changes))

    def _lost_by_writing(self, node: Node) -> str:
        """Return what of a line is not written again: of a key that is there twice, one value."""
        if node.offset not in self._patches and node.offset not in self._asides:
            return ""
        twice = [each for each in flaws(self.transcript.record(node).line, 0) if each.id == _TWICE]
        if not twice:
            return ""
        return (
            f"earlier values of keys that line {self.line(node):,} has twice ({twice[0].message})"
        )

    # The new file

    def written(self) -> Iterator[tuple[int, bytes]]:
        """Yield the new file line by line, each with the offset of the piece it comes from."""
        self._relink()
        for piece in self.transcript.pieces():
            for record in self._ahead.get(piece.offset, ()):
                yield piece.offset, encode_line(record)
            if piece.offset not in self._removed:
                yield piece.offset, self._bytes(piece)
            for record in self._behind.get(piece.offset, ()):
                yield piece.offset, encode_line(record)

    def _bytes(self, piece: Piece) -> bytes:
        if isinstance(piece, Gap):
            return self.transcript.source.read(piece.offset, piece.length)
        finding = self._asides.get(piece.offset)
        if finding is not None:
            fields = self._drafted(piece)
            aside = {"type": ASIDE, "finding": finding, "sessionId": fields.get("sessionId")}
            return encode_line({**aside, "record": fields})
        if piece.offset in self._patches:
            return encode_line(self._drafted(piece))
        return _ended(piece)

    def _relink(self) -> None:
        """Follow the records that were taken out of the chain, wherever they are named."""
        if not self.unlinked:
            return
        for node in self.transcript.nodes:
            if node.offset in self._removed:
                continue
            names = ("leafUuid",) if node.type == "last-prompt" else ("parentUuid",)
            if node.logical_parent in self.unlinked:
                names = (*names, "logicalParentUuid")
            if node.parent in self.unlinked or len(names) > 1 or node.type == "last-prompt":
                self._follow(node, names)

    def _follow(self, node: Node, names: tuple[str, ...]) -> None:
        if node.offset in self._asides:
            return
        fields = self.fields(node)
        moved = {name: self._resolved(fields[name]) for name in names if name in fields}
        if (
            "parentUuid" in moved
            and node.parent in self.unlinked
            and fields["parentUuid"] == node.parent
        ):
            beside = self.graph.beside(node, moved["parentUuid"], self.unlinked)
            moved["parentUuid"] = beside.uuid if beside is not None else moved["parentUuid"]
        changed = {name: new for name, new in moved.items() if new != fields[name]}
        if changed:
            self._patches.setdefault(node.offset, {}).update(changed)

    def _resolved(self, uuid: Any) -> Any:
        seen: set[str | None] = set()
        if not isinstance(uuid, str):
            return uuid
        while uuid in self.unlinked and uuid not in seen:
            seen.add(uuid)
            uuid = self.unlinked[uuid]
        return None if uuid in seen else uuid


def _ended(record: Record) -> bytes:
    return record.raw if record.ending.endswith(b"\n") else record.line + b"\n"


def new_uuid(*parts: object) -> str:
    """Return an id that is the same whenever it is made from the same things.

    >>> new_uuid("a", 1) == new_uuid("a", 1) != new_uuid("a", 2)
    True
    """
    digest = sha256("\0".join(str(part) for part in parts).encode("utf-8", "replace")).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"
