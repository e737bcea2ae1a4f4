"""Project page over HTTP."""

import json
import re
from collections.abc import Generator
from html import unescape
from pathlib import Path

import msgspec
import pytest
from tests.builders.stories.kit import begin
from tests.web.compared_sessions import KEY, OUTSIDE, first_try, furnish, lay, second_try
from tests.web.explorer import Explorer, explorer

from steno.format.paths import plan_path, slug_for_path
from steno.report.project_overview import ProjectOverview, load_project_overview, weekly_usage
from steno.web.urls import path_tag

_TIDE = "/home/ada/tidegauge"
_NASTY = '"><img src=x onerror=alert(1)>\u202e<script>alert(2)</script>'


class _Made(msgspec.Struct):
    of: Explorer
    path: str
    keys: list[str]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Generator[_Made]:
    folder = tmp_path_factory.mktemp("project")
    root, project = folder / "config", folder / "papercrane"
    project.mkdir()
    planned = begin(seed="planned", cwd=str(project), start="2026-11-13T09:00:00.000Z")
    planned.user("x" * 200_000).assistant("Then let us plan.")
    planned.plan("# The plan\n\n1. Merge fallback fonts first\n")
    planned.user("Plan it.").assistant("Planned.").exit()
    keys = lay(root, first_try(str(project)), second_try(str(project)), planned)
    furnish(root, project)
    memory = root / "projects" / slug_for_path(str(project)) / "memory"
    memory.mkdir()
    (memory / "MEMORY.md").write_text("# Fonts\n\n- They are **subset**, <b>always</b>\n")
    (memory / "more.md").write_text("x" * 70_000)
    (root / plan_path("of-somebody-else")).write_text("not mine")
    with explorer(str(folder / "index"), str(root)) as found:
        yield _Made(found, str(project), keys)


def _page(of: Explorer, path: str) -> str:
    answer = of.get(f"/p/{path_tag(path)}")
    assert answer.status == 200
    return unescape(answer.text)


def _section(text: str, name: str) -> str:
    start = text.index(f'<section class="fig gap-t" id="{name}">')
    return text[start : text.index("</section>", start)]


def _known(of: Explorer, path: str) -> ProjectOverview:
    with of.house.index() as index:
        return load_project_overview(index.connection, path, of.house.prices, of.house.now())


def test_the_sums_are_those_of_its_sessions(demo: Explorer) -> None:
    found = _known(demo, _TIDE)
    with demo.house.index() as index:
        rows = index.connection.execute(
            "SELECT count(*), sum(turns), sum(failed) FROM sessions WHERE project = ? AND agent = '' AND NOT hidden",
            (_TIDE,),
        ).fetchone()
    sums = found.sums
    assert (sums.sessions, sums.turns, sums.failed) == rows
    assert sums.cost == sum(week.cost for week in found.weeks) > 0
    text = _page(demo, _TIDE)
    assert text.count('<li data-stop data-key="') == rows[0]
    assert f'href="/?project={path_tag(_TIDE)}"' in text


def test_weeks_go_on_to_this_one_and_quiet_ones_are_there(demo: Explorer) -> None:
    with demo.house.index() as index:
        later = demo.house.now() + 21 * 86_400
        weeks = weekly_usage(index.connection, _TIDE, demo.house.prices, later)
        old = weekly_usage(index.connection, _TIDE, demo.house.prices, later + 400 * 86_400)
    assert [week.cost for week in weeks[-2:]] == [0, 0]
    assert weeks[0].cost > 0
    assert len({week.monday for week in weeks}) == len(weeks)
    assert old == []


def test_instructions_and_memory_are_rendered(made: _Made) -> None:
    text = _page(made.of, made.path)
    told = _section(text, "told")
    assert "CLAUDE.md, AGENTS.md" in told
    assert "<code>make test</code>" in told
    assert "Answer in <strong>short</strong> sentences." in told
    memory = _section(text, "memory")
    assert "<strong>subset</strong>" in memory
    assert "10,000 more characters in the file" in memory
    assert "&lt;b&gt;always" in made.of.get(f"/p/{path_tag(made.path)}").text


def test_no_link_out_of_the_project_is_followed(made: _Made) -> None:
    text = _page(made.of, made.path)
    assert OUTSIDE not in text
    assert "Skipped imports from outside the project: CLAUDE.local.md" in text


def test_no_secret_is_on_the_page(made: _Made) -> None:
    text = _page(made.of, made.path)
    assert KEY not in text
    assert KEY[:16] not in text
    assert "my-own-editor" not in text
    assert "my-own-helper" not in text
    assert "ada@example.com" not in text
    settings = _section(text, "settings")
    assert "ANTHROPIC_API_KEY" in settings
    assert "2 variables with masked values" in settings
    assert "notify --token <masked> --done" in settings


def test_servers_are_named_without_what_they_are_given(made: _Made) -> None:
    servers = {(each.name, each.kind, each.what) for each in _known(made.of, made.path).servers}
    assert servers == {("fonts", "stdio", "npx"), ("search", "http", "mcp.example"), ("db", "stdio", "pg-mcp")}


def test_agents_skills_and_commands_are_told_apart(made: _Made) -> None:
    found = {(d.kind, d.name, d.about, d.source) for d in _known(made.of, made.path).defined}
    assert found == {
        ("agent", "typesetter", "Knows fonts", "project"),
        ("skill", "proof", "Proofreads", "project"),
        ("agent", "reviewer", "Reads diffs", "yours"),
        ("skill", "pdf", "Reads PDFs", "yours"),
        ("command", "/git:tidy", "Tidy up", "yours"),
    }


def test_only_plans_of_its_own_sessions_are_shown(made: _Made) -> None:
    plans = _section(_page(made.of, made.path), "plans")
    assert "Merge fallback fonts first" in plans
    assert "not mine" not in plans


def test_lists_and_prompts_lead_to_their_sessions(demo: Explorer) -> None:
    text = _page(demo, _TIDE)
    assert "Draw the surge as its own layer" in _section(text, "lists")
    assert "Flip the projection" in _section(text, "lists")
    prompts = _section(text, "prompts")
    assert "What is missing for a first release?" in prompts
    assert 'href="/s/4582b2ed-b04e-46b9-9be9-6c5328628e29"' in prompts
    history = Path(demo.house.home.roots[0], "history.jsonl").read_text().splitlines()
    mine = [each for each in map(json.loads, history) if each["project"] == _TIDE]
    assert f"last {len(mine)} of {len(mine)}" in prompts


def test_a_change_that_a_fork_copied_counts_once(demo: Explorer) -> None:
    files = _known(demo, _TIDE).files
    with demo.house.index() as index:
        rows = index.connection.execute(
            "SELECT e.path, count(DISTINCT t.call) FROM file_edits e "
            "JOIN tool_calls t ON t.message = e.message AND t.place = e.place "
            "JOIN sessions s ON s.file = e.message >> 40 "
            "WHERE s.project = ? AND NOT t.failed GROUP BY 1",
            (_TIDE,),
        ).fetchall()
    assert {(f.path, f.edits) for f in files if f.edits} == set(rows)
    edits = [each.edits for each in files]
    assert edits == sorted(edits, reverse=True)


def test_a_project_that_is_gone_says_so_and_nothing_is_said_where_there_is_nothing(demo: Explorer) -> None:
    text = _page(demo, "/home/ada/ledger-import")
    assert "directory not found" in text
    assert "No memory files." in text
    assert "No plans in these sessions." in text
    assert "No MCP servers." in text
    assert f"Read from {demo.house.home.roots[0]}." in text


def test_sessions_outside_any_config_folder_have_a_page_too(tmp_path: Path) -> None:
    loose = begin(seed="loose", cwd="/home/ada/loose")
    loose.user("Hi.").assistant("Hello.").exit()
    root = tmp_path / "heap"
    root.mkdir()
    (root / f"{loose.session_id}.jsonl").write_bytes(loose.bytes())
    with explorer(str(tmp_path / "index"), str(root)) as of:
        assert "No config directory found" in _page(of, "/home/ada/loose")


def test_damaged_neighbours_do_not_break_the_page(tmp_path: Path) -> None:
    root = tmp_path / "config"
    made = begin(seed="odd", cwd="/home/ada/odd")
    made.user("Hi.").assistant("Hello.").exit()
    lay(root, made)
    for name in ("settings.json", ".claude.json", "history.jsonl", "CLAUDE.md"):
        (root / name).write_bytes(b'\xff{"mcpServers": [1], "projects": 7, "hooks": "\x00')
    (root / "settings.local.json").write_text('{"hooks": {"Stop": [7]}, "env": [], "model": 3}')
    (root / "todos").write_text("no folder")
    (root / "plans").symlink_to("plans")
    with explorer(str(tmp_path / "index"), str(root)) as of:
        _page(of, "/home/ada/odd")


def test_hostile_names_stay_words(tmp_path: Path) -> None:
    root, path = tmp_path / "config", f"/home/ada/{_NASTY}"
    bad = begin(seed="bad", cwd=path, branch=_NASTY)
    bad.user(_NASTY).assistant(_NASTY).exit()
    lay(root, bad)
    folder = next((root / "projects").iterdir()) / "memory"
    folder.mkdir()
    (folder / "MEMORY.md").write_text(f"# {_NASTY}\n\n[x](javascript:alert(1)) ![y](http://e/x)")
    hooks = {"hooks": {_NASTY: [{"matcher": _NASTY, "hooks": [{"command": _NASTY}]}]}}
    (root / "settings.json").write_text(json.dumps(hooks))
    (root / ".claude.json").write_text(json.dumps({"mcpServers": {_NASTY: {"command": _NASTY}}}))
    with explorer(str(tmp_path / "index"), str(root)) as of:
        text = of.get(f"/p/{path_tag(path)}").text
    assert "<img" not in text
    assert "<script>alert" not in text
    assert "\u202e" not in text
    assert not re.search(r'href="javascript:', text)


@pytest.mark.parametrize("tag", ["000000000000", "..", "%2e%2e%2fetc", "x" * 400])
def test_a_project_that_nobody_knows_is_said_so(demo: Explorer, tag: str) -> None:
    assert demo.get(f"/p/{tag}").status == 404
