"""The list of mutants that cannot be noticed names lines of the present source."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]


def test_every_equivalent_mutant_is_of_a_line_that_is_there() -> None:
    listed = tomllib.loads((ROOT / "tools" / "mutation" / "equivalent.toml").read_text("utf-8"))["mutant"]
    assert [(one["path"], one["line"]) for one in listed if one["line"] not in lines_of(one["path"])] == []


def test_every_equivalent_mutant_is_listed_once_with_its_reason() -> None:
    listed = tomllib.loads((ROOT / "tools" / "mutation" / "equivalent.toml").read_text("utf-8"))["mutant"]
    assert len({(one["path"], one["line"], one["before"], one["after"]) for one in listed}) == len(listed)
    assert all(one["reason"] for one in listed)


@cache
def lines_of(path: str) -> frozenset[str]:
    """Return the lines of a module without their indentation; none where it is gone."""
    source = ROOT / path
    return (
        frozenset(line.strip() for line in source.read_text("utf-8").split("\n")) if source.is_file() else frozenset()
    )
