"""The search, in a browser."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import expect
from tests.browser.axe import assert_accessible
from tests.browser.conftest import Look
from tests.web.explorer import Explorer


@pytest.mark.parametrize(
    ("size", "theme"), [("desk", "light"), ("desk", "dark"), ("phone", "light")]
)
def test_everybody_can_use_the_search(
    demo: Explorer,
    look: Look,
    shot: Callable[..., Path],
    size: str,
    theme: Literal["light", "dark"],
) -> None:
    page = look(demo, "/search?q=the", size=size, theme=theme)
    assert_accessible(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shot(page, f"search-{size}-{theme}")


def test_words_are_found_while_they_are_typed(demo: Explorer, look: Look) -> None:
    page = look(demo, "/search?q=zzzz")
    page.keyboard.press("/")
    page.keyboard.type("tide")
    expect(page.locator("h1")).to_contain_text("hit")
    expect(page).to_have_url(f"{demo.base}/search?q=tide")


def test_the_box_on_any_page_leads_here(demo: Explorer, look: Look) -> None:
    page = look(demo, "/")
    page.keyboard.press("/")
    page.keyboard.type("tide\n")
    expect(page.locator("h1")).to_contain_text("hit")
