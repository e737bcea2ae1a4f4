"""An explorer over made-up sessions, and one over hostile ones."""

from collections.abc import Generator

import pytest
from playwright.sync_api import Browser
from tests.chromium import chromium
from tests.security.hostile import hostile_root
from tests.web.explorer import Explorer, explorer

from steno.demo.recording import write_demo


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Generator[Explorer]:
    folder = tmp_path_factory.mktemp("explorer")
    root = write_demo(str(folder / "demo")).root
    with explorer(str(folder / "index"), root, demo=True) as found:
        yield found


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Generator[Explorer]:
    folder = tmp_path_factory.mktemp("hostile")
    root = hostile_root(folder / "root")
    with explorer(str(folder / "index"), str(root)) as found:
        found.house.health_monitor.start_check()
        found.house.health_monitor.wait()
        yield found


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    """Give a browser to which names lead here that do not belong to us."""
    rules = "--host-resolver-rules=MAP rebound.test 127.0.0.1, MAP *.invalid 127.0.0.1"
    with chromium(rules) as found:
        yield found
