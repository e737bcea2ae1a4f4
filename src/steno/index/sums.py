"""What follows from the rows: which copy of a response counts, the sums by day, lent titles.

Only what may have changed is worked out anew.
"""

import sqlite3
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from steno.index.bands import BAND_SQL

__all__ = ["LOCAL_DAY", "days_of", "lend_titles", "recount", "sum_days", "zone"]

_MANY_DAYS: Final = 32
_CHUNK: Final = 500
LOCAL_DAY: Final = "coalesce(date(u.time / 1000, 'unixepoch', 'localtime'), '')"
"""The day on which a row `u` of `usage` was asked for. SQLite alone says what day that is."""
# No zone is further from UTC than that; the index on times leaves little to look at.
_NEAR: Final = f"""
u.time >= (unixepoch(:day) - 100000) * 1000 AND u.time < (unixepoch(:day) + 200000) * 1000
AND {LOCAL_DAY} = :day
"""
_SUM: Final = f"""
INSERT INTO days
SELECT {LOCAL_DAY}, s.project, u.model,
       u.agent != '' OR s.agent != '', u.fast,
       {BAND_SQL},
       count(*), sum(u.input), sum(u.output), sum(u.cache_5m), sum(u.cache_1h),
       sum(u.cache_read), sum(u.searches), sum(u.estimated)
FROM usage u JOIN sessions s ON s.file = u.file
WHERE u.counts AND {{where}} GROUP BY 1, 2, 3, 4, 5, 6
"""
_WINNER: Final = """
UPDATE usage SET counts = file = (
  SELECT u.file FROM usage u JOIN sessions s ON s.file = u.file JOIN files f ON f.id = u.file
  WHERE u.key = usage.key
  ORDER BY u.output DESC, u.copied, s.started, s.id, s.agent, f.path LIMIT 1
) WHERE key = ?
"""
_LEND: Final = """
UPDATE sessions SET named = 1, title = (
  SELECT max(note) FROM links WHERE kind = 'summary' AND target = sessions.last_uuid
) WHERE NOT named AND last_uuid != ''
"""
_IS_LENT: Final = (
    "EXISTS (SELECT 1 FROM links WHERE kind = 'summary' AND target = sessions.last_uuid)"
)


def recount(connection: sqlite3.Connection, keys: Iterable[str]) -> None:
    """Choose, for responses that stand in several files, the one that counts.

    That is the one with the highest figures; of equal ones the original, and else the one of the
    session that began first.
    """
    for some in _chunks(keys):
        marks = ", ".join("?" * len(some))
        several = connection.execute(
            f"SELECT key FROM usage WHERE key IN ({marks}) GROUP BY key HAVING count(*) > 1", some
        ).fetchall()
        connection.execute(
            f"UPDATE usage SET counts = 1 WHERE key IN ({marks}) AND NOT counts", some
        )
        connection.executemany(_WINNER, several)


def sum_days(connection: sqlite3.Connection, days: set[str] | None) -> None:
    """Sum up some days anew; all of them for None."""
    if days is None or len(days) > _MANY_DAYS:
        connection.execute("DELETE FROM days")
        connection.execute(_SUM.format(where="1"))
        return
    for day in sorted(days):
        connection.execute("DELETE FROM days WHERE day = ?", (day,))
        where = _NEAR if day else f"{LOCAL_DAY} = ''"
        connection.execute(_SUM.format(where=where), {"day": day})


def days_of(connection: sqlite3.Connection, keys: Iterable[str]) -> set[str]:
    """Return the days on which responses were asked for."""
    days: set[str] = set()
    for some in _chunks(keys):
        marks = ", ".join("?" * len(some))
        rows = connection.execute(
            f"SELECT DISTINCT {LOCAL_DAY} FROM usage u WHERE key IN ({marks})",
            some,
        )
        days.update(day for (day,) in rows)
        if len(days) > _MANY_DAYS:
            break
    return days


def lend_titles(connection: sqlite3.Connection, files: Iterable[int]) -> None:
    """Give sessions without a title of their own the one that stands in another file.

    Old clients wrote the title of a session into some later one, with the last record it is for.
    """
    files = list(files)
    for some in (files[at : at + _CHUNK] for at in range(0, len(files), _CHUNK)):
        marks = ", ".join("?" * len(some))
        connection.execute(f"{_LEND} AND file IN ({marks}) AND {_IS_LENT}", some)
        summaries = f"FROM links WHERE kind = 'summary' AND file IN ({marks})"
        # This one looks at every session, and few files hold a title for another.
        if connection.execute(f"SELECT 1 {summaries} LIMIT 1", some).fetchone():
            connection.execute(f"{_LEND} AND last_uuid IN (SELECT target {summaries})", some)


def zone() -> str:
    """Return what tells this machine's time zone from another: what days are depends on it."""
    halves = (time.localtime(second).tm_gmtoff for second in range(0, 2**31, 15_778_800))
    return f"{time.tzname[0]} {hash(tuple(halves)) & 0xFFFFFFFF:08x}"


def _chunks(keys: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(keys)
    while some := list(islice(rest, _CHUNK)):
        yield some
