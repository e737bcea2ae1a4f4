"""Looks prices of models up in a catalogue: the one that comes with steno, or a newer one.

`model_prices.json` is generated from genai-prices by `tools/make_prices.py`, because that package brings
seven others along. Where it is installed all the same (the extra `prices`) and newer, it counts.
"""

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from steno.report.prices import CATALOGUE, Price

__all__ = ["Clause", "ModelPrices", "PriceCatalogue", "ProviderPrices", "bundled", "look_up"]

# How clouds decorate the names: eu.anthropic.claude-x-v1:0, anthropic/claude-x, claude-x[1m].
_CORE: Final = re.compile(r"(?:^|[./])(claude-[a-z0-9.@-]*?)(?:-v\d+(?::\d+)?)?(?:\[[^\]]*\])?$")
_COMPACT_DATE: Final = re.compile(r"-(20\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?=[-:]|$)")
_LONGEST_NAME: Final = 1_000


class Clause(msgspec.Struct, frozen=True, array_like=True):
    """A condition on the name of a model."""

    kind: str
    """One of starts_with, ends_with, contains, equals, regex, or, and."""
    text: str = ""
    parts: "tuple[Clause, ...]" = ()

    def matches(self, name: str) -> bool:
        """Whether a name in lower case meets the condition."""
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
    """The prices of the models whose names meet a condition."""

    match: Clause
    prices: tuple[Price, ...]


class ProviderPrices(msgspec.Struct, frozen=True):
    """The models of one provider; the first that matches counts."""

    id: str
    match: Clause
    models: tuple[ModelPrices, ...]

    def find(self, name: str) -> ModelPrices | None:
        """Return the model of a name in lower case; dates may be written without dashes."""
        for each in dict.fromkeys((name, _COMPACT_DATE.sub(r"-\1-\2-\3", name))):
            for model in self.models:
                if model.match.matches(each):
                    return model
        return None


class PriceCatalogue(msgspec.Struct, frozen=True):
    """Prices of models by provider."""

    version: str
    """The version of genai-prices that it was made from."""
    providers: tuple[ProviderPrices, ...]
    source: str = ""


def look_up(models: Iterable[str]) -> dict[str, list[Price]]:
    """Return all that is known of each model; nothing for one that is not known."""
    catalogue = _newest()
    return {model: _find(catalogue.providers, model) for model in models}


def bundled() -> PriceCatalogue:
    """Return the catalogue that comes with steno."""
    with open(CATALOGUE, "rb") as file:
        return msgspec.json.decode(file.read(), type=PriceCatalogue)


def _newest() -> PriceCatalogue:
    from importlib.metadata import PackageNotFoundError, version

    catalogue = bundled()
    try:
        installed = version("genai-prices")
    except PackageNotFoundError:
        return catalogue
    if _release_number(installed) <= _release_number(catalogue.version):
        return catalogue
    try:
        from steno.report.price_import import import_catalogue

        return import_catalogue()
    except (ImportError, AttributeError):
        # A release with another shape, or without its own dependencies.
        return catalogue


def _release_number(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:4]))


def _find(providers: Iterable[ProviderPrices], model: str) -> list[Price]:
    name = model.lower()
    if len(name) > _LONGEST_NAME:
        return []
    core = _CORE.search(name)
    makers = [each for each in providers if each.id == "anthropic"]
    others = [each for each in providers if each.match.matches(name)]
    for provider, asked in (
        *((maker, asked) for maker in makers for asked in (name, *((core[1],) if core else ()))),
        *((other, name) for other in others),
    ):
        found = provider.find(asked)
        if found is not None:
            return list(found.prices)
    return []
