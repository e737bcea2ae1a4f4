"""Every file that agents touched: how often, in how many sessions, and when last.

Calls that failed or were denied do not count. Files that no call names, but that the client backed
up because they were about to change, are listed too. Times are milliseconds.
"""

import sqlite3
from collections.abc import Iterable
from typing import Any, Final, Literal, TypeAlias

import msgspec

from steno.format.tool_catalogue import FILE_TOOLS
from steno.index.state import SHIFT

__all__ = [
    "COUNTS",
    "SORTS",
    "Choice",
    "FileSource",
    "Project",
    "Sort",
    "Touched",
    "in_order",
    "paths",
    "projects",
    "touched",
]

FileSource: TypeAlias = Literal["calls", "snapshot"]
"""calls     tool calls name the file
snapshot  only the client's own backups do
"""
Sort: TypeAlias = Literal["last", "edits", "reads", "lines", "sessions", "path"]
SORTS: Final[tuple[Sort, ...]] = ("last", "edits", "reads", "lines", "sessions", "path")
_TOOLS: Final = ", ".join(f"'{tool}'" for tool in FILE_TOOLS)
COUNTS: Final = f"t.name IN ({_TOOLS}) AND t.path != '' AND t.failed = 0"
"""Which rows `t` of `tool_calls` are about a file, and worked."""
_FIRST: Final = 400
_EDITS: Final = "LEFT JOIN file_edits e ON e.message = t.message AND e.place = t.place"
_ONCE: Final = "CASE t.call WHEN '' THEN t.message ELSE t.call END"
"""Forked and resumed sessions hold copies of calls, and a copy does not count."""
_CHANGED: Final = "total(t.name != 'Read') > 0"
_RANKS: Final[dict[Sort, str]] = {
    "last": "max(t.time) DESC",
    "edits": "total(t.name != 'Read') DESC",
    "reads": "total(t.name = 'Read') DESC",
    "lines": "total(e.added) + total(e.removed) DESC",
    "sessions": f"count(DISTINCT t.message >> {SHIFT}) DESC",
    "path": "t.path",
}
_ESCAPE: Final = str.maketrans({"\\": r"\\", "%": r"\%", "_": r"\_"})


class Choice(msgspec.Struct, frozen=True):
    """Which files. What is empty does not matter."""

    project: str | None = None
    """The folder that the sessions which touched them began in."""
    words: str = ""
    """What their paths hold."""
    changed: bool = False
    """Whether only those that were changed are wanted."""
    since: int | None = None
    sort: Sort = "last"
    among: tuple[str, ...] | None = None
    """The only projects, where there may be several."""
    below: str = ""
    """The folder that they lie in, however deep."""


class Touched(msgspec.Struct, frozen=True):
    """A file that agents touched."""

    path: str
    reads: int
    edits: int
    added: int
    removed: int
    sessions: int
    last: int | None
    source: FileSource = "calls"
    backups: int = 0
    """How many backups there are of a file that no call names."""

    @property
    def is_changed(self) -> bool:
        """Whether it was changed, or backed up because it was about to be."""
        return bool(self.edits or self.backups)


class Project(msgspec.Struct, frozen=True):
    """How much was touched in the sessions of a project."""

    path: str
    touches: int
    last: int | None


def touched(
    connection: sqlite3.Connection, choice: Choice | None = None, *, limit: int | None = None
) -> list[Touched]:
    """Return the files that were touched, in the order that is wanted."""
    chosen = choice or Choice()
    backed_up = _only_backed_up(connection, chosen)
    if limit is None:
        return in_order([*_counted(connection, chosen, None), *backed_up], chosen.sort)
    best = _latest(connection, limit) if chosen == Choice() else _best(connection, chosen, limit)
    return in_order([*_counted(connection, chosen, best), *backed_up], chosen.sort)[:limit]


def _latest(connection: sqlite3.Connection, limit: int) -> list[str]:
    """Return the paths that were touched last, without a look at every other."""
    number = max(_FIRST, limit)
    while True:
        rows = connection.execute(
            f"SELECT t.path FROM tool_calls t WHERE {COUNTS} ORDER BY t.time DESC LIMIT ?",
            (number,),
        ).fetchall()
        found = list(dict.fromkeys(path for (path,) in rows))
        if len(found) >= limit or len(rows) < number:
            return found[:limit]
        number *= 4


def _best(connection: sqlite3.Connection, choice: Choice, limit: int) -> list[str]:
    """Return the paths that come first. To count sessions is dear, so only those are counted."""
    where, values = _where(choice)
    joined = f" {_EDITS}" if choice.sort == "lines" else ""
    having = f" HAVING {_CHANGED}" if choice.changed else ""
    rows = connection.execute(
        f"SELECT t.path FROM tool_calls t{joined} WHERE {where} GROUP BY t.path{having} "
        f"ORDER BY {_RANKS[choice.sort]}, max(t.time) DESC, t.path LIMIT ?",
        [*values, limit],
    )
    return [path for (path,) in rows]


def _counted(
    connection: sqlite3.Connection, choice: Choice, only: list[str] | None
) -> list[Touched]:
    where, values = _where(choice)
    if only is not None:
        where += " AND t.path IN (SELECT value FROM json_each(?))"
        values.append(msgspec.json.encode(only).decode())
    having = f" HAVING {_CHANGED}" if choice.changed else ""
    rows = connection.execute(
        "SELECT t.path, total(t.name = 'Read'), count(*), total(t.added), total(t.removed), "
        "max(t.time), group_concat(t.files) "
        "FROM (SELECT t.path, t.name, max(t.time) AS time, e.added, e.removed, "
        f"group_concat(t.message >> {SHIFT}) AS files "
        f"FROM tool_calls t {_EDITS} WHERE {where} GROUP BY t.path, {_ONCE}) t "
        f"GROUP BY t.path{having}",
        values,
    )
    names: dict[str, str] = {
        str(file): name for file, name in connection.execute("SELECT file, id FROM sessions")
    }
    return [_touched(row, names) for row in rows]


def _only_backed_up(connection: sqlite3.Connection, choice: Choice) -> list[Touched]:
    """Return the files that only backups name."""
    where, values = _where(choice, calls=False)
    rows = connection.execute(
        f"SELECT t.path, count(DISTINCT t.message), count(DISTINCT t.message >> {SHIFT}), "
        f"max(t.time) FROM file_backups t WHERE {where} GROUP BY t.path",
        values,
    ).fetchall()
    if not rows:
        return []
    where, values = _where(choice)
    paths = msgspec.json.encode([path for path, *_ in rows]).decode()
    called = connection.execute(
        f"SELECT DISTINCT t.path FROM tool_calls t WHERE {where} "
        "AND t.path IN (SELECT value FROM json_each(?))",
        [*values, paths],
    )
    known = {path for (path,) in called}
    return [
        Touched(path, 0, 0, 0, 0, sessions, last, "snapshot", backups)
        for path, backups, sessions, last in rows
        if path not in known
    ]


def _touched(row: tuple[Any, ...], names: dict[str, str]) -> Touched:
    path, reads, calls, added, removed, last, files = row
    sessions = {names.get(file, file) for file in str(files).split(",")}
    return Touched(
        path, int(reads), calls - int(reads), int(added), int(removed), len(sessions), last
    )


def in_order(found: Iterable[Touched], sort: Sort) -> list[Touched]:
    """Return files in the order that is wanted."""

    def order(each: Touched) -> tuple[int, int, str]:
        number = {
            "last": 0,
            "path": 0,
            "edits": each.edits,
            "reads": each.reads,
            "lines": each.added + each.removed,
            "sessions": each.sessions,
        }[sort]
        return -number, 0 if sort == "path" else -(each.last or 0), each.path

    return sorted(found, key=order)


def _where(choice: Choice, *, calls: bool = True) -> tuple[str, list[Any]]:
    """Return the condition on rows `t` of `tool_calls`, or else of `file_backups`."""
    where, values = [COUNTS if calls else "t.path != ''"], list[Any]()
    if choice.project is not None:
        where.append(f"t.message >> {SHIFT} IN (SELECT file FROM sessions WHERE project = ?)")
        values.append(choice.project)
    if choice.among is not None:
        where.append(
            f"t.message >> {SHIFT} IN (SELECT file FROM sessions WHERE project IN "
            "(SELECT value FROM json_each(?)))"
        )
        values.append(msgspec.json.encode(choice.among).decode())
    if choice.below:
        folder = choice.below.rstrip("/\\") + "/"
        where.append(r"substr(replace(t.path, '\', '/'), 1, ?) = ?")
        values += [len(folder), folder.replace("\\", "/")]
    for word in choice.words.split():
        where.append(r"t.path LIKE ? ESCAPE '\'")
        values.append(f"%{word.translate(_ESCAPE)}%")
    if choice.since is not None:
        where.append("t.time >= ?")
        values.append(choice.since)
    return " AND ".join(where), values


def projects(connection: sqlite3.Connection) -> list[Project]:
    """Return the projects whose sessions touched files, the latest first."""
    home: dict[int, str] = dict(connection.execute("SELECT file, project FROM sessions"))
    sums: dict[str, list[int]] = {}
    for file, number, last in connection.execute(
        f"SELECT t.message >> {SHIFT}, count(*), max(t.time) FROM tool_calls t "
        f"WHERE {COUNTS} GROUP BY 1 UNION ALL "
        f"SELECT message >> {SHIFT}, 0, max(time) FROM file_backups GROUP BY 1"
    ):
        mine = sums.setdefault(home.get(file, ""), [0, 0])
        mine[0] += number
        mine[1] = max(mine[1], last or 0)
    made = [Project(path, number, last or None) for path, (number, last) in sums.items()]
    return sorted(made, key=lambda each: (-(each.last or 0), each.path))


def paths(connection: sqlite3.Connection) -> Iterable[str]:
    """Yield every path that was touched, some of them often."""
    for (path,) in connection.execute(
        f"SELECT t.path FROM tool_calls t WHERE {COUNTS} UNION ALL SELECT path FROM file_backups"
    ):
        yield path
