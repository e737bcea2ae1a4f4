"""Search in the explorer."""

import re
from html import unescape
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.builders import session
from tests.web.explorer import Explorer
from tests.web.sessions import exploring

from steno.index.database import SessionIndex
from steno.index.search.finder import open_finder
from steno.index.search.query_parser import parse_query
from steno.report.clock import parse_time_range


def _found(index: SessionIndex, text: str) -> int:
    finder = open_finder(index, lambda word: parse_time_range(word, 0.0))
    return len(finder.find(parse_query(text)).messages)


@pytest.mark.parametrize("text", ["tide", "the", "tool:Bash", '"upside down"', "test* -tide"])
def test_as_much_is_found_as_by_the_command(demo: Explorer, text: str) -> None:
    with demo.house.index() as index:
        number = _found(index, text)
    answer = demo.get(f"/?q={quote(text)}")
    said = re.search(r"<h1>([\d,]+) match(?:es)? in", answer.text)
    assert said is not None
    assert int(said[1].replace(",", "")) == number > 0


def test_every_hit_is_marked_and_leads_to_its_record(demo: Explorer) -> None:
    text = demo.get("/?q=tide").text
    assert "<mark>tide</mark>" in text
    assert re.search(r'class="at" href="/s/[^"?]+\?at=\d+"', text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("zzzzzz", "No sessions match this query."),
        ("since:never", "Not a time"),
        ("since:9999999999999d", ""),
        ("-tide", ""),
        ('"', ""),
        ("(((", ""),
        ("*" * 50, ""),
    ],
)
def test_what_cannot_be_looked_for_is_said_on_the_page(demo: Explorer, text: str, said: str) -> None:
    answer = demo.get(f"/?q={quote(text)}")
    assert answer.status == 200
    assert said in unescape(answer.text)


def test_no_words_are_all_sessions(demo: Explorer) -> None:
    assert "<h1>Sessions</h1>" in demo.get("/?q=+").text


def test_the_old_address_of_the_search_leads_to_the_new(demo: Explorer) -> None:
    answer = demo.get("/search?q=tide%26x&order=rank")
    assert (answer.status, answer.headers["location"]) == (303, "/?q=tide%26x&order=rank")


def test_too_many_words_are_refused(demo: Explorer) -> None:
    assert demo.get("/?q=" + "a+" * 2000).status == 400


def test_all_hits_of_one_session_can_be_asked_for(demo: Explorer) -> None:
    text = demo.get("/?q=the").text
    more = re.search(r'<a class="more" href="([^"]+)">([\d,]+) more', text)
    assert more is not None
    whole = demo.get(unescape(more[1])).text
    assert whole.count("<li data-stop>") == int(more[2]) + 4


def _said(text: str) -> tuple[int, int]:
    found = re.search(r"<h1>([\d,]+) match(?:es)? in ([\d,]+) sessions?</h1>", text)
    assert found is not None
    return int(found[1].replace(",", "")), int(found[2].replace(",", ""))


def test_titles_that_have_the_words_come_first_with_what_stands_beside_them(demo: Explorer) -> None:
    text = demo.get("/?q=release+TAG").text
    titles = text[text.index('aria-label="In titles"') : text.index('id="hits"')]
    assert "Tag the release, but do not push." in titles
    assert 'class="cell cost">$' in titles
    assert "In titles" not in demo.get("/?q=release+-tag").text
    assert "In titles" not in demo.get("/?q=release+tool:Bash").text


def test_all_titles_can_be_asked_for(demo: Explorer) -> None:
    text = demo.get("/?q=the").text
    more = re.search(r'href="([^"]+)">(\d+) more titles', text)
    assert more is not None
    assert text.count('<li class="row') == 3
    whole = demo.get(unescape(more[1])).text
    assert whole.count('<li class="row') == 3 + int(more[2])


def test_words_and_filters_narrow_together(demo: Explorer) -> None:
    every = demo.get("/?q=the").text
    found = re.findall(r'href="(/\?q=the&amp;model=[^"]+)">.*?class="n">(\d+)<', every)
    assert len(found) > 1
    parts = [_said(demo.get(unescape(way)).text) for way, _ in found]
    assert [sessions for _, sessions in parts] == [int(number) for _, number in found]
    assert sum(hits for hits, _ in parts) == _said(every)[0]


def test_a_filter_that_leaves_nothing_says_so(demo: Explorer) -> None:
    text = demo.get("/?q=the&size=huge").text
    assert "Remove a filter" in text
    assert re.search(r'href="/\?q=the" aria-current="true"><span>Over 10 MB', text)


@pytest.mark.parametrize("order", ["newest", "oldest", "rank"])
def test_pages_of_hits_follow_each_other_without_a_gap(
    tmp_path: Path, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steno.web.routes.search.FIRST_FETCH", 4)
    made = [
        session(seed=f"s{number}", start=f"2026-10-{number + 1:02}T10:00:00.000Z").turn(
            "the heron", "a heron " * number
        )
        for number in range(27)
    ]
    with exploring(tmp_path, *made) as (found, _):
        way, seen = f"/?q=heron&order={order}", list[str]()
        while way:
            text = found.get(way).text
            seen += re.findall(r'<a class="title" href="/s/([^"]+)">', text)
            more = re.search(r'<a class="link" href="([^"]+)" data-more>', text)
            way = unescape(more[1]) if more else ""
        assert sorted(seen) == sorted(each.session_id for each in made)
        ids = [each.session_id for each in made]
        if order != "rank":
            assert seen == (ids if order == "oldest" else ids[::-1])


def test_pieces_of_the_page_are_the_same_as_on_it(demo: Explorer) -> None:
    for way in ("/?q=tide", "/?has=failed"):
        whole = demo.get(way).text
        piece = demo.get(f"{way}&part=page").text
        assert "<html" not in piece
        main = piece[piece.index('data-part="main">') + 17 : piece.rindex("</div>")]
        assert main.strip() in whole
        assert piece.count('aria-current="true"') == whole.count('aria-current="true"')
    rows = demo.get("/?q=tide&part=rows").text
    assert rows.strip().startswith('<article class="hit">')
