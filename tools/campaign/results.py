"""Stores the last figure and date of each promise.

The figures are stored in `docs/reference/promises.json`; an item that is not run keeps its last figure.
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
    """Stored result of one item."""

    figure: str
    passed: bool
    date: str


@dataclass(frozen=True, slots=True)
class Figure:
    """Result of a run as text, and whether the promise held."""

    text: str
    passed: bool


def load(path: Path = FILE) -> dict[str, Kept]:
    """Return the stored results by item ID."""
    if not path.exists():
        return {}
    return json.loads(path.read_text(encoding="utf-8"))


def record(figures: dict[str, Figure], path: Path = FILE) -> None:
    """Store new figures with the date of today, and keep all others."""
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
