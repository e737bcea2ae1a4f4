"""What the client's cleanup is about to take that nobody has kept: how many, how soon.

The client deletes sessions that were not written to for some days, 30 unless its settings say
otherwise (`cleanupPeriodDays`).
"""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from steno.report import words
from steno.store.archive.gone import kept_as
from steno.store.upkeep import CLEANUP_DAYS, SOON, cleanup_days, is_config

__all__ = ["Retention", "retention_in", "retention_json", "retention_words"]

_DAY: Final = 86_400
_NANO: Final = 10**9
_OLD: Final = """
SELECT f.path, f.size, f.mtime FROM files f JOIN sessions s ON s.file = f.id
WHERE f.gone IS NULL AND s.agent = '' AND NOT s.hidden AND f.root = ? AND f.mtime < ?
"""


class Retention(msgspec.Struct, frozen=True):
    """How it stands with sessions that are not in the archive as they are now."""

    cleanup_days: float = CLEANUP_DAYS
    sessions: int = 0
    """How many of them the client deletes soon."""
    overdue: int = 0
    """How many of those may go the next time it starts."""
    size: int = 0
    first: float | None = None
    """When the first of them goes, in seconds."""

    @classmethod
    def of(cls, days: float, files: Iterable[tuple[int, float]], now: float) -> "Retention":
        """Sum up files by their size and the moment each is deleted."""
        some = list(files)
        return cls(
            days,
            len(some),
            sum(moment <= now for _, moment in some),
            sum(size for size, _ in some),
            min((moment for _, moment in some), default=None),
        )


def retention_in(connection: sqlite3.Connection, roots: Sequence[str], now: float) -> Retention:
    """Return what is about to go, by the index: without a look at any session."""
    found: list[tuple[int, float]] = []
    days: list[float] = []
    for root in filter(is_config, roots):
        kept = cleanup_days(root)
        days.append(kept)
        latest = now + (SOON - kept) * _DAY
        for path, size, mtime in connection.execute(_OLD, (root, int(latest * _NANO))):
            if not kept_as(path, size, mtime):
                found.append((size, mtime / _NANO + kept * _DAY))
    return Retention.of(min(days, default=CLEANUP_DAYS), found, now)


def retention_words(found: Retention, now: float) -> str:
    """Return a warning in one clause; nothing where there is nothing to fear."""
    if found.first is None:
        return ""
    many = found.sessions > 1
    sessions = words.count(found.sessions, "session")
    said = f"{sessions} that {'are' if many else 'is'} not archived"
    gone = "the client deletes" + (" them" if many else " it")
    if found.overdue == found.sessions:
        return f"{said}: {gone} the next time it cleans up"
    left = _left(found.first - now)
    first = "the first the next time it cleans up" if found.overdue else f"the first {left}"
    return f"{said}: {gone} {f'within {SOON} days, {first}' if many else left}"


def _left(seconds: float) -> str:
    days = int(seconds / _DAY)
    return f"in {words.count(days, 'day')}" if days else "today"


def retention_json(found: Retention, iso: str | None) -> dict[str, Any]:
    """Return it for programs."""
    return {
        "cleanup_days": found.cleanup_days,
        "within_days": SOON,
        "unarchived": found.sessions,
        "overdue": found.overdue,
        "size": found.size,
        "first": iso,
    }
