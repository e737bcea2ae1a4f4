"""An explorer over the demo, for all tests of a module."""

from collections.abc import Generator

import pytest
from tests.web.explorer import Explorer, explorer

from steno.demo.recording import write_demo


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Generator[Explorer]:
    folder = tmp_path_factory.mktemp("explorer")
    root = write_demo(str(folder / "demo")).root
    with explorer(str(folder / "index"), root, demo=True) as found:
        yield found
