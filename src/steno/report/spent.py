"""What one response cost, while it is being paid for."""

from collections.abc import Callable
from typing import Any

from steno.format.values import as_object
from steno.index.bands import band_at
from steno.report.prices import Prices, cost_of

__all__ = ["spending"]

_MILLION = 1_000_000


def spending(prices: Prices) -> Callable[[str, dict[str, Any]], int]:
    """Return what says the cost of a response in micro-dollars, by model and usage.

    A model without a price costs nothing; `Prices` says which those are.
    """

    def spent(model: str, usage: dict[str, Any]) -> int:
        writes = as_object(usage.get("cache_creation")) or {}
        whole = _number(usage.get("cache_creation_input_tokens"))
        long = _number(writes.get("ephemeral_1h_input_tokens"))
        fresh, read = (
            _number(usage.get("input_tokens")),
            _number(usage.get("cache_read_input_tokens")),
        )
        found = prices.find(model, "", band_at(fresh + whole + read), 0)
        if found is None:
            return 0
        output = _number(usage.get("output_tokens"))
        served = as_object(usage.get("server_tool_use")) or {}
        searches = _number(served.get("web_search_requests"))
        heap = (1, fresh, output, whole - long, long, read, searches, 0)
        return round(cost_of(heap, found[0]) / _MILLION)

    return spent


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
