"""The edges of the store: names that begin so, folders and links set aside, copies that only grow."""

import json
import os
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

import pytest
from tests.index.transcripts import Script
from tests.store.relocate.moving import unflushed
from tests.store.test_archive import kept_at

from steno.errors import Ambiguous, NotFound, Unreadable, Unwritable
from steno.store import atomic, damaged_files, dirfd, replace
from steno.store.archive import copies
from steno.store.archive.archive import Archive
from steno.store.atomic import TempFile, file_identity
from steno.store.dirfd import Directory
from steno.store.discovery import discover_file, is_folder, list_folder
from steno.store.file_source import FileSource
from steno.store.relocate import execution
from steno.store.replace import list_backups, swap
from steno.store.safe_output import write_output_file
from steno.store.session_counts import count_agents
from steno.store.session_lock import is_recently_written
from steno.store.session_lookup import find
from steno.store.summary import END_SIZE, summarize
from steno.store.watch.incremental import IncrementalReader
from steno.store.watch.watcher import (
    ActivityEnded,
    EventsLost,
    FileWatcher,
    FollowedFile,
    FsEventListener,
    PathsChanged,
)

ONE: Final = "11111111-2222-4000-8000-000000000001"
DEAD: Final = 4_194_305
"""A process number that Linux never gives out."""


def _session(tmp_path: Path, *texts: str) -> Path:
    folder = tmp_path / "projects" / "-p"
    folder.mkdir(parents=True, exist_ok=True)
    script = Script()
    for text in texts or ("One",):
        script.user(text).bot("Two")
    path = folder / f"{ONE}.jsonl"
    path.write_bytes(script.bytes())
    return path


# Names


def test_a_session_is_found_by_the_beginning_of_its_file_name_and_not_by_its_end(tmp_path: Path) -> None:
    """Its records say another id."""
    path = _session(tmp_path)
    for name in (ONE, ONE[:4], ONE[:20], ONE[:8].upper()):
        assert find(name, str(tmp_path)).path == str(path)
    for name in (ONE[-8:], ONE[4:], ONE[:3]):
        with pytest.raises(NotFound):
            find(name, str(tmp_path))


@pytest.mark.parametrize("name", ["areview-0123456789abcdef", "a318043", "aa4e0dbe5b26c1968"])
def test_a_sub_agent_is_found_by_its_id_in_every_form(tmp_path: Path, name: str) -> None:
    session = _session(tmp_path)
    agent = session.with_suffix("") / "subagents" / f"agent-{name}.jsonl"
    agent.parent.mkdir(parents=True)
    agent.write_bytes(Script().user("Look", isSidechain=True, agentId=name).bytes())
    for each in (name, f"agent-{name}", name.upper()):
        assert find(each, str(tmp_path)).path == str(agent)


@pytest.mark.parametrize("number", [2, 5, 6, 7, 8])
def test_of_many_sessions_that_fit_six_are_listed(tmp_path: Path, number: int) -> None:
    folder = tmp_path / "projects" / "-p"
    folder.mkdir(parents=True)
    ids = [f"aaaa{n:04}-2222-4000-8000-000000000001" for n in range(number)]
    for at, name in enumerate(ids):
        path = folder / f"{name}.jsonl"
        path.write_bytes(Script().user("One").bytes())
        os.utime(path, (2e9 - at, 2e9 - at))
    with pytest.raises(Ambiguous) as refused:
        find("aaaa", str(tmp_path))
    assert refused.value.candidates == tuple(ids)
    more = f" and {number - 6} more" if number > 6 else ""
    assert refused.value.hint == f"Use one of: {', '.join(ids[:6])}{more}"


def test_only_sub_agents_that_were_asked_something_are_counted(tmp_path: Path) -> None:
    session = _session(tmp_path)
    folder = session.with_suffix("") / "subagents"
    folder.mkdir(parents=True)
    files: list[Any] = []
    for number, words in enumerate(("Warmup", " Warmup ", "Warmup now", "Look", "")):
        path = folder / f"agent-a{number:06}.jsonl"
        first = Script().raw({"type": "mode", "mode": "Warmup"}) if number == 3 else Script()
        path.write_bytes(first.user(words, isSidechain=True, agentId=f"a{number:06}").bytes())
        files.append(discover_file(str(path)))
    assert [count_agents(discover_file(str(session)), [each]) for each in files] == [0, 0, 1, 1, 1]
    assert count_agents(discover_file(str(session)), files) == 3


# What is left behind


def test_what_dead_runs_left_is_swept_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    names = [
        f".a.jsonl.{DEAD}-0123456789ab.steno-tmp",
        f".b.jsonl.{DEAD}-0123456789ab.steno-tmp",
        f".a.jsonl.{os.getpid()}-0123456789ab.steno-tmp",
        f".a.jsonl.{DEAD}-0123456789a.steno-tmp",
        "a.jsonl",
    ]
    for name in names:
        (tmp_path / name).write_bytes(b"x")
    assert atomic.remove_stale_temp_files(str(tmp_path / "a.jsonl")) == [str(tmp_path / names[0])]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names[1:])
    assert atomic.remove_stale_in_folder(str(tmp_path)) == [str(tmp_path / names[1])]
    assert atomic.remove_stale_in_folder(str(tmp_path / "none")) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names[2:])


def test_of_damaged_folders_files_and_links_the_last_three_are_kept(tmp_path: Path) -> None:
    """A link goes, and what it leads to stays."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").write_bytes(b"x")
    place = tmp_path / "state"
    old = [tmp_path / f"state.damaged-2020010{n}T000000Z" for n in range(1, 6)]
    old[0].symlink_to(elsewhere)
    old[1].mkdir()
    (old[1] / "inside").write_bytes(b"x")
    old[2].write_bytes(b"x")
    old[3].mkdir()
    old[4].write_bytes(b"x")
    place.mkdir()
    new = damaged_files.move_aside(str(place), "the state", only_folder=True)
    assert sorted(tmp_path.glob("state*")) == [*old[3:], Path(new)]
    assert (elsewhere / "kept").read_bytes() == b"x"


# Folders


def test_a_folder_that_another_process_makes_first_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def is_only_folder(path: str) -> bool:
        return path == str(tmp_path)

    monkeypatch.setattr(os.path, "isdir", is_only_folder)
    assert atomic.make_private_folder(str(tmp_path / "new")) is True
    assert atomic.make_private_folder(str(tmp_path / "new")) is False


def test_a_link_to_itself_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (entry,) = list_folder(str(tmp_path), [])
    assert is_folder(entry, links=True) is False
    assert is_folder(entry, links=False) is False


@pytest.mark.parametrize("holds", [True, False])
def test_files_are_put_and_added_where_folders_can_be_held_open_and_where_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, holds: bool
) -> None:
    monkeypatch.setattr(dirfd, "_HAS_DIR_FD", holds)
    monkeypatch.chdir("/")
    with pytest.raises(FileNotFoundError), Directory(str(tmp_path / "a" / "b")) as folder:
        folder.status("none")
    with Directory(str(tmp_path / "a" / "b"), make=True) as folder:
        folder.add_file("one", b"1")
        with pytest.raises(FileExistsError):
            folder.add_file("one", b"2")
        status = folder.status("one")
        put = folder.replace_file("one", b"22", status)
        assert (put.st_size, put.st_mode) == (2, status.st_mode)
        assert (folder.stable_path == folder.path) is (not holds)
        assert [path.name for path in Path(folder.stable_path).iterdir()] == ["one"]
    assert folder.stable_path == folder.path
    assert (tmp_path / "a" / "b" / "one").read_bytes() == b"22"
    assert write_output_file(str(tmp_path / "a" / "two"), b"3") == str(tmp_path / "a" / "two")
    assert (tmp_path / "a" / "two").read_bytes() == b"3"


# Exchanges


def test_a_receipt_that_cannot_be_written_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = _session(tmp_path)
    before = path.read_bytes()
    (tmp_path / "projects" / "-p" / f"{ONE}.jsonl.before-repair.json").mkdir()
    seen = file_identity(str(path))
    with TempFile(str(path)) as written:
        written.write([b"new\n"])
        with pytest.raises(Unwritable) as refused:
            swap(written, str(path), seen, check_clients=False)
    assert str(refused.value).startswith(f"cannot write {path}.before-repair.json: ")
    assert path.read_bytes() == before
    # A second name of the file itself is no backup.
    assert list_backups(str(path)) == []
    path.unlink()
    assert list_backups(str(path)) == [f"{path}.before-repair"]


def test_on_windows_nothing_is_asked_that_it_cannot_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No signal to a process, which would end it; no folder is flushed; no file is held open."""
    path = str(_session(tmp_path))
    none = str(tmp_path / "none" / "x")
    seen = file_identity(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "name", "nt")
        ran = [atomic.is_process_alive(DEAD), atomic.is_process_alive(0), atomic.is_process_alive(-1)]
        flushed = atomic.sync_folder(none)
        with vars(replace)["_OpenOriginal"](none) as held:
            written = held.was_written(seen, none)
    assert ran == [True, False, False]
    assert flushed is None
    assert written is False
    assert atomic.is_process_alive(DEAD) is False


def test_sessions_are_carried_last_and_their_sub_agents_before_them() -> None:
    class Carried:
        def __init__(self, source: str, *, session: bool) -> None:
            self.source, self.session = source, session

    steps = [
        Carried("/p/x.jsonl", session=True),
        Carried("/p/agent-1.jsonl", session=True),
        Carried("/agent-2/memory.md", session=False),
        Carried("/p/agent-3.md", session=False),
    ]
    order = sorted(steps, key=vars(execution)["_sessions_last"])
    assert [step.source for step in order] == [
        *("/p/agent-3.md", "/agent-2/memory.md", "/p/agent-1.jsonl", "/p/x.jsonl")
    ]


# Files that grow


def test_a_file_that_began_anew_goes_on_from_there(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"first\n")
    growing = IncrementalReader(str(path), 0)
    assert b"".join(growing.read_new()) == b"first\n"
    path.unlink()
    path.write_bytes(b"new\n")
    looks: list[tuple[bool, bytes]] = []
    for added in (b"", b"more\n", b"", b"and more\n"):
        with path.open("ab") as file:
            file.write(added)
        looks.append((growing.detect_replacement(), b"".join(growing.read_new())))
    assert looks == [(True, b"new\n"), (False, b"more\n"), (False, b""), (False, b"and more\n")]


def test_what_a_sub_agent_is_was_told_once(tmp_path: Path) -> None:
    """The note beside it is read until it is there, and beside a session none is."""
    path = tmp_path / "agent-a318043.jsonl"
    note = tmp_path / "agent-a318043.meta.json"
    path.write_bytes(Script().user("Look", isSidechain=True).bytes())
    agent = FollowedFile(str(path), ONE, "a318043")
    session = FollowedFile(str(path), ONE)
    assert agent.agent_brief().kind == ""
    for kind, told in (("first", "first"), ("second", "first")):
        note.write_text(json.dumps({"agentType": kind, "description": "d"}))
        assert (agent.agent_brief().kind, session.agent_brief().kind) == (told, "")


def test_the_first_whole_line_of_the_end_of_a_long_file_is_read(tmp_path: Path) -> None:
    """The title is the first line behind the place where the end begins."""
    title = b'{"type":"custom-title","customTitle":"Own","sessionId":"s"}\n'
    start = Script().user("One").bot("Two").bytes()
    note = b'{"type":"mode","mode":"%s"}\n'
    for inside in (1, 2, 50):
        last = note % (b"y" * (END_SIZE - len(title) - inside - len(note) + 2))
        data = start + note % (b"x" * (2 * END_SIZE)) + title + last
        path = tmp_path / f"{ONE}.jsonl"
        path.write_bytes(data)
        assert len(title + last) == END_SIZE - inside
        assert summarize(discover_file(str(path)), 0.0).title == "Own"


# The archive


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(os, "fsync", unflushed)
    path = tmp_path / f"{ONE}.jsonl"
    path.write_bytes(Script().user("One").bytes())
    return path


def test_each_change_says_how_much_it_added_and_how_much_that_takes(file: Path) -> None:
    sizes: list[int] = []
    before = 0
    for number in range(3):
        with file.open("ab") as more:
            more.write(Script().user(f"More {number}").bytes())
        (change,) = kept_at(file).changes
        archive = Archive()
        index = archive.journal(archive.entry(str(file)))
        (kept,) = index.files.values()
        sizes.append(Path(index.copy_path(kept)).stat().st_size)
        assert change.packed == sizes[-1] - (sizes[-2] if number else 0)
        assert change.added == file.stat().st_size - before
        before = file.stat().st_size
        assert (change.begun, change.generation) == (number == 0, 1)
    assert sizes == sorted(set(sizes))


def test_a_file_that_is_as_it_was_is_not_opened_again(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept_at(file)
    opened: list[str] = []

    class Watched(FileSource):
        def __init__(self, path: str) -> None:
            opened.append(path)
            super().__init__(path)

    monkeypatch.setattr(copies, "FileSource", Watched)
    assert kept_at(file).changes == ()
    assert opened == []
    os.utime(file, (1e9, 1e9))
    assert kept_at(file).changes == ()
    assert opened == [str(file)]


def test_the_name_of_a_new_copy_is_on_the_disk_before_its_line(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is only added to a copy has its name already."""
    steps: list[str] = []
    flush, write = copies.sync_folder, copies.write_all

    def flushed(folder: str) -> None:
        steps.append("folder")
        flush(folder)

    def appended(descriptor: int, data: bytes) -> None:
        steps.append("write")
        write(descriptor, data)

    monkeypatch.setattr(copies, "sync_folder", flushed)
    monkeypatch.setattr(copies, "write_all", appended)
    kept_at(file)
    assert steps[-2:] == ["folder", "write"]
    steps.clear()
    with file.open("ab") as more:
        more.write(Script().user("More").bytes())
    kept_at(file)
    assert steps
    assert "folder" not in steps


def test_a_copy_that_cannot_be_written_to_is_said(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, flags: int) -> int:
        if path.endswith(".zst"):
            raise PermissionError(13, "Permission denied", path)
        return atomic.open_private(path, flags)

    monkeypatch.setattr(copies, "open_private", refuse)
    with pytest.raises((Unwritable, Unreadable)) as refused:
        kept_at(file)
    assert str(refused.value).startswith("cannot write ")
    assert str(refused.value).endswith(": permission denied")


# What the system says


class _Notify:
    """Says what a test has written down, and notes what it is asked."""

    asked: Final[list[tuple[Any, ...]]] = []
    answers: Final[list[Any]] = []

    def __init__(self, *options: Any) -> None:
        self.asked.append(options)

    def watch(self, *options: Any) -> Any:
        self.asked.append(options[:3])
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        self.asked.append(("closed",))


@pytest.mark.parametrize("deep", [True, False])
@pytest.mark.parametrize("last", ["stop", RuntimeError("broken")])
def test_an_ear_passes_on_what_it_is_told_and_waits_longer_when_it_is_quiet(
    monkeypatch: pytest.MonkeyPatch, last: str | RuntimeError, *, deep: bool
) -> None:
    from watchfiles import _rust_notify

    monkeypatch.setattr(_rust_notify, "RustNotify", _Notify)
    _Notify.asked.clear()
    _Notify.answers[:] = [{(1, "/a")}, "timeout", {(2, "/b")}, last]
    said: SimpleQueue[Any] = SimpleQueue()
    ear = FsEventListener(["/x", "/y"], said, recursive=deep)
    ear.close()
    busy, quiet = (200, 40, 5_000), (200, 400, 0)
    options = (["/x", "/y"], False, False, 0, deep, True)
    assert _Notify.asked == [options, busy, busy, quiet, busy, ("closed",)]
    heard = [said.get_nowait() for _ in range(said.qsize())]
    assert heard == [
        PathsChanged(frozenset({(1, "/a")})),
        ActivityEnded(),
        PathsChanged(frozenset({(2, "/b")})),
        *([] if last == "stop" else [EventsLost("broken")]),
    ]


def test_a_watch_that_is_stopped_is_woken(tmp_path: Path) -> None:
    made = FileWatcher([str(tmp_path)])
    made.stop()
    assert vars(made)["_events"].get_nowait() is None


def test_a_file_is_fresh_for_less_than_three_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STENO_NOW", "2026-11-15T12:00:00Z")
    now = 1_794_744_000_000
    ages = (-3_001, -3_000, -2_999, 0, 2_999, 3_000, 3_001)
    fresh = [age for age in ages if is_recently_written((now - age) * 1_000_000)]
    assert fresh == [-2_999, 0, 2_999]
