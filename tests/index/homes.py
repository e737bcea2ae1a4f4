"""An index of one project folder, and the same folder read at once."""

from pathlib import Path
from typing import Any

from tests.index.dump import dump

from steno.index.database import IndexLocation
from steno.index.sync.updater import sync

__all__ = ["NAME", "as_if_at_once", "home"]

NAME = "00000000-0000-4000-8000-00000000000{}.jsonl"


def home(root: Path, name: str = "index") -> IndexLocation:
    return IndexLocation(str(root.parent.parent / name), (str(root.parent),))


def as_if_at_once(root: Path) -> dict[str, Any]:
    fresh = home(root, "fresh")
    sync(fresh)
    return dump(fresh)
