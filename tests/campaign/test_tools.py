"""The tools of the campaign: mutants, intervals, figures that are kept, sizes."""

import json
from pathlib import Path

import pytest
from tests.campaign import size
from tools.campaign import page
from tools.campaign.items import FUZZ, ITEMS
from tools.campaign.results import ROOT, Figure, load, record
from tools.mutation.__main__ import wilson
from tools.mutation.operators import mutants

SOURCE = b'''"""A docstring."""
from x import y
LIMIT = 3
def judge(a: int, b):
    """Another."""
    if a < LIMIT and b:
        return a + 1
    b.sync()
    raise ValueError("a text for people to read")
'''


def changed(source: bytes) -> set[str]:
    return {f"{mutant.before.strip()} -> {mutant.after.strip()}" for mutant in mutants("m.py", source)}


def test_every_kind_of_change_is_made_and_every_mutant_compiles() -> None:
    found = changed(SOURCE)
    assert {
        "3 -> 4",
        "3 -> 2",
        "< -> <=",
        "< -> >=",
        "a < LIMIT and b -> ((a < LIMIT) or b)",
        "a < LIMIT and b -> (b)",
        "a < LIMIT and b -> ((a < LIMIT))",
        "a + 1 -> (a - 1)",
        "a + 1 -> a",
        "a + 1 -> None",
        "b.sync() -> pass",
        'raise ValueError("a text for people to read") -> pass',
    } <= found
    for mutant in mutants("m.py", SOURCE):
        made = mutant.apply(SOURCE)
        assert made != SOURCE
        compile(made, "m.py", "exec")


def test_texts_annotations_and_imports_are_left_alone() -> None:
    assert not any("docstring" in one or "people" in one.split(" -> ")[1] for one in changed(SOURCE))
    assert changed(b'import os\n__all__ = ["a"]\nx: "int"\n') == set()
    assert changed(b'say = "three words here"\n') == set()
    assert changed(b'kind = "user"\n') == {"\"user\" -> 'XX'"}


def test_a_mutant_knows_whether_it_runs_at_import() -> None:
    by_line = {mutant.line: mutant.in_function for mutant in mutants("m.py", SOURCE)}
    assert (by_line[3], by_line[6], by_line[8]) == (False, True, True)


def test_the_interval_is_wilsons() -> None:
    assert wilson(0, 0) == (0.0, 1.0)
    low, high = wilson(90, 100)
    assert (round(low, 3), round(high, 3)) == (0.826, 0.945)
    assert wilson(10, 10)[1] == pytest.approx(1.0)


def test_an_item_that_is_not_run_keeps_its_figure(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    record({"A1": Figure("one", passed=True), "A2": Figure("two", passed=True)}, file)
    old = json.loads(file.read_text())
    old["A1"]["date"] = "2001-01-01"
    file.write_text(json.dumps(old))
    record({"A2": Figure("three", passed=False)}, file)
    known = load(file)
    assert known["A1"] == {"figure": "one", "passed": True, "date": "2001-01-01"}
    assert (known["A2"]["figure"], known["A2"]["passed"]) == ("three", False)
    assert load(tmp_path / "none.json") == {}
    assert [path.name for path in tmp_path.iterdir()] == ["figures.json"]


def test_every_row_of_the_tables_is_an_item_once() -> None:
    counts = {"A": 10, "B": 13, "C": 7, "D": 15}
    wanted = [f"{letter}{at}" for letter, most in counts.items() for at in range(1, most + 1)]
    assert [item.id for item in ITEMS] == wanted


def test_the_tests_of_every_item_are_there() -> None:
    missing = {
        name for item in ITEMS for name in item.tests if name != FUZZ and not (ROOT / name.partition("::")[0]).exists()
    }
    # Written beside this; the item is skipped, and said to be, until it is there.
    assert missing <= {"tests/faults/test_power_loss.py"}
    for item in ITEMS:
        for name in item.tests:
            path, _, test = name.partition("::")
            if test:
                assert f"def {test}(" in (ROOT / path).read_text(), name


def test_the_page_is_made_from_the_figures() -> None:
    built = page.build()
    assert all(f"| {item.id} | {item.promise} |" in built for item in ITEMS)
    assert page.PAGE.read_text(encoding="utf-8") == built


def test_a_size_chooses_items_that_are_spread_and_ends_with_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(size, "SIZE", 0.1)
    assert size.sized(1000) == 100
    assert size.sized(10, least=5) == 5
    assert size.sized(3, least=5) == 3
    chosen = size.spread(range(1000))
    assert (len(chosen), chosen[-1], len(set(chosen))) == (100, 999, 100)
    assert size.stride() == 9
    monkeypatch.setattr(size, "SIZE", 1.0)
    assert size.spread([1, 2, 3]) == [1, 2, 3]
    assert size.stride() == 1
