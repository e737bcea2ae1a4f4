"""An explorer over made-up sessions, and one over hostile ones."""

import shutil
from collections.abc import Generator

import pytest
from playwright.sync_api import Browser, sync_playwright
from tests.security.hostile import hostile_root
from tests.web.explorer import Explorer, explorer

from steno.demo.write import write_demo

_NAMES = ("chromium", "chromium-browser", "google-chrome")


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
        found.house.ward.look()
        found.house.ward.wait()
        yield found


@pytest.fixture(scope="module")
def chromium() -> str:
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        pytest.fail("there is no Chromium; `make test` installs it where it may")
    return path


@pytest.fixture(scope="module")
def browser(chromium: str) -> Generator[Browser]:
    """Give a browser to which names lead here that do not belong to us."""
    rules = "--host-resolver-rules=MAP rebound.test 127.0.0.1, MAP *.invalid 127.0.0.1"
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", rules])
        yield found
        found.close()
