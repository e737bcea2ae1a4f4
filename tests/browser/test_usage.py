"""Usage page in a browser."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from tests.browser.axe import assert_accessible
from tests.browser.conftest import Look
from tests.web.explorer import Explorer

Shot = Callable[..., Path]
_PAGES = {
    "usage": "/usage",
    "usage-lines": "/usage/lines",
    "usage-calls": "/usage/calls?tool=Bash",
    "usage-sessions": "/usage/sessions",
}


@pytest.mark.parametrize("size", ["desk", "phone"])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", _PAGES)
def test_everybody_can_use_it(
    demo: Explorer, look: Look, shot: Shot, name: str, size: str, theme: Literal["light", "dark"]
) -> None:
    page = look(demo, _PAGES[name], size=size, theme=theme)
    for fold in page.locator("details.rowsof > summary").all():
        fold.click()
    assert_accessible(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for fold in page.locator("details.rowsof > summary").all():
        fold.click()
    shot(page, f"{name}-{size}-{theme}", full=True)


def test_a_square_of_the_year_opens_to_its_lines_and_they_to_the_session(demo: Explorer, look: Look) -> None:
    page = look(demo, "/usage")
    square = page.locator(".heat a").last
    said = square.locator("title").text_content() or ""
    square.click()
    page.wait_for_url("**/usage/lines?from=*")
    assert (page.locator(".strip dd").first.text_content() or "-") in said.rpartition(": ")[2]
    href = page.locator(".tbl.lines .place a").first.get_attribute("href") or ""
    assert href.startswith("/s/")
    assert "?at=" in href


def test_keys_move_along_the_bars_and_open_one(demo: Explorer, look: Look) -> None:
    page = look(demo, "/usage")
    for key in "jjk":
        page.keyboard.press(key)
    first = page.locator(".stacked g[data-stop]").first
    assert "is-here" in (first.get_attribute("class") or "")
    wanted = first.locator("a").first.get_attribute("href") or ""
    assert page.evaluate("document.activeElement.getAttribute('href')") == wanted
    page.keyboard.press("o")
    page.wait_for_url(f"**{wanted}")


def test_the_range_and_the_split_are_in_the_address(demo: Explorer, look: Look) -> None:
    page = look(demo, "/usage")
    page.get_by_role("link", name="by project").click()
    page.wait_for_url("**/usage?by=project*")
    page.get_by_role("link", name="Year", exact=True).click()
    page.wait_for_url("**/usage?range=year&by=project")
    assert page.get_by_role("heading", name="Cost by week").is_visible()


def test_brackets_go_to_earlier_days_and_back(demo: Explorer, look: Look) -> None:
    page = look(demo, "/usage")
    page.keyboard.press("[")
    page.wait_for_url("**/usage?to=*")
    page.keyboard.press("]")
    page.wait_for_url("**/usage")


def test_what_is_small_begins_at_the_newest_end(demo: Explorer, look: Look) -> None:
    page = look(demo, "/usage", size="phone")
    box = page.locator(".heat a").last.bounding_box()
    assert box is not None
    assert 0 <= box["x"] <= 390
