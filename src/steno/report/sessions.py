"""What the index knows of one session: its name, place, figures, cost, and those before and behind."""

from sqlite3 import Connection
from typing import Any, Final

import msgspec

from steno.index.bands import BAND_SQL
from steno.report.costs import Cost
from steno.report.prices import Prices, cost_of
from steno.report.usage.cells import SLOT, day_of_slot

__all__ = ["Known", "known_of", "neighbours_of", "spent_on"]

_MILLION: Final = 1_000_000
_KNOWN: Final = """
SELECT s.title, s.named, s.project, s.branch, s.model, s.version, s.started, s.ended, s.turns,
       s.messages, s.calls, s.failed, f.size, f.mtime
FROM sessions s JOIN files f ON f.id = s.file WHERE s.file = ?
"""
_SPENT: Final = """
SELECT u.model, u.time / SLOT, BAND, u.fast,
       count(*), sum(u.input), sum(u.output), sum(u.cache_5m), sum(u.cache_1h), sum(u.cache_read),
       sum(u.searches), sum(u.estimated)
FROM usage u JOIN sessions s ON s.file = u.file
WHERE s.id = ? AND u.counts GROUP BY 1, 2, 3, 4
""".replace("BAND", BAND_SQL).replace("SLOT", str(SLOT))
_EARLIER: Final = """
SELECT id FROM sessions WHERE project = ? AND agent = '' AND NOT hidden AND id != ? AND ended < ?
ORDER BY ended DESC LIMIT 1
"""
_LATER: Final = """
SELECT id FROM sessions WHERE project = ? AND agent = '' AND NOT hidden AND id != ? AND ended > ?
ORDER BY ended LIMIT 1
"""


class Known(msgspec.Struct, frozen=True):
    """A row of the index, for people."""

    title: str = ""
    named: bool = False
    project: str = ""
    branch: str = ""
    model: str = ""
    version: str = ""
    started: float | None = None
    ended: float | None = None
    turns: int = 0
    messages: int = 0
    calls: int = 0
    failed: int = 0
    size: int = 0
    changed: float = 0.0
    """When the file was last written to, as far as the index knows."""


def known_of(connection: Connection, file: int) -> Known:
    """Return what is known of a file; nothing where it is not indexed."""
    row = connection.execute(_KNOWN, (file,)).fetchone()
    if row is None:
        return Known()
    title, named, project, branch, model, version, started, ended, *counts, mtime = row
    turns, messages, calls, failed, size = counts
    return Known(
        title=title,
        named=bool(named),
        project=project,
        branch=branch,
        model=model,
        version=version,
        started=_seconds(started),
        ended=_seconds(ended),
        turns=turns,
        messages=messages,
        calls=calls,
        failed=failed,
        size=size,
        changed=mtime / 1e9,
    )


def _seconds(moment: int | None) -> float | None:
    return None if moment is None else moment / 1000


def spent_on(connection: Connection, session: str, prices: Prices) -> Cost:
    """Return what a session and its sub-agents cost; what others paid for already is left out."""
    total = Cost()
    for row in connection.execute(_SPENT, (session,)).fetchall():
        total += _cost(row, prices)
    return total


def _cost(row: tuple[Any, ...], prices: Prices) -> Cost:
    model, slot, band, fast, responses, *figures, estimated = row
    found = prices.find(model, day_of_slot(slot), band, fast) if model else None
    if found is None:
        return Cost(unpriced=responses, estimated=bool(estimated))
    heap = (responses, *figures, 0)
    return Cost(round(cost_of(heap, found[0]) / _MILLION), 0, bool(estimated))


def neighbours_of(connection: Connection, session: str, known: Known) -> tuple[str, str]:
    """Return the sessions of the same project that ended before and after one; empty for none."""
    if known.ended is None:
        return "", ""
    asked = known.project, session, round(known.ended * 1000)
    earlier, later = (connection.execute(way, asked).fetchone() for way in (_EARLIER, _LATER))
    return earlier[0] if earlier else "", later[0] if later else ""
