"""Conversions between seconds, milliseconds, ISO times and the time expressions that users type."""

import re
import time
from typing import TYPE_CHECKING, Final

from steno.errors import BadRequest
from steno.report.humanize import MS_PER_SECOND
from steno.store.environment import parse_time

if TYPE_CHECKING:
    from datetime import datetime

_AGO_PATTERN: Final = r"(\d+|an?)\s*(m|min|minute|h|hour|d|day|w|week)s?(\s+ago)?"
_MONTHS_AGO_PATTERN: Final = r"(\d+|an?)\s*(month|year)s?(\s+ago)?"
_PERIOD_PATTERN: Final = r"(this|last)\s+(week|month|year)"
_WEEKDAY_PATTERN: Final = r"(last\s+|on\s+)?(mon|tues?|wed(nes)?|thu(rs)?|fri|sat(ur)?|sun)(day)?"
_WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_UNIT_SECONDS: Final = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_TIME_HINT: Final = (
    "Use a date (2026-11-07), a relative time (7d, 3h, '2 weeks ago'), today, yesterday, a weekday (monday), "
    "or this/last week, month or year."
)
_DATE_LENGTH: Final = 10


def iso_time(seconds: float | None) -> str | None:
    """Return a time in the format of records: ISO 8601, UTC, milliseconds."""
    if seconds is None:
        return None
    from datetime import UTC, datetime

    try:
        stamp = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return stamp.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_from_ms(milliseconds: int | None) -> float | None:
    """Convert milliseconds, as stored in the index, to seconds."""
    return None if milliseconds is None else milliseconds / MS_PER_SECOND


def iso_time_from_ms(milliseconds: int | None) -> str | None:
    """Convert milliseconds, as stored in the index, to the ISO format of records."""
    return iso_time(seconds_from_ms(milliseconds))


def timestamp_of(time: "datetime | None") -> float | None:
    """Return the Unix timestamp of a datetime."""
    return None if time is None else time.timestamp()


def _time_range(text: str, current: float) -> tuple[float, float]:
    """Return the start and the exclusive end of the range that a time expression describes.

    Raises:
        BadRequest: The text is not a time expression.
    """
    word = " ".join(text.lower().split())
    if word in {"today", "yesterday"}:
        back = 0 if word == "today" else 1
        return local_midnight(current, back), local_midnight(current, back - 1)
    if ago := re.fullmatch(_AGO_PATTERN, word):
        start = current - _ago_count(ago[1]) * _UNIT_SECONDS[ago[2][0]]
        return start, start
    if calendar_range := _calendar_range(word, current):
        return calendar_range
    start = parse_time(text.strip())
    if start is None:
        raise BadRequest(f"not a time: {text!r}", hint=_TIME_HINT)
    return (start, local_midnight(start, -1)) if len(word) == _DATE_LENGTH else (start, start)


def _ago_count(text: str) -> int:
    return 1 if text.startswith("a") else int(text)


def _calendar_range(word: str, current: float) -> tuple[float, float] | None:
    """Return the range of a calendar expression: a weekday, this or last week, month or year, or some months ago."""
    local = time.localtime(current)
    if weekday := re.fullmatch(_WEEKDAY_PATTERN, word):
        back = (local.tm_wday - _WEEKDAYS.index(weekday[2][:3])) % 7
        # "last monday" on a Monday is a week ago; "monday" is today.
        back = back or (7 if (weekday[1] or "").startswith("last") else 0)
        return local_midnight(current, back), local_midnight(current, back - 1)
    if period := re.fullmatch(_PERIOD_PATTERN, word):
        back = 1 if period[1] == "last" else 0
        if period[2] == "week":
            start = local.tm_wday + 7 * back
            return local_midnight(current, start), local_midnight(current, start - 7)
        months = back * (12 if period[2] == "year" else 1)
        month = 1 if period[2] == "year" else local.tm_mon
        length = 12 if period[2] == "year" else 1
        return _local_date(local.tm_year, month - months), _local_date(local.tm_year, month - months + length)
    if ago := re.fullmatch(_MONTHS_AGO_PATTERN, word):
        months = _ago_count(ago[1]) * (12 if ago[2] == "year" else 1)
        first = _local_date(local.tm_year, local.tm_mon - months)
        last_day = time.localtime(_local_date(local.tm_year, local.tm_mon - months + 1) - 1).tm_mday
        start = local_midnight(first, 1 - min(local.tm_mday, last_day))
        return start, start
    return None


def _local_date(year: int, month: int) -> float:
    """Return the local midnight that begins a month; months outside 1 to 12 fall into other years."""
    return time.mktime((year + (month - 1) // 12, (month - 1) % 12 + 1, 1, 0, 0, 0, 0, 0, -1))


def parse_time_range(text: str, current: float) -> tuple[float, float]:
    """Return the range of an untrusted time expression.

    Raises:
        BadRequest: The text is not a time expression, or is out of range.
    """
    try:
        return _time_range(text, current)
    except (OverflowError, OSError, ValueError) as error:
        if isinstance(error, BadRequest):
            raise
        raise BadRequest(f"not a time: {text!r}") from error


def local_midnight(seconds: float, days_back: int = 0) -> float:
    """Return the local midnight at the start of a day, `days_back` days earlier."""
    local = time.localtime(seconds)
    return time.mktime((local.tm_year, local.tm_mon, local.tm_mday - days_back, 0, 0, 0, 0, 0, -1))
