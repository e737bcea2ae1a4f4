"""Edits of a repair: described for users and applied to the new file."""

from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from typing import Any, Final, Literal, TypeAlias, cast

import msgspec

from steno.check.record_graph import RecordGraph
from steno.format.encode import encode, encode_line
from steno.format.lenient_json import as_list, as_object
from steno.format.records import Gap, Piece, Record
from steno.format.salvage import find_flaws
from steno.session.transcript import Node

MAX_VALUE_LENGTH: Final = 2000
"""Maximum length of a recorded value in characters; longer values are stored as truncated JSON."""


class Change(msgspec.Struct, frozen=True):
    """One changed field, before and after."""

    field: str
    before: Any
    after: Any


def field_changes(before: dict[str, Any], after: dict[str, Any], prefix: str = "") -> Iterator[Change]:
    """Yield the fields that differ, with nested fields of objects and changed items of lists."""
    for key in {**before, **after}:
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        name = f"{prefix}{key}"
        if isinstance(old, dict) and isinstance(new, dict):
            inner = cast("dict[str, Any]", old), cast("dict[str, Any]", new)
            yield from field_changes(*inner, f"{name}.")
        elif isinstance(old, list) and isinstance(new, list):
            removed, added = cast("list[Any]", old), cast("list[Any]", new)
            yield Change(name, _shorten(_items_not_in(removed, added)), _shorten(_items_not_in(added, removed)))
        else:
            yield Change(name, _shorten(old), _shorten(new))


def _items_not_in(items: list[Any], excluded: list[Any]) -> list[Any]:
    """Return the items that are not in `excluded`."""
    known = {encode(item) for item in excluded}
    return [item for item in items if encode(item) not in known]


def _shorten(value: Any) -> Any:
    """Return a value, or its truncated JSON if it is too long."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else encode(value).decode("utf-8", "replace")
    return f"{text[:MAX_VALUE_LENGTH]}…" if len(text) > MAX_VALUE_LENGTH else value


Action: TypeAlias = Literal["change", "insert", "remove", "set aside"]
ASIDE_TYPE: Final = "steno-aside"
"""Type of a record that wraps another one to exclude it from the conversation. It has no ID, so every version of Claude
Code skips it, and the wrapped record is preserved."""
REMOVED: Final = object()
"""Marks a field to remove."""
_DUPLICATE_KEY: Final = "line.duplicate-key"
_OVERSIZE: Final = "line.oversize"


class Edit(msgspec.Struct, frozen=True):
    """One edit of a repair, with the finding that it fixes."""

    finding: str
    action: Action
    line: int
    """Line in the original file; for a new record, the line after which it is inserted."""
    uuid: str
    what: str
    lost: str = ""
    """Content that the new file no longer contains; usually empty."""
    changes: tuple[Change, ...] = ()


class DroppedMessage(msgspec.Struct, frozen=True):
    """A message that stays in the file but leaves the conversation.

    Claude Code bridges missing parents and follows cycles, so a broken file can include messages that were not part of
    the conversation.
    """

    line: int
    """Line in the original file."""
    uuid: str


class EditPlan:
    """Collects the edits of one stage over the current transcript.

    Only the new values of changed records are kept; the rest is read from the file again when the new one is written.
    """

    def __init__(
        self, graph: RecordGraph, line_of: Callable[[int], int], unlinked: Mapping[str, str | None] | None = None
    ) -> None:
        self.graph = graph
        self.transcript = graph.transcript
        self.edits: list[Edit] = []
        self._line_of = line_of
        self._patches: dict[int, dict[str, Any]] = {}
        self._asides: dict[int, str] = {}
        self._removed: set[int] = set()
        self._inserted_before: dict[int, list[dict[str, Any]]] = {}
        self._inserted_after: dict[int, list[dict[str, Any]]] = {}
        self.unlinked: dict[str, str | None] = {}
        """Records removed from the chain, with their parents."""
        self._unlinked_before = unlinked or {}

    def __bool__(self) -> bool:
        return bool(self.edits)

    @property
    def hides_records(self) -> bool:
        """Whether a line was too long to read, so that missing records may be on it."""
        return any(note.id == _OVERSIZE for gap in self.transcript.gaps for note in gap.damage)

    def fields(self, node: Node) -> dict[str, Any]:
        """Return the fields of a record with the planned edits."""
        return self._patched(self.transcript.record(node))

    def _patched(self, record: Record) -> dict[str, Any]:
        patch = self._patches.get(record.offset)
        if not patch:
            return record.fields
        after = {**record.fields, **patch}
        return {key: value for key, value in after.items() if value is not REMOVED}

    def change(self, node: Node, finding: str, description: str, fields: dict[str, Any], *, lost: str = "") -> None:
        """Set fields of a record; `REMOVED` removes a field."""
        before = self.fields(node)
        shown = {key: None if new is REMOVED else new for key, new in fields.items()}
        changes = tuple(field_changes({key: before.get(key) for key in fields}, shown))
        self._patches.setdefault(node.offset, {}).update(fields)
        self._add_edit(finding, "change", node, description, lost, changes)

    def rewrite(self, node: Node, finding: str, description: str, *, lost: str = "") -> None:
        """Write a record as valid JSON with the values as read."""
        self._patches.setdefault(node.offset, {})
        self._add_edit(finding, "change", node, description, lost)

    def insert(
        self, node: Node, record: dict[str, Any], finding: str, description: str, *, before: bool = False
    ) -> None:
        """Insert a new record after another, or before it."""
        insertions = self._inserted_before if before else self._inserted_after
        insertions.setdefault(node.offset, []).append(record)
        line = self._line_of(node.offset)
        self.edits.append(Edit(finding, "insert", line, str(record.get("uuid") or ""), description))

    def set_aside(self, node: Node, finding: str, description: str, *, unlink: bool = True) -> None:
        """Exclude a record from the conversation and relink its children."""
        self._asides[node.offset] = finding
        if unlink and node.uuid is not None:
            self.unlink(node)
        self._add_edit(finding, "set aside", node, description, "")

    def unlink(self, node: Node) -> None:
        """Relink the children of a record to its parent, or to the rest of its response."""
        if node.uuid is not None and node.parent != node.uuid:
            self.unlinked[node.uuid] = node.parent

    def remaining_record(self, uuid: str) -> Node | None:
        """Return a record, or its nearest remaining ancestor if earlier stages removed it."""
        seen: set[str] = set()
        parent: str | None = uuid
        while parent is not None and parent not in self.transcript.by_uuid and parent not in seen:
            seen.add(parent)
            parent = self._unlinked_before.get(parent)
        return self.transcript.by_uuid.get(parent or "")

    def remove(self, piece: Node | Gap, finding: str, description: str, *, lost: str = "") -> None:
        """Remove a record or gap."""
        self._removed.add(piece.offset)
        uuid = (piece.uuid or "") if isinstance(piece, Node) else ""
        line = self._line_of(piece.offset)
        self.edits.append(Edit(finding, "remove", line, uuid, description, lost))

    def remove_without_edit(self, node: Node) -> None:
        """Remove a record and relink its children, without an edit; the caller adds one."""
        self.unlink(node)
        self._removed.add(node.offset)

    def patch_without_edit(self, node: Node, fields: dict[str, Any]) -> None:
        """Set fields of a record without an edit; the caller adds one."""
        self._patches.setdefault(node.offset, {}).update(fields)

    def keep_only(self, is_kept: Callable[[int], bool], edit: Edit) -> None:
        """Remove all pieces except those at selected offsets, as one edit."""
        self._removed.update(piece.offset for piece in self.transcript.pieces() if not is_kept(piece.offset))
        self.edits.append(edit)

    def line(self, piece: Node | Gap) -> int:
        """Return the line of a record or gap in the original file."""
        return self._line_of(piece.offset)

    def is_removed(self, node: Node) -> bool:
        """Return whether a record is removed."""
        return node.offset in self._removed

    def end_line(self, node: Node, finding: str, description: str) -> None:
        """Add an edit for a newline after a record; every line of the new file ends in one."""
        self._add_edit(finding, "change", node, description, "")

    def _add_edit(
        self, finding: str, action: Action, node: Node, description: str, lost: str, changes: tuple[Change, ...] = ()
    ) -> None:
        line = self._line_of(node.offset)
        lost = "; ".join(loss for loss in (lost, self._loss_by_rewriting(node)) if loss)
        self.edits.append(Edit(finding, action, line, node.uuid or "", description, lost, changes))

    def _loss_by_rewriting(self, node: Node) -> str:
        """Describe the values lost by rewriting a record: earlier values of duplicate keys."""
        if node.offset not in self._patches and node.offset not in self._asides:
            return ""
        duplicates = [flaw for flaw in find_flaws(self.transcript.record(node).line, 0) if flaw.id == _DUPLICATE_KEY]
        if not duplicates:
            return ""
        return f"earlier values of duplicate keys in line {self.line(node):,} ({duplicates[0].message})"

    # The new file

    def new_lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield the lines of the new file, each with the offset of its original piece."""
        self._relink()
        for piece in self.transcript.pieces():
            for record in self._inserted_before.get(piece.offset, ()):
                yield piece.offset, encode_line(record)
            if piece.offset not in self._removed:
                yield piece.offset, self._bytes(piece)
            for record in self._inserted_after.get(piece.offset, ()):
                yield piece.offset, encode_line(record)

    def _bytes(self, piece: Piece) -> bytes:
        if isinstance(piece, Gap):
            return self.transcript.source.read(piece.offset, piece.length)
        finding = self._asides.get(piece.offset)
        if finding is not None:
            fields = self._patched(piece)
            aside = {"type": ASIDE_TYPE, "finding": finding, "sessionId": fields.get("sessionId")}
            return encode_line({**aside, "record": fields})
        if piece.offset in self._patches:
            return encode_line(self._patched(piece))
        return _with_newline(piece)

    def _relink(self) -> None:
        """Update references to records that were removed from the chain."""
        if not self.unlinked:
            return
        for node in self.transcript.nodes:
            if node.offset in self._removed:
                continue
            names = ("leafUuid",) if node.type == "last-prompt" else ("parentUuid",)
            if node.logical_parent in self.unlinked:
                names = (*names, "logicalParentUuid")
            if node.parent in self.unlinked or len(names) > 1 or node.type == "last-prompt":
                self._update_links(node, names)

    def _update_links(self, node: Node, names: tuple[str, ...]) -> None:
        if node.offset in self._asides:
            return
        fields = self.fields(node)
        moved = {name: self._resolved(fields[name]) for name in names if name in fields}
        if "parentUuid" in moved and node.parent in self.unlinked and fields["parentUuid"] == node.parent:
            sibling = self.graph.sibling_before(node, moved["parentUuid"], self.unlinked)
            moved["parentUuid"] = sibling.uuid if sibling is not None else moved["parentUuid"]
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


def _with_newline(record: Record) -> bytes:
    return record.raw if record.ending.endswith(b"\n") else record.line + b"\n"


def new_uuid(*parts: object) -> str:
    """Return an ID derived from its arguments, the same for each run.

    >>> new_uuid("a", 1) == new_uuid("a", 1) != new_uuid("a", 2)
    True
    """
    digest = sha256("\0".join(str(part) for part in parts).encode("utf-8", "replace")).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"


_SHARED_FIELDS: Final = ("userType", "entrypoint", "cwd", "sessionId", "version", "gitBranch")


def envelope_of(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the envelope fields that a new record shares with its neighbour."""
    return {key: fields[key] for key in _SHARED_FIELDS if key in fields}


def message_of(plan: EditPlan, node: Node) -> dict[str, Any]:
    """Return a record's message with the planned edits, or an empty object."""
    return as_object(plan.fields(node).get("message")) or {}


def objects_in(value: Any) -> list[dict[str, Any]]:
    """Return the objects in a list, such as content blocks."""
    return [fields for item in as_list(value) or () if (fields := as_object(item)) is not None]
