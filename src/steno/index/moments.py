"""The times that records bear, in milliseconds."""

from datetime import datetime
from typing import Final

from steno.format.records import read_time

__all__ = ["millis"]

_USUAL: Final = len("2026-11-15T12:00:00.000Z")
_parse: Final = datetime.fromisoformat


def millis(stamp: str | float | None) -> int | None:
    """Return a time in milliseconds; what every client writes is read without ado.

    >>> millis("1970-01-02T00:00:01.250Z")
    86401250
    """
    if isinstance(stamp, str) and len(stamp) == _USUAL and stamp[-1] == "Z" and stamp[19] == ".":
        try:
            return round(_parse(stamp).timestamp() * 1000)
        except (ValueError, OverflowError):
            pass
    moment = read_time(stamp) if stamp is not None else None
    return round(moment.timestamp() * 1000) if moment is not None else None
