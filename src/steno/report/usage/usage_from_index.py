"""Token usage from the index: from daily sums, or from single responses."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from steno.index.database import ARRAY_SQL, json_array
from steno.index.price_tiers import TIER_SQL
from steno.index.session_stats import FILE_ID_SHIFT, Row
from steno.index.usage_rows import LOCAL_DAY
from steno.report.pricing import PriceTable
from steno.report.usage.usage_query import (
    CLOCK_GROUPINGS,
    SLOT_MILLIS,
    Buckets,
    TranscriptOwner,
    UsageQuery,
    add_counts,
    counts_of_row,
    day_of_slot,
    midnight_millis,
    month_of,
    slot_of_row,
    tier_of_row,
    week_of,
)
from steno.report.usage.usage_report import ReportRow, UsageFigures

_DAY_GROUPINGS: Final = ("day", "week", "month", "project", "model")
SUM_COLUMNS: Final = (
    "count(*), sum(u.input), sum(u.output), sum(u.cache_5m), sum(u.cache_1h), sum(u.cache_read), "
    "sum(u.searches), sum(u.estimated)"
)
_DAY_SUM_COLUMNS: Final = (
    "sum(responses), sum(input), sum(output), sum(cache_5m), sum(cache_1h), sum(cache_read), "
    "sum(searches), sum(estimated)"
)
_GROUP_COLUMNS: Final = {
    "day": (LOCAL_DAY,),
    "week": (LOCAL_DAY,),
    "month": (LOCAL_DAY,),
    "project": ("s.project",),
    "model": ("u.model",),
    "session": ("s.id",),
    "agent": ("s.id", "coalesce(nullif(u.agent, ''), s.agent)"),
    "branch": ("s.project", "u.branch"),
    "hour": (f"coalesce(u.time / {SLOT_MILLIS}, '')",),
    "block5h": (f"coalesce(u.time / {SLOT_MILLIS}, '')",),
}
RESPONSE_COLUMNS: Final = (
    "u.file, u.key, u.message, u.lines, u.turn, u.time, u.model, u.branch, u.agent, u.input, "
    "u.output, u.cache_5m, u.cache_1h, u.cache_read, u.searches, u.fast, u.estimated, u.copied"
)
_KEY_CHUNK_SIZE: Final = 500
_NO_TOOL: Final = "(no tool)"
_FIRST_DAY: Final = "0001-01-01"


def count_indexed_usage(connection: sqlite3.Connection, query: UsageQuery, prices: PriceTable) -> Buckets:
    """Return the usage that matches a query."""
    if query.by == "tool":
        return _count_by_tool(connection, query)
    if query.by in _DAY_GROUPINGS and query.is_whole_days and query.sessions is None:
        return _count_from_days(connection, query)
    models = [row[0] for row in connection.execute("SELECT DISTINCT model FROM days")]
    prices.load(models)
    return _count_from_responses(connection, query, prices, models)


def _count_from_days(connection: sqlite3.Connection, query: UsageQuery) -> Buckets:
    where, values = ["1"], list[Any]()
    if query.is_bounded:
        where.append("day != ''")
    if query.since is not None:
        where.append("day >= ?")
        values.append(day_of_slot(query.since // SLOT_MILLIS))
    if query.until is not None:
        where.append("day < ?")
        values.append(day_of_slot(query.until // SLOT_MILLIS))
    grouping = query.by
    group_column = "project" if grouping == "project" else "''"
    if not query.is_everywhere:
        where.append(_in_array_sql("project", _matching_projects(connection, query), values))
    rows = connection.execute(
        f"SELECT {group_column}, day, model, fast, band, {_DAY_SUM_COLUMNS} FROM days "
        f"WHERE {' AND '.join(where)} GROUP BY 1, 2, 3, 4, 5",
        values,
    )
    buckets: Buckets = {}
    for project, day, model, fast, tier, *counts in rows:
        name = {"project": project, "model": model}.get(grouping) or _period_of_day(grouping, day)
        add_counts(buckets, ((name,), day, model, fast, tier), counts)
    return buckets


def _period_of_day(grouping: str, day: str) -> str:
    if grouping == "week":
        return week_of(day)
    if grouping in ("project", "model"):
        return ""
    return month_of(day) if grouping == "month" else day


def _count_from_responses(
    connection: sqlite3.Connection, query: UsageQuery, prices: PriceTable, models: list[str]
) -> Buckets:
    grouping = query.by
    values: list[Any] = []
    day = LOCAL_DAY if grouping in ("day", "week", "month") else _price_day_sql(prices, models, values)
    names = ", ".join(_GROUP_COLUMNS[grouping])
    where = _where(connection, query, values)
    width = len(_GROUP_COLUMNS[grouping])
    order = ", ".join(str(place + 1) for place in range(width + 4))
    rows = connection.execute(
        f"SELECT {names}, {day}, u.model, u.fast, {TIER_SQL}, {SUM_COLUMNS} "
        f"FROM usage u JOIN sessions s ON s.file = u.file WHERE {where} GROUP BY {order}",
        values,
    )
    buckets: Buckets = {}
    for row in rows:
        name = row[:width]
        day, model, fast, tier = row[width : width + 4]
        if grouping in CLOCK_GROUPINGS:
            # Prices depend on the local day of the slot.
            name = (str(name[0]),)
            day = day_of_slot(int(name[0])) if name[0] else ""
        elif grouping in ("week", "month"):
            name = (_period_of_day(grouping, name[0]),)
        add_counts(buckets, (name, day, model, fast, tier), row[width + 4 :])
    return buckets


def count_by_origin(connection: sqlite3.Connection, query: UsageQuery, prices: PriceTable) -> Buckets:
    """Return the usage in a time range by file, sub-agent and branch, as input for several reports."""
    models = [row[0] for row in connection.execute("SELECT DISTINCT model FROM days")]
    prices.load(models)
    values: list[Any] = []
    day = _price_day_sql(prices, models, values)
    where = _where(connection, UsageQuery(since=query.since, until=query.until), values)
    rows = connection.execute(
        f"SELECT u.file, u.agent, u.branch, {day}, u.model, u.fast, {TIER_SQL}, {SUM_COLUMNS} "
        f"FROM usage u WHERE {where} GROUP BY 1, 2, 3, 4, 5, 6, 7",
        values,
    )
    return {
        ((str(file), agent, branch), day, model, fast, tier): tuple(counts)
        for file, agent, branch, day, model, fast, tier, *counts in rows
    }


def count_by_session_file(connection: sqlite3.Connection, files: Sequence[int], prices: PriceTable) -> Buckets:
    """Return the usage of sessions by file number, including sub-agents."""
    models = [row[0] for row in connection.execute("SELECT DISTINCT model FROM days")]
    prices.load(models)
    values: list[Any] = []
    day = _price_day_sql(prices, models, values)
    owner_condition = _in_array_sql("s.owner", files, values)
    rows = connection.execute(
        f"SELECT s.owner, {day}, u.model, u.fast, {TIER_SQL}, {SUM_COLUMNS} "
        f"FROM sessions s JOIN usage u ON u.file = s.file WHERE u.counts AND {owner_condition} "
        "GROUP BY 1, 2, 3, 4, 5",
        values,
    )
    return {((str(file),), day, model, fast, tier): tuple(counts) for file, day, model, fast, tier, *counts in rows}


def _price_day_sql(prices: PriceTable, models: list[str], values: list[Any]) -> str:
    """Return SQL for a day with the price of a response; days with equal prices are merged."""
    cases = ""
    for day in sorted(prices.price_change_days(models), reverse=True):
        cases += " WHEN u.time >= ? THEN ?"
        values += [midnight_millis(day), day]
    return f"CASE WHEN u.time IS NULL THEN ''{cases} ELSE '{_FIRST_DAY}' END"


def _where(connection: sqlite3.Connection, query: UsageQuery, values: list[Any]) -> str:
    where = ["u.counts"]
    if query.is_bounded:
        where.append("u.time IS NOT NULL")
    if query.since is not None:
        where.append("u.time >= ?")
        values.append(query.since)
    if query.until is not None:
        where.append("u.time < ?")
        values.append(query.until)
    if not query.is_everywhere:
        where.append(_in_array_sql("s.project", _matching_projects(connection, query), values))
    if query.sessions is not None:
        where.append(_in_array_sql("s.id", query.sessions, values))
    return " AND ".join(where)


def _matching_projects(connection: sqlite3.Connection, query: UsageQuery) -> list[str]:
    rows = connection.execute("SELECT DISTINCT project FROM sessions")
    return [project for (project,) in rows if query.matches_project(project)]


def _in_array_sql(column: str, items: Sequence[str] | Sequence[int], values: list[Any]) -> str:
    values.append(json_array(items))
    return f"{column} IN {ARRAY_SQL}"


# Single responses


def counted_rows(connection: sqlite3.Connection, query: UsageQuery) -> Iterator[Row]:
    """Yield the counted responses as rows of `usage`."""
    values: list[Any] = []
    where = _where(connection, query, values)
    return connection.execute(
        f"SELECT {RESPONSE_COLUMNS} FROM usage u JOIN sessions s ON s.file = u.file WHERE {where}", values
    )


def copies_of(connection: sqlite3.Connection, keys: Iterable[str]) -> Iterator[Row]:
    """Yield the copies of responses that do not count."""
    keys = list(keys)
    for chunk in (keys[at : at + _KEY_CHUNK_SIZE] for at in range(0, len(keys), _KEY_CHUNK_SIZE)):
        placeholders = ", ".join("?" * len(chunk))
        yield from connection.execute(
            f"SELECT {RESPONSE_COLUMNS} FROM usage u WHERE u.key IN ({placeholders}) AND NOT u.counts", chunk
        )


def transcript_owners(connection: sqlite3.Connection) -> dict[int, TranscriptOwner]:
    """Return the session, sub-agent and project of every file."""
    rows = connection.execute("SELECT file, id, agent, project FROM sessions")
    return {file: (session, agent, project) for file, session, agent, project in rows}


def files_in_range(connection: sqlite3.Connection, query: UsageQuery) -> list[int]:
    """Return the files that may contain records matching the query."""
    rows = connection.execute(
        "SELECT file, project FROM sessions WHERE started IS NULL "
        "OR (max(started, ended) >= ? AND min(started, ended) < ?)",
        (-(1 << 62) if query.since is None else query.since, 1 << 62 if query.until is None else query.until),
    )
    return [file for file, project in rows if query.matches_project(project)]


def tool_namer(connection: sqlite3.Connection) -> Callable[[Row], tuple[str, ...]]:
    """Return a function that maps a response to the first tool it calls."""
    first_tools: dict[tuple[int, str], str] = {}
    for file, response, name in connection.execute(
        f"SELECT message >> {FILE_ID_SHIFT}, response, name FROM tool_calls ORDER BY message, place"
    ):
        first_tools.setdefault((file, response), name)
    return lambda row: (first_tools.get((row[0], row[1]), _NO_TOOL),)


def _count_by_tool(connection: sqlite3.Connection, query: UsageQuery) -> Buckets:
    """Aggregate responses by the first tool they call."""
    tool_of = tool_namer(connection)
    buckets: Buckets = {}
    for row in counted_rows(connection, query):
        day = day_of_slot(slot_of_row(row))
        add_counts(buckets, (tool_of(row), day, row[6], row[15], tier_of_row(row)), counts_of_row(row))
    return buckets


# Details of rows


def add_row_details(connection: sqlite3.Connection, query: UsageQuery, report_rows: list[ReportRow]) -> None:
    """Add titles to rows of sessions and sub-agents, and call counts to rows of tools."""
    if query.by == "tool":
        _add_tool_calls(connection, query, report_rows)
    elif query.by in ("session", "agent"):
        details = {
            (session, agent): (title, project)
            for session, agent, title, project in connection.execute(
                "SELECT id, agent, title, project FROM sessions ORDER BY file DESC"
            )
        }
        for report_row in report_rows:
            names = report_row.names if query.by == "agent" else (report_row.names[0], "")
            report_row.title, report_row.project = details.get((names[0], names[1]), ("", ""))


def _add_tool_calls(connection: sqlite3.Connection, query: UsageQuery, report_rows: list[ReportRow]) -> None:
    """Count the calls of each tool, including calls that are not the first of their response."""
    values: list[Any] = []
    where = _where(connection, query, values)
    rows = connection.execute(
        "SELECT t.name, count(*), coalesce(sum(t.failed), 0) FROM tool_calls t "
        f"JOIN usage u ON u.file = t.message >> {FILE_ID_SHIFT} AND u.key = t.response "
        f"JOIN sessions s ON s.file = u.file WHERE {where} GROUP BY t.name",
        values,
    )
    by_tool = {report_row.names[0]: report_row for report_row in report_rows}
    for name, calls, failed in rows:
        line = by_tool.get(name)
        if line is None:
            line = ReportRow((name,), UsageFigures(unpriced={}))
            report_rows.append(line)
        line.calls, line.failed = calls, failed
