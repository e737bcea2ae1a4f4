"""Which sessions somebody may want to lay beside one: forks of it, other tries, its neighbours."""

import sqlite3
from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

import msgspec

from steno.index.search.reader import Reader
from steno.report.listing import Choice, Listed, list_sessions

__all__ = ["Partner", "Why", "find_sessions", "listed_of", "partners_of"]

Why: TypeAlias = Literal[
    "made from it", "it was made from this", "same first prompt", "same project"
]
_NEAR: Final = 60
"""How many sessions of a project are looked at, those nearest in time first."""
_ORDER: Final[dict[Why, int]] = {
    "made from it": 0,
    "it was made from this": 0,
    "same first prompt": 1,
    "same project": 2,
}
_WORDS: Final = 6
_KINDS: Final = "('fork', 'resume')"


class Partner(msgspec.Struct, frozen=True):
    """A session, and why it may be wanted."""

    listed: Listed
    why: Why


def listed_of(connection: sqlite3.Connection, session: str, file: int) -> Listed | None:
    """Return a session as a list has it."""
    rows = list_sessions(connection, Choice(sessions=(session,))).rows
    return next((row for row in rows if row.file == file), None)


def partners_of(connection: sqlite3.Connection, mine: Listed, limit: int = 8) -> list[Partner]:
    """Return the likeliest, nearest first among those with the same reason."""
    why: dict[str, Why] = {}
    for (name,) in connection.execute(
        "SELECT DISTINCT s.id FROM links l JOIN sessions s ON s.file = l.file "
        f"WHERE l.kind IN {_KINDS} AND l.target = ? AND s.agent = ''",
        (mine.id,),
    ):
        why[name] = "made from it"
    for (name,) in connection.execute(
        f"SELECT DISTINCT target FROM links WHERE file = ? AND kind IN {_KINDS}", (mine.file,)
    ):
        why.setdefault(name, "it was made from this")
    near = connection.execute(
        "SELECT id FROM sessions WHERE agent = '' AND NOT hidden AND project = ? AND project != '' "
        "ORDER BY abs(coalesce(started, 0) - ?) LIMIT ?",
        (mine.project, mine.started or 0, _NEAR),
    ).fetchall()
    alike = connection.execute(
        "SELECT id FROM sessions WHERE agent = '' AND NOT hidden AND title = ? AND title != '' "
        "ORDER BY abs(coalesce(started, 0) - ?) LIMIT ?",
        (mine.title, mine.started or 0, _NEAR),
    ).fetchall()
    names = tuple(dict.fromkeys([*why, *(name for (name,) in (*alike, *near))]))
    rows = list_sessions(connection, Choice(sessions=names), limit=3 * _NEAR).rows
    rows = [row for row in rows if row.file != mine.file]
    first = _first_words(connection, [mine, *rows])
    asked = first.get(mine.file, "")
    found = [
        Partner(row, reason)
        for row in rows
        if (reason := why.get(row.id) or _reason(row, mine, asked, first.get(row.file, "")))
    ]
    found.sort(
        key=lambda each: (
            _ORDER[each.why],
            abs((each.listed.started or 0) - (mine.started or 0)),
            each.listed.file,
        )
    )
    return found[:limit]


def _reason(row: Listed, mine: Listed, asked: str, said: str) -> Why | None:
    if asked and asked == said:
        return "same first prompt"
    return "same project" if mine.project and row.project == mine.project else None


def _first_words(connection: sqlite3.Connection, rows: Iterable[Listed]) -> dict[int, str]:
    """Return what each session was asked first, by its file; nothing where it cannot be read."""
    found: dict[int, str] = {}
    with Reader(connection) as reader:
        for row in rows:
            message = connection.execute(
                "SELECT message FROM turns WHERE file = ? AND number = 1", (row.file,)
            ).fetchone()
            for text in reader.texts(message or ()):
                said = (part.text for part in text.parts if part.kind == "prompt")
                found[row.file] = " ".join("\n".join(said).split()).casefold()
    return found


def find_sessions(connection: sqlite3.Connection, text: str, limit: int = 30) -> list[Listed]:
    """Return the newest sessions with all words in their title, project, branch or id."""
    words = text.split()[:_WORDS]
    where = "".join(
        " AND instr(lower(title || ' ' || project || ' ' || branch || ' ' || id), ?) > 0"
        for _ in words
    )
    names = connection.execute(
        f"SELECT id FROM sessions WHERE agent = '' AND NOT hidden{where} "
        "ORDER BY coalesce(ended, 0) DESC, file DESC LIMIT ?",
        [*(word.lower() for word in words), limit],
    ).fetchall()
    return list_sessions(
        connection, Choice(sessions=tuple(name for (name,) in names)), limit=limit
    ).rows
