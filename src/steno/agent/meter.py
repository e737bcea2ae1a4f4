"""What a turn has taken so far, and what it may take."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import msgspec

from steno.agent.events import Reason
from steno.agent.models import LARGE

__all__ = ["Limits", "Meter", "Price", "tokens_of", "window_of"]

Price: TypeAlias = Callable[[str, dict[str, Any]], int]
"""What a response cost, in micro-dollars, by its model and usage."""
_COUNTED: Final = (
    "input_tokens",
    "output_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
)
_WINDOW: Final = 200_000
_LARGE_WINDOW: Final = 1_000_000


def window_of(model: str) -> int:
    """Return how many tokens a model takes in; `[1m]` behind its name asks for the large window."""
    return _LARGE_WINDOW if model.endswith(LARGE) else _WINDOW


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a turn may take at most; None for no limit."""

    requests: int | None = None
    cost: int | None = None
    """In micro-dollars."""
    seconds: float | None = None


class Meter:
    """Counts requests, tokens, money and time."""

    def __init__(
        self,
        limits: Limits,
        *,
        price: Price,
        clock: Callable[[], float],
        above: "Meter | None" = None,
    ) -> None:
        self.limits = limits
        self._above = above
        """Of a sub-agent: the meter of whoever pays for it."""
        self.requests = 0
        self.usage: dict[str, int] = dict.fromkeys(_COUNTED, 0)
        self.cost = 0
        self.models: dict[str, dict[str, int]] = {}
        """The same by model, with what it cost, of everything that is paid from here."""
        self.asking = 0.0
        """How many seconds of the turn went by while answers were waited for."""
        self.context = 0
        """How many tokens the last request and its answer took of the window."""
        self._price = price
        self._clock = clock
        self._start = clock()

    @property
    def seconds(self) -> float:
        """How long it has been."""
        return self._clock() - self._start

    @property
    def left(self) -> float | None:
        """How many seconds are left; None for as many as it takes. Sub-agents share one clock."""
        if self._above is not None:
            return self._above.left
        most = self.limits.seconds
        return None if most is None else max(most - self.seconds, 0)

    def begin(self) -> None:
        """A new turn begins: requests and time are counted anew, tokens and money go on."""
        self.requests = 0
        self.asking = 0.0
        self._start = self._clock()

    @contextmanager
    def waiting(self) -> Generator[None]:
        """Count the time that an answer takes."""
        began = self._clock()
        try:
            yield
        finally:
            self.asking += self._clock() - began

    def add(self, model: str, usage: dict[str, Any]) -> None:
        """Count a response of the conversation."""
        self.pay(model, usage)
        self.context = tokens_of(usage)

    def pay(self, model: str, usage: dict[str, Any]) -> None:
        """Count what a response took."""
        for name in _COUNTED:
            self.usage[name] += _whole(usage.get(name))
        self.spend(model, usage, self._price(model, usage))

    def spend(self, model: str, usage: dict[str, Any], cost: int) -> None:
        """Count money, also for whoever pays."""
        self.cost += cost
        counted = self.models.setdefault(model, dict.fromkeys((*_COUNTED, "cost"), 0))
        for name in _COUNTED:
            counted[name] += _whole(usage.get(name))
        counted["cost"] += cost
        if self._above is not None:
            self._above.spend(model, usage, cost)

    @property
    def spent(self) -> int:
        """What all of it cost that is paid from one purse."""
        return self.cost if self._above is None else self._above.spent

    def reached(self) -> Reason | None:
        """Return the limit that is reached, if one is."""
        limits = self.limits
        if limits.requests is not None and self.requests >= limits.requests:
            return "max_turns"
        if limits.cost is not None and self.spent >= limits.cost:
            return "max_budget"
        if self.left == 0:
            return "max_time"
        return None


def tokens_of(usage: Mapping[str, Any]) -> int:
    """Return how many tokens of the window a request and its answer took."""
    return sum(_whole(usage.get(name)) for name in _COUNTED)


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
