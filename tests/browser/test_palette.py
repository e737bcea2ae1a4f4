"""Command palette in a browser."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Page, expect
from tests.browser.axe import assert_accessible
from tests.browser.conftest import Look
from tests.web.explorer import Explorer

Shot = Callable[..., Path]


def _typed(page: Page, text: str) -> None:
    page.keyboard.press("Control+k")
    expect(page.locator("dialog.palette [role=option]").first).to_be_visible()
    page.keyboard.type(text)
    expect(page.locator("#palette-list .t", has_text=f"Search for {text}")).to_be_visible()


@pytest.mark.parametrize("size", ["desk", "phone"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everybody_can_use_the_palette(
    demo: Explorer, look: Look, shot: Shot, size: str, theme: Literal["light", "dark"]
) -> None:
    page = look(demo, "/", size=size, theme=theme)
    _typed(page, "tide")
    assert_accessible(page)
    shot(page, f"palette-{size}-{theme}")


def test_it_opens_on_any_page_and_while_typing_and_shuts_again(demo: Explorer, look: Look) -> None:
    page = look(demo, "/?q=tide")
    page.keyboard.press("/")
    page.keyboard.press("Meta+k")
    expect(page.locator("dialog.palette")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog.palette")).to_be_hidden()
    page.get_by_role("button", name="commands").click()
    expect(page.locator("dialog.palette")).to_be_visible()
    page.keyboard.press("Control+k")
    expect(page.locator("dialog.palette")).to_be_hidden()


def test_arrows_choose_and_enter_goes_there(demo: Explorer, look: Look) -> None:
    page = look(demo, "/")
    page.keyboard.press("Control+k")
    box = page.locator("dialog.palette input")
    expect(box).to_have_attribute("aria-activedescendant", "palette-o1")
    for _ in range(5):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    chosen = page.locator("[role=option][aria-selected=true]")
    expect(chosen.locator(".t")).to_have_text("Health")
    page.keyboard.press("Enter")
    page.wait_for_url("**/health")


def test_a_session_is_found_by_its_title_and_by_its_id(demo: Explorer, look: Look) -> None:
    with demo.house.index() as index:
        name, title = index.connection.execute(
            "SELECT id, title FROM sessions WHERE agent = '' AND NOT hidden ORDER BY id"
        ).fetchone()
    page = look(demo, "/")
    _typed(page, name[:8])
    first = page.locator("#palette-list [role=option]").first
    expect(first.locator(".t")).to_have_text(title)
    expect(first).to_have_attribute("href", f"/s/{name}")


def test_an_action_runs_on_the_page(demo: Explorer, look: Look, shot: Shot) -> None:
    page = look(demo, "/")
    _typed(page, "dense")
    option = page.locator("[data-do=density]")
    expect(option).to_be_visible()
    option.click()
    expect(page.locator("dialog.palette")).to_be_hidden()
    expect(page.locator("html")).to_have_attribute("data-density", "dense")
    shot(page, "sessions-dense")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_dense_shows_more_rows(demo: Explorer, look: Look) -> None:
    page = look(demo, "/")
    height = "document.querySelector('.row[data-stop]').getBoundingClientRect().height"
    roomy = page.evaluate(height)
    page.keyboard.press("d")
    assert page.evaluate(height) < roomy
