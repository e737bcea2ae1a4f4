"""Files that agents touched: reads, edits, sessions and last touch.

Failed and denied calls are not counted. Files known only from Claude Code's backups are included. Times are in
milliseconds.
"""

import os
import sqlite3
from collections.abc import Iterable
from typing import Any, Final, Literal, TypeAlias

import msgspec

from steno.errors import Ambiguous, NotFound
from steno.format.tool_catalogue import FILE_TOOLS
from steno.index.database import ARRAY_SQL, LIKE_SQL, escape_like, json_array
from steno.index.session_stats import FILE_ID_SHIFT
from steno.report.session_references import printable_path

TouchSource: TypeAlias = Literal["calls", "snapshot"]
"""calls     named by tool calls
snapshot  known only from Claude Code's backups
"""
TouchedSort: TypeAlias = Literal["last", "edits", "reads", "lines", "sessions", "path"]
_FILE_TOOL_NAMES: Final = ", ".join(f"'{tool}'" for tool in FILE_TOOLS)
IS_FILE_CALL_SQL: Final = f"t.name IN ({_FILE_TOOL_NAMES}) AND t.path != '' AND t.failed = 0"
"""SQL condition for rows `t` of `tool_calls`: successful calls of file tools."""
_MIN_ROWS: Final = 400
_JOIN_EDITS: Final = "LEFT JOIN file_edits e ON e.message = t.message AND e.place = t.place"
_CALL_IDENTITY: Final = "CASE t.call WHEN '' THEN t.message ELSE t.call END"
"""SQL that identifies a call: forked and resumed sessions contain copies, which are not counted."""
_IS_CHANGED: Final = "total(t.name != 'Read') > 0"
_SORT_SQL: Final[dict[TouchedSort, str]] = {
    "last": "max(t.time) DESC",
    "edits": "total(t.name != 'Read') DESC",
    "reads": "total(t.name = 'Read') DESC",
    "lines": "total(e.added) + total(e.removed) DESC",
    "sessions": f"count(DISTINCT t.message >> {FILE_ID_SHIFT}) DESC",
    "path": "t.path",
}


class TouchedFilter(msgspec.Struct, frozen=True):
    """Filter and order of files. Empty fields do not filter."""

    project: str | None = None
    """Project directory of the sessions that touched the file."""
    words: str = ""
    """Words that the path contains."""
    changed: bool = False
    """Whether to include only changed files."""
    since: int | None = None
    sort: TouchedSort = "last"
    among: tuple[str, ...] | None = None
    """Project directories to restrict to."""
    below: str = ""
    """Directory that contains the file, at any depth."""


class TouchedFile(msgspec.Struct, frozen=True):
    """A file that agents touched."""

    path: str
    reads: int
    edits: int
    added: int
    removed: int
    sessions: int
    last: int | None
    source: TouchSource = "calls"
    backups: int = 0
    """Number of backups of a file that no call names."""

    @property
    def is_changed(self) -> bool:
        """Whether the file was changed, or backed up before a change."""
        return bool(self.edits or self.backups)


class TouchedProject(msgspec.Struct, frozen=True):
    """Touches in the sessions of a project."""

    path: str
    touches: int
    last: int | None


def list_touched_files(
    connection: sqlite3.Connection, touched_filter: TouchedFilter | None = None, *, limit: int | None = None
) -> list[TouchedFile]:
    """Return the touched files in the order of the filter."""
    active_filter = touched_filter or TouchedFilter()
    backed_up = _only_backed_up(connection, active_filter)
    if limit is None:
        return sort_touched([*_count_touches(connection, active_filter, None), *backed_up], active_filter.sort)
    first_paths = (
        _latest_paths(connection, limit)
        if active_filter == TouchedFilter()
        else _first_paths(connection, active_filter, limit)
    )
    return sort_touched([*_count_touches(connection, active_filter, first_paths), *backed_up], active_filter.sort)[
        :limit
    ]


def _latest_paths(connection: sqlite3.Connection, limit: int) -> list[str]:
    """Return the most recently touched paths, without scanning all rows."""
    number = max(_MIN_ROWS, limit)
    while True:
        rows = connection.execute(
            f"SELECT t.path FROM tool_calls t WHERE {IS_FILE_CALL_SQL} ORDER BY t.time DESC LIMIT ?", (number,)
        ).fetchall()
        latest_paths = list(dict.fromkeys(path for (path,) in rows))
        if len(latest_paths) >= limit or len(rows) < number:
            return latest_paths[:limit]
        number *= 4


def _first_paths(connection: sqlite3.Connection, touched_filter: TouchedFilter, limit: int) -> list[str]:
    """Return the first paths in sort order: counting sessions is slow and is done only for these paths."""
    where, values = _touch_condition(touched_filter)
    joined = f" {_JOIN_EDITS}" if touched_filter.sort == "lines" else ""
    having = f" HAVING {_IS_CHANGED}" if touched_filter.changed else ""
    rows = connection.execute(
        f"SELECT t.path FROM tool_calls t{joined} WHERE {where} GROUP BY t.path{having} "
        f"ORDER BY {_SORT_SQL[touched_filter.sort]}, max(t.time) DESC, t.path LIMIT ?",
        [*values, limit],
    )
    return [path for (path,) in rows]


def _count_touches(
    connection: sqlite3.Connection, touched_filter: TouchedFilter, only_paths: list[str] | None
) -> list[TouchedFile]:
    where, values = _touch_condition(touched_filter)
    if only_paths is not None:
        where += f" AND t.path IN {ARRAY_SQL}"
        values.append(json_array(only_paths))
    having = f" HAVING {_IS_CHANGED}" if touched_filter.changed else ""
    rows = connection.execute(
        "SELECT t.path, total(t.name = 'Read'), count(*), total(t.added), total(t.removed), "
        "max(t.time), group_concat(t.files) "
        "FROM (SELECT t.path, t.name, max(t.time) AS time, e.added, e.removed, "
        f"group_concat(t.message >> {FILE_ID_SHIFT}) AS files "
        f"FROM tool_calls t {_JOIN_EDITS} WHERE {where} GROUP BY t.path, {_CALL_IDENTITY}) t "
        f"GROUP BY t.path{having}",
        values,
    )
    session_ids: dict[str, str] = {
        str(file): name for file, name in connection.execute("SELECT file, id FROM sessions")
    }
    return [_touched_file(row, session_ids) for row in rows]


def _only_backed_up(connection: sqlite3.Connection, touched_filter: TouchedFilter) -> list[TouchedFile]:
    """Return the files known only from backups."""
    where, values = _touch_condition(touched_filter, calls=False)
    rows = connection.execute(
        f"SELECT t.path, count(DISTINCT t.message), count(DISTINCT t.message >> {FILE_ID_SHIFT}), "
        f"max(t.time) FROM file_backups t WHERE {where} GROUP BY t.path",
        values,
    ).fetchall()
    if not rows:
        return []
    where, values = _touch_condition(touched_filter)
    path_array = json_array([path for path, *_ in rows])
    called = connection.execute(
        f"SELECT DISTINCT t.path FROM tool_calls t WHERE {where} AND t.path IN {ARRAY_SQL}", [*values, path_array]
    )
    called_paths = {path for (path,) in called}
    return [
        TouchedFile(path, 0, 0, 0, 0, sessions, last, "snapshot", backups)
        for path, backups, sessions, last in rows
        if path not in called_paths
    ]


def _touched_file(row: tuple[Any, ...], session_ids: dict[str, str]) -> TouchedFile:
    path, reads, calls, added, removed, last, files = row
    sessions = {session_ids.get(file, file) for file in str(files).split(",")}
    return TouchedFile(path, int(reads), calls - int(reads), int(added), int(removed), len(sessions), last)


def sort_touched(files: Iterable[TouchedFile], sort: TouchedSort) -> list[TouchedFile]:
    """Return the files in the order of `sort`."""

    def sort_key(touched_file: TouchedFile) -> tuple[int, int, str]:
        number = {
            "last": 0,
            "path": 0,
            "edits": touched_file.edits,
            "reads": touched_file.reads,
            "lines": touched_file.added + touched_file.removed,
            "sessions": touched_file.sessions,
        }[sort]
        return -number, 0 if sort == "path" else -(touched_file.last or 0), touched_file.path

    return sorted(files, key=sort_key)


def _touch_condition(touched_filter: TouchedFilter, *, calls: bool = True) -> tuple[str, list[Any]]:
    """Return the SQL condition on rows `t` of `tool_calls`, or of `file_backups` if `calls` is false."""
    where, values = [IS_FILE_CALL_SQL if calls else "t.path != ''"], list[Any]()
    if touched_filter.project is not None:
        where.append(f"t.message >> {FILE_ID_SHIFT} IN (SELECT file FROM sessions WHERE project = ?)")
        values.append(touched_filter.project)
    if touched_filter.among is not None:
        where.append(f"t.message >> {FILE_ID_SHIFT} IN (SELECT file FROM sessions WHERE project IN {ARRAY_SQL})")
        values.append(json_array(touched_filter.among))
    if touched_filter.below:
        folder = touched_filter.below.rstrip("/\\") + "/"
        where.append(r"substr(replace(t.path, '\', '/'), 1, ?) = ?")
        values += [len(folder), folder.replace("\\", "/")]
    for word in touched_filter.words.split():
        where.append(f"t.path {LIKE_SQL}")
        values.append(f"%{escape_like(word)}%")
    if touched_filter.since is not None:
        where.append("t.time >= ?")
        values.append(touched_filter.since)
    return " AND ".join(where), values


def touched_projects(connection: sqlite3.Connection) -> list[TouchedProject]:
    """Return the projects whose sessions touched files, most recent first."""
    project_by_file: dict[int, str] = dict(connection.execute("SELECT file, project FROM sessions"))
    sums: dict[str, list[int]] = {}
    for file, number, last in connection.execute(
        f"SELECT t.message >> {FILE_ID_SHIFT}, count(*), max(t.time) FROM tool_calls t "
        f"WHERE {IS_FILE_CALL_SQL} GROUP BY 1 UNION ALL "
        f"SELECT message >> {FILE_ID_SHIFT}, 0, max(time) FROM file_backups GROUP BY 1"
    ):
        project_sums = sums.setdefault(project_by_file.get(file, ""), [0, 0])
        project_sums[0] += number
        project_sums[1] = max(project_sums[1], last or 0)
    project_list = [TouchedProject(path, number, last or None) for path, (number, last) in sums.items()]
    return sorted(project_list, key=lambda project: (-(project.last or 0), project.path))


def touched_paths(connection: sqlite3.Connection) -> Iterable[str]:
    """Yield every touched path, possibly more than once."""
    for (path,) in connection.execute(
        f"SELECT t.path FROM tool_calls t WHERE {IS_FILE_CALL_SQL} UNION ALL SELECT path FROM file_backups"
    ):
        yield path


_MAX_LISTED: Final = 6
_PATH_SQL: Final = r"replace(t.path, '\', '/')"


def find_touched_path(connection: sqlite3.Connection, text: str, cwd: str) -> str:
    """Return the touched file that a path specifies: exactly, relative to a directory, or as a suffix.

    Raises:
        NotFound: No session touched a matching file.
        Ambiguous: Several files match.
    """
    # Sessions record paths as text, so a path that is not valid text cannot occur.
    text = printable_path(text).replace("\0", "\u2400")
    absolute_path = os.path.normpath(os.path.join(printable_path(cwd), text))
    for candidate in dict.fromkeys((text, absolute_path, printable_path(os.path.realpath(absolute_path)))):
        if _is_touched(connection, candidate):
            return candidate
    matching_paths = find_paths_by_suffix(connection, text)
    if not matching_paths:
        raise NotFound(f"no session accessed {text!r}", hint="Run `steno files` to list accessed files.")
    if len(matching_paths) > 1:
        more_text = f" and {len(matching_paths) - _MAX_LISTED} more" if len(matching_paths) > _MAX_LISTED else ""
        raise Ambiguous(
            f"{text!r} matches {len(matching_paths)} files",
            candidates=tuple(matching_paths),
            hint=f"Use one of: {', '.join(matching_paths[:_MAX_LISTED])}{more_text}",
        )
    return matching_paths[0]


def find_paths_by_suffix(connection: sqlite3.Connection, text: str) -> list[str]:
    """Return the touched files whose path ends in the components of a path, most recent first."""
    suffix = text.replace("\\", "/").removeprefix("./").strip("/")
    if not suffix or suffix == "." or suffix.startswith("../"):
        return []
    rows = connection.execute(
        f"SELECT t.path, max(t.time) FROM (SELECT path, time FROM tool_calls t WHERE {IS_FILE_CALL_SQL} "
        f"UNION ALL SELECT path, time FROM file_backups) t "
        rf"WHERE ({_PATH_SQL} = ? OR {_PATH_SQL} {LIKE_SQL}) AND substr({_PATH_SQL}, -?) = ? "
        "GROUP BY 1 ORDER BY 2 DESC, 1",
        (suffix, f"%/{escape_like(suffix)}", len(suffix), suffix),
    )
    return [path for path, _ in rows]


def _is_touched(connection: sqlite3.Connection, path: str) -> bool:
    where = (
        f"SELECT 1 FROM tool_calls t WHERE t.path = ? AND {IS_FILE_CALL_SQL} "
        "UNION ALL SELECT 1 FROM file_backups WHERE path = ? LIMIT 1"
    )
    return connection.execute(where, (path, path)).fetchone() is not None


_SESSION_BACKUPS_QUERY: Final = f"""
SELECT b.path, b.turn, s.agent, b.time FROM file_backups b
JOIN sessions s ON s.file = b.message >> {FILE_ID_SHIFT} WHERE s.id = ?
ORDER BY b.time IS NULL, b.time, b.message, b.path
"""
_SESSION_CALLS_QUERY: Final = f"""
SELECT t.path, t.name, t.turn, s.agent, coalesce(e.added, 0), coalesce(e.removed, 0), t.time
FROM tool_calls t JOIN sessions s ON s.file = t.message >> {FILE_ID_SHIFT}
LEFT JOIN file_edits e ON e.message = t.message AND e.place = t.place
WHERE s.id = ? AND {IS_FILE_CALL_SQL}
GROUP BY t.path, CASE t.call WHEN '' THEN t.message ELSE t.call END
ORDER BY t.time IS NULL, t.time, t.message, t.place
"""


class SessionFileTouches(msgspec.Struct, kw_only=True):
    """A file that a session or its sub-agents touched. Times are in milliseconds."""

    path: str
    reads: int = 0
    edits: int = 0
    added: int = 0
    removed: int = 0
    turns: list[int] = []
    """Turns that touched the file, in order; turns of sub-agents are omitted."""
    agents: list[str] = []
    last: int | None = None
    source: TouchSource = "calls"
    backups: int = 0
    """Number of backups of a file that no call names."""

    @property
    def is_changed(self) -> bool:
        """Whether the file was changed, or backed up before a change."""
        return bool(self.edits or self.backups)


def files_of_session(
    connection: sqlite3.Connection, session: str, *, until: int | None = None
) -> list[SessionFileTouches]:
    """Return the files of a session: changed files first, then in order of the first touch.

    `until` excludes later turns and all sub-agents.
    """
    files: dict[str, SessionFileTouches] = {}
    for row in connection.execute(_SESSION_CALLS_QUERY, (session,)):
        if until is None or (not row[3] and row[2] <= until):
            _add_call(files.setdefault(row[0], SessionFileTouches(path=row[0])), row)
    called_paths = set(files)
    for path, turn, agent, time in connection.execute(_SESSION_BACKUPS_QUERY, (session,)):
        if path not in called_paths and (until is None or (not agent and turn <= until)):
            _add_backup(files.setdefault(path, SessionFileTouches(path=path, source="snapshot")), turn, agent, time)
    return sorted(files.values(), key=lambda touched: not touched.is_changed)


def _add_backup(touched: SessionFileTouches, turn: int, agent: str, time: int | None) -> None:
    touched.backups += 1
    if agent and agent not in touched.agents:
        touched.agents.append(agent)
    if not agent and turn not in touched.turns:
        touched.turns.append(turn)
    if time is not None:
        touched.last = max(touched.last or 0, time)


def _add_call(touched: SessionFileTouches, row: tuple[Any, ...]) -> None:
    _, tool, turn, agent, added, removed, time = row
    touched.reads += tool == "Read"
    touched.edits += tool != "Read"
    touched.added += added
    touched.removed += removed
    if agent and agent not in touched.agents:
        touched.agents.append(agent)
    if not agent and turn not in touched.turns:
        touched.turns.append(turn)
    if time is not None:
        touched.last = max(touched.last or 0, time)
