"""What stretches of a session cost: a turn, an abandoned branch, a sub-agent.

Every response counts once, at the price of its model on the day it was asked for.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from steno.index.bands import band_at
from steno.report.prices import Prices, cost_of
from steno.session.nodes import Node
from steno.session.story.usage import Counter, Totals
from steno.session.transcript import Transcript

__all__ = ["Cost", "Share", "cost_of_nodes", "shares_of"]

_MILLION: Final = 1_000_000


class Cost(msgspec.Struct, frozen=True):
    """Micro-dollars, and whether they are all of it."""

    micro: int = 0
    unpriced: int = 0
    """Responses of models that have no price."""
    estimated: bool = False
    """Some figures are placeholders of the client; the truth is higher."""

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.micro + other.micro,
            self.unpriced + other.unpriced,
            self.estimated or other.estimated,
        )

    @property
    def known(self) -> int | None:
        """The amount; None where nothing of it has a price."""
        return None if self.unpriced and not self.micro else self.micro


class Share(msgspec.Struct, frozen=True):
    """What one model used, and what it cost."""

    model: str
    totals: Totals
    cost: Cost


def cost_of_nodes(
    transcript: Transcript, nodes: Iterable[Node], prices: Prices, day: str = ""
) -> Cost:
    """Return what the responses among some records cost; `day` says which prices hold."""
    counter = Counter()
    counter.add_nodes(transcript, nodes)
    micro = unpriced = 0
    estimated = False
    for _, amount, rough in _priced(counter, prices, day):
        micro += amount or 0
        unpriced += amount is None
        estimated = estimated or rough
    return Cost(micro, unpriced, estimated)


def shares_of(counter: Counter, prices: Prices, day: str = "") -> list[Share]:
    """Return what each model used and cost, the dearest first."""
    costs: dict[str, Cost] = {}
    for model, amount, rough in _priced(counter, prices, day):
        cost = Cost(amount or 0, int(amount is None), rough)
        costs[model] = costs.get(model, Cost()) + cost
    shares = [
        Share(model, totals, costs.get(model, Cost()))
        for model, totals in counter.by_model().items()
    ]
    return sorted(shares, key=lambda share: (-share.cost.micro, share.model))


def _priced(counter: Counter, prices: Prices, day: str) -> Iterator[tuple[str, int | None, bool]]:
    """Yield the model of each response, what it cost if that is known, and if it is a guess."""
    for model, usage, estimated in counter.responses():
        found = prices.find(model, day, band_at(usage.context), 0) if model else None
        if found is None:
            yield model, None, estimated
            continue
        heap = (1, *usage.counts, 0, 0)
        yield model, round(cost_of(heap, found[0]) / _MILLION), estimated
