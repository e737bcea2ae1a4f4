"""Each move, and its undoing, changes exactly the recorded files."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from tests.index.transcripts import Script
from tests.recorded_answers import assert_recorded, plain
from tests.store.relocate.moving import unflushed

from steno.errors import BadRequest, StenoError
from steno.format.path_rewriter import PathRewriter
from steno.format.paths import slug_for_path
from steno.store.archive.catalogue import read_moves
from steno.store.environment import now, steno_home
from steno.store.relocate.execution import (
    apply_plan,
    find_interrupted,
    find_receipt,
    new_receipt_folder,
    resume,
    undo_relocation,
)
from steno.store.relocate.plan import (
    FileSum,
    RelocationPlan,
    compute_sum,
    find_project_files,
    is_inside_path,
    line_mark,
    measure_rewrite,
    path_pairs,
    plan_move,
    refuse_root,
    rewrite_mode,
    rewrite_paths,
    rewrite_units,
    shared_files,
)
from steno.store.relocate.transfer import (
    Manifest,
    PackedFile,
    is_transferable,
    member_name,
    pack_project,
    parse_manifest,
    plan_unpack,
)

ANSWERS: Final = Path(__file__).with_name("answers")
OLD: Final = "/home/ada/work"
NEW: Final = "/srv/app"
ONE: Final = "11111111-0000-4000-8000-000000000001"
TWO: Final = "22222222-0000-4000-8000-000000000002"
SUB: Final = "33333333-0000-4000-8000-000000000003"


def _talk(name: str, cwd: str, words: str = "Go") -> bytes:
    return Script().user(f"{words} in {cwd}/a.py", cwd=cwd, sessionId=name).bot("x", cwd=cwd).bytes()


def _agent(name: str, session: str, cwd: str) -> bytes:
    return Script().user("Look", cwd=cwd, sessionId=session, isSidechain=True, agentId=name).bytes()


def _files() -> dict[str, bytes]:
    old, other, below = (slug_for_path(OLD), slug_for_path("/home/ada/play"), slug_for_path(f"{OLD}/sub"))
    return {
        f"projects/{old}/{ONE}.jsonl": _talk(ONE, OLD),
        f"projects/{old}/{ONE}/subagents/agent-aaaa1111.jsonl": _agent("aaaa1111", ONE, OLD),
        f"projects/{old}/{ONE}/subagents/agent-aaaa1111.meta.json": b'{"agentType":"Explore"}',
        f"projects/{old}/{ONE}/tool-results/r.txt": f"see {OLD}/big".encode(),
        f"projects/{old}/{ONE}/tool-results/r.json": json.dumps({"p": f"{OLD}/x"}).encode(),
        f"projects/{old}/{ONE}.jsonl.before-repair": b"backup",
        f"projects/{old}/agent-bbbb2222.jsonl": _agent("bbbb2222", ONE, OLD),
        f"projects/{old}/agent-bbbb2222.meta.json": b"{}",
        f"projects/{old}/sessions-index.json": json.dumps({"entries": [{"p": OLD}]}).encode(),
        f"projects/{old}/memory/MEMORY.md": f"In {OLD}".encode(),
        f"projects/{old}/.left.steno-tmp": b"x",
        f"projects/{below}/{SUB}.jsonl": _talk(SUB, f"{OLD}/sub", f"named {NEW}/y"),
        f"projects/{other}/{TWO}.jsonl": _talk(TWO, "/home/ada/play"),
        "history.jsonl": b"".join(
            json.dumps({"display": d, "project": p}).encode() + b"\n"
            for d, p in (("a", OLD), ("b", "/home/ada/play"), ("c", f"{OLD}/sub"), ("d", f"{OLD}x"))
        ),
        ".claude.json": json.dumps({"projects": {OLD: {"n": 1}, "/home/ada/play": {}}}).encode(),
        f"todos/{ONE}-agent-{ONE}.json": b"[]",
        f"file-history/{ONE}/0123456789abcdef@v1": b"old",
        f"tasks/{ONE}/1.json": b"{}",
        "settings.json": b"{}",
    }


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(os, "fsync", unflushed)
    root = tmp_path / "config"
    for number, (name, data) in enumerate(_files().items()):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o600)
        os.utime(path, (1_790_000_000 + number, 1_790_000_000 + number))
    (root / "projects" / slug_for_path(OLD) / "link").symlink_to(root)
    (root / "projects" / slug_for_path(OLD) / "empty").mkdir()
    return root


def _state(root: Path) -> dict[str, Any]:
    """Return every file with its bytes, time and mode."""
    found: dict[str, Any] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink() or path.is_dir():
            found[name] = "link" if path.is_symlink() else "folder"
        else:
            status = path.stat()
            text = path.read_bytes().decode("latin-1")
            found[name] = [text, int(status.st_mtime), oct(status.st_mode & 0o777)]
    return found


def _changes(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            changes[name] = after.get(name, ["-"])
            # What is written again is of this moment.
            if name in before and name in after and isinstance(after[name], list):
                changes[name] = after[name][:1]
    return changes


def _shown(root: Path, value: object) -> Any:
    text = json.dumps(plain(value)).replace(str(root.parent), "").replace(steno_home(), "HOME")
    text = re.sub(r"[0-9a-f]{64}", lambda found: found[0][:8], text)
    return json.loads(re.sub(r"[0-9]{8}T[0-9]{6}-[0-9a-f]{6}", "ID", text))


def test_a_move_and_its_undoing_are_as_recorded(config: Path) -> None:
    answers: dict[str, object] = {}
    before = _state(config)
    read: list[int] = []
    plan = plan_move(OLD, NEW, str(config), on_progress=read.append)
    answers["plan"] = _shown(config, plan)
    answers["sums"] = [plan.sessions, plan.size, plan.paths, sum(read)]
    assert _state(config) == before
    done: list[int] = []
    receipt = apply_plan(plan, on_progress=done.append)
    moved = _state(config)
    answers["moved"] = _shown(config, _changes(before, moved))
    answers["receipt"] = _shown(config, {
        "state": receipt.state, "kind": receipt.kind, "folders": receipt.folders,
        "version": bool(receipt.version), "time": bool(receipt.time), "steps": len(receipt.steps),
        "kept": sorted(path.name for path in Path(receipt.folder).rglob("*.zst")),
    })  # fmt: skip
    answers["known"] = _shown(config, read_moves())
    assert sum(done) > 0
    assert find_interrupted() is None
    assert find_receipt("last") == find_receipt(receipt.id) == find_receipt(receipt.folder) == receipt
    with pytest.raises(BadRequest) as over:
        resume(receipt)
    assert str(over.value) == f"cannot resume the move {receipt.id}: done"
    undone, notes = undo_relocation(receipt)
    answers["undone"] = [undone.state, notes, _shown(config, _changes(before, _state(config)))]
    with pytest.raises(BadRequest) as again:
        undo_relocation(undone)
    assert str(again.value) == f"the move {receipt.id} was already undone"
    answers["known after"] = _shown(config, read_moves())
    assert_recorded(ANSWERS / "move.json", answers)


def test_what_is_added_after_a_move_comes_back_with_it(config: Path) -> None:
    """What others wrote since, at each kind of file, and what cannot be as it was."""
    before = _state(config)
    receipt = apply_plan(plan_move(OLD, NEW, str(config)))
    there = config / "projects" / slug_for_path(NEW)
    with (there / f"{ONE}.jsonl").open("ab") as file:
        file.write(_talk(ONE, NEW, "More"))
    with (config / "history.jsonl").open("ab") as file:
        file.write(json.dumps({"display": "new", "project": NEW}).encode() + b"\n")
    (there / "memory" / "MEMORY.md").unlink()
    (there / "fresh.txt").write_bytes(b"mine")
    for path in (*config.rglob("*.jsonl"), there / "fresh.txt"):
        path.chmod(0o644)
        os.utime(path, (1_790_000_500, 1_790_000_500))
    undone, notes = undo_relocation(receipt)
    answers = {"state": undone.state, "notes": notes, "changes": _changes(before, _state(config))}
    assert_recorded(ANSWERS / "move_back.json", _shown(config, answers))


def test_belongings_are_told_by_where_sessions_ran(config: Path) -> None:
    """Two projects of one folder name, sessions that say nothing, and those of no rule."""
    shared = config / "projects" / slug_for_path("/my/work")
    for name, data in {
        f"{ONE}.jsonl": _talk(ONE, "/my/work"), f"{TWO}.jsonl": _talk(TWO, "/my-work"),
        f"{SUB}.jsonl": b'{"type":"mode"}\n', "agent-cccc3333.jsonl": _agent("cccc3333", ONE, "/my/work"),
        "agent-dddd4444.jsonl": _agent("dddd4444", TWO, "/my-work"),
        "agent-eeee5555.jsonl": _agent("eeee5555", "nobody", "/my/work"), "notes.txt": b"whose?",
        f"{ONE}.jsonl.undone": b"x", "agent-cccc3333.meta.json": b"{}",
        "agent-dddd4444.meta.json": b"{}", "agent-ffff6666.meta.json": b"{}",
    }.items():  # fmt: skip
        shared.mkdir(exist_ok=True)
        (shared / name).write_bytes(data)
    odd = config / "projects" / slug_for_path(f"{OLD}/elsewhere")
    odd.mkdir()
    (odd / f"{ONE}.jsonl").write_bytes(_talk(ONE, OLD))
    alone = config / "conversations" / slug_for_path("/alone")
    alone.mkdir(parents=True)
    (alone / "quiet.jsonl").write_bytes(b'{"type":"mode"}\n')
    answers: dict[str, object] = {}
    for old in (OLD, f"{OLD}/sub", "/my/work", "/my-work", "/alone", "/nothing", "/home/ada"):
        answers[old] = _shown(config, find_project_files(str(config), old, "/new/place"))
    assert_recorded(ANSWERS / "belongings.json", answers)


def test_refusals_are_as_recorded(config: Path) -> None:
    answers: dict[str, object] = {}

    def refused(name: str, act: Callable[[], object]) -> None:
        try:
            act()
        except StenoError as error:
            answers[name] = _shown(config, error)
        else:
            answers[name] = "done"

    refused("the root", lambda: plan_move("/", NEW, str(config)))
    refused("to the root", lambda: plan_move(OLD, "/", str(config)))
    refused("the same", lambda: plan_move(OLD, OLD, str(config)))
    refused("nothing there", lambda: plan_move("/nothing", NEW, str(config)))
    taken = config / "projects" / slug_for_path(NEW) / f"{ONE}.jsonl"
    taken.parent.mkdir()
    taken.write_bytes(b"other")
    refused("a session is there", lambda: plan_move(OLD, NEW, str(config)))
    taken.unlink()
    live = config / "sessions" / "1.json"
    live.parent.mkdir()
    for name, fields in {
        "a client in it": {"cwd": f"{OLD}/sub"}, "a client at the new place": {"cwd": NEW},
        "a client on a session": {"cwd": "/x", "sessionId": ONE}, "a client elsewhere": {"cwd": "/x"},
    }.items():  # fmt: skip
        live.write_text(json.dumps({"pid": os.getppid(), "sessionId": "s", "startedAt": 1, **fields}))
        refused(name, lambda: plan_move(OLD, NEW, str(config)).sessions)
    live.unlink()
    os.utime(config / "projects" / slug_for_path(OLD) / f"{ONE}.jsonl", (now(), now()))
    refused("just written", lambda: plan_move(OLD, NEW, str(config)))
    refused("no receipt", lambda: find_receipt("nothing"))
    refused("none yet", lambda: find_receipt("last"))
    mine = f"process {os.getppid()}"
    answers = json.loads(json.dumps(answers).replace(mine, "process N"))
    assert_recorded(ANSWERS / "refusals.json", answers)


def test_a_project_is_packed_and_unpacked_as_recorded(config: Path, tmp_path: Path) -> None:
    archive = tmp_path / "x.tar.zst"
    read: list[int] = []
    packing = pack_project(OLD, str(config), str(archive), on_progress=read.append)
    answers: dict[str, object] = {"packing": _shown(config, packing), "read": sum(read)}
    manifest = packing.manifest
    assert (manifest.sessions, manifest.size) == (2, sum(each.size for each in manifest.files))
    there = tmp_path / "there"
    there.mkdir()
    (there / "history.jsonl").write_bytes(b'{"display":"mine","project":"/mine"}\n')
    os.utime(there / "history.jsonl", (1_790_000_000, 1_790_000_000))
    before = _state(there)
    place = new_receipt_folder()
    written: list[int] = []
    plan = plan_unpack(str(archive), NEW, str(there), place, written.append)
    answers["plan"] = _shown(there, plan)
    answers["written"] = written
    assert _state(there) == before
    receipt = apply_plan(plan, "unpack", place)
    answers["unpacked"] = _shown(there, _changes(before, _state(there)))
    _, notes = undo_relocation(receipt)
    answers["taken back"] = [notes, _shown(there, _changes(before, _state(there)))]
    assert_recorded(ANSWERS / "pack.json", answers)


def test_only_sound_manifests_are_believed() -> None:
    good = PackedFile(f"projects/-p/{ONE}.jsonl", 3, "a" * 64, 5)
    answers: dict[str, object] = {}
    for name, made in {
        "good": Manifest(1, "/p", "/c", (good,)), "another format": Manifest(2, "/p", "/c", ()),
        "no project": Manifest(1, "", "/c", ()), "no config": Manifest(1, "/p", "", ()),
        "a zero": Manifest(1, "/p\0", "/c", ()), "twice": Manifest(1, "/p", "/c", (good, good)),
        "other case": Manifest(1, "/p", "/c", (good, msgspec.structs.replace(good, name=good.name.replace("p/", "P/")))),
        "size": Manifest(1, "/p", "/c", (msgspec.structs.replace(good, size=-1),)),
        "no size": Manifest(1, "/p", "/c", (msgspec.structs.replace(good, size=0),)),
        "time": Manifest(1, "/p", "/c", (msgspec.structs.replace(good, mtime_ns=-1),)),
        "late": Manifest(1, "/p", "/c", (msgspec.structs.replace(good, mtime_ns=1 << 62),)),
        "hash": Manifest(1, "/p", "/c", (msgspec.structs.replace(good, sha256="A" * 64),)),
        "long hash": Manifest(1, "/p", "/c", (msgspec.structs.replace(good, sha256="a" * 65),)),
        "settings": Manifest(1, "/p", "/c", (msgspec.structs.replace(good, name="settings.json"),)),
    }.items():  # fmt: skip
        try:
            answers[name] = parse_manifest(msgspec.json.encode(made)) == made
        except BadRequest as error:
            answers[name] = error
    for raw in (b"", b"{}", b"[]", b"\xff"):
        with pytest.raises(BadRequest, match="not an archive"):
            parse_manifest(raw)
    names = (
        "history.jsonl", "settings.json", f"projects/-p/{ONE}.jsonl", "projects/-p/x.jsonl", "projects/-p/.x",
        f"projects/-p/{ONE}/subagents/agent-a1b2c3d4.jsonl", f"projects/-p/{ONE}/tool-results/a.txt",
        f"projects/-p/{ONE}/scripts/a.sh", "projects/-p/memory/a.md", "projects/-p/scripts/a.md", "projects/../x",
        "projects//x", "projects/-p/a\\b", "projects/-p/a:b", "projects/-p/a\x01b", f"todos/{ONE}-agent-{ONE}.json",
        f"tasks/{ONE}/1.json", f"file-history/{ONE}/0123456789abcdef@v1", f"session-env/{ONE}/x.sh", "hooks/x.sh",
        "projects/-p/memory/" + "x" * 255, "projects/-p/memory/" + "x" * 256, "CLAUDE.md", "agents/a.md", "",
        "projects/" + "/".join(["y" * 100] * 11), "conversations/-p/" + ONE + ".jsonl", "projects/-p/./x",
    )  # fmt: skip
    answers["travels"] = {f"{name[:70]} ({len(name)})": is_transferable(name) for name in names}
    assert_recorded(ANSWERS / "manifests.json", answers)
    assert [member_name(number) for number in (0, 7, 1_234_567)] == [
        "files/000000", "files/000007", "files/1234567",
    ]  # fmt: skip


def test_pieces_are_rewritten_and_measured(tmp_path: Path) -> None:
    chunks = [b'{"a":"/o', b'ld/x"}\n{"b":"/new/y"}\n', b'{"c":"/old"}', b"\n\ntail /old/z"]
    whole = b"".join(chunks)
    paths = PathRewriter([("/old", "/new")])
    assert list(rewrite_units(chunks, "bytes")) == chunks
    assert list(rewrite_units(chunks, "whole")) == [whole]
    assert list(rewrite_units(chunks, "lines")) == whole.splitlines(keepends=True)
    assert list(rewrite_units([], "lines")) == []
    answers: dict[str, object] = {}
    for mode in ("lines", "whole", "bytes"):
        for marks in (False, True):
            seen: list[int] = []
            made = measure_rewrite(iter(chunks), paths, mode, collect_marks=marks, on_progress=seen.append)
            answers[f"{mode}, {marks}"] = [made, sum(seen)]
            assert made.before == compute_sum(chunks) == FileSum(len(whole), made.before.sha256)
        answers[mode] = b"".join(rewrite_paths(iter(chunks), paths, mode))
    assert line_mark(b"a\r\n") == line_mark(b"a\n") == line_mark(b"a") != line_mark(b"b")
    assert_recorded(ANSWERS / "rewrite.json", answers)
    for name, mode in (("a.jsonl", "lines"), ("a.json", "bytes"), ("a.txt", "bytes")):
        assert rewrite_mode(str(tmp_path / name)) == mode
    (tmp_path / "a.json").write_bytes(b"{}")
    assert rewrite_mode(str(tmp_path / "a.json")) == "whole"
    (tmp_path / "tool-results").mkdir()
    (tmp_path / "tool-results" / "a.json").write_bytes(b"{}")
    assert rewrite_mode(str(tmp_path / "tool-results" / "a.json")) == "bytes"


def test_folders_below_folders_and_shared_files(tmp_path: Path) -> None:
    inside = {("/a", "/a"): True, ("/a/b", "/a"): True, ("/ab", "/a"): False, ("/a/b", "/a/"): True,
              ("C:\\a\\b", "C:\\a"): True, ("C:\\ab", "C:\\a"): False, ("C:\\a/b", "C:\\a"): False}  # fmt: skip
    assert {pair: is_inside_path(*pair) for pair in inside} == inside
    assert path_pairs("/o", "/n", "/c", [("/c/x", "/c/y")]) == [("/o", "/n"), ("/c/x", "/c/y")]
    assert path_pairs("/o", "/n", "/o/c", []) == [("/o", "/n"), ("/o/c", "/o/c")]
    assert shared_files(str(tmp_path)) == []
    (tmp_path / "history.jsonl").write_bytes(b"")
    (tmp_path / ".claude.json").write_bytes(b"{}")
    shared = [(Path(move.source).name, move.mode, move.action) for move in shared_files(str(tmp_path))]
    assert shared == [("history.jsonl", "lines", "rewrite"), (".claude.json", "whole", "rewrite")]
    refuse_root(str(tmp_path))
    with pytest.raises(BadRequest, match="is not a project directory"):
        refuse_root("/")
    plan = RelocationPlan("/o", "/n", "/c", ())
    assert (plan.sessions, plan.size, plan.paths) == (0, 0, 0)
