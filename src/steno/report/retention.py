"""Sessions that Claude Code's cleanup deletes soon and that are not archived.

Claude Code deletes sessions that have not changed for `cleanupPeriodDays` days (a setting, 30 by default).
"""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from steno.report import humanize
from steno.store.archive.catalogue import is_archived_as
from steno.store.client_folders import CLEANUP_WARNING_DAYS, DEFAULT_CLEANUP_DAYS, cleanup_days, is_config_folder

_DAY: Final = 86_400
_NANOS_PER_SECOND: Final = 10**9
_OLD_SESSIONS_QUERY: Final = """
SELECT f.path, f.size, f.mtime FROM files f JOIN sessions s ON s.file = f.id
WHERE f.gone IS NULL AND s.agent = '' AND NOT s.hidden AND f.root = ? AND f.mtime < ?
"""


class Retention(msgspec.Struct, frozen=True):
    """Unarchived sessions that Claude Code deletes soon."""

    cleanup_days: float = DEFAULT_CLEANUP_DAYS
    sessions: int = 0
    """Number of these sessions."""
    overdue: int = 0
    """Number of these sessions that may be deleted at the next start."""
    size: int = 0
    first: float | None = None
    """Time of the first deletion, in seconds."""

    @classmethod
    def of(cls, days: float, files: Iterable[tuple[int, float]], now: float) -> "Retention":
        """Sum up files, given as pairs of size and deletion time."""
        file_list = list(files)
        return cls(
            days,
            len(file_list),
            sum(moment <= now for _, moment in file_list),
            sum(size for size, _ in file_list),
            min((moment for _, moment in file_list), default=None),
        )


def retention_from_index(connection: sqlite3.Connection, roots: Sequence[str], now: float) -> Retention:
    """Return the retention of sessions, from the index alone."""
    due_files: list[tuple[int, float]] = []
    days: list[float] = []
    for root in filter(is_config_folder, roots):
        keep_days = cleanup_days(root)
        days.append(keep_days)
        latest = now + (CLEANUP_WARNING_DAYS - keep_days) * _DAY
        for path, size, mtime in connection.execute(_OLD_SESSIONS_QUERY, (root, int(latest * _NANOS_PER_SECOND))):
            if not is_archived_as(path, size, mtime):
                due_files.append((size, mtime / _NANOS_PER_SECOND + keep_days * _DAY))
    return Retention.of(min(days, default=DEFAULT_CLEANUP_DAYS), due_files, now)


def retention_warning(retention: Retention, now: float) -> str:
    """Return a warning as one clause; empty if no session is due."""
    if retention.first is None:
        return ""
    is_plural = retention.sessions > 1
    sessions = humanize.count(retention.sessions, "session")
    subject = f"{sessions} that {'are' if is_plural else 'is'} not archived"
    consequence = "Claude Code deletes" + (" them" if is_plural else " it")
    if retention.overdue == retention.sessions:
        return f"{subject}: {consequence} the next time it cleans up"
    time_left = _time_left(retention.first - now)
    first_text = "the first at the next cleanup" if retention.overdue else f"the first {time_left}"
    return f"{subject}: {consequence} {f'within {CLEANUP_WARNING_DAYS} days, {first_text}' if is_plural else time_left}"


def _time_left(seconds: float) -> str:
    days = int(seconds / _DAY)
    return f"in {humanize.count(days, 'day')}" if days else "today"


def retention_json(retention: Retention, first_time: str | None) -> dict[str, Any]:
    """Return the retention as JSON."""
    return {
        "cleanup_days": retention.cleanup_days,
        "within_days": CLEANUP_WARNING_DAYS,
        "unarchived": retention.sessions,
        "overdue": retention.overdue,
        "size": retention.size,
        "first": first_time,
    }
