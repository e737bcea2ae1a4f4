"""SQL expressions for the status of sessions, built from the definition in `session.liveness`.

In every expression `s` is a row of `sessions`. Times are milliseconds.
"""

from typing import Final, Literal, TypeAlias, get_args

from steno.session.liveness import LIVE_SECONDS, SKEW, Ending, status_at
from steno.session.step_records import FEW, MANY

__all__ = [
    "STATUSES",
    "StatusFilter",
    "list_rule_sql",
    "live_since",
    "live_sql",
    "state_sql",
    "status_sql",
]

StatusFilter: TypeAlias = Literal["live", "waiting", "finished", "interrupted", "failed", "damaged"]
STATUSES: Final[tuple[StatusFilter, ...]] = get_args(StatusFilter)
"""What sessions can be filtered by; `damaged` is known to the health check alone."""
_SECOND: Final = 1000


def live_since(now: int) -> int:
    """Return the earliest activity that a live session can have."""
    return now - int(max(LIVE_SECONDS.values()) * _SECOND)


def live_sql(now: int) -> str:
    """Return the condition that a session is live."""
    high = now + int(SKEW * _SECOND)
    parts: list[str] = []
    for ending, seconds in LIVE_SECONDS.items():
        recent = f"BETWEEN {now - int(seconds * _SECOND)} AND {high}"
        parts.append(f"(s.ending = '{ending}' AND (s.ended {recent} OR s.grown {recent}))")
    return f"({' OR '.join(parts)})"


def status_sql(now: int) -> str:
    """Return the status of a session, `live` for those that are."""
    endings: tuple[Ending, ...] = get_args(Ending)
    over = " ".join(f"WHEN '{each}' THEN '{status_at(each, float('inf'))}'" for each in endings)
    return f"CASE WHEN {live_sql(now)} THEN 'live' ELSE CASE s.ending {over} END END"


def state_sql(now: int) -> str:
    """Return what `status_at` returns for a session; one whose file is gone is not live."""
    endings: tuple[Ending, ...] = get_args(Ending)
    during = " ".join(
        f"WHEN '{each}' THEN '{status_at(each, 0.0)}'" for each in endings if each in LIVE_SECONDS
    )
    over = " ".join(f"WHEN '{each}' THEN '{status_at(each, float('inf'))}'" for each in endings)
    return (
        f"CASE WHEN {live_sql(now)} AND s.gone IS NULL THEN CASE s.ending {during} END "
        f"ELSE CASE s.ending {over} END END"
    )


def list_rule_sql(now: int) -> str:
    """Return the condition that the list rule shows a session: `step_records.is_listed` as SQL."""
    running = f"(s.gone IS NULL AND {live_sql(now)})"
    answered = f"(s.step_records >= {FEW} AND s.answered)"
    return f"({running} OR s.step_records >= {MANY} OR {answered})"
