"""The list of sessions, in a browser."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import expect
from tests.browser.axe import assert_accessible
from tests.browser.conftest import Look
from tests.builders import Session, session, tool
from tests.web.explorer import Explorer
from tests.web.sessions import exploring, written

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


def many() -> list[Session]:
    """Make more sessions than fit on a screen; the last one is at work."""
    made = [
        session(seed=f"s{number}", full=True).turn(f"ask {number}", "ok") for number in range(30)
    ]
    live = session(seed="live", full=True).user("build").assistant(tool("Bash", command="make one"))
    return [*made, live]


def test_what_a_live_session_does_changes_in_place_under_the_keys(
    tmp_path: Path, look: Look, shot: Shot
) -> None:
    every = many()
    live = every[-1]
    with exploring(tmp_path, *every) as (found, paths):
        begun = paths[-1].stat().st_mtime
        found.house.now = lambda: begun + 5
        page = look(found, "/")
        row = page.locator(f'.row[data-key="{live.session_id}"]')
        expect(row.locator(".now")).to_contain_text("make one")
        page.locator("#list[data-heard]").wait_for()
        shot(page, "sessions-live")
        for _ in range(4):
            page.keyboard.press("j")
        stands = page.locator(".row.is-here")
        key, top = stands.get_attribute("data-key"), stands.bounding_box()
        written(live.result("x").assistant(tool("Read", file_path="/a.py")), tmp_path / "config")
        found.refresh()
        expect(row.locator(".now")).to_contain_text("/a.py")
        assert page.locator(".row.is-here").get_attribute("data-key") == key
        assert page.locator(".row.is-here").bounding_box() == top
        focus = "document.activeElement.closest('.row')?.dataset.key"
        assert page.evaluate(focus) == key


def test_a_new_session_comes_in_without_moving_what_is_read(tmp_path: Path, look: Look) -> None:
    every = many()
    with exploring(tmp_path, *every) as (found, paths):
        begun = paths[-1].stat().st_mtime
        found.house.now = lambda: begun + 5
        page = look(found, "/")
        page.locator("#list[data-heard]").wait_for()
        page.mouse.move(2, 2)
        page.evaluate("scrollTo(0, 600)")
        seen = """[...document.querySelectorAll('#list li[data-key]')]
          .filter((row) => row.getBoundingClientRect().bottom > 60)
          .map((row) => [row.dataset.key, Math.round(row.getBoundingClientRect().top)])[0]"""
        before = page.evaluate(seen)
        fresh = session(seed="fresh", full=True).wait(86_400).turn("something new", "yes")
        written(fresh, tmp_path / "config")
        found.refresh()
        expect(page.locator(f'.row[data-key="{fresh.session_id}"]')).to_have_count(1)
        assert page.evaluate(seen) == before
        first = page.locator("#list li[data-key]").evaluate_all(
            "rows => rows.map((row) => row.dataset.key)"
        )
        assert len(first) == len(set(first)) == 32
        assert fresh.session_id in first[:2]
