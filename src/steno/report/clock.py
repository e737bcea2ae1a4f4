"""Conversions between seconds, milliseconds, ISO times and the time expressions that users type."""

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


def time_range(text: str, current: float) -> tuple[float, float]:
    """Return the start and the exclusive end of the range that a time expression describes.

    Raises:
        BadRequest: The text is not a time expression.
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
    """Return the range of an untrusted time expression.

    Raises:
        BadRequest: The text is not a time expression, or out of range.
    """
    try:
        return time_range(text, current)
    except (OverflowError, OSError, ValueError) as error:
        if isinstance(error, BadRequest):
            raise
        raise BadRequest(f"not a time: {text!r}") from error


def local_midnight(seconds: float, days_back: int = 0) -> float:
    """Return the local midnight at the start of a day, `days_back` days earlier."""
    local = time.localtime(seconds)
    return time.mktime((local.tm_year, local.tm_mon, local.tm_mday - days_back, 0, 0, 0, 0, 0, -1))
