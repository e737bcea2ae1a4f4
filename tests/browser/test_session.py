"""Session page in a browser."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect
from tests.browser.axe import assert_accessible
from tests.browser.conftest import Look
from tests.builders import Session, session, tool
from tests.web.explorer import Explorer
from tests.web.sessions import exploring, session_called, written

Shot = Callable[..., Path]
_BRANCHED = "Smooth the curve"
_AGENTS = "Three languages"


def long_session(turns: int) -> Session:
    made = session(full=True)
    for number in range(1, turns + 1):
        made.user(f"question {number}").assistant(tool("Bash", command=f"run {number}"))
        made.result(f"output {number}", error=number == turns // 2).assistant(f"answer {number}")
    return made


def opened(demo: Explorer, look: Look, title: str, more: str = "", **how: str) -> Page:
    page = look(demo, f"/s/{session_called(demo, title)}{more}", **how)
    page.wait_for_selector("#panel .outline")
    return page


def test_the_tools_above_the_turns_fit_beside_the_panel(demo: Explorer, look: Look) -> None:
    page = opened(demo, look, _AGENTS)
    for width in (1366, 1440, 1920):
        page.set_viewport_size({"width": width, "height": 900})
        edges = page.evaluate(
            "() => [document.querySelector('.sbar'), ...document.querySelectorAll('.sbar *')]"
            ".map((each) => each.getBoundingClientRect().right)"
        )
        assert max(edges) <= edges[0], width


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", ["desk", "phone"])
def test_sessions_are_accessible_and_fit(demo: Explorer, look: Look, shot: Shot, size: str, theme: str) -> None:
    for name, more in ((_AGENTS, ""), (_BRANCHED, "?detail=everything&branch=1")):
        page = look(demo, f"/s/{session_called(demo, name)}{more}", size=size, theme=theme)
        page.wait_for_selector(".turns .turn")
        for step in page.locator(".step.agent > summary, .step.failed > summary").all():
            step.click()
        # What was opened is there, and so is what comes behind the page.
        for inside in page.locator(".step[open] > .in, #panel").all():
            expect(inside).not_to_be_empty()
        shot(page, f"session-{name.split()[0].lower()}-{size}-{theme}")
        assert_accessible(page)
        assert not page.evaluate("document.documentElement.scrollWidth > innerWidth"), name


@pytest.mark.parametrize("size", ["desk", "phone"])
def test_the_records_are_accessible_and_open_in_place(demo: Explorer, look: Look, shot: Shot, size: str) -> None:
    page = look(demo, f"/s/{session_called(demo, _AGENTS)}/records", size=size)
    page.locator(".rec > summary").first.click()
    page.wait_for_selector(".rec .in .box, .rec .in .code")
    shot(page, f"records-{size}")
    assert_accessible(page)


def test_a_step_opens_in_place_and_stays_open_in_the_address(demo: Explorer, look: Look) -> None:
    page = opened(demo, look, _BRANCHED)
    step = page.locator(".step", has_text="Bash").first
    step.locator("> summary").click()
    expect(step.locator("> .in .box, > .in pre").first).to_be_visible()
    place = step.get_attribute("data-place")
    assert place is not None
    page.wait_for_function("place => location.search.includes(place)", arg=place)
    page.reload()
    again = page.locator(f'.step[data-place="{place}"]')
    assert again.get_attribute("open") is not None
    expect(again.locator("> .in .box, > .in pre").first).to_be_visible()


def test_a_sub_agent_opens_in_place(demo: Explorer, look: Look) -> None:
    page = opened(demo, look, _AGENTS)
    step = page.locator(".step.agent").first
    step.locator("> summary").click()
    expect(step.locator(".brief")).to_be_visible()
    assert step.locator(".step").count() >= 1
    step.get_by_text("Sub-agent page").click()
    expect(page.locator(".shead")).to_be_visible()
    assert "/a/" in page.url


def test_an_abandoned_branch_opens_and_hides(demo: Explorer, look: Look) -> None:
    page = opened(demo, look, _BRANCHED)
    side = page.locator(".side").first
    side.locator("> summary").click()
    expect(side.locator(".old").first).to_be_visible()
    page.keyboard.press("b")
    expect(side).to_be_hidden()
    assert "abandoned=off" in page.url
    page.reload()
    expect(page.locator(".side").first).to_be_hidden()


def test_the_keys_walk_turns_steps_and_errors(demo: Explorer, look: Look) -> None:
    page = opened(demo, look, _BRANCHED)
    page.keyboard.press("j")
    assert page.locator(".is-here").count() == 1
    page.keyboard.press("o")
    expect(page.locator(".is-here")).to_have_attribute("open", "")
    page.keyboard.press("J")
    expect(page.locator("#t2")).to_have_class("turn is-at")
    page.keyboard.press("K")
    page.keyboard.press("e")
    expect(page.locator(".step.failed.is-here")).to_be_visible()
    page.keyboard.press("p")
    expect(page.locator(".panel")).to_be_hidden()
    page.keyboard.press("4")
    page.wait_for_url("**detail=everything**")
    page.keyboard.press("1")
    page.wait_for_url("**detail=prompts**")
    assert page.locator(".step").count() == 0


def test_a_raw_record_is_one_key_away(demo: Explorer, look: Look) -> None:
    page = opened(demo, look, _BRANCHED)
    page.keyboard.press("j")
    page.keyboard.press("r")
    page.wait_for_url("**/record/**")
    first = page.url
    page.keyboard.press("]")
    page.wait_for_url(lambda url: url != first)
    assert "/record/" in page.url


def test_two_sessions_are_marked_for_compare(demo: Explorer, look: Look) -> None:
    page = opened(demo, look, _BRANCHED)
    page.keyboard.press("x")
    expect(page.locator(".voice")).to_contain_text("Marked")
    other = session_called(demo, _AGENTS)
    page.goto(f"/s/{other}")
    asked: list[str] = []

    def answered(route: Route) -> None:
        asked.append(route.request.url)
        route.fulfill(body="<title>compared</title>", content_type="text/html")

    page.route("**/compare?**", answered)
    page.keyboard.press("x")
    page.wait_for_url("**/compare?**")
    assert asked[0].endswith(f"a={session_called(demo, _BRANCHED)}&b={other}")


def test_far_turns_come_when_they_are_asked_for(look: Look, shot: Shot, tmp_path: Path) -> None:
    made = long_session(300)
    with exploring(tmp_path, made) as (found, _):
        page = look(found, f"/s/{made.session_id}?turn=100")
        expect(page.locator("#t100")).to_be_in_viewport()
        shot(page, "session-window")
        assert_accessible(page)
        before = page.locator(".turns > article").count()
        page.locator(".foldrow").first.click()
        expect(page.locator("#t1")).to_be_visible()
        assert page.locator(".turns > article").count() > before
        page.keyboard.press("e")
        expect(page.locator(".step.failed.is-here")).to_be_visible()
        page.close()


def test_words_are_found_in_the_session(look: Look, shot: Shot, tmp_path: Path) -> None:
    made = long_session(120)
    with exploring(tmp_path, made) as (found, _):
        page = look(found, f"/s/{made.session_id}")
        box = page.locator(".within input[name=find]")
        box.fill("output 110")
        box.press("Enter")
        expect(page.locator(".found")).to_contain_text("1 of 1 records")
        expect(page.locator("#t110 mark").first).to_be_in_viewport()
        shot(page, "session-find")
        assert_accessible(page)
        page.close()


def test_a_live_session_grows_without_moving_what_is_read(look: Look, tmp_path: Path) -> None:
    made = session(full=True).turn("one", "ok").user("two").assistant(tool("Bash", command="a"))
    with exploring(tmp_path, made) as (found, _):
        page = look(found, f"/s/{made.session_id}?turn=1")
        page.wait_for_selector(".sess[data-heard]")
        step = page.locator("#t2 .step").first
        step.locator("> summary").click()
        expect(step.locator("> .in .box").first).to_be_visible()
        page.evaluate(
            "() => { const p = document.querySelector('#t1 .prose p'); getSelection().selectAllChildren(p); }"
        )
        top = page.evaluate("document.querySelector('#t1').getBoundingClientRect().top")
        written(made.result("x").assistant("grown").turn("three", "more"), tmp_path / "config")
        found.refresh()
        expect(page.locator("#t3 .prose")).to_contain_text("more")
        expect(page.locator("#t2 .prose")).to_contain_text("grown")
        assert step.get_attribute("open") is not None
        expect(step.locator("> .in .box").first).to_be_visible()
        assert page.evaluate("getSelection().toString()") == "ok"
        assert page.evaluate("document.querySelector('#t1').getBoundingClientRect().top") == top
        page.close()


def test_many_new_turns_come_in_without_losing_the_place(look: Look, tmp_path: Path) -> None:
    made = long_session(3)
    with exploring(tmp_path, made) as (found, _):
        page = look(found, f"/s/{made.session_id}?turn=1")
        page.wait_for_selector(".sess[data-heard]")
        page.evaluate("window.kept = true")
        page.locator("#t2").scroll_into_view_if_needed()
        top = page.evaluate("document.querySelector('#t2').getBoundingClientRect().top")
        for number in range(4, 44):
            made.turn(f"asked {number}", f"answer {number}")
        written(made, tmp_path / "config")
        found.refresh()
        expect(page.locator("#t43 .prose")).to_contain_text("answer 43")
        assert page.evaluate("window.kept")
        assert page.evaluate("document.querySelector('#t2').getBoundingClientRect().top") == top
        # Every turn is there once: in full, or in a row that stands for it.
        numbers = page.evaluate(
            "() => [...document.querySelectorAll('.turns > [data-turn], .turns > .fold')].flatMap("
            "(one) => one.dataset.turn ? [Number(one.dataset.turn)] : Array.from({length: "
            "one.dataset.last - one.dataset.first + 1}, (_, at) => Number(one.dataset.first) + at))"
        )
        assert numbers == list(range(1, 44))
        page.close()


def test_following_stays_at_the_end(look: Look, tmp_path: Path) -> None:
    made = long_session(12)
    with exploring(tmp_path, made) as (found, _):
        page = look(found, f"/s/{made.session_id}")
        page.wait_for_selector(".sess[data-heard]")
        page.get_by_role("button", name="Follow").click()
        written(made.turn("the newest", "of all"), tmp_path / "config")
        found.refresh()
        expect(page.locator("#t13")).to_be_in_viewport()
        page.close()


def test_a_broken_line_is_told_and_mended(look: Look, tmp_path: Path) -> None:
    made = long_session(2)
    with exploring(tmp_path, made) as (found, _):
        page = look(found, f"/s/{made.session_id}")
        page.wait_for_selector(".sess[data-heard]")
        expect(page.locator(".lost")).to_be_hidden()
        found.house.pubsub.close()
        expect(page.locator(".lost")).to_be_visible()
        assert page.locator("#t2 .prose").is_visible()
        # Whoever comes back is heard again, and hears what was missed.
        found.house.pubsub.closed = False
        written(made.turn("again", "here"), tmp_path / "config")
        found.refresh()
        expect(page.locator("#t3")).to_be_visible()
        expect(page.locator(".lost")).to_be_hidden()
        page.close()


@pytest.mark.parametrize("size", ["desk", "phone"])
def test_a_very_long_session_shows_its_end_first(
    look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: str
) -> None:
    monkeypatch.setattr("steno.web.routes.session.BIG", 1000)
    monkeypatch.setattr("steno.web.views.opened_session._TAIL", 20_000)
    made = long_session(60)
    with exploring(tmp_path, made) as (found, _):
        page = look(found, f"/s/{made.session_id}", size=size)
        page.wait_for_selector("#t60")
        expect(page.locator("#t60")).to_be_in_viewport()
        expect(page.locator(".reading")).to_have_count(0)
        page.close()


def test_the_page_works_without_scripts(demo: Explorer, look: Look) -> None:
    key = session_called(demo, _BRANCHED)
    html = demo.get(f"/s/{key}").text
    assert "<script type" in html
    context = look(demo, "/").context.browser
    assert context is not None
    plain = context.new_context(java_script_enabled=False, base_url=demo.base)
    name, _, value = demo.cookie.partition("=")
    plain.add_cookies([{"name": name, "value": value, "url": demo.base}])
    page = plain.new_page()
    page.goto(f"/s/{key}")
    page.locator(".step > summary").first.click()
    page.get_by_text("Open step").first.click()
    expect(page.locator(".step .in .box, .step .in pre, .step .in .think").first).to_be_visible()
    page.go_back()
    page.locator(".side > summary").click()
    page.get_by_text("Open branch").click()
    expect(page.locator(".side .old").first).to_be_visible()
    plain.close()


@pytest.mark.parametrize(("size", "theme"), [("desk", "light"), ("desk", "dark"), ("phone", "light")])
def test_a_picture_in_a_prompt_is_seen(demo: Explorer, look: Look, shot: Shot, size: str, theme: str) -> None:
    with demo.house.index() as index:
        rows = index.connection.execute("SELECT id FROM sessions WHERE agent = ''").fetchall()
    key = next(name for (name,) in rows if 'class="attached"' in demo.get(f"/s/{name}").text)
    page = look(demo, f"/s/{key}", size=size, theme=theme)
    picture = page.locator(".prompt .attached img").first
    picture.scroll_into_view_if_needed()
    expect(picture).to_have_js_property("complete", value=True)
    assert picture.evaluate("each => each.naturalWidth") > 0
    box = picture.bounding_box()
    assert box is not None
    assert box["width"] <= 242
    assert box["height"] <= 162
    shot(page, f"session-picture-{size}-{theme}")
    assert_accessible(page)
