"""Sources of prices: the bundled catalogue, an installed genai-prices package, and a custom price file.

`model_prices.json` is generated from genai-prices by `tools/make_prices.py`, because that package
has seven dependencies. If it is installed (extra `prices`) and newer, it is used instead. A custom
price file takes precedence:

[models."claude-opus-4-6"]       # a model name, or a prefix: "glm-*"
input = 5.00                     # dollars per million tokens
output = 25.00
cache_write_5m = 6.25            # default: 1.25 times input
cache_write_1h = 10.00           # default: twice input
cache_read = 0.50                # default: a tenth of input
web_search = 10.00               # per thousand; default: 10

[models."claude-opus-4-6".fast]  # same keys, for responses at fast speed
[models."claude-opus-4-6".long]  # same keys, for a context above 200,000 tokens

A model whose price has changed has a list, `[[models."name"]]`, each with `since = 2026-03-13`.
"""

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any, Final, cast

import msgspec

from steno.errors import BadRequest, Unreadable
from steno.report.humanize import MICRO_DOLLARS_PER_DOLLAR
from steno.report.pricing import CATALOGUE, Price, PriceTable, Rates
from steno.store.discovery import Problem, peek

# Name variants of cloud providers: eu.anthropic.claude-x-v1:0, anthropic/claude-x, claude-x[1m].
_CLAUDE_NAME: Final = re.compile(r"(?:^|[./])(claude-[a-z0-9.@-]*?)(?:-v\d+(?::\d+)?)?(?:\[[^\]]*\])?$")
_COMPACT_DATE: Final = re.compile(r"-(20\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?=[-:]|$)")
_MAX_NAME_LENGTH: Final = 1_000


class NameCondition(msgspec.Struct, frozen=True, array_like=True):
    """Condition on a model name."""

    kind: str
    """One of starts_with, ends_with, contains, equals, regex, or, and."""
    text: str = ""
    parts: "tuple[NameCondition, ...]" = ()

    def matches(self, name: str) -> bool:
        """Return whether a lower-case name meets the condition."""
        match self.kind:
            case "starts_with":
                return name.startswith(self.text)
            case "ends_with":
                return name.endswith(self.text)
            case "contains":
                return self.text in name
            case "equals":
                return name == self.text
            case "regex":
                return re.search(self.text, name) is not None
            case "or":
                return any(part.matches(name) for part in self.parts)
            case _:
                return all(part.matches(name) for part in self.parts)


class ModelPrices(msgspec.Struct, frozen=True, array_like=True):
    """Prices of the models whose names meet a condition."""

    match: NameCondition
    prices: tuple[Price, ...]


class ProviderPrices(msgspec.Struct, frozen=True):
    """Models of one provider; the first match is used."""

    id: str
    match: NameCondition
    models: tuple[ModelPrices, ...]

    def find_model(self, name: str) -> ModelPrices | None:
        """Return the model with a lower-case name; dates may be written without dashes."""
        for variant in dict.fromkeys((name, _COMPACT_DATE.sub(r"-\1-\2-\3", name))):
            for model in self.models:
                if model.match.matches(variant):
                    return model
        return None


class PriceCatalogue(msgspec.Struct, frozen=True):
    """Prices of models by provider."""

    version: str
    """Version of genai-prices that the catalogue was generated from."""
    providers: tuple[ProviderPrices, ...]
    source: str = ""


def look_up_prices(models: Iterable[str]) -> dict[str, list[Price]]:
    """Return the prices of each model; an empty list for an unknown model."""
    catalogue = _newest_catalogue()
    return {model: _prices_of_model(catalogue.providers, model) for model in models}


def bundled_catalogue() -> PriceCatalogue:
    """Return the catalogue bundled with steno."""
    with open(CATALOGUE, "rb") as file:
        return msgspec.json.decode(file.read(), type=PriceCatalogue)


def _newest_catalogue() -> PriceCatalogue:
    from importlib.metadata import PackageNotFoundError, version

    catalogue = bundled_catalogue()
    try:
        installed = version("genai-prices")
    except PackageNotFoundError:
        return catalogue
    if _release_number(installed) <= _release_number(catalogue.version):
        return catalogue
    try:
        return import_catalogue()
    except (ImportError, AttributeError):
        # The installed release has a different data model or lacks dependencies.
        return catalogue


def _release_number(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:4]))


def _prices_of_model(providers: Iterable[ProviderPrices], model: str) -> list[Price]:
    name = model.lower()
    if len(name) > _MAX_NAME_LENGTH:
        return []
    claude_name = _CLAUDE_NAME.search(name)
    anthropic_providers = [candidate for candidate in providers if candidate.id == "anthropic"]
    matching_providers = [each for each in providers if each.match.matches(name)]
    for provider, searched_name in (
        *(
            (anthropic, asked)
            for anthropic in anthropic_providers
            for asked in (name, *((claude_name[1],) if claude_name else ()))
        ),
        *((matching, name) for matching in matching_providers),
    ):
        model_prices = provider.find_model(searched_name)
        if model_prices is not None:
            return list(model_prices.prices)
    return []


_DEFAULT_SEARCH_PRICE: Final = Decimal(10)
"""Dollars per thousand web searches, if the data has no price."""
_CACHE_5M_FACTOR: Final = Decimal("1.25")
_CACHE_1H_FACTOR: Final = Decimal(2)
_CACHE_READ_FACTOR: Final = Decimal("0.1")
"""Prices of cache tokens relative to the input price, if the data has none."""
_PRICE_FIELDS: Final = ("input", "output", "cache_write", "cache_write_1h", "cache_read")
_TEXT_CONDITIONS: Final = ("starts_with", "ends_with", "contains", "equals")


def import_catalogue() -> PriceCatalogue:
    """Return a catalogue from the installed genai-prices, with the providers that are identified by model names.

    Raises:
        ImportError: genai-prices is not installed.
        AttributeError: Its data model is different.
    """
    from importlib.metadata import version

    from genai_prices.data import providers

    provider_data: list[Any] = list(providers)
    return PriceCatalogue(
        version("genai-prices"),
        tuple(
            ProviderPrices(
                provider.id,
                _condition_of(provider.model_match),
                tuple(
                    ModelPrices(_condition_of(model.match), tuple(_prices_of_model_data(model)))
                    for model in provider.models
                ),
            )
            for provider in provider_data
            if provider.model_match is not None
        ),
    )


def _condition_of(match: Any) -> NameCondition:
    for kind in _TEXT_CONDITIONS:
        if (text := getattr(match, kind, None)) is not None:
            return NameCondition(kind, text.lower())
    for kind in ("or", "and"):
        if (parts := getattr(match, f"{kind}_", None)) is not None:
            return NameCondition(kind, "", tuple(map(_condition_of, parts)))
    return NameCondition("regex", match.regex)


def _prices_of_model_data(model: Any) -> list[Price]:
    prices: list[Price] = []
    price_data: Any = model.prices
    if not isinstance(price_data, list):
        prices += _tiered_prices(price_data, "")
    else:
        for conditional in cast("list[Any]", price_data):
            since = getattr(conditional.constraint, "start_date", None)
            if conditional.constraint is None or since is not None:
                prices += _tiered_prices(conditional.prices, since.isoformat() if since else "")
    for variant in model.price_variants or ():
        if dict(variant.when) == {"speed": "fast"}:
            since = getattr(variant.constraint, "start_date", None)
            prices += _tiered_prices(variant.prices, since.isoformat() if since else "", fast=True)
    return prices


def _tiered_prices(price: Any, since: str, *, fast: bool = False) -> Iterator[Price]:
    """Yield the prices of one price list: the base rates, then the rates of each context tier."""
    fields = [getattr(price, f"{name}_mtok", None) for name in _PRICE_FIELDS]
    if fields[0] is None or fields[1] is None:
        return
    starts = {tier.start for field in fields for tier in getattr(field, "tiers", ())}
    search_price = getattr(price, "web_searches_kcount", None)
    per_thousand = search_price if isinstance(search_price, Decimal) else _DEFAULT_SEARCH_PRICE
    for start in (0, *sorted(starts)):
        input_price, output_price, cache_write_5m, cache_write_1h, cache_read = (
            _price_at(field, start) for field in fields
        )
        input_price, output_price = input_price or Decimal(0), output_price or Decimal(0)
        rates = Rates(
            _micro_dollars(input_price),
            _micro_dollars(output_price),
            _micro_dollars(input_price * _CACHE_5M_FACTOR if cache_write_5m is None else cache_write_5m),
            _micro_dollars(input_price * _CACHE_1H_FACTOR if cache_write_1h is None else cache_write_1h),
            _micro_dollars(input_price * _CACHE_READ_FACTOR if cache_read is None else cache_read),
            _micro_dollars(per_thousand * 1000),
        )
        yield Price(rates, since, start, fast)


def _price_at(field: Any, start: int) -> Decimal | None:
    """Return the price of responses with a context above `start`."""
    if field is None or isinstance(field, Decimal):
        return field
    price: Decimal = field.base
    for tier in field.tiers:
        if tier.start <= start:
            price = tier.price
    return price


def _micro_dollars(dollars: Decimal) -> int:
    return round(dollars * MICRO_DOLLARS_PER_DOLLAR)


_MAX_FILE_SIZE: Final = 1 << 20
_LONG_CONTEXT: Final = 200_000
_PRICE_KEYS: Final = ("input", "output", "cache_write_5m", "cache_write_1h", "cache_read", "web_search")
_VARIANTS: Final = {"fast": (0, True), "long": (_LONG_CONTEXT, False)}
_INPUT_FACTORS: Final = {"cache_write_5m": Decimal("1.25"), "cache_write_1h": Decimal(2), "cache_read": Decimal("0.1")}
_SEARCHES_PER_THOUSAND: Final = Decimal(10)
_MAX_PRICE: Final = Decimal(1_000_000)


def load_price_table(path: str = "") -> PriceTable:
    """Return a price table from a price file: the one at `path`, or the one in the config file.

    Raises:
        BadRequest: The price file is invalid.
        Unreadable: The price file cannot be read.
    """
    from steno.store.config import read_config

    price_path = path or read_config().prices
    return PriceTable(read_price_file(price_path)) if price_path else PriceTable()


def read_price_file(path: str) -> list[tuple[str, tuple[Price, ...]]]:
    """Return the prices in a price file by model name.

    Raises:
        BadRequest: The file is not a valid price file.
        Unreadable: The file cannot be read.
    """
    import tomllib

    problems: list[Problem] = []
    raw = peek(path, _MAX_FILE_SIZE, problems)
    if raw is None:
        reason = problems[0].message if problems else "no such file"
        raise Unreadable(f"cannot read price file {path}: {reason.lower()}")
    try:
        document = tomllib.loads(raw.decode(), parse_float=Decimal)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadRequest(f"{path} is not a valid price file: {error}") from error
    models = document.get("models", {})
    if not isinstance(models, dict) or set(document) - {"models"}:
        raise BadRequest(f'{path}: only [models."name"] tables are supported')
    tables = cast("dict[str, Any]", models)
    return [(name, _prices_in_table(f"{path}, {name}", value)) for name, value in tables.items()]


def _prices_in_table(location: str, value: Any) -> tuple[Price, ...]:
    entries = cast("list[Any]", value) if isinstance(value, list) else [value]
    prices: list[Price] = []
    for entry in entries:
        if not isinstance(entry, dict):
            raise BadRequest(f"{location}: must be a table")
        table = cast("dict[str, Any]", entry)
        since = table.get("since", "")
        since = since.isoformat() if hasattr(since, "isoformat") else since
        if not isinstance(since, str):
            raise BadRequest(f"{location}: since must be a date, for example 2026-03-13")
        base_table = {key: item for key, item in table.items() if key not in (*_VARIANTS, "since")}
        prices.append(Price(_rates_in_table(location, base_table), since[:10]))
        for variant, (above, fast) in _VARIANTS.items():
            if variant in table:
                variant_table = table[variant]
                if not isinstance(variant_table, dict):
                    raise BadRequest(f"{location}: {variant} must be a table")
                rates = _rates_in_table(f"{location}, {variant}", cast("dict[str, Any]", variant_table))
                prices.append(Price(rates, since[:10], above, fast))
    return tuple(prices)


def _rates_in_table(location: str, table: dict[str, Any]) -> Rates:
    for key in table:
        if key not in _PRICE_KEYS:
            raise BadRequest(f"{location}: unknown key {key}", hint=f"Known keys: {', '.join(_PRICE_KEYS)}.")
    values = {key: _dollar_amount(location, key, value) for key, value in table.items()}
    if "input" not in values or "output" not in values:
        raise BadRequest(f"{location}: input and output are required")
    for key, factor in _INPUT_FACTORS.items():
        values.setdefault(key, values["input"] * factor)
    searches = values.pop("web_search", _SEARCHES_PER_THOUSAND) * 1000
    micro = {key: round(value * MICRO_DOLLARS_PER_DOLLAR) for key, value in values.items()}
    return Rates(
        micro["input"],
        micro["output"],
        micro["cache_write_5m"],
        micro["cache_write_1h"],
        micro["cache_read"],
        round(searches * MICRO_DOLLARS_PER_DOLLAR),
    )


def _dollar_amount(location: str, key: str, value: Any) -> Decimal:
    if isinstance(value, Decimal | int) and not isinstance(value, bool):
        number = Decimal(value)
        if number.is_finite() and 0 <= number <= _MAX_PRICE:
            return number
    raise BadRequest(f"{location}: {key} must be a number of dollars")
