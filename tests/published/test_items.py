"""Each item of the descriptions names a test that exists, and the reference lists them all."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from tests.published.items import DOCUMENTS, ITEMS
from tests.published.test_page import PAGE

from tools import make_published_items

ROOT = Path(__file__).parents[2]
LEAST = {"000": 87, "001": 150, "002": 60, "003": 55, "004": 70}


@cache
def functions(path: str) -> set[str]:
    """Return the tests in a file."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_ids_are_unique() -> None:
    assert [item for item, number in Counter(each.id for each in ITEMS).items() if number > 1] == []


def test_all_of_each_document_is_there() -> None:
    counts = Counter(each.id.partition(".")[0] for each in ITEMS)
    assert set(counts) == set(DOCUMENTS)
    assert {name: number for name, number in counts.items() if number < LEAST[name]} == {}


def test_every_item_names_a_test_that_exists(request: pytest.FixtureRequest) -> None:
    collected = {item.nodeid for item in request.session.items}
    wholly = {node.partition("::")[0] for node in collected}
    chosen = request.config.option.keyword or any("::" in each for each in request.config.args)
    missing: list[str] = []
    for each in ITEMS:
        path, _, name = each.test.partition("::")
        if name.partition("[")[0] not in functions(path):
            missing.append(each.test)
        if not chosen and path in wholly and each.test not in collected:
            missing.append(each.test)
    assert missing == []


def test_what_differs_is_one_sentence() -> None:
    odd = [each.id for each in ITEMS if each.differs and not re.search(r"^[`A-Z0-9].*\.$", each.differs)]
    assert odd == []


def test_the_reference_lists_every_item() -> None:
    text = make_published_items.PAGE.read_text("utf-8")
    assert [each.id for each in ITEMS if f"| {each.id} |" not in text] == []
    assert "published-items.md" in PAGE.read_text("utf-8")
