"""A clock that only moves when told to."""

from datetime import UTC, datetime
from typing import Final

__all__ = ["Clock"]

_SECOND: Final = 1000


class Clock:
    """Milliseconds since 1970, moved by steps."""

    def __init__(self, start: str) -> None:
        self.ms = round(datetime.fromisoformat(start).timestamp() * _SECOND)

    def step(self, ms: int) -> str:
        """Move on by `ms` milliseconds and return the new stamp."""
        self.ms += ms
        return self.stamp()

    def stamp(self, ms: int | None = None) -> str:
        """Return a moment as the real client writes it; the present one unless told."""
        seconds, rest = divmod(self.ms if ms is None else ms, _SECOND)
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:03d}Z"

    @property
    def date(self) -> str:
        """The day, as `2026-11-02`."""
        return self.stamp()[:10]
