"""Hits → the sessions they are in, in the order of their first hit."""

import sqlite3
from collections.abc import Iterable

import msgspec

from steno.index.scan import path_from
from steno.index.state import SHIFT

__all__ = ["Group", "groups_of"]


class Group(msgspec.Struct):
    """A session, and what was found in it and in the sub-agents that worked for it."""

    id: str
    title: str = ""
    project: str = ""
    branch: str = ""
    path: str = ""
    """Where its file lies or lay; a sub-agent's when its own is not in the index."""
    ended: int | None = None
    gone: bool = False
    rewound: bool = False
    """Whether turns were taken back, so that they count otherwise in the story than in the file."""
    messages: list[int] = []
    agents: dict[int, str] = {}
    """The files of sub-agents in which something was found, and their ids."""
    files: dict[int, str] = {}
    """Every file in which something was found, and its path."""


def groups_of(connection: sqlite3.Connection, messages: Iterable[int]) -> list[Group]:
    """Return the sessions that some messages are in."""
    by_file: dict[int, list[tuple[int, int]]] = {}
    for place, message in enumerate(messages):
        by_file.setdefault(message >> SHIFT, []).append((place, message))
    groups: dict[str, Group] = {}
    places: dict[str, list[tuple[int, int]]] = {}
    for file, found in by_file.items():
        row = _session(connection, file)
        name = row[0] or f"@{file}"
        if name not in groups:
            groups[name] = _group(connection, name, row)
        if row[1]:
            groups[name].agents[file] = row[1]
        groups[name].files[file] = path_from(row[5])
        places.setdefault(name, []).extend(found)
    for name, found in places.items():
        groups[name].messages = [message for _, message in sorted(found)]
    return sorted(groups.values(), key=lambda group: min(places[group.id])[0])


_COLUMNS = "s.id, s.agent, s.title, s.project, s.branch, f.path, s.ended, f.gone, s.rewound"
_Row = tuple[str, str, str, str, str, str | bytes, int | None, int | None, int]
_SESSION = f"SELECT {_COLUMNS} FROM sessions s JOIN files f ON f.id = s.file "


def _session(connection: sqlite3.Connection, file: int) -> _Row:
    row = connection.execute(_SESSION + "WHERE s.file = ?", (file,)).fetchone()
    return row or ("", "", "", "", "", "", None, None, 0)


def _group(connection: sqlite3.Connection, name: str, row: _Row) -> Group:
    """Return the session itself, where only a sub-agent of it was found so far."""
    if row[1]:
        statement = _SESSION + "WHERE s.id = ? AND s.agent = '' ORDER BY f.gone IS NOT NULL"
        row = connection.execute(statement, (name,)).fetchone() or row
    _, _, title, project, branch, path, ended, gone, rewound = row
    where = path_from(path)
    return Group(name, title, project, branch, where, ended, gone is not None, bool(rewound))
