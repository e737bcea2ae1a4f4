"""Token usage in the index: one row per response, which copy of it counts, and sums by day.

Defines for all reports which lines count, what identifies a response, and which of its lines has the final figures.
Derived rows are only recomputed where something may have changed.
"""

import sqlite3
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final, TypeVar

from steno.format.message import SYNTHETIC, RecordFields
from steno.index.line_decoder import LineUsage
from steno.index.price_tiers import TIER_SQL
from steno.index.session_stats import Row
from steno.session.turns.usage import writes_placeholder_usage

MAX_TOKENS: Final = 10**12
"""Maximum number of tokens of a response; larger figures are replaced by it.

The sum of a million of these values still fits SQLite's 64-bit integers.
"""
_FAST_SPEED: Final = "fast"
_EARLIEST_START: Final = -(1 << 62)


class UsageRowBuilder:
    """Builds the rows of `usage` for one file."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._rows: dict[str, Row] = {}

    def add_line(
        self, line: RecordFields, message_id: int, turn: int, time: Any, branch: str, agent: str, lines: int = 1
    ) -> None:
        """Add the usage of a line, if it has any that counts.

        The line may represent several consecutive `lines` of one response, if none has higher figures.
        """
        message_body = line.message
        usage: LineUsage | None = message_body.usage if message_body is not None else None
        if message_body is None or usage is None or message_body.model == SYNTHETIC:
            return
        key = response_key(line, message_id)
        figures = usage_figures(usage)
        previous = self._rows.get(key)
        if previous is not None:
            lines += previous[3]
            turn, time = previous[4:6]
            if figures[1] < previous[10]:
                self._rows[key] = (*previous[:3], lines, *previous[4:])
                return
        self._rows[key] = (
            self._file,
            key,
            message_id,
            lines,
            turn,
            time,
            message_body.model or "",
            branch,
            agent,
            *figures,
            1 if usage.speed == _FAST_SPEED else 0,
            1 if message_body.stop_reason is None and writes_placeholder_usage(line.version or "") else 0,
            0 if line.forked_from is None else 1,
        )

    def rows(self) -> list[Row]:
        """Return the rows, in the order of the columns of `usage` up to `copied`."""
        return list(self._rows.values())

    def rows_by_key(self) -> dict[str, Row]:
        """Return the rows by response key; the internal dictionary, not a copy."""
        return self._rows


def response_key(line: RecordFields, message_id: int) -> str:
    """Return the key of a response, which is the same in all copies of its lines."""
    api_id = line.message.id if line.message is not None else None
    return api_id or line.request_id or line.uuid or f"@{message_id}"


def usage_figures(usage: LineUsage) -> tuple[int, ...]:
    """Return input, output, 5-minute and 1-hour cache write, cache read and searches, within limits."""
    cache_creation = usage.cache_creation
    if cache_creation is None:
        cache_5m, cache_1h = usage.cache_creation_input_tokens or 0, 0
    else:
        cache_5m, cache_1h = (cache_creation.ephemeral_5m_input_tokens, cache_creation.ephemeral_1h_input_tokens)
    tools = usage.server_tool_use
    figures = (
        usage.input_tokens or 0,
        usage.output_tokens or 0,
        cache_5m,
        cache_1h,
        usage.cache_read_input_tokens or 0,
        tools.web_search_requests or 0 if tools is not None else 0,
    )
    if min(figures) < 0 or max(figures) > MAX_TOKENS:
        return tuple(min(max(figure, 0), MAX_TOKENS) for figure in figures)
    return figures


def copy_rank(
    row: Row, started: int | None, session: str, agent: str, path: str
) -> tuple[int, int, int, str, str, str]:
    """Return the sort key of a response copied to several files; the first copy counts.

    That is the copy with the highest output; of equal copies the original, otherwise the one of the session that
    started first.
    """
    # As in SQL, an unknown start sorts first.
    start = _EARLIEST_START if started is None else started
    return -row[10], row[17], start, session, agent, path


_MAX_SINGLE_DAYS: Final = 32
_CHUNK_SIZE: Final = 500
T = TypeVar("T")
LOCAL_DAY: Final = "coalesce(date(u.time / 1000, 'unixepoch', 'localtime'), '')"
"""SQL: the local day of a row `u` of `usage`; all days are computed by SQLite."""
# No time zone is further from UTC, so that the index on times narrows the search.
_DAY_CONDITION: Final = f"""
u.time >= (unixepoch(:day) - 100000) * 1000 AND u.time < (unixepoch(:day) + 200000) * 1000
AND {LOCAL_DAY} = :day
"""
_SUM_DAYS_SQL: Final = f"""
INSERT INTO days
SELECT {LOCAL_DAY}, s.project, u.model,
       u.agent != '' OR s.agent != '', u.fast,
       {TIER_SQL},
       count(*), sum(u.input), sum(u.output), sum(u.cache_5m), sum(u.cache_1h),
       sum(u.cache_read), sum(u.searches), sum(u.estimated)
FROM usage u JOIN sessions s ON s.file = u.file
WHERE u.counts AND {{where}} GROUP BY 1, 2, 3, 4, 5, 6
"""
_SELECT_COUNTED_SQL: Final = """
UPDATE usage SET counts = file = (
  SELECT u.file FROM usage u JOIN sessions s ON s.file = u.file JOIN files f ON f.id = u.file
  WHERE u.key = usage.key
  ORDER BY u.output DESC, u.copied, s.started, s.id, s.agent, f.path LIMIT 1
) WHERE key = ?
"""
_SET_FOREIGN_TITLE_SQL: Final = """
UPDATE sessions SET named = 1, title = (
  SELECT max(note) FROM links WHERE kind = 'summary' AND target = sessions.last_uuid
) WHERE NOT named AND last_uuid != ''
"""
_HAS_FOREIGN_TITLE_SQL: Final = "EXISTS (SELECT 1 FROM links WHERE kind = 'summary' AND target = sessions.last_uuid)"


def update_counted_copies(connection: sqlite3.Connection, keys: Iterable[str]) -> None:
    """Select the copy that counts for responses in several files.

    That is the copy with the highest output; of equal copies the original, otherwise the one of the session that
    started first.
    """
    for chunk in query_chunks(keys):
        placeholders = ", ".join("?" * len(chunk))
        duplicated = connection.execute(
            f"SELECT key FROM usage WHERE key IN ({placeholders}) GROUP BY key HAVING count(*) > 1", chunk
        ).fetchall()
        connection.execute(f"UPDATE usage SET counts = 1 WHERE key IN ({placeholders}) AND NOT counts", chunk)
        connection.executemany(_SELECT_COUNTED_SQL, duplicated)


def update_daily_sums(connection: sqlite3.Connection, days: set[str] | None) -> None:
    """Recompute the sums of some days, or of all days for None."""
    if days is None or len(days) > _MAX_SINGLE_DAYS:
        connection.execute("DELETE FROM days")
        connection.execute(_SUM_DAYS_SQL.format(where="1"))
        return
    for day in sorted(days):
        connection.execute("DELETE FROM days WHERE day = ?", (day,))
        where = _DAY_CONDITION if day else f"{LOCAL_DAY} = ''"
        connection.execute(_SUM_DAYS_SQL.format(where=where), {"day": day})


def days_of(connection: sqlite3.Connection, keys: Iterable[str]) -> set[str]:
    """Return the local days of some responses."""
    days: set[str] = set()
    for chunk in query_chunks(keys):
        placeholders = ", ".join("?" * len(chunk))
        rows = connection.execute(f"SELECT DISTINCT {LOCAL_DAY} FROM usage u WHERE key IN ({placeholders})", chunk)
        days.update(day for (day,) in rows)
        if len(days) > _MAX_SINGLE_DAYS:
            break
    return days


def assign_foreign_titles(connection: sqlite3.Connection, files: Iterable[int]) -> None:
    """Set titles found in other files for sessions without a title.

    Old versions of Claude Code wrote the title of a session into a later session, with the ID of its last record.
    """
    files = list(files)
    for chunk in (files[index : index + _CHUNK_SIZE] for index in range(0, len(files), _CHUNK_SIZE)):
        placeholders = ", ".join("?" * len(chunk))
        connection.execute(f"{_SET_FOREIGN_TITLE_SQL} AND file IN ({placeholders}) AND {_HAS_FOREIGN_TITLE_SQL}", chunk)
        summaries = f"FROM links WHERE kind = 'summary' AND file IN ({placeholders})"
        # This statement scans all sessions, and few files contain titles of other sessions.
        if connection.execute(f"SELECT 1 {summaries} LIMIT 1", chunk).fetchone():
            connection.execute(f"{_SET_FOREIGN_TITLE_SQL} AND last_uuid IN (SELECT target {summaries})", chunk)


def time_zone_id() -> str:
    """Return an identifier of the local time zone, on which days depend."""
    offsets = (time.localtime(second).tm_gmtoff for second in range(0, 2**31, 15_778_800))
    return f"{time.tzname[0]} {hash(tuple(offsets)) & 0xFFFFFFFF:08x}"


def query_chunks(values: Iterable[T]) -> Iterator[list[T]]:
    """Split values into lists that are short enough for one query."""
    remaining = iter(values)
    while chunk := list(islice(remaining, _CHUNK_SIZE)):
        yield chunk
