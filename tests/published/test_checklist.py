"""Every point of the checklist has tests, and they exist."""

import re
from collections import Counter
from pathlib import Path

from tests.published.checklist import ITEMS, SECTIONS

from tools import make_checklist_docs

ROOT = Path(__file__).parents[2]
COUNTS = {"12.1": 5, "12.2": 5, "12.3": 5, "12.4": 5, "12.5": 5, "12.6": 4, "12.7": 4, "12.8": 5}


def test_every_point_of_the_document_is_there_in_its_order() -> None:
    numbers = [item.number for item in ITEMS]
    assert numbers == [f"{section}.{place}" for section, count in COUNTS.items() for place in range(1, count + 1)]
    assert len(numbers) == 38
    assert list(SECTIONS) == list(COUNTS)


def test_every_point_names_tests_that_exist() -> None:
    texts: dict[str, str] = {}
    for item in ITEMS:
        assert item.tests, item.number
        for name in item.tests:
            file, _, test = name.partition("::")
            if file not in texts:
                texts[file] = (ROOT / file).read_text("utf-8")
            assert re.search(rf"^(?:async )?def {re.escape(test)}\(", texts[file], re.MULTILINE), name


def test_no_test_stands_for_many_points() -> None:
    named = Counter(name for item in ITEMS for name in item.tests)
    assert [name for name, count in named.items() if count > 2] == []


def test_the_page_says_what_the_table_says() -> None:
    text = make_checklist_docs.PAGE.read_text("utf-8")
    assert text == make_checklist_docs.build()
    for item in ITEMS:
        assert f"| {item.number} |" in text
