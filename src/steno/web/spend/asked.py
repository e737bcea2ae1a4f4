"""The address → which days, split by what; and the way to what is behind a piece of them."""

import time
from datetime import date, timedelta
from typing import Final

import msgspec
from starlette.datastructures import QueryParams

from steno.errors import BadRequest
from steno.report.usage.cells import midnight_of
from steno.report.usage.overview import Split, Step
from steno.report.usage.wanted import Wanted
from steno.web.paint import links

__all__ = ["RANGES", "Asked", "Days", "asked_of", "day_in", "said"]

RANGES: Final[dict[str, tuple[int, str]]] = {
    "7d": (7, "7 days"),
    "30d": (30, "30 days"),
    "90d": (90, "90 days"),
    "year": (365, "Year"),
    "all": (0, "All"),
}
_USUAL: Final = "30d"
_SPLITS: Final[dict[str, Split]] = {"model": "model", "project": "project"}
_DAILY: Final = 92
_WEEKLY: Final = 53 * 7 * 2
_OPEN: Final = ("projects", "branches", "kinds", "models", "tools")


class Days(msgspec.Struct, frozen=True):
    """Days that follow each other; None where there is no first or no last."""

    first: date | None = None
    last: date | None = None

    @property
    def since(self) -> int | None:
        """When they begin, in milliseconds."""
        return None if self.first is None else midnight_of(self.first.isoformat())

    @property
    def until(self) -> int | None:
        """When they are over."""
        if self.last is None:
            return None
        return midnight_of((self.last + timedelta(days=1)).isoformat())

    @property
    def query(self) -> dict[str, str]:
        """How an address says them."""
        return {
            "from": "" if self.first is None else self.first.isoformat(),
            "to": "" if self.last is None else self.last.isoformat(),
        }

    def wanted(self, by: str = "day") -> Wanted:
        """What to ask a report for."""
        return msgspec.structs.replace(Wanted(since=self.since, until=self.until), by=by)


class Asked(msgspec.Struct, frozen=True):
    """What the address asks for."""

    range: str
    days: Days
    today: date
    last: date
    """The newest day that is shown."""
    split: Split
    open: str
    """The table that is shown in full."""

    def way(self, **changes: str) -> str:
        """Return the address of this page with something else about it."""
        query = {
            "range": self.range,
            "to": "" if self.last == self.today else self.last.isoformat(),
            "by": self.split,
            **changes,
        }
        if query["range"] == _USUAL:
            query["range"] = ""
        if query["by"] == "model":
            query["by"] = ""
        return links().usage(**query)

    @property
    def earlier(self) -> str:
        """The days before; nothing where there are none."""
        number = RANGES[self.range][0]
        return self.way(to=(self.last - timedelta(days=number)).isoformat()) if number else ""

    @property
    def later(self) -> str:
        """The days after; nothing where they are yet to come."""
        number = RANGES[self.range][0]
        if not number or self.last >= self.today:
            return ""
        last = min(self.today, self.last + timedelta(days=number))
        return self.way(to="" if last == self.today else last.isoformat())

    @property
    def before(self) -> Days | None:
        """The same number of days before."""
        first = self.days.first
        if first is None:
            return None
        number = RANGES[self.range][0]
        return Days(first - timedelta(days=number), first - timedelta(days=1))

    def step(self, first: date) -> Step:
        """What one bar of a chart that begins with a day stands for."""
        number = (self.last - first).days + 1
        return "day" if number <= _DAILY else "week" if number <= _WEEKLY else "month"


def asked_of(given: QueryParams, now: float) -> Asked:
    """Return what an address asks for.

    Raises:
        BadRequest: it names a day that is none.
    """
    today = date(*time.localtime(now)[:3])
    name = given.get("range", _USUAL)
    name = name if name in RANGES else _USUAL
    last = day_in(given.get("to", "")) or today
    number = RANGES[name][0]
    if not number or last > today:
        last = today
    try:
        first = last - timedelta(days=number - 1) if number else None
    except OverflowError as error:
        raise BadRequest(f"not a day: {given.get('to')!r}") from error
    days = Days(first, None if last == today else last)
    opened = given.get("open", "")
    return Asked(
        name,
        days,
        today,
        last,
        _SPLITS.get(given.get("by", ""), "model"),
        opened if opened in _OPEN else "",
    )


def day_in(text: str) -> date | None:
    """Return the day that a text names; None for nothing.

    Raises:
        BadRequest: it names none, or none that a clock has.
    """
    if not text:
        return None
    try:
        day = date.fromisoformat(text)
        midnight_of((day + timedelta(days=1)).isoformat())
        midnight_of((day - timedelta(days=800)).isoformat())
    except (ValueError, OverflowError) as error:
        raise BadRequest(f"not a day: {text!r}", hint="a day looks like 2026-11-15") from error
    return day


def said(day: date, *, year: bool = False) -> str:
    """Return a day as people say it.

    >>> said(date(2026, 11, 5)), said(date(2026, 11, 5), year=True)
    ('5 Nov', '5 Nov 2026')
    """
    return f"{day.day} {day:%b}{f' {day.year}' if year else ''}"
