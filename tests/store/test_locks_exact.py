"""Locks, notes of live clients, placed files and read files: exact results and exact errors."""

import json
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from steno.errors import BadRequest, Busy, Unreadable, Unwritable
from steno.store.atomic import FileIdentity, file_identity  # fmt: skip
from steno.store.dirfd import Directory
from steno.store.environment import now, parse_time
from steno.store.file_lock import FileLock
from steno.store.file_source import FileSource, PathSource
from steno.store.relocate import transfer
from steno.store.replace import StagingArea, make_owner_writable
from steno.store.safe_output import write_output_file
from steno.store.session_lock import (
    BUSY_HINT,
    LockHolder,
    SessionAnnouncement,
    SessionLock,
    current_identity,
    is_being_written,
    is_recently_written,
    live_writer,
    lock_path,
    process_start_time,
    refuse_if_locked,
    refuse_if_written,
)
from steno.store.session_lookup import resolve_roots

if TYPE_CHECKING:
    from collections.abc import Callable

AGED: Final = 1_790_000_000
DEAD: Final = 4_194_305


def _aged(path: Path, data: bytes = b"old\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(0o640)
    os.utime(path, (AGED, AGED))
    return path


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# Who is at work


def test_a_live_client_is_known_by_its_note(tmp_path: Path) -> None:
    name = "11111111-0000-4000-8000-000000000001"
    path = _aged(tmp_path / "projects" / "-p" / f"{name}.jsonl")
    seen = file_identity(str(path))
    assert live_writer(str(path)) is None
    refuse_if_written(str(path), seen, check_clients=True)
    with SessionAnnouncement(str(tmp_path), name, "/p", "1.0") as presence:
        note = json.loads(Path(presence.path).read_text())
        assert Path(presence.path) == tmp_path / "sessions" / f"{os.getpid()}.json"
        assert (_mode(Path(presence.path)), _mode(tmp_path / "sessions")) == (0o600, 0o700)
        stamp = int(now() * 1000)
        assert note == {
            "pid": os.getpid(), "sessionId": name, "cwd": "/p", "startedAt": stamp, "updatedAt": stamp,
            "procStart": process_start_time(os.getpid()), "version": "1.0", "entrypoint": "steno",
            "status": "busy",
        } | {k: v for k, v in note.items() if k not in ("pid", "sessionId", "cwd", "startedAt", "updatedAt",
            "procStart", "version", "entrypoint", "status")}  # fmt: skip
        found = live_writer(str(path))
        assert found is not None
        assert found.pid == os.getpid()
        agent = path.with_suffix("") / "subagents" / "agent-a1b2c3d4.jsonl"
        _aged(agent)
        assert live_writer(str(agent)) is not None
        with pytest.raises(Busy) as refused:
            refuse_if_written(str(path), seen, check_clients=True)
        assert str(refused.value) == f"{path} is in use by process {os.getpid()}"
        refuse_if_written(str(path), seen, check_clients=False)
        assert is_being_written(str(path), seen)
        with SessionAnnouncement(str(tmp_path), "22222222-0000", "/q", "1.0") as other:
            assert Path(other.path).name == f"{os.getpid()}-22222222.json"
        assert _names(tmp_path / "sessions") == [f"{os.getpid()}.json"]
        with SessionAnnouncement(str(tmp_path), name, "/p", "1.0") as same:
            assert same.path == presence.path
    assert _names(tmp_path / "sessions") == []
    assert not is_being_written(str(path), seen)
    assert live_writer(str(tmp_path / "elsewhere.jsonl")) is None
    with SessionAnnouncement(str(path), name, "/p", "1.0"):
        # A folder that cannot be made is no trouble.
        assert path.read_bytes() == b"old\n"


def test_a_file_written_a_moment_ago_may_get_more(tmp_path: Path) -> None:
    for age, fresh in ((0, True), (2.9, True), (3.1, False), (-2.9, True), (-3.1, False)):
        assert is_recently_written(round((now() - age) * 1e9)) is fresh
    path = _aged(tmp_path / "a")
    assert current_identity(str(path)) == FileIdentity.from_status(path.stat())
    assert current_identity(str(tmp_path)) is None
    assert current_identity(str(tmp_path / "none")) is None
    (tmp_path / "link").symlink_to(path)
    assert current_identity(str(tmp_path / "link")) is None


# Locks


def test_a_lock_has_its_holder_and_goes_with_it(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    place_of = Path(lock_path(str(path)))
    assert (place_of.parent.name, place_of.suffix, len(place_of.stem)) == ("locks", ".lock", 32)
    lock = SessionLock.acquire(str(path))
    holder = json.loads(place_of.read_text())
    assert holder["pid"] == os.getpid()
    assert (holder["path"], holder["time"]) == (str(path), now())
    assert holder["start"] == process_start_time(os.getpid())
    assert _mode(place_of) == 0o600
    for act in (lambda: SessionLock.acquire(str(path)), lambda: refuse_if_locked(str(path))):
        with pytest.raises(Busy) as refused:
            act()
        assert str(refused.value) == "s.jsonl is in use by this process"
        assert refused.value.hint == BUSY_HINT
    lock.release()
    lock.release()
    assert not place_of.exists()
    refuse_if_locked(str(path))
    place_of.write_text("left by a killed process")
    with SessionLock.acquire(str(path)) as again:
        assert again.path == str(place_of)
    session = tmp_path / "11111111-0000-4000-8000-000000000001.jsonl"
    agent = session.with_suffix("") / "subagents" / "agent-a1b2c3d4.jsonl"
    assert lock_path(str(agent)) == lock_path(str(session))
    assert lock_path(str(session)) != lock_path(str(path))
    other = LockHolder(pid=7, host="elsewhere", time=0.0)
    assert other.describe().startswith("process 7 on elsewhere, since 19")
    import platform

    here = LockHolder(pid=7, host=platform.node(), time=0.0).describe()
    assert here.startswith("process 7, since 19")


def test_a_lock_file_waits_or_says_who_is_at_work(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with FileLock(str(path)):
        assert _mode(path) == 0o600
        with pytest.raises(Busy) as refused, FileLock(str(path), wait=False):
            pass
        assert str(refused.value) == f"another steno process is using {tmp_path}"
    with FileLock(str(path), wait=False):
        pass
    with pytest.raises(Unwritable) as missing, FileLock(str(tmp_path / "none" / "lock")):
        pass
    assert str(missing.value) == f"cannot write {tmp_path}/none/lock: no such file or directory"
    path.unlink()
    path.mkdir()
    with FileLock(str(path)):
        assert path.is_file()
    assert len(_names(tmp_path)) == 2


# Placing


def test_a_file_is_placed_where_somebody_said_and_nowhere_else(tmp_path: Path) -> None:
    path = tmp_path / "out.md"
    assert write_output_file(str(path), b"one") == str(path)
    assert path.read_bytes() == b"one"
    refusals: dict[str, tuple[Callable[[], object], str]] = {
        "there": (lambda: write_output_file(str(path), b"x"), f"{path} already exists"),
        "folder": (lambda: write_output_file(str(tmp_path / "d"), b"x", force=True), f"{tmp_path}/d is not a regular file"),
        "link": (lambda: write_output_file(str(tmp_path / "l"), b"x", force=True), f"{tmp_path}/l is a symbolic link"),
        "sessions": (lambda: write_output_file(str(tmp_path / "d/x"), b"x", protected=[str(tmp_path / "d")]),
                     f"{tmp_path}/d/x is inside a session directory"),
        "below": (lambda: write_output_file(str(tmp_path / "d/e/x"), b"x", protected=[str(tmp_path / "d")]),
                  f"{tmp_path}/d/e/x is inside a session directory"),
        "linked": (lambda: write_output_file(str(tmp_path / "k/x"), b"x", protected=[str(tmp_path / "d")]),
                   f"{tmp_path}/k/x is inside a session directory"),
        "nowhere": (lambda: write_output_file(str(tmp_path / "none/x"), b"x"),
                    f"cannot write {tmp_path}/none/x: no such file or directory"),
    }  # fmt: skip
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / "l").symlink_to(path)
    (tmp_path / "k").symlink_to(tmp_path / "d")
    for name, (act, said) in refusals.items():
        with pytest.raises(Unwritable) as refused:
            act()
        assert str(refused.value) == said, name
    for odd in (f"{tmp_path}/", f"{tmp_path}/.", f"{tmp_path}/a\0b", "/"):
        with pytest.raises(BadRequest, match="is not a file path"):
            write_output_file(odd, b"x")
    path.chmod(0o604)
    assert write_output_file(str(path), b"two", force=True, protected=[str(tmp_path / "d")]) == str(path)
    assert (path.read_bytes(), _mode(path)) == (b"two", 0o604)
    assert write_output_file(str(tmp_path / "d/y"), b"z", protected=[str(tmp_path / "other")]) == str(tmp_path / "d/y")
    assert _names(tmp_path) == ["d", "k", "l", "out.md"]


def test_a_held_folder_follows_no_link_and_makes_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for name, error in (("none", FileNotFoundError), ("link", NotADirectoryError)):
        with pytest.raises(error), Directory(str(tmp_path / name)):
            pass
    with Directory(str(tmp_path / "new" / "deep"), make=True) as folder:
        made = folder.replace_file("a", b"one", None)
        assert made.st_size == 3
        assert stat.S_ISREG(folder.status("a").st_mode)
        with pytest.raises(FileExistsError):
            folder.add_file("a", b"two")
        folder.add_file("b", b"two")
        like = _aged(tmp_path / "like").stat()
        folder.replace_file("a", b"three", like)
        (tmp_path / "new" / "deep" / "l").symlink_to("a")
        assert stat.S_ISLNK(folder.status("l").st_mode)
        with pytest.raises(OSError, match="symbolic link"):
            folder.open("l", os.O_RDONLY)

        def stop() -> None:
            raise Unwritable("stopped")

        with pytest.raises(Unwritable, match="stopped"):
            folder.replace_file("b", b"four", like, before_replace=stop)
        assert Path(folder.stable_path).resolve() == tmp_path / "new" / "deep"
    deep = tmp_path / "new" / "deep"
    assert (deep / "a").read_bytes() == b"three"
    assert _mode(deep / "a") == 0o640
    assert (deep / "b").read_bytes() == b"two"
    assert _names(deep) == ["a", "b", "l"]
    assert folder.stable_path == str(deep)


# Reading


def test_files_are_read_by_span_as_they_were_when_opened(tmp_path: Path) -> None:
    path = tmp_path / "a"
    data = bytes(index % 251 for index in range(40_000))
    path.write_bytes(data)
    file, other = FileSource(str(path)), PathSource(str(path))
    with path.open("ab") as more:
        more.write(b"more")
    for source in (file, other):
        assert (source.size, source.path) == (40_000, str(path))
        for offset, length in ((0, 0), (0, 5), (5, 5), (16_380, 10), (16_384, 20_000), (3, 40_000), (39_999, 9),
                               (40_000, 9), (50_000, 9), (100, 16_384), (100, 16_385), (39_000, 2_000)):  # fmt: skip
            assert source.read(offset, length) == data[offset : min(offset + length, 40_000)], (offset, length)
        for start in (0, 1, 39_999, 40_000):
            assert b"".join(source.chunks(start)) == data[start:]
    file.close()
    file.close()
    path.write_bytes(data[:10])
    for act in (lambda: other.read(20, 5), lambda: list(other.chunks())):
        with pytest.raises(Unreadable) as changed:
            act()
        assert str(changed.value) == f"{path} changed while it was read"
        assert changed.value.hint == "Run the command again."


def test_holes_are_read_as_zeros(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with path.open("wb") as file:
        file.write(b"begin")
        file.seek(5_000_000)
        file.write(b"end")
        file.truncate(9_000_000)
    with FileSource(str(path)) as source:
        joined = b"".join(source.chunks())
        assert joined == path.read_bytes()
        assert b"".join(source.chunks(4_999_999)) == joined[4_999_999:]


def test_what_is_no_file_is_said_to_be_what_it_is(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, said in (("", "is a directory"), ("pipe", "is a pipe"), ("/dev/null", "is a device")):
        path = str(tmp_path / name)
        with pytest.raises(Unreadable) as refused:
            FileSource(path)
        assert str(refused.value) == f"{path} {said}, not a session file"
    with pytest.raises(Unreadable) as missing:
        FileSource(str(tmp_path / "none"))
    assert str(missing.value) == f"cannot read {tmp_path}/none: no such file or directory"
    assert missing.value.hint == "Run `steno ls` to list sessions."
    with pytest.raises(Unreadable, match="embedded null") as odd:
        FileSource("a\0b")
    assert odd.value.hint == ""


# The rest


def test_a_workbench_holds_what_is_put_on_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steno.store.replace.MAX_MEMORY_SIZE", 10)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with StagingArea() as bench:
        small = bench.stage([b"0123456789"])
        assert (small.read(0, 99), _names(tmp_path)) == (b"0123456789", [])
        large = bench.stage([b"01234", b"56789", b"x", b"y" * 3_000_000])
        assert large.size == 11 + 3_000_000
        (folder,) = tmp_path.iterdir()
        assert (_mode(folder), len(_names(folder))) == (0o700, 1)
        again = bench.stage(large.chunks())
        assert (again.size, len(_names(folder))) == (11 + 3_000_000, 1)
        bench.stage([b"few"])
        assert _names(folder) == []
    assert _names(tmp_path) == []
    path = _aged(tmp_path / "a")
    path.chmod(0o040)
    assert make_owner_writable(str(path)) == str(path)
    assert _mode(path) == 0o640
    with pytest.raises(Unwritable):
        make_owner_writable(str(tmp_path / "none"))


def test_the_clock_is_told_or_the_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STENO_NOW", "2026-11-15T12:00:00Z")
    assert now() == 1_794_744_000.0
    monkeypatch.setenv("STENO_NOW", "soon")
    with pytest.raises(BadRequest) as refused:
        now()
    assert str(refused.value) == "STENO_NOW is not a valid time: 'soon'"
    assert refused.value.hint == "Use a time such as 2026-11-15T12:00:00Z."
    monkeypatch.delenv("STENO_NOW")
    import time

    assert abs(now() - time.time()) < 60
    assert parse_time("1970-01-01T00:00:01+00:00") == 1.0
    assert parse_time("x") is None


def test_folders_of_other_machines_are_joined_as_those_write_them() -> None:
    joined = vars(transfer)["_foreign_path"]
    assert joined("/c", "/staged/projects/p", "/staged") == "/c/projects/p"
    assert joined("C:\\c", "/staged/projects/p", "/staged") == "C:\\c\\projects\\p"
    assert joined("/odd\\name", "/staged/projects/p", "/staged") == "/odd\\name/projects/p"


def test_a_folder_named_twice_is_looked_in_once(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "more")
    (tmp_path / "more").mkdir()
    config = Path(os.environ["STENO_HOME"]) / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    own = os.environ["CLAUDE_CONFIG_DIR"]
    named = [f"{tmp_path}/more", f"{tmp_path}/link", own, f"{tmp_path}/more/", f"{tmp_path}/other"]
    config.write_text(f"[index]\nroots = {json.dumps(named)}\n")
    assert resolve_roots() == (own, f"{tmp_path}/more", f"{tmp_path}/other")
    config.unlink()
    assert resolve_roots() == (own,)
