"""Price tiers: the context sizes at which the price of a response may change."""

from bisect import bisect_left
from typing import Final

TIER_STARTS: Final = (100_000, 200_000)
_CONTEXT_SQL: Final = "u.input + u.cache_5m + u.cache_1h + u.cache_read"
TIER_SQL: Final = " + ".join(f"({_CONTEXT_SQL} > {start})" for start in TIER_STARTS)
"""SQL: the price tier of a row `u` of `usage`, counted from 0."""


def price_tier_of(context_tokens: int) -> int:
    """Return the price tier of a context size, counted from 0.

    >>> price_tier_of(100_000), price_tier_of(100_001)
    (0, 1)
    """
    return bisect_left(TIER_STARTS, context_tokens)
