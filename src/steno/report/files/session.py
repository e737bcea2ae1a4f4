"""What one session did to files: which, how often, and in which turns."""

import sqlite3
from typing import Any, Final

import msgspec

from steno.index.state import SHIFT
from steno.report.files.touched import COUNTS, FileSource

__all__ = ["Mine", "files_of"]

_BACKUPS: Final = f"""
SELECT b.path, b.turn, s.agent, b.time FROM file_backups b
JOIN sessions s ON s.file = b.message >> {SHIFT} WHERE s.id = ?
ORDER BY b.time IS NULL, b.time, b.message, b.path
"""
_ROWS: Final = f"""
SELECT t.path, t.name, t.turn, s.agent, coalesce(e.added, 0), coalesce(e.removed, 0), t.time
FROM tool_calls t JOIN sessions s ON s.file = t.message >> {SHIFT}
LEFT JOIN file_edits e ON e.message = t.message AND e.place = t.place
WHERE s.id = ? AND {COUNTS}
GROUP BY t.path, CASE t.call WHEN '' THEN t.message ELSE t.call END
ORDER BY t.time IS NULL, t.time, t.message, t.place
"""


class Mine(msgspec.Struct, kw_only=True):
    """A file that a session, or a sub-agent of it, touched. Times are milliseconds."""

    path: str
    reads: int = 0
    edits: int = 0
    added: int = 0
    removed: int = 0
    turns: list[int] = []
    """The turns that touched it, in order; sub-agents count turns of their own and are left out."""
    agents: list[str] = []
    last: int | None = None
    source: FileSource = "calls"
    backups: int = 0
    """How many backups there are of a file that no call names."""

    @property
    def is_changed(self) -> bool:
        """Whether it was changed, or backed up because it was about to be."""
        return bool(self.edits or self.backups)


def files_of(
    connection: sqlite3.Connection, session: str, *, until: int | None = None
) -> list[Mine]:
    """Return the files of a session: the changed ones first, then as they were first touched.

    `until` leaves out what came after that turn; sub-agents then do not count.
    """
    found: dict[str, Mine] = {}
    for row in connection.execute(_ROWS, (session,)):
        if until is None or (not row[3] and row[2] <= until):
            _count(found.setdefault(row[0], Mine(path=row[0])), row)
    called = set(found)
    for path, turn, agent, time in connection.execute(_BACKUPS, (session,)):
        if path not in called and (until is None or (not agent and turn <= until)):
            _back_up(found.setdefault(path, Mine(path=path, source="snapshot")), turn, agent, time)
    return sorted(found.values(), key=lambda each: not each.is_changed)


def _back_up(mine: Mine, turn: int, agent: str, time: int | None) -> None:
    mine.backups += 1
    if agent and agent not in mine.agents:
        mine.agents.append(agent)
    if not agent and turn not in mine.turns:
        mine.turns.append(turn)
    if time is not None:
        mine.last = max(mine.last or 0, time)


def _count(mine: Mine, row: tuple[Any, ...]) -> None:
    _, tool, turn, agent, added, removed, time = row
    mine.reads += tool == "Read"
    mine.edits += tool != "Read"
    mine.added += added
    mine.removed += removed
    if agent and agent not in mine.agents:
        mine.agents.append(agent)
    if not agent and turn not in mine.turns:
        mine.turns.append(turn)
    if time is not None:
        mine.last = max(mine.last or 0, time)
