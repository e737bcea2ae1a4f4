"""What time it is: one clock for all, which tests and pictures may set."""

import os
import time

from steno.errors import BadRequest

__all__ = ["moment", "now"]


def now() -> float:
    """Return the time in seconds: `STENO_NOW` where it is set, else the clock's.

    Raises:
        BadRequest: `STENO_NOW` is no time.
    """
    told = os.environ.get("STENO_NOW", "")
    if not told:
        return time.time()
    value = moment(told)
    if value is None:
        raise BadRequest(f"STENO_NOW is no time: {told!r}", hint="such as 2026-11-15T12:00:00Z")
    return value


def moment(text: str) -> float | None:
    """Return the seconds an ISO time stands for; without a zone it is local time."""
    from datetime import datetime

    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
