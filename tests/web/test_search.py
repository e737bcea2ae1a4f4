"""Words found in the explorer."""

import re
from html import unescape
from urllib.parse import quote

import pytest
from tests.web.explorer import Explorer

from steno.index.opened import Index
from steno.index.search.finder import open_finder
from steno.index.search.language import parse
from steno.report.clock import meant


def _found(index: Index, text: str) -> int:
    finder = open_finder(index, lambda word: meant(word, 0.0))
    return len(finder.find(parse(text)).messages)


@pytest.mark.parametrize("text", ["tide", "the", "tool:Bash", '"upside down"', "test* -tide"])
def test_as_much_is_found_as_by_the_command(demo: Explorer, text: str) -> None:
    with demo.house.index() as index:
        number = _found(index, text)
    answer = demo.get(f"/search?q={quote(text)}")
    said = re.search(r"<h1>([\d,]+) hits? in", answer.text)
    assert said is not None
    assert int(said[1].replace(",", "")) == number > 0


def test_every_hit_is_marked_and_leads_to_its_record(demo: Explorer) -> None:
    text = demo.get("/search?q=tide").text
    assert "<mark>tide</mark>" in text
    assert re.search(r'class="at" href="/s/[^"?]+\?at=\d+"', text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("zzzzzz", "Nothing has that in it."),
        ("since:never", "not a time"),
        ("since:9999999999999d", ""),
        ("-tide", ""),
        ('"', ""),
        ("(((", ""),
        ("*" * 50, ""),
    ],
)
def test_what_cannot_be_looked_for_is_said_on_the_page(
    demo: Explorer, text: str, said: str
) -> None:
    answer = demo.get(f"/search?q={quote(text)}")
    assert answer.status == 200
    assert said in unescape(answer.text)


def test_no_words_lead_to_all_sessions(demo: Explorer) -> None:
    answer = demo.get("/search?q=+")
    assert (answer.status, answer.headers["location"]) == (303, "/")


def test_too_many_words_are_refused(demo: Explorer) -> None:
    assert demo.get("/search?q=" + "a+" * 2000).status == 400


def test_all_hits_of_one_session_can_be_asked_for(demo: Explorer) -> None:
    text = demo.get("/search?q=the").text
    more = re.search(r'<a class="more" href="([^"]+)">([\d,]+) more', text)
    assert more is not None
    whole = demo.get(unescape(more[1])).text
    assert whole.count("<li data-stop>") == int(more[2]) + 4
