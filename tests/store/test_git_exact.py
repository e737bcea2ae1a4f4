"""What git is asked, and with which settings; what is made of its answers; project folders."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
from tests.gitting import Repo
from tests.recorded_answers import assert_recorded

from steno.store import git
from steno.store.client_folders import ProjectFolder, ProjectTextFile
from steno.store.git import Repository, find_repository, is_in_work_tree

ANSWERS: Final = Path(__file__).with_name("answers")
_needs_git: Final = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")


@_needs_git
def test_git_is_asked_with_everything_put_out_that_runs_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole command, environment and way of each question."""
    asked: list[Any] = []
    run = subprocess.run

    def watched(command: list[str], **options: Any) -> Any:
        asked.append([command[1:], {k: v for k, v in options.items() if k != "env"}, options["env"]])
        return run(command, **options)

    repo = Repo(tmp_path / "r")
    path = repo.write("a.py", "a\n")
    repo.commit("Begin")
    monkeypatch.setattr(subprocess, "run", watched)
    monkeypatch.setenv("GIT_DIR", "/elsewhere")
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "/bin/false")
    found = find_repository(str(path))
    assert found is not None
    found.annotate("a.py")
    found.former_names("a.py")
    found.work_trees()
    answers: dict[str, object] = {}
    for command, options, env in asked:
        kept = {name: env.pop(name) for name in ("PATH", "HOME", "TMPDIR", "TEMP", "SYSTEMROOT") if name in env}
        assert all(os.environ[name] == value for name, value in kept.items())
        words = command[command.index("maintenance.auto=false") + 1 :]
        options["cwd"] = Path(options["cwd"]).name
        answers[" ".join(words)] = [command, options, env]
    assert_recorded(ANSWERS / "git.json", answers)


def test_answers_of_git_are_read_as_recorded() -> None:
    rows, renames = vars(git)["_parse_blame"], vars(git)["_parse_renames"]
    head = b"abc 1 1 2\nauthor Ada\nauthor-mail <a>\ncommitter-time 99\nsummary Did it\nfilename x\n"
    answers: dict[str, object] = {}
    for told in (b"", head + b"\tline one\n", head + b"\tone\nabc 2 2\n\ttwo\n",
                 head + b"\tone\ndef 2 2\ncommitter-time x\n\t\xff two\nabc 3 3\n\t\n",
                 b"abc 1 1\n\tno facts\n"):  # fmt: skip
        answers[repr(told)] = list(rows(told))
    for fields in ([], [b""], [b"R100", b"a", b"b"], [b"R100", b"a"], [b"C100", b"a", b"b"], [b"M", b"a"],
                   [b"\nR090", b"a", b"b", b"M", b"c", b"R100", b"d", b"e", b""],
                   [b"", b"R1", b"a", b"\xff"], [b"A", b"x", b"R", b"y", b"z"]):  # fmt: skip
        answers[repr(fields)] = list(renames(fields))
    assert_recorded(ANSWERS / "git_answers.json", answers)


@_needs_git
def test_git_that_is_slow_says_too_much_or_fails_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = Repo(tmp_path / "r")
    path = repo.write("a.py", "a\n")
    repo.commit("Begin")
    found = find_repository(str(path))
    assert found is not None
    assert (found.annotate("none.py"), found.timed_out) == ([], False)
    assert found.name_of(str(path)) == "a.py"
    (tmp_path / "link").symlink_to(tmp_path / "r")
    assert found.name_of(str(tmp_path / "link" / "a.py")) == "a.py"
    size = len(subprocess.run(
        ["git", "blame", "--porcelain", "HEAD", "--", "a.py"],
        cwd=found.top, capture_output=True, check=True,
    ).stdout)  # fmt: skip
    with monkeypatch.context() as patch:
        patch.setattr(git, "_MAX_OUTPUT", size)
        assert len(found.annotate("a.py")) == 1
        assert not found.timed_out
        patch.setattr(git, "_MAX_OUTPUT", size - 1)
        assert (found.annotate("a.py"), found.timed_out) == ([], True)
        patch.setattr(git, "_TIMEOUT", 0.0)
        other = Repository(str(shutil.which("git")), found.top)
        assert (other.former_names("a.py"), other.work_trees(), other.timed_out) == ([], [], True)
        assert find_repository(str(path)) is None
    assert find_repository(str(tmp_path / "x")) is None
    assert Repository("/no/such/program", found.top).annotate("a.py") == []
    for program in (None, "git"):

        def which(_: str, program: str | None = program) -> str | None:
            return program

        monkeypatch.setattr(shutil, "which", which)
        assert find_repository(str(path)) is None


def test_a_file_looks_as_if_it_lay_in_a_repository(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert not is_in_work_tree(str(tmp_path / "a" / "b" / "x"))
    (tmp_path / "a" / ".git").symlink_to("nowhere")
    assert is_in_work_tree(str(tmp_path / "a" / "b" / "x"))
    assert is_in_work_tree(str(tmp_path / "a" / "x"))
    assert not is_in_work_tree(str(tmp_path / "x"))


# Project folders


def test_files_of_a_project_are_read_up_to_a_size_and_no_link_leads_out(tmp_path: Path) -> None:
    root, most = tmp_path / "p", 256 << 10
    (root / "docs").mkdir(parents=True)
    for name, size in (("a", most - 1), ("b", most), ("c", most + 1)):
        (root / name).write_bytes(b"x" * size)
    (root / "docs" / "d.md").write_bytes(b"\xffwords")
    (root / "in").symlink_to("docs/d.md")
    (root / "out").symlink_to(tmp_path / "secret")
    (tmp_path / "secret").write_text("s")
    os.mkfifo(root / "pipe")
    folder = ProjectFolder(str(root))
    assert folder.exists
    cut = {name: (len(made.text), made.size, made.is_cut) for name in "abc" if (made := folder.text(name))}
    assert cut == {"a": (most - 1, most - 1, False), "b": (most, most, False), "c": (most, most + 1, True)}
    assert folder.text("docs/d.md") == ProjectTextFile("docs/d.md", "\ufffdwords", 6)
    assert folder.read("in") == (b"\xffwords", 6)
    for name in ("none", "docs", "pipe", "a\0b"):
        assert folder.text(name) is None
    assert folder.refused_names == []
    for name in ("out", "../secret", "", "out"):
        assert folder.read(name) is None
    assert folder.refused_names == ["out", "../secret", ""]


def test_names_below_a_folder_are_found_to_a_depth_and_a_number(tmp_path: Path) -> None:
    root = tmp_path / "p"
    for depth in range(6):
        below = root.joinpath("top", *(str(each) for each in range(depth)))
        below.mkdir(parents=True)
        (below / "x.md").write_text("x")
        (below / "y.txt").write_text("y")
    folder = ProjectFolder(str(root))
    assert folder.list_names("top", ".md") == [
        "top/0/1/2/x.md", "top/0/1/x.md", "top/0/x.md", "top/x.md",
    ]  # fmt: skip
    assert folder.list_names("none", ".md") == []
    many = root / "many"
    many.mkdir()
    for number in range(205):
        (many / f"{number:03}.md").write_text("x")
    names = folder.list_names("many", ".md")
    assert (len(names), names[0], names[-1]) == (200, "many/000.md", "many/199.md")
    for path in ("relative", "//remote/x", "\\\\remote\\x", "/", str(tmp_path / "none"), "/a\0b"):
        other = ProjectFolder(path)
        assert (other.exists, other.text("x"), other.list_names("x", ".md")) == (False, None, [])
