"""The catalogue of prices that comes with steno, held against the package it is made from."""

import importlib.metadata
from typing import Any

import pytest
from genai_prices.data import providers

from steno.report import price_sources
from steno.report.price_sources import ModelPrices, NameCondition, PriceCatalogue, ProviderPrices, look_up_prices
from steno.report.pricing import Price, Rates

PACKAGE: list[Any] = list(providers)
IDS = sorted({model.id for provider in PACKAGE for model in provider.models})
SHAPES = [
    *("{}", "{}-20260131", "{}-2026-01-31", "{}@20260131", "{}[1m]", "{}-v1:0", "x{}", "{}-fast"),
    *("us.anthropic.{}-v2:0", "anthropic/{}", "openrouter/{}", "{}-20269931", ""),
]


def found_by_the_package(name: str) -> Any:
    """Return the model that genai-prices itself finds: Anthropic's first, then by provider."""
    core = price_sources._CLAUDE_NAME.search(name.lower())
    for provider in PACKAGE:
        if provider.id == "anthropic":
            for asked in (name, *((core[1],) if core else ())):
                if (model := provider.find_model(asked)) is not None:
                    return model
    for provider in PACKAGE:
        if provider.model_match is not None and provider.model_match.is_match(name.lower()):
            model = provider.find_model(name)
            if model is not None:
                return model
    return None


@pytest.mark.parametrize("shape", SHAPES)
def test_every_model_of_the_package_has_the_same_prices(shape: str) -> None:
    names = [shape.format(name) for name in [*IDS, "fern-9", "CLAUDE-OPUS-4-5"]]
    expected = {
        name: price_sources._prices_of_model_data(model) if (model := found_by_the_package(name)) else []
        for name in names
    }
    assert look_up_prices(names) == expected


def test_most_models_of_anthropic_have_a_price() -> None:
    names = [model.id for model in PACKAGE[0].models]
    assert PACKAGE[0].id == "anthropic"
    assert [name for name, prices in look_up_prices(names).items() if not prices] == []


NEWER = PriceCatalogue(
    "999.0",
    (
        ProviderPrices(
            "anthropic",
            NameCondition("contains", "claude"),
            (ModelPrices(NameCondition("equals", "claude-9"), (Price(Rates(1, 2, 3, 4, 5, 6)),)),),
        ),
    ),
)


@pytest.mark.parametrize(("version", "is_used"), [("0.0.1", False), ("0.10.0", True), ("1", True)])
def test_an_installed_package_counts_when_it_is_newer(
    monkeypatch: pytest.MonkeyPatch, version: str, *, is_used: bool
) -> None:
    monkeypatch.setattr(importlib.metadata, "version", {"genai-prices": version}.__getitem__)
    monkeypatch.setattr(price_sources, "import_catalogue", lambda: NEWER)
    assert bool(look_up_prices(["claude-9"])["claude-9"]) == is_used


@pytest.mark.parametrize("error", [ImportError("no pydantic"), AttributeError("no model_match")])
def test_a_package_that_cannot_be_read_is_passed_over(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(importlib.metadata, "version", {"genai-prices": "999"}.__getitem__)
    monkeypatch.setattr(price_sources, "import_catalogue", fail)
    assert look_up_prices(["claude-opus-4-5"])["claude-opus-4-5"]


def test_a_name_of_any_length_costs_little() -> None:
    name = "claude-" + "9." * 500_000
    assert look_up_prices([name]) == {name: []}
