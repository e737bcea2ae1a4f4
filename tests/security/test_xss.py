"""Texts of sessions stay texts: on every page there is, in a real browser.

Every text of the sessions here is a payload (see `hostile`), and every page is found by crawling.
"""

import re
from collections.abc import Generator
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from tests.campaign.size import spread
from tests.security.crawl import crawl
from tests.security.markup import Kind, kinds_of, strangers_in
from tests.security.payloads import MARK, PAYLOADS
from tests.web.explorer import Explorer

pytestmark = pytest.mark.timeout(300)

_LOTS: Final = 24
LISTEN: Final = """
window.__breaches = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.__breaches.push(`${event.effectiveDirective} ${event.blockedURI} ${event.sample}`));
"""
OPEN: Final = """async () => {
  for (const fold of document.querySelectorAll("details:not([open])")) {
    fold.open = true;
  }
  for (const each of document.querySelectorAll("a, b, p, div")) {
    each.dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
  }
  window.scrollTo(0, document.body.scrollHeight);
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""
_HIDDEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


class Watch:
    """A page that is listened to."""

    def __init__(self, context: BrowserContext, base: str) -> None:
        self.trouble: list[str] = []
        self._base = base
        self._where = ""
        context.add_init_script(LISTEN)
        context.on("page", self._hear)
        self.page: Page = context.new_page()

    def _hear(self, page: Page) -> None:
        page.on("dialog", self._asked_for)
        page.on("pageerror", lambda error: self._note(f"error {error}"))
        page.on("console", self._said)
        page.on("request", self._asked)

    def _asked_for(self, dialog: Any) -> None:
        self._note(f"dialog {dialog.message}")
        dialog.dismiss()

    def _said(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self._note(f"console {message.text}")

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self._base + "/", "data:")):
            self._note(f"request {request.url}")

    def _note(self, what: str) -> None:
        self.trouble.append(f"{self._where}: {what[:300]}")

    def see(self, address: str) -> None:
        """Open an address and everything on it."""
        self._where = address
        self.page.goto(address, wait_until="load")
        self.page.evaluate(OPEN)
        found = self.page.evaluate(f"[window.__breaches, window.{MARK} ?? null, location.href]")
        for breach in found[0]:
            self._note(f"policy {breach}")
        if found[1] is not None:
            self._note("something ran")
        if not found[2].startswith(self._base + "/"):
            self._note(f"led to {found[2]}")


@pytest.fixture
def watch(browser: Browser, hostile: Explorer) -> Generator[Watch]:
    context = browser.new_context(base_url=hostile.base)
    name, _, value = hostile.cookie.partition("=")
    context.add_cookies([{"name": name, "value": value, "url": hostile.base}])
    watched = Watch(context, hostile.base)
    yield watched
    assert watched.trouble == []
    watched.page.goto("about:blank")


@pytest.fixture(scope="module")
def some(hostile: Explorer) -> dict[str, str]:
    """Two addresses of each shape, and some sessions: enough for every day."""
    return crawl(hostile, each=2, at_most={"/s/{key}": 12})


@pytest.fixture(scope="module")
def addresses(hostile: Explorer) -> list[str]:
    return list(crawl(hostile, each=8, at_most={"/s/{key}": len(PAYLOADS) + 40}))


def test_there_are_enough_payloads_and_each_has_a_session(hostile: Explorer) -> None:
    assert len(set(PAYLOADS)) >= 200
    with hostile.house.index() as index:
        titles = {title for (title,) in index.connection.execute("SELECT title FROM sessions WHERE agent = ''")}
    assert len(titles) >= 200


def test_every_element_of_some_of_all_pages_is_one_of_ours(some: dict[str, str]) -> None:
    assert len(some) > 200
    assert {way: found for way, page in some.items() if (found := strangers_in(page))} == {}


def test_every_kind_of_element_runs_asks_for_and_breaks_nothing(watch: Watch, some: dict[str, str]) -> None:
    """Look at pages until every kind of element that any of them has was looked at."""
    seen: set[Kind] = set()
    for address, page in some.items():
        kinds = kinds_of(page)
        if kinds - seen:
            seen |= kinds
            watch.see(address)
    assert len(seen) > 400


@pytest.mark.faults
@pytest.mark.timeout(900)
@pytest.mark.parametrize("lot", range(_LOTS))
def test_no_page_runs_asks_for_or_breaks_anything(watch: Watch, addresses: list[str], lot: int) -> None:
    assert len(addresses) > 240
    for address in spread(addresses[lot::_LOTS]):
        watch.see(address)


@pytest.mark.parametrize("text", ["<img", "script", "onerror", '"><svg', "javascript:"])
def test_the_palette_and_the_search_stay_texts_while_somebody_types(watch: Watch, text: str) -> None:
    watch.see("/?q=script")
    watch.page.locator(".find input").fill(text)
    expect(watch.page).to_have_title(f"{text} · steno")
    watch.page.keyboard.press("Control+k")
    watch.page.locator("dialog.palette input").fill(text)
    expect(watch.page.locator("#palette-list .t", has_text=f"Search for {text}")).to_be_visible()
    assert watch.page.evaluate(f"window.{MARK} ?? null") is None
    assert watch.page.evaluate("window.__breaches") == []


def test_what_hides_or_turns_text_around_is_made_visible(some: dict[str, str]) -> None:
    for address, text in some.items():
        found = _HIDDEN.search(text)
        assert found is None, (address, text[max(0, found.start() - 60) : found.end() + 20])
