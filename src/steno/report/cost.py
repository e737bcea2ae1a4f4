"""Cost of parts of a session (a turn, an abandoned branch, a sub-agent) and of a single response.

Every response counts once, at the price of its model on the day of the request.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from steno.format.lenient_json import as_object
from steno.index.price_tiers import price_tier_of
from steno.report.pricing import EXACT_PER_MICRO_DOLLAR, PriceTable, exact_cost
from steno.session.transcript import Node, Transcript
from steno.session.turns.usage import Totals, UsageCounter


class Cost(msgspec.Struct, frozen=True):
    """Micro-dollars, and whether they are all of it."""

    micro_dollars: int = 0
    unpriced: int = 0
    """Responses of models that have no price."""
    estimated: bool = False
    """Some figures are placeholders of the client; the truth is higher."""

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.micro_dollars + other.micro_dollars, self.unpriced + other.unpriced, self.estimated or other.estimated
        )

    @property
    def amount(self) -> int | None:
        """The amount; None where nothing of it has a price."""
        return None if self.unpriced and not self.micro_dollars else self.micro_dollars


class ModelCost(msgspec.Struct, frozen=True):
    """What one model used, and what it cost."""

    model: str
    totals: Totals
    cost: Cost


def cost_of_nodes(transcript: Transcript, nodes: Iterable[Node], prices: PriceTable, day: str = "") -> Cost:
    """Return what the responses among some records cost; `day` says which prices hold."""
    counter = UsageCounter()
    counter.add_nodes(transcript, nodes)
    micro = unpriced = 0
    estimated = False
    for _, amount, is_estimate in _priced_responses(counter, prices, day):
        micro += amount or 0
        unpriced += amount is None
        estimated = estimated or is_estimate
    return Cost(micro, unpriced, estimated)


def costs_by_model(counter: UsageCounter, prices: PriceTable, day: str = "") -> list[ModelCost]:
    """Return what each model used and cost, the dearest first."""
    costs: dict[str, Cost] = {}
    for model, amount, is_estimate in _priced_responses(counter, prices, day):
        cost = Cost(amount or 0, int(amount is None), is_estimate)
        costs[model] = costs.get(model, Cost()) + cost
    model_costs = [ModelCost(model, totals, costs.get(model, Cost())) for model, totals in counter.by_model().items()]
    return sorted(model_costs, key=lambda model_cost: (-model_cost.cost.micro_dollars, model_cost.model))


def _priced_responses(counter: UsageCounter, prices: PriceTable, day: str) -> Iterator[tuple[str, int | None, bool]]:
    """Yield the model of each response, what it cost if that is known, and if it is a guess."""
    for model, usage, estimated in counter.responses():
        rates_found = prices.find_rates(model, day, price_tier_of(usage.context), 0) if model else None
        if rates_found is None:
            yield model, None, estimated
            continue
        counts = (1, *usage.counts, 0, 0)
        yield model, round(exact_cost(counts, rates_found[0]) / EXACT_PER_MICRO_DOLLAR), estimated


def response_cost_function(prices: PriceTable) -> Callable[[str, dict[str, Any]], int]:
    """Return what says the cost of a response in micro-dollars, by model and usage.

    A model without a price costs nothing; `Prices` says which those are.
    """

    def response_cost(model: str, usage: dict[str, Any]) -> int:
        writes = as_object(usage.get("cache_creation")) or {}
        cache_write = _token_count(usage.get("cache_creation_input_tokens"))
        cache_write_1h = _token_count(writes.get("ephemeral_1h_input_tokens"))
        input_tokens, cache_read = (
            _token_count(usage.get("input_tokens")),
            _token_count(usage.get("cache_read_input_tokens")),
        )
        rates_found = prices.find_rates(model, "", price_tier_of(input_tokens + cache_write + cache_read), 0)
        if rates_found is None:
            return 0
        output = _token_count(usage.get("output_tokens"))
        server_tools = as_object(usage.get("server_tool_use")) or {}
        searches = _token_count(server_tools.get("web_search_requests"))
        counts = (1, input_tokens, output, cache_write - cache_write_1h, cache_write_1h, cache_read, searches, 0)
        return round(exact_cost(counts, rates_found[0]) / EXACT_PER_MICRO_DOLLAR)

    return response_cost


def _token_count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
