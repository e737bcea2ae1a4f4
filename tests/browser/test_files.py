"""Files pages in a browser."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import expect
from tests.browser.axe import assert_accessible
from tests.browser.conftest import Look
from tests.web.explorer import Explorer

from steno.web.urls import path_tag

_SMOOTH = "/home/ada/tidegauge/src/tidegauge/smooth.py"
_LETTER = "/home/ada/invoice-render/templates/letter.html"
_SEEN = [("desk", "light"), ("desk", "dark"), ("phone", "light"), ("phone", "dark")]


@pytest.mark.parametrize(("size", "theme"), _SEEN)
@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("files", "/files"),
        ("files-project", f"/files?project={path_tag('/home/ada/tidegauge')}"),
        ("file", f"/files/{path_tag(_SMOOTH)}"),
        ("file-outside", f"/files/{path_tag(_LETTER)}"),
    ],
)
def test_everybody_can_use_the_files(
    demo: Explorer,
    look: Look,
    shot: Callable[..., Path],
    name: str,
    way: str,
    size: str,
    theme: Literal["light", "dark"],
) -> None:
    page = look(demo, way, size=size, theme=theme)
    shot(page, f"{name}-{size}-{theme}")
    assert_accessible(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_file_fills_the_window_and_no_more(demo: Explorer, look: Look) -> None:
    page = look(demo, f"/files/{path_tag(_SMOOTH)}")
    assert page.locator(".demo-note").count() == 1
    assert page.evaluate("document.documentElement.scrollHeight <= innerHeight")
    boxes = page.locator(".tri .col").evaluate_all(
        "all => all.map((each) => Math.round(each.getBoundingClientRect().bottom))"
    )
    foot = page.locator(".foot").bounding_box()
    assert foot is not None
    assert set(boxes) == {round(foot["y"])}


def test_keys_go_through_time_and_back(demo: Explorer, look: Look) -> None:
    page = look(demo, f"/files/{path_tag(_SMOOTH)}")
    here = page.locator("ol.line > li.is-here b").first
    first = page.url
    page.keyboard.press("j")
    expect(page).not_to_have_url(first)
    expect(here).to_have_text("Edited")
    later = page.url
    page.keyboard.press("l")
    expect(page.locator("[data-view=after]")).to_have_attribute("aria-current", "true")
    expect(page.locator("main .code .no").first).to_contain_text(re.compile(r"^1\b"))
    page.keyboard.press("h")
    expect(page.locator("[data-view=before]")).to_have_attribute("aria-current", "true")
    page.keyboard.press("k")
    expect(page.locator("ol.line > li").first).to_have_class("edit is-here")
    assert page.url != later


def test_any_two_points_can_be_compared(demo: Explorer, look: Look) -> None:
    page = look(demo, f"/files/{path_tag(_SMOOTH)}")
    expect(page.locator("select[name=a] option")).not_to_have_count(1)
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("heading", name="Comparison")).to_be_visible()
    assert "a=" in page.url
    assert "b=" in page.url
    assert_accessible(page)
    expect(page.locator("main .diff tr.add")).not_to_have_count(0)


def test_a_file_is_found_by_part_of_its_path_and_opened(demo: Explorer, look: Look) -> None:
    page = look(demo, "/files")
    page.keyboard.press("f")
    page.keyboard.type("smooth\n")
    expect(page.locator(".frows .frow")).to_have_count(1)
    page.keyboard.press("Escape")
    page.locator("h1").click()
    page.keyboard.press("j")
    page.keyboard.press("o")
    expect(page).to_have_url(f"{demo.base}/files/{path_tag(_SMOOTH)}")
    expect(page.locator("h1")).to_contain_text("smooth.py")


def test_folders_open_in_the_tree(demo: Explorer, look: Look) -> None:
    page = look(demo, f"/files?project={path_tag('/home/ada/tidegauge')}")
    page.locator(".tree a", has_text="src/tidegauge").click()
    expect(page.locator(".tree .d1")).not_to_have_count(0)
    for path in page.locator(".fpath").all():
        assert "/src/tidegauge/" in (path.get_attribute("title") or "")
