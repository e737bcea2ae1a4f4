"""Converts the data of genai-prices into a catalogue of steno's own."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final, cast

from steno.report.price_data import Clause, ModelPrices, PriceCatalogue, ProviderPrices
from steno.report.prices import Price, Rates

__all__ = ["import_catalogue"]

_MICRO: Final = 1_000_000
_SEARCHES: Final = Decimal(10)
"""Dollars for a thousand web searches, where the data does not say."""
_SHORT: Final = Decimal("1.25")
_LONG: Final = Decimal(2)
_READ: Final = Decimal("0.1")
"""What the caches cost, as parts of the price of input, where the data does not say."""
_FIELDS: Final = ("input", "output", "cache_write", "cache_write_1h", "cache_read")
_TEXTS: Final = ("starts_with", "ends_with", "contains", "equals")


def import_catalogue() -> PriceCatalogue:
    """Return what the installed genai-prices says of models that can be found by name.

    Raises:
        ImportError: it is not installed.
        AttributeError: its data has another shape.
    """
    from importlib.metadata import version

    from genai_prices.data import providers

    listed: list[Any] = list(providers)
    return PriceCatalogue(
        version("genai-prices"),
        tuple(
            ProviderPrices(
                provider.id,
                _clause(provider.model_match),
                tuple(
                    ModelPrices(_clause(model.match), tuple(_prices(model)))
                    for model in provider.models
                ),
            )
            for provider in listed
            if provider.model_match is not None
        ),
    )


def _clause(match: Any) -> Clause:
    for kind in _TEXTS:
        if (text := getattr(match, kind, None)) is not None:
            return Clause(kind, text.lower())
    for kind in ("or", "and"):
        if (parts := getattr(match, f"{kind}_", None)) is not None:
            return Clause(kind, "", tuple(map(_clause, parts)))
    return Clause("regex", match.regex)


def _prices(model: Any) -> list[Price]:
    prices: list[Price] = []
    listed: Any = model.prices
    if not isinstance(listed, list):
        prices += _steps(listed, "")
    else:
        for conditional in cast("list[Any]", listed):
            since = getattr(conditional.constraint, "start_date", None)
            if conditional.constraint is None or since is not None:
                prices += _steps(conditional.prices, since.isoformat() if since else "")
    for variant in model.price_variants or ():
        if dict(variant.when) == {"speed": "fast"}:
            since = getattr(variant.constraint, "start_date", None)
            prices += _steps(variant.prices, since.isoformat() if since else "", fast=True)
    return prices


def _steps(price: Any, since: str, *, fast: bool = False) -> Iterator[Price]:
    """Yield the rates of one price list: the plain ones, and those above some tokens read."""
    fields = [getattr(price, f"{name}_mtok", None) for name in _FIELDS]
    if fields[0] is None or fields[1] is None:
        return
    starts = {tier.start for field in fields for tier in getattr(field, "tiers", ())}
    searches = getattr(price, "web_searches_kcount", None)
    per_thousand = searches if isinstance(searches, Decimal) else _SEARCHES
    for start in (0, *sorted(starts)):
        fresh, output, short, long, read = (_at(field, start) for field in fields)
        fresh, output = fresh or Decimal(0), output or Decimal(0)
        rates = Rates(
            _micro(fresh),
            _micro(output),
            _micro(fresh * _SHORT if short is None else short),
            _micro(fresh * _LONG if long is None else long),
            _micro(fresh * _READ if read is None else read),
            _micro(per_thousand * 1000),
        )
        yield Price(rates, since, start, fast)


def _at(field: Any, start: int) -> Decimal | None:
    """Return a price for responses that read more than `start`."""
    if field is None or isinstance(field, Decimal):
        return field
    price: Decimal = field.base
    for tier in field.tiers:
        if tier.start <= start:
            price = tier.price
    return price


def _micro(dollars: Decimal) -> int:
    return round(dollars * _MICRO)
