"""The list of sessions, in a browser."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from tests.browser.axe import assert_accessible
from tests.browser.conftest import Look
from tests.web.explorer import Explorer

Shot = Callable[..., Path]


@pytest.mark.parametrize("size", ["desk", "phone"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everybody_can_use_the_list(
    demo: Explorer, look: Look, shot: Shot, size: str, theme: Literal["light", "dark"]
) -> None:
    page = look(demo, "/", size=size, theme=theme)
    assert_accessible(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shot(page, f"sessions-{size}-{theme}")


def test_keys_move_along_the_rows_and_open_one(demo: Explorer, look: Look) -> None:
    page = look(demo, "/")
    for key in "jjk":
        page.keyboard.press(key)
    assert page.locator(".row[data-stop]").nth(0).get_attribute("class") == "row is-here"
    wanted = page.locator(".row.is-here .title a").get_attribute("href")
    assert page.evaluate("document.activeElement.getAttribute('href')") == wanted


def test_a_filter_narrows_the_list_and_is_kept_in_the_address(demo: Explorer, look: Look) -> None:
    page = look(demo, "/")
    before = page.locator(".row[data-stop]").count()
    page.get_by_role("link", name="Failed steps").click()
    page.wait_for_url("**/?has=failed")
    assert 0 < page.locator(".row[data-stop]").count() < before
