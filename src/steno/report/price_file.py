"""A file of one's own prices, which count more than those that come with steno.

[models."claude-opus-4-6"]       # a name, or the beginning of names: "glm-*"
input = 5.00                     # dollars for a million tokens
output = 25.00
cache_write_5m = 6.25            # else 1.25 times input
cache_write_1h = 10.00           # else twice input
cache_read = 0.50                # else a tenth of input
web_search = 10.00               # for a thousand; else 10

[models."claude-opus-4-6".fast]  # the same keys, for answers at the price of speed
[models."claude-opus-4-6".long]  # and for responses that read more than 200,000 tokens

A model whose price changed has a list, `[[models."name"]]`, each with `since = 2026-03-13`.
"""

from decimal import Decimal
from typing import Any, Final, cast

from steno.errors import BadRequest, Unreadable
from steno.report.prices import Price, Prices, Rates
from steno.store.found import Problem, peek

__all__ = ["chosen_prices", "read_prices"]

_MOST: Final = 1 << 20
_LONG: Final = 200_000
_NUMBERS: Final = (
    "input",
    "output",
    "cache_write_5m",
    "cache_write_1h",
    "cache_read",
    "web_search",
)
_PARTS: Final = {"fast": (0, True), "long": (_LONG, False)}
_OF_INPUT: Final = {
    "cache_write_5m": Decimal("1.25"),
    "cache_write_1h": Decimal(2),
    "cache_read": Decimal("0.1"),
}
_SEARCHES: Final = Decimal(10)
_MICRO: Final = 1_000_000
_HIGHEST: Final = Decimal(1_000_000)


def chosen_prices(path: str = "") -> Prices:
    """Return what models cost: by the file at a path, else by the one that the config file names.

    Raises:
        BadRequest: that file is broken.
        Unreadable: it cannot be read.
    """
    from steno.store.config import read_config

    chosen = path or read_config().prices
    return Prices(read_prices(chosen)) if chosen else Prices()


def read_prices(path: str) -> list[tuple[str, tuple[Price, ...]]]:
    """Return the prices in a file, by the names of models.

    Raises:
        BadRequest: it is not such a file.
        Unreadable: it cannot be read.
    """
    import tomllib

    problems: list[Problem] = []
    raw = peek(path, _MOST, problems)
    if raw is None:
        said = problems[0].message if problems else "no such file"
        raise Unreadable(f"cannot read the prices in {path}: {said.lower()}")
    try:
        document = tomllib.loads(raw.decode(), parse_float=Decimal)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadRequest(f"{path} is no price file: {error}") from error
    models = document.get("models", {})
    if not isinstance(models, dict) or set(document) - {"models"}:
        raise BadRequest(f'{path}: only tables [models."name"] mean something')
    named = cast("dict[str, Any]", models)
    return [(name, _prices(f"{path}, {name}", value)) for name, value in named.items()]


def _prices(where: str, value: Any) -> tuple[Price, ...]:
    lists = cast("list[Any]", value) if isinstance(value, list) else [value]
    prices: list[Price] = []
    for each in lists:
        if not isinstance(each, dict):
            raise BadRequest(f"{where}: must be a table")
        table = cast("dict[str, Any]", each)
        since = table.get("since", "")
        since = since.isoformat() if hasattr(since, "isoformat") else since
        if not isinstance(since, str):
            raise BadRequest(f"{where}: since must be a day, such as 2026-03-13")
        plain = {key: item for key, item in table.items() if key not in (*_PARTS, "since")}
        prices.append(Price(_rates(where, plain), since[:10]))
        for part, (above, fast) in _PARTS.items():
            if part in table:
                inner = table[part]
                if not isinstance(inner, dict):
                    raise BadRequest(f"{where}: {part} must be a table")
                rates = _rates(f"{where}, {part}", cast("dict[str, Any]", inner))
                prices.append(Price(rates, since[:10], above, fast))
    return tuple(prices)


def _rates(where: str, table: dict[str, Any]) -> Rates:
    for key in table:
        if key not in _NUMBERS:
            raise BadRequest(
                f"{where}: {key} means nothing", hint=f"there is {', '.join(_NUMBERS)}"
            )
    values = {key: _number(where, key, value) for key, value in table.items()}
    if "input" not in values or "output" not in values:
        raise BadRequest(f"{where}: input and output must be there")
    for key, factor in _OF_INPUT.items():
        values.setdefault(key, values["input"] * factor)
    searches = values.pop("web_search", _SEARCHES) * 1000
    micro = {key: round(value * _MICRO) for key, value in values.items()}
    return Rates(
        micro["input"],
        micro["output"],
        micro["cache_write_5m"],
        micro["cache_write_1h"],
        micro["cache_read"],
        round(searches * _MICRO),
    )


def _number(where: str, key: str, value: Any) -> Decimal:
    if isinstance(value, Decimal | int) and not isinstance(value, bool):
        number = Decimal(value)
        if number.is_finite() and 0 <= number <= _HIGHEST:
            return number
    raise BadRequest(f"{where}: {key} must be a number of dollars")
