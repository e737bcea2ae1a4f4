"""Content of steps in a browser."""

import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from tests.browser.axe import assert_accessible
from tests.browser.conftest import Look
from tests.web import tool_view_page as page_for_tests
from tests.web.explorer import Explorer, explorer
from tests.web.step_samples import every_kind

from steno.web import app


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Explorer, str]]:
    """An explorer over one session that has everything, with a page for its bodies."""
    folder = tmp_path_factory.mktemp("inside")
    made = every_kind().torn_tail()
    for name, data in made.files().items():
        path = folder / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "steno.web.routes.gallery", page_for_tests)
        more = (("/gallery/{key}", "gallery:gallery"), *app.PAGES)
        patch.setattr(app, "PAGES", more)
        with explorer(str(folder / "index"), str(folder / "root")) as found:
            yield found, made.session_id


Shot = Callable[..., Path]


@pytest.mark.parametrize(
    ("size", "theme"), [("desk", "light"), ("desk", "dark"), ("phone", "light"), ("phone", "dark")]
)
def test_every_body_is_readable_by_everybody(
    inside: tuple[Explorer, str], look: Look, shot: Shot, size: str, theme: str
) -> None:
    page = look(inside[0], f"/gallery/{inside[1]}", size=size, theme=theme)
    assert page.locator("details.step").count() > 50
    shot(page, f"bodies-{size}-{theme}", full=True)
    assert_accessible(page)
    assert _too_wide(page) == 0


@pytest.mark.parametrize("size", ["desk", "phone"])
def test_changes_can_be_seen_side_by_side(inside: tuple[Explorer, str], look: Look, shot: Shot, size: str) -> None:
    page = look(inside[0], f"/gallery/{inside[1]}?verb=Edit&diff=side", size=size)
    assert page.locator(".diff.two tr").count() > 10
    shot(page, f"bodies-side-{size}", full=True)
    assert_accessible(page)
    assert _too_wide(page) == 0


def test_pictures_are_really_shown(inside: tuple[Explorer, str], look: Look) -> None:
    page = look(inside[0], f"/gallery/{inside[1]}?verb=Read")
    picture = page.locator(".pictures img").first
    picture.scroll_into_view_if_needed()
    expect(picture).to_have_js_property("complete", value=True)
    assert picture.evaluate("each => each.naturalWidth") == 24


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_records_and_gaps_are_shown_as_they_stand(
    inside: tuple[Explorer, str], look: Look, shot: Shot, theme: str
) -> None:
    page = look(inside[0], f"/gallery/{inside[1]}?raw=1", theme=theme)
    assert page.get_by_text("gap", exact=True).count() == 1
    shot(page, f"bodies-raw-{theme}", full=True)
    assert_accessible(page)


def test_a_folded_value_opens_without_a_script(inside: tuple[Explorer, str], look: Look) -> None:
    page = look(inside[0], f"/gallery/{inside[1]}?verb=Sparkle")
    fold = page.locator(".tidy details").first
    assert not fold.locator("pre").is_visible()
    fold.locator("summary").click()
    assert fold.locator("pre").is_visible()


def _too_wide(page: Any) -> int:
    """Return by how much the page itself is wider than the screen."""
    root = "document.documentElement"
    return page.evaluate(f"Math.max(0, {root}.scrollWidth - {root}.clientWidth)")
