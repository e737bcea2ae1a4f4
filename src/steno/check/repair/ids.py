"""Ids: of records with one id the last counts, as for the real client; the others step aside."""

from typing import Any, Final

from steno.check.repair.edits import GONE, Drafts
from steno.session.nodes import Node

__all__ = ["mend_ids"]

_SNAPSHOT: Final = "file-history-snapshot"


def mend_ids(drafts: Drafts) -> None:
    """Leave out copies, and set aside records whose id a later one has."""
    repeats = drafts.graph.repeats
    snapshots = {node.index: node for pair in repeats for node in _snapshots(*pair)}
    for snapshot in snapshots.values():
        what = "take away the id of a snapshot: another record has it, and a snapshot needs none"
        drafts.change(snapshot, "ids.snapshot-collision", what, {"uuid": GONE})
    for earlier, last in repeats:
        # With a snapshot out of the way, what is left under its id is looked at once more.
        if earlier.index in snapshots or last.index in snapshots:
            continue
        kept, copy = drafts.fields(earlier), drafts.fields(last)
        if _same(kept) == _same(copy):
            # The first copy stays where it is: its place and time fit its neighbours.
            if not drafts.is_removed(last):
                what = "leave out a copy of an earlier record"
                drafts.remove(last, "ids.duplicate", what, lost=_lost(kept, copy))
            elif not drafts.is_removed(earlier):
                what = "leave out one more copy of a record"
                drafts.remove(earlier, "ids.duplicate", what, lost=_lost(copy, kept))
        else:
            what = "set aside a record whose id a later one has; clients take the later"
            drafts.set_aside(earlier, "ids.conflict", what, unlink=False)


def _snapshots(earlier: Node, last: Node) -> list[Node]:
    """Return the snapshot of two records with one id, if the other is none."""
    if earlier.type == last.type:
        return []
    return [node for node in (earlier, last) if node.type == _SNAPSHOT]


def _same(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key != "timestamp"}


def _lost(kept: dict[str, Any], copy: dict[str, Any]) -> str:
    time = copy.get("timestamp")
    return "" if kept.get("timestamp") == time else f"that a copy of a record was written at {time}"
