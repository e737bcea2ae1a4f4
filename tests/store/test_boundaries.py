"""Single decisions at their boundaries: what is read, followed, believed and counted, exactly."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from tests.index.transcripts import Script
from tests.store.relocate.moving import unflushed

from steno.errors import BadRequest, StenoError, Unreadable, Unwritable
from steno.format.paths import PathInfo
from steno.format.sidecars import LiveProcess
from steno.store import client_folders, dirfd, file_source, replace, summary
from steno.store.archive import copies
from steno.store.archive.archive import ArchivedSession, ArchiveReport
from steno.store.archive.catalogue import MovedSession, read_moves, record_moves
from steno.store.archive.copies import ArchivedChange
from steno.store.archive.journal import FrameLine
from steno.store.atomic import TempFile, file_identity
from steno.store.client_folders import find_copies, tool_result_path
from steno.store.config import parse_config
from steno.store.dirfd import Directory
from steno.store.discovery import MAX_DEPTH, DiscoveredFile, Problem, discover, discover_file
from steno.store.file_source import FileSource, PathSource
from steno.store.relocate.transfer import is_transferable
from steno.store.safe_output import write_output_file
from steno.store.session_lock import is_running, process_start_time
from steno.store.session_lookup import find
from steno.store.watch import incremental
from steno.store.watch.watcher import MultiTail

if TYPE_CHECKING:
    from collections.abc import Callable

ONE: Final = "11111111-0000-4000-8000-000000000001"
TWO: Final = "22222222-0000-4000-8000-000000000002"


def _written(path: Path, data: bytes = b"x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def _talk(session: str, words: str = "Go") -> bytes:
    return Script().user(words, sessionId=session).bot("x", sessionId=session).bytes()


def _found(path: Path) -> DiscoveredFile:
    status = path.stat()
    return DiscoveredFile(str(path), status.st_size, status.st_mtime_ns, PathInfo("session"), str(path.parent))


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


# Archive


def _frame(number: int, length: int) -> FrameLine:
    return FrameLine(1, number, length, 0, 0, 0, "", "")


def test_a_file_is_known_by_its_first_frame_and_enough_of_the_last_ones() -> None:
    ends: Callable[[list[FrameLine]], list[FrameLine]] = vars(copies)["_end_frames"]
    enough = 1 << 16
    for lengths, chosen in (
        ([], []),
        ([5], [0]),
        ([5, 5], [0, 1]),
        ([5, 5, 5], [0, 2, 1]),
        ([5, 5, enough], [0, 2]),
        ([5, 5, enough - 1], [0, 2, 1]),
        ([5, enough, 1, enough - 1], [0, 3, 2]),
        ([enough, enough], [0, 1]),
    ):
        frames = [_frame(number, length) for number, length in enumerate(lengths)]
        assert [frame.offset for frame in ends(frames)] == chosen, lengths


def test_what_a_run_did_is_counted_by_kind() -> None:
    new = ArchivedChange("a", 10, 4, 1, begun=True)
    longer = ArchivedChange("b", 5, 2, 3)
    rewritten = ArchivedChange("c", 7, 3, 2, begun=True)
    healed = ArchivedChange("d", 9, 5, 2, begun=True, healed=True)
    one, two = (ArchivedSession("s", (new, longer, rewritten, healed)), ArchivedSession("t", (rewritten,)))
    assert (one.added, one.packed, one.rewritten, one.healed) == (31, 14, 1, 1)
    for change, counts in ((new, (0, 0)), (longer, (0, 0)), (rewritten, (1, 0)), (healed, (0, 1))):
        only = ArchivedSession("s", (change,))
        assert (only.rewritten, only.healed) == counts
    both = ArchiveReport(2, (one, two))
    assert (both.files, both.added, both.packed, both.rewritten, both.healed) == (5, 38, 17, 2, 1)


# Reading


def test_a_hole_is_not_read_from_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    with path.open("wb") as file:
        file.truncate(8 << 20)
    read_at: list[int] = []
    real = os.pread

    def noted(descriptor: int, length: int, offset: int) -> bytes:
        read_at.append(offset)
        return real(descriptor, length, offset)

    with FileSource(str(path)) as source, monkeypatch.context() as patch:
        patch.setattr(os, "pread", noted)
        assert sum(map(len, source.chunks())) == 8 << 20
    assert read_at == []


def test_a_file_that_was_exchanged_is_not_read_on_and_is_closed(tmp_path: Path) -> None:
    path = _written(tmp_path / "a", b"0123456789")
    source = PathSource(str(path))
    # As long as it has another name, no new file can be taken for it.
    os.link(path, tmp_path / "first")
    before = _open_files()
    for data in (b"0123456789", b"0123456789 and more"):
        _written(tmp_path / "b", data)
        (tmp_path / "b").replace(path)
        with pytest.raises(Unreadable, match="changed while it was read"):
            source.open()
    assert _open_files() == before
    same = PathSource(str(path))
    with path.open("ab") as more:
        more.write(b"!")
    with same.open() as file:
        assert file.size == 19


def test_what_was_read_for_the_last_question_answers_the_next_one(tmp_path: Path) -> None:
    window: int = vars(file_source)["_WINDOW_SIZE"]
    path = _written(tmp_path / "a", bytes(index % 251 for index in range(3 * window)))
    data = path.read_bytes()
    source = PathSource(str(path))
    assert source.read(10, 5) == data[10:15]
    path.unlink()
    # The window is from 10 to 10 + window; one byte around it is not in it.
    for offset, length in ((10, 5), (10, window), (9 + window, 1), (10 + window, 0), (500, 1000)):
        assert source.read(offset, length) == data[offset : offset + length]
    for offset, length in ((9, 1), (9, 5), (10 + window, 1), (11, window)):
        with pytest.raises(Unreadable):
            source.read(offset, length)


# Small files


def test_a_saved_result_is_looked_for_in_the_sessions_own_folder_only(tmp_path: Path) -> None:
    session = str(tmp_path / f"{ONE}.jsonl")
    result = str(_written(tmp_path / ONE / "tool-results" / "r.txt"))
    _written(tmp_path / ONE / "secret")
    _written(tmp_path / "tool-results" / "r.txt")
    for recorded, found in (
        ("r.txt", result),
        ("/elsewhere/x/r.txt", result),
        ("C:\\Users\\ada\\r.txt", result),
        ("C:\\mixed/r.txt", result),
        ("/r.txt/", None),
        ("", None),
        (".", None),
        ("..", None),
        ("x/..\\..", None),
        ("../secret", None),
        ("r.txt\0", None),
        ("none.txt", None),
    ):
        assert tool_result_path(session, recorded) == found, recorded
    assert tool_result_path(str(tmp_path / ONE), "r.txt") is None


def test_only_regular_names_travel() -> None:
    for name, may in (
        (f"projects/scripts/{ONE}.jsonl", True),
        (f"projects/-p/{ONE}/scripts/{ONE}.jsonl", False),
        (f"projects/-p/{ONE}/tool-results/scripts", True),
        (f"projects/-p/{ONE}/tool-results/.hidden", False),
        (f"projects/.p/{ONE}.jsonl", True),
        (f"scripts/-p/{ONE}.jsonl", False),
        (f"projects/-p/{ONE}.jsonl\ud800", False),
        ("projects/-p/memory/" + "\xe9" * 127, True),
        ("projects/-p/memory/" + "\xe9" * 128, False),
    ):
        assert is_transferable(name) is may, name


def test_moves_are_noted_each_on_a_line_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(os.environ["STENO_HOME"]) / "moves" / "moved.jsonl"
    path.parent.mkdir(parents=True)
    monkeypatch.setattr(os, "fsync", unflushed)
    one, two = b'{"old":"/a","new":"/b","size":3}\n', b'{"old":"/c","new":"/d","size":4}\n'
    record_moves([])
    assert not path.exists()
    record_moves([MovedSession("/a", "/b", 3)])
    record_moves([MovedSession("/c", "/d", 4), MovedSession("/a", "/b", 3)])
    assert path.read_bytes() == one + two + one
    path.write_bytes(one + b"torn")
    record_moves([MovedSession("/c", "/d", 4)])
    assert path.read_bytes() == one + b"torn\n" + two
    # Further moves are followed to the end, and a circle is left some time.
    record_moves([MovedSession("/b", "/e", 5)])
    assert {old: (each.new, each.size) for old, each in read_moves().items()} == {
        "/a": ("/e", 3), "/c": ("/d", 4), "/b": ("/e", 5),
    }  # fmt: skip
    record_moves([MovedSession("/e", "/a", 6)])
    assert {old: each.new for old, each in read_moves().items()} == {"/b": "/a", "/c": "/d", "/e": "/a"}
    path.unlink()
    path.mkdir()
    assert read_moves() == {}
    with pytest.raises(Unwritable) as refused:
        record_moves([MovedSession("/a", "/b", 3)])
    assert str(refused.value) == f"cannot write {path}: is a directory"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = \n", "c, line 1: invalid value"),
        ("\n\na", "c, line 3: expected '=' after a key in a key/value pair"),
        ('a = "', "c, line 1: unterminated string"),
    ],
)
def test_a_broken_config_file_is_told_by_line_once(text: str, said: str) -> None:
    with pytest.raises(BadRequest) as broken:
        parse_config("c", text)
    assert str(broken.value) == said


# Who is at work


def test_a_process_is_the_one_that_was_noted_only_if_it_began_then() -> None:
    me = os.getpid()
    began = process_start_time(me)
    assert began.isdecimal()
    for pid, start, running in (
        (me, began, True),
        (me, str(int(began) + 1), False),
        (me, "", True),
        (me, "Mon 5", True),
        (4_194_305, began, False),
        (0, "", False),
    ):
        assert is_running(LiveProcess(pid=pid, proc_start=start)) is running, (pid, start)


# Finding


def test_links_are_followed_no_deeper_than_folders(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for name, depth in ((ONE, MAX_DEPTH), (TWO, MAX_DEPTH + 1)):
        target = tmp_path / name
        _written(target / f"{name}.jsonl", _talk(name))
        above = root.joinpath(name[:2], *["d"] * (depth - 2))
        above.mkdir(parents=True)
        (above / "link").symlink_to(target)
    assert [Path(each.path).stem for each in discover(str(root))] == [ONE]


def test_a_sub_agent_named_in_full_is_not_taken_for_the_beginning_of_another(tmp_path: Path) -> None:
    _written(tmp_path / "projects" / "-p" / f"{ONE}.jsonl", _talk(ONE))
    inside = tmp_path / "projects" / "-p" / ONE / "subagents"
    for name in ("abcd1234", "abcd12345"):
        made = Script().user("Look", isSidechain=True, agentId=name, sessionId=ONE)
        _written(inside / f"agent-{name}.jsonl", made.bytes())
    for name, stem in (
        ("abcd1234", "agent-abcd1234"),
        ("agent-abcd1234", "agent-abcd1234"),
        ("ABCD1234", "agent-abcd1234"),
        ("abcd12345", "agent-abcd12345"),
    ):
        assert Path(find(name, (str(tmp_path),)).path).stem == stem
    with pytest.raises(StenoError, match="abcd123"):
        find("abcd123", (str(tmp_path),))


def test_a_last_record_longer_than_a_look_is_read_whole(tmp_path: Path) -> None:
    end: int = vars(summary)["END_SIZE"]
    title = {"type": "custom-title", "customTitle": "Tides", "sessionId": ONE, "pad": ""}
    for pad in (end // 2, 2 * end, 5 * end):
        for blank in (b"", b"\n" * (end + 5)):
            last = json.dumps({**title, "pad": "p" * pad}).encode() + b"\n"
            data = _talk(ONE) + _talk(ONE, "y" * (2 * end)) + last + blank
            path = _written(tmp_path / f"{ONE}.jsonl", data)
            assert summary.summarize(discover_file(str(path)), 0.0).title == "Tides", (pad, len(blank))


def test_files_with_other_ends_are_not_read_to_tell_copies(tmp_path: Path) -> None:
    ends: int = vars(client_folders)["_COMPARED_END_SIZE"]
    body = b"x" * (3 * ends)
    made = {"a": body + b"1", "b": body + b"2", "c": b"1" + body, "d": body + b"1", "e": b"", "f": b""}
    files = [_found(_written(tmp_path / name, data)) for name, data in made.items()]
    problems: list[Problem] = []
    done: list[int] = []
    groups = find_copies(files, problems, done.append)
    assert [[Path(each.path).name for each in group] for group in groups] == [["a", "d"]]
    assert (sum(done), problems) == (2 * (3 * ends + 1), [])


@pytest.mark.parametrize("looks", [0, 1, 2])
def test_a_file_that_goes_while_copies_are_told_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks: int
) -> None:
    files = [_found(_written(tmp_path / name, b"same")) for name in "abc"]
    opened: list[str] = []

    class Going(FileSource):
        def __init__(self, path: str) -> None:
            opened.append(path)
            if path == files[1].path and opened.count(path) > looks:
                raise Unreadable(f"{path} is gone")
            super().__init__(path)

    monkeypatch.setattr(client_folders, "FileSource", Going)
    problems: list[Problem] = []
    groups = find_copies(files, problems)
    assert groups == [(files[0], files[2])]
    assert problems == [Problem("unreadable", files[1].path, f"{files[1].path} is gone")]


# Following


def test_a_sub_agent_is_of_the_session_whose_folder_it_is_in(tmp_path: Path) -> None:
    own = tmp_path / "projects" / "-p" / ONE / "subagents" / "agent-abcd1234.jsonl"
    beside = tmp_path / "projects" / "-p" / "agent-eeee5555.jsonl"
    for path in (own, beside):
        made = Script().user("Look", isSidechain=True, agentId=path.stem[6:], sessionId=TWO)
        _written(path, made.bytes())
    company = MultiTail()
    list(company.read_changes([str(own), str(beside)]))
    assert {Path(each.path).stem: (each.session_id, each.agent_id) for each in company} == {
        "agent-abcd1234": (ONE, "abcd1234"), "agent-eeee5555": (TWO, "eeee5555"),
    }  # fmt: skip
    (first, *_) = (each for each in company if each.agent_id == "abcd1234")
    assert first.agent_brief().kind == ""
    _written(own.with_suffix(".meta.json"), b'{"agentType":"Explore","description":"d"}')
    assert (first.agent_brief().kind, first.agent_brief().description) == ("Explore", "d")


def test_only_a_transcript_that_was_read_is_read_on(tmp_path: Path) -> None:
    found = _found(_written(tmp_path / f"{ONE}.jsonl", _talk(ONE)))
    later: Callable[..., Any] = vars(incremental)["_LazyTranscript"]
    unread = later(found)
    assert unread.previous is None
    assert later(found, unread).previous is None
    assert len(unread.nodes) == 2
    after = later(found, unread)
    assert after.previous is unread
    assert len(after.nodes) == 2
    assert after.previous is None


# Writing


@pytest.mark.parametrize("error", [OSError(1, "Operation not permitted"), NotImplementedError()])
def test_without_links_a_new_file_takes_only_a_free_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(dirfd.os, "link", refused)
    with Directory(str(tmp_path)) as folder:
        folder.add_file("a", b"one")
        with pytest.raises(FileExistsError):
            folder.add_file("a", b"two")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("a", b"one")]


def test_a_file_that_appears_or_changes_meanwhile_is_not_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    real = Directory.open

    def appears(self: Directory, name: str, flags: int, mode: int = 0o666) -> int:
        (tmp_path / "new").write_bytes(b"theirs")
        (tmp_path / "new").replace(path)
        return real(self, name, flags, mode)

    monkeypatch.setattr(Directory, "open", appears)
    for force, said in ((False, "was created by another process"), (True, "was replaced by another process")):
        with pytest.raises(Unwritable) as refused:
            write_output_file(str(path), b"mine", force=force)
        assert str(refused.value) == f"{path} {said}"
        assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("a", b"theirs")]


def test_an_exchange_that_fails_is_told_and_leaves_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _written(tmp_path / "a", b"old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    for name, said, left in (
        ("replace", f"cannot write {path}: no space left on device", b"old"),
        ("fsync", f"{path} was replaced but may not be on disk yet: no space left on device", b"new"),
    ):  # fmt: skip
        with TempFile(str(path)) as scratch, monkeypatch.context() as patch:
            scratch.write([b"new"])
            patch.setattr(replace.os, name, full)
            with pytest.raises(Unwritable) as refused:
                vars(replace)["_replace_file"](scratch.path, str(path))
            assert str(refused.value) == said
        assert path.read_bytes() == left
    assert file_identity(str(path)).size == 3
