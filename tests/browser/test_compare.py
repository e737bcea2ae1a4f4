"""Comparison page in a browser."""

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import expect
from tests.browser.axe import assert_accessible
from tests.browser.conftest import Look
from tests.web.compared_sessions import first_try, lay, second_try
from tests.web.explorer import Explorer, explorer

Shot = Callable[..., Path]
Theme = Literal["light", "dark"]
_STORM = "6429f00f-fc3c-4f28-a384-ea05996b9683"
_FORK = "6fffb971-6d3b-44ed-8a1a-d8cbb390f365"


@pytest.fixture(scope="module")
def tries(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Explorer, str]]:
    folder = tmp_path_factory.mktemp("tries")
    one, other = lay(folder / "config", first_try(), second_try())
    with explorer(str(folder / "index"), str(folder / "config")) as found:
        yield found, f"/compare?a={one}&b={other}"


@pytest.mark.parametrize("size", ["desk", "phone"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everybody_can_use_a_comparison(
    tries: tuple[Explorer, str], look: Look, shot: Shot, size: str, theme: Theme
) -> None:
    page = look(*tries, size=size, theme=theme)
    assert_accessible(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shot(page, f"compare-{size}-{theme}")


@pytest.mark.parametrize("size", ["desk", "phone"])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("way", ["/compare", f"/compare?a={_STORM}"])
def test_everybody_can_choose(demo: Explorer, look: Look, shot: Shot, size: str, theme: Theme, way: str) -> None:
    page = look(demo, way, size=size, theme=theme)
    assert_accessible(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shot(page, f"compare-{'beside' if '=' in way else 'pick'}-{size}-{theme}")


def test_two_are_chosen_by_hand(demo: Explorer, look: Look) -> None:
    page = look(demo, "/compare")
    page.get_by_role("searchbox", name="Find a session to compare").fill("smooth")
    page.get_by_role("button", name="Find").click()
    page.get_by_role("link", name="Smooth the curve").click()
    page.get_by_role("link", name="Try the same with a window of seven").click()
    page.wait_for_url(f"**/compare?a={_STORM}&b={_FORK}")
    expect(page.locator(".pair .ab")).to_have_text(["A", "B"])
    page.keyboard.press("w")
    page.wait_for_url(f"**/compare?a={_FORK}&b={_STORM}")


def test_two_sessions_marked_in_the_list_are_compared(demo: Explorer, look: Look) -> None:
    page = look(demo, "/")
    keys = page.locator("[data-stop][data-key]").evaluate_all("all => all.map(e => e.dataset.key)")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.locator(".is-marked")).to_have_count(1)
    expect(page.locator(".voice")).to_have_text("Marked; press x on another session to compare")
    page.keyboard.press("x")
    expect(page.locator(".is-marked")).to_have_count(0)
    page.keyboard.press("x")
    page.goto("/compare")
    expect(page.locator("#marked")).to_be_visible()
    page.goto("/")
    for key in "jjx":
        page.keyboard.press(key)
    page.wait_for_url(f"**/compare?a={keys[0]}&b={keys[1]}")
    page.goto("/compare")
    expect(page.locator("#marked")).to_be_hidden()


def test_a_step_opens_in_place(tries: tuple[Explorer, str], look: Look, shot: Shot) -> None:
    page = look(*tries)
    page.locator(".side-a .step", has_text="shape.py").first.locator("summary").click()
    expect(page.locator(".side-a .step[open] .diff").first).to_contain_text("list(text)")
    for key in "jjoo":
        page.keyboard.press(key)
    page.keyboard.press("o")
    step = page.locator(".step.is-here")
    expect(step.locator(".in")).to_contain_text("boxes in 14 places")
    expect(step.locator(".box")).to_have_count(1)
    assert_accessible(page)
    shot(page, "compare-open", full=True)


def test_what_cannot_be_read_leaves_the_way_to_it(tries: tuple[Explorer, str], look: Look) -> None:
    page = look(*tries)
    page.route("**/step/*?part=1", lambda route: route.fulfill(status=204))
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("o")
    link = page.locator(".step.is-here").get_by_role("link", name="Open in session")
    link.click()
    page.wait_for_url("**/s/*/step/*")
    expect(page.locator("main")).to_contain_text("boxes in 14 places")
