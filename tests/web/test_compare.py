"""Comparison page over HTTP."""

import json
import re
from collections.abc import Generator
from html import unescape
from pathlib import Path

import pytest
from tests.builders.stories.kit import bash, begin
from tests.web.compared_sessions import PROMPT, first_try, lay, second_try
from tests.web.explorer import Explorer, explorer

_STORM = "6429f00f-fc3c-4f28-a384-ea05996b9683"
_FORK = "6fffb971-6d3b-44ed-8a1a-d8cbb390f365"
_ROW = re.compile(
    r'<div class="lab" role="rowheader">([^<]*)</div><div role="cell"([^>]*)>([^<]*)</div>'
    r'<div role="cell"([^>]*)>([^<]*)</div>'
)
_NASTY = '"><img src=x onerror=alert(1)>\u202e<script>alert(2)</script>'


@pytest.fixture(scope="module")
def tries(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Explorer, str, str]]:
    folder = tmp_path_factory.mktemp("tries")
    root = folder / "config"
    one, other = lay(root, first_try(), second_try())
    with explorer(str(folder / "index"), str(root)) as found:
        yield found, one, other


def _rows(text: str) -> dict[str, tuple[str, str, str]]:
    """Return what the table says: of A, of B, and who did better."""
    made: dict[str, tuple[str, str, str]] = {}
    for name, one, a, other, b in _ROW.findall(text):
        made[name] = unescape(a), unescape(b), "a" * ("better" in one) + "b" * ("better" in other)
    return made


def test_two_tries_stand_side_by_side(tries: tuple[Explorer, str, str]) -> None:
    of, one, other = tries
    answer = of.get(f"/compare?a={one}&b={other}")
    assert answer.status == 200
    rows = _rows(answer.text)
    assert rows["Model"] == ("opus-5-5", "sonnet-4-5", "")
    assert rows["Failed steps"] == ("2 of 8", "none", "b")
    assert rows["Last tests"] == ("3 failed, 118 passed", "121 passed", "b")
    assert rows["Turns"] == ("2", "1", "b")
    text = unescape(answer.text)
    assert "same first prompt" in text
    assert "diverges after 4 common steps, 1 more common step later" in text
    assert "step 5: A edits papercrane/text/shape.py, B runs uv run papercrane glyphs" in text


def test_a_step_of_both_is_drawn_once_and_says_where_its_end_differs(tries: tuple[Explorer, str, str]) -> None:
    of, one, other = tries
    text = of.get(f"/compare?a={one}&b={other}").text
    assert text.count("<p>The invoice PDF shows boxes") == 1
    differing = re.search(r"uv run pytest -q</span><span class=\"res bad\">.*?</summary>", text)
    assert differing is not None
    said = re.sub(r"<[^>]*>", " ", differing[0]).split()
    assert " ".join(said).startswith("uv run pytest -q A exit 1, 3 failed, 118 passed B 121 passed")


def test_swapping_turns_everything_around(tries: tuple[Explorer, str, str]) -> None:
    of, one, other = tries
    rows = _rows(of.get(f"/compare?a={one}&b={other}").text)
    turned = _rows(of.get(f"/compare?a={other}&b={one}").text)
    better = {"a": "b", "b": "a", "": ""}
    assert turned == {name: (b, a, better[who]) for name, (a, b, who) in rows.items()}


def test_every_address_on_the_page_answers(tries: tuple[Explorer, str, str]) -> None:
    of, one, other = tries
    text = of.get(f"/compare?a={one}&b={other}&all=1").text
    ways = {unescape(way) for way in re.findall(r'(?:href|data-src)="(/[^"#]*)', text)}
    ways = {way for way in ways if not way.startswith(("/static", "/files", "/health"))}
    assert {key for way in ways for key in (one, other) if way.startswith(f"/s/{key}/step/")} == {one, other}
    assert len(ways) > 30
    assert {way: of.get(way).status for way in sorted(ways)} == dict.fromkeys(sorted(ways), 200)


def test_a_fork_says_what_it_shares(demo: Explorer) -> None:
    text = demo.get(f"/compare?a={_STORM}&b={_FORK}").text
    assert "B is a fork of A. Shared records: 3 turns, 9 steps." in text
    rows = _rows(text)
    assert rows["Cost"][2] == rows["Input tokens"][2] == ""
    assert "A has ended, B receives another prompt" in text


def test_the_cost_of_a_side_is_that_of_the_list(demo: Explorer) -> None:
    rows = _rows(demo.get(f"/compare?a={_STORM}&b={_FORK}").text)
    for key, cost in ((_STORM, rows["Cost"][0]), (_FORK, rows["Cost"][1])):
        row = re.search(rf'data-key="{key}"[^>]*>.*?<span class="cell cost">([^<]*)<', demo.get("/").text,
                        re.DOTALL)  # fmt: skip
        assert row is not None
        assert row[1] == cost


def test_without_two_sessions_one_is_asked_to_choose(demo: Explorer) -> None:
    text = demo.get("/compare").text
    assert "Choose two sessions to compare" in text
    keys = re.findall(r'class="pick" href="/compare\?a=([^"]*)"', text)
    assert _STORM in keys
    assert len(keys) == len(set(keys)) > 10


def test_with_one_session_its_likely_partners_come_first(demo: Explorer, tries: tuple[Explorer, str, str]) -> None:
    text = demo.get(f"/compare?a={_STORM}").text
    found = re.findall(r'href="/compare\?a=([^&"]*)&amp;b=([^"]*)".*?</a>', text)
    assert found[0] == (_STORM, _FORK)
    assert (_STORM, _STORM) not in found
    assert re.search(r"fork of this session</span>", text)
    assert "original of this fork" in demo.get(f"/compare?a={_FORK}").text
    of, one, other = tries
    text = of.get(f"/compare?a={one}").text
    assert re.search(rf"b={other}.*?same first prompt", text, re.DOTALL)


def test_words_narrow_what_is_offered(demo: Explorer) -> None:
    text = demo.get("/compare?q=TIDEGAUGE+surge").text
    keys = re.findall(r'class="pick" href="/compare\?a=([^"]*)"', text)
    assert set(keys) == {_STORM, _FORK}
    assert "2 matches" in text
    assert "No sessions match this search." in demo.get("/compare?q=nowhere-at-all").text
    assert demo.get("/compare?q=" + "%25_" * 3000).status == 200


def test_a_session_is_not_compared_with_itself(demo: Explorer) -> None:
    answer = demo.get(f"/compare?a={_STORM}&b={_STORM}")
    assert answer.status == 200
    assert "cannot be compared with itself" in answer.text


@pytest.mark.parametrize("query", ["a=nobody", f"a={_STORM}&b=nobody", "b=../../etc/passwd"])
def test_a_session_that_is_not_there_is_said_so(demo: Explorer, query: str) -> None:
    assert demo.get(f"/compare?{query}").status == 404


def test_long_paths_are_folded_and_all_of_them_can_be_asked_for(tmp_path: Path) -> None:
    made = begin(seed="long", cwd="/home/ada/long")
    made.user("Count.")
    for number in range(60):
        made.assistant(bash(f"echo {number}", "Say it")).result(f"{number}")
    other = begin(seed="short", cwd="/home/ada/long", start="2026-11-03T09:00:00.000Z")
    other.user("Count.")
    one, two = lay(tmp_path / "config", made.assistant("Done.").exit(), other.assistant("No.").exit())
    with explorer(str(tmp_path / "index"), str(tmp_path / "config")) as of:
        text = of.get(f"/compare?a={one}&b={two}").text
        whole = of.get(f"/compare?a={one}&b={two}&all=1").text
    assert '<details class="fold">' in text
    assert '<details class="fold">' not in whole
    steps = len(re.findall(r'<details class="step', text))
    assert steps == len(re.findall(r'<details class="step', whole)) == 60


def test_hostile_words_stay_words(tmp_path: Path) -> None:
    made = begin(seed="bad", cwd=f"/home/ada/{_NASTY}", branch=_NASTY)
    made.user(_NASTY)
    made.assistant(bash(_NASTY, _NASTY)).result(_NASTY)
    keys = lay(tmp_path / "config", made.assistant(_NASTY).exit(), first_try())
    with explorer(str(tmp_path / "index"), str(tmp_path / "config")) as of:
        for way in ("?", f"?a={keys[0]}", f"?a={keys[0]}&b={keys[1]}&all=1"):
            text = of.get(f"/compare{way}").text
            assert "<img" not in text
            assert "<script>alert" not in text
            assert "\u202e" not in text
            assert "\\u{202e}" in text


def test_what_was_asked_is_in_the_history_that_lay_wrote(tmp_path: Path) -> None:
    lay(tmp_path, first_try())
    typed = [json.loads(line) for line in (tmp_path / "history.jsonl").read_text().splitlines()]
    assert typed[0]["display"] == PROMPT
