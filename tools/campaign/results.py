"""Keeps the last figure and date of each promise, and writes the page that shows them.

The figures lie in `docs/reference/promises.json`; an item that is not run keeps its last figure.
"""

import json
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypedDict

ROOT: Final = Path(__file__).resolve().parent.parent.parent
FILE: Final = ROOT / "docs" / "reference" / "promises.json"


class Kept(TypedDict):
    """What the file holds of one item."""

    figure: str
    passed: bool
    date: str


@dataclass(frozen=True, slots=True)
class Figure:
    """What a run measured, in words, and whether the promise held."""

    text: str
    passed: bool


def load(path: Path = FILE) -> dict[str, Kept]:
    """Return what is known of every item, by its id."""
    if not path.exists():
        return {}
    return json.loads(path.read_text(encoding="utf-8"))


def record(figures: dict[str, Figure], path: Path = FILE) -> None:
    """Keep new figures with today's date, and leave all others as they are."""
    known = load(path)
    today = datetime.now(UTC).date().isoformat()
    for name, figure in figures.items():
        known[name] = {"figure": figure.text, "passed": figure.passed, "date": today}
    text = json.dumps(dict(sorted(known.items())), indent=2, ensure_ascii=False) + "\n"
    _replace(path, text)


def _replace(path: Path, text: str) -> None:
    with tempfile.NamedTemporaryFile("w", dir=path.parent, encoding="utf-8", delete=False, suffix=".tmp") as new:
        new.write(text)
    Path(new.name).chmod(0o644)
    Path(new.name).replace(path)
