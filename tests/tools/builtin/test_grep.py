"""Grep: contents of files, searched the same with ripgrep and without."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steno.tools import programs
from steno.tools.builtin import grep
from steno.tools.builtin.grep import Grep
from steno.tools.context import ToolContext
from steno.tools.protocol import ToolFailure, ToolResult

Run = Callable[..., ToolResult]


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    work = tmp_path / "work"
    work.mkdir()
    folder = str(work)
    return ToolContext(cwd=folder, project=folder, session_id="s", folder=folder, env={})


@pytest.fixture(params=["ripgrep", "without"])
def run(request: pytest.FixtureRequest, context: ToolContext) -> Run:
    tool = Grep() if request.param == "ripgrep" else Grep(ripgrep_finder=lambda *_folders: None)

    def go(pattern: str, **more: Any) -> ToolResult:
        asked = {name.replace("_", "-", 1) if len(name) == 2 else name: v for name, v in more.items()}
        return asyncio.run(tool.run({"pattern": pattern, **asked}, context, "call"))

    return go


def _make(context: ToolContext, **files: str | bytes) -> None:
    """Make files, each newer than the one before; two underscores are a dot."""
    for age, (name, text) in enumerate(files.items()):
        path = Path(context.cwd) / name.replace("__", ".")
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        os.utime(path, (1_000_000 + age, 1_000_000 + age))


def test_files_are_named_the_newest_first(run: Run, context: ToolContext) -> None:
    _make(context, a__py="x = 1\n", b__txt="x\n", c__txt="y\n")
    outcome = run("x")
    assert outcome.content == "Found 2 files\nb.txt\na.py"
    assert outcome.detail == {"mode": "files_with_matches", "filenames": ["b.txt", "a.py"], "numFiles": 2}


def test_lines_are_shown_with_names_and_numbers(run: Run, context: ToolContext) -> None:
    _make(context, b__txt="no\nan x\n", a__py="x = 1\nprint(x)\n")
    outcome = run("x", output_mode="content")
    assert outcome.content == "a.py:1:x = 1\na.py:2:print(x)\nb.txt:2:an x"
    assert outcome.detail == {
        "mode": "content",
        "numFiles": 0,
        "filenames": [],
        "content": "a.py:1:x = 1\na.py:2:print(x)\nb.txt:2:an x",
        "numLines": 3,
        "totalLines": 3,
    }


def test_a_single_file_needs_no_name(run: Run, context: ToolContext) -> None:
    _make(context, a__py="x = 1\nprint(x)\n")
    assert run("x", output_mode="content", path="a.py").content == "1:x = 1\n2:print(x)"
    assert run("x", output_mode="content", path="a.py", _n=False).content == "x = 1\nprint(x)"


def test_lines_around_are_shown_with_dashes(run: Run, context: ToolContext) -> None:
    _make(context, a="1\nx\n3\n4\n5\nx\n7\n", b="x\n")
    expected = "a-1-1\na:2:x\na-3-3\n--\na-5-5\na:6:x\na-7-7\n--\nb:1:x"
    assert run("x", output_mode="content", _C=1).content == expected
    assert run("x", output_mode="content", context=1).content == expected
    before = run("x", output_mode="content", _B=1).content
    assert before == "a-1-1\na:2:x\n--\na-5-5\na:6:x\n--\nb:1:x"
    after = run("x", output_mode="content", _A=1, path="a").content
    assert after == "2:x\n3-3\n--\n6:x\n7-7"


def test_matches_are_counted(run: Run, context: ToolContext) -> None:
    _make(context, a="x\nx x\n", b="x\n", c="y\n")
    outcome = run("x", output_mode="count")
    assert outcome.content == "a:2\nb:1\n\nFound 3 matches in 2 files"
    assert outcome.detail == {"mode": "count", "numFiles": 2, "filenames": [], "content": "a:2\nb:1", "numMatches": 3}


@pytest.mark.parametrize(
    ("mode", "words"),
    [("content", "No matches found"), ("count", "No matches found"), ("files_with_matches", "No files found")],
)
def test_nothing_found_is_said(run: Run, context: ToolContext, mode: str, words: str) -> None:
    _make(context, a="x\n")
    assert run("nope", output_mode=mode).content == words


def test_capital_letters_count_unless_said_otherwise(run: Run, context: ToolContext) -> None:
    _make(context, a="Word\n")
    assert run("word").detail["numFiles"] == 0
    assert run("word", _i=True).detail["numFiles"] == 1


def test_only_what_matched_is_shown(run: Run, context: ToolContext) -> None:
    _make(context, a="one 12 two 345\n")
    assert run(r"\d+", output_mode="content", _o=True).content == "a:1:12\na:1:345"


def test_an_expression_over_lines_needs_the_switch(run: Run, context: ToolContext) -> None:
    _make(context, a="begin\nmiddle\nend\nbegin\n")
    with pytest.raises(ToolFailure, match="multiline"):
        run(r"begin\nmiddle", output_mode="content")
    found = run(r"begin.*end", output_mode="content", multiline=True)
    assert found.content == "a:1:begin\na:2:middle\na:3:end"


def test_files_are_chosen_by_pattern_and_type(run: Run, context: ToolContext) -> None:
    _make(context, a__py="x", b__js="x", c__ts="x", d__md="x")
    assert run("x", glob="*.py").detail["filenames"] == ["a.py"]
    assert run("x", glob="*.{js,ts}").detail["filenames"] == ["c.ts", "b.js"]
    assert run("x", glob="*.py *.md").detail["filenames"] == ["d.md", "a.py"]
    assert run("x", glob="*.py,*.md").detail["filenames"] == ["d.md", "a.py"]
    assert run("x", glob="!*.{py,js}").detail["filenames"] == ["d.md", "c.ts"]
    assert run("x", type="py").detail["filenames"] == ["a.py"]
    with pytest.raises(ToolFailure, match="unrecognized file type: nope"):
        run("x", type="nope")


def test_what_is_shown_can_be_limited_and_gone_on_with(run: Run, context: ToolContext) -> None:
    _make(context, a="".join(f"x{n}\n" for n in range(10)))
    first = run("x", output_mode="content", path="a", head_limit=3)
    assert first.detail["content"] == "1:x0\n2:x1\n3:x2"
    assert (first.detail["numLines"], first.detail["totalLines"]) == (3, 10)
    assert first.detail["appliedLimit"] == 3
    assert str(first.content).endswith("[Showing 1 to 3 of 10 results; use offset: 3 for more]")
    last = run("x", output_mode="content", path="a", head_limit=3, offset=9)
    assert last.detail["content"] == "10:x9"
    assert "appliedLimit" not in last.detail
    assert last.detail["appliedOffset"] == 9
    behind = run("x", output_mode="content", path="a", offset=50)
    assert behind.content == "No matches found\n\n[The offset is past the last of 10 results]"


def test_two_hundred_and_fifty_are_shown_unless_all_are_asked_for(run: Run, context: ToolContext) -> None:
    _make(context, a="x\n" * 400)
    assert run("x", output_mode="content").detail["numLines"] == 250
    assert run("x", output_mode="content", head_limit=0).detail["numLines"] == 400


def test_files_are_limited_too(run: Run, context: ToolContext) -> None:
    _make(context, a="x", b="x", c="x")
    outcome = run("x", head_limit=1, offset=1)
    assert outcome.detail == {
        "mode": "files_with_matches",
        "filenames": ["b"],
        "numFiles": 1,
        "appliedLimit": 1,
        "appliedOffset": 1,
    }


@pytest.mark.parametrize("pattern", ["(", "[a", "*", "a{2,1}"])
def test_what_is_no_expression_is_refused(run: Run, context: ToolContext, pattern: str) -> None:
    _make(context, a="x")
    with pytest.raises(ToolFailure, match="Invalid search"):
        run(pattern)


@pytest.mark.parametrize("pattern", ["a\0b", "\ud800"])
def test_what_no_program_can_be_given_is_refused(run: Run, pattern: str) -> None:
    with pytest.raises(ToolFailure, match="Cannot search for"):
        run(pattern)


def test_an_expression_that_looks_like_an_option_is_none(run: Run, context: ToolContext) -> None:
    _make(context, a="--files\n-e x\n")
    assert run("--files", output_mode="content").content == "a:1:--files"
    assert run("-e", output_mode="content").content == "a:2:-e x"


def test_a_path_that_is_not_there_is_refused(run: Run, context: ToolContext) -> None:
    with pytest.raises(ToolFailure, match="Path not found"):
        run("x", path="nope")
    os.mkfifo(Path(context.cwd, "pipe"))
    with pytest.raises(ToolFailure, match="neither a file nor a directory"):
        run("x", path="pipe")
    assert run("x").detail["numFiles"] == 0


def test_files_outside_have_absolute_paths(run: Run, tmp_path: Path) -> None:
    (tmp_path / "o").mkdir()
    (tmp_path / "o/a").write_text("x\n")
    found = run("x", path="../o", output_mode="content")
    assert found.content == f"{tmp_path}/o/a:1:x"


def test_what_git_ignores_is_left_out(run: Run, context: ToolContext) -> None:
    _make(context, a__log="x", b__txt="x", __gitignore="*.log\n")
    Path(context.cwd, ".git").mkdir()
    Path(context.cwd, ".git/x").write_text("x")
    assert run("x").detail["filenames"] == ["b.txt"]
    assert run("x", glob="**").detail["filenames"][0] == "b.txt"
    assert not any(".git/" in name for name in run("x", glob="**").detail["filenames"])


def test_hostile_names_and_lines_stay_on_their_lines(run: Run, context: ToolContext) -> None:
    names = ["a\nb:1:x", "--", "\x1b[2J"]
    for name in names:
        Path(context.cwd, name).write_text("x\r\n")
    outcome = run("x", output_mode="content")
    lines = str(outcome.content).split("\n")
    assert sorted(lines) == sorted(['"a\\nb:1:x":1:x', "--:1:x", '"\\x1b[2J":1:x'])
    assert set(run("x").detail["filenames"]) == set(names)
    with_context = str(run("x", output_mode="content", _C=1).content).split("\n")
    assert sorted(with_context) == sorted([*lines, "--", "--"])


def test_binary_files_do_not_spoil_the_rest(run: Run, context: ToolContext) -> None:
    _make(context, a__bin=b"x\n\0\0x\n", b__txt="x\n", c__txt=b"x \xff\n")
    lines = str(run("x", output_mode="content").content).split("\n")
    assert lines[-2:] in (["b.txt:1:x", "c.txt:1:x \ufffd"], ["b.txt:1:x", "c.txt:1:x ÿ"])
    assert all("binary" not in line for line in lines)


def test_huge_lines_are_cut(run: Run, context: ToolContext) -> None:
    _make(context, a="x" * 1_000_000 + "\n")
    assert len(run("x+", output_mode="content").content) < 1_200


def test_a_line_ends_before_its_carriage_return(run: Run, context: ToolContext) -> None:
    _make(context, a="one\r\ntwo\r\n")
    assert run("one$", output_mode="content").detail["content"] == "a:1:one"


def test_a_search_that_takes_too_long_is_ended(context: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    _make(context, a="a" * 40 + "\n")
    real = programs.run_program

    async def hurried(*arguments: Any, **more: Any) -> Any:
        return await real(*arguments, **{**more, "time_limit": 1.0})

    monkeypatch.setattr(programs, "run_program", hurried)
    with pytest.raises(ToolFailure, match="timed out"):
        asyncio.run(Grep(ripgrep_finder=lambda *_folders: None).run({"pattern": "(a+)+b"}, context, "call"))


def test_a_search_that_finds_too_much_says_so(run: Run, context: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    _make(context, a="x\n" * 1000)
    monkeypatch.setattr(programs, "_MAX_STDOUT_SIZE", 500)
    outcome = run("x", output_mode="content")
    assert "was stopped" in str(outcome.content)


def test_what_is_shown_has_an_end_even_when_all_is_asked_for(
    run: Run, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    _make(context, a="x\n" * 1000)
    monkeypatch.setattr(grep, "_MAX_RESULT_SIZE", 500)
    outcome = run("x", output_mode="content", head_limit=0)
    assert len(outcome.detail["content"]) <= 500
    assert "use offset" in str(outcome.content)


def test_nobodys_settings_change_a_search(run: Run, context: ToolContext, tmp_path: Path) -> None:
    _make(context, a="x\n")
    (tmp_path / "rc").write_text("--invert-match\n")
    context.env["RIPGREP_CONFIG_PATH"] = str(tmp_path / "rc")
    assert run("x").detail["filenames"] == ["a"]
