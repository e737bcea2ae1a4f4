"""Write: whole files, made or put in the place of ones that were read."""

import asyncio
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steno.tools.builtin.read import Read
from steno.tools.builtin.write import Write
from steno.tools.context import ToolContext
from steno.tools.protocol import ToolFailure, ToolResult


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    folder = str(tmp_path)
    return ToolContext(cwd=folder, project=folder, session_id="s", folder=folder, env={})


def _write(context: ToolContext, path: str | Path, content: str) -> ToolResult:
    return asyncio.run(Write().run({"file_path": str(path), "content": content}, context, "call"))


def _read(context: ToolContext, path: str | Path) -> ToolResult:
    return asyncio.run(Read().run({"file_path": str(path)}, context, "call"))


def test_a_new_file_is_made_with_its_folders(context: ToolContext, tmp_path: Path) -> None:
    outcome = _write(context, "a/b/new.txt", "alpha\nbeta\n")
    path = tmp_path / "a/b/new.txt"
    assert path.read_bytes() == b"alpha\nbeta\n"
    assert str(path) in str(outcome.content)
    assert outcome.detail == {
        "type": "create",
        "filePath": str(path),
        "content": "alpha\nbeta\n",
        "structuredPatch": [],
        "originalFile": None,
        "userModified": False,
    }


def test_a_new_file_gets_the_mode_that_others_get(context: ToolContext, tmp_path: Path) -> None:
    (tmp_path / "like").touch()
    _write(context, "new", "x")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "like").stat().st_mode


def test_a_file_that_was_not_read_is_not_replaced(context: ToolContext, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(ToolFailure, match="Read it first"):
        _write(context, path, "new")
    assert path.read_text() == "old"


def test_a_file_that_was_read_is_replaced(context: ToolContext, tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("x = 2\nprint(x)\n")
    _read(context, path)
    detail = _write(context, path, "x = 3\nprint(x)\n").detail
    assert path.read_text() == "x = 3\nprint(x)\n"
    assert detail["type"] == "update"
    assert detail["originalFile"] == "x = 2\nprint(x)\n"
    assert detail["structuredPatch"] == [
        {"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 2, "lines": ["-x = 2", "+x = 3", " print(x)"]}
    ]


def test_a_file_that_changed_since_is_not_replaced(context: ToolContext, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    _read(context, path)
    before = path.stat()
    path.write_text("theirs")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(ToolFailure, match="has changed since"):
        _write(context, path, "new")
    path.write_text("OLD")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    with pytest.raises(ToolFailure, match="has changed since"):
        _write(context, path, "new")
    assert path.read_text() == "OLD"


def test_what_was_written_can_be_written_again(context: ToolContext, tmp_path: Path) -> None:
    _write(context, "a.txt", "1")
    _write(context, "a.txt", "2")
    assert (tmp_path / "a.txt").read_text() == "2"


def test_the_mode_of_a_file_is_kept(context: ToolContext, tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_text("old")
    path.chmod(0o751)
    _read(context, path)
    _write(context, path, "new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o751


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (b"a\r\nb\r\n", "c\nd\n", b"c\r\nd\r\n"),
        (b"a\r\nb\r\n", "c\r\nd\r\n", b"c\r\nd\r\n"),
        (b"\xef\xbb\xbfa\n", "b\n", b"\xef\xbb\xbfb\n"),
        (b"\xef\xbb\xbfa\n", "\ufeffb\n", b"\xef\xbb\xbfb\n"),
        (b"\xff\xfea\0", "ü", b"\xff\xfe\xfc\0"),
        (b"caf\xe9", "thé", b"th\xe9"),
        (b"caf\xe9", "5 €", "5 €".encode()),
        (b"a\n", "b\r\n", b"b\r\n"),
    ],
)
def test_encoding_and_line_ends_are_kept(
    context: ToolContext, tmp_path: Path, before: bytes, content: str, after: bytes
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(before)
    _read(context, path)
    _write(context, path, content)
    assert path.read_bytes() == after


def test_a_link_stays_a_link_and_its_target_is_written(context: ToolContext, tmp_path: Path) -> None:
    real, link = tmp_path / "real/a.txt", tmp_path / "link.txt"
    real.parent.mkdir()
    real.write_text("old")
    link.symlink_to(real)
    _read(context, link)
    _write(context, link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert list(real.parent.iterdir()) == [real]


def test_a_file_that_was_read_through_a_link_counts_as_read(context: ToolContext, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")
    (tmp_path / "link").symlink_to("a.txt")
    _read(context, "link")
    _write(context, "a.txt", "new")
    assert (tmp_path / "a.txt").read_text() == "new"


def test_links_in_a_circle_are_not_written_to(context: ToolContext, tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(ToolFailure):
        _write(context, "a", "x")
    assert (tmp_path / "a").is_symlink()


def test_the_change_is_announced_before_it_is_made(context: ToolContext, tmp_path: Path) -> None:
    told: list[tuple[str, bytes | None]] = []

    def before_change(path: str) -> None:
        there = Path(path)
        told.append((path, there.read_bytes() if there.exists() else None))

    context.before_change = before_change
    _write(context, "a.txt", "1")
    _write(context, "a.txt", "2")
    path = str(tmp_path / "a.txt")
    assert told == [(path, None), (path, b"1")]


def test_nothing_is_changed_when_the_announcement_fails(context: ToolContext, tmp_path: Path) -> None:
    def before_change(_path: str) -> None:
        raise ToolFailure("no room for a copy")

    _write(context, "a.txt", "1")
    context.before_change = before_change
    with pytest.raises(ToolFailure, match="no room"):
        _write(context, "a.txt", "2")
    assert (tmp_path / "a.txt").read_text() == "1"


def _meddler(path: Path) -> Callable[[str], None]:
    """Return somebody who writes to a file right before we do."""

    def meddle(_path: str) -> None:
        path.write_text("theirs")

    return meddle


def test_a_change_at_the_last_moment_is_noticed(context: ToolContext, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    _write(context, path, "1")
    context.before_change = _meddler(path)
    with pytest.raises(ToolFailure, match="changed during the call"):
        _write(context, path, "2")
    assert path.read_text() == "theirs"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_appears_at_the_last_moment_is_not_overwritten(context: ToolContext, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    context.before_change = _meddler(path)
    with pytest.raises(ToolFailure, match="changed during the call"):
        _write(context, path, "mine")
    assert path.read_text() == "theirs"


def test_folders_and_pipes_are_refused(context: ToolContext, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    os.mkfifo(tmp_path / "p")
    with pytest.raises(ToolFailure, match="is a directory"):
        _write(context, "d", "x")
    with pytest.raises(ToolFailure, match="is a pipe"):
        _write(context, "p", "x")


def test_a_file_is_no_folder_to_write_in(context: ToolContext, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ToolFailure, match="Cannot write"):
        _write(context, "file/a.txt", "x")


def test_half_a_character_leaves_the_file_as_it_was(context: ToolContext, tmp_path: Path) -> None:
    _write(context, "a.txt", "1")
    with pytest.raises(ToolFailure, match=r"U\+D800"):
        _write(context, "a.txt", "\ud800")
    assert (tmp_path / "a.txt").read_text() == "1"


def test_names_of_hostile_files_do_not_reach_the_words(context: ToolContext, tmp_path: Path) -> None:
    name = "a\n\x1b[31mred.txt"
    outcome = _write(context, name, "x")
    assert (tmp_path / name).read_text() == "x"
    assert outcome.detail["filePath"] == str(tmp_path / name)
    assert "\x1b" not in str(outcome.content)
    assert "\n" not in str(outcome.content)


@pytest.mark.parametrize("given", [{}, {"file_path": "a"}, {"file_path": 1, "content": ""}])
def test_an_input_that_does_not_fit_is_refused(given: dict[str, Any], context: ToolContext) -> None:
    with pytest.raises(ToolFailure, match="Invalid tool input"):
        asyncio.run(Write().run(given, context, "call"))
