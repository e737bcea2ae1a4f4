"""The list of sessions."""

import re
from html import unescape
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.builders import Session, session, tool
from tests.web.explorer import Explorer
from tests.web.sessions import exploring, written
from tests.web.test_live import streaming

from steno.report.listing import Choice, Sort, costs_of, list_sessions
from steno.report.usage.indexed import count_index
from steno.report.usage.totals import report_of
from steno.report.usage.wanted import Wanted
from steno.web.tags import tag_of

_TITLE = re.compile(r'<div class="title"><a href="([^"]*)">([^<]*)</a>')


def _titles(demo: Explorer, way: str) -> list[str]:
    return [unescape(title) for _, title in _TITLE.findall(demo.get(way).text)]


def test_every_session_of_the_index_is_listed_once_with_its_address(demo: Explorer) -> None:
    with demo.house.index() as index:
        known = index.connection.execute(
            "SELECT id, title FROM sessions WHERE agent = '' AND NOT hidden"
        ).fetchall()
    found = _TITLE.findall(demo.get("/").text)
    assert len(found) == len(known) > 10
    assert {address.removeprefix("/s/") for address, _ in found} == {name for name, _ in known}


def test_a_filter_leaves_what_fits_and_can_be_taken_away(demo: Explorer) -> None:
    with demo.house.index() as index:
        path, number = index.connection.execute(
            "SELECT project, count(*) FROM sessions WHERE agent = '' AND NOT hidden "
            "GROUP BY project ORDER BY 2 DESC"
        ).fetchone()
    way = f"/?project={tag_of(path)}"
    assert len(_titles(demo, way)) == number
    chosen = re.search(
        r'<a href="([^"]*)" aria-current="true"><span>[^<]*</span>', demo.get(way).text
    )
    assert chosen is not None
    assert chosen[1] == "/"


@pytest.mark.parametrize("has", ["failed", "agents", "compacted", "abandoned"])
def test_the_number_beside_a_filter_is_what_it_leaves(demo: Explorer, has: str) -> None:
    text = demo.get("/").text
    found = re.search(rf'href="/\?has={has}">.*?<span class="n">(\d+)</span>', text)
    assert found is not None
    assert len(_titles(demo, f"/?has={has}")) == int(found[1]) > 0


@pytest.mark.parametrize("sort", ["newest", "oldest", "longest", "turns", "largest"])
def test_the_list_goes_on_where_it_stopped(demo: Explorer, sort: Sort) -> None:
    with demo.house.index() as index:
        whole = list_sessions(index.connection, Choice(sort=sort), limit=100).rows
        some: list[int] = []
        after = None
        while len(some) < len(whole):
            part = list_sessions(index.connection, Choice(sort=sort), limit=4, after=after)
            some += [row.file for row in part.rows]
            after = (part.rows[-1].rank, part.rows[-1].file)
    assert some == [row.file for row in whole]


@pytest.mark.parametrize("after", ["x", "1", "1_2_3", f"{1 << 70}_1", "٣_٤x"])
def test_a_place_that_is_none_is_refused(demo: Explorer, after: str) -> None:
    assert demo.get(f"/?after={quote(after)}").status == 400


def test_a_project_that_is_not_there_is_said_so(demo: Explorer) -> None:
    answer = demo.get("/?project=000000000000")
    assert answer.status == 404
    assert "nothing goes by" in answer.text


def test_what_a_session_cost_is_what_the_usage_report_says(demo: Explorer) -> None:
    with demo.house.index() as index:
        rows = list_sessions(index.connection, Choice(), limit=100).rows
        costs = costs_of(index.connection, [row.id for row in rows], demo.house.prices)
        cells = count_index(index.connection, Wanted(by="session"), demo.house.prices)
        report = report_of(cells, "session", demo.house.prices)
    said = {line.names[0]: line.figures.exact for line in report.lines}
    assert {name: figures.exact for name, figures in costs.items()} == {
        row.id: said[row.id] for row in rows if row.id in said
    }


# While they are written


def at_work(number: int = 0) -> Session:
    """Make a session that is in the middle of something."""
    made = session(seed=f"live{number}", full=True).turn("one", "ok").user("go on")
    return made.assistant(tool("Bash", command="make all the things"))


def test_a_session_at_work_says_what_it_does_and_how_full_its_context_is(tmp_path: Path) -> None:
    made = at_work()
    with exploring(tmp_path, made) as (found, paths):
        found.house.now = lambda: paths[0].stat().st_mtime + 5
        text = found.get("/").text
        (now,) = re.findall(r'<div class="now">.*?</div>', text)
        assert '<b class="mid">Bash</b><code>make all the things</code>' in now
        assert re.search(r"context \d+% <svg class=\"meter\"", now)
        assert text.index("Live sessions") < text.index('<div class="now">')


def test_a_session_that_died_at_work_does_not_stay_live(tmp_path: Path) -> None:
    with exploring(tmp_path, at_work()) as (found, paths):
        for hours, live in ((0, True), (6, False)):
            later = paths[0].stat().st_mtime + 5 + hours * 3600
            found.house.now = lambda later=later: later
            assert ('<div class="now">' in found.get("/").text) is live


def test_the_list_streams_what_changed(tmp_path: Path) -> None:
    made = at_work()
    with exploring(tmp_path, made, session(seed="old").turn("old", "ok")) as (found, paths):
        begun = paths[0].stat().st_mtime
        found.house.now = lambda: begun + 5
        with streaming(found, "/live") as stream:
            first, _ = stream.next("rows")
            assert "make all the things" in first["html"]
            assert first["more"] is False
            written(made.result("done").assistant("all made"), tmp_path / "config")
            found.refresh()
            later, _ = stream.next("rows")
            assert "make all the things" not in later["html"]
            assert "Waiting for you" in later["html"]
            fresh = session(seed="another", full=True).turn("a new one", "yes")
            written(fresh, tmp_path / "config")
            found.refresh()
            data, _ = stream.next("rows")
            assert fresh.session_id in data["html"]


@pytest.mark.parametrize("way", ["/live?after=x", "/live?project=none"])
def test_a_stream_of_nothing_is_refused(demo: Explorer, way: str) -> None:
    assert demo.get(way).status in (400, 404)


def test_projects_of_one_name_are_told_apart(tmp_path: Path) -> None:
    one, other = (
        session(seed=name, cwd=f"/home/{name}/api", full=True).turn("x", "y") for name in "ab"
    )
    with exploring(tmp_path, one, other) as (found, _):
        text = found.get("/").text
        assert ">a/api</span>" in text
        assert ">b/api</span>" in text


def test_an_index_that_is_newer_than_the_clock_is_fresh(demo: Explorer) -> None:
    before = demo.house.state.fresh
    try:
        demo.house.state.fresh = demo.house.now() + 60
        assert "Index fresh, as of now" in demo.get("/").text
        demo.house.state.fresh = demo.house.now() - 120
        assert "Index fresh 2 m" in demo.get("/").text
    finally:
        demo.house.state.fresh = before
