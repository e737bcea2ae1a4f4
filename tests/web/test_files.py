"""Files page and file page."""

import re
import shutil
from collections.abc import Generator
from html import unescape
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.builders import session, tool
from tests.conftest import WriteConfig
from tests.report.file_history_cases import PATH, edit, read, write
from tests.web.explorer import Explorer, explorer

from steno.report.file_history.file_versions import Version
from steno.report.file_history.touched_files import TouchedFilter, list_touched_files, touched_projects
from steno.web.urls import path_tag
from steno.web.views.file_pages import build_tree, file_cache_of, tree_rows

_ROW = re.compile(r'<a class="fpath" href="([^"]*)" title="([^"]*)">')
_TREE = re.compile(r'<li class="d(\d)"><a href="([^"]*)"([^>]*)>.*?<span>([^<]*)</span>')
_ENTRY = re.compile(r'<a class="whole" href="([^"]*)"([^>]*)><span class="w"><b>([^<]*)</b>')


def _rows(text: str) -> list[str]:
    return [unescape(path) for _, path in _ROW.findall(text)]


def _versions(demo: Explorer, path: str) -> tuple[Version, ...]:
    with demo.house.index() as index:
        return file_cache_of(demo.house).history(demo.house, index, path).versions


# The list


def test_every_file_that_was_touched_is_listed_with_its_address(demo: Explorer) -> None:
    with demo.house.index() as index:
        known = list_touched_files(index.connection)
    found = _ROW.findall(demo.get("/files").text)
    assert len(found) == len(known) > 10
    for address, _ in found:
        assert demo.get(unescape(address)).status == 200


def test_a_project_shows_its_own_files_and_its_folders(demo: Explorer) -> None:
    with demo.house.index() as index:
        project = next(each.path for each in touched_projects(index.connection) if each.path.endswith("tidegauge"))
        mine = list_touched_files(index.connection, TouchedFilter(project=project))
    text = demo.get(f"/files?project={path_tag(project)}").text
    assert _rows(text) == [each.path for each in mine]
    folders = [(unescape(href), name) for _, href, _, name in _TREE.findall(text) if "/" in name]
    (href, name), *_ = folders
    inner = demo.get(href).text
    assert _rows(inner)
    assert all(f"/{name}/" in path for path in _rows(inner))
    # A folder that is open is closed by the same row.
    again = next(unescape(way) for _, way, now, _ in _TREE.findall(inner) if "aria-current" in now)
    assert _rows(demo.get(again).text) == _rows(text)


@pytest.mark.parametrize("sort", ["last", "edits", "reads", "lines", "sessions", "path"])
def test_sorting_changes_the_order_and_nothing_else(demo: Explorer, sort: str) -> None:
    plain = _rows(demo.get("/files").text)
    found = _rows(demo.get(f"/files?sort={sort}").text)
    assert sorted(found) == sorted(plain)
    if sort == "path":
        assert found == sorted(plain)


def test_filters_are_in_the_address(demo: Explorer) -> None:
    assert all("smooth" in path for path in _rows(demo.get("/files?q=smooth").text))
    changed = _rows(demo.get("/files?changed=1").text)
    with demo.house.index() as index:
        rows = list_touched_files(index.connection)
    assert sorted(changed) == sorted(row.path for row in rows if row.edits)
    assert len(_rows(demo.get("/files?since=today").text)) < len(rows)
    empty = demo.get("/files?q=nothing+of+this+name")
    assert (empty.status, "No files match these filters" in empty.text) == (200, True)


@pytest.mark.parametrize(
    ("way", "status"),
    [
        ("/files?project=nothing", 404),
        ("/files?q=" + "x" * 300, 400),
        ("/files?sort=%00&from=99999999999999&since=x&open=y", 200),
        ("/files?dir=abc", 200),
        ("/files/nothing", 404),
        ("/files/..%2f..%2fetc%2fpasswd", 404),
    ],
)
def test_odd_addresses_get_plain_answers(demo: Explorer, way: str, status: int) -> None:
    answer = demo.get(way)
    assert answer.status == status
    assert "Traceback" not in answer.text


def test_folders_with_only_one_folder_in_them_are_one_row(demo: Explorer) -> None:
    with demo.house.index() as index:
        project = next(each.path for each in touched_projects(index.connection) if each.path.endswith("tidegauge"))
        files = list_touched_files(index.connection, TouchedFilter(project=project))
    names = [row.name for row in tree_rows(build_tree(files, project), "")]
    assert "src/tidegauge" in names
    assert "src" not in names


def test_projects_of_one_name_are_told_apart(config: WriteConfig, tmp_path: Path) -> None:
    made = [
        write(session(seed=number, cwd=cwd).user("Begin."), "a\n").done()
        for number, cwd in enumerate(("/home/ada/one/cli", "/home/ada/two/cli", "/srv/web"))
    ]
    with explorer(str(tmp_path / "index"), str(config(*made))) as found:
        text = found.get("/files").text
    for name in ("one/cli", "two/cli", "web"):
        assert f"<span>{name}</span>" in text


# One file


@pytest.fixture
def chained(config: WriteConfig, tmp_path: Path) -> Generator[Explorer]:
    """Give an explorer over a session with a bit of everything in it."""
    made = session(entrypoint="sdk-cli").user("Begin <b>the</b> notes.")
    write(made, "one\ntwo\nthree\n")
    read(made)
    read(made)
    made.assistant(tool("Bash", command="./tidy notes.txt")).result("")
    made.have(PATH, "one\n2\nthree\n")
    edit(made, "three", "drei").assistant("Done.").done()
    with explorer(str(tmp_path / "index"), str(config(made))) as found:
        yield found


def test_the_timeline_tells_what_happened_newest_first(chained: Explorer) -> None:
    text = chained.get(f"/files/{path_tag(PATH)}").text
    assert [what for _, _, what in _ENTRY.findall(text)] == [
        "Edited",
        "Changed outside",
        "May have changed",
        "Read 2 times",
        "Written",
    ]
    assert "Begin &lt;b&gt;the&lt;/b&gt; notes." in text
    assert "./tidy notes.txt" in text


def test_any_version_is_shown_in_full_and_as_a_diff(chained: Explorer) -> None:
    for version in _versions(chained, PATH):
        whole = chained.get(f"/files/{path_tag(PATH)}?v={version.name}&view=after").text
        if version.text is None:
            assert "Content of this version not recorded" in whole
            continue
        found = re.search(r'<span class="no">([\d\n]+)</span><span class="l">(.*?)</pre>', whole, re.DOTALL)
        assert found is not None
        lines = version.text.rstrip("\n").split("\n")
        assert unescape(re.sub("<[^>]*>", "", found[2])).split("\n") == lines
        assert found[1].split("\n") == [str(number) for number in range(1, len(lines) + 1)]
    last = _versions(chained, PATH)[-1]
    diff = chained.get(f"/files/{path_tag(PATH)}?v={last.name}").text
    assert len(re.findall(r'<tr class="add">', diff)) == last.added == 1
    assert len(re.findall(r'<tr class="del">', diff)) == last.removed == 1
    before = chained.get(f"/files/{path_tag(PATH)}?v={last.name}&view=before").text
    assert "drei" not in before.partition("<main")[2].partition("<form")[0]


def test_a_diff_between_any_two_points_has_an_address(chained: Explorer) -> None:
    versions = _versions(chained, PATH)
    text = chained.get(f"/files/{path_tag(PATH)}?a={versions[0].name}&b={versions[-1].name}").text
    assert "<h2>Comparison</h2>" in text
    assert len(re.findall(r'<tr class="add">', text)) == 2
    assert len(re.findall(r'<tr class="del">', text)) == 2
    swap = re.search(r'href="([^"]*)">Swap', text)
    assert swap is not None
    assert chained.get(unescape(swap[1])).status == 200
    assert chained.get(f"/files/{path_tag(PATH)}?a=x&b=y").status == 404
    assert chained.get(f"/files/{path_tag(PATH)}?v=x").status == 404


def test_a_version_leads_to_its_step_in_the_session(demo: Explorer) -> None:
    with demo.house.index() as index:
        rows = list_touched_files(index.connection)
    for row in rows:
        for version in _versions(demo, row.path):
            text = demo.get(f"/files/{path_tag(row.path)}?v={version.name}").text
            found = re.search(r'href="([^"]*)" data-open', text)
            assert found is not None
            key = f"/s/{version.session}"
            agent = f"/a/{quote(version.agent)}" if version.agent else ""
            assert unescape(found[1]) == f"{key}{agent}?at={version.offset}"
            record = re.search(r'<dt>Record</dt><dd><a class="total" href="([^"]*)"', text)
            assert record is not None
            assert demo.get(unescape(found[1])).status == 200
            assert demo.get(unescape(record[1])).status == 200


def test_what_was_rewound_is_struck_out(demo: Explorer) -> None:
    with demo.house.index() as index:
        paths = [row.path for row in list_touched_files(index.connection)]
    abandoned = [path for path in paths if any(each.abandoned for each in _versions(demo, path))]
    assert abandoned
    text = demo.get(f"/files/{path_tag(abandoned[0])}").text
    assert '<li class="gone' in text


def test_pages_follow_the_index(config: WriteConfig, tmp_path: Path) -> None:
    made = session(entrypoint="sdk-cli").user("Begin.")
    write(made, "one\n")
    root = config(made)
    with explorer(str(tmp_path / "index"), str(root)) as found:
        assert "1 access in" in found.get(f"/files/{path_tag(PATH)}").text
        edit(made, "one", "two").assistant("Done.").done()
        config(made)
        text = found.refresh().get(f"/files/{path_tag(PATH)}").text
    assert "2 accesses in" in text
    assert "Edited" in text


def test_a_file_whose_sessions_are_gone_says_so(config: WriteConfig, tmp_path: Path) -> None:
    made = session(entrypoint="sdk-cli").user("Begin.")
    write(made, "one\n").done()
    root = config(made)
    with explorer(str(tmp_path / "index"), str(root)) as found:
        shutil.rmtree(root / "projects")
        found.refresh()
        text = found.get(f"/files/{path_tag(PATH)}").text
    assert "1 access unavailable" in text
    assert "No content available" in text


def test_files_known_from_backups_alone_are_marked(config: WriteConfig, tmp_path: Path) -> None:
    made = session(entrypoint="sdk-cli").user("Generate it.")
    made.snapshot("x", of=made.prompts[0], backups={"gen/<b>.py": "x = 1\n"})
    made.assistant("Done.").done()
    with explorer(str(tmp_path / "index"), str(config(made))) as found:
        project = path_tag("/home/ada/tidegauge")
        for way in ("/files", f"/files?project={project}&changed=1"):
            text = found.get(way).text
            assert "&lt;b&gt;.py" in text
            assert "from backups" in text
        page = found.get(f"/files/{path_tag('/home/ada/tidegauge/gen/<b>.py')}").text
    assert "Known only from Claude Code" in page


def test_hostile_names_and_texts_stay_text(config: WriteConfig, tmp_path: Path) -> None:
    path = "/home/ada/tidegauge/<img src=x onerror=alert(1)>/\N{RIGHT-TO-LEFT OVERRIDE}<b>.py"
    made = session(entrypoint="sdk-cli").user("<script>alert(1)</script>")
    made.assistant(tool("Write", file_path=path, content="</pre><script>alert(2)</script>\n"))
    made.result().done()
    with explorer(str(tmp_path / "index"), str(config(made))) as found:
        project = path_tag("/home/ada/tidegauge")
        for way in ("/files", f"/files?project={project}", f"/files/{path_tag(path)}"):
            text = found.get(way).text
            assert "<img src=x" not in text
            assert "<script>alert" not in text
            assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in text
