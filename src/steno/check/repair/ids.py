"""Ids: of records with one id the last counts, as for the real client; the others step aside."""

from typing import Any

from steno.check.repair.edits import Drafts

__all__ = ["mend_ids"]


def mend_ids(drafts: Drafts) -> None:
    """Leave out copies, and set aside records whose id a later one has."""
    for earlier, last in drafts.graph.repeats:
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


def _same(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key != "timestamp"}


def _lost(kept: dict[str, Any], copy: dict[str, Any]) -> str:
    time = copy.get("timestamp")
    return "" if kept.get("timestamp") == time else f"that a copy of a record was written at {time}"
