"""`steno blame`."""

import os
import shutil
from pathlib import Path

import pytest
from tests.builders import session, tool
from tests.cli.conftest import Steno
from tests.conftest import WriteConfig
from tests.gitting import Repo

git = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")


@pytest.fixture
def path(config: WriteConfig, tmp_path: Path) -> Path:
    path = tmp_path / "a.py"
    one = session(seed=1).user("Begin \x1b[31mit.")
    one.assistant(tool("Write", file_path=str(path), content="a\nb\n")).result().done()
    two = session(seed=2).wait(86_400).have(str(path), "a\nb\n").user("Go on.")
    call = tool("Edit", file_path=str(path), old_string="b", new_string="c\x1b]0;x\x07\nd")
    two.assistant(call).result().done()
    path.write_text("a\nc\x1b]0;x\x07\nd\nhand\n")
    config(one, two)
    return path


def test_every_line_has_its_session_and_the_prompts_stand_below(steno: Steno, path: Path) -> None:
    ran = steno("blame", path)
    assert ran.code == 0
    lines = [line.partition(" │ ") for line in ran.lines[:4]]
    assert [text for _, _, text in lines] == ["a", "c␛]0;x␇", "d", "hand"]
    assert [who.split()[-1] for who, _, _ in lines] == ["1", "2", "3", "4"]
    assert lines[0][0].split()[0].endswith(":1")
    assert lines[2][0].strip() == "3"
    assert lines[3][0].startswith("no session")
    assert "    Begin ␛[31mit." in ran.lines
    assert "    Go on." in ran.lines
    assert "2 lines, 50%" in ran.out
    assert "\x1b" not in ran.out


def test_some_lines_can_be_asked_about(steno: Steno, path: Path) -> None:
    told = steno("blame", f"{path}:2-3", "--json").json
    assert [(line["number"], line["text"][0]) for line in told["lines"]] == [(2, "c"), (3, "d")]
    assert [origin["prompt"] for origin in told["origins"]] == ["Go on."]
    assert told["total"] == 4
    assert [line["number"] for line in steno("blame", f"{path}:4", "--json").json["lines"]] == [4]
    rest = steno("blame", f"{path}:3-", "--json").json
    assert [line["number"] for line in rest["lines"]] == [3, 4]
    assert steno("blame", f"{path}:9").code == 2
    assert steno("blame", f"{path}:3-2").code == 2
    assert steno("blame", f"{path}:0").code == 2


def test_a_file_that_is_called_like_lines_is_that_file(steno: Steno, path: Path) -> None:
    odd = path.with_name("a.py:2")
    odd.write_text("x\n")
    assert [line["text"] for line in steno("blame", odd, "--json").json["lines"]] == ["x"]


def test_only_who_wrote_how_much_can_be_asked(steno: Steno, path: Path) -> None:
    ran = steno("blame", path, "--summary")
    assert " │ " not in ran.out
    assert "25%" in ran.out


def test_what_cannot_be_blamed_is_one_line(steno: Steno, path: Path) -> None:
    for name, code in (("missing.py", 3), (path.parent, 3), (os.devnull, 3)):
        ran = steno("blame", name)
        assert (ran.code, ran.out) == (code, "")
        assert ran.err.startswith("steno: ")
    empty = path.with_name("empty")
    empty.write_text("")
    assert steno("blame", empty).lines == ["The file is empty."]


@pytest.mark.usefixtures("path")
def test_a_file_that_no_session_knows_says_so(steno: Steno, tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("x\n")
    ran = steno("blame", "other.py")
    assert ran.code == 0
    assert "no indexed session accessed this file" in ran.out
    known = steno("blame", "other.py", "--as", tmp_path / "a.py", "--json").json
    assert known["names"] == [str(tmp_path / "a.py")]


@git
def test_commits_and_earlier_names_are_said(steno: Steno, config: WriteConfig) -> None:
    repo = Repo(Path("r").absolute())
    old = repo.write("old.py", "human\n")
    repo.commit("Ada \x1b[31m begins", when="2020-01-01T00:00:00Z", who="Ada \x1b[0m")
    made = session().have(str(old), "human\n").user("Add to it.")
    call = tool("Edit", file_path=str(old), old_string="human", new_string="human\na\nb\nc")
    made.assistant(call).result().done()
    old.write_text("human\na\nb\nc\n")
    mine = repo.commit("Work", when="2029-01-01T00:00:00Z")
    repo.run("mv", "old.py", "new.py")
    repo.commit("Rename", when="2029-01-02T00:00:00Z")
    config(made)
    ran = steno("blame", repo.folder / "new.py")
    assert "\x1b" not in ran.out
    assert "Ada ␛[0m" in ran.lines[0]
    assert ran.lines[1].split()[0] == f"{made.session_id[:8]}:1"
    assert f"    committed as {mine[:8]} Work" in ran.lines
    assert ran.lines[-1] == f"other paths: {old}"
    told = steno("blame", repo.folder / "new.py", "--json").json
    assert [origin["kind"] for origin in told["origins"]] == ["commit", "session"]
    assert told["origins"][1]["commit"]["hash"] == mine
    alone = steno("blame", repo.folder / "new.py", "--no-git", "--json").json
    assert [origin["kind"] for origin in alone["origins"]] == ["unknown"]
    assert not alone["git"]


@git
def test_a_repository_that_cannot_be_asked_is_said(steno: Steno, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert steno("blame", path).err == ""
    Repo(path.parent)
    assert steno("blame", path).err == ""
    (path.parent / ".git" / "HEAD").unlink()
    ran = steno("blame", path)
    assert ran.code == 0
    assert "rejects this repository" in ran.err
    assert steno("blame", path, "--no-git").err == ""
    monkeypatch.setenv("PATH", "")
    assert "git is not installed" in steno("blame", path).err
