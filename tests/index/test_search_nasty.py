"""Whatever is typed gives hits, nothing, or one clear line: no exception, no injection."""

import os
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.index.nasty import queries
from tests.index.searching import Hit, Searched, harbour, ledger

from steno.errors import BadRequest
from steno.index.search.hit_text import RegexPattern

NUMBER = int(os.environ.get("STENO_QUERIES", "2000"))


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Searched:
    return Searched(tmp_path_factory.mktemp("two"), (harbour(), ledger()))


def rows(searched: Searched) -> list[int]:
    statement = (
        "SELECT (SELECT count(*) FROM files), (SELECT count(*) FROM sessions), "
        "(SELECT count(*) FROM messages), (SELECT count(*) FROM tool_calls), "
        "(SELECT count(*) FROM names), (SELECT count(*) FROM sqlite_schema)"
    )
    return list(searched.index.connection.execute(statement).fetchone())


def tried(searched: Searched, query: str) -> None:
    said = ""
    hits: list[Hit] = []
    try:
        hits = searched.hits(query)
    except BadRequest as error:
        said = str(error)
    assert "\n" not in said, query
    assert all(hit.excerpt is not None for hit in hits), query


@pytest.mark.timeout(3600)
def test_nasty_queries_give_hits_or_one_line(two: Searched) -> None:
    before = rows(two)
    seed = time.time_ns() if os.environ.get("STENO_EXPLORE") else 7
    for query in queries(seed, NUMBER):
        tried(two, query)
    assert rows(two) == before


def test_any_text_can_be_searched_for(two: Searched) -> None:
    @settings(max_examples=300)
    @given(st.text(max_size=60))
    def try_it(text: str) -> None:
        tried(two, text)

    try_it()


@settings(max_examples=200)
@given(st.text(alphabet="()[]{}*+?|\\^$.ab-,019", max_size=30))
def test_any_pattern_is_one_or_is_refused(text: str) -> None:
    said = ""
    try:
        with RegexPattern(text, time_limit=0.2) as pattern:
            pattern.find_spans("aab ba\nab 019")
    except BadRequest as error:
        said = str(error)
    assert "\n" not in said
