"""What the index knows of a project."""

import sqlite3
from datetime import date, timedelta
from typing import Final

import msgspec

from steno.report.keys import SHARED, key_of
from steno.report.prices import Prices
from steno.report.usage.cells import Cells, add, day_of_slot, week_of
from steno.report.usage.totals import Figures, report_of

__all__ = ["Branch", "Pull", "Sums", "Week", "branches_of", "pulls_of", "sums_of", "weeks_of"]

_WEEKS: Final = 26
_SUMS: Final = (
    "sum(responses), sum(input), sum(output), sum(cache_5m), sum(cache_1h), sum(cache_read), "
    "sum(searches), sum(estimated)"
)
_MINE: Final = "s.project = ? AND s.agent = '' AND NOT s.hidden"
_SLOT: Final = 900


class Sums(msgspec.Struct, frozen=True):
    """A project in a few numbers. Times are milliseconds."""

    sessions: int
    turns: int
    steps: int
    failed: int
    started: int | None
    ended: int | None
    figures: Figures
    cost: int | None
    """In micro-dollars; None where nothing has a price."""


class Week(msgspec.Struct, frozen=True):
    """What was used in one week."""

    name: str
    monday: str
    cost: int
    tokens: int


class Branch(msgspec.Struct, frozen=True):
    """A git branch that sessions ended on."""

    name: str
    sessions: int
    ended: int | None


class Pull(msgspec.Struct, frozen=True):
    """A pull request that a session names."""

    address: str
    note: str
    key: str
    """What an address calls the session."""
    title: str


def sums_of(connection: sqlite3.Connection, project: str, prices: Prices) -> Sums:
    """Return the sums over a project's sessions, and what they cost with their sub-agents."""
    row = connection.execute(
        "SELECT count(*), total(turns), total(steps), total(failed), min(started), max(ended) "
        f"FROM sessions s WHERE {_MINE}",
        (project,),
    ).fetchone()
    found = report_of(_cells(connection, project), "project", prices)
    figures = found.totals
    return Sums(
        *(int(number) for number in row[:4]),
        started=row[4],
        ended=row[5],
        figures=figures,
        cost=found.cost if figures.has_cost else None,
    )


def weeks_of(
    connection: sqlite3.Connection, project: str, prices: Prices, now: float
) -> list[Week]:
    """Return the last weeks up to now, quiet ones too, from the first with work in it on."""
    lines = report_of(_cells(connection, project, weekly=True), "week", prices).lines
    known = {line.names[0]: line for line in lines}
    monday = _monday(day_of_slot(int(now) // _SLOT))
    made: list[Week] = []
    for back in range(_WEEKS - 1, -1, -1):
        day = (monday - timedelta(weeks=back)).isoformat()
        line = known.get(week_of(day))
        if line is not None:
            figures = line.figures
            made.append(Week(line.names[0], day, line.cost, figures.context + figures.output))
        elif made:
            made.append(Week(week_of(day), day, 0, 0))
    return made


def _monday(day: str) -> date:
    found = date.fromisoformat(day)
    return found - timedelta(days=found.weekday())


def _cells(connection: sqlite3.Connection, project: str, *, weekly: bool = False) -> Cells:
    cells: Cells = {}
    for day, model, fast, band, *heap in connection.execute(
        f"SELECT day, model, fast, band, {_SUMS} FROM days WHERE project = ? GROUP BY 1, 2, 3, 4",
        (project,),
    ):
        name = week_of(day) if weekly else ""
        add(cells, ((name,), day, model, fast, band), heap)
    return cells


def branches_of(connection: sqlite3.Connection, project: str, limit: int = 12) -> list[Branch]:
    """Return the branches, the one that was last worked on first."""
    rows = connection.execute(
        f"SELECT branch, count(*), max(ended) FROM sessions s WHERE {_MINE} AND branch != '' "
        "GROUP BY branch ORDER BY max(ended) DESC, branch LIMIT ?",
        (project, limit),
    )
    return [Branch(*row) for row in rows]


def pulls_of(connection: sqlite3.Connection, project: str, limit: int = 12) -> list[Pull]:
    """Return the pull requests, the newest first."""
    rows = connection.execute(
        f"SELECT l.target, l.note, s.id, s.file, {SHARED}, s.title FROM links l "
        "JOIN sessions s ON s.file = l.file "
        f"WHERE l.kind = 'pr' AND {_MINE} GROUP BY l.target ORDER BY max(l.message) DESC LIMIT ?",
        (project, limit),
    )
    return [
        Pull(target, note, key_of(name, file, shared=bool(shared)), title)
        for target, note, name, file, shared, title in rows
    ]
