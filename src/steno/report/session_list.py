"""Session list: filters, status, sorting, facets, groups and activity, from the index.

SQLite counts and limits everything: the number of fetched rows is bounded by what a page shows. In SQL expressions `s`
is a row of `sessions`. Times are in milliseconds. The status is defined in `session.session_status`.
"""

import os
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec

from steno.index.database import ARRAY_SQL, json_array
from steno.index.session_stats import FILE_ID_SHIFT
from steno.index.sync.scan import path_to_column
from steno.report.clock import seconds_from_ms
from steno.report.humanize import MS_PER_SECOND
from steno.report.pricing import PriceTable
from steno.report.session_lookup import IS_SHARED_SQL, session_key
from steno.report.usage.usage_from_index import count_by_session_file
from steno.report.usage.usage_report import UsageFigures as Spent
from steno.report.usage.usage_report import sum_usage
from steno.session.session_status import (
    ALWAYS_LISTED_STEP_RECORDS,
    CLOCK_SKEW,
    LIVE_SECONDS,
    MIN_STEP_RECORDS,
    Ending,
    SessionStatus,
    activity_age,
    status_at,
)
from steno.session.turns.session_facts import SessionCounts

StatusFilter: TypeAlias = Literal["live", "waiting", "finished", "interrupted", "failed", "damaged"]
STATUSES: Final[tuple[StatusFilter, ...]] = get_args(StatusFilter)
"""Statuses to filter by; `damaged` is known only from the health check."""
_STATUS_INTERVAL_MS: Final = 15_000


def status_moment(now: float) -> int:
    """Return the time in milliseconds for which statuses are counted, rounded down so that counts can be cached."""
    return int(now * MS_PER_SECOND) // _STATUS_INTERVAL_MS * _STATUS_INTERVAL_MS


def earliest_live_activity(now: int) -> int:
    """Return the earliest last activity that a live session can have."""
    return now - int(max(LIVE_SECONDS.values()) * MS_PER_SECOND)


def live_sql(now: int) -> str:
    """Return the SQL condition for live sessions."""
    high = now + int(CLOCK_SKEW * MS_PER_SECOND)
    parts: list[str] = []
    for ending, seconds in LIVE_SECONDS.items():
        recent = f"BETWEEN {now - int(seconds * MS_PER_SECOND)} AND {high}"
        parts.append(f"(s.ending = '{ending}' AND (s.ended {recent} OR s.grown {recent}))")
    return f"({' OR '.join(parts)})"


def status_sql(now: int) -> str:
    """Return SQL for the status of a session; `live` if the session is live."""
    endings: tuple[Ending, ...] = get_args(Ending)
    ended_cases = " ".join(f"WHEN '{ending}' THEN '{status_at(ending, float('inf'))}'" for ending in endings)
    return f"CASE WHEN {live_sql(now)} THEN 'live' ELSE CASE s.ending {ended_cases} END END"


def state_sql(now: int) -> str:
    """Return SQL for `status_at`; a session whose file is deleted is not live."""
    endings: tuple[Ending, ...] = get_args(Ending)
    live_cases = " ".join(
        f"WHEN '{ending}' THEN '{status_at(ending, 0.0)}'" for ending in endings if ending in LIVE_SECONDS
    )
    ended_cases = " ".join(f"WHEN '{each}' THEN '{status_at(each, float('inf'))}'" for each in endings)
    return (
        f"CASE WHEN {live_sql(now)} AND s.gone IS NULL THEN CASE s.ending {live_cases} END "
        f"ELSE CASE s.ending {ended_cases} END END"
    )


def list_rule_sql(now: int) -> str:
    """Return SQL for `session_status.is_listed`."""
    running = f"(s.gone IS NULL AND {live_sql(now)})"
    answered = f"(s.step_records >= {MIN_STEP_RECORDS} AND s.answered)"
    return f"({running} OR s.step_records >= {ALWAYS_LISTED_STEP_RECORDS} OR {answered})"


def filter_conditions(session_filter: "SessionFilter") -> tuple[list[str], list[Any]]:
    """Return SQL conditions on a row `s` of `sessions`, and their parameters."""
    where: list[str] = []
    values: list[Any] = []
    if session_filter.projects is not None:
        where.append(f"s.project IN {ARRAY_SQL}")
        values.append(json_array(session_filter.projects))
    if session_filter.until is not None:
        where.append("s.ended < ?")
        values.append(session_filter.until)
    if session_filter.state is not None:
        where.append(f"{state_sql(session_filter.now)} = '{session_filter.state}'")
    if session_filter.live is not None:
        live = f"({live_sql(session_filter.now)} AND s.gone IS NULL)"
        where.append(f"coalesce({live}, 0) = {int(session_filter.live)}")
    if session_filter.min_turns:
        where.append("s.turns >= ?")
        values.append(session_filter.min_turns)
    if session_filter.dialect is not None:
        where.append("s.dialect = ?")
        values.append(session_filter.dialect)
    return where, values


FacetName: TypeAlias = Literal["project", "branch", "model"]
SessionFeature: TypeAlias = Literal["failed", "agents", "compacted", "abandoned", "archived", "pr", "answered"]
SizeClass: TypeAlias = Literal["small", "medium", "large", "huge"]
SessionSort: TypeAlias = Literal["newest", "oldest", "longest", "turns", "largest"]
FEATURE_SQL: Final[dict[SessionFeature, str]] = {
    "failed": "s.failed > 0",
    "agents": "s.file IN (SELECT owner FROM sessions WHERE agents > 0)",
    "compacted": "s.compactions > 0",
    "abandoned": "s.rewound > 0",
    "archived": "s.gone IS NOT NULL",
    "pr": "s.file IN (SELECT file FROM links WHERE kind = 'pr')",
    "answered": "s.answered",
}
"""SQL condition of each session feature."""
STEP_COUNTS: Final = (MIN_STEP_RECORDS, ALWAYS_LISTED_STEP_RECORDS)
"""Minimum numbers of step records that are counted as facets."""
_MB: Final = 1 << 20
SIZE_RANGES: Final[dict[SizeClass, tuple[int, int | None]]] = {
    "small": (0, _MB // 10),
    "medium": (_MB // 10, _MB),
    "large": (_MB, 10 * _MB),
    "huge": (10 * _MB, None),
}
"""Minimum and exclusive maximum size of a session file, in bytes."""
SORT_SQL: Final[dict[SessionSort, str]] = {
    "newest": "s.last",
    "oldest": "-s.last",
    "longest": "s.worked",
    "turns": "s.turns",
    "largest": "s.size",
}
"""SQL sort keys, in descending order."""
_RANK_SQL: Final[dict[SessionSort | Literal["added"], str]] = {**SORT_SQL, "added": "s.file"}
"""All sort keys, including `added`: a stable order by the time when files were first indexed."""
_MAX_INTEGER: Final = (1 << 63) - 1
_FROM_SESSIONS: Final = "FROM sessions s"
_IS_SHOWN: Final = "s.listed = 1"
_IS_SESSION: Final = "s.agent = ''"
_SUBAGENT_COUNT: Final = "(SELECT total(a.agents) FROM sessions a WHERE a.owner = s.file)"
_COLUMNS: Final = (
    "s.file, s.id, s.title, s.project, s.branch, s.model, s.started, s.ended, s.turns, s.steps, "
    f"s.failed, s.worked, {_SUBAGENT_COUNT}, s.compactions, s.rewound, f.path, s.size, s.gone, "
    f"s.ending, s.grown, s.dialect, {IS_SHARED_SQL}"
)
_MAX_VALUES: Final = 200
"""Maximum number of facet values counted individually."""


class SessionFilter(msgspec.Struct, frozen=True):
    """Filter and order of sessions. Empty fields do not filter."""

    project: str | None = None
    """Exact project directory."""
    branch: str | None = None
    model: str | None = None
    since: int | None = None
    """Minimum last activity, in milliseconds."""
    has: tuple[SessionFeature, ...] = ()
    size: SizeClass | None = None
    min_steps: int = 0
    """Minimum number of step records: user and assistant records, one line each in `steps.jsonl`."""
    listed: bool = False
    """Whether to omit short sessions, as defined by `session_status.is_listed`."""
    status: StatusFilter | None = None
    now: int = 0
    """Time for which the status is evaluated, in milliseconds."""
    sessions: tuple[str, ...] | None = None
    """Session IDs to restrict to."""
    files: tuple[int, ...] | None = None
    """File numbers to restrict to, for filters that the index cannot evaluate."""
    among: tuple[int, ...] | None = None
    """File numbers to restrict to, also for facet counts: the sessions with search matches."""
    sort: SessionSort | Literal["added"] = "newest"
    projects: tuple[str, ...] | None = None
    """Project directories to restrict to."""
    until: int | None = None
    """Exclusive maximum last activity, in milliseconds."""
    state: SessionStatus | None = None
    """Status at `now`, as defined by `session.session_status.status_at`."""
    live: bool | None = None
    """Whether sessions are live at `now`."""
    min_turns: int = 0
    dialect: str | None = None
    hidden: bool = False
    """Whether to include sessions without a prompt."""


class SessionRow(msgspec.Struct, frozen=True):
    """A session in a list. Times are in milliseconds."""

    file: int
    id: str
    title: str
    project: str
    branch: str
    model: str
    started: int | None
    ended: int | None
    figures: SessionCounts
    path: str
    size: int
    gone: bool
    ending: Ending
    grown: int | None
    """Time at which the file was last seen growing."""
    dialect: str
    """Published dialect of the file; `claude` for Claude Code's format."""
    key: str
    """URL key."""
    rank: int
    """Sort key of the row; the cursor for the next page is this and `file`."""

    def age(self, now: float) -> float:
        """Return the seconds since the last activity."""
        return activity_age(now, seconds_from_ms(self.ended), seconds_from_ms(self.grown))


class SessionListPage(msgspec.Struct, frozen=True):
    """One page of the sessions that match a filter."""

    rows: list[SessionRow]
    total: int
    more: bool


class ValueCount(msgspec.Struct, frozen=True):
    """A value of a facet, and its number of sessions."""

    name: str
    number: int


class FacetValues(msgspec.Struct, frozen=True):
    """Most frequent values of a facet."""

    values: list[ValueCount]
    more: int
    """Number of omitted values."""


class SessionGroup(msgspec.Struct, frozen=True):
    """Sessions under one heading: of a project, or last active in a time range."""

    project: str | None = None
    low: int | None = None
    """Milliseconds; None without `project` means sessions without a time."""
    high: int | None = None


def list_sessions(
    connection: sqlite3.Connection,
    session_filter: SessionFilter,
    *,
    limit: int = 50,
    after: tuple[int, int] | None = None,
    excluded_files: Sequence[int] = (),
) -> SessionListPage:
    """Return the first `limit` sessions, or those after a row (its rank and file).

    Sessions in `excluded_files` are counted but not returned.
    """
    where, values = _where(session_filter)
    total: int = connection.execute(f"SELECT count(*) {_FROM_SESSIONS} WHERE {where}", values).fetchone()[0]
    if excluded_files:
        where += f" AND s.file NOT IN {ARRAY_SQL}"
        values = [*values, json_array(excluded_files)]
    rank = _RANK_SQL[session_filter.sort]
    if after is not None:
        where += f" AND ({rank}, s.file) < (?, ?)"
        values = [*values, *after]
    rows = _select_rows(connection, where, values, rank, f"{rank} DESC, s.file DESC", limit + 1)
    return SessionListPage(rows[:limit], total, len(rows) > limit)


def session_row_at(connection: sqlite3.Connection, file: int) -> SessionRow | None:
    """Return the session of a file, listed or not; None if it is not indexed."""
    rows = _select_rows(connection, "s.file = ?", [file], "s.last", "s.file", 1)
    return rows[0] if rows else None


def live_sessions(connection: sqlite3.Connection, session_filter: SessionFilter, limit: int) -> SessionListPage:
    """Return the first matching live sessions, working ones first, and the total."""
    where, values = _where(msgspec.structs.replace(session_filter, status="live"))
    total: int = connection.execute(f"SELECT count(*) {_FROM_SESSIONS} WHERE {where}", values).fetchone()[0]
    if not total:
        return SessionListPage([], 0, more=False)
    order = "s.ending IN ('answered', 'question'), s.active DESC, s.file DESC"
    rows = _select_rows(connection, where, values, "s.last", order, limit)
    return SessionListPage(rows, total, total > len(rows))


def _select_rows(
    connection: sqlite3.Connection, where: str, values: Sequence[Any], rank: str, order: str, limit: int
) -> list[SessionRow]:
    """Return the first rows; joined columns are read only for these."""
    ranked_files = connection.execute(
        f"SELECT s.file, {rank} {_FROM_SESSIONS} WHERE {where} ORDER BY {order} LIMIT ?", [*values, limit]
    ).fetchall()
    rows = connection.execute(
        f"SELECT {_COLUMNS} {_FROM_SESSIONS} JOIN files f ON f.id = s.file WHERE s.file IN {ARRAY_SQL}",
        (json_array([file for file, _ in ranked_files]),),
    )
    row_by_file = {row[0]: row for row in rows}
    return [_session_row((*row_by_file[file], number)) for file, number in ranked_files]


def _session_row(row: tuple[Any, ...]) -> SessionRow:
    file, session_id, title, project, branch, model, started, ended, *counts = row[:15]
    path, size, gone, ending, grown, dialect, shared, rank = row[15:]
    turns, steps, failed, worked, agents, compactions, branches = map(int, counts)
    return SessionRow(
        file=file,
        id=session_id,
        title=title,
        project=project,
        branch=branch,
        model=model,
        started=started,
        ended=ended,
        figures=SessionCounts(
            turns=turns,
            steps=steps,
            failed=failed,
            worked=worked,
            agents=agents,
            compactions=compactions,
            branches=branches,
            model=model,
        ),
        path=os.fsdecode(path),
        size=size,
        gone=gone is not None,
        ending=ending,
        grown=grown,
        dialect=dialect,
        key=session_key(session_id, file, shared=bool(shared)),
        rank=rank,
    )


def _where(session_filter: SessionFilter, *, ignored_filter: str = "") -> tuple[str, list[Any]]:
    """Return the SQL condition of a filter, ignoring the field `ignored_filter`."""
    where, values = [_IS_SESSION if session_filter.hidden else _IS_SHOWN], list[Any]()
    for name, column in (("project", "s.project"), ("branch", "s.branch"), ("model", "s.model")):
        value = getattr(session_filter, name)
        if value is not None and name != ignored_filter:
            where.append(f"{column} = ?")
            values.append(value)
    if session_filter.since is not None and ignored_filter != "since":
        where.append("s.ended >= ?")
        values.append(session_filter.since)
    where += [FEATURE_SQL[feature] for feature in session_filter.has] if ignored_filter != "has" else ()
    if session_filter.size is not None and ignored_filter != "size":
        low, high = SIZE_RANGES[session_filter.size]
        where.append("s.size >= ? AND s.size < ?")
        values += (low, high or _MAX_INTEGER)
    where += _step_conditions(session_filter, ignored_filter=ignored_filter)
    if session_filter.status is not None and ignored_filter != "status":
        where.append(_status_condition(session_filter, session_filter.status))
    if session_filter.sessions is not None:
        where.append(f"s.id IN {ARRAY_SQL}")
        values.append(json_array(session_filter.sessions))
    extra_conditions, extra_values = filter_conditions(session_filter)
    where += extra_conditions
    values += extra_values
    for files in (session_filter.among, session_filter.files if ignored_filter != "status" else None):
        if files is not None:
            where.append(f"s.file IN {ARRAY_SQL}")
            values.append(json_array(files))
    return " AND ".join(where), values


def _step_conditions(session_filter: SessionFilter, *, ignored_filter: str) -> list[str]:
    """Return the SQL conditions on step records."""
    where: list[str] = []
    if session_filter.min_steps and ignored_filter != "min_steps":
        where.append(f"s.step_records >= {session_filter.min_steps:d}")
    if session_filter.listed:
        where.append(list_rule_sql(session_filter.now))
    return where


def _status_condition(session_filter: SessionFilter, status: StatusFilter) -> str:
    if status == "live":
        since = earliest_live_activity(session_filter.now)
        return f"s.active >= {since} AND {live_sql(session_filter.now)} AND s.gone IS NULL"
    if status == "damaged":
        # The health check lists these files in `files`.
        return "s.gone IS NULL"
    return f"{status_sql(session_filter.now)} = '{status}' AND s.gone IS NULL"


def count_by_status(connection: sqlite3.Connection, session_filter: SessionFilter) -> dict[str, int]:
    """Return the number of sessions by status, ignoring the status filter."""
    where, values = _where(session_filter, ignored_filter="status")
    return dict(
        connection.execute(
            f"SELECT {status_sql(session_filter.now)}, count(*) {_FROM_SESSIONS} "
            f"WHERE {where} AND s.gone IS NULL GROUP BY 1",
            values,
        ).fetchall()
    )


def file_ids_at(connection: sqlite3.Connection, paths: Sequence[str]) -> tuple[int, ...]:
    """Return the numbers of the existing files at paths."""
    query = "SELECT id FROM files WHERE path = ? AND gone IS NULL"
    rows = (connection.execute(query, (path_to_column(path),)).fetchone() for path in paths)
    return tuple(sorted(row[0] for row in rows if row is not None))


def group_totals(
    connection: sqlite3.Connection,
    session_filter: SessionFilter,
    groups: Sequence[SessionGroup],
    prices: PriceTable,
    *,
    max_sessions: int,
) -> list[tuple[int, int | None]]:
    """Return the number of sessions and the cost of each group.

    Costs are computed for at most `max_sessions` sessions in total; groups beyond that have no cost.
    """
    where, values = _where(session_filter)
    totals: list[tuple[int, int | None]] = []
    for group in groups:
        condition, bounds = _group_condition(group)
        within, all_values = f"{where} AND {condition}", [*values, *bounds]
        number: int = connection.execute(f"SELECT count(*) {_FROM_SESSIONS} WHERE {within}", all_values).fetchone()[0]
        cost = None
        if number <= max_sessions:
            max_sessions -= number
            files = connection.execute(f"SELECT s.file {_FROM_SESSIONS} WHERE {within}", all_values)
            costs = usage_by_session(connection, [file for (file,) in files], prices).values()
            known_costs = [usage.cost for usage in costs if usage.cost is not None]
            cost = sum(known_costs) if known_costs else None
        totals.append((number, cost))
    return totals


def _group_condition(group: SessionGroup) -> tuple[str, list[Any]]:
    if group.project is not None:
        return "s.project = ?", [group.project]
    if group.low is None:
        return "s.ended IS NULL", []
    return "s.last >= ? AND s.last < ? AND s.ended IS NOT NULL", [group.low, group.high]


def matching_file_ids(connection: sqlite3.Connection, session_filter: SessionFilter) -> set[int]:
    """Return the file numbers of the matching sessions."""
    where, values = _where(session_filter)
    return {file for (file,) in connection.execute(f"SELECT s.file {_FROM_SESSIONS} WHERE {where}", values)}


def file_ids_by_title(
    connection: sqlite3.Connection, session_filter: SessionFilter, matches: Callable[[str], bool]
) -> list[int]:
    """Return the file numbers of the matching sessions whose title also matches."""
    where, values = _where(session_filter)
    rows = connection.execute(f"SELECT s.file, s.title {_FROM_SESSIONS} WHERE {where}", values)
    return [file for file, title in rows if matches(title)]


def count_by_size(connection: sqlite3.Connection, session_filter: SessionFilter) -> dict[SizeClass, int]:
    """Return the number of sessions by size class, ignoring the size filter."""
    where, values = _where(session_filter, ignored_filter="size")
    sums = ", ".join("total(s.size >= ? AND s.size < ?)" for _ in SIZE_RANGES)
    limits = [end for low, high in SIZE_RANGES.values() for end in (low, high or _MAX_INTEGER)]
    row = connection.execute(f"SELECT {sums} {_FROM_SESSIONS} WHERE {where}", [*limits, *values]).fetchone()
    return dict(zip(SIZE_RANGES, map(int, row), strict=True))


def count_by_step_records(connection: sqlite3.Connection, session_filter: SessionFilter) -> tuple[dict[int, int], int]:
    """Return the number of sessions by minimum step records, and the number without short sessions.

    Each count ignores its own filter. The minimums are `STEP_COUNTS` and the selected one.
    """
    where, values = _where(session_filter, ignored_filter="min_steps")
    numbers = sorted({*STEP_COUNTS, *([session_filter.min_steps] if session_filter.min_steps else ())})
    sums = ", ".join(f"total(s.step_records >= {number:d})" for number in numbers)
    row = connection.execute(f"SELECT {sums} {_FROM_SESSIONS} WHERE {where}", values).fetchone()
    counts = dict(zip(numbers, map(int, row), strict=True))
    where, values = _where(msgspec.structs.replace(session_filter, listed=True))
    (listed,) = connection.execute(f"SELECT count(*) {_FROM_SESSIONS} WHERE {where}", values).fetchone()
    return counts, listed


def facet_values(
    connection: sqlite3.Connection, session_filter: SessionFilter, name: FacetName, limit: int = _MAX_VALUES
) -> FacetValues:
    """Return the most frequent values of a facet, ignoring its own filter.

    The selected value is always included.
    """
    where, values = _where(session_filter, ignored_filter=name)
    selected_value = getattr(session_filter, name)
    rows = connection.execute(
        f"SELECT s.{name}, count(*), count(*) OVER () {_FROM_SESSIONS} WHERE {where} GROUP BY 1 "
        f"ORDER BY s.{name} = ? DESC, 2 DESC, 1 LIMIT ?",
        [*values, selected_value, limit],
    ).fetchall()
    counts = sorted(
        (ValueCount(*row[:2]) for row in rows), key=lambda value_count: (-value_count.number, value_count.name)
    )
    return FacetValues(counts, rows[0][2] - len(rows) if rows else 0)


def count_by_feature(
    connection: sqlite3.Connection, session_filter: SessionFilter, times: Sequence[int]
) -> tuple[dict[SessionFeature, int], list[int]]:
    """Return the number of sessions by feature, and the number active since each of `times`."""
    where, values = _where(session_filter, ignored_filter="has")
    sums = ", ".join(f"total({condition})" for condition in FEATURE_SQL.values())
    row = connection.execute(f"SELECT {sums} {_FROM_SESSIONS} WHERE {where}", values).fetchone()
    feature_counts: dict[SessionFeature, int] = dict(zip(FEATURE_SQL, map(int, row), strict=True))
    where, values = _where(session_filter, ignored_filter="since")
    sums = ", ".join("total(s.ended >= ?)" for _ in times) or "0"
    row = connection.execute(f"SELECT {sums} {_FROM_SESSIONS} WHERE {where}", [*times, *values]).fetchone()
    return feature_counts, [int(number) for number in row][: len(times)]


def usage_by_session(connection: sqlite3.Connection, files: Sequence[int], prices: PriceTable) -> dict[int, Spent]:
    """Return the usage of sessions by file number, including sub-agents."""
    buckets = count_by_session_file(connection, files, prices)
    prices.load({bucket[2] for bucket in buckets})
    buckets_by_file: dict[int, list[Any]] = {}
    for cell, counts in buckets.items():
        buckets_by_file.setdefault(int(cell[0][0]), []).append((cell, counts))
    return {file: sum_usage(file_buckets, prices) for file, file_buckets in buckets_by_file.items()}


_SLICE_COUNT: Final = 28


def activity_slices(
    connection: sqlite3.Connection, row: "SessionRow", slices: int = _SLICE_COUNT
) -> tuple[list[int], set[int]]:
    """Return the number of messages in each time slice of a session, and the slices with failed steps."""
    if row.started is None or row.ended is None or row.ended <= row.started:
        return [0] * slices, set()
    span = row.ended - row.started + 1
    low, high = row.file << FILE_ID_SHIFT, (row.file + 1) << FILE_ID_SHIFT
    slice_sql = f"(time - ?) * {int(slices)} / ?"
    counts = [0] * slices
    for slice_number, number in connection.execute(
        f"SELECT {slice_sql}, count(*) FROM messages WHERE id >= ? AND id < ? AND time >= ? GROUP BY 1",
        (row.started, span, low, high, row.started),
    ):
        if 0 <= slice_number < slices:
            counts[slice_number] = number
    failed_rows = connection.execute(
        f"SELECT DISTINCT {slice_sql} FROM tool_calls WHERE message >= ? AND message < ? AND failed AND time >= ?",
        (row.started, span, low, high, row.started),
    )
    return counts, {place for (place,) in failed_rows if 0 <= place < slices}
