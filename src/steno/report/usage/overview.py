"""Everything that is to be said of some days at once: many reports of a few questions.

The index is asked as little as can be. The sums by day answer what is by day, model and project;
one look at the responses what is by session, branch and sub-agent.
"""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from steno.report.prices import Prices
from steno.report.usage.cells import Cell, Cells, add, day_of_slot, midnight_of, month_of, week_of
from steno.report.usage.indexed import count_index, count_places, places_of
from steno.report.usage.sort import with_times
from steno.report.usage.tools import Tool, tools_in
from steno.report.usage.totals import Line, Report, report_of, rounded
from steno.report.usage.wanted import Wanted

__all__ = [
    "SELF",
    "Parts",
    "Split",
    "Stack",
    "Step",
    "blocks_in",
    "daily_of",
    "kinds_of",
    "parts_of",
    "projected",
    "reports_of",
    "saved_in",
    "stack_of",
    "steps_of",
    "told",
    "within",
]

Split: TypeAlias = Literal["model", "project"]
Step: TypeAlias = Literal["day", "week", "month"]
_PERIODS: Final[dict[Step, Callable[[str], str]]] = {
    "day": str,
    "week": week_of,
    "month": month_of,
}
SELF: Final = ""
"""The kind of what a session asked for itself."""
_SLOT: Final = 900_000
_DAY_SLOTS: Final = 96
_NOON: Final = 48


class Parts(msgspec.Struct):
    """What is by something else than days."""

    sessions: Report
    branches: Report
    kinds: Report
    tools: list[Tool]


class Stack(msgspec.Struct):
    """Costs by time and by something else, in micro-dollars."""

    step: Step
    names: list[str]
    """Days, weeks or months, without gaps."""
    series: list[tuple[str | None, list[int]]]
    """The dearest first; None for all the others together."""


def daily_of(connection: sqlite3.Connection, prices: Prices) -> Cells:
    """Return the sums of all days, named by project; day and model are in them anyway."""
    cells = count_index(connection, Wanted("project"), prices)
    prices.load({cell[2] for cell in cells})
    return cells


def within(cells: Cells, wanted: Wanted) -> Cells:
    """Return what of some sums by day is of some days; what has no day is of no time."""
    if not wanted.is_bounded:
        return cells
    since = "0" if wanted.since is None else day_of_slot(wanted.since // _SLOT)
    until = "~" if wanted.until is None else day_of_slot(wanted.until // _SLOT)
    return {cell: heap for cell, heap in cells.items() if since <= cell[1] < until}


def reports_of(cells: Cells, prices: Prices) -> dict[str, Report]:
    """Return the reports by day, model and project."""
    return {
        "day": report_of(_named(cells, lambda cell: (cell[1],)), "day", prices),
        "model": report_of(_named(cells, lambda cell: (cell[2],)), "model", prices),
        "project": report_of(cells, "project", prices),
    }


def _named(cells: Cells, name: Callable[[Cell], tuple[str, ...]]) -> Cells:
    """Give heaps other names, and put those together that then have the same."""
    renamed: Cells = {}
    for cell, heap in cells.items():
        _, day, model, fast, band = cell
        add(renamed, (name(cell), day, model, fast, band), heap)
    return renamed


def steps_of(cells: Cells, prices: Prices, step: Step) -> Report:
    """Return the report by day, week or month."""
    period = _PERIODS[step]
    return report_of(_named(cells, lambda cell: (period(cell[1]),)), step, prices)


def saved_in(cells: Cells, prices: Prices) -> int:
    """Return what the cache saved, in micro-dollars.

    That is what was read from it at the price of fresh input, less what it cost, and less what
    writing it cost more than not writing it.
    """
    exact = 0
    for (_, day, model, fast, band), heap in cells.items():
        found = prices.find(model, day, band, fast)
        if found is None:
            continue
        rates = found[0]
        _, _, _, short, long, read, _, _ = heap
        exact += read * (rates.input - rates.cache_read)
        exact -= short * (rates.cache_5m - rates.input) + long * (rates.cache_1h - rates.input)
    return rounded(exact)


def stack_of(
    cells: Cells, prices: Prices, split: Split, days: list[str], step: Step, most: int = 6
) -> Stack:
    """Return the costs of some days, which follow each other, by model or by project."""
    period = _PERIODS[step]
    named = _named(
        cells, lambda cell: (period(cell[1]), cell[2] if split == "model" else cell[0][0])
    )
    names = list(dict.fromkeys(period(day) for day in days))
    at = {name: number for number, name in enumerate(names)}
    sums: dict[str, int] = {}
    costs: dict[str, list[int]] = {}
    for line in report_of(named, split, prices).lines:
        when, what = line.names
        if when not in at:
            continue
        sums[what] = sums.get(what, 0) + line.cost
        costs.setdefault(what, [0] * len(names))[at[when]] += line.cost
    ranked = sorted((name for name, cost in sums.items() if cost), key=lambda name: -sums[name])
    shown = ranked if len(ranked) <= most + 1 else ranked[:most]
    series: list[tuple[str | None, list[int]]] = [(name, costs[name]) for name in shown]
    if len(shown) < len(ranked):
        rest = (costs[name] for name in ranked[most:])
        series.append((None, [sum(column) for column in zip(*rest, strict=True)]))
    return Stack(step, names, series)


def parts_of(connection: sqlite3.Connection, wanted: Wanted, prices: Prices) -> Parts:
    """Return what is by session, branch, kind of sub-agent and tool."""
    cells = count_places(connection, wanted, prices)
    places = places_of(connection)
    kinds = kinds_of(connection)

    def session(cell: Cell) -> tuple[str, ...]:
        return (places[int(cell[0][0])][0],)

    def branch(cell: Cell) -> tuple[str, ...]:
        return places[int(cell[0][0])][2], cell[0][2]

    def kind(cell: Cell) -> tuple[str, ...]:
        agent = cell[0][1] or places[int(cell[0][0])][1]
        return ("agent", kinds.get(agent, "")) if agent else ("", SELF)

    return Parts(
        report_of(_named(cells, session), "session", prices),
        report_of(_named(cells, branch), "branch", prices),
        report_of(_named(cells, kind), "kind", prices),
        tools_in(connection, wanted),
    )


def told(connection: sqlite3.Connection, lines: Sequence[Line]) -> Sequence[Line]:
    """Give some rows of sessions their titles and projects."""
    for line in lines:
        row = connection.execute(
            "SELECT title, project FROM sessions WHERE id = ? AND agent = '' ORDER BY file LIMIT 1",
            line.names,
        ).fetchone()
        if row is not None:
            line.title, line.project = row
    return lines


def kinds_of(connection: sqlite3.Connection) -> dict[str, str]:
    """Return the kind of each sub-agent that somebody asked for by its kind."""
    rows = connection.execute(
        "SELECT target, max(note) FROM links WHERE kind = 'agent' AND note != '' GROUP BY target"
    )
    return dict(rows)


def blocks_in(
    connection: sqlite3.Connection, wanted: Wanted, prices: Prices
) -> list[tuple[int, Report]]:
    """Return the blocks of five hours of some time, by when they begin, each as a report."""
    cells = with_times(count_index(connection, wanted, prices), "block5h")
    starts: dict[int, Cells] = {}
    for cell, heap in cells.items():
        if cell[0][0]:
            starts.setdefault(_start(cell[0][0]), {})[cell] = heap
    return [(start, report_of(some, "block5h", prices)) for start, some in sorted(starts.items())]


def _start(name: str) -> int:
    day, _, clock = name.partition(" ")
    hour, _, minute = clock.partition(":")
    return midnight_of(day) + (int(hour) * 60 + int(minute)) * 60_000


def projected(days: dict[str, int], today: str, left: int) -> tuple[int, int]:
    """Return what this month cost so far, and what it will have cost if it goes on like this.

    Each of the days that are left is taken to cost the mean of the last seven, today not among
    them: it is not over.
    """
    so_far = sum(cost for day, cost in days.items() if day[:7] == today[:7] and day <= today)
    end = midnight_of(today) // _SLOT
    week = {day_of_slot(end - back * _DAY_SLOTS + _NOON) for back in range(1, 8)}
    mean = sum(days.get(day, 0) for day in week) / len(week)
    return so_far, so_far + round(mean * left)
