"""What a watch makes of each message of the system, without threads; files that grow."""

from pathlib import Path
from typing import Any, Final

import pytest
from tests.index.transcripts import Script
from tests.recorded_answers import assert_recorded

from steno.format.source import BytesSource
from steno.session.live_turns import RecentTurns
from steno.session.transcript import load, load_growth
from steno.store.discovery import discover_file
from steno.store.file_source import PathSource
from steno.store.summary import read_custom_title
from steno.store.watch import watcher
from steno.store.watch.incremental import IncrementalReader, agent_files, reload_transcript
from steno.store.watch.watcher import (
    ActivityEnded,
    Changes,
    EventsLost,
    FileWatcher,
    FollowedFile,
    MultiTail,
    PathsChanged,
    SourcedEvent,
    WatchPlan,
    WatchUnsupported,
    make_watch_plan,
)

ANSWERS: Final = Path(__file__).with_name("answers")
ONE: Final = "11111111-0000-4000-8000-000000000001"


class Silent:
    """Takes the place of the system's ears: nothing is heard but what a test says."""

    made: Final[list[tuple[tuple[str, ...], bool]]] = []

    def __init__(self, folders: tuple[str, ...], said: Any, *, recursive: bool) -> None:
        assert said is not None
        self.made.append((folders, recursive))

    def close(self) -> None:
        """Close nothing."""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(watcher, "FsEventListener", Silent)
    Silent.made.clear()
    project = tmp_path / "config" / "projects" / "-p"
    project.mkdir(parents=True)
    return tmp_path / "config"


def _talk(*words: str) -> bytes:
    made = Script()
    for each in words:
        made.user(each).bot(f"re {each}")
    return made.bytes()


def _do(made: FileWatcher, name: str, *given: Any) -> Changes:
    return getattr(made, name)(*given)


def _names(changes: Changes) -> list[object]:
    return [sorted(Path(path).name for path in changes.paths), changes.rescan]


def test_each_message_of_the_system_means_what_it_means(root: Path) -> None:
    path = root / "projects" / "-p" / f"{ONE}.jsonl"
    path.write_bytes(_talk("a"))
    made = FileWatcher([str(root)])
    answers = iter(made)
    assert _names(next(answers)) == [[], True]
    assert Silent.made == [((str(root / "projects"),), True)]
    assert _names(_do(made, "_handle_changes", PathsChanged(frozenset({(2, str(path))})))) == [[path.name], False]
    # Heard again without a change it is told again; when it is quiet it is not.
    assert _names(_do(made, "_handle_quiet")) == [[], False]
    _do(made, "_handle_changes", PathsChanged(frozenset({(2, str(path))})))
    path.write_bytes(_talk("a", "b"))
    assert _names(_do(made, "_handle_quiet")) == [[path.name], False]
    assert _names(_do(made, "_handle_quiet")) == [[], False]
    for kind, other in ((2, root / "settings.json"), (2, root / "projects" / "-p" / "node_modules" / "x.jsonl"),
                        (2, root.parent / "elsewhere.jsonl"), (1, root / "projects" / "none")):  # fmt: skip
        assert _names(_do(made, "_handle_changes", PathsChanged(frozenset({(kind, str(other))})))) == [[], False]
    new = root / "projects" / "-q"
    new.mkdir()
    (new / path.name).write_bytes(_talk("c"))
    assert _names(_do(made, "_handle_changes", PathsChanged(frozenset({(1, str(new))})))) == [[path.name], False]
    assert _names(_do(made, "_handle_changes", PathsChanged(frozenset({(1, str(new))})))) == [[], False]
    (new / path.name).unlink()
    new.rmdir()
    assert _names(_do(made, "_handle_changes", PathsChanged(frozenset({(3, str(new))})))) == [[path.name], False]
    assert _names(_do(made, "_handle_changes", PathsChanged(frozenset({(3, str(new))})))) == [[], False]
    assert _names(_do(made, "_reconcile")) == [[], False]
    path.write_bytes(_talk("d"))
    assert _names(_do(made, "_reconcile")) == [[path.name], False]
    path.unlink()
    assert _names(_do(made, "_reconcile")) == [[path.name], False]
    assert _names(_do(made, "_reconcile")) == [[], False]
    made.stop()
    assert list(answers) == []


def test_doubt_leads_to_a_look_at_everything(root: Path) -> None:
    path = root / "projects" / "-p" / f"{ONE}.jsonl"
    path.write_bytes(_talk("a"))
    made = FileWatcher([str(root)])
    answers = iter(made)
    next(answers)
    many = frozenset((2, f"{root}/projects/-p/{number}.jsonl") for number in range(4095))
    assert not _do(made, "_handle_changes", PathsChanged(many)).rescan
    path.write_bytes(_talk("a", "b"))
    changes = _do(made, "_handle_changes", PathsChanged(many | {(2, f"{root}/projects/-p/x.jsonl")}))
    assert changes.rescan
    assert str(path) in changes.paths
    moved = root / "projects"
    moved.rename(root / "aside")
    changes = _do(made, "_handle_changes", PathsChanged(frozenset({(3, str(moved))})))
    assert changes.rescan
    (root / "aside").rename(moved)
    back = _do(made, "_handle_changes", PathsChanged(frozenset({(1, str(moved))})))
    assert _names(back) == [[path.name], False]
    first = _do(made, "_handle_loss", EventsLost("first"))
    assert (first.rescan, made.polling_reason) == (True, "")
    second = _do(made, "_handle_loss", EventsLost("again"))
    assert (second.rescan, made.polling_reason) == (True, "again")
    assert not _do(made, "_reconcile").rescan
    assert made.polling_reason == "again"
    made.close()
    made.stop()
    assert list(answers) == []


def test_a_system_that_refuses_makes_a_watch_deaf(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing:
        def __init__(self, *_: object, **__: object) -> None:
            raise WatchUnsupported(self.words)

        words = "too many"

    monkeypatch.setattr(watcher, "FsEventListener", Refusing)
    made = FileWatcher([str(root)])
    assert _names(next(iter(made))) == [[], True]
    assert made.polling_reason == "too many"
    Refusing.words = ""
    other = FileWatcher([str(root)])
    next(iter(other))
    assert other.polling_reason == "refused"
    monkeypatch.setattr(watcher, "FsEventListener", Silent)
    monkeypatch.setattr(watcher, "_RETRY_SECONDS", 0.0)
    assert _names(_do(other, "_reconcile")) == [[], False]
    assert other.polling_reason == ""


def test_roots_are_spelled_as_they_were_given(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = root.parent / "link"
    link.symlink_to(root)
    made = FileWatcher([str(link), "rel", str(link)])
    spell = vars(FileWatcher)["_as_named"]
    monkeypatch.chdir(root)
    assert spell(made, f"{root}/x") == f"{link}/x"
    assert spell(made, str(root)) == str(link)
    assert spell(made, f"{link}/x") == f"{link}/x"
    assert spell(made, f"{root}x") is None
    inside = FileWatcher([str(root), str(root / "projects")])
    assert spell(inside, f"{root}/projects/x") == f"{root}/projects/x"


def test_plans_name_the_folders_that_are_or_will_be_there(root: Path) -> None:
    def identity(path: Path) -> tuple[int, int]:
        return path.stat().st_dev, path.stat().st_ino

    projects = root / "projects"
    assert make_watch_plan((str(root),)) == WatchPlan((str(projects),), (), (identity(projects),))
    assert make_watch_plan((str(projects), str(projects))) == WatchPlan((str(projects),), (), (identity(projects),))
    missing = (str(root / "none" / "deeper"), str(root / "file.jsonl"))
    assert make_watch_plan(missing) == WatchPlan((), (str(root),), (identity(root),))
    assert make_watch_plan(()) == WatchPlan()
    assert make_watch_plan(("/none-there/x",)).shallow == ("/",)


# Growing files


def test_each_look_at_a_growing_file_reads_only_what_is_new(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one\n")
    growing = IncrementalReader(str(path))
    assert (growing.detect_replacement(), b"".join(growing.read_new()), growing.offset, growing.bytes_read) == (
        False,
        b"one\n",
        4,
        4,
    )
    with path.open("ab") as file:
        file.write(b"x" * 100 + b"\n")
    assert not growing.detect_replacement()
    assert (growing.offset, growing.bytes_read) == (4, 8)
    assert b"".join(growing.read_new(50)) == b"x" * 46
    assert b"".join(growing.read_new()) == b"x" * 54 + b"\n"
    assert (growing.offset, growing.bytes_read) == (105, 8 + 101)
    assert not growing.detect_replacement()
    assert growing.bytes_read == 8 + 101 + 64
    data = path.read_bytes()
    path.write_bytes(data[:-2] + b"!\n")
    assert growing.detect_replacement()
    assert (growing.offset, b"".join(growing.read_new())) == (0, data[:-2] + b"!\n")
    path.write_bytes(b"cut\n")
    assert growing.detect_replacement()
    assert b"".join(growing.read_new()) == b"cut\n"
    path.unlink()
    assert (growing.detect_replacement(), growing.exists, list(growing.read_new())) == (False, False, [])
    path.write_bytes(b"cut\n")
    assert (growing.detect_replacement(), growing.exists, growing.offset) == (True, True, 0)
    other = tmp_path / "b"
    other.write_bytes(b"cut\nmore")
    list(growing.read_new())
    other.replace(path)
    assert growing.detect_replacement()
    late = IncrementalReader(str(path), 4)
    assert (late.detect_replacement(), b"".join(late.read_new())) == (False, b"more")
    assert IncrementalReader(str(path), 9).detect_replacement()


def _said(told: list[SourcedEvent]) -> list[object]:
    return [[Path(each.source.path).name, each.event.kind] for each in told]


def test_who_is_listened_to_and_what_they_said(root: Path) -> None:
    project = root / "projects" / "-p"
    session = project / f"{ONE}.jsonl"
    agent = session.with_suffix("") / "subagents" / "agent-aaaa1111.jsonl"
    beside, odd, named = (project / "agent-bbbb2222.jsonl", project / "odd.jsonl", project / "named.jsonl")
    agent.parent.mkdir(parents=True)
    session.write_bytes(_talk("a"))
    aside = {"isSidechain": True, "agentId": "aaaa1111", "sessionId": ONE}
    agent.write_bytes(Script().user("Look", **aside).bot("I look", **aside).bytes())
    beside.write_bytes(Script().user("Else", **{**aside, "sessionId": "other"}).bytes())
    odd.write_bytes(b'{"a":1}\n')
    named.write_bytes(_talk("n"))
    paths = [str(each) for each in (agent, beside, odd, named, session)]
    answers: dict[str, object] = {}
    for name, only in (("everyone", None), ("the session", str(session)), ("the agent", str(agent)), ("nobody", "/x")):
        company = MultiTail(only)
        heard = [_said(told) for told in company.read_changes(paths)]
        speakers = [[Path(s.path).name, s.session_id, s.agent_id, Path(s.owner.path).name if s.owner else ""]
                    for s in company]  # fmt: skip
        again = [_said(told) for told in company.read_changes(paths)]
        answers[name] = [heard, speakers, again]
    company = MultiTail()
    found = discover_file(str(session))
    company.ignore(found)
    assert not company.has_changes(found)
    assert list(company.read_changes([str(session)])) == []
    with session.open("ab") as file:
        file.write(_talk("b").replace(b"u1", b"u3").replace(b"u2", b"u4"))
    assert company.has_changes(discover_file(str(session)))
    answers["after silence"] = [_said(told) for told in company.read_changes([str(session)])]
    assert not company.has_changes(discover_file(str(session)))
    session.write_bytes(_talk("c"))
    answers["anew"] = [_said(told) for told in company.read_changes([str(session)])]
    session.unlink()
    answers["gone"] = [[_said(told) for told in company.read_changes([str(session)])] for _ in range(2)]
    session.write_bytes(_talk("d"))
    answers["back"] = [_said(told) for told in company.read_changes([str(session)])]
    quiet = MultiTail()
    quiet.ignore(discover_file(str(session)))
    answers["owner of an agent that speaks"] = [_said(told) for told in quiet.read_changes([str(agent)])]
    (speaker,) = (each for each in quiet if each.agent_id)
    answers["owner"] = Path(speaker.owner.path).name if speaker.owner else ""
    agent.with_suffix(".meta.json").write_text('{"agentType":"Explore","description":"Look"}')
    brief = speaker.agent_brief()
    assert (brief.kind, brief.description) == ("Explore", "Look")
    again = MultiTail()
    told = again.start_with_recent(discover_file(str(session)), RecentTurns(1))
    answers["recalled"] = _said(told)
    assert again.start_with_recent(discover_file(str(odd)), RecentTurns(1)) == []
    assert [each.path for each in again.agents(discover_file(str(session)))] == [str(agent)]
    assert_recorded(ANSWERS / "company.json", answers)
    assert isinstance(next(iter(again)), FollowedFile)


# Transcripts that are read on


def test_only_what_was_added_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    data = _talk("a", "b") * 20
    path.write_bytes(data)
    first = reload_transcript(None, PathSource(str(path)))
    assert isinstance(first.source, PathSource)
    assert first.source.fingerprint == b"%d:" % len(data) + data[:4096] + data[-4096:]
    with path.open("ab") as file:
        file.write(_talk("c"))
    second = reload_transcript(first, PathSource(str(path)))
    assert len(second.nodes) == len(load(PathSource(str(path))).nodes)
    for change in (data[:10] + b"?" + data[11:] + b"\n", data[:-1], b""):
        path.write_bytes(change)
        third = reload_transcript(second, PathSource(str(path)))
        assert len(third.nodes) == len(load(PathSource(str(path))).nodes)
    assert len(reload_transcript(third, BytesSource(data)).nodes) == len(load(BytesSource(data)).nodes)
    assert load_growth is not None


def test_sub_agents_are_read_when_they_are_asked_for(tmp_path: Path) -> None:
    session = tmp_path / f"{ONE}.jsonl"
    agent = session.with_suffix("") / "subagents" / "agent-aaaa1111.jsonl"
    agent.parent.mkdir(parents=True)
    session.write_bytes(_talk("a"))
    agent.write_bytes(_talk("b"))
    agent.with_suffix(".meta.json").write_text('{"agentType":"Plan"}')
    (made,) = agent_files(discover_file(str(session)))
    assert (made.agent_id, made.path) == ("aaaa1111", str(agent))
    assert made.meta is not None
    assert made.meta.agent_type == "Plan"
    (same,) = agent_files(discover_file(str(session)), [made])
    assert same.transcript is made.transcript
    assert len(made.transcript.nodes) == 2
    agent.write_bytes(_talk("b", "c"))
    (more,) = agent_files(discover_file(str(session)), [made])
    assert len(more.transcript.nodes) == 4
    (later,) = agent_files(discover_file(str(session)), [more])
    assert later.transcript is more.transcript
    (gone,) = agent_files(discover_file(str(session)))
    agent.unlink()
    assert len(gone.transcript.nodes) == 0
    assert not hasattr(gone.transcript, "nothing")


def test_titles_beside_a_session_are_read_or_nothing(tmp_path: Path) -> None:
    session = tmp_path / "a.jsonl"
    session.write_bytes(_talk("a"))
    title = tmp_path / "a" / "custom-title.json"
    assert read_custom_title(discover_file(str(session))) == ""
    title.parent.mkdir()
    for data, shown in ((b'{"customTitle":"T"}', "T"), (b"{}", ""), (b"{", ""), (b'{"customTitle":7}', ""),
                        (b"", ""), (b'{"customTitle":null}', ""), (b"[" * 9999, ""), (b"\xff", "")):  # fmt: skip
        title.write_bytes(data)
        assert read_custom_title(discover_file(str(session))) == shown, data
    assert ActivityEnded() == ActivityEnded()
