"""Sessions as a list: which there are, filtered and sorted, and what stands beside each title.

Everything is counted and cut by SQLite: what is fetched is bounded by what a page shows.
"""

import os
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec

from steno.index.scan import path_to
from steno.report.keys import SHARED, key_of
from steno.report.prices import Prices
from steno.report.session_filters import conditions_of
from steno.report.session_status import (
    StatusFilter,
    list_rule_sql,
    live_since,
    live_sql,
    status_sql,
)
from steno.report.usage.indexed import count_files
from steno.report.usage.totals import Figures as Spent
from steno.report.usage.totals import summed
from steno.session.liveness import Ending, SessionStatus
from steno.session.step_records import FEW, MANY
from steno.session.story.figures import Figures

__all__ = [
    "HAS",
    "LENGTHS",
    "SIZES",
    "SORTS",
    "Choice",
    "Count",
    "FacetName",
    "FacetValues",
    "Group",
    "Has",
    "Listed",
    "Listing",
    "Size",
    "Sort",
    "costs_of",
    "counts_of",
    "facets_of",
    "files_at",
    "files_of",
    "group_totals",
    "lengths_of",
    "list_sessions",
    "listed_at",
    "live_sessions",
    "sizes_of",
    "statuses_of",
    "titled",
]

FacetName: TypeAlias = Literal["project", "branch", "model"]
Has: TypeAlias = Literal["failed", "agents", "compacted", "abandoned", "archived", "pr", "answered"]
Size: TypeAlias = Literal["small", "medium", "large", "huge"]
Sort: TypeAlias = Literal["newest", "oldest", "longest", "turns", "largest"]
HAS: Final[dict[Has, str]] = {
    "failed": "s.failed > 0",
    "agents": "s.file IN (SELECT owner FROM sessions WHERE agents > 0)",
    "compacted": "s.compactions > 0",
    "abandoned": "s.rewound > 0",
    "archived": "s.gone IS NOT NULL",
    "pr": "s.file IN (SELECT file FROM links WHERE kind = 'pr')",
    "answered": "s.answered",
}
"""What a session may have, and how the index tells."""
LENGTHS: Final = (FEW, MANY)
"""The numbers of step records that sessions are counted by."""
_MB: Final = 1 << 20
SIZES: Final[dict[Size, tuple[int, int | None]]] = {
    "small": (0, _MB // 10),
    "medium": (_MB // 10, _MB),
    "large": (_MB, 10 * _MB),
    "huge": (10 * _MB, None),
}
"""How many bytes a session's own file has: from, and up to."""
SORTS: Final[dict[Sort, str]] = {
    "newest": "s.last",
    "oldest": "-s.last",
    "longest": "s.worked",
    "turns": "s.turns",
    "largest": "s.size",
}
"""By what they are sorted, highest first."""
_RANKS: Final[dict[Sort | Literal["added"], str]] = {**SORTS, "added": "s.file"}
"""The same and the order in which the index first had them, which never changes."""
_AMONG: Final = "(SELECT value FROM json_each(?))"
_LARGEST: Final = (1 << 63) - 1
_FROM: Final = "FROM sessions s"
_SHOWN: Final = "s.listed = 1"
_EVERY: Final = "s.agent = ''"
_AGENTS: Final = "(SELECT total(a.agents) FROM sessions a WHERE a.owner = s.file)"
_COLUMNS: Final = (
    "s.file, s.id, s.title, s.project, s.branch, s.model, s.started, s.ended, s.turns, s.steps, "
    f"s.failed, s.worked, {_AGENTS}, s.compactions, s.rewound, f.path, s.size, s.gone, "
    f"s.ending, s.grown, s.dialect, {SHARED}"
)
_MOST_VALUES: Final = 200
"""How many values of a facet are counted one by one."""


class Choice(msgspec.Struct, frozen=True):
    """Which sessions, and in which order. What is empty does not matter."""

    project: str | None = None
    """The folder they began in, exactly."""
    branch: str | None = None
    model: str | None = None
    since: int | None = None
    """The earliest time they were last active, in milliseconds."""
    has: tuple[Has, ...] = ()
    size: Size | None = None
    min_steps: int = 0
    """The fewest step records: user and assistant records, one line each in `steps.jsonl`."""
    listed: bool = False
    """Only what the list rule shows (`steno.session.step_records`)."""
    status: StatusFilter | None = None
    now: int = 0
    """The time that the status is asked for, in milliseconds."""
    sessions: tuple[str, ...] | None = None
    """The only ones, by their ids."""
    files: tuple[int, ...] | None = None
    """The only ones, by the numbers of their files: what the index alone cannot tell."""
    among: tuple[int, ...] | None = None
    """The same, and never left out of what is counted: those in which something was found."""
    sort: Sort | Literal["added"] = "newest"
    projects: tuple[str, ...] | None = None
    """The only directories they began in."""
    until: int | None = None
    """The first time at which they were no longer active, in milliseconds."""
    state: SessionStatus | None = None
    """Their status at `now`, as `session.liveness.status_at` defines it."""
    live: bool | None = None
    """Whether they are live at `now`."""
    min_turns: int = 0
    dialect: str | None = None
    hidden: bool = False
    """Whether those without a prompt are listed as well."""


class Listed(msgspec.Struct, frozen=True):
    """A session in a list. Times are milliseconds."""

    file: int
    id: str
    title: str
    project: str
    branch: str
    model: str
    started: int | None
    ended: int | None
    figures: Figures
    path: str
    size: int
    gone: bool
    ending: Ending
    grown: int | None
    """When its file was last seen growing."""
    dialect: str
    """The published dialect its file is written in; `claude` for the client's own form."""
    key: str
    """What an address calls it."""
    rank: int
    """Where it stands in the order; together with `file` it tells where to go on."""


class Listing(msgspec.Struct, frozen=True):
    """Some sessions of all that were asked for."""

    rows: list[Listed]
    total: int
    more: bool


class Count(msgspec.Struct, frozen=True):
    """A value that sessions have, and how many have it."""

    name: str
    number: int


class FacetValues(msgspec.Struct, frozen=True):
    """The most frequent values of a column."""

    values: list[Count]
    more: int
    """How many values are left out."""


class Group(msgspec.Struct, frozen=True):
    """The sessions under one heading: of a project, or last active in some time."""

    project: str | None = None
    low: int | None = None
    """Milliseconds; None with no `project` stands for sessions without a time."""
    high: int | None = None


def list_sessions(
    connection: sqlite3.Connection,
    choice: Choice,
    *,
    limit: int = 50,
    after: tuple[int, int] | None = None,
    without: Sequence[int] = (),
) -> Listing:
    """Return the first so many sessions, or those behind a row (its rank and file).

    `without` names files that stand elsewhere; they count, and are not listed.
    """
    where, values = _where(choice)
    total: int = connection.execute(f"SELECT count(*) {_FROM} WHERE {where}", values).fetchone()[0]
    if without:
        where += f" AND s.file NOT IN {_AMONG}"
        values = [*values, _some(without)]
    rank = _RANKS[choice.sort]
    if after is not None:
        where += f" AND ({rank}, s.file) < (?, ?)"
        values = [*values, *after]
    rows = _rows(connection, where, values, rank, f"{rank} DESC, s.file DESC", limit + 1)
    return Listing(rows[:limit], total, len(rows) > limit)


def listed_at(connection: sqlite3.Connection, file: int) -> Listed | None:
    """Return the session of a file, also one that no list shows; None if it is not indexed."""
    rows = _rows(connection, "s.file = ?", [file], "s.last", "s.file", 1)
    return rows[0] if rows else None


def live_sessions(connection: sqlite3.Connection, choice: Choice, limit: int) -> Listing:
    """Return the first live ones of the sessions that fit, those at work first, and their number."""
    where, values = _where(msgspec.structs.replace(choice, status="live"))
    total: int = connection.execute(f"SELECT count(*) {_FROM} WHERE {where}", values).fetchone()[0]
    if not total:
        return Listing([], 0, more=False)
    order = "s.ending IN ('answered', 'question'), s.active DESC, s.file DESC"
    rows = _rows(connection, where, values, "s.last", order, limit)
    return Listing(rows, total, total > len(rows))


def _rows(
    connection: sqlite3.Connection,
    where: str,
    values: Sequence[Any],
    rank: str,
    order: str,
    limit: int,
) -> list[Listed]:
    """Return the first rows; what is beside each is looked up for those alone."""
    chosen = connection.execute(
        f"SELECT s.file, {rank} {_FROM} WHERE {where} ORDER BY {order} LIMIT ?", [*values, limit]
    ).fetchall()
    rows = connection.execute(
        f"SELECT {_COLUMNS} {_FROM} JOIN files f ON f.id = s.file WHERE s.file IN {_AMONG}",
        (_some([file for file, _ in chosen]),),
    )
    known = {row[0]: row for row in rows}
    return [_listed((*known[file], number)) for file, number in chosen]


def _listed(row: tuple[Any, ...]) -> Listed:
    file, name, title, project, branch, model, started, ended, *counts = row[:15]
    path, size, gone, ending, grown, dialect, shared, rank = row[15:]
    turns, steps, failed, worked, agents, compactions, branches = map(int, counts)
    return Listed(
        file=file,
        id=name,
        title=title,
        project=project,
        branch=branch,
        model=model,
        started=started,
        ended=ended,
        figures=Figures(
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
        key=key_of(name, file, shared=bool(shared)),
        rank=rank,
    )


def _where(choice: Choice, *, leave: str = "") -> tuple[str, list[Any]]:
    """Return the condition for a choice; `leave` names one part of it that does not count."""
    where, values = [_EVERY if choice.hidden else _SHOWN], list[Any]()
    for name, column in (("project", "s.project"), ("branch", "s.branch"), ("model", "s.model")):
        value = getattr(choice, name)
        if value is not None and name != leave:
            where.append(f"{column} = ?")
            values.append(value)
    if choice.since is not None and leave != "since":
        where.append("s.ended >= ?")
        values.append(choice.since)
    where += [HAS[each] for each in choice.has] if leave != "has" else ()
    if choice.size is not None and leave != "size":
        low, high = SIZES[choice.size]
        where.append("s.size >= ? AND s.size < ?")
        values += (low, high or _LARGEST)
    where += _lengths(choice, leave=leave)
    if choice.status is not None and leave != "status":
        where.append(_status(choice, choice.status))
    if choice.sessions is not None:
        where.append(f"s.id IN {_AMONG}")
        values.append(_some(choice.sessions))
    more, bound = conditions_of(choice)
    where += more
    values += bound
    for files in (choice.among, choice.files if leave != "status" else None):
        if files is not None:
            where.append(f"s.file IN {_AMONG}")
            values.append(_some(files))
    return " AND ".join(where), values


def _lengths(choice: Choice, *, leave: str) -> list[str]:
    """Return the conditions on how much there is in a session."""
    where: list[str] = []
    if choice.min_steps and leave != "min_steps":
        where.append(f"s.step_records >= {choice.min_steps:d}")
    if choice.listed:
        where.append(list_rule_sql(choice.now))
    return where


def _some(values: Sequence[str] | Sequence[int]) -> str:
    """Return values as `_AMONG` takes them: more than could be bound one by one."""
    return msgspec.json.encode(values).decode()


def _status(choice: Choice, status: StatusFilter) -> str:
    if status == "live":
        since = live_since(choice.now)
        return f"s.active >= {since} AND {live_sql(choice.now)} AND s.gone IS NULL"
    if status == "damaged":
        # Which these are stands in `files`.
        return "s.gone IS NULL"
    return f"{status_sql(choice.now)} = '{status}' AND s.gone IS NULL"


def statuses_of(connection: sqlite3.Connection, choice: Choice) -> dict[str, int]:
    """Return how many sessions have each status, as if none was chosen."""
    where, values = _where(choice, leave="status")
    return dict(
        connection.execute(
            f"SELECT {status_sql(choice.now)}, count(*) {_FROM} "
            f"WHERE {where} AND s.gone IS NULL GROUP BY 1",
            values,
        ).fetchall()
    )


def files_at(connection: sqlite3.Connection, paths: Sequence[str]) -> tuple[int, ...]:
    """Return the numbers of the files at some paths that are still there."""
    find = "SELECT id FROM files WHERE path = ? AND gone IS NULL"
    rows = (connection.execute(find, (path_to(path),)).fetchone() for path in paths)
    return tuple(sorted(row[0] for row in rows if row is not None))


def group_totals(
    connection: sqlite3.Connection,
    choice: Choice,
    groups: Sequence[Group],
    prices: Prices,
    *,
    most: int,
) -> list[tuple[int, int | None]]:
    """Return how many sessions each group has, and what they cost.

    Costs are summed for `most` sessions at most; a group beyond that has none.
    """
    where, values = _where(choice)
    totals: list[tuple[int, int | None]] = []
    for group in groups:
        test, bounds = _within(group)
        within, all_values = f"{where} AND {test}", [*values, *bounds]
        number: int = connection.execute(
            f"SELECT count(*) {_FROM} WHERE {within}", all_values
        ).fetchone()[0]
        cost = None
        if number <= most:
            most -= number
            files = connection.execute(f"SELECT s.file {_FROM} WHERE {within}", all_values)
            costs = costs_of(connection, [file for (file,) in files], prices).values()
            known = [each.cost for each in costs if each.cost is not None]
            cost = sum(known) if known else None
        totals.append((number, cost))
    return totals


def _within(group: Group) -> tuple[str, list[Any]]:
    if group.project is not None:
        return "s.project = ?", [group.project]
    if group.low is None:
        return "s.ended IS NULL", []
    return "s.last >= ? AND s.last < ? AND s.ended IS NOT NULL", [group.low, group.high]


def files_of(connection: sqlite3.Connection, choice: Choice) -> set[int]:
    """Return the numbers of the files of the sessions that fit."""
    where, values = _where(choice)
    return {file for (file,) in connection.execute(f"SELECT s.file {_FROM} WHERE {where}", values)}


def titled(
    connection: sqlite3.Connection, choice: Choice, fits: Callable[[str], bool]
) -> list[int]:
    """Return the numbers of the files whose title fits as well."""
    where, values = _where(choice)
    rows = connection.execute(f"SELECT s.file, s.title {_FROM} WHERE {where}", values)
    return [file for file, title in rows if fits(title)]


def sizes_of(connection: sqlite3.Connection, choice: Choice) -> dict[Size, int]:
    """Return how many sessions have each size, as if none was chosen."""
    where, values = _where(choice, leave="size")
    sums = ", ".join("total(s.size >= ? AND s.size < ?)" for _ in SIZES)
    ends = [end for low, high in SIZES.values() for end in (low, high or _LARGEST)]
    row = connection.execute(f"SELECT {sums} {_FROM} WHERE {where}", [*ends, *values]).fetchone()
    return dict(zip(SIZES, map(int, row), strict=True))


def lengths_of(connection: sqlite3.Connection, choice: Choice) -> tuple[dict[int, int], int]:
    """Return how many sessions have so many step records, and how many the list rule shows.

    Each as if it was not chosen itself; for the numbers of `LENGTHS` and the one that is chosen.
    """
    where, values = _where(choice, leave="min_steps")
    numbers = sorted({*LENGTHS, *([choice.min_steps] if choice.min_steps else ())})
    sums = ", ".join(f"total(s.step_records >= {number:d})" for number in numbers)
    row = connection.execute(f"SELECT {sums} {_FROM} WHERE {where}", values).fetchone()
    counts = dict(zip(numbers, map(int, row), strict=True))
    where, values = _where(msgspec.structs.replace(choice, listed=True))
    (listed,) = connection.execute(f"SELECT count(*) {_FROM} WHERE {where}", values).fetchone()
    return counts, listed


def facets_of(
    connection: sqlite3.Connection, choice: Choice, name: FacetName, limit: int = _MOST_VALUES
) -> FacetValues:
    """Return the values that sessions have, the most frequent first, as if none was chosen.

    The one that is chosen is always among them.
    """
    where, values = _where(choice, leave=name)
    chosen = getattr(choice, name)
    rows = connection.execute(
        f"SELECT s.{name}, count(*), count(*) OVER () {_FROM} WHERE {where} GROUP BY 1 "
        f"ORDER BY s.{name} = ? DESC, 2 DESC, 1 LIMIT ?",
        [*values, chosen, limit],
    ).fetchall()
    counts = sorted((Count(*row[:2]) for row in rows), key=lambda each: (-each.number, each.name))
    return FacetValues(counts, rows[0][2] - len(rows) if rows else 0)


def counts_of(
    connection: sqlite3.Connection, choice: Choice, times: Sequence[int]
) -> tuple[dict[Has, int], list[int]]:
    """Return how many sessions have what they may have, and how many were active since some times."""
    where, values = _where(choice, leave="has")
    sums = ", ".join(f"total({each})" for each in HAS.values())
    row = connection.execute(f"SELECT {sums} {_FROM} WHERE {where}", values).fetchone()
    having: dict[Has, int] = dict(zip(HAS, map(int, row), strict=True))
    where, values = _where(choice, leave="since")
    sums = ", ".join("total(s.ended >= ?)" for _ in times) or "0"
    row = connection.execute(f"SELECT {sums} {_FROM} WHERE {where}", [*times, *values]).fetchone()
    return having, [int(number) for number in row][: len(times)]


def costs_of(
    connection: sqlite3.Connection, files: Sequence[int], prices: Prices
) -> dict[int, Spent]:
    """Return what sessions used, by the numbers of their files; their sub-agents count."""
    cells = count_files(connection, files, prices)
    prices.load({cell[2] for cell in cells})
    mine: dict[int, list[Any]] = {}
    for cell, heap in cells.items():
        mine.setdefault(int(cell[0][0]), []).append((cell, heap))
    return {file: summed(some, prices) for file, some in mine.items()}
