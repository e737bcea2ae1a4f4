"""Every hole that is known has a test of its own, and the table of them leaves none out."""

import ast
from pathlib import Path

from tests.permissions.known_holes import EVERY, table

_TESTS = Path(__file__).parent.parent
_MARKS = ("test_cve_", "test_issue_", "test_ghsa_")


def _functions(path: Path, marks: tuple[str, ...] = ()) -> set[str]:
    """Return the functions of a file; with marks, nothing of a file that holds none of them."""
    text = path.read_text(encoding="utf-8")
    if marks and not any(mark in text for mark in marks):
        return set()
    tree = ast.parse(text)
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_the_table_has_every_hole_of_the_list_and_no_other() -> None:
    listed = [name.strip() for name in EVERY.replace("\n", " ").split(",")]
    assert len(listed) == len(set(listed)) == 67
    assert set(table()) == set(listed)


def test_every_hole_has_a_test_that_exists() -> None:
    for hole, tests in table().items():
        assert tests, hole
        for test in tests:
            path, _, name = test.partition("::")
            assert name in _functions(_TESTS / path), f"{hole}: {test}"


def test_every_test_that_bears_the_number_of_a_hole_is_in_the_table() -> None:
    named = {test.partition("::")[2] for tests in table().values() for test in tests}
    found = {name for path in _TESTS.rglob("test_*.py") for name in _functions(path, _MARKS) if name.startswith(_MARKS)}
    assert found <= named
