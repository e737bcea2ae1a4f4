"""No request makes the explorer fail: random hostile parameters for every route."""

import os
from collections.abc import Generator
from pathlib import Path
from typing import Final

import pytest
from tests.campaign.size import sized
from tests.web.explorer import Explorer
from tests.web.hostile_queries import App, requests

import steno
from steno.web.app import ADDRESSES
from steno.web.urls import path_tag

_MOST_BYTES = 2_000_000

_SOURCE: Final = str(Path(steno.__file__).parent).encode()
"""Directory of the source files, which every traceback of steno names."""


@pytest.fixture(scope="module")
def app(demo: Explorer) -> Generator[App]:
    made = App(demo.house)
    yield made
    made.close()


def _real(demo: Explorer) -> tuple[list[str], list[str]]:
    with demo.house.index() as index:
        rows = index.connection.execute("SELECT DISTINCT id, project FROM sessions").fetchall()
    return [name for name, _ in rows], [path_tag(project) for _, project in rows]


def _ask_all(demo: Explorer, app: App, seed: int, number: int) -> None:
    seen: set[str] = set()
    for path, query in requests(seed, number, *_real(demo)):
        reply = app.get(path, query)
        assert 200 <= reply.status < 500, (path, query[:200])
        # Sessions quote tracebacks of other programs.
        assert _SOURCE not in reply.body, (path, query[:200])
        assert len(reply.body) <= _MOST_BYTES, (path, query[:200])
        seen.add(path)
    assert len(seen) > len(ADDRESSES)


def test_no_request_fails(demo: Explorer, app: App) -> None:
    _ask_all(demo, app, seed=1, number=2_000)


@pytest.mark.faults
@pytest.mark.timeout(3600)
def test_no_request_of_very_many_fails(demo: Explorer, app: App) -> None:
    seed = int(os.environ.get("STENO_SEED", "2"))
    _ask_all(demo, app, seed=seed, number=sized(100_000, least=2_000))


@pytest.mark.parametrize("words", ["a*" * 300, "*a*" * 9, "a* " * 40, "b*c" * 2000, "x*y" * 10])
def test_a_query_that_is_too_complex_gets_a_message_and_status_400(app: App, words: str) -> None:
    for part in ("", "&part=page", "&part=rows"):
        reply = app.get("/", f"q={words[:2000]}{part}")
        assert reply.status == 400
        if part != "&part=rows":
            assert b"too complex" in reply.body
            assert b"Invalid query" in reply.body
            assert b"No matches" not in reply.body


@pytest.mark.parametrize("words", ["a*", "te*t", "*est*", "a* b* c*", "src/*/x*"])
def test_a_query_with_a_few_wildcards_is_answered(app: App, words: str) -> None:
    assert app.get("/", f"q={words}").status == 200
