"""Lines that come and go: as the client kept them with the result, not as the call asked for them."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.builders import session, tool
from tests.corpus import transcripts

from steno.index.database import IndexLocation, open_for_reading
from steno.index.session_stats import FILE_ID_SHIFT
from steno.index.sync.updater import sync

MakeIndex = Callable[..., IndexLocation]
PATH = "/home/ada/tide/chart.py"


def counted(home: IndexLocation) -> list[tuple[int, int]]:
    connection = open_for_reading(home.folder)
    assert connection is not None
    try:
        return connection.execute("SELECT added, removed FROM file_edits ORDER BY 1").fetchall()
    finally:
        connection.close()


def kept(*signs: str, kind: str | None = None) -> dict[str, Any]:
    patch = [{"oldStart": 1, "newStart": 1, "lines": [f"{sign}x" for sign in signs]}]
    return {"type": kind, "filePath": PATH, "structuredPatch": patch if signs else []}


def edit(old: str, new: str, *, everywhere: bool = False) -> Any:
    return tool("Edit", file_path=PATH, old_string=old, new_string=new, replace_all=everywhere)


def test_the_patch_that_was_kept_says_how_many_lines_changed(make_index: MakeIndex, tmp_path: Path) -> None:
    made = session(seed="kept").user("Go.")
    made.assistant(edit("a\nb\nc", "x\nb\ny")).result("ok", detail=kept("-", "+", " ", "-", "+"))
    made.assistant(edit("a", "b", everywhere=True)).result("ok", detail=kept(*"-+-+-+"))
    made.assistant(tool("Write", file_path=PATH, content="a\nb\nc\nd\n"))
    made.result("ok", detail=kept(kind="update"))
    made.assistant(tool("Write", file_path=PATH, content="a\n" * 9))
    made.result("ok", detail=kept(kind="create")).assistant("Done.").done()
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / f"{made.session_id}.jsonl").write_bytes(made.bytes())
    assert counted(make_index(folder)) == [(0, 0), (2, 2), (3, 3), (9, 0)]


def test_a_result_that_comes_later_counts_too(make_index: MakeIndex, tmp_path: Path) -> None:
    made = session(seed="later").user("Go.").assistant(edit("a\nb\nc", "x\nb\ny"))
    before = made.bytes()
    made.result("ok", detail=kept("-", "+", " ", "-", "+")).assistant("Done.").done()
    folder = tmp_path / "root"
    folder.mkdir()
    path = folder / f"{made.session_id}.jsonl"
    path.write_bytes(before)
    home = make_index(folder)
    assert counted(home) == [(3, 3)]
    with path.open("ab") as file:
        file.write(made.bytes()[len(before) :])
    os.utime(path, (2_000_000_000, 2_000_000_000))
    sync(home)
    assert counted(home) == [(2, 2)]


@pytest.mark.corpus
def test_lines_of_the_corpus_are_those_of_the_recorded_patches(shared: Path, make_index: MakeIndex) -> None:
    public = shared / "corpus" / "public"
    home = make_index(public)
    connection = open_for_reading(home.folder)
    assert connection is not None
    rows = connection.execute(
        "SELECT f.path, t.call, e.added, e.removed FROM file_edits e JOIN tool_calls t "
        f"ON t.message = e.message AND t.place = e.place JOIN files f ON f.id = e.message >> {FILE_ID_SHIFT} "
        "WHERE t.failed = 0"
    ).fetchall()
    connection.close()
    found = {(os.fsdecode(path), call): (added, removed) for path, call, added, removed in rows}
    looked = 0
    for path in transcripts(shared):
        for line in path.read_bytes().split(b"\n") if "public" in path.parts else ():
            for call, sizes in _patches(line):
                assert found[str(path), call] == sizes, (path, call)
                looked += 1
    assert looked > 200


def _patches(line: bytes) -> list[tuple[str, tuple[int, int]]]:
    """Return the calls whose patch a line keeps, and its lines; read by nothing of ours."""
    if b'"structuredPatch"' not in line:
        return []
    record = json.loads(line)
    result = record["toolUseResult"]
    content = record["message"]["content"]
    if len(content) != 1 or not result.get("structuredPatch"):
        return []
    signs = [each[:1] for hunk in result["structuredPatch"] for each in hunk["lines"]]
    return [(content[0]["tool_use_id"], (signs.count("+"), signs.count("-")))]
