"""Which sessions a brief is about, and their briefs."""

import os
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec

from steno.errors import Unreadable
from steno.report import clock
from steno.report.brief.gather import brief_of
from steno.report.brief.values import Brief
from steno.report.usage.wanted import Wanted
from steno.session.liveness import activity_age
from steno.store.archive.gone import gone_at
from steno.store.discover import found_at
from steno.store.found import Found
from steno.store.library import open_found

__all__ = ["Place", "briefs_of", "choose", "most_for", "place_of"]

_SECOND: Final = 1_000
_SESSIONS: Final = """
SELECT f.path, f.size, s.project FROM sessions s JOIN files f ON f.id = s.file
WHERE s.agent = '' AND NOT s.hidden AND WHEN ORDER BY coalesce(s.ended, 0) DESC, s.file DESC
"""
_WITHIN: Final = (
    "EXISTS (SELECT 1 FROM turns t WHERE t.file = s.file AND t.started >= ? AND t.started < ?)"
)
_LATEST: Final = 1 << 62
_HEADING: Final = 25
"""Tokens that a session takes at the very least."""


class Place(msgspec.Struct, frozen=True):
    """Where a session lies."""

    path: str
    size: int = 0


def place_of(found: Found) -> Place:
    """Return where a session that was found lies."""
    return Place(found.path, found.size)


def choose(connection: sqlite3.Connection, wanted: Wanted) -> list[Place]:
    """Return the sessions of some projects with a turn in some time, by the index, newest first."""
    when, values = "1", list[Any]()
    if wanted.is_bounded:
        since = -_LATEST if wanted.since is None else wanted.since
        when, values = _WITHIN, [since, _LATEST if wanted.until is None else wanted.until]
    rows = connection.execute(_SESSIONS.replace("WHEN", when), values)
    return [
        Place(os.fsdecode(path), size)
        for path, size, project in rows
        if wanted.has_project(project)
    ]


def most_for(budget: int) -> int:
    """Return how many sessions are worth reading for a budget: what a mere heading takes is known."""
    return budget // _HEADING + 1


def briefs_of(
    places: Sequence[Place],
    wanted: Wanted | None = None,
    *,
    step: Callable[[int], None] | None = None,
    unread: list[str] | None = None,
    full: bool = False,
) -> list[Brief]:
    """Return the briefs of some sessions that are given newest first, in that order.

    A turn that several of them hold is told once, of the oldest. Sessions without a turn in the time
    that is wanted are left out; `step` is told how many bytes are done, and what cannot be read goes
    to `unread`. `full` keeps the parameters of calls whole.

    Raises:
        Unreadable: a session cannot be read, and there is no `unread`.
    """
    told: set[str] = set()
    briefs: list[Brief] = []
    for place in reversed(places):
        try:
            brief = _brief(place, wanted or Wanted(), told, full=full)
        except Unreadable:
            if unread is None:
                raise
            unread.append(place.path)
            continue
        if brief.turns or not (brief.elsewhere and (wanted or told)):
            briefs.append(brief)
        told.update(turn.uuid for turn in brief.turns if turn.uuid)
        if step is not None:
            step(place.size)
    return briefs[::-1]


def _brief(place: Place, wanted: Wanted, told: Iterable[str], *, full: bool) -> Brief:
    found = gone_at(place.path) if not os.path.lexists(place.path) else None
    found = found or found_at(place.path)
    with open_found(found) as session:
        ended = session.ended
        age = activity_age(clock.now(), None if ended is None else ended.timestamp())
        return brief_of(
            session,
            since=_seconds(wanted.since),
            until=_seconds(wanted.until),
            age=age,
            skip=frozenset(told),
            full=full,
        )


def _seconds(moment: int | None) -> float | None:
    return None if moment is None else moment / _SECOND
