"""Items of the command palette: sessions, projects and files that match the typed words."""

import sqlite3
from collections.abc import Sequence
from typing import Final

import msgspec

from steno.index.database import LIKE_SQL, escape_like
from steno.report.session_lookup import IS_SHARED_SQL, session_key

_MAX_WORDS: Final = 8
"""Words; what comes behind them is not looked at."""


class PaletteItem(msgspec.Struct, frozen=True):
    """A session, and what an address calls it."""

    id: str
    key: str
    title: str
    project: str
    ended: int | None


def find_palette_sessions(connection: sqlite3.Connection, text: str, limit: int) -> list[PaletteItem]:
    """Return sessions whose title, project or branch has all the words, or whose id begins so."""
    condition, values = _match_all_words(text, ("title", "project", "branch"))
    rows = connection.execute(
        f"SELECT id, file, {IS_SHARED_SQL}, title, project, ended FROM sessions s WHERE listed = 1 AND "
        f"({condition} OR id {LIKE_SQL}) ORDER BY last DESC LIMIT ?",
        (*values, f"{_id_prefix(text)}%", limit),
    )
    return [
        PaletteItem(session_id, session_key(session_id, file, shared=bool(shared)), title, project, ended)
        for session_id, file, shared, title, project, ended in rows
    ]


def find_palette_projects(connection: sqlite3.Connection, text: str, limit: int) -> list[tuple[str, int]]:
    """Return projects whose path has all the words, and how many sessions each has."""
    condition, values = _match_all_words(text, ("project",))
    return connection.execute(
        "SELECT project, count(*) FROM sessions WHERE agent = '' AND NOT hidden AND project <> '' "
        f"AND {condition} GROUP BY project ORDER BY max(ended) DESC LIMIT ?",
        (*values, limit),
    ).fetchall()


def find_palette_files(connection: sqlite3.Connection, text: str, limit: int) -> list[tuple[str, int]]:
    """Return files that agents changed and whose path has all the words, and how often each was."""
    condition, values = _match_all_words(text, ("path",))
    return connection.execute(
        f"SELECT path, count(*) FROM file_edits WHERE {condition} GROUP BY path ORDER BY max(time) DESC LIMIT ?",
        (*values, limit),
    ).fetchall()


def _id_prefix(text: str) -> str:
    """Return the beginning of an id; one that no session has where nothing was typed."""
    return escape_like(text.replace("\0", "").strip()) or " "


def _match_all_words(text: str, columns: Sequence[str]) -> tuple[str, list[str]]:
    # A pattern would end at a zero byte, and everything fits what is left.
    search_words = text.replace("\0", "\u2400").split()[:_MAX_WORDS]
    any_column = " OR ".join(f"{column} {LIKE_SQL}" for column in columns)
    condition = " AND ".join(f"({any_column})" for _ in search_words) or "1"
    return f"({condition})", [f"%{escape_like(word)}%" for word in search_words for _ in columns]
