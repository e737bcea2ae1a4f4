"""The JSON API: responses as documented, pages without gaps, entity tags, errors."""

import html
import json
import os
import threading
from collections.abc import Generator
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args
from urllib.parse import quote

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator
from tests.builders import Session, session, text, tool
from tests.builders.step_files import OVER, session_file, session_id
from tests.cli.conftest import Steno, steno
from tests.web.api import DOCUMENT, Api, ask_everything, write_dialects
from tests.web.explorer import Explorer, explorer
from tests.web.hostile_queries import App
from tests.web.sessions import exploring, session_called, written
from tools.make_api_docs import FOLDER, build

from steno.demo.recording import write_demo
from steno.index.database import IndexLocation
from steno.index.sync.updater import sync
from steno.report import humanize
from steno.report.usage.usage_query import Grouping
from steno.session.turns.session_facts import count_session
from steno.store.session_lookup import open_session
from steno.web.api.openapi import API_PATHS, API_V1_PREFIX, ENDPOINTS, Endpoint
from steno.web.api.parameters import Paged, make_cursor
from steno.web.http_server import Server, open_socket
from steno.web.state.app_state import AppState

__all__ = ["steno"]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Generator[Api]:
    """An API over the demo and sessions in the published dialects."""
    folder = tmp_path_factory.mktemp("api")
    root = write_demo(str(folder / "demo")).root
    write_dialects(folder / "dialects")
    for path in (folder / "dialects").rglob("*.jsonl"):
        # Commands go by the time of the file: nothing is at work.
        os.utime(path, (1_790_000_000, 1_790_000_000))
    with explorer(str(folder / "index"), root, str(folder / "dialects")) as found:
        found.house.health_monitor.start_check()
        found.house.health_monitor.wait()
        # One check will do.
        found.house.health_monitor._last_ended = float("inf")
        yield Api(found)


# The document


def test_the_document_is_openapi() -> None:
    OpenAPIV31SpecValidator(DOCUMENT).validate()


def test_the_document_names_every_address_and_no_other() -> None:
    assert set(DOCUMENT["paths"]) == set(API_PATHS)


def test_the_reference_in_docs_is_current() -> None:
    for name, data in build().items():
        assert (FOLDER / name).read_bytes() == data, name


def test_a_server_returns_the_document(api: Api) -> None:
    assert json.loads(api.ask("/openapi.json").body) == json.loads(json.dumps(DOCUMENT))


# Every response


def test_every_response_is_as_documented(api: Api) -> None:
    assert ask_everything(api) > 150


_CORPORA = pytest.mark.parametrize("corpus", ["real-client", "public", "resume-cases"])


@pytest.mark.corpus
@_CORPORA
def test_responses_of_real_sessions_are_as_documented(shared: Path, tmp_path: Path, corpus: str) -> None:
    with explorer(str(tmp_path / "index"), str(shared / "corpus" / corpus)) as found:
        assert ask_everything(Api(found), every=16) > 20


@pytest.mark.faults
@pytest.mark.corpus
@pytest.mark.timeout(600)
@_CORPORA
def test_all_responses_of_all_real_sessions_are_as_documented(shared: Path, tmp_path: Path, corpus: str) -> None:
    with explorer(str(tmp_path / "index"), str(shared / "corpus" / corpus)) as found:
        assert ask_everything(Api(found)) > 80


def test_half_a_surrogate_pair_is_replaced_and_matches_stay_where_they_are(tmp_path: Path) -> None:
    made = session(seed="half", full=True).user("x \ud83d needle \udc00 y").assistant("done").done()
    with exploring(tmp_path, made) as (found, _):
        api = Api(found)
        (hit,) = api.get("/search", q="needle", limit=1)["hits"]
        (match,) = hit["excerpt"]["matches"]
        assert hit["excerpt"]["text"][match["start"] : match["end"]] == "needle"
        (turn,) = api.get(f"/sessions/{hit['session']}/turns")["turns"]
        assert turn["prompt"]["text"] == "x \ufffd needle \ufffd y"


# The same figures as everywhere else


def test_figures_are_those_of_the_page_and_of_the_commands(api: Api, steno: Steno) -> None:
    roots = [option for root in api.explorer.house.home.roots for option in ("--root", root)]
    listed = {row["path"]: row for row in steno("ls", "--json", "--limit", 0, *roots).json}
    usage = steno("usage", "--json", "--by", "session", *roots).json
    costs = {row["session"]: row for row in usage["rows"]}
    sessions = api.all("/sessions", "sessions")
    assert len(sessions) > 30
    for each in sessions:
        row = listed[each["path"]]
        for name in ("id", "title", "project", "branch", "model", "version", "status", "ended"):
            assert each[name] == row[name], (each["id"], name)
        shown = steno("show", "--json", row["path"]).json
        with open_session(row["path"]) as opened:
            figures = count_session(opened)
        assert (each["turns"], each["steps"]) == (len(shown["turns"]), figures.steps), each["id"]
        detail = api.get(f"/sessions/{each['key']}")
        assert detail["dialect"] == row["dialect"]
        # The index does not count the compactions of a dialect.
        same = set(each) - ({"compactions"} if detail["dialect"] != "claude" else set())
        assert {name: detail[name] for name in same} == {name: each[name] for name in same}
        turns = api.all(f"/sessions/{each['key']}/turns", "turns", limit=2)
        assert [turn["answer"] for turn in turns] == [turn["answer"] for turn in shown["turns"]]
        cost = costs.get(each["id"], {"cost_micro_usd": 0, "responses": 0})
        if each["key"] == each["id"]:
            assert each["usage"]["responses"] == cost["responses"]
            # The rows of a report are rounded so that they add up to its total.
            assert abs(each["usage"]["cost_micro_usd"] - cost["cost_micro_usd"]) <= 1
        page = api.explorer.get(f"/s/{each['key']}").text
        counted = f"{humanize.count(each['turns'], 'turn')}, {humanize.count(each['steps'], 'step')}"
        assert counted in page, each["id"]


@pytest.mark.parametrize("query", [{}, {"since": "2026-11-07", "until": "2026-11-13"}])
@pytest.mark.parametrize("by", get_args(Grouping))
def test_usage_is_what_the_command_prints(api: Api, steno: Steno, by: str, query: dict[str, str]) -> None:
    options = [f"--{name}={value}" for name, value in query.items()]
    roots = [option for root in api.explorer.house.home.roots for option in ("--root", root)]
    printed = steno("usage", "--json", "--by", by, *options, *roots).json
    assert api.get("/usage", by=by, **query) == printed


def test_drift_is_what_the_command_prints(tmp_path: Path, steno: Steno) -> None:
    made = [drifting("one", 2), drifting("two", 3)]
    with exploring(tmp_path, *made) as (found, (path, _)):
        with path.open("ab") as file:
            file.write(b'{"type":"glitter","uuid":"g","sessionId":"s","version":"2.1.325"}\n')
        found.house.health_monitor.start_check()
        found.house.health_monitor.wait()
        drift = Api(found).get("/drift")
        printed = steno("drift", "--json", "--root", tmp_path / "config").json
    assert drift.pop("check")["complete"]
    assert printed.pop("left_out") == drift.pop("left_out")
    assert drift == printed
    assert {each["code"] for each in drift["drift"]} >= {"UNKNOWN_TYPE", "NEW_TOOL"}


def drifting(seed: str, times: int) -> Session:
    made = session(seed=seed, full=True).user("go")
    for _ in range(times):
        made.assistant(tool("Sparkle", wish="a")).result("b")
    return made.assistant("done").done()


def test_health_is_what_the_page_shows(api: Api) -> None:
    health = api.get("/health")
    page = api.explorer.get("/health").text
    assert health["check"]["complete"]
    assert health["cases"]
    for case in health["cases"]:
        assert case["title"] in html.unescape(page)
        for each in case["sessions"]:
            assert each["key"] is None or f"/s/{each['key']}" in page


def test_steps_are_those_of_the_export(api: Api, steno: Steno, tmp_path: Path) -> None:
    key = session_called(api.explorer, "Smooth the curve")
    with api.explorer.house.index() as index:
        path = api.explorer.house.session_ref(index, key).path
    steno("export", path, "--format", "steps", "-o", tmp_path / "out", "--no-redact")
    (file,) = (tmp_path / "out").rglob("steps.jsonl")
    exported = [json.loads(line) for line in file.read_text().splitlines()]
    assert api.all(f"/sessions/{key}/steps", "steps", limit=3) == exported


def test_a_search_may_be_within_one_session(api: Api) -> None:
    everywhere = api.all("/search", "hits", q="the")
    key = everywhere[0]["session"]
    inside = api.get("/search", q="the", session=key, limit=500)
    assert inside["hits"] == [hit for hit in everywhere if hit["session"] == key]
    assert (inside["total"], inside["sessions"]) == (len(inside["hits"]), 1)
    status, error = api.error("/search", q="the", session="none")
    assert (status, error["message"]) == (400, "session: no session matches 'none'")


def test_what_is_said_again_behind_a_compaction_is_no_text_of_the_next_turn(tmp_path: Path) -> None:
    made = session(seed="again").turn("go", "First.").compact("It went.")
    again = {"id": f"msg_{made.tip}", "role": "assistant", "content": [text("First.")]}
    made.link({"type": "assistant", "message": again, "uuid": "", "timestamp": ""})
    made.turn("on", "Second.")
    with exploring(tmp_path, made) as (running, _):
        turns = Api(running).get(f"/sessions/{made.session_id}/turns")["turns"]
    assert [turn["texts"] for turn in turns] == [["First."], ["Second."]]


def test_texts_of_a_turn_are_all_that_the_model_said(tmp_path: Path) -> None:
    made = session(seed="texts", full=True).user("go")
    made.assistant("First.", tool("Bash", command="ls")).result("a")
    made.assistant("Second.", tool("Bash", command="pwd")).result("b")
    made.assistant("Third.").done()
    with exploring(tmp_path, made) as (found, _):
        api = Api(found)
        (each,) = api.all("/sessions", "sessions")
        (turn,) = api.get(f"/sessions/{each['key']}/turns")["turns"]
    assert turn["texts"] == ["First.", "Second.", "Third."]
    assert turn["answer"] == "Third."
    steps = [step for step in turn["steps"] if step["kind"] == "tool"]
    assert [(step["tool"], step["subject"], step["state"]) for step in steps] == [
        ("Bash", "ls", "ok"),
        ("Bash", "pwd", "ok"),
    ]


def test_a_file_leads_to_its_sessions_and_back(api: Api) -> None:
    files = api.all("/files", "files", changed=True, limit=5)
    assert files
    for file in files:
        history = api.get(f"/files/{file['id']}")
        assert history["path"] == file["path"]
        assert history["sessions"]
        told = [v for v in history["versions"] if v["verb"] in ("write", "edit")]
        for each in history["sessions"]:
            if all(v["abandoned"] for v in told if v["session"] == each["key"]):
                continue
            mine = [found["id"] for found in api.get(f"/sessions/{each['key']}")["files"]]
            assert file["id"] in mine


# Tasks


def test_tasks_follow_the_list_rules(tmp_path: Path) -> None:
    def calls(seed: str, number: int, answer: str = "") -> Session:
        made = session(seed=seed, full=True).user(seed)
        for _ in range(number):
            made.assistant(tool("Bash", command="ls")).result("a")
        return made.assistant(answer).done() if answer else made

    # One step for the prompt, two for each call, one for the answer.
    made = [
        calls("tiny", 1, "Done."),
        calls("five answered", 2, "Done."),
        calls("seven unanswered", 3),
        calls("eleven unanswered", 5),
    ]
    with exploring(tmp_path, *made) as (found, _):
        api = Api(found)
        page = api.get("/tasks")
        every = api.all("/tasks", "tasks", everything=True, limit=1)
        tasks = {each["name"]: each for each in page["tasks"]}
        assert set(tasks) == {"five answered", "eleven unanswered"}
        assert page["total"] == len(page["tasks"])
        assert {each["name"] for each in every} == {*tasks, "tiny", "seven unanswered"}
        task = api.get(f"/tasks/{tasks['five answered']['id']}", limit=2)
    assert [step["type"] for step in task["steps"]] == ["user_message", "tool_call"]
    assert (task["steps"][1]["tool_name"], task["steps"][1]["tool_status"]) == ("Bash", "success")
    assert (task["steps_total"], task["has_more_steps"]) == (6, True)
    assert task["summary"]["tool_success_count"] == 2
    assert task["ended_at"] == task["completed_at"] == task["last_activity"]


def test_tasks_are_what_the_export_lists(api: Api, steno: Steno, tmp_path: Path) -> None:
    roots = [option for root in api.explorer.house.home.roots for option in ("--root", root)]
    options = ("--format", "steps", "--listed", "--no-redact", "-o", tmp_path / "out")
    assert steno("export", "--project", "", *options, *roots).code == 0
    exported = [json.loads(path.read_bytes()) for path in tmp_path.rglob("metadata.json")]
    fields = ("session_id", "step_count", "tool_call_count")
    tasks = api.all("/tasks", "tasks", limit=3)
    assert sorted([each[name] for name in fields] for each in tasks) == sorted(
        [each[name] for name in fields] for each in exported
    )
    assert len(tasks) > 15


def test_times_in_milliseconds_are_times_of_steps_and_tasks(tmp_path: Path) -> None:
    root = tmp_path / "config"
    path = session_file(root, 1, 12)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[0] = lines[0].replace(f'"{OVER}"'.encode(), b"1794724111819")
    lines[2] = lines[2].replace(f'"{OVER}"'.encode(), b'"at noon"')
    # Without a zone it is in UTC, as everywhere.
    lines[11] = lines[11].replace(OVER.encode(), b"2026-11-15T09:00:00")
    path.write_bytes(b"".join(lines))
    with explorer(str(tmp_path / "index"), str(root)) as found:
        api = Api(found)
        steps = api.get(f"/sessions/{session_id(1)}/steps")["steps"]
        (task,) = api.get("/tasks")["tasks"]
        detail = api.get(f"/tasks/{session_id(1)}")
    assert [each["timestamp"] for each in steps[:3]] == ["2026-11-15T06:28:31.819Z", OVER, "at noon"]
    assert task["started_at"] == "2026-11-15T06:28:31.819Z"
    assert task["last_activity"] == "2026-11-15T09:00:00.000Z"
    assert {name: detail[name] for name in task} == task


def test_a_task_is_read_again_after_any_change(tmp_path: Path) -> None:
    root = tmp_path / "config"
    path = session_file(root, 1, 12)
    with explorer(str(tmp_path / "index"), str(root)) as found:
        api = Api(found)
        (before,) = api.get("/tasks")["tasks"]
        data = path.read_bytes()
        # As long as it was, and with the same last time.
        path.write_bytes(data.replace(OVER.encode(), b"2026-11-14T08:00:00.000Z", 1))
        os.utime(path, (1_790_000_000, 1_790_000_000))
        found.refresh()
        (after,) = api.get("/tasks")["tasks"]
    assert before["started_at"] == OVER
    assert after["started_at"] == "2026-11-14T08:00:00.000Z"


def test_a_task_that_runs_is_listed_with_hardly_a_step(tmp_path: Path) -> None:
    made = session(seed="now", full=True, start="2026-11-15T11:59:00.000Z").user("go")
    made.assistant(tool("Bash", command="make"))
    with exploring(tmp_path, made) as (found, _):
        api = Api(found)
        (task,) = api.get("/tasks", status="running")["tasks"]
        assert (task["status"], task["ended_at"], task["step_count"]) == ("running", None, 2)
        assert api.get("/tasks", status="completed")["tasks"] == []


# Pages of lists


@pytest.mark.parametrize("limit", [1, 3, 7, 500])
@pytest.mark.parametrize("sort", ["newest", "oldest", "longest", "turns", "largest", "added"])
def test_every_session_is_on_one_page_whatever_the_order(api: Api, sort: str, limit: int) -> None:
    pages = list(api.pages("/sessions", sort=sort, limit=limit))
    keys = [each["key"] for page in pages for each in page["sessions"]]
    assert len(keys) == len(set(keys)) == pages[0]["total"]
    assert all(len(page["sessions"]) == limit for page, _ in pairwise(pages))


@pytest.mark.parametrize(
    ("way", "name", "query"),
    [
        ("/files", "files", {}),
        ("/files", "files", {"sort": "path"}),
        ("/files", "files", {"sort": "edits", "changed": True}),
        ("/search", "hits", {"q": "the"}),
        ("/search", "hits", {"q": "the", "order": "oldest"}),
        ("/search", "hits", {"q": "the", "order": "rank"}),
        ("/tasks", "tasks", {}),
    ],
)
def test_pages_of_other_lists_join_to_the_whole(api: Api, way: str, name: str, query: dict[str, Any]) -> None:
    whole = api.get(way, limit=500, **query)
    assert whole["next_cursor"] is None
    assert api.all(way, name, limit=3, **query) == whole[name]
    assert len(whole[name]) == whole["total"] > 3


@pytest.mark.parametrize("inside", ["turns", "steps"])
def test_pages_of_a_session_join_to_the_whole(api: Api, inside: str) -> None:
    for each in api.get("/sessions", min_turns=2, limit=5)["sessions"]:
        way = f"/sessions/{each['key']}/{inside}"
        assert api.all(way, inside, limit=2) == api.all(way, inside, limit=500)


# Filters


def _writing(root: Path, number: int, path: str, time: str, times: int = 1) -> None:
    """Write a session that writes a file, so often."""
    made = session(seed=str(number), full=True, start=time).user("go")
    for each in range(times):
        write = tool("Write", file_path=path, content=f"{number}.{each}\n")
        made.assistant(write).result("ok")
    written(made, root)


@pytest.mark.parametrize("sort", ["path", "last", "edits"])
def test_pages_of_files_with_long_paths_join_to_the_whole(tmp_path: Path, sort: str) -> None:
    root, long = tmp_path / "config", "/home/ada/" + "\N{SNOWMAN}long/" * 600
    paths = [f"{long}{number}.py" for number in range(4)] + ["/a.py", "/z\ud800.py"]
    for number, path in enumerate(paths):
        _writing(root, number, path, f"2026-11-1{number % 3}T08:00:00.000Z")
    with explorer(str(tmp_path / "index"), str(root)) as found:
        api = Api(found)
        whole = [each["id"] for each in api.all("/files", "files", sort=sort, limit=500)]
        assert [each["id"] for each in api.all("/files", "files", sort=sort, limit=1)] == whole
        if sort == "path":
            assert [each["path"] for each in api.all("/files", "files", sort=sort)][1:5] == paths[:4]
    assert len(whole) == len(set(whole)) == len(paths)


def test_versions_are_on_one_page_each_while_older_ones_are_found(tmp_path: Path) -> None:
    root = tmp_path / "config"
    for number in range(6):
        _writing(root, number, "/a.py", f"2026-11-1{number}T08:00:00.000Z")
    with explorer(str(tmp_path / "index"), str(root)) as found:
        api = Api(found)
        (file,) = api.get("/files")["files"]
        way = f"/files/{file['id']}"
        before = [each["name"] for each in api.get(way)["versions"]]
        first = api.get(way, limit=3)
        # From another machine: it was there long before.
        _writing(root, 7, "/a.py", "2026-11-01T08:00:00.000Z", times=2)
        found.refresh()
        second = api.get(way, limit=500, cursor=first["next_cursor"])
        assert second["total"] > first["total"]
        names = [each["name"] for each in (*first["versions"], *second["versions"])]
        assert len(names) == len(set(names))
        assert set(before) <= set(names)
        # What is not known any more is not a place.
        other = make_cursor(f"files {file['id']}", Paged(limit=3), "9.9.9")
        status, error = api.error(way, cursor=other)
        assert (status, error["message"].split(":")[0]) == (400, "cursor")


def test_filters_leave_just_what_the_list_says(api: Api) -> None:
    everything = api.all("/sessions", "sessions")
    for name in ("status", "model", "branch", "live", "dialect"):
        for value in {each[name] for each in everything}:
            expected = {each["key"] for each in everything if each[name] == value}
            if value == "":
                continue
            found = api.all("/sessions", "sessions", **{name: value})
            assert {each["key"] for each in found} == expected, (name, value)
    for each in everything:
        project = {"project": each["project_id"] or each["project"]}
        if any(project.values()):
            found = api.all("/sessions", "sessions", **project)
            assert {other["project"] for other in found} == {each["project"]}
    for least in (1, 5, 12):
        found = {each["key"] for each in api.all("/sessions", "sessions", min_steps=least)}
        totals = {e["key"]: api.get(f"/sessions/{e['key']}/steps", limit=1)["total"] for e in everything}
        assert found == {key for key, total in totals.items() if total >= least}
    listed = {each["id"] for each in api.all("/tasks", "tasks")}
    assert {each["key"] for each in api.all("/sessions", "sessions", listed=True)} <= listed
    assert api.get("/sessions", min_turns=3)["total"] == sum(e["turns"] >= 3 for e in everything)


def test_a_time_limits_by_the_last_activity(api: Api) -> None:
    everything = api.all("/sessions", "sessions")
    on = [e for e in everything if e["ended"] and "2026-11-07" <= e["ended"][:10] <= "2026-11-13"]
    found = api.all("/sessions", "sessions", since="2026-11-07", until="2026-11-13")
    assert on
    assert {each["key"] for each in found} == {each["key"] for each in on}


def test_words_of_a_title_are_found_in_any_case(api: Api) -> None:
    found = api.all("/sessions", "sessions", q="CURVE smooth")
    assert [each["title"] for each in found] == ["Smooth the curve, keep the surge"]


@pytest.mark.parametrize(
    ("has", "field"),
    [
        ("failed", "failed_steps"),
        ("agents", "agents"),
        ("compacted", "compactions"),
        ("abandoned", "abandoned_branches"),
    ],
)
def test_what_a_session_must_have_is_had_by_all_that_are_listed(api: Api, has: str, field: str) -> None:
    everything = api.all("/sessions", "sessions")
    found = api.all("/sessions", "sessions", has=has)
    assert {e["key"] for e in found} == {e["key"] for e in everything if e[field]}
    assert found


def test_damage_is_listed_once_it_was_found(api: Api) -> None:
    (damaged,) = api.get("/sessions", has="damaged")["sessions"]
    detail = api.get(f"/sessions/{damaged['key']}")
    assert detail["findings"]["errors"] > 0
    assert api.get("/sessions", has="damaged,pr")["total"] == 0


# Entity tags, methods, errors


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda each: each.name)
def test_a_client_that_has_it_already_gets_304(api: Api, endpoint: Endpoint) -> None:
    way = way_to(api, endpoint)
    first = api.ask(way)
    tag = first.headers["etag"]
    assert tag.startswith('"')
    assert first.headers["cache-control"] == "private, no-cache"
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        again = api.ask(way, {"if-none-match": known})
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
    assert api.ask(way, {"if-none-match": '"other"'}).body == first.body


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda each: each.name)
def test_head_says_what_get_says_without_a_body(api: Api, endpoint: Endpoint) -> None:
    way = way_to(api, endpoint)
    got = api.ask(way)
    head = api.explorer.ask(f"{API_V1_PREFIX}{way}", method="HEAD", headers={"cookie": api.explorer.cookie})
    assert (head.status, head.body) == (200, b"")
    for name in ("etag", "content-type", "content-length", "cache-control"):
        assert head.headers[name] == got.headers[name]


def test_a_tag_changes_with_what_it_is_for(tmp_path: Path) -> None:
    made = session(seed="tag", full=True).user("go").assistant("First.").done()
    with exploring(tmp_path, made) as (found, (path,)):
        api = Api(found)
        before = api.ask("/sessions").headers["etag"]
        assert api.ask("/sessions").headers["etag"] == before
        more = made.user("and on").assistant("Second.").done()
        path.write_bytes(next(iter(more.files().values())))
        found.refresh()
        assert api.ask("/sessions", {"if-none-match": before}).status == 200


def way_to(api: Api, endpoint: Endpoint) -> str:
    """Return a way to an endpoint at which there is something."""
    way = endpoint.path.removeprefix(API_V1_PREFIX)
    (each,) = api.get("/tasks", limit=1)["tasks"]
    (file,) = api.get("/files", limit=1)["files"]
    way = way.replace("{key}", each["id"]).replace("{id}", each["id"])
    way = way.replace("{tag}", file["id"])
    return f"{way}?q=the" if endpoint.name == "search" else way


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda each: each.name)
def test_a_wrong_parameter_is_refused_by_its_name(api: Api, endpoint: Endpoint) -> None:
    way = way_to(api, endpoint).partition("?")[0]
    status, error = api.error(way, nonsense="1")
    assert (status, error["code"]) == (400, "bad_request")
    assert "'nonsense'" in error["message"]
    schema: list[dict[str, Any]] = DOCUMENT["paths"][endpoint.path]["get"].get("parameters", [])
    for parameter in schema:
        if parameter["in"] != "query":
            continue
        name, kind = parameter["name"], parameter["schema"]
        wrong = ["", "x"] if kind["type"] != "string" else []
        wrong += ["0", "-1"] if kind.get("minimum") == 1 else []
        wrong += [str(kind["maximum"] + 1), "9" * 30] if "maximum" in kind else []
        wrong += ["nothing of these", ""] if "enum" in kind or "pattern" in kind else []
        wrong += ["", "no time"] if name in ("since", "until") else []
        wrong += ["", "x", "é", "W10"] if name == "cursor" else []
        needed = {"q": "the"} if endpoint.name == "search" and name != "q" else {}
        for value in wrong:
            status, error = api.error(way, **needed, **{name: value})
            assert (status, error["code"]) == (400, "bad_request"), (name, value)
            assert error["message"].startswith(f"{name}: "), (name, value, error)
        fine = "true" if kind["type"] == "boolean" else "1"
        twice = api.explorer.get(f"{API_V1_PREFIX}{way}?{name}={fine}&{name}={fine}")
        assert twice.status == 400
        assert f"{name}: given more than once" in twice.text


def test_a_cursor_belongs_to_its_parameters(api: Api) -> None:
    cursor = api.get("/sessions", limit=1)["next_cursor"]
    assert api.get("/sessions", limit=5, cursor=cursor)["sessions"]
    status, error = api.error("/sessions", cursor=cursor, sort="oldest")
    assert (status, error["message"]) == (400, "cursor: created with different parameters")
    assert api.error("/files", cursor=cursor)[0] == 400


@pytest.mark.parametrize(
    "way", ["/", "/sessions/", "/sessions/none", "/sessions/none/turns", "/files/none", "/tasks/none"]
)
def test_what_is_not_there_is_said_in_json(api: Api, way: str) -> None:
    status, error = api.error(way)
    assert (status, error["code"]) == (404, "not_found")
    assert error["message"]


@pytest.mark.parametrize(
    ("status", "code", "method", "headers"),
    [
        (401, "unauthorized", "GET", {}),
        (403, "forbidden", "GET", {"origin": "http://evil.test"}),
        (405, "method_not_allowed", "POST", {}),
        (405, "method_not_allowed", "OPTIONS", {}),
        (421, "misdirected_request", "GET", {"host": "evil.test"}),
    ],
)
def test_the_gate_refuses_in_json(api: Api, status: int, code: str, method: str, headers: dict[str, str]) -> None:
    for path in API_PATHS:
        answer = api.explorer.ask(path, method=method, headers=headers)
        assert (answer.status, json.loads(answer.body)["error"]["code"]) == (status, code)
        assert answer.headers["content-type"] == "application/json"
        assert "access-control-allow-origin" not in answer.headers
        assert ("www-authenticate" in answer.headers) == (status == 401)


def test_a_bearer_is_let_in(tmp_path: Path) -> None:
    word = "0123456789abcdef0123456789abcdef"
    house = AppState(IndexLocation(str(tmp_path / "index"), (str(tmp_path / "config"),)))
    sync(house.home)
    with open_socket("127.0.0.1", 0) as made:
        server = Server(house, made, user_token=word)
        thread = threading.Thread(target=server.run_until_stopped)
        thread.start()
        try:
            found = Explorer(house, server)
            for bearer, status in ((word, 200), (f"{word}x", 401), ("", 401)):
                answer = found.ask(f"{API_V1_PREFIX}/sessions", headers={"authorization": f"Bearer {bearer}"})
                assert answer.status == status
        finally:
            server.should_exit = True
            thread.join()
            house.close()


def test_without_an_index_the_client_is_told_to_try_again(tmp_path: Path) -> None:
    app = App(AppState(IndexLocation(str(tmp_path / "index"), (str(tmp_path),))))
    for way in ("/sessions", "/sessions/x", "/usage", "/files", "/tasks"):
        reply = app.get(f"{API_V1_PREFIX}{way}")
        assert (reply.status, json.loads(reply.body)["error"]["code"]) == (503, "not_ready")
    app.close()


# What it does not do


def test_a_session_that_is_gone_is_read_from_the_archive(tmp_path: Path, steno: Steno) -> None:
    kept = session(seed="kept", full=True).user("Keep me").assistant("Yes.").done()
    lost = session(seed="lost", full=True).user("Lose me").assistant("Yes.").done()
    with exploring(tmp_path, kept) as (found, (path,)):
        assert steno("archive", "--root", tmp_path / "config").code == 0
        other = written(lost, tmp_path / "config")
        found.refresh()
        path.unlink()
        other.unlink()
        found.refresh()
        api = Api(found)
        by_title = {each["title"]: each for each in api.all("/sessions", "sessions")}
        assert all(each["archived_only"] for each in by_title.values())
        (turn,) = api.get(f"/sessions/{by_title['Keep me']['key']}/turns")["turns"]
        assert turn["answer"] == "Yes."
        assert not api.get(f"/sessions/{by_title['Keep me']['key']}")["findings"]["checked"]
        status, error = api.error(f"/sessions/{by_title['Lose me']['key']}/turns")
        assert status == 404
        assert "deleted" in error["message"]


def test_sessions_with_the_same_id_have_keys_of_their_own(tmp_path: Path) -> None:
    made = session(seed="twin", full=True).user("One").assistant("First.").done()
    other = session(seed="twin", full=True).user("Two").assistant("Second.").done()
    other_root = tmp_path / "other"
    written(other, other_root)
    written(made, tmp_path / "config")
    with explorer(str(tmp_path / "index"), str(tmp_path / "config"), str(other_root)) as found:
        api = Api(found)
        sessions = api.all("/sessions", "sessions")
        assert len({each["key"] for each in sessions}) == 2
        assert len({each["id"] for each in sessions}) == 1
        for each in sessions:
            (turn,) = api.get(f"/sessions/{each['key']}/turns")["turns"]
            assert turn["prompt"]["text"] == each["title"]


@pytest.mark.parametrize("name", ["a/b", "../x", "a~1", "..", ".", "%2F", "a b?c#d", "a\\b", "x\x01", "", "ü~"])
def test_a_session_with_any_id_is_at_its_key(tmp_path: Path, name: str) -> None:
    root = tmp_path / "config"
    write_dialects(root)
    path = next(root.glob("conversations/*/*.jsonl"))
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    path.write_text("".join(json.dumps({**each, "sessionId": name}) + "\n" for each in lines))
    with explorer(str(tmp_path / "index"), str(root)) as found:
        api = Api(found)
        sessions = api.all("/sessions", "sessions")
        (key,) = (each["key"] for each in sessions if each["path"] == str(path))
        assert "/" not in key
        assert key not in (".", "..")
        place = quote(key, safe="~")
        for way in (f"/sessions/{place}", f"/sessions/{place}/turns", f"/sessions/{place}/steps"):
            assert api.get(way).get("key", key) == key
        assert api.get(f"/tasks/{place}")["id"] == key
        assert found.get(f"/s/{place}").status == 200


def test_no_request_writes_anything(tmp_path: Path) -> None:
    root = tmp_path / "demo"
    write_demo(str(root))
    home = Path(os.environ["HOME"])
    with explorer(str(tmp_path / "index"), str(root)) as found:
        # The prices of models are kept, whoever asks first.
        found.get("/usage")
        before = {folder: snapshot(folder) for folder in (root, home)}
        ask_everything(Api(found), every=4)
        found.house.health_monitor.wait()
        assert {folder: snapshot(folder) for folder in (root, home)} == before


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}
