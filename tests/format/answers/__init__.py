"""The tables of recorded answers: what every reader and writer of the format makes of its input.

    python -m tests.format.answers

writes them anew and prints what is different. Read that before you commit it.
"""

import sys
from collections.abc import Callable, Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Final

from tests.format.answers import dialects, names, pieces, records, small_files, written

__all__ = ["TABLES", "recorded"]

Answers = Callable[[], Iterator[tuple[str, str]]]
TABLES: Final[dict[str, Answers]] = {
    "pieces": pieces.answers,
    "records": records.answers,
    "dialects": dialects.answers,
    "names": names.answers,
    "small_files": small_files.answers,
    "written": written.answers,
}
"""What gives the answers of each table as they are now."""


def recorded(table: str) -> list[str]:
    """Return the lines of a table as it was written."""
    return _path(table).read_text(encoding="utf-8").removesuffix("\n").split("\n")


def told(table: str) -> list[str]:
    """Return the lines of a table as it is now."""
    lines = [f"{name}\n    {answer}" for name, answer in TABLES[table]()]
    return "\n".join(lines).split("\n")


def record() -> None:
    """Write all tables anew, and print what is different."""
    for table in TABLES:
        before = recorded(table) if _path(table).exists() else []
        after = told(table)
        _path(table).write_text("\n".join(after) + "\n", encoding="utf-8")
        differing = unified_diff(before, after, table, table, "", "", 2)
        sys.stdout.writelines(f"{line}\n" for line in differing)


def _path(table: str) -> Path:
    return Path(__file__).with_name(f"{table}.txt")
