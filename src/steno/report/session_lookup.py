"""Session keys in URLs, the index row of one session, and what matches words typed in the command palette.

A key is the id of the session or, where several files share it, the id and the file.
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
"""SQL: whether several sessions bear the id of `s`."""
_SEPARATOR: Final = "~"
_UNSAFE_IN_PATH: Final = re.compile(r"[/\\\x00-\x1f\x7f\ufffd\ud800-\udfff]")
"""What servers and clients take for something else, or lose."""
_CHUNK_SIZE: Final = 500
_MAX_DIGITS: Final = 18
"""Digits; no file has a longer number."""


def session_key(session_id: str, file: int, *, shared: bool) -> str:
    """Return what an address calls a session.

    Some files say nowhere which session they are, and some ids of dialects cannot be part of an
    address: there the number of the file alone does.

    >>> session_key("5f2c", 7, shared=False), session_key("5f2c", 7, shared=True), session_key("", 7, shared=False)
    ('5f2c', '5f2c~7', '~7')
    >>> session_key("a/b", 7, shared=False), session_key("5f2c~1", 7, shared=False)
    ('~7', '~7')
    """
    if not _is_path_segment(session_id):
        return f"{_SEPARATOR}{file}"
    return f"{session_id}{_SEPARATOR}{file}" if shared else session_id


def _is_path_segment(session_id: str) -> bool:
    """Return whether an id is one part of a path, and reads as itself."""
    if session_id in ("", ".", "..") or _UNSAFE_IN_PATH.search(session_id):
        return False
    return parse_session_key(session_id) == (session_id, None)


def parse_session_key(key: str) -> tuple[str, int | None]:
    """Return the id and the file that an address names; None for whichever file bears the id.

    >>> parse_session_key("5f2c"), parse_session_key("5f2c~7"), parse_session_key("a~b")
    (('5f2c', None), ('5f2c', 7), ('a~b', None))
    """
    session_id, separator, number = key.rpartition(_SEPARATOR)
    is_number = number.isascii() and number.isdecimal() and len(number) <= _MAX_DIGITS
    return (session_id, int(number)) if separator and is_number else (key, None)


def session_keys(connection: sqlite3.Connection, files: Iterable[int]) -> dict[int, str]:
    """Return what addresses call the sessions of some files, be these their own or sub-agents'."""
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
    """Return what addresses call the sessions of the files at some paths, and their titles."""
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
    """Return the id and the file of the session, or sub-agent, at a path; None if not indexed."""
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


def session_index_row(connection: Connection, file: int) -> SessionIndexRow:
    """Return what is known of a file; nothing where it is not indexed."""
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
    """Return how many responses a session holds that another one paid for: it was forked from it."""
    return connection.execute(_COPIED_QUERY, (file,)).fetchone()[0]


def neighbour_keys(connection: Connection, file: int, session: SessionIndexRow) -> tuple[str, str]:
    """Return what addresses call the sessions of the same project that ended before and after one.

    Nothing where there is none.
    """
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
