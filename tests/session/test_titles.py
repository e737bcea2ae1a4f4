"""What a session is called."""

import inspect
import sys
from pathlib import Path

import pytest
from tests.builders import session, text
from tests.session.open_sessions import opened, opened_file

from steno.format.source import BytesSource
from steno.session.session import Session as Opened
from steno.session.transcript import load
from steno.session.turns.prompts import UNTITLED, choose_title, first_prompt, summaries_in, summary_for, title_of


def test_the_order_is_that_of_the_clients_own_list() -> None:
    names = {"custom": "c", "ai": "a", "summary": "s", "last_prompt": "l", "first": "f"}
    found: list[str] = []
    for name in list(names):
        found.append(choose_title(**names).text)
        names[name] = " "
    assert found == ["c", "a", "s", "l", "f"]
    assert choose_title().text == UNTITLED
    assert str(choose_title(first="one\ntwo")) == "one two"


def test_the_last_title_wins() -> None:
    made = session().turn("go", "done").title("Old").ai_title("By the model").title("New")
    title = opened(made).title
    assert (title.text, title.source) == ("New", "custom")


def test_a_title_beside_the_session_counts_where_the_file_has_none() -> None:
    made = session().turn("go", "done").ai_title("By the model")
    assert opened(made).title.text == "By the model"
    assert opened(made, custom_title="Mine").title.text == "Mine"


def test_a_summary_is_looked_for_in_the_whole_project() -> None:
    made = session("1.0.128").turn("go", "done")
    other = session("1.0.128", seed="other").summary("Going and done", made.uuids()[-1])
    pairs = list(summaries_in(opened(other).transcript))
    assert opened(other).title.text == UNTITLED
    assert opened(made).title.text == "go"
    found = Opened(opened(made).transcript, name=made.session_id, summaries=pairs)
    assert (found.title.text, found.title.source) == ("Going and done", "summary")
    assert summary_for({"a"}, [("a", "one"), ("b", "two"), ("a", "three")]) == "three"


def test_the_last_prompt_is_better_than_the_first_but_not_if_it_is_no_prompt() -> None:
    made = session("2.1.42").turn("first", "done").turn("second", "done")
    assert opened(made.last_prompt("second")).title.source == "last prompt"
    made = session("2.1.42").turn("first", "done")
    assert opened(made.last_prompt("<task-notification>x")).title.text == "first"


def test_the_first_prompt_is_a_persons() -> None:
    made = session().meta("caveat").command("clear").shell("ls", "x").user([text("")])
    made.turn("Really first", "ok")
    transcript = opened(made).transcript
    assert first_prompt(transcript, transcript.nodes) == "Really first"


def test_an_odd_title_is_passed_over() -> None:
    made = session("2.1.42").turn("go", "done")
    made.side({"type": "custom-title", "customTitle": 3})
    made.side({"type": "ai-title", "aiTitle": ["x"]})
    assert opened(made).title.text == "go"


@pytest.mark.corpus
def test_the_clients_picker_agrees(shared: Path) -> None:
    folder = shared / "corpus" / "real-client" / "2.0.76" / "picker"
    titles = {
        path.stem[-2:]: opened_file(path).title.text for path in sorted(folder.glob("projects/*/aaaaaaaa-*.jsonl"))
    }
    assert titles
    assert all(titles.values())


def test_a_title_record_that_is_nested_too_deep_to_decode_names_nothing() -> None:
    deep = b'{"type":"ai-title","x":' + b"[" * 400 + b"]" * 400 + b',"aiTitle":"Deep"}\n'
    transcript = load(BytesSource(deep))
    assert title_of(transcript).text == "Deep"
    before = sys.getrecursionlimit()
    # What a decoder can do depends on how deep the program is in its own calls.
    sys.setrecursionlimit(len(inspect.stack(0)) + 150)
    try:
        title = title_of(transcript)
    finally:
        sys.setrecursionlimit(before)
    assert title.source == "none"
