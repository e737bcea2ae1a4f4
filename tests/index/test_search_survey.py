"""What a survey counts is what a search lists."""

from collections import Counter
from pathlib import Path
from typing import get_args

import pytest
from tests.builders import Session, session, text
from tests.index.searching import Searched, harbour, ledger, prompts

from steno.errors import BadRequest
from steno.index.search.finder import Finder, Order
from steno.index.search.language import parse
from steno.index.search.survey import survey
from steno.index.state import SHIFT
from steno.report.clock import when

_QUERIES = (
    "relay",
    "lighthouse",
    "the relay",
    "the -relay",
    "relay OR twice",
    "tool:Read",
    "ight",
    "ighthous elay",
    "zzzz",
    "zzzz relay",
    "relay zzzz",
    "lighthouse pytest",
    "lighthouse systemctl",
    "lighthouse -systemctl",
    "light*",
    "file:relay.py blink",
    "-relay in:answer",
    "连接",
    "project:ledger relay",
    "project:nowhere relay",
)


def _both(seed: str) -> Session:
    """Make a session whose prompts have two parts, and so two documents."""
    parts = [text("The lighthouse relay, a fortnight ago"), text("the relay under systemctl")]
    made = session(seed=seed)
    for _ in range(3):
        made.user(parts).assistant(text("The lighthouse, then.")).done()
    return made


@pytest.fixture(scope="module", params=["parts", "whole"])
def some(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Searched:
    """Give an index in which messages have several documents, and one in which none has."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "parts":
        return Searched(folder, (harbour(), ledger(), _both("two")))
    asked = ["the relay", "lighthouse twice", "a lighthouse relay", "fortnight", "relays zz"]
    return Searched(folder, [prompts(*asked, seed=f"s{number}") for number in range(3)])


@pytest.mark.parametrize("order", get_args(Order))
@pytest.mark.parametrize("query", _QUERIES)
def test_as_much_is_counted_as_is_found(some: Searched, query: str, order: Order) -> None:
    found = some.found(query, order)
    seen = survey(some.finder, parse(query), order)
    assert seen.files == Counter(message >> SHIFT for message in found.messages)
    assert (seen.wide, seen.wanted) == (found.wide, found.wanted)
    for number in (1, 3, 100):
        assert seen.first(number) == found.messages[:number]
    for file in seen.files:
        own = [message for message in found.messages if message >> SHIFT == file]
        assert seen.first(100, [file]) == own


def test_both_kinds_of_index_are_meant(tmp_path: Path) -> None:
    parts = Searched(tmp_path / "parts", (_both("two"),))
    whole = Searched(tmp_path / "whole", (prompts("one", "two"),))
    assert (parts.finder.has_split, whole.finder.has_split) == (True, False)


@pytest.mark.parametrize("query", ["", "-relay", "since:never"])
def test_what_cannot_be_looked_for_is_said(some: Searched, query: str) -> None:
    with pytest.raises(BadRequest):
        survey(some.finder, parse(query))


def test_words_inside_others_may_stand_in_two_parts_of_a_message(tmp_path: Path) -> None:
    found = Searched(tmp_path, [_both("two")])
    assert len(found.found("rtnigh ystemct").messages) == 3
    assert found.found("rtnigh nothing").messages == []
    assert found.found("rtnigh -systemctl").messages == []


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("nnectx", {"nnectx"}),
        ("the nnectx", {"nnectx"}),
        ("onnectio", set[str]()),
        # Elsewhere it may stand.
        ("in:answer nnectx", set[str]()),
        ("*nnectx", set[str]()),
    ],
)
def test_letters_that_no_word_has_are_kept(tmp_path: Path, query: str, kept: set[str]) -> None:
    made = Searched(tmp_path, [prompts("the connection was closed")])
    absent: set[str] = set()
    _finder(made, absent).find(parse(query))
    assert absent == kept


def test_whoever_types_on_need_not_wait_for_what_is_not_there(tmp_path: Path) -> None:
    made = Searched(tmp_path, [prompts("the connection was closed")])
    assert len(_finder(made, set()).find(parse("onnectio")).messages) == 1
    # What is said not to be there is believed, and not looked for.
    assert _finder(made, {"nnecti"}).find(parse("onnectio")).messages == []
    assert _finder(made, {"nnecti"}).find(parse("the onnectio")).messages == []
    assert len(_finder(made, {"nnecti"}).find(parse("lose")).messages) == 1


def _finder(made: Searched, absent: set[str]) -> Finder:
    return Finder(made.index.connection, made.index.texts, lambda word: when(word, 0.0), absent)
