"""Tools: how often they were called, how often they failed and how long they took."""

import sqlite3
from typing import Any, Final

import msgspec

from steno.index.state import SHIFT
from steno.report.usage.wanted import Wanted

__all__ = ["Called", "Tool", "calls_of", "tools_in"]

_SLACK: Final = 86_400_000
"""A call is made after its response was asked for, but clocks are set back."""
_FROM: Final = (
    f"FROM tool_calls t JOIN usage u ON u.file = t.message >> {SHIFT} AND u.key = t.response"
)
_SECOND: Final = 1000
_OFFSET: Final = (1 << SHIFT) - 1


class Tool(msgspec.Struct, frozen=True):
    """A tool. Times are seconds; None where no call has an end."""

    name: str
    calls: int
    failed: int
    median: float | None
    high: float | None
    """What nineteen calls of twenty did not exceed."""


class Called(msgspec.Struct, frozen=True):
    """One call of a tool."""

    file: int
    offset: int
    time: int | None
    seconds: float | None
    failed: bool
    answered: bool
    path: str
    """The file that it is about, if it is about one."""


def tools_in(connection: sqlite3.Connection, wanted: Wanted) -> list[Tool]:
    """Return the tools that responses of some time called, the most frequent first."""
    where, values = _where(wanted)
    times: dict[str, list[int]] = {}
    counts: dict[str, list[int]] = {}
    for name, taken, failed in connection.execute(
        f"SELECT t.name, t.ended - t.time, t.failed {_FROM} WHERE {where}", values
    ):
        count = counts.get(name)
        if count is None:
            count = counts[name] = [0, 0]
            times[name] = []
        count[0] += 1
        if failed:
            count[1] += 1
        if taken is not None:
            times[name].append(taken)
    found = [
        Tool(name, calls, failed, *_spread(times[name])) for name, (calls, failed) in counts.items()
    ]
    return sorted(found, key=lambda tool: (-tool.calls, tool.name))


def calls_of(
    connection: sqlite3.Connection,
    wanted: Wanted,
    name: str,
    *,
    failed: bool = False,
    limit: int = 50,
    start: int = 0,
) -> tuple[list[Called], int]:
    """Return some calls of a tool, the newest first, and how many there are."""
    where, values = _where(wanted)
    where += " AND t.name = ?" + (" AND t.failed" if failed else "")
    values.append(name)
    (total,) = connection.execute(f"SELECT count(*) {_FROM} WHERE {where}", values).fetchone()
    rows = connection.execute(
        "SELECT t.message, t.time, t.ended - t.time, coalesce(t.failed, 0), t.result IS NOT NULL, "
        f"t.path {_FROM} WHERE {where} ORDER BY t.time DESC, t.message DESC, t.place DESC "
        "LIMIT ? OFFSET ?",
        [*values, limit, start],
    )
    found = [
        Called(
            message >> SHIFT,
            message & _OFFSET,
            time,
            None if taken is None else max(0, taken) / _SECOND,
            bool(bad),
            bool(answered),
            path,
        )
        for message, time, taken, bad, answered, path in rows
    ]
    return found, total


def _where(wanted: Wanted) -> tuple[str, list[Any]]:
    """Return the condition for some time: that of the response, as in every other report."""
    where, values = ["u.counts"], list[Any]()
    if wanted.is_bounded:
        where.append("u.time IS NOT NULL")
    if wanted.since is not None:
        where.append("u.time >= ? AND (t.time >= ? OR t.time IS NULL)")
        values += [wanted.since, wanted.since - _SLACK]
    if wanted.until is not None:
        where.append("u.time < ?")
        values.append(wanted.until)
    return " AND ".join(where), values


def _spread(taken: list[int]) -> tuple[float | None, float | None]:
    """Return the middle of some times and what nearly all of them stay below, in seconds."""
    if not taken:
        return None, None
    taken.sort()
    last = len(taken) - 1
    middle = (taken[last // 2] + taken[(last + 1) // 2]) / 2
    high = taken[-(-len(taken) * 19 // 20) - 1]
    return max(0, middle) / _SECOND, max(0, high) / _SECOND
