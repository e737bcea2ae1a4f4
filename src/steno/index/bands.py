"""Where the price of a response may change: with how many tokens it has read."""

from typing import Final

__all__ = ["BANDS", "BAND_SQL"]

BANDS: Final = (100_000, 200_000)
_CONTEXT: Final = "u.input + u.cache_5m + u.cache_1h + u.cache_read"
BAND_SQL: Final = " + ".join(f"({_CONTEXT} > {start})" for start in BANDS)
"""How many of the bands a row `u` of `usage` has left behind."""
