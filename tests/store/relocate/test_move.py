"""A project's sessions follow it: every byte but its paths stays, and all of it can be undone."""

import json
import os
from pathlib import Path

import pytest
from tests.builders import VERSIONS, tool
from tests.store.relocate.moving import NEW, OLD, copied, project, seen, unflushed, write

from steno.errors import BadRequest, Busy, NotFound
from steno.format.paths import slug_for_path
from steno.store.relocate.execution import apply_plan, find_interrupted, find_receipt, resume, undo_relocation
from steno.store.relocate.plan import RelocationPlan, plan_move
from steno.store.session_lock import SessionAnnouncement
from steno.store.session_lookup import find, sessions_newest_first


def move(folder: Path, old: str = OLD, new: str = NEW) -> RelocationPlan:
    plan = plan_move(old, new, str(folder))
    apply_plan(plan)
    return plan


def cwds(path: Path) -> set[str]:
    records = [json.loads(line) for line in path.read_bytes().splitlines()]
    return {record["cwd"] for record in records if "cwd" in record}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / ".claude"


@pytest.mark.parametrize("version", VERSIONS)
def test_sessions_of_every_version_follow_and_come_back(folder: Path, version: str) -> None:
    write(folder, project(version=version), project("other", cwd="/home/ada/other"))
    before = seen(folder)
    plan = move(folder)
    assert plan.sessions == 1
    (moved,) = (folder / "projects" / slug_for_path(NEW)).glob("[0-9a-f]*.jsonl")
    assert cwds(moved) == {NEW}
    assert not (folder / "projects" / slug_for_path(OLD)).exists()
    assert "Look at /home/ada/work/tide.py." in moved.read_text()
    move(folder, NEW, OLD)
    assert seen(folder) == before


def test_the_plan_changes_nothing(folder: Path) -> None:
    write(folder, project())
    before = seen(folder)
    plan = plan_move(OLD, NEW, str(folder))
    assert {step.action for step in plan.steps} == {"move"}
    assert seen(folder) == before


def test_sessions_of_folders_inside_follow_too(folder: Path) -> None:
    inner = f"{OLD}/pkg/core"
    write(folder, project(), project("in", cwd=inner), project("near", cwd=f"{OLD}shop"))
    assert move(folder).sessions == 2
    names = {path.name for path in (folder / "projects").iterdir()}
    assert names == {slug_for_path(NEW), slug_for_path(f"{NEW}/pkg/core"), slug_for_path(f"{OLD}shop")}


def test_two_projects_of_one_folder_name_are_told_apart(folder: Path) -> None:
    write(folder, project("a", cwd="/home/ada/my-work"), project("b", cwd="/home/ada/my/work"))
    assert len(list((folder / "projects").iterdir())) == 1
    plan = move(folder, "/home/ada/my/work", NEW)
    assert plan.sessions == 1
    left = find(project("a").session_id, (str(folder),))
    assert cwds(Path(left.path)) == {"/home/ada/my-work"}


def test_a_folder_of_the_same_name_is_rewritten_where_it_lies(folder: Path) -> None:
    write(folder, project(cwd="/home/ada/my-work"))
    before = seen(folder)
    plan = plan_move("/home/ada/my-work", "/home/ada/my/work", str(folder))
    receipt = apply_plan(plan)
    (path,) = folder.glob("projects/*/*.jsonl")
    assert cwds(path) == {"/home/ada/my/work"}
    undo_relocation(receipt)
    assert seen(folder) == before


def test_long_names_are_shortened_as_clients_do(folder: Path) -> None:
    long = "/srv/" + "/".join(["component"] * 30)
    write(folder, project())
    move(folder, OLD, long)
    assert (folder / "projects" / slug_for_path(long)).is_dir()
    assert len(slug_for_path(long)) < 255
    assert move(folder, long, OLD).sessions == 1


def test_what_lies_beside_sessions_follows(folder: Path) -> None:
    made = project()
    write(folder, made)
    home = folder / "projects" / made.folder
    (home / "memory").mkdir()
    (home / "memory" / "MEMORY.md").write_text(f"It is at {OLD}.")
    index = {"originalPath": OLD, "entries": [{"projectPath": OLD, "firstPrompt": OLD}]}
    (home / "sessions-index.json").write_text(json.dumps(index, indent=2))
    (home / "agent-a318043.jsonl").write_bytes(made.bytes())
    move(folder)
    there = folder / "projects" / slug_for_path(NEW)
    assert (there / "memory" / "MEMORY.md").read_text() == f"It is at {OLD}."
    assert json.loads((there / "sessions-index.json").read_text())["originalPath"] == NEW
    assert cwds(there / "agent-a318043.jsonl") == {NEW}


def test_folders_that_the_client_left_empty_do_not_keep_the_old_place(folder: Path) -> None:
    made = project()
    write(folder, made)
    (folder / "projects" / made.folder / "memory").mkdir()
    move(folder)
    assert not (folder / "projects" / made.folder).exists()


def test_history_and_the_clients_entry_follow_and_others_stay(folder: Path) -> None:
    write(folder, project())
    lines = [{"display": f"see {OLD}", "project": OLD}, {"display": "x", "project": "/else"}]
    (folder / "history.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    state = {"projects": {OLD: {"trust": True}, "/else": {}}, "githubRepoPaths": {"a/b": [OLD]}}
    (folder / ".claude.json").write_text(json.dumps(state, indent=2))
    before = seen(folder)
    plan = plan_move(OLD, NEW, str(folder))
    receipt = apply_plan(plan)
    told = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    assert told == [{"display": f"see {OLD}", "project": NEW}, lines[1]]
    state = json.loads((folder / ".claude.json").read_text())
    assert list(state["projects"]) == [NEW, "/else"]
    assert state["githubRepoPaths"] == {"a/b": [NEW]}
    undo_relocation(receipt)
    assert seen(folder) == before


def test_the_clients_entry_follows_where_it_lies_beside_the_config_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = write(tmp_path / ".claude", project())
    state = tmp_path / ".claude.json"
    state.write_text(json.dumps({"projects": {OLD: {}}}))
    move(folder)
    assert json.loads(state.read_text()) == {"projects": {NEW: {}}}


@pytest.mark.skipif(os.name == "nt", reason="names are text there")
def test_names_that_are_no_text_are_refused_before_anything_is_done(folder: Path) -> None:
    made = project()
    write(folder, made)
    (folder / "projects" / made.folder / os.fsdecode(b"\xff.txt")).write_bytes(b"")
    with pytest.raises(BadRequest, match="not UTF-8"):
        plan_move(OLD, NEW, str(folder))


def test_what_others_wrote_since_stays_when_it_is_undone(folder: Path) -> None:
    write(folder, project())
    history = folder / "history.jsonl"
    ours, theirs = {"project": OLD}, {"project": f"{NEW}/theirs"}
    history.write_text(json.dumps(ours) + "\n")
    receipt = apply_plan(plan_move(OLD, NEW, str(folder)))
    with history.open("a") as file:
        file.write(json.dumps(theirs) + "\n")
    undo_relocation(receipt)
    assert [json.loads(line) for line in history.read_text().splitlines()] == [ours, theirs]


def test_an_entry_for_the_new_folder_is_not_overwritten(folder: Path) -> None:
    write(folder, project())
    state = folder / ".claude.json"
    state.write_text(json.dumps({"projects": {OLD: {"a": 1}, NEW: {"b": 2}}}))
    before = state.read_bytes()
    plan = move(folder)
    assert state.read_bytes() == before
    assert any("has an entry" in note for note in plan.notes)


def test_what_names_the_new_folder_already_comes_back_exactly(folder: Path) -> None:
    made = project()
    made.assistant(tool("Read", file_path=f"{NEW}/already.py"))
    write(folder, made)
    before = seen(folder)
    plan = plan_move(OLD, NEW, str(folder))
    assert any(not step.exact for step in plan.steps)
    undo_relocation(apply_plan(plan))
    assert seen(folder) == before


def test_what_was_added_since_comes_along_when_it_is_undone(folder: Path) -> None:
    write(folder, project())
    (path,) = folder.glob("projects/*/*.jsonl")
    old = path.read_bytes()
    receipt = apply_plan(plan_move(OLD, NEW, str(folder)))
    moved = folder / "projects" / slug_for_path(NEW) / path.name
    with moved.open("ab") as file:
        file.write(json.dumps({"type": "user", "cwd": NEW}).encode() + b"\n")
    os.utime(moved, (1, 1))
    undo_relocation(receipt)
    assert path.read_bytes() == old + json.dumps({"type": "user", "cwd": OLD}).encode() + b"\n"


def test_a_live_client_is_left_alone(folder: Path) -> None:
    write(folder, project())
    before = seen(folder)
    with SessionAnnouncement(str(folder), "x", f"{OLD}/src", "2.1.325"), pytest.raises(Busy, match="in use"):
        plan_move(OLD, NEW, str(folder))
    assert {k: v for k, v in seen(folder).items() if "sessions" not in k} == before


def test_a_session_that_was_just_written_is_left_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, project())
    (path,) = folder.glob("projects/*/*.jsonl")
    monkeypatch.setenv("STENO_NOW", "2026-01-01T00:00:00Z")
    os.utime(path, (1_767_225_600, 1_767_225_600))
    with pytest.raises(Busy, match="being written"):
        plan_move(OLD, NEW, str(folder))


def test_a_session_of_that_name_is_never_overwritten(folder: Path) -> None:
    made = project()
    write(folder, made)
    there = folder / "projects" / slug_for_path(NEW)
    there.mkdir()
    (there / f"{made.session_id}.jsonl").write_bytes(b"{}\n")
    before = seen(folder)
    with pytest.raises(BadRequest, match="already exists"):
        plan_move(OLD, NEW, str(folder))
    assert seen(folder) == before


def test_nothing_of_a_project_is_said(folder: Path) -> None:
    write(folder, project())
    with pytest.raises(NotFound):
        plan_move("/no/such", NEW, str(folder))
    with pytest.raises(BadRequest, match="same directory"):
        plan_move(OLD, OLD, str(folder))


def test_a_project_that_was_a_link_is_known_by_both_names(folder: Path, tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    write(folder, project(cwd=str(real)))
    assert plan_move(str(link), NEW, str(folder)).old == str(real)


def test_a_move_that_was_cut_off_is_finished_or_undone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, project())
    before = seen(folder)
    with monkeypatch.context() as patch:
        patch.setattr(os, "rmdir", stop)
        with pytest.raises(KeyboardInterrupt):
            move(folder)
    left = find_interrupted()
    assert left is not None
    with pytest.raises(Busy, match="interrupted"):
        apply_plan(plan_move(NEW, OLD, str(folder)))
    resume(left)
    assert find_interrupted() is None
    undo_relocation(find_receipt("last"))
    assert seen(folder) == before
    with pytest.raises(BadRequest, match="already undone"):
        undo_relocation(find_receipt(left.id))


def stop(*_: object) -> None:
    raise KeyboardInterrupt


def test_the_archive_knows_that_it_only_moved(folder: Path) -> None:
    from steno.store.archive.archive import archive_all

    write(folder, project())
    archive_all((str(folder),))
    receipt = apply_plan(plan_move(OLD, "/s", str(folder)))
    assert len(list(sessions_newest_first((str(folder),), archived=True))) == 1
    undo_relocation(receipt)
    assert len(list(sessions_newest_first((str(folder),), archived=True))) == 1


@pytest.mark.corpus
def test_there_and_back_leaves_every_byte_of_every_corpus(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", unflushed)
    moved = 0
    for number, source in enumerate(sorted((shared / "corpus" / "real-client").glob("*/*"))):
        folder = copied(source, tmp_path / str(number))
        before = seen(folder)
        try:
            plan = move(folder)
        except NotFound:
            continue
        assert all(step.exact for step in plan.steps)
        assert not any(OLD in cwds for cwds in map(cwds_if_any, folder.rglob("*.jsonl")))
        move(folder, NEW, OLD)
        assert seen(folder) == before, source
        moved += plan.sessions
    assert moved > 150


def cwds_if_any(path: Path) -> set[str]:
    if path.name == "history.jsonl":
        return set()
    return cwds(path) if not path.parent.name.endswith("7lz9xt") else set()
