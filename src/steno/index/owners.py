"""Whose work a sub-agent's file is: two sessions may bear one id, and each has its own."""

import os
import sqlite3
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from steno.index.scan import path_from

__all__ = ["find_owners", "names_of"]

_CHUNK: Final = 500
_SUFFIX: Final = ".jsonl"
_Row = tuple[int, str, str, int]
"""A file of a session: its number, whose it is, its path, and its owner so far."""


def names_of(connection: sqlite3.Connection, files: Iterable[int]) -> set[str]:
    """Return the ids of the sessions that some files belong to."""
    names: set[str] = set()
    for some in _chunks(files):
        marks = ", ".join("?" * len(some))
        rows = connection.execute(f"SELECT id FROM sessions WHERE file IN ({marks})", some)
        names.update(name for (name,) in rows)
    return names


def find_owners(connection: sqlite3.Connection, names: Iterable[str]) -> None:
    """Tie the sub-agents of some sessions to the file of the session that each worked for."""
    changed: list[tuple[int, int]] = []
    for some in _chunks(names):
        marks = ", ".join("?" * len(some))
        rows = connection.execute(
            "SELECT s.id, s.file, s.agent, f.path, s.owner FROM sessions s "
            f"JOIN files f ON f.id = s.file WHERE s.id IN ({marks}) ORDER BY s.file",
            some,
        )
        by_name: dict[str, list[_Row]] = {}
        for name, file, agent, path, owner in rows:
            by_name.setdefault(name, []).append((file, agent, path_from(path), owner))
        for same in by_name.values():
            changed += _changes(same)
    connection.executemany("UPDATE sessions SET owner = ? WHERE file = ?", changed)


def _changes(same: list[_Row]) -> Iterator[tuple[int, int]]:
    """Yield the owners that are not as they were, of the files that bear one id."""
    sessions = [row for row in same if not row[1]]
    for row in same:
        owner = _owner(row, sessions) if row[1] else row[0]
        if owner != row[3]:
            yield owner, row[0]


def _owner(agent: _Row, sessions: list[_Row]) -> int:
    """Return the session beside or above a sub-agent's file; else the only one of that id."""
    path = agent[2]
    below = (each for each in sessions if path.startswith(each[2].removesuffix(_SUFFIX) + os.sep))
    folder = os.path.dirname(path)
    beside = (each for each in sessions if os.path.dirname(each[2]) == folder)
    alone = sessions[0] if len(sessions) == 1 else agent
    return next(below, next(beside, alone))[0]


def _chunks(values: Iterable[int] | Iterable[str]) -> Iterator[list[int | str]]:
    rest = iter(values)
    while some := list[int | str](islice(rest, _CHUNK)):
        yield some
