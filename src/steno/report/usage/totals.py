"""Heaps and prices → the rows of a report and their total.

Costs are added up exactly, in millionths of a micro-dollar, and rounded once: the total to the next
micro-dollar, the rows down or up so that they add up to it. So a total does not depend on what the
rows are by, and rows are never a micro-dollar more or less than their sum.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from steno.report.prices import Prices, cost_of
from steno.report.usage.cells import Cell, Cells, Heap

__all__ = ["Figures", "Line", "Report", "apportioned", "report_of", "rounded", "summed"]

_EXACT: Final = 1_000_000
_IN_TIME: Final = ("day", "week", "month", "hour", "block5h")


class Figures(msgspec.Struct):
    """Tokens and what they cost."""

    responses: int = 0
    input: int = 0
    output: int = 0
    cache_5m: int = 0
    cache_1h: int = 0
    cache_read: int = 0
    searches: int = 0
    estimated: int = 0
    """How many of the responses have a placeholder for a figure."""
    exact: int = 0
    """The cost of all that has a price, in millionths of a micro-dollar."""
    unpriced: dict[str, int] = {}
    """Tokens of models that no price is known of."""
    slow_price: int = 0
    """How many fast responses were priced as if they were not, for want of a price."""

    @property
    def cache_write(self) -> int:
        """Tokens written to either cache."""
        return self.cache_5m + self.cache_1h

    @property
    def context(self) -> int:
        """Everything that was read."""
        return self.input + self.cache_write + self.cache_read

    @property
    def has_cost(self) -> bool:
        """Whether anything in it has a price, or nothing in it needs one."""
        return bool(self.exact) or not self.unpriced

    @property
    def cost(self) -> int | None:
        """The cost in micro-dollars; None where nothing has a price."""
        return rounded(self.exact) if self.has_cost else None

    def take(self, cell: Cell, heap: Heap, prices: Prices) -> None:
        """Add a heap at its price."""
        self.responses += heap[0]
        self.input += heap[1]
        self.output += heap[2]
        self.cache_5m += heap[3]
        self.cache_1h += heap[4]
        self.cache_read += heap[5]
        self.searches += heap[6]
        self.estimated += heap[7]
        _, day, model, fast, band = cell
        found = prices.find(model, day, band, fast)
        if found is not None:
            self.exact += cost_of(heap, found[0])
            self.slow_price += 0 if found[1] else heap[0]
        elif tokens := sum(heap[1:6]):
            self.unpriced[model] = self.unpriced.get(model, 0) + tokens

    def add(self, other: "Figures") -> None:
        """Add other figures."""
        self.responses += other.responses
        self.input += other.input
        self.output += other.output
        self.cache_5m += other.cache_5m
        self.cache_1h += other.cache_1h
        self.cache_read += other.cache_read
        self.searches += other.searches
        self.estimated += other.estimated
        self.exact += other.exact
        self.slow_price += other.slow_price
        for model, tokens in other.unpriced.items():
            self.unpriced[model] = self.unpriced.get(model, 0) + tokens


class Line(msgspec.Struct):
    """One row of a report."""

    names: tuple[str, ...]
    figures: Figures
    cost: int = 0
    """In micro-dollars."""
    title: str = ""
    project: str = ""
    calls: int = 0
    failed: int = 0


class Report(msgspec.Struct):
    """What was asked for."""

    by: str
    lines: list[Line]
    totals: Figures
    cost: int
    """In micro-dollars."""
    abandoned: Figures | None = None
    """What of all that went into branches that were given up; None where that is not known."""
    unseen: int = 0
    """How many sessions may have more of those, and were not looked into."""
    complete: bool = True
    """Whether everything there is was read."""


def report_of(cells: Cells, by: str, prices: Prices) -> Report:
    """Return the rows, in the order of time or else the dearest first, and their total."""
    prices.load({cell[2] for cell in cells})
    rows: dict[tuple[str, ...], Figures] = {}
    totals = Figures(unpriced={})
    for cell, heap in cells.items():
        figures = rows.get(cell[0])
        if figures is None:
            figures = rows[cell[0]] = Figures(unpriced={})
        figures.take(cell, heap, prices)
    for figures in rows.values():
        totals.add(figures)
    lines = [Line(names, figures) for names, figures in rows.items()]
    if by in _IN_TIME:
        lines.sort(key=lambda line: line.names)
    else:
        lines.sort(key=lambda line: (-line.figures.exact, -line.figures.context, line.names))
    costs = apportioned([line.figures.exact for line in lines])
    for line, cost in zip(lines, costs, strict=True):
        line.cost = cost
    return Report(by, lines, totals, sum(costs))


def summed(cells: Iterable[tuple[Cell, Heap]], prices: Prices) -> Figures:
    """Return the sum of some heaps."""
    figures = Figures(unpriced={})
    for cell, heap in cells:
        figures.take(cell, heap, prices)
    return figures


def rounded(exact: int) -> int:
    """Return millionths of a micro-dollar as micro-dollars."""
    return (exact + _EXACT // 2) // _EXACT


def apportioned(exact: list[int]) -> list[int]:
    """Round amounts to micro-dollars so that they add up to their rounded sum.

    >>> apportioned([600_000, 600_000, 600_000])
    [1, 1, 0]
    """
    costs = [each // _EXACT for each in exact]
    missing = rounded(sum(exact)) - sum(costs)
    most = sorted(range(len(exact)), key=lambda place: (-(exact[place] % _EXACT), place))
    for place in most[:missing]:
        costs[place] += 1
    return costs
