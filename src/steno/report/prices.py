"""What a token cost: by model, day, speed and how much was read at once.

Prices come from the data of genai-prices, as it was installed: nothing is ever fetched. Loading it
takes longer than a whole report, so what it says of a model is kept in steno's folder until another
release of it is installed. A file of one's own prices counts more.

Rates are whole micro-dollars for a million tokens, and for a million searches. Figures times rates
are exact; see `steno.report.usage.totals` for the one place where they are rounded.
"""

from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from os import stat
from typing import Final

import msgspec

from steno.index.bands import BANDS
from steno.report.usage.cells import Heap
from steno.store.kept import keep, kept

__all__ = ["Price", "Prices", "Rates", "cost_of"]

_KEPT: Final = "prices.json"
_PACKAGE: Final = "genai_prices"


class Rates(msgspec.Struct, frozen=True, array_like=True):
    """Micro-dollars for a million of each."""

    input: int
    output: int
    cache_5m: int
    cache_1h: int
    cache_read: int
    searches: int


class Price(msgspec.Struct, frozen=True, array_like=True):
    """Rates, and when they hold."""

    rates: Rates
    since: str = ""
    """The first day; nothing for those that always held."""
    above: int = 0
    """They hold for responses that read more tokens than that."""
    fast: bool = False


class _Kept(msgspec.Struct):
    data: str = ""
    """Which release of the data it comes from."""
    models: dict[str, list[Price]] = {}


class Prices:
    """Finds rates, and remembers them."""

    def __init__(self, own: Sequence[tuple[str, tuple[Price, ...]]] = ()) -> None:
        self._own = own
        self._models: dict[str, tuple[Price, ...]] = {}
        self._kept: _Kept | None = None
        self._found: dict[tuple[str, str, int, int], tuple[Rates, bool] | None] = {}

    def load(self, models: Iterable[str]) -> None:
        """Look up all the models of a report at once; those not kept cost a moment."""
        unknown: list[str] = []
        for model in models:
            own = self._own_price(model)
            if own is not None:
                self._models[model] = own
            elif model not in self._models:
                unknown.append(model)
        if not unknown:
            return
        if self._kept is None:
            self._kept = _read_kept()
        new = [model for model in unknown if model not in self._kept.models]
        if new:
            from steno.report.price_data import look_up

            self._kept.models.update(look_up(new))
            keep(_KEPT, msgspec.json.encode(self._kept))
        self._models.update((model, tuple(self._kept.models[model])) for model in unknown)

    def _own_price(self, model: str) -> tuple[Price, ...] | None:
        """Return the prices that a file gives a model: by its name, or by the longest beginning."""
        best = ""
        for name, _ in self._own:
            star = name.endswith("*") and model.startswith(name[:-1])
            if (star or name == model) and (name == model or len(name) > len(best)):
                best = name
                if name == model:
                    break
        return next((prices for name, prices in self._own if name == best), None) if best else None

    def find(self, model: str, day: str, band: int, fast: int) -> tuple[Rates, bool] | None:
        """Return the rates for a heap, and whether they are meant for its speed; None for none."""
        asked = (model, day, band, fast)
        if asked not in self._found:
            self._found[asked] = self._find(model, day, band, fast=bool(fast))
        return self._found[asked]

    def _find(self, model: str, day: str, band: int, *, fast: bool) -> tuple[Rates, bool] | None:
        if model not in self._models:
            self.load((model,))
        read = BANDS[band - 1] if band else 0
        # An unknown day has the newest price.
        fitting = [
            price
            for price in self._models[model]
            if price.above <= read and (not day or price.since <= day)
        ]
        if not fitting:
            # Older than any price: the oldest there is.
            fitting = [price for price in self._models[model] if price.above <= read][:1]
        exact = [price for price in fitting if price.fast == fast]
        chosen = exact or [price for price in fitting if not price.fast]
        if not chosen:
            return None
        newest = max(price.since for price in chosen)
        best = max((p for p in chosen if p.since == newest), key=lambda price: price.above)
        return best.rates, bool(exact)

    def changes(self, models: Iterable[str]) -> set[str]:
        """Return the days on which the prices of some models changed."""
        models = list(models)
        self.load(models)
        return {price.since for model in models for price in self._models[model]} - {""}


def cost_of(heap: Heap, rates: Rates) -> int:
    """Return what a heap cost, in millionths of a micro-dollar."""
    _, fresh, output, short, long, read, searches, _ = heap
    return (
        fresh * rates.input
        + output * rates.output
        + short * rates.cache_5m
        + long * rates.cache_1h
        + read * rates.cache_read
        + searches * rates.searches
    )


def _read_kept() -> _Kept:
    release = _release()
    raw = kept(_KEPT)
    if raw is not None:
        try:
            found = msgspec.json.decode(raw, type=_Kept)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return _Kept(release)
        if found.data == release:
            return found
    return _Kept(release)


def _release() -> str:
    """Return what tells one release of the data from another, without loading it."""
    spec = find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return ""
    try:
        status = stat(f"{spec.submodule_search_locations[0]}/data.py")
    except OSError:
        return ""
    return f"{status.st_size}-{status.st_mtime_ns}"
