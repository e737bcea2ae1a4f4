"""Session page: rendered content, loaded fragments, links."""

import json
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.builders import Session, session, tool
from tests.web.explorer import Explorer
from tests.web.sessions import exploring, session_called

from steno.session.session import Session as Opened
from steno.web.routes import session as pages
from steno.web.views import session_view as tales


def texts(html: str) -> str:
    """Return what is read on a page."""
    body = html.partition('<main id="main">')[2] or html
    return " ".join(re.sub(r"<[^>]+>", " ", body).split())


def hrefs(html: str, name: str = "href") -> list[str]:
    """Return the addresses on a page."""
    return [each.replace("&amp;", "&") for each in re.findall(rf'{name}="([^"#]+)', html)]


def rewound() -> Session:
    made = session(full=True).turn("first", "ok")
    made.user("second, tried in vain").assistant(tool("Bash", command="make it worse"))
    made.result("x").assistant("this did not work", output=900)
    return made.rewind(1).turn("third", "that is better")


def long_session(turns: int) -> Session:
    made = session()
    for number in range(1, turns + 1):
        made.user(f"question {number}").assistant(tool("Bash", command=f"run {number}"))
        made.result(f"output {number}").assistant(f"answer {number}")
    return made


# What is drawn


def test_every_demo_session_opens_in_every_detail(demo: Explorer) -> None:
    with demo.house.index() as index:
        rows = index.connection.execute("SELECT id, agent FROM sessions").fetchall()
    assert len(rows) > 20
    for name, agent in rows:
        way = f"/s/{name}/a/{agent}" if agent else f"/s/{name}"
        for more in ("", "?detail=prompts", "?detail=answers", "?detail=everything", "/panel"):
            answer = demo.get(way + more)
            assert answer.status == 200, way + more


def test_the_head_says_what_it_is_and_how_it_stands(demo: Explorer) -> None:
    said = texts(demo.get(f"/s/{session_called(demo, 'Three languages')}").text)
    assert said.startswith("invoice-render locales · 59712d2a Three languages Finished opus-5-5")
    assert "2 turns, 5 steps" in said
    assert "3 sub-agents" in said
    assert "1 compaction" in said


def test_a_turn_has_prompt_steps_answer_and_figures(tmp_path: Path) -> None:
    made = session(full=True).user("please").assistant(tool("Bash", command="echo hello"))
    made.result("hello").assistant("It **says** hello.", output=40).done()
    with exploring(tmp_path, made) as (found, _):
        html = found.get(f"/s/{made.session_id}").text
        assert '<div class="prompt"><p>please</p></div>' in html
        assert re.search(r"<b>Bash</b><span class=\"arg\">echo hello</span>", html)
        assert "It <strong>says</strong> hello." in html
        assert re.search(r"<b>1</b> step</span>", html)
        assert re.search(r"<b>[\d.k]+</b> in, \d+% cached", html)


def test_the_details_show_more_and_more(tmp_path: Path) -> None:
    made = session(full=True).user("ask").meta("a silent note")
    made.assistant(tool("Bash", command="echo")).result("x").assistant("the end")
    with exploring(tmp_path, made) as (found, _):
        seen = {
            detail: found.get(f"/s/{made.session_id}?detail={detail}").text
            for detail in ("prompts", "answers", "steps", "everything")
        }
        marks = ("the end", "<b>Bash</b>", "a silent note")
        shown = {name: [mark in html.partition('class="map"')[0] for mark in marks] for name, html in seen.items()}
    assert shown == {
        "prompts": [False, False, False],
        "answers": [True, False, False],
        "steps": [True, True, False],
        "everything": [True, True, True],
    }


def test_an_abandoned_branch_stands_where_it_left_with_its_cost(tmp_path: Path) -> None:
    made = rewound()
    with exploring(tmp_path, made) as (found, _):
        html = found.get(f"/s/{made.session_id}").text
        places = [html.index(mark) for mark in ('id="t1"', 'id="b1"', 'id="t2"')]
        assert places == sorted(places)
        box = html[places[1] : places[2]]
        assert "2\u2032" in box
        assert "after rewinding to turn 1" in box
        assert re.search(r'<span class="end">\$0\.\d\d</span>', box)
        assert "tried in vain" not in box
        inside = found.get(f"/s/{made.session_id}/branch/1").text
        assert "second, tried in vain" in inside
        assert "make it worse" in inside
        opened = found.get(f"/s/{made.session_id}?branch=1").text
        assert "this did not work" in opened.partition('class="map"')[0]


@pytest.mark.parametrize("detail", ["prompts", "answers", "steps", "everything"])
def test_every_compaction_inside_a_turn_has_a_box_where_it_was(tmp_path: Path, detail: str) -> None:
    made = session("2.1.42").turn("first", "yes").compact("So far.").user("go")
    for number in range(3):
        made.assistant(tool("Bash", command=f"make {number}")).result("x")
        made.compact(f"So far {number}.", trigger="auto")
    made.assistant("All done.")
    with exploring(tmp_path, made) as (found, _):
        html = found.get(f"/s/{made.session_id}?detail={detail}").text.partition('class="map"')[0]
        assert [html.count(f'id="c{number}"') for number in (1, 2, 3, 4)] == [1, 1, 1, 1]
        marks = ['id="t1"', 'id="c1"', "So far.", 'id="t2"']
        for number in range(3):
            marks += [f"make {number}"] * (detail in ("steps", "everything"))
            marks += [f'id="c{number + 2}"', f"So far {number}."]
        marks += ["All done."] * (detail != "prompts")
        places = [html.index(mark) for mark in marks]
        assert places == sorted(places)
        told = json.loads(found.get(f"/api/v1/sessions/{made.session_id}").text)
        assert [each["turn"] for each in told["compacted"]] == [2, 2, 2, 2]


def test_compactions_inside_a_turn_that_is_a_row_stand_behind_it(tmp_path: Path) -> None:
    made = session("2.1.42").user("go").assistant(tool("Bash", command="make")).result("x")
    made.compact("So far.", trigger="auto").assistant("All done.")
    for number in range(300):
        made.turn(f"more {number}", "yes")
    with exploring(tmp_path, made) as (found, _):
        html = found.get(f"/s/{made.session_id}?turn=300").text.partition('class="map"')[0]
        places = [html.index(mark) for mark in ('id="f1-1"', 'id="c1"', 'id="f2-')]
        assert places == sorted(places)
        turn = found.get(f"/s/{made.session_id}/turns?from=1&to=1").text
        assert turn.index('id="t1"') < turn.index("make") < turn.index('id="c1"')


def test_a_step_of_a_branch_has_a_page_that_leads_back_to_the_branch(tmp_path: Path) -> None:
    made = rewound()
    with exploring(tmp_path, made) as (found, _):
        inside = found.get(f"/s/{made.session_id}/branch/1").text
        (step,) = re.findall(r'href="(/s/[^"]+/step/[^"]+)"', inside)
        page = found.get(step)
        assert page.status == 200
        assert "branch=1" in page.text


def test_a_compaction_is_a_seam_with_its_summary(tmp_path: Path) -> None:
    made = session(full=True).turn("before", "yes").compact("what was kept").turn("after", "sure")
    with exploring(tmp_path, made) as (found, _):
        html = found.get(f"/s/{made.session_id}").text
        seam = html[html.index('class="seam"') : html.index('id="t2"')]
        assert re.search(r"[\d.k]+ to [\d.k]+ tokens", seam)
        assert "manual" in seam
        assert "what was kept" in seam
        assert f"/s/{made.session_id}?turn=1#t1" in seam


def test_a_queued_prompt_is_a_box_among_the_steps(tmp_path: Path) -> None:
    made = session(full=True).user("work").assistant(tool("Bash", command="long"))
    made.enqueue("and mention the date").result("x").absorb().assistant("done")
    with exploring(tmp_path, made) as (found, _):
        html = found.get(f"/s/{made.session_id}").text
        (box,) = re.findall(r'<div class="prompt queued".*?</div><p>(.*?)</p>', html)
        assert box == "and mention the date"


def test_a_failed_step_and_an_error_of_the_api_are_marked(tmp_path: Path) -> None:
    made = session(full=True).user("go").assistant(tool("Bash", command="false"))
    made.result("no", error=True).fatal("API Error: 529 overloaded")
    with exploring(tmp_path, made) as (found, _):
        html = found.get(f"/s/{made.session_id}").text
        assert len(re.findall(r'class="step[^"]*failed', html)) == 2
        assert "2 failed" in texts(html)


def test_a_record_of_an_unknown_type_is_an_ordinary_step(tmp_path: Path) -> None:
    made = session(full=True).user("go").record("context-ledger", window=200_000).assistant("ok")
    with exploring(tmp_path, made) as (found, _):
        html = found.get(f"/s/{made.session_id}").text
        assert "<b>context-ledger</b>" in html


# Sub-agents


def test_a_sub_agent_is_told_in_place_and_on_a_page_of_its_own(demo: Explorer) -> None:
    key = session_called(demo, "Three languages")
    html = demo.get(f"/s/{key}").text
    sources = re.findall(r'class="step agent w(\d)[^>]*data-src="([^"]+)"', html)
    assert [colour for colour, _ in sources] == ["1", "2"]
    inside = demo.get(sources[0][1].replace("&amp;", "&")).text
    assert 'class="brief"' in inside
    assert 'class="step' in inside
    (own,) = re.findall(r'href="(/s/[^"]+/a/[^"/]+)">Sub-agent page', inside)
    page = demo.get(own)
    assert page.status == 200
    assert "Sub-agent prompt" in page.text
    steps = re.findall(r'href="(/s/[^"]+/a/[^"]+/step/[^"]+)"', page.text)
    assert steps
    assert demo.get(steps[0]).status == 200


def test_sub_agents_inside_the_file_of_an_old_client_have_pages_too(tmp_path: Path) -> None:
    made = session("1.0.60").user("go")
    made.assistant(tool("Task", description="Look", prompt="Look around"))
    made.agent(lambda agent: agent.assistant("I looked")).assistant("done")
    with exploring(tmp_path, made) as (found, _):
        html = found.get(f"/s/{made.session_id}").text
        (source,) = re.findall(r'class="step agent[^>]*data-src="([^"]+)"', html)
        inside = found.get(source.replace("&amp;", "&")).text
        (own,) = re.findall(r'href="(/s/[^"]+/a/[^"/]+)">Sub-agent page', inside)
        assert "I looked" in found.get(own).text


# Windows


def test_a_long_session_is_drawn_around_the_wanted_turn_only(tmp_path: Path) -> None:
    made = long_session(400)
    with exploring(tmp_path, made) as (found, _):
        way = f"/s/{made.session_id}"
        html = found.get(f"{way}?turn=200").text
        assert 'id="t200"' in html
        assert len(re.findall(r'<article class="turn"', html)) <= 20
        assert len(html) < 400_000
        # Every other turn is in a row, and every row gives its turns.
        full = {int(number) for number in re.findall(r'id="t(\d+)"', html)}
        waiting = re.findall(r'data-first="(\d+)" data-last="(\d+)"', html)
        rest = {turn for one, other in waiting for turn in range(int(one), int(other) + 1)}
        assert full | rest == set(range(1, 401))
        assert not full & rest
        (source,) = re.findall(rf'data-src="({way}/turns\?from={waiting[0][0]}&[^"]+)"', html)
        piece = found.get(source.replace("&amp;", "&")).text
        assert 'id="t1"' in piece
        assert "<html" not in piece


def test_a_turn_that_is_not_there_shows_the_last(tmp_path: Path) -> None:
    made = long_session(60)
    with exploring(tmp_path, made) as (found, _):
        assert 'id="t60"' in found.get(f"/s/{made.session_id}?turn=99999").text
        assert found.get(f"/s/{made.session_id}?turn=-3&hit=x&branch=%27&open=a,b").status == 200


def test_of_a_very_long_file_the_last_turns_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "BIG", 1000)
    monkeypatch.setattr("steno.web.views.opened_session._TAIL", 20_000)
    made = long_session(60)
    with exploring(tmp_path, made) as (found, _):
        way = f"/s/{made.session_id}"
        first = found.get(way).text
        assert "answer 60" in first
        assert "answer 30" not in first
        assert f'data-whole="{way}?whole=1"' in first
        whole = found.get(f"{way}?whole=1").text
        assert 'id="t60"' in whole
        assert "data-whole" not in whole
        # Once it was read, it comes whole at once.
        assert "data-whole" not in found.get(way).text


# Finding


def test_words_are_found_marked_and_gone_through(tmp_path: Path) -> None:
    made = long_session(80)
    with exploring(tmp_path, made) as (found, _):
        way = f"/s/{made.session_id}"
        html = found.get(f"{way}?find=output+70").text
        assert "1</b> of 1 records" in html
        assert 'id="t70"' in html
        assert "<mark>output</mark> <mark>70</mark>" in html
        many = found.get(f"{way}?find=answer&hit=80").text
        assert "80</b> of 80 records" in many
        (following,) = re.findall(r'href="([^"]+)" data-hit="next"', many)
        assert "hit=1" in following
        none = found.get(f"{way}?find=nowhere").text
        assert "No matches for" in none


def test_words_are_found_in_what_was_abandoned_and_it_is_said(tmp_path: Path) -> None:
    made = session(full=True).turn("one", "ok").turn("two", "the lost word").turn("also", "lost")
    made.rewind(1).turn("two again", "kept, not lost")
    with exploring(tmp_path, made) as (found, _):
        way = f"/s/{made.session_id}?find=lost"
        pages = [found.get(f"{way}&hit={hit}").text for hit in (1, 2, 3)]
        for text in pages:
            assert "of 3 records" in text
        shown = [text for text in pages if "in abandoned turn" in text]
        assert len(shown) == 2
        assert "the <mark>lost</mark> word" in shown[0]
        assert 'id="b1"' in shown[0]
        (said,) = (text for text in pages if text not in shown)
        assert "2 in abandoned branches" in said
        (following,) = re.findall(r'href="([^"]+)" data-hit="next"', said)
        assert following.endswith(("#b1", "#t1", "#t2"))


def test_words_are_found_in_sub_agents_and_it_is_said_in_which(demo: Explorer) -> None:
    with demo.house.index() as index:
        row = index.connection.execute("SELECT id, agent FROM sessions WHERE agent != ''").fetchone()
    own = demo.get(f"/s/{row[0]}/a/{row[1]}").text
    (title,) = re.findall(r"<title>([^<]*) · steno", own)
    text = demo.get(f"/s/{row[0]}?find=the").text
    ways = re.findall(r'<a class="link" href="([^"]*/a/[^"]*find=the)">', text)
    assert any(f"/a/{row[1]}?" in way for way in ways), title
    for way in ways:
        assert "records match" in demo.get(way).text


@pytest.mark.parametrize("words", ["<b>", "&amp;", "mark", '"', "class", "span", "%00", "ä"])
def test_odd_words_break_no_page(demo: Explorer, words: str) -> None:
    key = session_called(demo, "Three languages")
    from urllib.parse import quote

    answer = demo.get(f"/s/{key}?find={quote(words)}")
    assert answer.status == 200
    assert "<main" in answer.text
    assert "<b>&lt;" not in answer.text


def test_the_address_of_a_record_leads_to_where_it_is_told(tmp_path: Path) -> None:
    made = rewound().title("a name that is no turn")
    with exploring(tmp_path, made) as (found, _):
        way = f"/s/{made.session_id}"
        html = found.get(f"{way}/records").text
        kinds = {kind: offset for offset, kind in re.findall(r'id="r(\d+)".*?class="type">([^<]+)<', html)}
        bash = re.findall(r'data-place="(\d+)-0"', found.get(f"{way}/branch/1").text)[0]
        branch = found.get(f"{way}?at={bash}").text
        assert f'data-goto="{bash}-0"' in branch
        assert re.search(rf'data-place="{bash}-0"[^>]* open', branch)
        prompt = found.get(f"{way}?at={kinds['user/prompt']}").text
        assert 'data-goto="t2"' in prompt
        aside = found.get(f"{way}?at={kinds['custom-title']}")
        assert aside.status == 303
        assert aside.headers["location"] == f"{way}/record/{kinds['custom-title']}"


# Records


def test_the_list_of_records_has_pages_and_kinds(tmp_path: Path) -> None:
    made = long_session(120)
    with exploring(tmp_path, made) as (found, _):
        way = f"/s/{made.session_id}/records"
        first = found.get(way).text
        assert len(re.findall(r'<details class="rec', first)) == 200
        (later,) = re.findall(r'rel="next" href="([^"]+)"', first)
        second = found.get(later.replace("&amp;", "&")).text
        assert 'rel="prev"' in second
        only = found.get(f"{way}?kind=assistant").text
        assert "240 of 480" in texts(only)


def test_a_record_says_where_it_is_told(tmp_path: Path) -> None:
    made = rewound()
    with exploring(tmp_path, made) as (found, _):
        html = found.get(f"/s/{made.session_id}/records").text
        assert ">Turn 1</a>" in html
        assert ">Abandoned</a>" in html
        offset = re.findall(r"/record/(\d+)", html)[-1]
        one = found.get(f"/s/{made.session_id}/record/{offset}")
        assert one.status == 200
        assert found.get(f"/s/{made.session_id}/record/{int(offset) + 1}").status == 404


def test_what_is_wrong_with_a_file_is_told_beside_it(tmp_path: Path) -> None:
    made = session(full=True).turn("one", "ok")
    with exploring(tmp_path, made) as (found, (path,)):
        path.write_bytes(path.read_bytes() + b'{"type":"user","torn')
        found.refresh()
        said = found.get(f"/s/{made.session_id}/findings").text
        assert "line.torn" in said
        # The command looks where the explorer does, and may be typed as it stands.
        command = f"steno repair --root {tmp_path / 'config'} {made.session_id[:4]}"
        assert command in texts(said)
        assert "1 gap in the file" in texts(found.get(f"/s/{made.session_id}").text)


def test_what_is_wrong_with_a_sub_agents_file_is_told_when_it_comes(tmp_path: Path) -> None:
    made = session().user("Look").assistant(tool("Agent", prompt="Look", subagent_type="Explore"))
    made.agent(lambda agent: agent.assistant("Seen.")).assistant("Fine.").done()
    with exploring(tmp_path, made) as (found, _):
        way = f"/s/{made.session_id}/findings"
        assert "line.torn" not in found.get(way).text
        (agent,) = (tmp_path / "config").rglob("agent-*.jsonl")
        agent.write_bytes(agent.read_bytes() + b'{"type":"user","torn')
        assert "line.torn" in found.get(way).text


def test_a_turn_says_what_it_does_not_show_and_does_not_call_it_steps(tmp_path: Path) -> None:
    made = session(full=True).user("one").assistant(tool("Bash", command="a")).result("x")
    made.hook("PostToolUse", "callback", tool="Bash").assistant("ok").done()
    with exploring(tmp_path, made) as (found, _):
        html = found.get(f"/s/{made.session_id}").text
        foot = texts(html[html.index('<footer class="turn-foot">') :].partition("</footer>")[0])
        assert foot.startswith("1 step ")
        assert re.search(r"\b1 hook\b", foot)
        assert "more step" not in foot
        only = found.get(f"/s/{made.session_id}?detail=answers").text
        assert "Show steps" in only


def test_what_is_broken_off_is_not_called_abandoned(tmp_path: Path) -> None:
    made = session().turn("one", "ok").turn("two", "fine")
    lost = session(seed="lost").turn("apart", "from it")
    with exploring(tmp_path, made) as (found, (path,)):
        # A second root: nobody went back, yet it is not in the conversation.
        path.write_bytes(lost.bytes() + path.read_bytes())
        found.refresh()
        text = texts(found.get(f"/s/{made.session_id}").text)
        assert "Disconnected separate root" in text
        assert "1 disconnected" in text
        assert "1 abandoned" not in text
        assert "> abandoned branch<" not in found.get("/").text


def test_a_session_that_takes_long_to_read_keeps_no_other_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, quick = session(seed="slow").turn("one", "ok"), session(seed="quick").turn("two", "ok")
    begun, go_on = threading.Event(), threading.Event()
    plain = tales.SessionView

    def told(opened: Opened, *given: Any, **more: Any) -> tales.SessionView:
        if opened.id == slow.session_id:
            begun.set()
            assert go_on.wait(60)
        return plain(opened, *given, **more)

    monkeypatch.setattr(tales, "SessionView", told)
    with exploring(tmp_path, slow, quick) as (found, _):
        waiting = threading.Thread(target=found.get, args=(f"/s/{slow.session_id}",))
        waiting.start()
        try:
            assert begun.wait(60)
            assert found.get(f"/s/{quick.session_id}").status == 200
            assert waiting.is_alive()
        finally:
            go_on.set()
            waiting.join()


@pytest.mark.parametrize(
    "way",
    [
        "/s/nobody",
        "/s/{key}/a/nobody",
        "/s/{key}/step/1-0",
        "/s/{key}/step/x",
        "/s/{key}/record/x",
        "/s/{key}/branch/9",
        "/s/{key}/branch/x",
    ],
)
def test_what_is_not_there_is_not_found(demo: Explorer, way: str) -> None:
    key = session_called(demo, "Three languages")
    assert demo.get(way.format(key=key)).status == 404


# Beside the turns


def test_the_files_of_a_session_lead_to_their_pages(demo: Explorer) -> None:
    with demo.house.index() as index:
        keys = [row[0] for row in index.connection.execute("SELECT id FROM sessions WHERE agent = ''")]
    ways = {way for key in keys for way in re.findall(r'<a href="(/files/[^"]+)">', demo.get(f"/s/{key}/panel").text)}
    assert len(ways) > 10
    for way in ways:
        assert demo.get(way).status == 200, way


def test_a_fork_says_what_its_cost_leaves_out(tmp_path: Path) -> None:
    made = session(full=True).turn("one", "ok").turn("two", "ok")
    fork = made.fork(traced=True).turn("three", "other")
    with exploring(tmp_path, made, fork) as (found, _):
        text = found.get(f"/s/{fork.session_id}").text
        assert "excludes 2 copied responses" in text
        assert "2 responses were copied from another session" in text
        first = found.get(f"/s/{made.session_id}").text
        assert "copied" not in first


@pytest.mark.parametrize("way", ["~{}", "/branch/{}", "/record/{}", "/step/{}-1", "?turn={}", "/records?from={}"])
def test_a_number_that_nothing_can_have_is_no_accident(demo: Explorer, way: str) -> None:
    key = session_called(demo, "Tag the release, but do not push.")
    for digits in (18, 5000):
        assert demo.get(f"/s/{key}{way.format('9' * digits)}").status in (200, 404)
    for page in ("/?q=a&from=", "/files?from="):
        assert demo.get(page + "9" * 5000).status == 200
