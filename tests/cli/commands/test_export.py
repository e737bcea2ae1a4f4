"""`steno export` writes what it says, where it was told, and says what it masked."""

import json
import sys
from pathlib import Path

import pytest
from tests.builders import session, tool
from tests.cli.conftest import Steno
from tests.conftest import WriteConfig

from steno.demo.recording import DemoReport
from steno.report.export.session_export import PARQUET_TABLES

pytestmark = pytest.mark.usefixtures("demo")


def test_one_session_is_one_page_that_holds_all_it_needs(steno: Steno, tmp_path: Path) -> None:
    page = tmp_path / "talk.html"
    ran = steno("export", "--demo", "last", "-o", page)
    assert ran.code == 0
    text = page.read_text()
    assert "<!doctype html>" in text
    assert "Content-Security-Policy" in text
    assert '<link rel="stylesheet"' not in text
    assert "/home/ada" not in text
    assert "masked " in ran.err


def test_many_sessions_become_a_folder_with_a_list(steno: Steno, tmp_path: Path) -> None:
    ran = steno("export", "--demo", "--project", "gravel", "-o", f"{tmp_path}/pages/", "--json")
    told = ran.json
    assert told["sessions"] == 5
    index = (tmp_path / "pages" / "index.html").read_text()
    for path in told["written"]:
        name = Path(path).name
        assert Path(path).exists()
        assert name == "index.html" or f'href="{name}"' in index


@pytest.mark.parametrize("kind", ["markdown", "txt", "json", "messages"])
def test_text_goes_to_the_standard_output(steno: Steno, kind: str) -> None:
    ran = steno("export", "--demo", "last", "--format", kind)
    assert ran.code == 0
    assert "Tag the release" in ran.out
    assert "/home/ada" not in ran.out


def test_here_is_the_folder_and_what_lies_below_it(
    steno: Steno, config: WriteConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [
        session(seed=name, cwd=f"/home/ada/{name}").user("Go.").assistant("Done.").done()
        for name in ("app", "app/web", "application")
    ]
    config(*made)
    monkeypatch.setattr("os.getcwd", lambda: "/home/ada/app")
    out = f"{tmp_path}/out/"
    assert steno("export", "--project", ".", "--format", "steps", "-o", out).code == 0
    assert {path.name for path in Path(out).iterdir()} == {each.session_id for each in made[:2]}


def test_only_sessions_that_were_written_as_steps_are_counted(steno: Steno, tmp_path: Path) -> None:
    some, none = session(seed="some").user("Go.").assistant("Done.").done(), session(seed="none")
    paths = [tmp_path / f"{made.session_id}.jsonl" for made in (some, none)]
    for path, data in zip(paths, (some.bytes(), b""), strict=True):
        path.write_bytes(data)
    ran = steno("export", *paths, "--format", "steps", "-o", f"{tmp_path}/a/", "--json")
    assert (ran.json["sessions"], len(ran.json["written"])) == (1, 1)
    assert steno("export", paths[1], "--format", "steps", "-o", f"{tmp_path}/b/").code == 1


def test_sessions_that_share_an_id_have_folders_of_their_own(steno: Steno, tmp_path: Path) -> None:
    made = session(seed="twice").user("Go.").assistant("Done.").done()
    for project in ("one", "two"):
        (tmp_path / project).mkdir()
        (tmp_path / project / f"{made.session_id}.jsonl").write_bytes(made.bytes())
    out = tmp_path / "out"
    paths = sorted(tmp_path.glob("*/*.jsonl"))
    assert steno("export", *paths, "--format", "steps", "-o", f"{out}/").code == 0
    assert {each.name for each in out.iterdir()} == {made.session_id, f"{made.session_id}_2"}


def test_words_choose_sessions(steno: Steno, tmp_path: Path) -> None:
    ran = steno("export", "--demo", "--query", "ampersand", "--format", "txt", "-o", f"{tmp_path}/x/")
    assert ran.code == 0
    (path,) = (tmp_path / "x").iterdir()
    assert "ampersand" in path.read_text()


def test_the_tables_of_the_index_become_parquet(steno: Steno, tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow.parquet")
    ran = steno("export", "--demo", "--project", "tidegauge", "--format", "parquet", "-o", f"{tmp_path}/p/")
    assert ran.code == 0
    sessions = arrow.read_table(tmp_path / "p" / "sessions.parquet").to_pylist()
    assert len({row["id"] for row in sessions}) == 6
    assert {row["project"] for row in sessions} == {"~/tidegauge"}
    calls = arrow.read_table(tmp_path / "p" / "tool_calls.parquet")
    assert calls.num_rows > 10


def test_a_table_has_the_same_columns_whatever_is_in_it(steno: Steno, config: WriteConfig, tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow.parquet")
    full = session(seed="full").user("Go.").assistant(tool("Write", file_path="/a", content="x"))
    empty = session(seed="empty").user("Go.")
    config(full.result("ok").assistant("Done.").done(), empty)
    columns: list[dict[str, str]] = []
    for made in (full, empty):
        out = tmp_path / made.session_id
        assert steno("export", made.session_id, "--format", "parquet", "-o", f"{out}/").code == 0
        tables = {path.stem: arrow.read_schema(path) for path in sorted(out.iterdir())}
        columns.append({name: str(schema.remove_metadata()) for name, schema in tables.items()})
    assert columns[0] == columns[1]
    assert list(columns[0]) == sorted(PARQUET_TABLES)
    assert "null" not in "".join(columns[0].values())


def test_without_pyarrow_parquet_says_what_to_install(
    steno: Steno, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    ran = steno("export", "--demo", "last", "--format", "parquet", "-o", f"{tmp_path}/p/")
    assert ran.code == 2
    assert "[parquet]'" in ran.err


def test_a_receipt_is_written_beside(steno: Steno, tmp_path: Path) -> None:
    receipt = tmp_path / "receipt.json"
    steno("export", "--demo", "last", "-o", tmp_path / "a.html", "--receipt", receipt)
    told = json.loads(receipt.read_bytes())
    assert told["counts"]["home"] > 0
    assert sum(told["texts"][next(iter(told["texts"]))].values()) == told["counts"]["home"]


def test_nothing_is_masked_where_that_is_wanted_and_it_is_said(steno: Steno) -> None:
    ran = steno("export", "--demo", "last", "--format", "txt", "--no-redact")
    assert "/home/ada" in ran.out
    assert "nothing was masked" in ran.err


def test_what_is_there_is_not_written_over(steno: Steno, tmp_path: Path) -> None:
    page = tmp_path / "a.md"
    page.write_text("mine")
    ran = steno("export", "--demo", "last", "--format", "markdown", "-o", page)
    assert ran.code == 2
    assert page.read_text() == "mine"
    assert steno("export", "--demo", "last", "--format", "markdown", "-o", page, "--force").code == 0
    assert page.read_text() != "mine"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "exactly one of SESSION, --project and --query"),
        (("last", "--project", "x"), "exactly one of SESSION, --project and --query"),
        (("last", "--format", "json", "--level", "low"), "--level cannot be combined"),
        (("last", "--format", "steps"), "needs a directory"),
        (("--project", "gravel"), "needs a directory"),
        (("last", "--no-redact", "--receipt", "x"), "--receipt cannot be combined"),
        (("last", "--listed"), "--listed"),
    ],
)
def test_what_makes_no_sense_is_refused(steno: Steno, options: tuple[str, ...], said: str) -> None:
    ran = steno("export", "--demo", *options)
    assert ran.code == 2
    assert said in ran.err


def test_nothing_found_is_said(steno: Steno, demo: DemoReport) -> None:
    del demo
    assert steno("export", "--demo", "--project", "nowhere-at-all", "-o", "x/").code == 1
