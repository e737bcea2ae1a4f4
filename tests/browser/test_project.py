"""Project page in a browser."""

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import expect
from tests.browser.axe import assert_accessible
from tests.browser.conftest import Look
from tests.web.compared_sessions import first_try, furnish, lay, second_try
from tests.web.explorer import Explorer, explorer

from steno.web.urls import path_tag

Shot = Callable[..., Path]
Theme = Literal["light", "dark"]
_TIDE = f"/p/{path_tag('/home/ada/tidegauge')}"


@pytest.fixture(scope="module")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Explorer, str]]:
    folder = tmp_path_factory.mktemp("project")
    root, project = folder / "config", folder / "papercrane"
    project.mkdir()
    lay(root, first_try(str(project)), second_try(str(project)))
    furnish(root, project)
    with explorer(str(folder / "index"), str(root)) as found:
        yield found, f"/p/{path_tag(str(project))}"


@pytest.mark.parametrize("size", ["desk", "phone"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everybody_can_use_a_project(demo: Explorer, look: Look, shot: Shot, size: str, theme: Theme) -> None:
    page = look(demo, _TIDE, size=size, theme=theme)
    assert_accessible(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shot(page, f"project-{size}-{theme}", full=True)


@pytest.mark.parametrize("size", ["desk", "phone"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_with_everything_open_it_still_fits(
    furnished: tuple[Explorer, str], look: Look, shot: Shot, size: str, theme: Theme
) -> None:
    page = look(*furnished, size=size, theme=theme)
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert_accessible(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shot(page, f"project-full-{size}-{theme}", full=True)


def test_a_project_is_reached_from_the_list_and_leads_back(demo: Explorer, look: Look) -> None:
    page = look(demo, "/?view=project")
    page.get_by_role("link", name="tidegauge", exact=True).first.click()
    page.wait_for_url(f"**{_TIDE}")
    expect(page.get_by_role("heading", name="tidegauge", level=1)).to_be_visible()
    page.get_by_role("link", name="All sessions", exact=True).first.click()
    page.wait_for_url("**/?project=*")


def test_keys_open_a_note_and_mark_a_session(furnished: tuple[Explorer, str], look: Look) -> None:
    page = look(*furnished)
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.locator(".picks .is-marked")).to_have_count(1)
    page.keyboard.press("j")
    page.keyboard.press("j")
    note = page.locator(".noted.is-here")
    page.keyboard.press("o")
    expect(note.locator(".prose")).to_be_visible()
