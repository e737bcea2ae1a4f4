"""A real browser, and an explorer to look at with it.

A page that asks for something elsewhere, breaks its own policy or complains in its console fails
the test that looked at it.
"""

import os
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Request
from tests.chromium import chromium
from tests.web.explorer import Explorer, explorer

from steno.demo.recording import write_demo

_SIZES = {"desk": (1440, 900), "phone": (390, 844)}
_PATIENCE = 240


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give tests in a browser more time: it is a heavy program, and the machine may be busy."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.timeout(_PATIENCE))


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    """Give a browser; gone behind each module, since its loop runs in the thread of the tests."""
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Generator[Explorer]:
    folder = tmp_path_factory.mktemp("explorer")
    root = write_demo(str(folder / "demo")).root
    with explorer(str(folder / "index"), root, demo=True) as found:
        yield found


Look = Callable[..., Page]


@pytest.fixture
def look(browser: Browser) -> Generator[Look]:
    """Open a page of an explorer: `look(demo, "/usage", size="phone", theme="dark")`."""
    pages: list[Page] = []
    trouble: list[str] = []

    def heard(said: ConsoleMessage) -> None:
        if said.type == "error":
            trouble.append(said.text)

    def asked(dialog: Dialog) -> None:
        trouble.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def wanted(each: Request, base: str) -> None:
        if not each.url.startswith((base, "data:", "about:")):
            trouble.append(f"asked for {each.url}")

    def opened(of: Explorer, way: str = "/", size: str = "desk", theme: Any = "light") -> Page:
        width, height = _SIZES[size]
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme, base_url=of.base)
        name, _, value = of.cookie.partition("=")
        context.add_cookies([{"name": name, "value": value, "url": of.base}])
        page = context.new_page()
        pages.append(page)
        page.on("console", heard)
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("dialog", asked)
        page.on("request", lambda each: wanted(each, of.base))
        page.goto(way)
        return page

    yield opened
    # Left, not closed: Chromium may never answer whoever closes a page that is on its way elsewhere.
    for page in pages:
        if not page.is_closed():
            page.goto("about:blank")
    assert trouble == []


@pytest.fixture
def shot(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Path]:
    """Take a picture of a page: kept in STENO_SHOTS where that is set."""

    def take(page: Page, name: str, *, full: bool = False) -> Path:
        folder = Path(os.environ.get("STENO_SHOTS") or tmp_path)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.png"
        page.screenshot(path=path, full_page=full)
        return path

    del request
    return take
