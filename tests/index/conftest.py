"""A folder of sessions, and an index of it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from steno.demo.recording import write_demo
from steno.index.database import IndexLocation
from steno.index.sync.updater import sync


@pytest.fixture(scope="session")
def demo_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's sessions; not to be changed."""
    root = tmp_path_factory.mktemp("sessions")
    write_demo(str(root))
    return root


@pytest.fixture
def make_index(tmp_path: Path) -> Callable[[Path], IndexLocation]:
    """Make an index of a folder."""

    def make(root: Path, name: str = "index") -> IndexLocation:
        home = IndexLocation(str(tmp_path / name), (str(root),))
        sync(home)
        return home

    return make


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty project folder."""
    folder = tmp_path / "projects" / "-home-ada"
    folder.mkdir(parents=True)
    return folder
