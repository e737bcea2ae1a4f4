"""What the index knows of one session: its name, place, figures, and those before and behind."""

from sqlite3 import Connection
from typing import Final

import msgspec

from steno.report.keys import SHARED, key_of

__all__ = ["Known", "copied_into", "known_of", "neighbours_of"]

_KNOWN: Final = """
SELECT s.title, s.named, s.project, s.branch, s.model, s.version, s.started, s.ended, s.turns,
       s.messages, f.size, f.mtime, s.grown
FROM sessions s JOIN files f ON f.id = s.file WHERE s.file = ?
"""
_COPIED: Final = """
SELECT count(*) FROM usage u JOIN sessions s ON s.file = u.file
WHERE s.owner = ? AND NOT u.counts AND NOT EXISTS (
  SELECT 1 FROM usage o JOIN sessions t ON t.file = o.file
  WHERE o.key = u.key AND o.counts AND t.owner = s.owner)
"""
_NEAR: Final = f"""
SELECT s.id, s.file, {SHARED} FROM sessions s
WHERE s.project = ? AND s.agent = '' AND NOT s.hidden AND s.file != ? AND s.ended
"""
_EARLIER: Final = f"{_NEAR} < ? ORDER BY s.ended DESC LIMIT 1"
_LATER: Final = f"{_NEAR} > ? ORDER BY s.ended LIMIT 1"


class Known(msgspec.Struct, frozen=True):
    """A row of the index, for people."""

    title: str = ""
    named: bool = False
    project: str = ""
    branch: str = ""
    model: str = ""
    version: str = ""
    started: float | None = None
    ended: float | None = None
    turns: int = 0
    messages: int = 0
    size: int = 0
    changed: float = 0.0
    """When the file was last written to, as far as the index knows."""
    grown: float | None = None
    """When the file was last seen growing."""


def known_of(connection: Connection, file: int) -> Known:
    """Return what is known of a file; nothing where it is not indexed."""
    row = connection.execute(_KNOWN, (file,)).fetchone()
    if row is None:
        return Known()
    title, named, project, branch, model, version, started, ended, *counts, mtime, grown = row
    turns, messages, size = counts
    return Known(
        title=title,
        named=bool(named),
        project=project,
        branch=branch,
        model=model,
        version=version,
        started=_seconds(started),
        ended=_seconds(ended),
        turns=turns,
        messages=messages,
        size=size,
        changed=mtime / 1e9,
        grown=_seconds(grown),
    )


def _seconds(moment: int | None) -> float | None:
    return None if moment is None else moment / 1000


def copied_into(connection: Connection, file: int) -> int:
    """Return how many responses a session holds that another one paid for: it was forked from it."""
    return connection.execute(_COPIED, (file,)).fetchone()[0]


def neighbours_of(connection: Connection, file: int, known: Known) -> tuple[str, str]:
    """Return what addresses call the sessions of the same project that ended before and after one.

    Nothing where there is none.
    """
    if known.ended is None:
        return "", ""
    asked = known.project, file, round(known.ended * 1000)
    earlier, later = (connection.execute(way, asked).fetchone() for way in (_EARLIER, _LATER))
    return _key(earlier), _key(later)


def _key(row: tuple[str, int, int] | None) -> str:
    return "" if row is None else key_of(row[0], row[1], shared=bool(row[2]))
