"""Session list in a browser."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Page, Route, expect
from tests.browser.axe import assert_accessible
from tests.browser.conftest import Look
from tests.builders import Session, session, tool
from tests.web.explorer import Explorer
from tests.web.sessions import exploring, last_record, written

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
    made = [session(seed=f"s{number}", full=True).turn(f"ask {number}", "ok") for number in range(30)]
    live = session(seed="live", full=True).user("build").assistant(tool("Bash", command="make one"))
    return [*made, live]


def test_what_a_live_session_does_changes_in_place_under_the_keys(tmp_path: Path, look: Look, shot: Shot) -> None:
    every = many()
    live = every[-1]
    with exploring(tmp_path, *every) as (found, paths):
        begun = last_record(paths[-1])
        found.house.now = lambda: begun + 5
        page = look(found, "/")
        row = page.locator(f'.row[data-key="{live.session_id}"]')
        expect(row.locator(".now")).to_contain_text("make one")
        page.locator("#list[data-heard]").wait_for()
        shot(page, "sessions-live")
        for key in "jxjjj":
            page.keyboard.press(key)
        stands = page.locator(".row.is-here")
        key, top = stands.get_attribute("data-key"), stands.bounding_box()
        written(live.result("x").assistant(tool("Read", file_path="/a.py")), tmp_path / "config")
        found.refresh()
        expect(row.locator(".now")).to_contain_text("/a.py")
        expect(row).to_contain_class("is-marked")
        assert page.locator(".row.is-here").get_attribute("data-key") == key
        assert page.locator(".row.is-here").bounding_box() == top
        focus = "document.activeElement.closest('.row')?.dataset.key"
        assert page.evaluate(focus) == key


def test_a_session_that_is_seen_growing_shows_what_it_does(tmp_path: Path, look: Look) -> None:
    made = session(seed="live", full=True).user("build").assistant(tool("Bash", command="make one"))
    with exploring(tmp_path, made) as (found, paths):
        begun = paths[0].stat().st_mtime
        found.house.now = lambda: begun + 5
        page = look(found, "/")
        row = page.locator(f'.row[data-key="{made.session_id}"]')
        expect(row).to_contain_text("interrupted")
        page.locator("#list[data-heard]").wait_for()
        written(made.result("x").assistant(tool("Read", file_path="/a.py")), tmp_path / "config")
        found.refresh()
        expect(row.locator(".now")).to_contain_text("/a.py")


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
        first = page.locator("#list li[data-key]").evaluate_all("rows => rows.map((row) => row.dataset.key)")
        assert len(first) == len(set(first)) == 32
        assert fresh.session_id in first[:2]


def test_rows_that_came_to_rest_meanwhile_are_not_told_twice(
    tmp_path: Path, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steno.web.routes.sessions._PAGE", 5)
    # Were it not live, it would stand at the end.
    live = session(seed="early", full=True, start="2026-01-01T10:00:00.000Z").user("build")
    every = [*many()[:-1], live.assistant(tool("Bash", command="make one"))]
    with exploring(tmp_path, *every) as (found, paths):
        begun = paths[-1].stat().st_mtime
        for path in paths[:-1]:
            os.utime(path, (1, 1))
        found.refresh()
        found.house.now = lambda: begun + 5

        def rest(route: Route) -> None:
            found.house.now = lambda: begun + 86_400
            route.continue_()

        page = look(found, "/usage")
        page.route("**/*part=rows*", rest)
        # Nobody tells the page that it came to rest.
        page.route("**/live*", lambda route: route.fulfill(content_type="text/event-stream", body="retry: 600000\n\n"))
        page.goto("/")
        rows = page.locator("#list li[data-key]")
        keys = "rows => rows.map((row) => row.dataset.key)"
        # Wherever the end is, it is looked at.
        page.evaluate("setInterval(() => scrollTo(0, document.body.scrollHeight), 50)")
        expect(page.locator(".more-rows")).to_have_count(0)
        expect(rows).to_have_count(len(every))
        assert len(set(rows.evaluate_all(keys))) == len(every)


# What nobody looks at

_SEEN = """(hidden) => {
  Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
  document.dispatchEvent(new Event('visibilitychange'));
}"""


def _hidden(page: Page) -> None:
    with page.expect_event("requestfailed", lambda each: "/live" in each.url):
        page.evaluate(_SEEN, True)


@pytest.mark.parametrize("place", ["/", "/s/{}"])
def test_a_page_that_nobody_looks_at_gives_its_line_back_and_catches_up(tmp_path: Path, look: Look, place: str) -> None:
    live = session(seed="live", full=True).user("build").assistant(tool("Bash", command="make one"))
    with exploring(tmp_path, live) as (found, paths):
        begun = paths[0].stat().st_mtime
        found.house.now = lambda: begun + 5
        page = look(found, place.format(live.session_id))
        page.locator("[data-heard]").wait_for()
        _hidden(page)
        more = live.result("x").assistant(tool("Bash", command="make another"))
        written(more, tmp_path / "config")
        found.refresh()
        assert page.get_by_text("make another").count() == 0
        with page.expect_request(lambda each: "/live" in each.url):
            page.evaluate(_SEEN, False)
        expect(page.get_by_text("make another").first).to_be_attached()


def test_whoever_looks_for_words_holds_no_line(demo: Explorer, look: Look) -> None:
    page = look(demo, "/")
    page.locator("#list[data-heard]").wait_for()
    page.keyboard.press("/")
    with page.expect_event("requestfailed", lambda each: "/live" in each.url):
        page.keyboard.type("tide")
    expect(page.locator("#hits")).to_have_count(1)
    with page.expect_request(lambda each: "/live" in each.url):
        page.keyboard.press("Escape")
    page.locator("#list[data-heard]").wait_for()


def test_a_day_long_ago_does_not_widen_the_list(tmp_path: Path, look: Look, shot: Shot) -> None:
    old = [
        session(seed=f"o{n}", full=True, start=f"2025-09-{n + 20}T10:00:00.000Z").turn("old", "ok") for n in range(3)
    ]
    with exploring(tmp_path, *old) as (found, _):
        for way in ("/", "/?view=flat", "/?q=old"):
            page = look(found, way)
            whens = page.locator(".row .when").evaluate_all(
                "all => all.map((each) => [each.scrollWidth, each.clientWidth])"
            )
            assert whens
            assert all(needs <= has for needs, has in whens)
            shot(page, "sessions-old")
