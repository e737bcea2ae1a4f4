"""How much happened in each part of a session's time, from the index."""

import sqlite3
from typing import TYPE_CHECKING, Final

from steno.index.state import SHIFT

if TYPE_CHECKING:
    from steno.report.listing import Listed

__all__ = ["activity_of"]

_SLICES: Final = 28


def activity_of(
    connection: sqlite3.Connection, row: "Listed", slices: int = _SLICES
) -> tuple[list[int], set[int]]:
    """Return how much happened in each part of a session's time, and in which parts steps failed."""
    if row.started is None or row.ended is None or row.ended <= row.started:
        return [0] * slices, set()
    span = row.ended - row.started + 1
    low, high = row.file << SHIFT, (row.file + 1) << SHIFT
    part = f"(time - ?) * {int(slices)} / ?"
    counts = [0] * slices
    for place, number in connection.execute(
        f"SELECT {part}, count(*) FROM messages WHERE id >= ? AND id < ? AND time >= ? GROUP BY 1",
        (row.started, span, low, high, row.started),
    ):
        if 0 <= place < slices:
            counts[place] = number
    failed = connection.execute(
        f"SELECT DISTINCT {part} FROM tool_calls WHERE message >= ? AND message < ? AND failed "
        "AND time >= ?",
        (row.started, span, low, high, row.started),
    )
    return counts, {place for (place,) in failed if 0 <= place < slices}
