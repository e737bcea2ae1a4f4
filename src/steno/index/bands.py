"""Where the price of a response may change: with how many tokens it has read."""

from bisect import bisect_left
from typing import Final

__all__ = ["BANDS", "BAND_SQL", "band_at"]

BANDS: Final = (100_000, 200_000)
_CONTEXT: Final = "u.input + u.cache_5m + u.cache_1h + u.cache_read"
BAND_SQL: Final = " + ".join(f"({_CONTEXT} > {start})" for start in BANDS)
"""How many of the bands a row `u` of `usage` has left behind."""


def band_at(context: int) -> int:
    """Return how many of the bands so many tokens have left behind.

    >>> band_at(100_000), band_at(100_001)
    (0, 1)
    """
    return bisect_left(BANDS, context)
