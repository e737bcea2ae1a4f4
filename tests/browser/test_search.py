"""Search in a browser."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Page, expect
from tests.browser.axe import assert_accessible
from tests.browser.conftest import Look
from tests.web.explorer import Explorer

_FOCUS = "document.activeElement.getAttribute('href')"


def _box(page: Page) -> Any:
    return page.locator(".find input")


@pytest.mark.parametrize(("size", "theme"), [("desk", "light"), ("desk", "dark"), ("phone", "light")])
def test_everybody_can_use_the_search(
    demo: Explorer, look: Look, shot: Callable[..., Path], size: str, theme: Literal["light", "dark"]
) -> None:
    page = look(demo, "/?q=the", size=size, theme=theme)
    assert_accessible(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shot(page, f"search-{size}-{theme}")


def test_words_are_found_where_the_list_stands_while_they_are_typed(demo: Explorer, look: Look) -> None:
    page = look(demo, "/")
    page.keyboard.press("/")
    page.keyboard.type("tide")
    expect(page.locator("h1")).to_contain_text("match")
    expect(page.locator("#hits mark").first).to_have_text("tide")
    expect(page).to_have_url(f"{demo.base}/?q=tide")
    expect(page).to_have_title("tide · steno")
    expect(_box(page)).to_be_focused()
    assert page.locator("#list").count() == 0


def test_going_back_leads_to_the_list_as_it_was(demo: Explorer, look: Look) -> None:
    page = look(demo, "/?since=&sort=oldest")
    rows = "[...document.querySelectorAll('#list li')].map((row) => row.dataset.key)"
    before = page.evaluate(rows)
    page.evaluate("document.querySelector('#list').dataset.mine = 'yes'")
    page.keyboard.press("/")
    page.keyboard.type("tide")
    expect(page).to_have_url(f"{demo.base}/?since=&sort=oldest&q=tide")
    expect(page.locator("#hits")).to_have_count(1)
    page.go_back()
    expect(page.locator("#list[data-mine=yes]")).to_have_count(1)
    assert page.evaluate(rows) == before
    expect(_box(page)).to_have_value("")
    page.go_forward()
    expect(page.locator("#hits")).to_have_count(1)
    expect(_box(page)).to_have_value("tide")


def test_arrows_go_through_the_hits_and_enter_opens_one(demo: Explorer, look: Look) -> None:
    page = look(demo, "/")
    page.keyboard.press("/")
    page.keyboard.type("tide")
    expect(page).to_have_url(f"{demo.base}/?q=tide")
    stops = page.locator("main [data-stop]")
    expect(page.locator("#hits")).to_have_count(1)
    page.keyboard.press("ArrowDown")
    expect(stops.nth(0)).to_have_class("row is-here")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    wanted = stops.nth(1).locator("a").first.get_attribute("href")
    assert page.evaluate(_FOCUS) == wanted
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(_box(page)).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{wanted}*")
    page.go_back()
    expect(_box(page)).to_have_value("tide")
    expect(page.locator("#hits")).to_have_count(1)


def test_escape_clears_the_words_and_then_leaves_the_box(demo: Explorer, look: Look) -> None:
    page = look(demo, "/?q=tide")
    page.keyboard.press("/")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Escape")
    expect(_box(page)).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("h1")).to_have_text("Sessions")
    expect(page).to_have_url(f"{demo.base}/")
    expect(_box(page)).to_be_focused()
    page.keyboard.press("Escape")
    expect(_box(page)).not_to_be_focused()


def test_nothing_jumps_when_hits_take_the_place_of_the_list(demo: Explorer, look: Look) -> None:
    page = look(demo, "/")
    places = """['.bar', '.find input', '.facets', '.facets section h2', '.listhead', 'main h1']
      .map((what) => document.querySelector(what).getBoundingClientRect())
      .map((box) => [box.left, box.top, what = box.height])"""
    before = page.evaluate(places.replace("what = ", ""))
    page.keyboard.press("/")
    page.keyboard.type("tide")
    expect(page.locator("#hits")).to_have_count(1)
    after = page.evaluate(places.replace("what = ", ""))
    # The facets are as tall as what is in them.
    assert [[*box[:2]] for box in after] == [[*box[:2]] for box in before]
    assert after[4][2] == before[4][2]


def test_filters_and_words_narrow_together(demo: Explorer, look: Look) -> None:
    page = look(demo, "/?q=the")
    link = page.locator("#facets section", has_text="Has").locator("a").first
    number = int(link.locator(".n").inner_text())
    link.click()
    page.wait_for_url("**q=the*has=*")
    said = page.locator("h1").inner_text()
    assert said.endswith(f"in {number} sessions")
    page.keyboard.press("/")
    page.keyboard.type("tide")
    expect(page).to_have_url(f"{demo.base}/?q=tide&has=failed")


def test_without_script_the_box_is_sent(demo: Explorer, look: Look) -> None:
    page = look(demo, "/usage")
    page.keyboard.press("/")
    page.keyboard.type("tide\n")
    page.wait_for_url("**/?q=tide")
    expect(page.locator("h1")).to_contain_text("match")
