"""Ids: of records with one id the last counts, as for the real client; the others step aside."""

from typing import Any

from steno.check.copies import collides, says_the_same
from steno.check.repair.edits import GONE, Drafts
from steno.format.values import shown
from steno.session.nodes import Node

__all__ = ["mend_ids"]


def mend_ids(drafts: Drafts) -> None:
    """Leave out copies, and set aside records whose id a later one has."""
    repeats = drafts.graph.repeats
    snapshots = {node.index: node for pair in repeats for node in collides(*pair)}
    for snapshot in snapshots.values():
        what = "take away the id of a snapshot: another record has it, and a snapshot needs none"
        drafts.change(snapshot, "ids.snapshot-collision", what, {"uuid": GONE})
    for earlier, last in repeats:
        # With a snapshot out of the way, what is left under its id is looked at once more.
        if earlier.index in snapshots or last.index in snapshots:
            continue
        first, second = drafts.fields(earlier), drafts.fields(last)
        if not says_the_same(first, second):
            what = "set aside a record whose id a later one has; clients take the later"
            drafts.set_aside(earlier, "ids.conflict", what, unlink=False)
        elif drafts.is_removed(last) or _timeless(first) != _timeless(second):
            # Clients go by the later one's parent, so that is the one to keep.
            _leave_out(drafts, earlier, first, second)
        else:
            # The first stays where it is: its place and time fit its neighbours.
            _leave_out(drafts, last, second, first)


def _leave_out(drafts: Drafts, node: Node, copy: dict[str, Any], kept: dict[str, Any]) -> None:
    if drafts.is_removed(node):
        return
    other = [f"{key} {shown(copy[key])}" for key in copy if kept.get(key) != copy[key]]
    lost = f"what only a copy of a record had: {', '.join(other)}" if other else ""
    drafts.remove(node, "ids.duplicate", "leave out a copy of another record", lost=lost)


def _timeless(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key != "timestamp"}
