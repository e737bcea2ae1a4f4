"""What time it is, and what people mean by a time."""

import re
import time
from typing import TYPE_CHECKING, Final

from steno.errors import BadRequest
from steno.report.humanize import MS_PER_SECOND
from steno.store.environment import parse_time

if TYPE_CHECKING:
    from datetime import datetime

_AGO_PATTERN: Final = r"(\d+)\s*([mhdw])"
_UNIT_SECONDS: Final = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_TIME_HINT: Final = "a date (2026-11-07), a time ago (7d, 3h), `today` or `yesterday`"
_DATE_LENGTH: Final = 10


def iso_time(seconds: float | None) -> str | None:
    """Return a time as records write it, in UTC with milliseconds."""
    if seconds is None:
        return None
    from datetime import UTC, datetime

    try:
        stamp = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return stamp.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_from_ms(milliseconds: int | None) -> float | None:
    """Return a time or duration of the index, which has milliseconds, in seconds."""
    return None if milliseconds is None else milliseconds / MS_PER_SECOND


def iso_time_from_ms(milliseconds: int | None) -> str | None:
    """Return a time of the index as records write it."""
    return iso_time(seconds_from_ms(milliseconds))


def timestamp_of(time: "datetime | None") -> float | None:
    """Return the seconds of a time."""
    return None if time is None else time.timestamp()


def time_range(text: str, current: float) -> tuple[float, float]:
    """Return the first moment of what a word means and the first one behind it.

    Raises:
        BadRequest: it means no time.
    """
    word = text.strip().lower()
    if word in {"today", "yesterday"}:
        back = 0 if word == "today" else 1
        return local_midnight(current, back), local_midnight(current, back - 1)
    if ago := re.fullmatch(_AGO_PATTERN, word):
        start = current - int(ago[1]) * _UNIT_SECONDS[ago[2]]
        return start, start
    start = parse_time(text.strip())
    if start is None:
        raise BadRequest(f"not a time: {text!r}", hint=_TIME_HINT)
    return (start, local_midnight(start, -1)) if len(word) == _DATE_LENGTH else (start, start)


def parse_time_range(text: str, current: float) -> tuple[float, float]:
    """Return the same of a text that anybody may have typed.

    Raises:
        BadRequest: it means no time, or none that a clock has.
    """
    try:
        return time_range(text, current)
    except (OverflowError, OSError, ValueError) as error:
        if isinstance(error, BadRequest):
            raise
        raise BadRequest(f"not a time: {text!r}") from error


def local_midnight(seconds: float, days_back: int = 0) -> float:
    """Return the local midnight that begins the day, or one so many days before it."""
    local = time.localtime(seconds)
    return time.mktime((local.tm_year, local.tm_mon, local.tm_mday - days_back, 0, 0, 0, 0, 0, -1))
