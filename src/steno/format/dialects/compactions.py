"""Compactions in a dialect, and what they leave of the conversation before them."""

from collections.abc import Sequence
from typing import Any

from steno.format.dialects.links import messages_above
from steno.format.dialects.rows import Row

__all__ = ["plan_compactions"]


def plan_compactions(rows: Sequence[Row]) -> None:
    """Decide for each compaction where its boundary stands, and which messages it keeps."""
    restored = _restored(rows)
    for row in rows:
        if row.kind == "compacted" and not (row.deleted or row.sidechain):
            _plan_operation(row, restored=id(row) in restored)
    before: Row | None = None
    for row in rows:
        if row.deleted or row.sidechain or row.kind == "other":
            continue
        if row.kind in ("preserved", "summary"):
            _plan_boundary(row, before)
        before = row


def _restored(rows: Sequence[Row]) -> set[int]:
    """Return the compactions that were undone: each one that leads to a restoration."""
    found: set[int] = set()
    seen: set[int] = set()
    for row in rows:
        if row.kind != "restored" or row.deleted or row.sidechain:
            continue
        above = row.above
        while above is not None and id(above) not in seen:
            seen.add(id(above))
            if above.kind == "compacted":
                found.add(id(above))
            above = above.above
    return found


def _plan_operation(row: Row, *, restored: bool) -> None:
    """Decide what a `conversation_compacted` leaves: it says how many messages, not which."""
    messages = messages_above(row)
    asked = next((each for each in reversed(messages) if each.kind == "prompt"), None)
    row.by_command = asked is not None and asked.compact_command
    kept: Any = row.metadata.get("preservedMessages")
    if restored or not isinstance(kept, int) or isinstance(kept, bool) or kept < 0:
        return
    start = max(0, len(messages) - kept)
    # What is kept begins with a prompt, as every conversation does.
    while 0 < start < len(messages) and messages[start].kind != "prompt":
        start -= 1
    row.cuts = start > 0
    row.kept = tuple(messages[start:]) if row.cuts else ()


def _plan_boundary(row: Row, before: Row | None) -> None:
    """Decide where the boundary of a `compact_prelude` or `compact_recap` stands."""
    if row.above is None:
        row.above = before
    row.boundary = row.above is None or row.above.kind != "preserved"
