"""Sessions of an explorer: by their titles, and made for one test."""

import re
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from tests.builders import Session
from tests.web.explorer import Explorer, explorer


def session_called(found: Explorer, title: str) -> str:
    """Return the id of the session whose title begins so."""
    with found.house.index() as index:
        asked = "SELECT id FROM sessions WHERE agent = '' AND title LIKE ? || '%'"
        row = index.connection.execute(asked, (title,)).fetchone()
    assert row is not None, title
    return row[0]


def written(made: Session, folder: Path) -> Path:
    """Write a session below a folder, and return where its own file lies."""
    first: Path | None = None
    for name, data in made.files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        first = first or path
    assert first is not None
    return first


def last_record(path: Path) -> float:
    """Return the time of the last record of a file, in seconds."""
    stamps = re.findall(rb'"timestamp":"([^"]+)"', path.read_bytes())
    return datetime.fromisoformat(stamps[-1].decode()).timestamp()


@contextmanager
def exploring(folder: Path, *made: Session) -> Generator[tuple[Explorer, list[Path]]]:
    """Give an explorer over some sessions, and where they lie."""
    root = folder / "config"
    paths = [written(each, root) for each in made]
    with explorer(str(folder / "index"), str(root)) as found:
        yield found, paths
