"""Hits → the sessions they are in, in the order of their first hit."""

import sqlite3
from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from steno.index.scan import path_from
from steno.index.state import SHIFT

__all__ = ["Group", "groups_of", "key_of_group"]


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
    found: bool = True
    """Whether its own file is in the index, and not only those of its sub-agents."""
    rewound: bool = False
    """Whether turns were taken back, so that they count otherwise in the story than in the file."""
    messages: list[int] = []
    agents: dict[int, str] = {}
    """The files of sub-agents in which something was found, and their ids."""
    files: dict[int, str] = {}
    """Every file in which something was found, and its path."""


def groups_of(connection: sqlite3.Connection, messages: Iterable[int]) -> list[Group]:
    """Return the sessions that some messages are in; two files with one id are two sessions."""
    messages = list(messages)
    rows = _sessions(connection, {message >> SHIFT for message in messages})
    groups: dict[str, Group] = {}
    by_file: dict[int, Group] = {}
    for message in messages:
        file = message >> SHIFT
        group = by_file.get(file)
        if group is None:
            row = rows.get(file, _UNKNOWN)
            name = row[0] or f"@{file}"
            key = key_of_group(file, name, row[1], row[9])
            if key not in groups:
                groups[key] = _group(connection, name, row)
            group = by_file[file] = groups[key]
            group.files[file] = path_from(row[5])
            if row[1]:
                group.agents[file] = row[1]
        group.messages.append(message)
    return list(groups.values())


def key_of_group(file: int, name: str, agent: str, owner: int) -> str:
    """Return what the files of one session share: its own file, or the id where that is missing.

    Sub-agents whose session is not in the index belong together by the id that they name.
    """
    return name if agent and owner in (0, file) else f"#{owner or file}"


_REWOUND = (
    "(s.rewound OR s.turns <> "
    "coalesce((SELECT max(number) FROM turns WHERE file = s.file), s.turns))"
)
_COLUMNS = (
    f"s.id, s.agent, s.title, s.project, s.branch, f.path, s.ended, f.gone, {_REWOUND}, s.owner"
)
_Row: TypeAlias = tuple[str, str, str, str, str, str | bytes, int | None, int | None, int, int]
_UNKNOWN: _Row = ("", "", "", "", "", "", None, None, 0, 0)
_SESSION = f"SELECT {_COLUMNS} FROM sessions s JOIN files f ON f.id = s.file "


def _sessions(connection: sqlite3.Connection, files: set[int]) -> dict[int, _Row]:
    """Return what is known of some files, asked for all at once."""
    rows = connection.execute(
        f"SELECT s.file, {_COLUMNS} FROM sessions s JOIN files f ON f.id = s.file "
        "WHERE s.file IN (SELECT value FROM json_each(?))",
        (msgspec.json.encode(sorted(files)).decode(),),
    )
    return {row[0]: row[1:] for row in rows}


def _group(connection: sqlite3.Connection, name: str, row: _Row) -> Group:
    """Return the session itself, where only a sub-agent of it was found so far."""
    if row[1]:
        statement = (
            f"{_SESSION}WHERE (s.id = ? OR s.file = ?) AND s.agent = '' "
            "ORDER BY s.file <> ?, f.gone IS NOT NULL"
        )
        row = connection.execute(statement, (name, row[9], row[9])).fetchone() or row
    _, agent, title, project, branch, path, ended, gone, rewound, _ = row
    return Group(
        name,
        title,
        project,
        branch,
        path_from(path),
        ended,
        gone=gone is not None,
        found=bool(path) and not agent,
        rewound=bool(rewound),
    )
