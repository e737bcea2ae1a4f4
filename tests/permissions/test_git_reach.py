"""Where git runs, and each way in which a repository links outside the working directories."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from steno.permissions import git_repository
from steno.permissions.git_repository import git_reach_outside, git_run_folders
from steno.permissions.shell.command import UNKNOWN_PART, Command, Word
from steno.permissions.shell.command_paths import RunFolders
from steno.permissions.shell.parser import parse_script


def _command(*words: str | Word, inner: tuple[Command, ...] = ()) -> Command:
    given = tuple(word if isinstance(word, Word) else Word(word) for word in words)
    return Command(words=given, inner=inner)


def _git(folder: Path, *words: str) -> None:
    name = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(["git", *name, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A repository whose folder is the only working folder; `outside` is next to it."""
    top = tmp_path.resolve() / "top"
    (top / "src").mkdir(parents=True)
    (top.parent / "outside").mkdir()
    _git(top, "init", "-q")
    return top


def _reached(top: Path, command: str = "git commit -m x", at: str = "", *, lost: bool = False) -> str:
    """Return what is outside for a command in a folder; the folder above is called BASE."""
    (read,) = parse_script(command).commands
    where = RunFolders((str(top / at),), str(top.parent / "home"), lost=lost)
    return git_reach_outside(read, where, (str(top),)).replace(str(top.parent), "BASE")


# Where git runs


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("log",), ["/w"]),
        (("-C", "a", "log"), ["/w", "/w/a"]),
        (("-C", "/b", "log"), ["/w", "/b"]),
        (("-C", "a", "-C", "b", "log"), ["/w", "/w/a", "/w/a/b"]),
        (("--git-dir=g", "log"), ["/w", "/w/g"]),
        (("--git-dir", "g", "--work-tree", "t", "log"), ["/w", "/w/g", "/w/g/t"]),
        (("--work-tree=t=u", "log"), ["/w", "/w/t=u"]),
        (("-P", "-C", "a", "log"), ["/w", "/w/a"]),
        (("--no-pager", "--work-tree=t", "log"), ["/w", "/w/t"]),
        (("-c", "a.b=c", "-C", "a", "log"), ["/w", "/w/a"]),
        (("--namespace", "n", "-C", "a", "log"), ["/w", "/w/a"]),
        (("--namespace=n", "-C", "a", "log"), ["/w", "/w/a"]),
        (("--config-env", "a.b=C", "--attr-source", "HEAD", "-C", "a"), ["/w", "/w/a"]),
        (("--super-prefix", "-C", "-C", "a"), ["/w", "/w/a"]),
        (("-c",), ["/w"]),
        (("log", "-C", "a"), ["/w"]),
        (("-C",), ["/w", "/w/."]),
        ((), ["/w"]),
    ],
)
def test_the_folders_that_options_before_the_verb_name(words: tuple[str, ...], found: list[str]) -> None:
    assert git_run_folders((_command("git", *words),), ("/w",)) == tuple(found)
    assert git_run_folders((_command("/usr/bin/git", *words),), ("/w",)) == tuple(found)
    assert git_run_folders((_command("make", *words),), ("/w",)) == ("/w",)


def test_each_command_starts_in_each_of_the_folders() -> None:
    commands = (_command("make", "-C", "x"), _command("git", "-C", "a"), _command("git", "-C", "b"))
    found = git_run_folders(commands, ("/v", "/w"))
    assert found == ("/v", "/w", "/v/a", "/w/a", "/v/b", "/w/b")
    assert git_run_folders((), ("/w", "/w")) == ("/w",)


@pytest.mark.parametrize(
    "words",
    [
        ("-C", Word(f"a{UNKNOWN_PART}")),
        ("-C", Word("a", splits=True)),
        (Word(f"--git-dir={UNKNOWN_PART}"),),
        (Word("--work-tree=a", splits=True),),
        (Word("-C", splits=True), "a"),
    ],
)
def test_a_folder_that_only_the_shell_knows(words: tuple[str | Word, ...]) -> None:
    assert git_run_folders((_command("git", *words, "log"),), ("/w",)) is None
    assert git_run_folders((_command("git", "log", *words),), ("/w",)) == ("/w",)


def test_a_folder_that_is_not_known_is_outside(top: Path) -> None:
    unknown = "the directory that git runs in depends on a variable"
    assert _reached(top, lost=True) == unknown
    assert _reached(top, 'git -C "$x" log') == unknown
    assert _reached(top, "make all", lost=True) == ""


# Paths in words


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("git add /etc/passwd", "/etc/passwd is outside the working directories"),
        ("git add ../outside", "BASE/outside is outside the working directories"),
        ("git add ~/file", "BASE/home/file is outside the working directories"),
        ("git diff --output=/etc/passwd", "/etc/passwd is outside the working directories"),
        ("git commit -F/etc/passwd", "/etc/passwd is outside the working directories"),
        ("git add ./src /etc/passwd", "/etc/passwd is outside the working directories"),
        ("git add ../missing", ""),
        ("git add ../dangling", "BASE/dangling is outside the working directories"),
        ("git add . ./src .git", ""),
        ("git diff /dev/null src", ""),
        ("git log /dev/zero", "/dev/zero is outside the working directories"),
        ('git add "/etc/$x" src', ""),
        ("git log link", ""),
        ("git log ./link", "BASE/top/link is outside the working directories"),
        ("timeout 5 git add /etc/passwd", "/etc/passwd is outside the working directories"),
        ("timeout 5 make /etc/passwd", ""),
    ],
)
def test_paths_outside_that_exist(top: Path, command: str, said: str) -> None:
    (top.parent / "home").mkdir()
    (top.parent / "home" / "file").touch()
    (top.parent / "dangling").symlink_to("nowhere")
    (top / "link").symlink_to("/etc")
    assert _reached(top, command) == said


def test_paths_of_the_repository_above_are_inside(top: Path) -> None:
    (top / "a").touch()
    (read,) = parse_script("git add ../a ../../outside").commands
    where = RunFolders((str(top / "src"),), "")
    said = git_reach_outside(read, where, (str(top / "src"),))
    assert said == f"{top.parent}/outside is outside the working directories"
    (read,) = parse_script("git add ../a").commands
    assert git_reach_outside(read, where, (str(top / "src"),)) == ""


def test_a_folder_made_to_look_like_a_repository_has_no_inside(tmp_path: Path) -> None:
    """Git takes a folder with these names for a repository, so nothing above it is inside."""
    for name in ("HEAD", "objects", "refs"):
        (tmp_path / "fake" / name).mkdir(parents=True)
    (tmp_path / "fake" / "in").mkdir()
    (read,) = parse_script("git add ../refs").commands
    said = git_reach_outside(read, RunFolders((str(tmp_path / "fake" / "in"),), ""), ("/w",))
    assert said == f"{tmp_path}/fake/refs is outside the working directories"


# What a repository names


def _unchanged(_: Path) -> None:
    """Leave the repository as git makes it."""


def _link(top: Path) -> None:
    (top / ".git").rename(top.parent / "outside" / "moved")
    (top / ".git").symlink_to(top.parent / "outside" / "moved")


def _file(top: Path) -> None:
    (top / ".git").rename(top.parent / "outside" / "moved")
    (top / ".git").write_text("gitdir:  ../outside/moved \n", encoding="utf-8")


def _inner_file(top: Path) -> None:
    (top / ".git").rename(top / "moved")
    (top / ".git").write_text("gitdir: moved\n", encoding="utf-8")


def _common(text: str) -> Callable[[Path], None]:
    def make(top: Path) -> None:
        (top / ".git" / "commondir").write_text(text, encoding="utf-8")

    return make


def _worktree(path: str) -> Callable[[Path], None]:
    return lambda top: _git(top, "config", "core.worktree", str(top / path))


def _todo(text: str, folder: str = "rebase-merge") -> Callable[[Path], None]:
    def make(top: Path) -> None:
        (top / ".git" / folder).mkdir()
        (top / ".git" / folder / "git-rebase-todo").write_text(text, encoding="utf-8")

    return make


def _alternates(text: str, name: str = "alternates") -> Callable[[Path], None]:
    def make(top: Path) -> None:
        (top / ".git" / "objects" / "info" / name).write_text(text, encoding="utf-8")

    return make


def _linked(name: str, target: str) -> Callable[[Path], None]:
    def make(top: Path) -> None:
        path = top / ".git" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target.replace("TOP", str(top)))

    return make


_PROGRAMS = "BASE/top/.git/rebase-merge/git-rebase-todo names programs to run"


def _outside(name: str) -> str:
    return f"BASE/top/.git/{name} links outside the working directories"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_unchanged, ""),
        (_link, "the repository of BASE/top is BASE/outside/moved, outside the working directories"),
        (_file, "the repository of BASE/top is BASE/outside/moved, outside the working directories"),
        (_inner_file, ""),
        (_common("../../outside\n"), "the repository of BASE/top is BASE/outside, outside the working directories"),
        (_common(" ../src \n"), ""),
        (_worktree("../outside"), "the work tree of BASE/top is BASE/outside, outside the working directories"),
        (_worktree("src"), ""),
        (_worktree("."), ""),
        (_todo("pick 1 x\nexec make\n"), _PROGRAMS),
        (_todo("x make\n"), _PROGRAMS),
        (_todo("pick 1 x\n\t exec\tmake\n"), _PROGRAMS),
        (_todo("pick 1 exec make\nexecute x\nxx y\n"), ""),
        (_todo("exec make\n", "rebase-other"), ""),
        (_alternates("/etc\n"), _outside("objects/info/alternates")),
        (_alternates("\n# a\n../../../../outside\n"), _outside("objects/info/alternates")),
        (_alternates("../../src\n#/etc\n\n"), ""),
        (_alternates("/etc\n", "http-alternates"), _outside("objects/info/http-alternates")),
        (_alternates("/etc\n", "other"), ""),
        (_linked("refs/heads/a", "/etc"), _outside("refs/heads/a")),
        (_linked("deep/er/still/a", "/etc"), _outside("deep/er/still/a")),
        (_linked("HEAD2", "../../outside"), _outside("HEAD2")),
        (_linked("HEAD2", "../src"), ""),
        (_linked("HEAD2", "TOP/.git/HEAD"), ""),
        (_linked("objects/ab/c", "/etc"), ""),
        (_linked("objects/abc/d", "/etc"), _outside("objects/abc/d")),
        (_linked("objects/a/d", "/etc"), _outside("objects/a/d")),
        (_linked("refs/ab/c", "/etc"), _outside("refs/ab/c")),
        (_linked("objects/ab", "/etc"), _outside("objects/ab")),
    ],
)
def test_what_a_repository_leads_to(top: Path, make: Callable[[Path], None], said: str) -> None:
    make(top)
    assert _reached(top) == said
    assert _reached(top, at="src") == said
    assert _reached(top, f"git -C {top} log", at="src") == said
    assert _reached(top, "make all") == ""


def test_the_shared_folder_of_a_work_tree_is_looked_at_too(top: Path) -> None:
    _git(top, "commit", "-q", "--allow-empty", "-m", "x")
    _git(top, "worktree", "add", "-q", "../outside/tree")
    tree = top.parent / "outside" / "tree"
    (read,) = parse_script("git log").commands
    where = RunFolders((str(tree),), "")
    assert git_reach_outside(read, where, (str(tree),)) == ""
    (top / ".git" / "refs" / "a").symlink_to("/etc")
    said = git_reach_outside(read, where, (str(tree),))
    assert said == f"{top}/.git/refs/a links outside the working directories"


def test_without_a_repository_nothing_is_reached(tmp_path: Path) -> None:
    assert _reached(tmp_path) == ""
    assert _reached(tmp_path / "missing") == ""


def test_a_folder_that_is_given_is_looked_at_as_well(top: Path) -> None:
    other = top / "src" / "other"
    other.mkdir()
    _git(other, "init", "-q")
    (other / ".git" / "a").symlink_to("/etc")
    assert _reached(top) == ""
    said = "BASE/top/src/other/.git/a links outside the working directories"
    assert _reached(top, "git -C src/other log") == said


def test_a_repository_with_too_many_entries_is_outside(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = sum(len(folders) + len(files) for _, folders, files in os.walk(top / ".git"))
    monkeypatch.setattr(git_repository, "_MAX_ENTRIES", count)
    assert _reached(top) == ""
    monkeypatch.setattr(git_repository, "_MAX_ENTRIES", count - 1)
    assert _reached(top) == "BASE/top/.git links outside the working directories"


def test_files_that_cannot_be_read_name_nothing(top: Path) -> None:
    listed = top / ".git" / "objects" / "info" / "alternates"
    listed.mkdir()
    (top / ".git" / "rebase-merge").mkdir()
    os.mkfifo(top / ".git" / "rebase-merge" / "git-rebase-todo")
    assert _reached(top) == ""
    listed.rmdir()
    listed.write_bytes(b"\xff\n/etc\n")
    assert _reached(top) == _outside("objects/info/alternates")
