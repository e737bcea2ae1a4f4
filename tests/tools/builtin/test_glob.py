"""Glob: files found by their names, the same with ripgrep and without."""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steno.tools import programs
from steno.tools.builtin.glob import Glob, compile_glob
from steno.tools.context import ToolContext
from steno.tools.programs import run_program
from steno.tools.protocol import ToolFailure, ToolResult

Run = Callable[..., ToolResult]


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    work = tmp_path / "work"
    work.mkdir()
    folder = str(work)
    return ToolContext(cwd=folder, project=folder, session_id="s", folder=folder, env={"HOME": folder})


@pytest.fixture(params=["ripgrep", "without"])
def run(request: pytest.FixtureRequest, context: ToolContext) -> Run:
    tool = Glob() if request.param == "ripgrep" else Glob(ripgrep_finder=lambda *_folders: None)

    def go(pattern: str, **more: Any) -> ToolResult:
        return asyncio.run(tool.run({"pattern": pattern, **more}, context, "call"))

    return go


def _make(context: ToolContext, *names: str) -> None:
    """Make files, each newer than the one before."""
    for age, name in enumerate(names):
        path = Path(context.cwd) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
        os.utime(path, (1_000_000 + age, 1_000_000 + age))


def test_the_newest_files_come_first(run: Run, context: ToolContext) -> None:
    _make(context, "b.py", "a.py", "src/c.py", "d.txt")
    outcome = run("**/*.py")
    assert outcome.content == "src/c.py\na.py\nb.py"
    assert outcome.detail.pop("durationMs") >= 0
    assert outcome.detail == {
        "filenames": ["src/c.py", "a.py", "b.py"],
        "numFiles": 3,
        "truncated": False,
        "totalMatches": 3,
        "countIsComplete": True,
    }


def test_nothing_found_is_said(run: Run) -> None:
    outcome = run("*.nope")
    assert outcome.content == "No files found"
    assert outcome.detail["filenames"] == []


def test_no_more_than_a_hundred_are_shown(run: Run, context: ToolContext) -> None:
    _make(context, *(f"f{n}" for n in range(130)))
    outcome = run("f*")
    detail = outcome.detail
    assert (detail["numFiles"], detail["truncated"], detail["totalMatches"]) == (100, True, 130)
    assert detail["filenames"][0] == "f129"
    assert str(outcome.content).endswith("Narrow the path or the pattern.)")


def test_what_git_ignores_is_left_out(run: Run, context: ToolContext) -> None:
    _make(context, "a.js", "b.log", "build/c.js", "src/d.js", "src/keep.log", ".hidden.js")
    _make(context, ".git/config.js", "src/tmp/e.js")
    Path(context.cwd, ".gitignore").write_text("*.log\n/build/\n")
    Path(context.cwd, "src/.gitignore").write_text("!keep.log\ntmp\n")
    assert sorted(run("*.{js,log}").detail["filenames"]) == [".hidden.js", "a.js", "src/d.js", "src/keep.log"]


def test_an_ignored_folder_can_be_asked_for_by_its_name(run: Run, context: ToolContext) -> None:
    _make(context, "node_modules/x/i.js", ".git/HEAD")
    Path(context.cwd, ".gitignore").write_text("node_modules/\n")
    assert run("**/*.js").detail["filenames"] == []
    assert run("*.js", path="node_modules/x").detail["filenames"] == ["node_modules/x/i.js"]


def test_a_rule_file_without_a_repository_does_not_count(run: Run, context: ToolContext) -> None:
    _make(context, "a.log")
    Path(context.cwd, ".gitignore").write_text("*.log\n")
    assert run("*.log").detail["filenames"] == ["a.log"]


def test_files_outside_have_absolute_paths(run: Run, context: ToolContext, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.py").write_text("x")
    _make(context, "b.py")
    absolute = [str(other / "a.py")]
    assert run("*.py", path=str(other)).detail["filenames"] == absolute
    assert run(f"{other}/*.py").detail["filenames"] == absolute
    assert run("../other/*.py").detail["filenames"] == absolute
    assert run(f"{other}/a.py").detail["filenames"] == absolute
    assert run("~/*.py").detail["filenames"] == ["b.py"]


def test_hostile_names_are_told_apart(run: Run, context: ToolContext) -> None:
    _make(context, "a\nb.py", "\x1b[31m.py", "-rf.py")
    strange = os.fsencode(context.cwd) + b"/\xff.py"
    os.close(os.open(strange, os.O_CREAT))
    outcome = run("*.py")
    assert len(str(outcome.content).splitlines()) == 4
    assert "\x1b" not in str(outcome.content)
    assert {"a\nb.py", "\x1b[31m.py", "-rf.py", "\ufffd.py"} == set(outcome.detail["filenames"])


def test_links_are_not_followed(run: Run, context: ToolContext) -> None:
    _make(context, "d/a.py")
    Path(context.cwd, "d/loop").symlink_to(context.cwd)
    assert run("**/*.py").detail["filenames"] == ["d/a.py"]


def test_a_folder_that_is_not_there_is_refused(run: Run, context: ToolContext) -> None:
    _make(context, "file")
    for path in ("nope", "file"):
        with pytest.raises(ToolFailure, match="Directory not found"):
            run("*", path=path)


def test_a_pattern_that_takes_too_long_is_refused(run: Run) -> None:
    with pytest.raises(ToolFailure, match="more than"):
        run("**/a/**/b/**/c/**/d/**/e")
    with pytest.raises(ToolFailure, match="alternatives"):
        run("{a,b}" * 9)
    with pytest.raises(ToolFailure, match="empty"):
        run("")


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("*.py", "a.py", True),
        ("*.py", "d/e/a.py", True),
        ("*.py", "a.pyc", False),
        ("/*.py", "d/a.py", False),
        ("d/*.py", "d/a.py", True),
        ("d/*.py", "d/e/a.py", False),
        ("d/**/*.py", "d/a.py", True),
        ("d/**/*.py", "d/e/f/a.py", True),
        ("d/**", "d/e/a", True),
        ("d/**", "d", False),
        ("**", "a/b", True),
        ("**/d/**", "x/d/y", True),
        ("?.py", "a.py", True),
        ("?.py", "ab.py", False),
        ("[ab].py", "b.py", True),
        ("[!ab].py", "b.py", False),
        ("[^a-c].py", "d.py", True),
        ("[]].py", "].py", True),
        ("[a-", "[a-", True),
        ("x[z-a]", "xb", False),
        ("*.{js,ts{,x}}", "a.tsx", True),
        ("*.{js,ts{,x}}", "a.tx", False),
        ("{a", "{a", True),
        (r"\*.py", "*.py", True),
        (r"\*.py", "a.py", False),
        ("a*b*c", "a--b--b--c", True),
        ("a*b*c", "a--c--b", False),
        ("*", "a\nb", True),
        ("A.py", "a.py", False),
    ],
)
def test_patterns_mean_what_they_say(pattern: str, path: str, *, fits: bool) -> None:
    assert bool(compile_glob(pattern).fullmatch(path)) is fits


def test_no_name_makes_a_pattern_slow() -> None:
    fits = compile_glob("*a" * 40 + "b")
    assert not fits.fullmatch("a" * 255)


@given(st.text(st.sampled_from("ab*?[]!^-{},\\/."), max_size=12), st.text("ab/.", max_size=8))
def test_any_pattern_can_be_asked_about_any_path(pattern: str, path: str) -> None:
    try:
        compile_glob(pattern).fullmatch(path)
    except ToolFailure:
        assert pattern.count("**") > 4 or "{" in pattern


# Programs


def test_a_program_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "print('x', flush=True); import time; time.sleep(60)"]
    ran = asyncio.run(run_program(command, str(tmp_path), env={}, time_limit=1.0))
    assert ran.timed_out
    assert ran.stdout == b"x\n"


def test_a_program_that_says_too_much_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_MAX_STDOUT_SIZE", 1000)
    command = [sys.executable, "-c", "while True: print('x' * 100)"]
    ran = asyncio.run(run_program(command, str(tmp_path), env={}))
    assert (ran.was_truncated, ran.timed_out, len(ran.stdout)) == (True, False, 1000)


def test_a_cancelled_search_ends_its_program(tmp_path: Path) -> None:
    for name in ("pid", "never"):
        os.mkfifo(tmp_path / name)
    script = "import os; open('pid', 'w').write(str(os.getpid())); open('never').read()"

    async def go() -> int:
        command = [sys.executable, "-c", script]
        task = asyncio.create_task(run_program(command, str(tmp_path), env={}))
        pid = await asyncio.to_thread((tmp_path / "pid").read_text)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return int(pid)

    pid = asyncio.run(go())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_listing_that_was_ended_early_is_said_not_to_be_all(
    context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    _make(context, *(f"f{n}" for n in range(50)))
    monkeypatch.setattr(programs, "_MAX_STDOUT_SIZE", 100)
    outcome = asyncio.run(Glob().run({"pattern": "f*"}, context, "call"))
    assert (outcome.detail["countIsComplete"], outcome.detail["truncated"]) == (False, True)
