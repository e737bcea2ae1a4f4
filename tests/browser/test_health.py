"""Health page in a browser."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import expect
from tests.browser.axe import assert_accessible
from tests.browser.conftest import Look
from tests.web.explorer import Explorer, explorer

Shot = Callable[..., Path]


@pytest.mark.parametrize("size", ["desk", "phone"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everybody_can_use_the_page(
    demo: Explorer, look: Look, shot: Shot, size: str, theme: Literal["light", "dark"]
) -> None:
    page = look(demo, "/health", size=size, theme=theme)
    expect(page.locator("#health")).to_have_attribute("data-busy", "")
    assert_accessible(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shot(page, f"health-{size}-{theme}", full=True)


def test_what_is_found_comes_in_by_itself_and_is_counted_in_the_bar(look: Look, tmp_path: Path, shot: Shot) -> None:
    from steno.demo.recording import write_demo

    root = write_demo(str(tmp_path / "demo")).root
    with explorer(str(tmp_path / "index"), root) as found:
        page = look(found, "/health")
        shot(page, "health-looking")
        expect(page.locator("#health")).to_have_attribute("data-busy", "")
        expect(page.locator(".case").first).to_be_visible()
        number = found.house.health_monitor.problem_count
        assert number > 0
        expect(page.locator(".nav [data-trouble]")).to_have_text(f"{number}")
        page.goto("/")
        assert page.locator(".nav [data-trouble]").inner_text().startswith(str(number))


def test_a_command_can_be_copied(demo: Explorer, look: Look) -> None:
    demo.house.health_monitor.start_check()
    demo.house.health_monitor.wait()
    page = look(demo, "/health")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    line = page.locator(".cmdline").first
    line.get_by_role("button").click()
    expect(page.locator(".voice")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == line.locator("span").inner_text()


def test_one_kind_of_harm_has_an_address(demo: Explorer, look: Look) -> None:
    demo.house.health_monitor.start_check()
    demo.house.health_monitor.wait()
    page = look(demo, "/health")
    page.get_by_role("navigation", name="Category").get_by_role("link", name="Damage").click()
    page.wait_for_url("**/health?harm=damage")
    assert page.locator("h2").first.inner_text() == "Damage"
