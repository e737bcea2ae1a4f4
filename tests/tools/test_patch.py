"""Patches: what an edit changed, as the client records it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steno.format.line_diff import recorded_diff
from steno.tools.patch import structured_patch

_TEXTS = st.lists(st.sampled_from(["a", "b", "c", "", "  d"]), max_size=14).map("\n".join)


def _applied(old: str, patch: list[dict[str, Any]]) -> str:
    """Apply a patch, and check that what it says of the old text is true."""
    before = old.splitlines(keepends=True)
    after: list[str] = []
    at = 0
    for hunk in patch:
        start = hunk["oldStart"] - 1
        after += before[at:start]
        at = start
        assert hunk["newStart"] == len(after) + 1
        old_lines = new_lines = 0
        lines = hunk["lines"]
        for number, line in enumerate(lines):
            if line.startswith("\\"):
                continue
            is_open = lines[number + 1 : number + 2] == ["\\ No newline at end of file"]
            text = line[1:] + ("" if is_open else "\n")
            if line[0] in " -":
                assert before[at] == text
                at += 1
                old_lines += 1
            if line[0] in " +":
                after.append(text)
                new_lines += 1
        assert (old_lines, new_lines) == (hunk["oldLines"], hunk["newLines"])
    return "".join(after + before[at:])


@given(_TEXTS, _TEXTS)
def test_a_patch_applied_to_the_old_text_gives_the_new_one(old: str, new: str) -> None:
    assert _applied(old, structured_patch(old, new)) == new


@given(_TEXTS)
def test_equal_texts_have_no_patch(text: str) -> None:
    assert structured_patch(text, text) == []


@given(_TEXTS, _TEXTS)
def test_a_patch_is_no_longer_than_it_must_be(old: str, new: str) -> None:
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    # The longest common run of lines in order, by the book.
    table = [[0] * (len(after) + 1) for _ in range(len(before) + 1)]
    for i, one in enumerate(before):
        for j, other in enumerate(after):
            same = table[i][j] + 1
            table[i + 1][j + 1] = same if one == other else max(table[i][j + 1], table[i + 1][j])
    said = sum(len(part.a) + len(part.b) for part in recorded_diff(before, after) if not part.common)
    assert said == len(before) + len(after) - 2 * table[-1][-1]


def test_changes_far_apart_are_hunks_of_their_own() -> None:
    old = "".join(f"{n}\n" for n in range(30))
    new = old.replace("\n3\n", "\nthree\n").replace("\n25\n", "\ntwenty-five\n")
    first, second = structured_patch(old, new)
    assert (first["oldStart"], first["oldLines"]) == (1, 7)
    assert (second["oldStart"], second["newStart"]) == (23, 23)
    assert second["lines"] == [" 22", " 23", " 24", "-25", "+twenty-five", " 26", " 27", " 28"]


def test_changes_six_lines_apart_share_a_hunk_and_seven_do_not() -> None:
    old = "".join(f"{n}\n" for n in range(30))
    near = old.replace("\n3\n", "\nx\n").replace("\n10\n", "\ny\n")
    far = old.replace("\n3\n", "\nx\n").replace("\n11\n", "\ny\n")
    assert [len(structured_patch(old, new)) for new in (near, far)] == [1, 2]


def test_a_missing_newline_at_the_end_is_said() -> None:
    (hunk,) = structured_patch("a\nb", "a\nc\n")
    assert hunk["lines"] == [" a", "-b", "\\ No newline at end of file", "+c"]


def test_tabs_at_the_beginning_of_a_line_are_two_spaces_each() -> None:
    (hunk,) = structured_patch("\t\tx\ty\n", "\tx\ty\n")
    assert hunk["lines"] == ["-    x\ty", "+  x\ty"]


def test_only_the_white_space_of_a_line_changed_and_it_is_still_told() -> None:
    (hunk,) = structured_patch("\tx\n", "  x\n")
    assert hunk["lines"] == ["-  x", "+  x"]


def test_a_file_rewritten_beyond_recognition_is_one_change() -> None:
    old = "same\n" + "".join(f"old {n}\n" for n in range(3000)) + "end\n"
    new = "same\n" + "".join(f"new {n}\n" for n in range(3000)) + "end\n"
    (hunk,) = structured_patch(old, new)
    assert (hunk["oldLines"], hunk["newLines"]) == (3002, 3002)
    assert hunk["lines"][0] == " same"
    assert hunk["lines"][-1] == " end"


@pytest.mark.corpus
def test_recorded_edits_give_the_patches_that_were_recorded(shared: Path) -> None:
    compared = 0
    for result in _recorded(shared / "corpus"):
        old, new = result["old"], result["new"]
        assert structured_patch(old, new) == result["patch"], (old[:200], new[:200])
        compared += 1
    assert compared > 200


def _recorded(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.rglob("*.jsonl")):
        for line in path.read_bytes().split(b"\n"):
            if b'"structuredPatch"' not in line:
                continue
            try:
                record = json.loads(line)
            except ValueError:
                continue
            result = record.get("toolUseResult") if isinstance(record, dict) else None
            if isinstance(result, dict):
                yield from _of_result(result)


def _of_result(result: dict[str, Any]) -> Iterator[dict[str, Any]]:
    old = result.get("originalFile", result.get("originalFileContents"))
    if not isinstance(old, str) or not old:
        return
    new = old
    if "oldString" in result:
        new = _edited(new, result["oldString"], result["newString"], every=result["replaceAll"])
    elif "edits" in result:
        for edit in result["edits"]:
            every = edit.get("replace_all", False)
            new = _edited(new, edit["old_string"], edit["new_string"], every=every)
    else:
        new = result["content"]
    yield {"old": old, "new": new, "patch": result["structuredPatch"]}


def _edited(text: str, old: str, new: str, *, every: bool) -> str:
    # The client takes the line end along when nothing is put in the place of a whole line.
    if not new and not old.endswith("\n") and f"{old}\n" in text:
        old += "\n"
    return text.replace(old, new) if every else text.replace(old, new, 1)
