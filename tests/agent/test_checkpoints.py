"""Checkpoints: whoever changed files in a turn, they come back as they were at any prompt."""

import asyncio
import errno
import os
import shutil
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.agent.loop_harness import Stage

from steno.agent.checkpoints.checkpointer import FileCheckpointer, RestoreResult
from steno.agent.checkpoints.working_tree import TreeLimits
from steno.agent.loop import Agent
from steno.agent.recorder import Recorder
from steno.agent.writable_session import new_session
from steno.errors import Busy, NotFound, Unreadable
from steno.format.paths import file_history_name
from steno.format.source import BytesSource
from steno.llm.testserver.responders import tool
from steno.llm.testserver.scripted_responder import ScriptedResponder
from steno.session.transcript import load
from steno.tools.builtin.bash import Bash
from steno.tools.builtin.edit import Edit
from steno.tools.builtin.read import Read
from steno.tools.builtin.write import Write

Tree = dict[str, tuple[int, bytes]]


def tree_of(folder: Path) -> Tree:
    """Return all files and links of a folder: their mode and content."""
    found: Tree = {}
    for path in folder.rglob("*"):
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            found[str(path.relative_to(folder))] = (0, os.fsencode(path.readlink()))
        elif stat.S_ISREG(status.st_mode):
            found[str(path.relative_to(folder))] = (status.st_mode, path.read_bytes())
    return found


class Desk:
    """A session with a project and checkpoints, without a model."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder = folder
        self.project = folder / "project"
        self.project.mkdir(exist_ok=True)
        self.config = str(folder / "config")
        self.settings = settings
        self.recorder = new_session(self.config, str(self.project)).conversation.recorder
        self.notices: list[str] = []
        self.points = self._points()

    def _points(self) -> FileCheckpointer:
        points = FileCheckpointer(
            self.config, self.recorder, str(self.project), home=str(self.folder / "steno"), **self.settings
        )
        points.notice = self.notices.append
        return points

    def prompt(self) -> str:
        """Say something; return the id of the prompt."""
        (uuid,) = self.recorder.write(self.recorder.composer.prompt("go on"))
        asyncio.run(self.points.begin(uuid))
        return uuid

    def tool(self, name: str, data: bytes | None, mode: int = 0o644) -> None:
        """Let a tool write or delete a file."""

        async def act() -> None:
            async with self.points.track_call("Write"):
                path = self.project / name
                self.points.before_change(str(path))
                if data is None:
                    path.unlink(missing_ok=True)
                else:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(data)
                    path.chmod(mode)

        asyncio.run(act())

    def bash(self, work: Callable[[], Any]) -> None:
        """Let a command do something."""

        async def act() -> None:
            async with self.points.track_call("Bash"):
                work()

        asyncio.run(act())

    def resume(self) -> None:
        """Go on as a new process would."""
        self.recorder.close()
        place = self.recorder.composer.context
        self.recorder = Recorder(self.recorder.path, place, leaf=self.recorder.leaf)
        self.points = self._points()
        self.points.resume(load(BytesSource(Path(self.recorder.path).read_bytes())))

    @property
    def tree(self) -> Tree:
        return tree_of(self.project)

    def records(self, kind: str = "file-history") -> list[dict[str, Any]]:
        lines = Path(self.recorder.path).read_bytes().splitlines()
        found = [msgspec.json.decode(line) for line in lines]
        return [each for each in found if each["type"].startswith(kind)]

    def planned(self, prompt: str) -> dict[str, str]:
        base = str(self.project)
        return {os.path.relpath(e.path, base): e.action for e in self.points.plan(prompt)}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


# What is written


def test_the_records_have_the_shape_of_the_real_client(desk: Desk) -> None:
    (desk.project / "old.txt").write_bytes(b"old\n")
    first = desk.prompt()
    desk.tool("old.txt", b"new\n")
    desk.tool("made.txt", b"made\n")
    desk.tool("old.txt", b"newer\n")
    second = desk.prompt()
    third = desk.prompt()
    one, old, made, two, three = desk.records()
    assert list(one) == ["type", "messageId", "snapshot", "isSnapshotUpdate"]
    assert one["messageId"] == one["snapshot"]["messageId"] == first
    assert one["snapshot"]["trackedFileBackups"] == {}
    assert one["isSnapshotUpdate"] is False
    assert list(old) == [*("type", "messageId", "snapshotMessageId", "trackingPath", "backup", "timestamp")]
    name = file_history_name(str(desk.project / "old.txt"), 1)
    assert old["trackingPath"] == "old.txt"
    assert old["snapshotMessageId"] == first
    assert list(old["backup"]) == ["backupFileName", "version", "backupTime", "realParentDir"]
    assert old["backup"]["backupFileName"] == name
    assert old["backup"]["realParentDir"] == str(desk.project)
    assert (made["backup"]["backupFileName"], made["backup"]["version"]) == (None, 1)
    tracked = two["snapshot"]["trackedFileBackups"]
    assert {path: each["version"] for path, each in tracked.items()} == {"old.txt": 2, "made.txt": 2}
    assert (two["messageId"], three["messageId"]) == (second, third)
    # Nothing has changed, so there is no new version.
    assert three["snapshot"]["trackedFileBackups"] == tracked
    folder = Path(desk.config, "file-history", desk.recorder.session_id)
    assert (folder / name).read_bytes() == b"old\n"
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert len(list(folder.iterdir())) == 3


def test_the_backup_is_there_before_the_change(desk: Desk) -> None:
    path = desk.project / "a"
    path.write_bytes(b"before")
    desk.prompt()
    desk.points.before_change(str(path))
    folder = Path(desk.config, "file-history", desk.recorder.session_id)
    assert (folder / file_history_name(str(path), 1)).read_bytes() == b"before"
    assert desk.records()[-1]["trackingPath"] == "a"


def test_a_backup_that_no_record_tells_of_is_not_overwritten(desk: Desk) -> None:
    path = desk.project / "a"
    path.write_bytes(b"before")
    folder = Path(desk.config, "file-history", desk.recorder.session_id)
    folder.mkdir(parents=True)
    (folder / file_history_name(str(path), 1)).write_bytes(b"somebody's")
    desk.prompt()
    desk.tool("a", b"after")
    assert desk.records()[-1]["backup"]["version"] == 2
    assert (folder / file_history_name(str(path), 1)).read_bytes() == b"somebody's"


def test_what_cannot_be_kept_is_not_to_be_changed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    (desk.project / "a").write_bytes(b"before")
    desk.prompt()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="no space left"):
        desk.points.before_change(str(desk.project / "a"))
    assert [each["type"] for each in desk.records()] == ["file-history-snapshot"]


# Taking back


@pytest.mark.parametrize("by", ["tool", "bash"])
@pytest.mark.parametrize("data", [b"text\n", b"one\r\ntwo\r\n", b"\0\xff\x80binary", b"", b"x" * 3_000_000])
def test_what_was_changed_deleted_and_created_is_taken_back(desk: Desk, by: str, data: bytes) -> None:
    for name in ("changed", "deleted", "same"):
        (desk.project / name).write_bytes(data)
    before = desk.tree
    prompt = desk.prompt()
    if by == "tool":
        desk.tool("changed", b"other")
        desk.tool("deleted", None)
        desk.tool("deep/er/created", b"new")
    else:

        def work() -> None:
            (desk.project / "changed").write_bytes(b"other")
            (desk.project / "deleted").unlink()
            (desk.project / "deep/er").mkdir(parents=True)
            (desk.project / "deep/er/created").write_bytes(b"new")

        desk.bash(work)
    assert desk.planned(prompt) == {"changed": "write", "deep/er/created": "delete", "deleted": "write"}
    done = desk.points.restore(prompt)
    assert desk.tree == before
    assert not (desk.project / "deep").exists()
    assert (len(done.restored), done.skipped) == (3, ())
    assert set(desk.planned(prompt).values()) == {"unchanged"}


def test_a_renamed_file_gets_its_name_back(desk: Desk) -> None:
    (desk.project / "a").write_bytes(b"a")
    (desk.project / "a").chmod(0o750)
    before = desk.tree
    prompt = desk.prompt()
    desk.bash(lambda: (desk.project / "a").rename(desk.project / "b"))
    desk.points.restore(prompt)
    assert desk.tree == before


def test_what_a_file_held_at_a_prompt_can_be_read(desk: Desk) -> None:
    kept, made = desk.project / "kept.txt", desk.project / "made.txt"
    kept.write_text("before\n")
    prompt = desk.prompt()
    for path in (kept, made):
        desk.points.before_change(str(path))
        path.write_text("after\n")
    real = os.path.realpath(desk.project)
    assert desk.points.content(prompt, f"{real}/kept.txt") == b"before\n"
    assert desk.points.content(prompt, f"{real}/made.txt") is None
    with pytest.raises(NotFound):
        desk.points.content(prompt, f"{real}/other.txt")
    with pytest.raises(NotFound):
        desk.points.content("no such prompt", f"{real}/kept.txt")
    shutil.rmtree(Path(desk.config, "file-history"))
    with pytest.raises(Unreadable):
        desk.points.content(prompt, f"{real}/kept.txt")


def test_a_restore_is_undone_by_another(desk: Desk) -> None:
    (desk.project / "a").write_bytes(b"one")
    prompt = desk.prompt()
    desk.tool("a", b"two", 0o600)
    desk.bash(lambda: (desk.project / "b").write_bytes(b"b"))
    after = desk.tree
    done = desk.points.restore(prompt)
    taken_back = desk.tree
    assert taken_back != after
    again = desk.points.restore(done.undo_prompt)
    assert desk.tree == after
    desk.points.restore(again.undo_prompt)
    assert desk.tree == taken_back


def test_twice_in_a_row_is_once(desk: Desk) -> None:
    (desk.project / "a").write_bytes(b"one")
    prompt = desk.prompt()
    desk.tool("a", b"two")
    desk.points.restore(prompt)
    count = len(desk.records())
    assert desk.points.restore(prompt) == RestoreResult((), ())
    assert len(desk.records()) == count


def test_work_goes_on_after_a_restore(desk: Desk) -> None:
    first = desk.prompt()
    desk.tool("a", b"one")
    second = desk.prompt()
    desk.tool("a", b"two")
    desk.points.restore(second)
    third = desk.prompt()
    desk.tool("a", b"three")
    for prompt, content in ((second, b"one"), (third, b"one"), (first, None)):
        desk.points.restore(prompt)
        path = desk.project / "a"
        assert (path.read_bytes() if path.exists() else None) == content


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o444])
def test_modes_come_back_even_of_what_was_deleted(desk: Desk, mode: int) -> None:
    for name in ("rewritten", "deleted", "only-mode"):
        (desk.project / name).write_bytes(b"x")
        (desk.project / name).chmod(mode)
    before = desk.tree
    prompt = desk.prompt()
    desk.tool("rewritten", b"y", 0o640)

    def work() -> None:
        (desk.project / "deleted").unlink()
        (desk.project / "only-mode").chmod(0o640)

    desk.bash(work)
    desk.resume()
    desk.points.restore(prompt)
    assert desk.tree == before


def test_a_prompt_without_a_checkpoint_is_not_found(desk: Desk) -> None:
    desk.prompt()
    with pytest.raises(NotFound):
        desk.points.plan("nowhere")


# Others


@pytest.mark.parametrize("resumed", [False, True])
def test_what_somebody_else_has_changed_is_left_unless_forced(desk: Desk, *, resumed: bool) -> None:
    (desk.project / "a").write_bytes(b"one")
    (desk.project / "b").write_bytes(b"one")
    prompt = desk.prompt()
    desk.tool("a", b"two")
    desk.tool("b", b"two")
    (desk.project / "a").write_bytes(b"by hand")
    if resumed:
        desk.resume()
    assert [(Path(e.path).name, e.changed_externally) for e in desk.points.plan(prompt)] == [("a", True), ("b", False)]
    with pytest.raises(Busy, match="another program"):
        desk.points.restore(prompt)
    assert (desk.project / "b").read_bytes() == b"two"
    done = desk.points.restore(prompt, force=True)
    assert (desk.project / "a").read_bytes() == b"one"
    desk.points.restore(done.undo_prompt)
    assert (desk.project / "a").read_bytes() == b"by hand"


def test_what_is_changed_this_very_moment_is_left(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    (desk.project / "a").write_bytes(b"one")
    prompt = desk.prompt()
    desk.tool("a", b"two")
    mark = desk.points._record_snapshot

    def and_meanwhile(*given: Any) -> None:
        mark(*given)
        (desk.project / "a").write_bytes(b"by hand")

    monkeypatch.setattr(desk.points, "_record_snapshot", and_meanwhile)
    (left,) = desk.points.restore(prompt).skipped
    assert "changed during the restore" in left.obstacle
    assert (desk.project / "a").read_bytes() == b"by hand"


def test_what_somebody_else_does_elsewhere_is_not_touched(desk: Desk) -> None:
    (desk.project / "mine").write_bytes(b"one")
    prompt = desk.prompt()
    desk.bash(lambda: (desk.project / "a").write_bytes(b"a"))
    (desk.project / "mine").write_bytes(b"by hand")
    (desk.project / "new").write_bytes(b"by hand")
    desk.bash(lambda: (desk.project / "a").write_bytes(b"b"))
    desk.points.restore(prompt)
    assert {name: data for name, (_, data) in desk.tree.items()} == {"mine": b"by hand", "new": b"by hand"}


def test_what_somebody_else_has_deleted_comes_back(desk: Desk) -> None:
    (desk.project / "a").write_bytes(b"one")
    prompt = desk.prompt()
    desk.tool("a", b"two")
    (desk.project / "a").unlink()
    desk.points.restore(prompt)
    assert (desk.project / "a").read_bytes() == b"one"


# Links, and what is in the way


def test_links_that_commands_make_and_change_are_taken_back(desk: Desk) -> None:
    (desk.project / "file").write_bytes(b"x")
    (desk.project / "link").symlink_to("file")
    (desk.project / "gone").symlink_to("gone")
    before = desk.tree
    prompt = desk.prompt()

    def work() -> None:
        (desk.project / "link").unlink()
        (desk.project / "link").write_bytes(b"no link")
        (desk.project / "gone").unlink()
        (desk.project / "file").unlink()
        (desk.project / "file").symlink_to("/nowhere/at/all")
        (desk.project / "new").symlink_to(".")

    desk.bash(work)
    desk.resume()
    done = desk.points.restore(prompt)
    assert done.skipped == ()
    assert desk.tree == before


def test_a_folder_that_became_a_link_leads_nowhere(desk: Desk, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "made").write_bytes(b"not ours")
    (desk.project / "dir").mkdir()
    (desk.project / "dir/a").write_bytes(b"one")
    prompt = desk.prompt()
    desk.tool("dir/a", b"two")
    desk.tool("dir/made", b"made")

    def work() -> None:
        shutil.rmtree(desk.project / "dir")
        (desk.project / "dir").symlink_to(outside)

    desk.bash(work)
    done = desk.points.restore(prompt, force=True)
    assert tree_of(outside) == {"made": ((outside / "made").stat().st_mode, b"not ours")}
    assert {Path(e.path).name: "outside the project" in e.obstacle for e in done.skipped} == {"a": True, "made": True}


def test_a_file_outside_that_a_tool_has_changed_is_taken_back(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(b"one")
    (desk.project / "link").symlink_to(tmp_path / "outside")
    prompt = desk.prompt()
    desk.tool("../outside", b"two")
    assert desk.records()[-1]["trackingPath"] == str(tmp_path / "outside")
    desk.resume()
    desk.points.restore(prompt)
    assert (tmp_path / "outside").read_bytes() == b"one"


def test_files_and_folders_that_changed_places_change_back(desk: Desk) -> None:
    (desk.project / "file").write_bytes(b"x")
    (desk.project / "folder").mkdir()
    (desk.project / "folder/inside").write_bytes(b"y")
    before = desk.tree
    prompt = desk.prompt()

    def work() -> None:
        (desk.project / "file").unlink()
        (desk.project / "file").mkdir()
        (desk.project / "file/new").write_bytes(b"z")
        shutil.rmtree(desk.project / "folder")
        (desk.project / "folder").write_bytes(b"now a file")

    desk.bash(work)
    assert desk.points.restore(prompt).skipped == ()
    assert desk.tree == before


def test_a_folder_in_the_way_is_left_and_said(desk: Desk) -> None:
    (desk.project / "a").write_bytes(b"x")
    prompt = desk.prompt()
    desk.tool("a", None)
    (desk.project / "a").mkdir()
    (desk.project / "a/mine").write_bytes(b"by hand")
    (left,) = desk.points.restore(prompt).skipped
    assert "directory" in left.obstacle.lower()
    assert (desk.project / "a/mine").read_bytes() == b"by hand"


@pytest.mark.parametrize("damage", ["lost", "cut"])
def test_a_backup_that_is_lost_or_damaged_is_not_brought_back(desk: Desk, damage: str) -> None:
    (desk.project / "a").write_bytes(b"before")
    prompt = desk.prompt()
    desk.tool("a", b"after")
    folder = Path(desk.config, "file-history", desk.recorder.session_id)
    (backup,) = folder.iterdir()
    if damage == "lost":
        backup.unlink()
    else:
        backup.write_bytes(b"bef")
    (left,) = desk.points.restore(prompt).skipped
    assert {"lost": "missing", "cut": "damaged"}[damage] in left.obstacle
    assert (desk.project / "a").read_bytes() == b"after"


@contextmanager
def unreadable(name: str) -> Generator[None]:
    real = os.open

    def refuse(path: str, *rest: int) -> int:
        if Path(path).name == name:
            raise PermissionError(13, "Permission denied")
        return real(path, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", refuse)
        yield


def test_a_file_that_cannot_be_read_stops_nothing_else(desk: Desk) -> None:
    (desk.project / "locked").write_bytes(b"x")
    (desk.project / "a").write_bytes(b"one")
    first = desk.prompt()
    desk.tool("locked", b"y")
    desk.tool("a", b"two")
    with unreadable("locked"):
        desk.prompt()
        assert any("permission denied" in words for words in desk.notices)
        with pytest.raises(Unreadable):
            desk.points._back_up(str(desk.project / "locked"))
        (left,) = desk.points.restore(first).skipped
    assert "permission denied" in left.obstacle
    assert (desk.project / "a").read_bytes() == b"one"
    assert (desk.project / "locked").read_bytes() == b"y"


def test_what_a_command_does_to_an_unreadable_file_is_said(desk: Desk) -> None:
    (desk.project / "locked").write_bytes(b"x")
    desk.prompt()
    with unreadable("locked"):
        desk.bash((desk.project / "locked").unlink)
    assert desk.notices == ["locked was deleted and cannot be restored."]


# Commands


def test_too_big_a_tree_is_said_once_and_files_of_tools_still_come_back(tmp_path: Path) -> None:
    desk = Desk(tmp_path, limits=TreeLimits(files=2))
    for name in "abc":
        (desk.project / name).write_bytes(b"one")
    desk.prompt()
    desk.tool("a", b"two")
    prompt = desk.prompt()
    for data in (b"three", b"four"):

        def work(data: bytes = data) -> None:
            for name in "ab":
                (desk.project / name).write_bytes(data)

        desk.bash(work)
    assert len(desk.notices) == 1
    assert "too large" in desk.notices[0]
    desk.points.restore(prompt)
    assert [(desk.project / name).read_bytes() for name in "ab"] == [b"two", b"four"]


def test_commands_side_by_side_are_all_seen(desk: Desk) -> None:
    before = desk.tree
    prompt = desk.prompt()

    async def act() -> None:
        async with desk.points.track_call("Bash"):
            (desk.project / "a").write_bytes(b"a")
            async with desk.points.track_call("Bash"):
                (desk.project / "b").write_bytes(b"b")
            (desk.project / "c").write_bytes(b"c")

    asyncio.run(act())
    assert sorted(desk.planned(prompt)) == ["a", "b", "c"]
    desk.points.restore(prompt)
    assert desk.tree == before


def test_what_runs_in_the_background_is_seen_at_the_next_look(desk: Desk) -> None:
    first = desk.prompt()
    running = True
    desk.points.has_background_commands = lambda: running

    async def act() -> None:
        async with desk.points.track_call("Bash", background=True):
            pass

    asyncio.run(act())
    (desk.project / "late").write_bytes(b"x")
    second = desk.prompt()
    running = False
    (desk.project / "later").write_bytes(b"x")
    third = desk.prompt()
    (desk.project / "by-hand").write_bytes(b"x")
    desk.bash(lambda: None)
    assert desk.planned(second) == {"late": "unchanged", "later": "delete"}
    assert desk.planned(third) == {"late": "unchanged", "later": "unchanged"}
    desk.points.restore(first)
    assert list(desk.tree) == ["by-hand"]


def test_a_command_that_is_broken_off_is_looked_at_all_the_same(desk: Desk) -> None:
    prompt = desk.prompt()

    async def act() -> None:
        async with desk.points.track_call("Bash"):
            (desk.project / "half").write_bytes(b"x")
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(act())
    assert desk.planned(prompt) == {"half": "delete"}
    desk.bash(lambda: None)


def test_a_store_that_cannot_be_written_stops_no_command(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    (desk.project / "a").write_bytes(b"x")
    desk.prompt()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        desk.bash(lambda: (desk.project / "a").write_bytes(b"y"))
    assert len(desk.notices) == 1
    assert "No space left" in desk.notices[0]


def test_own_files_are_never_taken_back(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.project = tmp_path
    desk.points = desk._points()
    prompt = desk.prompt()
    desk.bash(lambda: (tmp_path / "a").write_bytes(b"x"))
    desk.points.before_change(desk.recorder.path)
    desk.points.before_change(str(tmp_path / "steno" / "x"))
    assert desk.planned(prompt) == {"a": "delete"}


# Sessions that go on


@pytest.mark.parametrize("version", ["2.0.76", "2.1.42", "2.1.325"])
def test_a_session_of_the_real_client_is_taken_back(shared: Path, tmp_path: Path, version: str) -> None:
    source = shared / "corpus/real-client" / version / "tui_basic"
    (backups,) = (source / "file-history").iterdir()
    (path,) = (source / "projects").rglob(f"{backups.name}.jsonl")
    desk = Desk(tmp_path)
    shutil.copytree(source / "file-history", Path(desk.config, "file-history"), copy_function=shutil.copyfile)
    for folder in Path(desk.config).rglob("*"):
        folder.chmod(0o700)
    place = msgspec.structs.replace(desk.recorder.composer.context, session_id=path.stem)
    desk.recorder = Recorder(str(tmp_path / path.name), place)
    desk.points = desk._points()
    desk.points.resume(load(BytesSource(path.read_bytes())))
    first, tools, *_ = desk.points.prompts
    (original,) = [each.read_bytes() for each in backups.iterdir() if each.name.endswith("@v1")]
    (desk.project / "new.txt").write_bytes(b"alpha\ngamma\n")
    (desk.project / "a.py").write_bytes(b"x = 3\nprint(x)\n")
    last = desk.points.prompts[-1]
    assert desk.planned(last) == {"a.py": "unchanged", "new.txt": "unchanged"}
    for prompt in (tools, first):
        done = desk.points.restore(prompt)
        assert {name: data for name, (_, data) in desk.tree.items()} == {"a.py": original}
        assert done.skipped == ()
    # And on from there: new versions, under new names.
    desk.prompt()
    tracked = desk.records()[-1]["snapshot"]["trackedFileBackups"]
    assert tracked["new.txt"]["backupFileName"] is None
    assert tracked["a.py"]["version"] > 2
    desk.points.restore(last)
    assert (desk.project / "a.py").read_bytes() == b"x = 3\nprint(x)\n"


def test_every_session_of_the_newest_client_can_be_taken_up(shared: Path, tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    paths = sorted((shared / "corpus/real-client/2.1.325").glob("tui_*/projects/*/*.jsonl"))
    assert paths
    for path in paths:
        desk.points = desk._points()
        desk.points.resume(load(BytesSource(path.read_bytes())))
        for prompt in desk.points.prompts:
            desk.points.plan(prompt)


@pytest.mark.parametrize(
    "record",
    [
        {"snapshot": None},
        {"snapshot": {"messageId": 7, "trackedFileBackups": {}}},
        {"snapshot": {"messageId": "p", "trackedFileBackups": []}},
        {"snapshot": {"messageId": "p", "trackedFileBackups": {"victim": None}}},
        {
            "snapshot": {
                "messageId": "p",
                "trackedFileBackups": {
                    "victim": {"backupFileName": "../../../../secret", "version": 1},
                    "": {"backupFileName": None, "version": 1},
                    "nul\0": {"backupFileName": None, "version": 1},
                    "../outside": {"backupFileName": None, "version": 1},
                    "ABSOLUTE": {"backupFileName": None, "version": 1},
                },
            }
        },
    ],
)
def test_records_that_make_no_sense_or_mean_harm_do_none(desk: Desk, record: dict[str, Any], tmp_path: Path) -> None:
    (desk.project / "victim").write_bytes(b"x")
    for name in ("outside", "elsewhere"):
        (tmp_path / name).write_bytes(b"x")
    # Only ever files of the test's own: what fails here deletes them.
    backups = (record.get("snapshot") or {}).get("trackedFileBackups")
    if isinstance(backups, dict) and "ABSOLUTE" in backups:
        backups[str(tmp_path / "elsewhere")] = backups.pop("ABSOLUTE")
    desk.recorder.write({"type": "file-history-snapshot", "messageId": "p", **record})
    desk.resume()
    for prompt in desk.points.prompts:
        desk.points.restore(prompt, force=True)
    assert (desk.project / "victim").exists()
    assert (tmp_path / "outside").exists()
    assert (tmp_path / "elsewhere").exists()


def test_of_several_records_of_a_turn_the_first_tells_what_a_file_was(desk: Desk) -> None:
    (desk.project / "a").write_bytes(b"one")
    prompt = desk.prompt()
    desk.tool("a", b"two")
    delta = desk.records()[-1]
    desk.prompt()
    newer = desk.records()[-1]["snapshot"]["trackedFileBackups"]["a"]
    desk.recorder.write({**delta, "backup": newer})
    desk.resume()
    desk.points.restore(prompt)
    assert (desk.project / "a").read_bytes() == b"one"


def test_a_fork_can_take_back_what_was_changed_before_it(desk: Desk) -> None:
    (desk.project / "a").write_bytes(b"one")
    (desk.project / "a").chmod(0o700)
    before = desk.tree
    prompt = desk.prompt()
    desk.tool("a", b"two")
    data, origin = Path(desk.recorder.path).read_bytes(), desk.recorder.session_id
    desk.recorder = new_session(desk.config, str(desk.project)).conversation.recorder
    desk.points = desk._points()
    desk.points.resume(load(BytesSource(data)), origin=origin)
    shutil.rmtree(Path(desk.config, "file-history", origin))
    desk.points.restore(prompt)
    assert desk.tree == before


# Whatever happens


class Killed(BaseException):
    """The end, in the middle of something."""


def test_a_kill_at_any_exchange_leaves_every_file_old_or_new(tmp_path: Path) -> None:
    ends = 0
    for limit in range(100):
        folder = tmp_path / str(limit)
        folder.mkdir()
        desk = Desk(folder)
        for name in "abc":
            (desk.project / name).write_bytes(b"old")
        old = desk.tree
        prompt = desk.prompt()
        for name in "abc":
            desk.tool(name, b"new")
        desk.bash(lambda desk=desk: (desk.project / "d").write_bytes(b"made"))
        new_tree = desk.tree
        if _restored_until(desk, prompt, limit):
            assert desk.tree == old
            break
        ends += 1
        now = desk.tree
        for name in {*old, *new_tree, *now}:
            assert now.get(name) in (old.get(name), new_tree.get(name))
        # The next process brings it to its end, and can undo what was done before.
        desk.resume()
        desk.points.restore(prompt)
        assert desk.tree == old
    assert ends >= 6


def _restored_until(desk: Desk, prompt: str, limit: int) -> bool:
    real, count = os.replace, 0

    def die(source: str, target: str) -> None:
        nonlocal count
        if count == limit:
            raise Killed
        count += 1
        real(source, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", die)
        try:
            desk.points.restore(prompt)
        except Killed:
            return False
    return True


_NAMES = ("a", "b", "d/c", "d/e/f")
_MODES = (0o644, 0o755, 0o600)
_CHANGE = st.tuples(
    st.sampled_from(_NAMES), st.none() | st.binary(max_size=2) | st.just("link"), st.sampled_from(_MODES)
)
_STEP = st.one_of(
    st.tuples(st.just("tool"), st.lists(_CHANGE, min_size=1, max_size=2)),
    st.tuples(st.just("bash"), st.lists(_CHANGE, min_size=1, max_size=3)),
    st.tuples(st.just("prompt"), st.just([])),
    st.tuples(st.just("resume"), st.just([])),
    st.tuples(st.just("restore"), st.just([])),
)


def _change(desk: Desk, name: str, data: bytes | str | None, mode: int) -> None:
    path = desk.project / name
    path.unlink(missing_ok=True)
    if data is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(data, str):
        path.symlink_to(data)
        return
    path.write_bytes(data)
    path.chmod(mode)


def _work(desk: Desk, kind: str, changes: list[Any]) -> None:
    if kind == "bash":
        desk.bash(lambda: [_change(desk, *each) for each in changes])
        return
    for name, data, mode in changes:
        # Tools follow links before they say what they change.
        if not isinstance(data, str) and not (desk.project / name).is_symlink():
            desk.tool(name, data, mode)


def _back(desk: Desk, moments: dict[str, Tree]) -> str:
    """Take files back to the first prompt; return what would undo it."""
    first = next(iter(moments))
    done = desk.points.restore(first)
    assert desk.tree == moments[first]
    return done.undo_prompt or first


@settings(max_examples=60)
@given(start=st.dictionaries(st.sampled_from(_NAMES), st.binary(max_size=2)), steps=st.lists(_STEP, max_size=10))
def test_any_prompt_gives_exactly_the_tree_of_that_moment(
    tmp_path_factory: pytest.TempPathFactory, start: dict[str, bytes], steps: list[Any]
) -> None:
    desk = Desk(tmp_path_factory.mktemp("desk"))
    for name, data in start.items():
        _change(desk, name, data, 0o644)
    moments = {desk.prompt(): desk.tree}
    for kind, changes in steps:
        if kind == "resume":
            desk.resume()
        elif kind in ("prompt", "restore"):
            tree = desk.tree
            moments[_back(desk, moments) if kind == "restore" else desk.prompt()] = tree
        else:
            _work(desk, kind, changes)
    for prompt, tree in [*moments.items(), *reversed(moments.items())]:
        assert desk.points.restore(prompt).skipped == ()
        assert desk.tree == tree
    assert desk.notices == []


# With a model


def test_an_agent_with_real_tools_leaves_a_session_that_checks_clean(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("alpha\n")
    (project / "b.txt").write_text("beta\n")
    read = tool("Read", file_path=str(project / "a.txt"))
    edit = tool("Edit", file_path=str(project / "a.txt"), old_string="alpha", new_string="omega")
    write = tool("Write", file_path=str(project / "new/c.txt"), content="gamma\n")
    bash = tool("Bash", command="rm b.txt; printf x > d.txt; chmod 755 d.txt")
    script = ScriptedResponder().on("go", [read]).then([edit, write, bash]).then("Done.").on("more", "Well.")
    stage = Stage(project, script)
    stage.tools = [Read(), Edit(), Write(), Bash()]
    before = tree_of(project)

    async def act(agent: Agent) -> FileCheckpointer:
        agent.executor.context.env = dict(os.environ)
        points = FileCheckpointer(stage.config, agent.conversation.recorder, stage.cwd)
        agent.executor.context.before_change = points.before_change
        agent.executor.checkpointer = points
        await agent.run_turn("go")
        await agent.run_turn("more")
        return points

    points = stage.play(act)
    stage.check()
    first, second = points.prompts
    assert {Path(each.path).name: each.action for each in points.plan(first)} == {
        "a.txt": "write",
        "b.txt": "write",
        "c.txt": "delete",
        "d.txt": "delete",
    }
    assert {each.action for each in points.plan(second)} == {"unchanged"}
    points.restore(first)
    shutil.rmtree(project / "config")
    assert tree_of(project) == before
