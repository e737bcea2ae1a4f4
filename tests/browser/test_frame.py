"""Elements of every page: navigation bar, shortcuts, theme, footer."""

from tests.browser.axe import assert_accessible
from tests.browser.conftest import Look
from tests.web.explorer import Explorer


def test_the_first_page_opens_and_is_accessible(demo: Explorer, look: Look) -> None:
    page = look(demo, "/")
    assert page.title() == "Sessions · steno"
    assert_accessible(page)


def test_a_key_shows_the_map_of_keys(demo: Explorer, look: Look) -> None:
    page = look(demo, "/")
    page.keyboard.press("?")
    assert page.locator("dialog.keys").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("dialog.keys").is_visible()


def test_the_theme_is_kept(demo: Explorer, look: Look) -> None:
    page = look(demo, "/")
    page.keyboard.press("t")
    page.keyboard.press("t")
    assert page.locator("html").get_attribute("data-theme") == "dark"
    page.reload()
    assert page.locator("html").get_attribute("data-theme") == "dark"


def test_the_page_says_that_it_is_a_demo(demo: Explorer, look: Look) -> None:
    page = look(demo, "/")
    assert "Demo sessions" in page.locator(".demo-note").inner_text()


def test_on_a_phone_nothing_of_the_bar_lies_over_the_page(demo: Explorer, look: Look) -> None:
    for way in ("/", "/health"):
        page = look(demo, way, size="phone")
        lowest = "Math.max(...[...document.querySelectorAll('.bar *')].map(lowest))"
        below = "(each) => each.getBoundingClientRect().bottom"
        main = "document.querySelector('.demo-note, #main').getBoundingClientRect().top"
        assert page.evaluate(f"(() => {{ const lowest = {below}; return {lowest} <= {main}; }})()")


def test_on_a_phone_a_short_list_begins_right_below_the_filters(demo: Explorer, look: Look) -> None:
    page = look(demo, "/?min_steps=30", size="phone")
    summary, main = (page.locator(part).bounding_box() for part in (".facets > summary", "#main"))
    assert summary is not None
    assert main is not None
    assert main["y"] - (summary["y"] + summary["height"]) < 5
