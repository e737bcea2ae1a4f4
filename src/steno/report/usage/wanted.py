"""What a report is asked for."""

import re
import time
from typing import Final

import msgspec

from steno.errors import BadRequest
from steno.report.clock import day_of, meant
from steno.report.usage.cells import By

__all__ = ["Wanted", "fits", "period_of"]

_CLOCK: Final = re.compile(r"\d+\s*[mh]|.*:.*")
_SECOND: Final = 1000

_FOLDERS: Final = "/\\"


class Wanted(msgspec.Struct, frozen=True):
    """Which figures, and how they are to be sorted."""

    by: By = "day"
    since: int | None = None
    """The first moment that counts, in milliseconds."""
    until: int | None = None
    """The first moment that no longer counts."""
    project: str = ""
    limit: str = ""
    """As `project`: nothing else counts, whatever else is asked for."""
    here: str = ""
    """The folder that `.` stands for."""
    sessions: tuple[str, ...] | None = None
    """The only sessions that count, by their ids; None for all."""

    @property
    def is_bounded(self) -> bool:
        """Whether only some time counts; what has no time then does not."""
        return self.since is not None or self.until is not None

    @property
    def is_whole_days(self) -> bool:
        """Whether the time that counts begins and ends with local days."""
        return all(each is None or _is_midnight(each) for each in (self.since, self.until))

    def has_time(self, moment: int | None) -> bool:
        """Whether a moment counts."""
        if moment is None:
            return not self.is_bounded
        return (self.since is None or moment >= self.since) and (
            self.until is None or moment < self.until
        )

    @property
    def is_everywhere(self) -> bool:
        """Whether all projects count."""
        return not (self.project or self.limit)

    def has_project(self, project: str) -> bool:
        """Whether a project counts."""
        named = (each for each in (self.project, self.limit) if each)
        return all(fits(project, each, self.here) for each in named)


def fits(project: str, wanted: str, here: str) -> bool:
    """Whether a project's path has some words in it; `.` is the folder one is in, or below."""
    if wanted == ".":
        return project == here or project.startswith(tuple(here + mark for mark in _FOLDERS))
    return wanted.casefold() in project.casefold()


def _is_midnight(moment: int) -> bool:
    local = time.localtime(moment / 1000)
    return not (moment % 1000 or local.tm_sec or local.tm_min or local.tm_hour)


def period_of(since: str, until: str, now: float) -> tuple[int | None, int | None]:
    """Return the first moment of a period and the first one behind it, in milliseconds.

    Both mean whole days, unless they name a time of day or hours; empty ones set no limit.

    Raises:
        BadRequest: one means no time.
    """
    return _limit(since, now, end=False), _limit(until, now, end=True)


def _limit(text: str, now: float, *, end: bool) -> int | None:
    if not text:
        return None
    start, behind = meant(text, now)
    if _CLOCK.fullmatch(text.strip().lower()) is not None:
        return round((behind if end else start) * _SECOND)
    try:
        return round(day_of(start, -1 if end else 0) * _SECOND)
    except (OverflowError, OSError, ValueError) as error:
        raise BadRequest(f"not a time: {text!r}") from error
