"""Edit and MultiEdit: exact replacements that change nothing else."""

import asyncio
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from steno.tools.builtin.edit import Edit, MultiEdit
from steno.tools.builtin.read import Read
from steno.tools.context import ToolContext
from steno.tools.protocol import ToolFailure, ToolResult


def _surroundings(folder: str) -> ToolContext:
    return ToolContext(cwd=folder, project=folder, session_id="s", folder=folder, env={})


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return _surroundings(str(tmp_path))


def _edit(context: ToolContext, path: str | Path, old: str, new: str, **more: Any) -> ToolResult:
    asked = {"file_path": str(path), "old_string": old, "new_string": new, **more}
    return asyncio.run(Edit().run(asked, context, "call"))


def _multi(context: ToolContext, path: str | Path, *edits: dict[str, Any]) -> ToolResult:
    asked = {"file_path": str(path), "edits": list(edits)}
    return asyncio.run(MultiEdit().run(asked, context, "call"))


def _file(context: ToolContext, data: bytes, name: str = "a.txt") -> Path:
    """Make a file and read it."""
    path = Path(context.cwd) / name
    path.write_bytes(data)
    asyncio.run(Read().run({"file_path": str(path)}, context, "call"))
    return path


def test_a_piece_is_replaced_and_told(context: ToolContext) -> None:
    path = _file(context, b"alpha\nbeta\n")
    outcome = _edit(context, path, "beta", "gamma")
    assert path.read_bytes() == b"alpha\ngamma\n"
    assert outcome.detail == {
        "filePath": str(path),
        "oldString": "beta",
        "newString": "gamma",
        "originalFile": "alpha\nbeta\n",
        "structuredPatch": [
            {"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 2, "lines": [" alpha", "-beta", "+gamma"]}
        ],
        "userModified": False,
        "replaceAll": False,
    }


def test_a_second_edit_needs_no_second_reading(context: ToolContext) -> None:
    path = _file(context, b"one two")
    _edit(context, path, "one", "1")
    _edit(context, path, "two", "2")
    assert path.read_bytes() == b"1 2"


def test_a_file_must_have_been_read(context: ToolContext, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(ToolFailure, match="Read it first"):
        _edit(context, "a.txt", "x", "y")


def test_a_file_that_changed_since_is_left_alone(context: ToolContext) -> None:
    path = _file(context, b"x")
    path.write_bytes(b"xx theirs")
    with pytest.raises(ToolFailure, match="has changed since"):
        _edit(context, path, "theirs", "mine")
    assert path.read_bytes() == b"xx theirs"


def test_a_piece_that_is_there_several_times_is_said_with_its_lines(context: ToolContext) -> None:
    path = _file(context, b"x\ny\nx\nx\n")
    with pytest.raises(ToolFailure, match=r"occurs 3 times in .*, in lines 1, 3, 4"):
        _edit(context, path, "x", "z")
    assert path.read_bytes() == b"x\ny\nx\nx\n"


def test_pieces_that_overlap_are_not_unique(context: ToolContext) -> None:
    path = _file(context, b"aaa")
    with pytest.raises(ToolFailure, match="occurs 2 times"):
        _edit(context, path, "aa", "b")


def test_all_of_them_are_replaced_when_that_is_asked_for(context: ToolContext) -> None:
    path = _file(context, b"x\nyx\nx\n")
    outcome = _edit(context, path, "x", "zz", replace_all=True)
    assert path.read_bytes() == b"zz\nyzz\nzz\n"
    assert outcome.detail["replaceAll"] is True


@pytest.mark.parametrize(
    ("data", "old"),
    [("say “hi”".encode(), 'say "hi"'), (b"a  \nb\n", "a\nb"), (b"\tx\n", "    x"), (b"Word", "word"), (b"a.b", "a?b")],
)
def test_what_is_nearly_there_is_not_taken_for_it(context: ToolContext, data: bytes, old: str) -> None:
    path = _file(context, data)
    with pytest.raises(ToolFailure, match="was not found in"):
        _edit(context, path, old, "new")
    assert path.read_bytes() == data


def test_where_the_first_words_of_a_missing_piece_are_is_said(context: ToolContext) -> None:
    path = _file(context, b"a\n  def f():\n    pass\n")
    with pytest.raises(ToolFailure, match="in line 2: check"):
        _edit(context, path, "def f():\n  pass", "x")


def test_signs_of_regular_expressions_mean_themselves(context: ToolContext) -> None:
    path = _file(context, b"f(x)+[y]*\\d $1\n")
    _edit(context, path, "(x)+[y]*\\d $1", "\\g<0> \\1")
    assert path.read_bytes() == b"f\\g<0> \\1\n"


def test_a_piece_replaced_by_itself_is_refused(context: ToolContext) -> None:
    path = _file(context, b"x")
    with pytest.raises(ToolFailure, match="are identical"):
        _edit(context, path, "x", "x")


def test_an_empty_piece_makes_a_new_file(context: ToolContext, tmp_path: Path) -> None:
    detail = _edit(context, "new/a.txt", "", "x\n").detail
    assert (tmp_path / "new/a.txt").read_bytes() == b"x\n"
    assert detail["originalFile"] == ""
    assert detail["structuredPatch"][0]["lines"] == ["+x"]


def test_an_empty_piece_fills_an_empty_file_but_no_other(context: ToolContext) -> None:
    empty, full = _file(context, b"", "empty"), _file(context, b"x", "full")
    _edit(context, empty, "", "y")
    assert empty.read_bytes() == b"y"
    with pytest.raises(ToolFailure, match="is not empty"):
        _edit(context, full, "", "y")


def test_a_file_that_is_not_there_cannot_be_edited(context: ToolContext) -> None:
    with pytest.raises(ToolFailure, match="File not found"):
        _edit(context, "nope", "x", "y")


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n", b"x\r\ny\r\nz\r\nc\r\n"),
        (b"a\r\nb\r\n", "a\r\nb", "c", b"c\r\n"),
        (b"a\r\nb\r\n", "a\n", "a; ", b"a; b\r\n"),
        (b"\xef\xbb\xbfa\n", "a", "b", b"\xef\xbb\xbfb\n"),
        (b"\xff\xfea\0\r\0\n\0b\0", "a\nb", "ü\n", b"\xff\xfe\xfc\0\r\0\n\0"),
        (b"caf\xe9 x", "x", "\xfc", b"caf\xe9 \xfc"),
        (b"a\nb\r\nc\nd\n", "c", "x\ny", b"a\nb\r\nx\ny\nd\n"),
        (b"a\r\nb\nc\r\n", "b\nc", "B\nC", b"a\r\nB\nC\r\n"),
        (b"a\rb\r\nc", "b", "x", b"a\rx\r\nc"),
    ],
)
def test_encoding_and_line_ends_are_kept(context: ToolContext, before: bytes, old: str, new: str, after: bytes) -> None:
    path = _file(context, before)
    _edit(context, path, old, new)
    assert path.read_bytes() == after


def test_a_line_end_of_two_characters_is_found_once(context: ToolContext) -> None:
    path = _file(context, b"a\r\nb\r\n")
    with pytest.raises(ToolFailure, match="occurs 2 times"):
        _edit(context, path, "\n", "; ")
    _edit(context, path, "\n", "; ", replace_all=True)
    assert path.read_bytes() == b"a; b; "


def test_a_character_that_the_file_cannot_hold_changes_nothing(context: ToolContext) -> None:
    path = _file(context, b"caf\xe9")
    with pytest.raises(ToolFailure, match="LATIN-1"):
        _edit(context, path, "caf", "€")
    assert path.read_bytes() == b"caf\xe9"


def test_what_is_no_text_cannot_be_edited(context: ToolContext, tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"a\0b")
    status = path.stat()
    context.file_stamps[str(path)] = (status.st_mtime_ns, status.st_size)
    with pytest.raises(ToolFailure, match="is a binary file"):
        _edit(context, path, "a", "b")


def test_folders_pipes_devices_and_giants_cannot_be_edited(context: ToolContext, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    os.mkfifo(tmp_path / "p")
    giant = tmp_path / "giant"
    with giant.open("wb") as file:
        file.truncate(1 << 40)
    for path, words in (
        ("d", "is a directory"),
        ("p", "is a pipe"),
        ("/dev/zero", "is a device"),
        ("giant", "too large"),
    ):
        with pytest.raises(ToolFailure, match=words):
            _edit(context, path, "a", "b")
        given = {"file_path": path, "edits": [{"old_string": "a", "new_string": "b"}]}
        with pytest.raises(ToolFailure, match=words):
            asyncio.run(MultiEdit().run(given, context, "c"))


@pytest.mark.parametrize(("old", "new"), [("\ud83d", "x"), ("x", "\ud83d"), ("\udc80", "\udc81")])
def test_half_a_character_changes_nothing_and_can_be_said(context: ToolContext, old: str, new: str) -> None:
    path = _file(context, "x \U0001f600\n".encode())
    with pytest.raises(ToolFailure) as failure:
        _edit(context, path, old, new)
    str(failure.value).encode()
    assert path.read_bytes() == "x \U0001f600\n".encode()


def test_a_huge_line_is_edited_in_the_middle(context: ToolContext) -> None:
    path = _file(context, b"a" * 2_000_000 + b"NEEDLE" + b"b" * 2_000_000)
    _edit(context, path, "NEEDLE", "-")
    assert path.stat().st_size == 4_000_001


def test_several_edits_see_what_the_ones_before_have_made(context: ToolContext) -> None:
    path = _file(context, b"one\ntwo\n")
    outcome = _multi(
        context,
        path,
        {"old_string": "one", "new_string": "two"},
        {"old_string": "two", "new_string": "three", "replace_all": True},
    )
    assert path.read_bytes() == b"three\nthree\n"
    assert list(outcome.detail) == ["filePath", "edits", "originalFileContents", "structuredPatch", "userModified"]
    assert outcome.detail["edits"][0] == {"old_string": "one", "new_string": "two", "replace_all": False}
    assert outcome.detail["originalFileContents"] == "one\ntwo\n"
    assert str(outcome.content).splitlines()[1:] == ['1. Replaced "one" with "two"', '2. Replaced "two" with "three"']


def test_none_of_several_edits_is_made_when_one_fails(context: ToolContext) -> None:
    path = _file(context, b"one\ntwo\n")
    with pytest.raises(ToolFailure, match="edit 2 of 2"):
        _multi(context, path, {"old_string": "one", "new_string": "1"}, {"old_string": "nope", "new_string": "2"})
    assert path.read_bytes() == b"one\ntwo\n"


def test_several_edits_can_make_a_file(context: ToolContext, tmp_path: Path) -> None:
    _multi(context, "new.txt", {"old_string": "", "new_string": "a b"}, {"old_string": "b", "new_string": "c"})
    assert (tmp_path / "new.txt").read_bytes() == b"a c"


def test_no_edits_at_all_are_refused(context: ToolContext) -> None:
    with pytest.raises(ToolFailure, match="`edits` is empty"):
        _multi(context, _file(context, b"x"))


def test_edits_that_undo_each_other_change_nothing(context: ToolContext) -> None:
    path = _file(context, b"x")
    before = path.stat().st_mtime_ns
    with pytest.raises(ToolFailure, match="Nothing was written"):
        _multi(context, path, {"old_string": "x", "new_string": "y"}, {"old_string": "y", "new_string": "x"})
    assert path.stat().st_mtime_ns == before


_WORDS = st.text(st.sampled_from("ab é\n\t"), min_size=1, max_size=6)


@given(
    st.text(st.sampled_from("cd é\n"), max_size=12),
    _WORDS,
    st.text(st.sampled_from("cd é\n"), max_size=12),
    _WORDS,
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "latin-1"]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_an_edit_and_its_reverse_give_the_same_bytes(
    head: str, old: str, tail: str, new: str, encoding: str, newline: str
) -> None:
    text = head + old + tail
    edited = head + new + tail
    assume(old != new)
    assume(_times(text, old) == 1)
    assume(_times(edited, new) == 1)
    data = text.replace("\n", newline).encode(encoding)
    with tempfile.TemporaryDirectory() as folder:
        context = _surroundings(os.path.realpath(folder))
        path = _file(context, data)
        _edit(context, path, old, new)
        _edit(context, path, new, old)
        assert path.read_bytes() == data


def _times(text: str, piece: str) -> int:
    return sum(text.startswith(piece, at) for at in range(len(text)))
