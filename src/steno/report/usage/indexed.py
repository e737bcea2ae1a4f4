"""Figures from the index: the sums by day where they will do, else the responses themselves."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from steno.index.bands import BAND_SQL
from steno.index.state import SHIFT, Row
from steno.index.sums import LOCAL_DAY
from steno.report.prices import Prices
from steno.report.usage.cells import (
    SLOT,
    Cells,
    add,
    band_of,
    day_of_slot,
    heap_of,
    midnight_of,
    month_of,
    week_of,
)
from steno.report.usage.sort import TIMED, Belonging, slot_of
from steno.report.usage.totals import Figures, Line
from steno.report.usage.wanted import Wanted

__all__ = [
    "ROW",
    "SUMS",
    "copies_of",
    "count_files",
    "count_index",
    "count_places",
    "counted_rows",
    "places_of",
    "seen_files",
    "tell_more",
    "tools_of",
]

_DAILY: Final = ("day", "week", "month", "project", "model")
SUMS: Final = (
    "count(*), sum(u.input), sum(u.output), sum(u.cache_5m), sum(u.cache_1h), sum(u.cache_read), "
    "sum(u.searches), sum(u.estimated)"
)
_DAY_SUMS: Final = (
    "sum(responses), sum(input), sum(output), sum(cache_5m), sum(cache_1h), sum(cache_read), "
    "sum(searches), sum(estimated)"
)
_NAMES: Final = {
    "day": (LOCAL_DAY,),
    "week": (LOCAL_DAY,),
    "month": (LOCAL_DAY,),
    "project": ("s.project",),
    "model": ("u.model",),
    "session": ("s.id",),
    "agent": ("s.id", "coalesce(nullif(u.agent, ''), s.agent)"),
    "branch": ("s.project", "u.branch"),
    "hour": (f"coalesce(u.time / {SLOT}, '')",),
    "block5h": (f"coalesce(u.time / {SLOT}, '')",),
}
ROW: Final = (
    "u.file, u.key, u.message, u.lines, u.turn, u.time, u.model, u.branch, u.agent, u.input, "
    "u.output, u.cache_5m, u.cache_1h, u.cache_read, u.searches, u.fast, u.estimated, u.copied"
)
_CHUNK: Final = 500
_WORDS: Final = "(no tool)"
_BEFORE: Final = "0001-01-01"


def count_index(connection: sqlite3.Connection, wanted: Wanted, prices: Prices) -> Cells:
    """Return the sums of what is wanted."""
    if wanted.by == "tool":
        return _by_tool(connection, wanted)
    if wanted.by in _DAILY and wanted.is_whole_days and wanted.sessions is None:
        return _from_days(connection, wanted)
    models = [row[0] for row in connection.execute("SELECT DISTINCT model FROM days")]
    prices.load(models)
    return _from_usage(connection, wanted, prices, models)


def _from_days(connection: sqlite3.Connection, wanted: Wanted) -> Cells:
    where, values = ["1"], list[Any]()
    if wanted.is_bounded:
        where.append("day != ''")
    if wanted.since is not None:
        where.append("day >= ?")
        values.append(day_of_slot(wanted.since // SLOT))
    if wanted.until is not None:
        where.append("day < ?")
        values.append(day_of_slot(wanted.until // SLOT))
    by = wanted.by
    own = "project" if by == "project" else "''"
    if not wanted.is_everywhere:
        where.append(_among("project", _projects(connection, wanted), values))
    rows = connection.execute(
        f"SELECT {own}, day, model, fast, band, {_DAY_SUMS} FROM days "
        f"WHERE {' AND '.join(where)} GROUP BY 1, 2, 3, 4, 5",
        values,
    )
    cells: Cells = {}
    for project, day, model, fast, band, *heap in rows:
        name = {"project": project, "model": model}.get(by) or _period(by, day)
        add(cells, ((name,), day, model, fast, band), heap)
    return cells


def _period(by: str, day: str) -> str:
    if by == "week":
        return week_of(day)
    if by in ("project", "model"):
        return ""
    return month_of(day) if by == "month" else day


def _from_usage(
    connection: sqlite3.Connection, wanted: Wanted, prices: Prices, models: list[str]
) -> Cells:
    by = wanted.by
    values: list[Any] = []
    day = LOCAL_DAY if by in ("day", "week", "month") else _price_day(prices, models, values)
    names = ", ".join(_NAMES[by])
    where = _where(connection, wanted, values)
    width = len(_NAMES[by])
    order = ", ".join(str(place + 1) for place in range(width + 4))
    rows = connection.execute(
        f"SELECT {names}, {day}, u.model, u.fast, {BAND_SQL}, {SUMS} "
        f"FROM usage u JOIN sessions s ON s.file = u.file WHERE {where} GROUP BY {order}",
        values,
    )
    cells: Cells = {}
    for row in rows:
        name = row[:width]
        day, model, fast, band = row[width : width + 4]
        if by in TIMED:
            # The day of a price is the day of the clock.
            name = (str(name[0]),)
            day = day_of_slot(int(name[0])) if name[0] else ""
        elif by in ("week", "month"):
            name = (_period(by, name[0]),)
        add(cells, (name, day, model, fast, band), row[width + 4 :])
    return cells


def count_places(connection: sqlite3.Connection, wanted: Wanted, prices: Prices) -> Cells:
    """Return the sums of some time by file, sub-agent and branch, for many reports at once."""
    models = [row[0] for row in connection.execute("SELECT DISTINCT model FROM days")]
    prices.load(models)
    values: list[Any] = []
    day = _price_day(prices, models, values)
    where = _where(connection, Wanted(since=wanted.since, until=wanted.until), values)
    rows = connection.execute(
        f"SELECT u.file, u.agent, u.branch, {day}, u.model, u.fast, {BAND_SQL}, {SUMS} "
        f"FROM usage u WHERE {where} GROUP BY 1, 2, 3, 4, 5, 6, 7",
        values,
    )
    return {
        ((str(file), agent, branch), day, model, fast, band): tuple(heap)
        for file, agent, branch, day, model, fast, band, *heap in rows
    }


def count_files(connection: sqlite3.Connection, files: Sequence[int], prices: Prices) -> Cells:
    """Return the sums of some sessions by the numbers of their files, with their sub-agents."""
    models = [row[0] for row in connection.execute("SELECT DISTINCT model FROM days")]
    prices.load(models)
    values: list[Any] = []
    day = _price_day(prices, models, values)
    mine = _among("s.owner", files, values)
    rows = connection.execute(
        f"SELECT s.owner, {day}, u.model, u.fast, {BAND_SQL}, {SUMS} "
        f"FROM sessions s JOIN usage u ON u.file = s.file WHERE u.counts AND {mine} "
        "GROUP BY 1, 2, 3, 4, 5",
        values,
    )
    return {
        ((str(file),), day, model, fast, band): tuple(heap)
        for file, day, model, fast, band, *heap in rows
    }


def _price_day(prices: Prices, models: list[str], values: list[Any]) -> str:
    """Return SQL for a day with the price of a response; days of one price are one day."""
    cases = ""
    for day in sorted(prices.changes(models), reverse=True):
        cases += " WHEN u.time >= ? THEN ?"
        values += [midnight_of(day), day]
    return f"CASE WHEN u.time IS NULL THEN ''{cases} ELSE '{_BEFORE}' END"


def _where(connection: sqlite3.Connection, wanted: Wanted, values: list[Any]) -> str:
    where = ["u.counts"]
    if wanted.is_bounded:
        where.append("u.time IS NOT NULL")
    if wanted.since is not None:
        where.append("u.time >= ?")
        values.append(wanted.since)
    if wanted.until is not None:
        where.append("u.time < ?")
        values.append(wanted.until)
    if not wanted.is_everywhere:
        where.append(_among("s.project", _projects(connection, wanted), values))
    if wanted.sessions is not None:
        where.append(_among("s.id", wanted.sessions, values))
    return " AND ".join(where)


def _projects(connection: sqlite3.Connection, wanted: Wanted) -> list[str]:
    rows = connection.execute("SELECT DISTINCT project FROM sessions")
    return [project for (project,) in rows if wanted.has_project(project)]


def _among(column: str, names: Sequence[str] | Sequence[int], values: list[Any]) -> str:
    # One value, however many there are: SQLite binds no more than some thousands.
    values.append(msgspec.json.encode(names).decode())
    return f"{column} IN (SELECT value FROM json_each(?))"


# Single responses


def counted_rows(connection: sqlite3.Connection, wanted: Wanted) -> Iterator[Row]:
    """Yield the responses that count, as they stand in `usage`."""
    values: list[Any] = []
    where = _where(connection, wanted, values)
    return connection.execute(
        f"SELECT {ROW} FROM usage u JOIN sessions s ON s.file = u.file WHERE {where}", values
    )


def copies_of(connection: sqlite3.Connection, keys: Iterable[str]) -> Iterator[Row]:
    """Yield the copies of responses that do not count."""
    keys = list(keys)
    for some in (keys[at : at + _CHUNK] for at in range(0, len(keys), _CHUNK)):
        marks = ", ".join("?" * len(some))
        yield from connection.execute(
            f"SELECT {ROW} FROM usage u WHERE u.key IN ({marks}) AND NOT u.counts", some
        )


def places_of(connection: sqlite3.Connection) -> dict[int, Belonging]:
    """Return the session, sub-agent and project of every file."""
    rows = connection.execute("SELECT file, id, agent, project FROM sessions")
    return {file: (session, agent, project) for file, session, agent, project in rows}


def seen_files(connection: sqlite3.Connection, wanted: Wanted) -> list[int]:
    """Return the files that may have lines of the time and place that are wanted."""
    rows = connection.execute(
        "SELECT file, project FROM sessions WHERE started IS NULL "
        "OR (max(started, ended) >= ? AND min(started, ended) < ?)",
        (
            -(1 << 62) if wanted.since is None else wanted.since,
            1 << 62 if wanted.until is None else wanted.until,
        ),
    )
    return [file for file, project in rows if wanted.has_project(project)]


def tools_of(connection: sqlite3.Connection) -> Callable[[Row], tuple[str, ...]]:
    """Return what names responses by the first tool that each of them calls."""
    first: dict[tuple[int, str], str] = {}
    for file, response, name in connection.execute(
        f"SELECT message >> {SHIFT}, response, name FROM tool_calls ORDER BY message, place"
    ):
        first.setdefault((file, response), name)
    return lambda row: (first.get((row[0], row[1]), _WORDS),)


def _by_tool(connection: sqlite3.Connection, wanted: Wanted) -> Cells:
    """Sum up responses by the first tool that each of them calls."""
    tool_of = tools_of(connection)
    cells: Cells = {}
    for row in counted_rows(connection, wanted):
        day = day_of_slot(slot_of(row))
        add(cells, (tool_of(row), day, row[6], row[15], band_of(row)), heap_of(row))
    return cells


# What else is known of a row


def tell_more(connection: sqlite3.Connection, wanted: Wanted, lines: list[Line]) -> None:
    """Give rows of sessions and sub-agents their titles, and rows of tools their calls."""
    if wanted.by == "tool":
        _tell_calls(connection, wanted, lines)
    elif wanted.by in ("session", "agent"):
        told = {
            (session, agent): (title, project)
            for session, agent, title, project in connection.execute(
                "SELECT id, agent, title, project FROM sessions ORDER BY file DESC"
            )
        }
        for line in lines:
            names = line.names if wanted.by == "agent" else (line.names[0], "")
            line.title, line.project = told.get((names[0], names[1]), ("", ""))


def _tell_calls(connection: sqlite3.Connection, wanted: Wanted, lines: list[Line]) -> None:
    """Count calls of each tool, also of those that were not the first of their response."""
    values: list[Any] = []
    where = _where(connection, wanted, values)
    rows = connection.execute(
        "SELECT t.name, count(*), coalesce(sum(t.failed), 0) FROM tool_calls t "
        f"JOIN usage u ON u.file = t.message >> {SHIFT} AND u.key = t.response "
        f"JOIN sessions s ON s.file = u.file WHERE {where} GROUP BY t.name",
        values,
    )
    by_tool = {line.names[0]: line for line in lines}
    for name, calls, failed in rows:
        line = by_tool.get(name)
        if line is None:
            line = Line((name,), Figures(unpriced={}))
            lines.append(line)
        line.calls, line.failed = calls, failed
