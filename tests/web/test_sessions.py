"""Session list."""

import re
from html import unescape
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.builders import Session, session, tool
from tests.builders.step_files import OVER, RUNNING, session_file, session_id
from tests.published.files import FILES
from tests.web.explorer import Explorer
from tests.web.sessions import exploring, last_record, written
from tests.web.test_session_stream import streaming

from steno.report.session_list import SessionFilter, SessionSort, list_sessions, usage_by_session
from steno.report.usage.usage_from_index import count_indexed_usage
from steno.report.usage.usage_query import UsageQuery
from steno.report.usage.usage_report import build_report
from steno.web.urls import path_tag

_OLD = "2026-01-01T00:00:00.000Z"
_TITLE = re.compile(r'<div class="title"><a href="([^"]*)">([^<]*)</a>')


_KEY = re.compile(r'<li class="row[^"]*" data-stop data-key="([^"]*)"')


def _keys(text: str) -> list[str]:
    return _KEY.findall(text)


def _titles(demo: Explorer, way: str) -> list[str]:
    return [unescape(title) for _, title in _TITLE.findall(demo.get(way).text)]


def test_every_session_of_the_index_is_listed_once_with_its_address(demo: Explorer) -> None:
    with demo.house.index() as index:
        known = index.connection.execute("SELECT id, title FROM sessions WHERE agent = '' AND NOT hidden").fetchall()
    found = _TITLE.findall(demo.get("/").text)
    assert len(found) == len(known) > 10
    assert {address.removeprefix("/s/") for address, _ in found} == {name for name, _ in known}


def test_a_filter_leaves_what_fits_and_can_be_taken_away(demo: Explorer) -> None:
    with demo.house.index() as index:
        path, number = index.connection.execute(
            "SELECT project, count(*) FROM sessions WHERE agent = '' AND NOT hidden GROUP BY project ORDER BY 2 DESC"
        ).fetchone()
    way = f"/?project={path_tag(path)}"
    assert len(_titles(demo, way)) == number
    chosen = re.search(r'<a href="([^"]*)" aria-current="true"><span>[^<]*</span>', demo.get(way).text)
    assert chosen is not None
    assert chosen[1] == "/"


@pytest.mark.parametrize("has", ["failed", "agents", "compacted", "abandoned"])
def test_the_number_beside_a_filter_is_what_it_leaves(demo: Explorer, has: str) -> None:
    text = demo.get("/").text
    found = re.search(rf'href="/\?has={has}">.*?<span class="n">(\d+)</span>', text)
    assert found is not None
    assert len(_titles(demo, f"/?has={has}")) == int(found[1]) > 0


@pytest.mark.parametrize(("facet", "least"), [("status", 3), ("size", 1), ("model", 2), ("project", 2)])
def test_the_number_beside_each_value_of_a_facet_is_what_it_leaves(demo: Explorer, facet: str, least: int) -> None:
    found = re.findall(rf'href="(/\?{facet}=[^"]+)">.*?<span class="n">(\d+)</span>', demo.get("/").text)
    assert len(found) >= least
    for way, number in found:
        assert len(_titles(demo, unescape(way))) == int(number) > 0


def test_filters_narrow_together_and_their_numbers_do_too(demo: Explorer) -> None:
    way = "/?status=finished&size=small"
    text = demo.get(way).text
    (failed,) = re.findall(r'href="([^"]*has=failed)">.*?<span class="n">(\d+)</span>', text)
    assert unescape(failed[0]) == f"{way}&has=failed"
    both = _titles(demo, unescape(failed[0]))
    assert len(both) == int(failed[1]) > 0
    assert set(both) == set(_titles(demo, way)) & set(_titles(demo, "/?has=failed"))


def _listed(found: Explorer, way: str) -> set[int]:
    """Return the numbers of the sessions in a list, as `step_files.session_id` makes ids of them."""
    return {int(key.replace("-", "")[-8:], 16) for key in _keys(found.get(way).text)}


def _beside(found: Explorer, way: str, link: str) -> int:
    """Return the number beside a filter."""
    chosen = re.search(
        rf'<a href="{re.escape(link)}"[^>]*>.*?<span class="n">([0-9,]+)</span>',
        found.get(way).text.replace("&amp;", "&"),
    )
    assert chosen is not None, link
    return int(chosen[1])


def test_a_filter_with_an_unknown_value_is_not_counted(demo: Explorer) -> None:
    unknown = demo.get("/?status=lost&since=30d&size=vast&min_steps=no&has=wings&listed=2").text
    assert 'id="narrowed">none<' in unknown
    known = demo.get("/?since=month&min_steps=5&has=answered&listed=1&status=finished").text
    assert 'id="narrowed">5<' in known


def test_002_list_rule_and_step_records_filter_the_list(tmp_path: Path) -> None:
    every: set[int] = set()
    for records in (4, 5, 9, 10):
        for answered in (False, True):
            for running in (False, True):
                number = records * 100 + answered * 10 + running
                time = RUNNING if running else OVER
                session_file(tmp_path / "config", number, records, answered=answered, time=time)
                every.add(number)
    shown = {401, 411, 501, 511, 901, 911, 1001, 1011, 510, 910, 1000, 1010}
    with exploring(tmp_path) as (found, _):
        # Of many live ones some are on top, and all are in the list of live ones.
        live = {number for number in every if number % 10}
        assert _listed(found, "/") == every
        assert _listed(found, "/?listed=1") == shown
        assert _listed(found, "/?min_steps=9") == {n for n in every if n >= 900}
        assert _listed(found, "/?min_steps=10&status=live") == {1001, 1011}
        assert _listed(found, "/?has=answered&listed=1") == {*(411, 511, 911, 1011, 510, 910, 1010)}
        assert _listed(found, "/?listed=1&status=live") == live
        assert _listed(found, "/?min_steps=no&listed=2") == every
        assert _beside(found, "/", "/?listed=1") == len(shown)
        assert _beside(found, "/", "/?min_steps=5") == 12
        assert _beside(found, "/", "/?min_steps=10") == 4
        assert _beside(found, "/", "/?has=answered") == 8
        # What is chosen can be taken away again, also a number that nobody offers.
        assert _beside(found, "/?min_steps=6", "/") == 8
        assert "6 or more" in found.get("/?min_steps=6").text
        assert _beside(found, "/?listed=1", "/") == len(shown)
        assert "12 of 16" in found.get("/?listed=1").text


@pytest.mark.parametrize("way", ["/?min_steps=1000000000000", f"/?min_steps={'9' * 300}"])
def test_002_more_step_records_than_any_session_has(demo: Explorer, way: str) -> None:
    assert demo.get(way).status == 200
    assert _titles(demo, way) == []


def test_the_list_names_the_dialect_of_a_file_that_is_not_the_clients(tmp_path: Path) -> None:
    root = tmp_path / "config"
    session_file(root, 1, 6)
    flat = root / "projects" / "-home-ada-tide" / f"{session_id(2)}.jsonl"
    flat.write_bytes(FILES["linear"]().data)
    nested = root / "conversations" / "_home_ada_work" / "2025-01-29T14-15-30.jsonl"
    nested.parent.mkdir(parents=True)
    nested.write_bytes(FILES["development"]().data)
    with exploring(tmp_path) as (found, _):
        rows = re.findall(r'<li class="row.*?</li>', found.get("/").text, re.DOTALL)
        named = [re.findall(r'class="dialect"[^>]*>([^<]*)<', row) for row in rows]
        assert sorted(named) == [[], ["dialect spec-000"], ["dialect spec-004"]]


def test_every_size_is_of_one_kind(tmp_path: Path) -> None:
    lengths = {"small": 10, "medium": 200_000, "large": 2_000_000, "huge": 11_000_000}
    every = [session(seed=name, full=True).turn(name, "x" * length) for name, length in lengths.items()]
    with exploring(tmp_path, *every) as (found, _):
        for name in lengths:
            assert _titles(found, f"/?size={name}") == [name]


def test_how_sessions_stand_is_told_as_by_the_command(tmp_path: Path) -> None:
    made = {
        "live": at_work(),
        "finished": session(seed="done", full=True, start=_OLD).turn("all done", "yes"),
        "interrupted": session(seed="cut", full=True, start=_OLD).user("cut off"),
    }
    with exploring(tmp_path, *made.values()) as (found, paths):
        begun = last_record(paths[0])
        found.house.now = lambda: begun + 5
        for status, each in made.items():
            assert [each.session_id] == _keys(found.get(f"/?status={status}").text)
        assert found.get("/?status=nonsense").status == 200


def test_what_is_broken_can_be_asked_for(tmp_path: Path) -> None:
    torn = session(seed="torn", full=True).turn("torn apart", "ok")
    with exploring(tmp_path, torn, session(seed="sound", full=True).turn("sound", "ok")) as (found, paths):
        data = paths[0].read_bytes().split(b"\n")
        paths[0].write_bytes(b"\n".join([data[0][: len(data[0]) // 2], *data[1:]]))
        found.refresh()
        assert "Damaged" not in found.get("/").text
        found.house.health_monitor.start_check()
        found.house.health_monitor.wait()
        assert "Damaged" in found.get("/").text
        assert _keys(found.get("/?status=damaged").text) == [torn.session_id]


@pytest.mark.parametrize("sort", ["newest", "oldest", "longest", "turns", "largest"])
def test_the_list_goes_on_where_it_stopped(demo: Explorer, sort: SessionSort) -> None:
    with demo.house.index() as index:
        whole = list_sessions(index.connection, SessionFilter(sort=sort), limit=100).rows
        some: list[int] = []
        after = None
        while len(some) < len(whole):
            part = list_sessions(index.connection, SessionFilter(sort=sort), limit=4, after=after)
            some += [row.file for row in part.rows]
            after = (part.rows[-1].rank, part.rows[-1].file)
    assert some == [row.file for row in whole]


@pytest.mark.parametrize("after", ["x", "1", "1_2_3", f"{1 << 70}_1", "٣_٤x"])
def test_a_place_that_is_none_is_refused(demo: Explorer, after: str) -> None:
    assert demo.get(f"/?after={quote(after)}").status == 400


def test_a_project_that_is_not_there_is_said_so(demo: Explorer) -> None:
    answer = demo.get("/?project=000000000000")
    assert answer.status == 404
    assert "No project or directory matches" in answer.text


def test_what_a_session_cost_is_what_the_usage_report_says(demo: Explorer) -> None:
    with demo.house.index() as index:
        rows = list_sessions(index.connection, SessionFilter(), limit=100).rows
        costs = usage_by_session(index.connection, [row.file for row in rows], demo.house.prices)
        cells = count_indexed_usage(index.connection, UsageQuery(by="session"), demo.house.prices)
        report = build_report(cells, "session", demo.house.prices)
    said = {line.names[0]: line.figures.exact for line in report.lines}
    assert {file: figures.exact for file, figures in costs.items()} == {
        row.file: said[row.id] for row in rows if row.id in said
    }


# While they are written


def at_work(number: int = 0) -> Session:
    """Make a session that is in the middle of something."""
    made = session(seed=f"live{number}", full=True).turn("one", "ok").user("go on")
    return made.assistant(tool("Bash", command="make all the things"))


def test_a_session_at_work_says_what_it_does_and_how_full_its_context_is(tmp_path: Path) -> None:
    made = at_work()
    with exploring(tmp_path, made) as (found, paths):
        begun = last_record(paths[0])
        found.house.now = lambda: begun + 5
        text = found.get("/").text
        (now,) = re.findall(r'<div class="now">.*?</div>', text)
        assert '<b class="mid">Bash</b><code>make all the things</code>' in now
        assert re.search(r"context \d+% <svg class=\"meter\"", now)
        assert text.index("Live sessions") < text.index('<div class="now">')


def test_live_sessions_stand_above_all_others_wherever_they_would_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steno.web.routes.sessions._PAGE", 5)
    live = at_work()
    every = [
        session(seed=f"s{n}", full=True, start="2026-12-01T00:00:00.000Z").turn(f"ask {n}", "ok") for n in range(12)
    ]
    with exploring(tmp_path, live, *every) as (found, paths):
        begun = last_record(paths[0])
        found.house.now = lambda: begun + 5
        way, seen = "/", list[str]()
        while way:
            text = found.get(way).text
            seen += _keys(text)
            more = re.search(r'<a class="link" href="([^"]+)" data-more>', text)
            way = unescape(more[1]) if more else ""
        assert seen[0] == live.session_id
        # Beside them the page is as long as any.
        assert len(_keys(found.get("/?sort=oldest").text)) == 1 + 5
        assert len(seen) == len(set(seen)) == 13
        assert ">13 in 1 project<" in found.get("/").text
        assert _keys(found.get("/?has=failed").text) == []


def test_who_waits_for_days_is_no_longer_live(tmp_path: Path) -> None:
    asks = session(seed="asks", full=True).user("go on")
    asks.assistant(tool("AskUserQuestion", questions=[]))
    with exploring(tmp_path, asks) as (found, paths):
        begun = last_record(paths[0])
        for days, live in ((0, True), (2, False)):
            found.house.now = lambda days=days: begun + 5 + days * 86_400
            text = found.get("/").text
            assert ("Live sessions" in text) is live
            assert 'data-key="' in text
        assert "waiting for input" in text
        assert _keys(found.get("/?status=waiting").text) == [asks.session_id]


def test_a_day_long_ago_has_room_in_its_column(tmp_path: Path) -> None:
    old = session(seed="old", full=True, start="2025-09-20T10:00:00.000Z").turn("old", "ok")
    with exploring(tmp_path, old) as (found, _):
        text = found.get("/").text
        assert re.search(r'class="cell when">(19|20|21) Sep 2025<', text)


def test_a_session_that_died_at_work_does_not_stay_live(tmp_path: Path) -> None:
    with exploring(tmp_path, at_work()) as (found, paths):
        for hours, live in ((0, True), (6, False)):
            later = last_record(paths[0]) + 5 + hours * 3600
            found.house.now = lambda later=later: later
            assert ('<div class="now">' in found.get("/").text) is live


def test_the_list_streams_what_changed(tmp_path: Path) -> None:
    made = at_work()
    with exploring(tmp_path, made, session(seed="old").turn("old", "ok")) as (found, paths):
        begun = last_record(paths[0])
        found.house.now = lambda: begun + 5
        with streaming(found, "/live") as stream:
            first, _ = stream.next("rows")
            assert "make all the things" in first["html"]
            assert first["more"] is False
            written(made.result("done").assistant("all made"), tmp_path / "config")
            found.refresh()
            later, _ = stream.next("rows")
            assert "make all the things" not in later["html"]
            assert "Waiting for input" in later["html"]
            fresh = session(seed="another", full=True).turn("a new one", "yes")
            written(fresh, tmp_path / "config")
            found.refresh()
            data, _ = stream.next("rows")
            assert fresh.session_id in data["html"]


@pytest.mark.parametrize("way", ["/live?after=x", "/live?project=none"])
def test_a_stream_of_nothing_is_refused(demo: Explorer, way: str) -> None:
    assert demo.get(way).status in (400, 404)


def test_projects_of_one_name_are_told_apart(tmp_path: Path) -> None:
    one, other = (session(seed=name, cwd=f"/home/{name}/api", full=True).turn("x", "y") for name in "ab")
    with exploring(tmp_path, one, other) as (found, _):
        text = found.get("/").text
        assert ">a/api</span>" in text
        assert ">b/api</span>" in text


def test_an_index_that_is_newer_than_the_clock_is_fresh(demo: Explorer) -> None:
    before = demo.house.index_status.updated
    try:
        demo.house.index_status.updated = demo.house.now() + 60
        assert "Index up to date" in demo.get("/").text
        demo.house.index_status.updated = demo.house.now() - 120
        assert "Index updated 2 minutes ago" in demo.get("/").text
    finally:
        demo.house.index_status.updated = before
