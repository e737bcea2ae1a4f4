"""Watch: what changed below some roots, with real files and no sleeping."""

import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.builders import session

from steno.store.discovery import discover_file
from steno.store.watch import watcher
from steno.store.watch.incremental import IncrementalReader
from steno.store.watch.watcher import (
    ActivityEnded,
    Changes,
    EventsLost,
    FileWatcher,
    MultiTail,
    PathsChanged,
    WatchEvent,
    WatchUnsupported,
    make_watch_plan,
)

if TYPE_CHECKING:
    from queue import SimpleQueue

NAME = "5f0c1d2e-1111-4222-8333-444455556666"
MADE = session().turn("one", "first")
LINES = MADE.bytes().splitlines(keepends=True)


class Listener:
    """Goes through a watch; every wait is bounded by the timeout of the test alone."""

    def __init__(self, *roots: Path | str, reconcile: float = 300.0) -> None:
        self.watch = FileWatcher([str(root) for root in roots], reconcile)
        self.answers: Iterator[Changes] = iter(self.watch)

    def next(self) -> Changes:
        return next(self.answers)

    def until(self, path: Path | str) -> Changes:
        """Wait for news of a file."""
        while True:
            changes = self.next()
            if str(path) in changes.paths:
                return changes


@pytest.fixture
def listen() -> Iterator[type[Listener]]:
    made: list[Listener] = []

    class Kept(Listener):
        def __init__(self, *roots: Path | str, reconcile: float = 300.0) -> None:
            super().__init__(*roots, reconcile=reconcile)
            made.append(self)

    yield Kept
    for listener in made:
        listener.watch.close()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "config" / "projects" / "-home-ada-tidegauge"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def file(project: Path) -> Path:
    path = project / f"{NAME}.jsonl"
    path.write_bytes(LINES[0])
    return path


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def root_of(project: Path) -> Path:
    return project.parent.parent


def test_the_first_answer_says_that_the_watch_stands(listen: type[Listener], project: Path) -> None:
    assert listen(root_of(project)).next() == Changes(frozenset(), rescan=True)


def test_a_file_that_grows_is_told(listen: type[Listener], file: Path) -> None:
    listener = listen(root_of(file.parent))
    listener.next()
    append(file, LINES[1])
    assert listener.next() == Changes(frozenset([str(file)]))


def test_a_file_that_appears_is_told(listen: type[Listener], project: Path) -> None:
    listener = listen(root_of(project))
    listener.next()
    fresh = project / f"{NAME}.jsonl"
    fresh.write_bytes(LINES[0])
    listener.until(fresh)


def test_a_project_that_appears_is_told_with_its_files(listen: type[Listener], project: Path) -> None:
    listener = listen(root_of(project))
    listener.next()
    fresh = project.parent / "-home-ada-gravel" / f"{NAME}.jsonl"
    fresh.parent.mkdir()
    fresh.write_bytes(LINES[0])
    listener.until(fresh)
    append(fresh, LINES[1])
    listener.until(fresh)


def test_a_sub_agent_in_a_folder_made_late_is_told(listen: type[Listener], file: Path) -> None:
    listener = listen(root_of(file.parent))
    listener.next()
    agent = file.with_suffix("") / "subagents" / "agent-a1b2c3d.jsonl"
    agent.parent.mkdir(parents=True)
    agent.write_bytes(LINES[0])
    listener.until(agent)
    append(agent, LINES[1])
    listener.until(agent)


def test_a_file_that_is_replaced_by_a_rename_is_told(listen: type[Listener], file: Path) -> None:
    listener = listen(root_of(file.parent))
    listener.next()
    other = file.with_name("fresh.new")
    other.write_bytes(LINES[1])
    other.replace(file)
    listener.until(file)


def test_a_file_that_shrinks_or_goes_is_told(listen: type[Listener], file: Path) -> None:
    listener = listen(root_of(file.parent))
    listener.next()
    os.truncate(file, 3)
    listener.until(file)
    file.unlink()
    listener.until(file)


def test_a_project_that_goes_is_told_with_its_files(listen: type[Listener], file: Path) -> None:
    listener = listen(root_of(file.parent))
    listener.next()
    file.parent.rename(file.parents[3] / "elsewhere")
    listener.until(file)


def test_files_that_are_no_transcripts_are_no_news(listen: type[Listener], file: Path) -> None:
    listener = listen(root_of(file.parent))
    listener.next()
    results = file.with_suffix("") / "tool-results"
    results.mkdir(parents=True)
    (results / "a.jsonl").write_bytes(b"{}")
    (file.parent / "notes.txt").write_bytes(b"x")
    append(file, LINES[1])
    assert listener.until(file).paths == {str(file)}


def test_a_root_that_is_not_there_yet_is_awaited(listen: type[Listener], tmp_path: Path) -> None:
    root = tmp_path / "home" / "ada" / ".claude"
    listener = listen(root)
    assert listener.next().rescan
    fresh = root / "projects" / "-home-ada" / f"{NAME}.jsonl"
    fresh.parent.mkdir(parents=True)
    fresh.write_bytes(LINES[0])
    listener.until(fresh)
    append(fresh, LINES[1])
    listener.until(fresh)


def test_a_root_that_is_replaced_is_followed_to_the_new_one(listen: type[Listener], file: Path) -> None:
    projects = file.parent.parent
    listener = listen(projects.parent)
    listener.next()
    projects.rename(projects.with_name("old"))
    assert any(changes.rescan for changes in iter(listener.next, None))
    file.parent.mkdir(parents=True)
    file.write_bytes(LINES[1] * 2)
    listener.until(file)
    append(file, LINES[1])
    listener.until(file)


def test_one_file_may_be_a_root(listen: type[Listener], file: Path) -> None:
    beside = file.with_name("other.jsonl")
    listener = listen(file, file.with_suffix(""))
    listener.next()
    beside.write_bytes(LINES[0])
    append(file, LINES[1])
    assert listener.until(file).paths == {str(file)}
    agent = file.with_suffix("") / "subagents" / "agent-a1b2c3d.jsonl"
    agent.parent.mkdir(parents=True)
    agent.write_bytes(LINES[0])
    listener.until(agent)


def test_paths_are_spelled_as_the_root_is(listen: type[Listener], file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parents[3])
    listener = listen("config")
    listener.next()
    append(file, LINES[1])
    listener.until(Path("config") / file.relative_to(file.parents[2]))


def test_of_a_config_folder_only_what_holds_sessions_is_listened_to(project: Path) -> None:
    root = root_of(project)
    for name in ("debug", "todos", "file-history"):
        (root / name).mkdir()
    assert make_watch_plan((str(root),)).recursive == (str(root / "projects"),)


def test_stop_ends_the_iteration_from_another_thread(listen: type[Listener], project: Path) -> None:
    listener = listen(root_of(project))
    listener.next()
    threading.Timer(0, listener.watch.stop).start()
    assert list(listener.answers) == []


def test_a_watch_that_was_stopped_before_tells_nothing(project: Path) -> None:
    stopped = FileWatcher([str(project)])
    stopped.stop()
    assert list(stopped) == []


# Doubt


class Silent:
    """An ear that hears nothing."""

    def __init__(self, folders: Sequence[str], said: "SimpleQueue[WatchEvent]", *, recursive: bool) -> None:
        self.about = (folders, said, recursive)

    def close(self) -> None:
        pass


def test_what_nobody_heard_is_found_in_time(
    listen: type[Listener], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "FsEventListener", Silent)
    listener = listen(root_of(file.parent), reconcile=0.01)
    listener.next()
    append(file, LINES[1])
    assert listener.next() == Changes(frozenset([str(file)]))
    file.unlink()
    assert listener.next() == Changes(frozenset([str(file)]))


class Busy:
    """A queue in which there is always something."""

    def get(self, timeout: float) -> PathsChanged:
        assert timeout > 0
        return PathsChanged(frozenset([(2, "/elsewhere")]))


def test_however_much_is_heard_everything_is_looked_at_in_time(
    listen: type[Listener], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "FsEventListener", Silent)
    listener = listen(root_of(file.parent), reconcile=0.05)
    listener.next()
    monkeypatch.setattr(listener.watch, "_events", Busy())
    append(file, LINES[1])
    assert listener.next() == Changes(frozenset([str(file)]))


def test_a_system_that_refuses_to_watch_is_replaced_by_looking(
    listen: type[Listener], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise WatchUnsupported("too many watches")

    monkeypatch.setattr(watcher, "FsEventListener", refuse)
    monkeypatch.setattr(watcher, "_POLL_SECONDS", 0.01)
    listener = listen(root_of(file.parent))
    listener.next()
    assert listener.watch.polling_reason == "too many watches"
    append(file, LINES[1])
    assert listener.next() == Changes(frozenset([str(file)]))


def test_a_system_that_fails_leads_to_a_look_at_everything(listen: type[Listener], file: Path) -> None:
    listener = listen(root_of(file.parent))
    listener.next()
    listener.watch._events.put(EventsLost("overflow"))
    assert listener.next().rescan
    assert listener.watch.polling_reason == ""
    append(file, LINES[1])
    listener.until(file)


def test_a_system_that_fails_again_and_again_is_not_asked_for_a_while(listen: type[Listener], file: Path) -> None:
    listener = listen(root_of(file.parent))
    listener.next()
    for _ in range(2):
        listener.watch._events.put(EventsLost("a name that is no text"))
        assert listener.next().rescan
    assert listener.watch.polling_reason == "a name that is no text"


def test_very_many_changes_at_once_lead_to_a_look_at_everything(
    listen: type[Listener], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "FsEventListener", Silent)
    listener = listen(root_of(file.parent))
    listener.next()
    append(file, LINES[1])
    many = frozenset((2, str(file.parent / f"{number}.txt")) for number in range(5000))
    listener.watch._events.put(PathsChanged(many))
    assert listener.next() == Changes(frozenset([str(file)]), rescan=True)


def test_when_it_is_quiet_what_was_written_is_looked_at_once_more(
    listen: type[Listener], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "FsEventListener", Silent)
    listener = listen(root_of(file.parent))
    listener.next()
    listener.watch._events.put(PathsChanged(frozenset([(2, str(file))])))
    assert listener.next().paths == {str(file)}
    append(file, LINES[1])
    listener.watch._events.put(ActivityEnded())
    assert listener.next() == Changes(frozenset([str(file)]))


# Files that grow


def test_each_look_reads_only_what_is_new(file: Path) -> None:
    growing = IncrementalReader(str(file))
    assert b"".join(growing.read_new()) == LINES[0]
    for _ in range(50):
        append(file, LINES[1])
        assert not growing.detect_replacement()
        assert b"".join(growing.read_new()) == LINES[1]
    assert growing.bytes_read <= file.stat().st_size + 50 * 64


def test_a_company_reads_each_byte_once(file: Path) -> None:
    company = MultiTail(str(file))
    list(company.read_changes([str(file)]))
    for _ in range(50):
        append(file, LINES[1])
        list(company.read_changes([str(file)]))
    (speaker,) = company
    assert speaker.reader.offset == file.stat().st_size
    assert speaker.reader.bytes_read <= file.stat().st_size + 51 * 64


@pytest.mark.parametrize("how", ["shorter", "rename", "in place"])
def test_a_file_that_begins_anew_is_read_from_its_beginning(file: Path, how: str) -> None:
    append(file, LINES[1])
    growing = IncrementalReader(str(file))
    assert b"".join(growing.read_new()) == LINES[0] + LINES[1]
    data = LINES[0] if how == "shorter" else LINES[1] * 9
    if how == "rename":
        file.with_name("new").write_bytes(LINES[0] + LINES[1] + LINES[1])
        file.with_name("new").replace(file)
        data = file.read_bytes()
    else:
        file.write_bytes(data)
    assert growing.detect_replacement()
    assert b"".join(growing.read_new()) == data
    assert not growing.detect_replacement()


def test_a_file_that_goes_and_comes_back_is_told(file: Path) -> None:
    company = MultiTail(str(file))
    list(company.read_changes([str(file)]))
    file.unlink()
    kinds = [each.event.kind for told in company.read_changes([str(file)]) for each in told]
    assert kinds == ["gone"]
    assert list(company.read_changes([str(file)])) == []
    file.write_bytes(b"".join(LINES[:2]) * 3)
    kinds = [each.event.kind for told in company.read_changes([str(file)]) for each in told]
    assert kinds[:2] == ["anew", "turn"]


def test_others_in_the_same_folder_are_not_listened_to(file: Path) -> None:
    other = file.with_name("6f0c1d2e-1111-4222-8333-444455556666.jsonl")
    other.write_bytes(LINES[0])
    assert list(MultiTail(str(file)).read_changes([str(other)])) == []
    assert list(MultiTail().read_changes([str(other)])) != []


def test_what_a_silent_session_said_before_is_not_told(file: Path) -> None:
    company = MultiTail()
    company.ignore(discover_file(str(file)))
    append(file, b"".join(LINES[1:]))
    events = [each.event for told in company.read_changes([str(file)]) for each in told]
    assert [event.kind for event in events] == ["words", "end"]
