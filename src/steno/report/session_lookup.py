"""URL keys of sessions, the index row of a session, and searches for the command palette.

A URL key is the session ID or, if several files have that ID, the ID and the file number.
"""

import re
import sqlite3
from collections.abc import Iterable, Sequence
from sqlite3 import Connection
from typing import Final

import msgspec

from steno.index.database import LIKE_SQL, escape_like
from steno.index.sync.scan import path_to_column
from steno.report.clock import seconds_from_ms

IS_SHARED_SQL: Final = (
    "(SELECT count(*) > 1 FROM (SELECT 1 FROM sessions k WHERE k.id = s.id AND k.agent = '' LIMIT 2))"
)
"""SQL: whether several sessions have the ID of `s`."""
_SEPARATOR: Final = "~"
_UNSAFE_IN_PATH: Final = re.compile(r"[/\\\x00-\x1f\x7f\ufffd\ud800-\udfff]")
"""Characters that servers or browsers reinterpret or drop."""
_CHUNK_SIZE: Final = 500
_MAX_DIGITS: Final = 18
"""Maximum digits of a file number."""


def session_key(session_id: str, file: int, *, shared: bool) -> str:
    """Return the URL key of a session.

    If a file has no session ID, or the ID of a dialect is not valid in a URL, the key is the file number alone.
    >>> session_key("5f2c", 7, shared=False), session_key("5f2c", 7, shared=True), session_key("", 7, shared=False)
    ('5f2c', '5f2c~7', '~7')
    >>> session_key("a/b", 7, shared=False), session_key("5f2c~1", 7, shared=False)
    ('~7', '~7')
    """
    if not _is_path_segment(session_id):
        return f"{_SEPARATOR}{file}"
    return f"{session_id}{_SEPARATOR}{file}" if shared else session_id


def _is_path_segment(session_id: str) -> bool:
    """Return whether an ID is valid as one URL path segment and parses as itself."""
    if session_id in ("", ".", "..") or _UNSAFE_IN_PATH.search(session_id):
        return False
    return parse_session_key(session_id) == (session_id, None)


def parse_session_key(key: str) -> tuple[str, int | None]:
    """Return the session ID and the file number of a URL key; None if the key has no file number.

    >>> parse_session_key("5f2c"), parse_session_key("5f2c~7"), parse_session_key("a~b")
    (('5f2c', None), ('5f2c', 7), ('a~b', None))
    """
    session_id, separator, number = key.rpartition(_SEPARATOR)
    is_number = number.isascii() and number.isdecimal() and len(number) <= _MAX_DIGITS
    return (session_id, int(number)) if separator and is_number else (key, None)


def session_keys(connection: sqlite3.Connection, files: Iterable[int]) -> dict[int, str]:
    """Return the URL keys of the sessions that session files and sub-agent files belong to."""
    file_ids = list(files)
    keys: dict[int, str] = {}
    for chunk in (file_ids[at : at + _CHUNK_SIZE] for at in range(0, len(file_ids), _CHUNK_SIZE)):
        placeholders = ", ".join("?" * len(chunk))
        rows = connection.execute(
            f"SELECT a.file, s.id, s.file, {IS_SHARED_SQL} FROM sessions a "
            f"JOIN sessions s ON s.file = a.owner WHERE a.file IN ({placeholders})",
            chunk,
        )
        for file, session_id, owner, shared in rows:
            keys[file] = session_key(session_id, owner, shared=bool(shared))
    return keys


def keys_and_titles_at(connection: sqlite3.Connection, paths: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return the URL keys and titles of the sessions at paths."""
    keys_and_titles: dict[str, tuple[str, str]] = {}
    for path in set(paths):
        row = connection.execute(
            f"SELECT s.id, s.file, {IS_SHARED_SQL}, s.title FROM files f JOIN sessions a ON a.file = f.id "
            "JOIN sessions s ON s.file = a.owner WHERE f.path = ? AND s.agent = ''",
            (path_to_column(path),),
        ).fetchone()
        if row is not None:
            session_id, file, shared, title = row
            keys_and_titles[path] = session_key(session_id, file, shared=bool(shared)), title
    return keys_and_titles


def session_at(connection: sqlite3.Connection, path: str) -> tuple[str, int] | None:
    """Return the ID and file number of the session or sub-agent at a path; None if not indexed."""
    return connection.execute(
        "SELECT s.id, s.file FROM sessions s JOIN files f ON f.id = s.file WHERE f.path = ?", (path_to_column(path),)
    ).fetchone()


_SESSION_QUERY: Final = """
SELECT s.title, s.named, s.project, s.branch, s.model, s.version, s.started, s.ended, s.turns,
       s.messages, f.size, f.mtime, s.grown
FROM sessions s JOIN files f ON f.id = s.file WHERE s.file = ?
"""
_COPIED_QUERY: Final = """
SELECT count(*) FROM usage u JOIN sessions s ON s.file = u.file
WHERE s.owner = ? AND NOT u.counts AND NOT EXISTS (
  SELECT 1 FROM usage o JOIN sessions t ON t.file = o.file
  WHERE o.key = u.key AND o.counts AND t.owner = s.owner)
"""
_NEIGHBOUR_QUERY: Final = f"""
SELECT s.id, s.file, {IS_SHARED_SQL} FROM sessions s
WHERE s.project = ? AND s.agent = '' AND NOT s.hidden AND s.file != ? AND s.ended
"""
_PREVIOUS_QUERY: Final = f"{_NEIGHBOUR_QUERY} < ? ORDER BY s.ended DESC LIMIT 1"
_NEXT_QUERY: Final = f"{_NEIGHBOUR_QUERY} > ? ORDER BY s.ended LIMIT 1"


class SessionIndexRow(msgspec.Struct, frozen=True):
    """Facts about a session from the index. Times are in seconds."""

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
    """Modification time of the file when it was indexed."""
    grown: float | None = None
    """Time at which the file was last seen growing."""


def session_index_row(connection: Connection, file: int) -> SessionIndexRow:
    """Return the index row of a file; an empty row if the file is not indexed."""
    row = connection.execute(_SESSION_QUERY, (file,)).fetchone()
    if row is None:
        return SessionIndexRow()
    title, named, project, branch, model, version, started, ended, *counts, mtime, grown = row
    turns, messages, size = counts
    return SessionIndexRow(
        title=title,
        named=bool(named),
        project=project,
        branch=branch,
        model=model,
        version=version,
        started=seconds_from_ms(started),
        ended=seconds_from_ms(ended),
        turns=turns,
        messages=messages,
        size=size,
        changed=mtime / 1e9,
        grown=seconds_from_ms(grown),
    )


def count_copied_responses(connection: Connection, file: int) -> int:
    """Return the number of responses in a fork that count towards the session it was forked from."""
    return connection.execute(_COPIED_QUERY, (file,)).fetchone()[0]


def neighbour_keys(connection: Connection, file: int, session: SessionIndexRow) -> tuple[str, str]:
    """Return the URL keys of the previous and next session in the same project, by end time; empty if none."""
    if session.ended is None:
        return "", ""
    parameters = session.project, file, round(session.ended * 1000)
    previous_row, next_row = (
        connection.execute(query, parameters).fetchone() for query in (_PREVIOUS_QUERY, _NEXT_QUERY)
    )
    return _key_of_row(previous_row), _key_of_row(next_row)


def _key_of_row(row: tuple[str, int, int] | None) -> str:
    return "" if row is None else session_key(row[0], row[1], shared=bool(row[2]))


_MAX_WORDS: Final = 8
"""Maximum number of search words; further words are ignored."""


class PaletteItem(msgspec.Struct, frozen=True):
    """A session in the command palette."""

    id: str
    key: str
    title: str
    project: str
    ended: int | None


def find_palette_sessions(connection: sqlite3.Connection, text: str, limit: int) -> list[PaletteItem]:
    """Return sessions whose title, project or branch contains all words, or whose ID starts with the text."""
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
    """Return projects whose path contains all words, and their session counts."""
    condition, values = _match_all_words(text, ("project",))
    return connection.execute(
        "SELECT project, count(*) FROM sessions WHERE agent = '' AND NOT hidden AND project <> '' "
        f"AND {condition} GROUP BY project ORDER BY max(ended) DESC LIMIT ?",
        (*values, limit),
    ).fetchall()


def find_palette_files(connection: sqlite3.Connection, text: str, limit: int) -> list[tuple[str, int]]:
    """Return changed files whose path contains all words, and their edit counts."""
    condition, values = _match_all_words(text, ("path",))
    return connection.execute(
        f"SELECT path, count(*) FROM file_edits WHERE {condition} GROUP BY path ORDER BY max(time) DESC LIMIT ?",
        (*values, limit),
    ).fetchall()


def _id_prefix(text: str) -> str:
    """Return the text as an ID prefix; a prefix that matches no session if the text is empty."""
    return escape_like(text.replace("\0", "").strip()) or " "


def _match_all_words(text: str, columns: Sequence[str]) -> tuple[str, list[str]]:
    # A LIKE pattern ends at a NUL byte, and the rest would match everything.
    search_words = text.replace("\0", "\u2400").split()[:_MAX_WORDS]
    any_column = " OR ".join(f"{column} {LIKE_SQL}" for column in columns)
    condition = " AND ".join(f"({any_column})" for _ in search_words) or "1"
    return f"({condition})", [f"%{escape_like(word)}%" for word in search_words for _ in columns]
