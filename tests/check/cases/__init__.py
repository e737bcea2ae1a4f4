"""The tables of recorded answers: small files by what is wrong with them, and what is said of each.

    python -m tests.check.cases

writes all answers anew and prints what is different. Read that before you commit it.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Protocol

from tests.check.cases import (
    agents,
    bytes_of_lines,
    chance,
    compactions,
    contents,
    drifts,
    folders,
    identity,
    responses,
    structure,
    times,
    tool_calls,
    wishes,
)

__all__ = ["TABLES", "groups", "recorded"]

_MODULES: Final = (
    structure,
    contents,
    responses,
    tool_calls,
    compactions,
    times,
    identity,
    agents,
    bytes_of_lines,
    wishes,
    drifts,
    folders,
    chance,
)


class Told(Protocol):
    """Something that is asked about."""

    @property
    def name(self) -> str:
        """What it is called within its group."""
        ...

    def said(self) -> str:
        """Return all that is said of it."""
        ...


TABLES: Final = {module.__name__.rpartition(".")[2]: module.cases for module in _MODULES}
"""What makes the cases of each table."""


def groups(table: str) -> Mapping[str, Sequence[Told]]:
    """Return the cases of a table by group."""
    return TABLES[table]()


def said(table: str) -> Iterator[tuple[str, str]]:
    """Yield each case of a table, named with its group, and what is said of it now."""
    for group, cases in groups(table).items():
        for case in cases:
            yield f"{group}: {case.name}", case.said()


def recorded(table: str) -> dict[str, str]:
    """Return what was said of each case when the table was written."""
    text = _path(table).read_text(encoding="utf-8")
    parts = (part.partition("\n") for part in text.removeprefix("== ").split("\n\n== "))
    return {name: words.rstrip("\n") for name, _, words in parts}


def record() -> None:
    """Write all tables anew, and print what is different."""
    with TemporaryDirectory() as home:
        names = ("HOME", "CLAUDE_CONFIG_DIR", "STENO_HOME")
        os.environ.update(dict.fromkeys(names, home), TZ="UTC")
        _record()


def _record() -> None:
    for table in TABLES:
        path = _path(table)
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        after = "\n\n".join(f"== {name}\n{words}" for name, words in said(table)) + "\n"
        path.write_text(after, encoding="utf-8")
        differing = unified_diff(before.splitlines(), after.splitlines(), table, table, "", "", 3)
        sys.stdout.writelines(f"{line}\n" for line in differing)


def _path(table: str) -> Path:
    return Path(__file__).with_name(f"{table}.txt")
