"""Moves that are cut off, changed meanwhile, or cannot be written: what is said and what is left."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from tests.store.relocate.moving import aged, unflushed

from steno.errors import BadRequest, Busy, NotFound, StenoError, Unreadable, Unwritable
from steno.format.paths import slug_for_path
from steno.store.archive.catalogue import MovedSession, read_moves, record_moves
from steno.store.environment import steno_home
from steno.store.relocate.execution import (
    apply_plan,
    begin_receipt,
    find_interrupted,
    find_receipt,
    new_receipt_folder,
    relocation_lock,
    resume,
    save_receipt,
    undo_relocation,
)
from steno.store.relocate.plan import RelocationPlan, find_project_files, plan_move

OLD: Final = "/home/ada/work"
NEW: Final = "/srv/app"
ONE: Final = "11111111-0000-4000-8000-000000000001"


def _line(cwd: str, words: str = "Go") -> bytes:
    message = {"role": "user", "content": words}
    record = {"type": "user", "uuid": "u1", "sessionId": ONE, "cwd": cwd, "message": message}
    return json.dumps(record).encode() + b"\n"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(os, "fsync", unflushed)
    folder = tmp_path / "config"
    for name, data in {
        f"projects/{slug_for_path(OLD)}/{ONE}.jsonl": _line(OLD),
        f"projects/{slug_for_path(OLD)}/memory/M.md": b"notes",
        f"projects/{slug_for_path('/bare')}/memory/M.md": b"bare",
        "history.jsonl": json.dumps({"display": "a", "project": OLD}).encode() + b"\n",
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return aged(folder)


def _old(config: Path) -> Path:
    return config / "projects" / slug_for_path(OLD) / f"{ONE}.jsonl"


def _new(config: Path) -> Path:
    return config / "projects" / slug_for_path(NEW) / f"{ONE}.jsonl"


def _refused(act: Callable[[], Any], error: type[StenoError], said: str) -> None:
    with pytest.raises(error) as refused:
        act()
    assert str(refused.value) == said


def _begun(config: Path) -> Any:
    plan = plan_move(OLD, NEW, str(config))
    return begin_receipt(plan, "move", new_receipt_folder())


def test_a_folder_without_sessions_is_told_by_its_name(config: Path) -> None:
    found = find_project_files(str(config), "/bare", "/full")
    assert [(Path(move.source).name, Path(move.target).parts[-3]) for move in found.moves] == [
        ("M.md", slug_for_path("/full")),
    ]  # fmt: skip
    assert find_project_files(str(config), "/bar", "/full").moves == []


def test_what_a_cut_off_run_placed_is_planned_again(config: Path) -> None:
    _new(config).parent.mkdir()
    _new(config).write_bytes(_old(config).read_bytes().replace(OLD.encode(), NEW.encode()))
    aged(config)
    plan = plan_move(OLD, NEW, str(config))
    assert str(_old(config)) in [step.source for step in plan.steps]
    apply_plan(plan)
    assert not _old(config).exists()
    memory = _new(config).parent / "memory" / "M.md"
    assert memory.read_bytes() == b"notes"


def test_a_small_file_that_is_there_is_left_and_said(config: Path) -> None:
    there = _new(config).parent / "memory" / "M.md"
    there.parent.mkdir(parents=True)
    there.write_bytes(b"other")
    aged(config)
    plan = plan_move(OLD, NEW, str(config))
    source = _old(config).parent / "memory" / "M.md"
    assert f"{source} was skipped: {there} already exists" in plan.notes
    assert f"the directory {NEW} does not exist yet" in plan.notes
    apply_plan(plan)
    assert (source.read_bytes(), there.read_bytes()) == (b"notes", b"other")


def test_a_cut_off_move_is_finished_from_wherever_it_was(config: Path) -> None:
    receipt = _begun(config)
    found = find_interrupted()
    assert found is not None
    assert found.id == receipt.id
    plan = plan_move(OLD, NEW, str(config))
    with pytest.raises(Busy) as left:
        apply_plan(plan)
    assert str(left.value) == f"the move {receipt.id} of {OLD} was interrupted"
    assert left.value.hint == f"Run `steno relocate --undo {receipt.id}` to undo it."
    done = resume(receipt)
    assert (done.state, find_interrupted()) == ("done", None)
    assert _new(config).read_bytes() == _line(NEW)
    assert json.loads((config / "history.jsonl").read_text())["project"] == NEW
    undone, notes = undo_relocation(done)
    assert (undone.state, notes) == ("undone", [])
    assert _old(config).read_bytes() == _line(OLD)


def test_what_changed_meanwhile_stops_the_move(config: Path) -> None:
    receipt = _begun(config)
    way_out = f"Run the command again to resume, or `steno relocate --undo {receipt.id}` to undo."
    _old(config).write_bytes(_line(OLD, "Other"))
    with pytest.raises(Busy) as changed:
        resume(receipt)
    assert str(changed.value) == f"{_old(config)} changed since it was read"
    assert changed.value.hint == way_out
    assert not _new(config).exists()
    _new(config).write_bytes(b"mine")
    _refused(lambda: resume(receipt), Busy, f"{_new(config)} already exists with different content")
    assert _old(config).exists()
    _new(config).unlink()
    _old(config).write_bytes(_line(OLD))
    placed = save_receipt(receipt, "placed")
    _new(config).write_bytes(_line(NEW, "More"))
    _refused(lambda: resume(placed), Busy, f"{_old(config)} was modified")
    assert (_old(config).exists(), _new(config).exists()) == (True, True)


def test_both_places_differ_after_a_cut_off_undo(config: Path) -> None:
    done = apply_plan(plan_move(OLD, NEW, str(config)))
    _old(config).parent.mkdir(parents=True, exist_ok=True)
    _old(config).write_bytes(b"somebody else's\n")
    aged(config)
    undone, notes = undo_relocation(done)
    assert undone.state == "undone"
    assert notes == [f"{_old(config)} and {_new(config)} differ; both were kept"]
    assert _new(config).read_bytes() == _line(NEW)


def test_places_that_cannot_be_written_are_said(config: Path) -> None:
    _new(config).parent.write_text("")
    aged(config)
    plan = plan_move(OLD, NEW, str(config))
    with pytest.raises(Unwritable) as refused:
        apply_plan(plan)
    assert str(refused.value).endswith(": not a directory")
    left = find_interrupted()
    assert left is not None
    _new(config).parent.unlink()
    assert resume(left).state == "done"


def test_receipts_that_cannot_be_read_or_written_are_said(config: Path) -> None:
    moves = Path(steno_home()) / "moves"
    _refused(lambda: find_receipt("last"), NotFound, "no moves recorded")
    moves.parent.mkdir(parents=True, exist_ok=True)
    moves.write_text("")
    with pytest.raises(Unwritable), relocation_lock():
        pass
    with pytest.raises(Unwritable):
        new_receipt_folder()
    moves.unlink()
    receipt = _begun(config)
    path = Path(receipt.folder) / "receipt.json"
    assert path.read_bytes().startswith(b'{"state":"begun"')
    assert find_receipt(str(path)) == find_receipt(receipt.id) == receipt
    good = path.read_bytes()
    path.write_bytes(b"{")
    _refused(lambda: find_receipt("last"), BadRequest, f"{path} is not a receipt")
    assert find_interrupted() is None
    path.unlink()
    path.mkdir()
    _refused(lambda: save_receipt(receipt, "done"), Unwritable, f"cannot write {path}: is a directory")
    _refused(lambda: find_receipt(receipt.id), NotFound, f"no receipt matches {receipt.id!r}")
    path.rmdir()
    path.write_bytes(good)
    os.link(path, path.with_name("second"))
    assert find_receipt("last").id == receipt.id
    assert msgspec.json.decode(good)["time"] == receipt.time


def test_where_sessions_lie_now_is_noted_line_by_line(tmp_path: Path) -> None:
    assert read_moves() == {}
    with relocation_lock():
        record_moves([])
    record_moves([MovedSession("/a", "/b", 3), MovedSession("/c", "/d", 4)])
    record_moves([MovedSession("/b", "/e", 5), MovedSession("/c", "/c", 1)])
    path = Path(steno_home()) / "moves" / "moved.jsonl"
    known = {old: (move.new, move.size) for old, move in read_moves().items()}
    assert known["/b"] == ("/e", 5)
    path.write_bytes(path.read_bytes() + b"torn")
    assert {old: (move.new, move.size) for old, move in read_moves().items()} == known
    # A line that was cut off does not take the next one with it.
    record_moves([MovedSession("/x", "/y", 1)])
    assert read_moves()["/x"].new == "/y"
    assert tmp_path


def test_a_plan_counts_what_it_has(config: Path) -> None:
    plan = plan_move(OLD, NEW, str(config))
    assert (plan.sessions, plan.paths) == (1, 2)
    assert plan.size == sum(step.before.size for step in plan.steps)
    assert isinstance(plan, RelocationPlan)
    assert issubclass(Unreadable, StenoError)
