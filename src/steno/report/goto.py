"""What somebody may want to go to, found by a few letters: sessions, projects, files."""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from steno.report.keys import SHARED, key_of

__all__ = ["Target", "files_like", "projects_like", "sessions_like", "titles_of"]

_MOST: Final = 8
"""Words; what comes behind them is not looked at."""
_ESCAPES: Final = str.maketrans({"\\": "\\\\", "%": "\\%", "_": "\\_"})
_LIKE: Final = "{} LIKE ? ESCAPE '\\'"


class Target(msgspec.Struct, frozen=True):
    """A session, and what an address calls it."""

    id: str
    key: str
    title: str
    project: str
    ended: int | None


def sessions_like(connection: sqlite3.Connection, text: str, limit: int) -> list[Target]:
    """Return sessions whose title, project or branch has all the words, or whose id begins so."""
    tests, values = _all_words(text, ("title", "project", "branch"))
    rows = connection.execute(
        f"SELECT id, file, {SHARED}, title, project, ended FROM sessions s WHERE listed = 1 AND "
        f"({tests} OR {_LIKE.format('id')}) ORDER BY last DESC LIMIT ?",
        (*values, f"{_id(text)}%", limit),
    )
    return [
        Target(name, key_of(name, file, shared=bool(shared)), title, project, ended)
        for name, file, shared, title, project, ended in rows
    ]


def projects_like(connection: sqlite3.Connection, text: str, limit: int) -> list[tuple[str, int]]:
    """Return projects whose path has all the words, and how many sessions each has."""
    tests, values = _all_words(text, ("project",))
    return connection.execute(
        "SELECT project, count(*) FROM sessions WHERE agent = '' AND NOT hidden AND project <> '' "
        f"AND {tests} GROUP BY project ORDER BY max(ended) DESC LIMIT ?",
        (*values, limit),
    ).fetchall()


def files_like(connection: sqlite3.Connection, text: str, limit: int) -> list[tuple[str, int]]:
    """Return files that agents changed and whose path has all the words, and how often each was."""
    tests, values = _all_words(text, ("path",))
    return connection.execute(
        f"SELECT path, count(*) FROM file_edits WHERE {tests} "
        "GROUP BY path ORDER BY max(time) DESC LIMIT ?",
        (*values, limit),
    ).fetchall()


def titles_of(connection: sqlite3.Connection, ids: Iterable[str]) -> dict[str, str]:
    """Return the titles of some sessions, as far as they are known."""
    wanted = list(dict.fromkeys(ids))
    marks = ",".join("?" * len(wanted))
    rows = connection.execute(
        f"SELECT id, title FROM sessions WHERE agent = '' AND id IN ({marks})", wanted
    )
    return {name: title or "(no title)" for name, title in rows}


def _id(text: str) -> str:
    """Return the beginning of an id; one that no session has where nothing was typed."""
    return text.replace("\0", "").strip().translate(_ESCAPES) or " "


def _all_words(text: str, columns: Sequence[str]) -> tuple[str, list[str]]:
    # A pattern would end at a zero byte, and everything fits what is left.
    words = text.replace("\0", "\u2400").split()[:_MOST]
    one = " OR ".join(_LIKE.format(column) for column in columns)
    tests = " AND ".join(f"({one})" for _ in words) or "1"
    return f"({tests})", [f"%{word.translate(_ESCAPES)}%" for word in words for _ in columns]
