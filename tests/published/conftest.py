"""The examples of the documents on a disk, and an explorer over them."""

from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.conftest import NOW
from tests.published.documented import Open
from tests.published.examples import EXAMPLES
from tests.published.surfaces import place
from tests.web.explorer import Explorer, explorer

from steno.session.session import Session
from steno.store.discovery import discover_file
from steno.store.session_lookup import open_file_session


class OnDisk(NamedTuple):
    """Where the examples lie."""

    root: Path
    paths: dict[str, Path]
    explorer: Explorer


@pytest.fixture(scope="module")
def on_disk(tmp_path_factory: pytest.TempPathFactory) -> Generator[OnDisk]:
    folder = tmp_path_factory.mktemp("published")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STENO_NOW", NOW)
        patch.setenv("STENO_HOME", str(folder / "steno"))
        root = folder / "claude"
        paths = place(root, EXAMPLES)
        with explorer(str(folder / "index"), str(root)) as found:
            yield OnDisk(root, paths, found)


@pytest.fixture
def opened(on_disk: OnDisk) -> Generator[Open]:
    held: list[Session] = []

    def open_one(name: str) -> Session:
        held.append(open_file_session(discover_file(str(on_disk.paths[name]))))
        return held[-1]

    yield open_one
    for each in held:
        each.close()
