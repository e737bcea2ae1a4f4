"""The page about the published descriptions names tests that exist."""

import re
from pathlib import Path

from tests.published.files import FILES

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "published-descriptions.md"


def test_every_row_is_shown_by_a_file_or_a_test() -> None:
    names: list[str] = []
    in_table = False
    for line in PAGE.read_text().splitlines():
        in_table = line.startswith("|") and (in_table or "Shown by" in line)
        if in_table:
            names += re.findall(r"`(\w+)`", line.rstrip("| ").rpartition("|")[2])
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert [name for name in names if name not in FILES and f"def {name}" not in tests] == []
    assert set(FILES) - set(names) == set()


def test_each_of_the_five_descriptions_has_a_table() -> None:
    parts = PAGE.read_text().split("\n## ")[2:]
    assert len(parts) == 5
    assert all(part.count("\n|") > 10 for part in parts)
