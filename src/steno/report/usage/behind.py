"""What is behind a figure: the responses that made it, some at a time, down to their lines."""

import sqlite3
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from steno.index.bands import BAND_SQL
from steno.index.sums import LOCAL_DAY
from steno.report.keys import keys_of
from steno.report.prices import Prices
from steno.report.usage.explain import Response, explain_rows
from steno.report.usage.indexed import ROW, SUMS
from steno.report.usage.overview import kinds_of
from steno.report.usage.totals import Report, report_of

if TYPE_CHECKING:
    from steno.report.usage.cells import Cells

__all__ = ["Behind", "Spot", "responses_behind", "spots_of", "total_behind"]

_FROM: Final = "FROM usage u JOIN sessions s ON s.file = u.file"
_AGENT: Final = "coalesce(nullif(u.agent, ''), s.agent)"
_COLUMNS: Final = {
    "model": "u.model",
    "project": "s.project",
    "session": "s.id",
    "branch": "u.branch",
}


class Behind(msgspec.Struct, frozen=True):
    """Which responses. What is None does not matter."""

    since: int | None = None
    until: int | None = None
    undated: bool = False
    """Only those that nobody knows the time of."""
    model: str | None = None
    project: str | None = None
    session: str | None = None
    branch: str | None = None
    kind: tuple[str, str] | None = None
    """Of which sub-agents: as in the report by kind."""


class Spot(msgspec.Struct, frozen=True):
    """Where a transcript belongs: what addresses call its session, and its sub-agent if any."""

    key: str
    agent: str
    title: str
    project: str


def total_behind(connection: sqlite3.Connection, behind: Behind, prices: Prices) -> Report:
    """Return the sum of some responses, as a report of one row at most."""
    where, values = _where(connection, behind)
    rows = connection.execute(
        f"SELECT {LOCAL_DAY}, u.model, u.fast, {BAND_SQL}, {SUMS} {_FROM} WHERE {where} "
        "GROUP BY 1, 2, 3, 4",
        values,
    )
    cells: Cells = {
        (("",), day, model, fast, band): tuple(heap) for day, model, fast, band, *heap in rows
    }
    return report_of(cells, "", prices)


def responses_behind(
    connection: sqlite3.Connection, behind: Behind, prices: Prices, *, limit: int, start: int = 0
) -> tuple[list[Response], dict[str, int]]:
    """Return some of them, the newest first, with every line that tells of each.

    The files that the lines are in come with it, by path.
    """
    where, values = _where(connection, behind)
    rows = connection.execute(
        f"SELECT {ROW} {_FROM} WHERE {where} ORDER BY u.time DESC, u.key LIMIT ? OFFSET ?",
        [*values, limit, start],
    ).fetchall()
    return explain_rows(connection, rows, prices)


def _where(connection: sqlite3.Connection, behind: Behind) -> tuple[str, list[Any]]:
    where, values = ["u.counts"], list[Any]()
    if behind.undated:
        where.append("u.time IS NULL")
    for bound, how in ((behind.since, ">="), (behind.until, "<")):
        if bound is not None:
            where.append(f"u.time {how} ?")
            values.append(bound)
    for name, column in _COLUMNS.items():
        value = getattr(behind, name)
        if value is not None:
            where.append(f"{column} = ?")
            values.append(value)
    if behind.kind is not None:
        where.append(_kind(connection, behind.kind, values))
    return " AND ".join(where), values


def _kind(connection: sqlite3.Connection, kind: tuple[str, str], values: list[Any]) -> str:
    if not kind[0]:
        return f"{_AGENT} = ''"
    known = kinds_of(connection)
    if kind[1]:
        mine, how = [agent for agent, name in known.items() if name == kind[1]], "IN"
    else:
        mine, how = list(known), "NOT IN"
    values.append(msgspec.json.encode(mine).decode())
    return f"{_AGENT} != '' AND {_AGENT} {how} (SELECT value FROM json_each(?))"


def spots_of(connection: sqlite3.Connection, files: Iterable[int]) -> dict[int, Spot]:
    """Return where some transcripts belong."""
    numbers = set(files)
    keys = keys_of(connection, numbers)
    found: dict[int, Spot] = {}
    for file in numbers:
        row = connection.execute(
            "SELECT agent, title, project FROM sessions WHERE file = ?", (file,)
        ).fetchone()
        if row is not None:
            found[file] = Spot(keys.get(file, ""), *row)
    return found
