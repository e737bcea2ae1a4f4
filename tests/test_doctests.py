"""Every example in the package's own words runs."""

import doctest
import importlib
import pkgutil

import pytest

import steno

MODULES = sorted(
    module.name for module in pkgutil.walk_packages(steno.__path__, "steno.") if not module.name.endswith("__main__")
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_each_module_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder()
    examples = [
        example
        for name in MODULES
        for found in finder.find(importlib.import_module(name))
        for example in found.examples
    ]
    assert len(examples) > 20
