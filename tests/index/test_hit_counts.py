"""What a survey counts is what a search lists."""

from collections import Counter
from pathlib import Path
from typing import get_args

import pytest
from tests.builders import Session, session, text
from tests.index.searching import Searched, harbour, ledger, prompts

from steno.errors import BadRequest
from steno.index.search.finder import Finder, SearchOrder, count_hits
from steno.index.search.query_parser import parse_query
from steno.index.session_stats import FILE_ID_SHIFT
from steno.report.clock import parse_time_range

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


@pytest.mark.parametrize("order", get_args(SearchOrder))
@pytest.mark.parametrize("query", _QUERIES)
def test_as_much_is_counted_as_is_found(some: Searched, query: str, order: SearchOrder) -> None:
    found = some.found(query, order)
    seen = count_hits(some.finder, parse_query(query), order)
    assert seen.counts_by_file == Counter(message >> FILE_ID_SHIFT for message in found.messages)
    assert (seen.is_widened, seen.query_forms) == (found.is_widened, found.query_forms)
    for number in (1, 3, 100):
        assert seen.first_messages(number) == found.messages[:number]
    for file in seen.counts_by_file:
        own = [message for message in found.messages if message >> FILE_ID_SHIFT == file]
        assert seen.first_messages(100, [file]) == own


def test_both_kinds_of_index_are_meant(tmp_path: Path) -> None:
    parts = Searched(tmp_path / "parts", (_both("two"),))
    whole = Searched(tmp_path / "whole", (prompts("one", "two"),))
    assert (parts.finder.has_split_messages, whole.finder.has_split_messages) == (True, False)


@pytest.mark.parametrize("query", ["", "-relay", "since:never"])
def test_what_cannot_be_looked_for_is_said(some: Searched, query: str) -> None:
    with pytest.raises(BadRequest):
        count_hits(some.finder, parse_query(query))


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
    _finder(made, absent).find(parse_query(query))
    assert absent == kept


def test_whoever_types_on_need_not_wait_for_what_is_not_there(tmp_path: Path) -> None:
    made = Searched(tmp_path, [prompts("the connection was closed")])
    assert len(_finder(made, set()).find(parse_query("onnectio")).messages) == 1
    # What is said not to be there is believed, and not looked for.
    assert _finder(made, {"nnecti"}).find(parse_query("onnectio")).messages == []
    assert _finder(made, {"nnecti"}).find(parse_query("the onnectio")).messages == []
    assert len(_finder(made, {"nnecti"}).find(parse_query("lose")).messages) == 1


def _finder(made: Searched, absent: set[str]) -> Finder:
    return Finder(made.index.connection, made.index.texts, lambda word: parse_time_range(word, 0.0), absent)
