"""Session keys in URLs, and the index row of one session.

A key is the id of the session or, where several files share it, the id and the file.
"""

import re
import sqlite3
from collections.abc import Iterable
from sqlite3 import Connection
from typing import Final

import msgspec

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
