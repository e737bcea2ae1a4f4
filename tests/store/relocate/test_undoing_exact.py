"""Undoing what was unpacked or cut off: what goes, what stays, and what is said of it."""

import json
import os
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from tests.store.relocate.moving import aged, unflushed
from tests.store.relocate.test_relocate_table import ONE

from steno.errors import BadRequest, Busy
from steno.format.paths import slug_for_path
from steno.store.relocate import execution
from steno.store.relocate import transfer as manifests
from steno.store.relocate.execution import (
    RelocationReceipt,
    apply_plan,
    begin_receipt,
    new_receipt_folder,
    resume,
    save_receipt,
    undo_relocation,
)
from steno.store.relocate.plan import RelocationStep, plan_move
from steno.store.relocate.transfer import Manifest, PackedFile, pack_project, parse_manifest, plan_unpack

OLD: Final = "/home/ada/work"
NEW: Final = "/srv/app"
MINE: Final = b'{"display":"mine","project":"/mine"}\n'


def _typed(project: str) -> bytes:
    return json.dumps({"display": "a", "project": project}).encode() + b"\n"


def _line(cwd: str) -> bytes:
    message = {"role": "user", "content": "Go"}
    record = {"type": "user", "uuid": "u", "sessionId": ONE, "cwd": cwd, "message": message}
    return json.dumps(record).encode() + b"\n"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(os, "fsync", unflushed)
    folder = tmp_path / "config"
    for name, data in {
        f"projects/{slug_for_path(OLD)}/{ONE}.jsonl": _line(OLD),
        f"projects/{slug_for_path(OLD)}/memory/M.md": b"notes",
        "history.jsonl": _typed(OLD),
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return aged(folder)


def _unpacked(config: Path, tmp_path: Path, there: Path) -> RelocationReceipt:
    archive = tmp_path / "x.tar.zst"
    pack_project(OLD, str(config), str(archive))
    place = new_receipt_folder()
    return apply_plan(plan_unpack(str(archive), NEW, str(there), place), "unpack", place)


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_what_was_unpacked_into_an_empty_folder_goes_without_a_trace(config: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    receipt = _unpacked(config, tmp_path, there)
    session, memory = (f"projects/{slug_for_path(NEW)}/{ONE}.jsonl", f"projects/{slug_for_path(NEW)}/memory/M.md")
    assert _files(there) == {
        "history.jsonl": _typed(NEW), session: _line(NEW), memory: b"notes",
    }  # fmt: skip
    assert not Path(receipt.staging_folder).exists()
    aged(there)
    undone, notes = undo_relocation(receipt)
    assert (undone.state, notes, _files(there)) == ("undone", [], {})


def test_what_killed_runs_left_unpacked_goes_with_the_next(config: Path, tmp_path: Path) -> None:
    """Folders without a receipt; a file, a link and what has a receipt stay."""
    place = Path(new_receipt_folder())
    above = place.parent
    left, kept, link = above / "left", above / "kept", above / "link"
    for folder in (left, kept):
        (folder / "staged").mkdir(parents=True)
    (kept / "receipt.json").write_bytes(b"{}")
    (above / "file").write_bytes(b"x")
    link.symlink_to(tmp_path)
    archive = tmp_path / "x.tar.zst"
    pack_project(OLD, str(config), str(archive))
    there = tmp_path / "there"
    there.mkdir()
    plan_unpack(str(archive), NEW, str(there), str(place))
    assert {path.name for path in above.iterdir()} >= {"kept", "file", "link", place.name}
    assert not left.exists()


def test_what_was_written_to_since_it_was_unpacked_stays(config: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    (there / "history.jsonl").write_bytes(MINE)
    receipt = _unpacked(config, tmp_path, there)
    # What was typed before comes first.
    assert (there / "history.jsonl").read_bytes() == _typed(NEW) + MINE
    memory = there / "projects" / slug_for_path(NEW) / "memory" / "M.md"
    memory.write_bytes(b"notes and more")
    with (there / "history.jsonl").open("ab") as file:
        file.write(MINE)
    aged(there)
    undone, notes = undo_relocation(receipt)
    assert (undone.state, notes) == ("undone", [f"{memory} was modified; not removed"])
    assert _files(there) == {
        "history.jsonl": MINE + MINE, str(memory.relative_to(there)): b"notes and more",
    }  # fmt: skip


def test_what_was_unpacked_and_removed_since_is_nothing_to_undo(config: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    receipt = _unpacked(config, tmp_path, there)
    for path in [path for path in there.rglob("*") if path.is_file()]:
        path.unlink()
    undone, notes = undo_relocation(receipt)
    assert (undone.state, notes, _files(there)) == ("undone", [], {})


def test_a_merge_that_was_cut_off_is_not_done_twice(config: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    (there / "history.jsonl").write_bytes(MINE)
    archive = tmp_path / "x.tar.zst"
    pack_project(OLD, str(config), str(archive))
    place = new_receipt_folder()
    receipt = begin_receipt(plan_unpack(str(archive), NEW, str(there), place), "unpack", place)
    (there / "history.jsonl").write_bytes(_typed(NEW) + MINE)
    done = resume(receipt)
    assert (done.state, (there / "history.jsonl").read_bytes()) == ("done", _typed(NEW) + MINE)


def test_a_move_that_was_begun_and_not_done_is_taken_back_to_the_same_files(config: Path) -> None:
    before = _files(config)
    receipt = begin_receipt(plan_move(OLD, NEW, str(config)), "move", new_receipt_folder())
    undone, notes = undo_relocation(receipt)
    assert (undone.state, notes, _files(config)) == ("undone", [], before)


def test_a_file_that_is_gone_when_a_move_is_undone_is_told(config: Path) -> None:
    receipt = apply_plan(plan_move(OLD, NEW, str(config)))
    memory = config / "projects" / slug_for_path(NEW) / "memory" / "M.md"
    memory.unlink()
    aged(config)
    undone, notes = undo_relocation(receipt)
    assert (undone.state, notes) == ("undone", [f"{memory} no longer exists"])
    assert _files(config) == {
        "history.jsonl": _typed(OLD), f"projects/{slug_for_path(OLD)}/{ONE}.jsonl": _line(OLD),
    }  # fmt: skip


def test_history_that_changed_since_the_plan_is_rewritten_once_or_not_at_all(config: Path) -> None:
    history = config / "history.jsonl"
    receipt = begin_receipt(plan_move(OLD, NEW, str(config)), "move", new_receipt_folder())
    history.write_bytes(_typed(OLD) + MINE)
    resume(receipt)
    assert history.read_bytes() == _typed(NEW) + MINE
    assert resume(save_receipt(receipt, "begun")).state == "done"
    assert history.read_bytes() == _typed(NEW) + MINE


def test_a_state_file_that_changed_since_the_plan_keeps_the_change(config: Path) -> None:
    state = config / ".claude.json"
    state.write_text(json.dumps({"projects": {OLD: {}}}))
    aged(config)
    receipt = begin_receipt(plan_move(OLD, NEW, str(config)), "move", new_receipt_folder())
    state.write_text(json.dumps({"projects": {OLD: {"n": 1}}}))
    assert resume(receipt).state == "done"
    assert json.loads(state.read_text()) == {"projects": {NEW: {"n": 1}}}


def test_paths_by_the_name_of_a_linked_config_folder_follow(config: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(config)
    session = config / "projects" / slug_for_path(OLD) / f"{ONE}.jsonl"
    named = f"{link}/projects/{slug_for_path(OLD)}/{ONE}/tool-results/r.txt".encode()
    session.write_bytes(_line(OLD) + b'{"p":"%s"}\n' % named)
    aged(config)
    plan = plan_move(OLD, NEW, str(link))
    old, new = f"projects/{slug_for_path(OLD)}", f"projects/{slug_for_path(NEW)}"
    assert plan.pairs == ((OLD, NEW), (f"{config}/{old}", f"{config}/{new}"),
                          (f"{link}/{old}", f"{link}/{new}"))  # fmt: skip
    apply_plan(plan)
    moved = config / new / f"{ONE}.jsonl"
    assert moved.read_bytes().endswith(b'{"p":"%s"}\n' % named.replace(old.encode(), new.encode()))


def test_a_manifest_has_no_more_files_than_anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests, "_MAX_FILES", 2)
    files = [PackedFile(f"projects/-p/memory/{n}.md", 1, "a" * 64) for n in range(3)]
    two, three = (Manifest(1, "/p", "/c", tuple(files[:number])) for number in (2, 3))
    assert parse_manifest(msgspec.json.encode(two)) == two
    with pytest.raises(BadRequest) as refused:
        parse_manifest(msgspec.json.encode(three))
    assert str(refused.value) == "the archive has too many files: 3"
    assert (three.size, three.sessions) == (3, 0)


def test_a_session_that_is_written_to_after_it_was_placed_is_not_removed(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = config / "projects" / slug_for_path(OLD) / f"{ONE}.jsonl"
    carrier: type[Any] = vars(execution)["_StepExecutor"]
    remove = carrier.remove_source

    def late(self: object, step: RelocationStep) -> None:
        if step.source == str(source):
            with source.open("ab") as file:
                file.write(_line(OLD))
        remove(self, step)

    monkeypatch.setattr(carrier, "remove_source", late)
    with pytest.raises(Busy) as refused:
        apply_plan(plan_move(OLD, NEW, str(config)), "move", new_receipt_folder())
    assert str(refused.value) == f"{source} was modified"
    assert source.read_bytes() == _line(OLD) * 2
