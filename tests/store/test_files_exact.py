"""Files read, written, exchanged and locked: exact results and exact errors."""

import errno
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from steno.errors import Busy, NotFound, Unwritable
from steno.format.sidecars import LiveProcess
from steno.store import atomic
from steno.store.append import Appender, FileState
from steno.store.archive.catalogue import Catalogue
from steno.store.atomic import (
    FileIdentity,
    TempFile,
    file_identity,
    is_process_alive,
    make_private_folder,
    open_private,
    read_all,
    real_path,
    remove_stale_in_folder,
    remove_stale_temp_files,
    sync_folder,
    unreadable_error,
    unwritable_error,
    write_all,
)  # fmt: skip
from steno.store.damaged_files import add_damage_listener, move_aside
from steno.store.environment import now
from steno.store.replace import exchange, list_backups, place_new, swap, undo
from steno.store.session_lock import is_running, process_start_time

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


# Errors


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        (errno.ENOSPC, "Nothing was changed. Free disk space and run the command again."),
        (errno.EFBIG, "Nothing was changed. Free disk space and run the command again."),
        (errno.EDQUOT, "Nothing was changed. Free disk space and run the command again."),
        (errno.EACCES, "Nothing was changed. Check the permissions of the directory."),
        (errno.EPERM, "Nothing was changed. Check the permissions of the directory."),
        (errno.EROFS, "Nothing was changed. Check the permissions of the directory."),
        (errno.EIO, ""),
    ],
)
def test_what_cannot_be_written_is_said_with_what_helps(code: int, hint: str) -> None:
    error = unwritable_error("/x", OSError(code, "Some Reason"))
    assert (str(error), error.hint) == ("cannot write /x: some reason", hint)
    assert str(unwritable_error("/x", OSError("Alone"))) == "cannot write /x: alone"
    assert str(unreadable_error("/x", OSError(code, "Why"))) == "cannot read /x: why"


# Appending


def test_the_state_of_a_file_is_its_identity_size_and_end(tmp_path: Path) -> None:
    path = tmp_path / "a"
    assert FileState.of(str(path)) == FileState(0, 0, 0, b"")
    for size in (0, 1, 255, 256, 257, 1000):
        data = bytes(index % 251 for index in range(size))
        path.write_bytes(data)
        status = path.stat()
        assert FileState.of(str(path)) == FileState(status.st_dev, status.st_ino, size, data[-256:])
    with pytest.raises(Unwritable) as refused:
        FileState.of(str(tmp_path))
    assert str(refused.value) == f"cannot write {tmp_path}: is a directory"
    with pytest.raises(Unwritable):
        FileState.of(str(path / "below"))


def test_after_each_append_the_state_is_that_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with Appender(str(path)) as file:
        assert file.state() == FileState.of(str(path))
        for line in (b"one\n", b"x" * 300 + b"\n", b"two\n"):
            file.append(line)
            assert file.state() == FileState.of(str(path))
        file.append()
        file.append(b"a\n", b"b\n")
        assert not file.recreated
    assert path.read_bytes() == b"one\n" + b"x" * 300 + b"\ntwo\na\nb\n"
    file.close()


def _change(path: Path, how: str) -> None:
    data = path.read_bytes()
    if how == "longer":
        path.write_bytes(data + b"123456789")
    elif how == "shorter":
        path.write_bytes(data[:-2])
    elif how == "other":
        path.write_bytes(data[:-2] + b"!\n")
    elif how == "replaced":
        path.rename(path.with_name("aside"))
        path.write_bytes(data)
    elif how == "moved":
        path.rename(path.with_name("aside"))


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("longer", "9 bytes were added"),
        ("shorter", "2 bytes were removed"),
        ("other", "its last lines were changed"),
        ("replaced", "it was replaced"),
        ("moved", "it was moved"),
    ],
)
def test_a_change_by_another_program_stops_the_appending(tmp_path: Path, how: str, said: str) -> None:
    path = tmp_path / "a"
    with Appender(str(path)) as file:
        file.append(b"one\n")
        _change(path, how)
        after = path.read_bytes() if path.exists() else b""
        with pytest.raises(Busy) as refused:
            file.append(b"two\n")
    assert str(refused.value) == f"another program changed {path}: {said}"
    assert refused.value.hint.startswith("Nothing was overwritten. Resume the session again")
    assert (path.read_bytes() if path.exists() else b"") == after


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("longer", "9 bytes were added"),
        ("shorter", "2 bytes were removed"),
        ("other", "its last lines were changed"),
        ("replaced", "it was replaced"),
        ("moved", "it was deleted"),
    ],
)
def test_a_file_that_is_not_as_expected_is_not_opened(tmp_path: Path, how: str, said: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one\n")
    state = FileState.of(str(path))
    Appender(str(path), expected=state).close()
    _change(path, how)
    with pytest.raises(Busy) as refused:
        Appender(str(path), expected=state)
    assert str(refused.value) == f"another program changed {path}: {said}"


def test_a_file_that_was_not_there_may_be_made_and_must_still_be_empty(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a"
    with Appender(str(path), expected=FileState()) as file:
        file.append(b"one\n")
    assert (path.read_bytes(), _mode(path), _mode(path.parent)) == (b"one\n", 0o600, 0o700)
    with pytest.raises(Busy, match="4 bytes were added"):
        Appender(str(path), expected=FileState())


def test_a_deleted_file_is_written_again_with_all_that_was_in_it(tmp_path: Path) -> None:
    path = tmp_path / "f" / "a"
    before = b"x" * ((1 << 20) + 7) + b"\n"
    with Appender(str(path)) as file:
        file.append(before)
        path.unlink()
        path.parent.rmdir()
        file.append(b"two\n")
        assert file.recreated
        file.sync()
        assert file.state() == FileState.of(str(path))
    assert path.read_bytes() == before + b"two\n"
    assert _mode(path) == 0o600


# Disk


def test_private_files_and_folders_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        path = tmp_path / "a"
        descriptor = open_private(str(path), os.O_RDWR | os.O_CREAT)
        write_all(descriptor, b"x" * 100_000)
        os.close(descriptor)
        assert make_private_folder(str(tmp_path / "b" / "c"))
    finally:
        os.umask(before)
    assert (_mode(path), _mode(tmp_path / "b"), _mode(tmp_path / "b" / "c")) == (0o600, 0o700, 0o700)
    assert not make_private_folder(str(tmp_path / "b"))
    assert read_all(str(path)) == b"x" * 100_000
    assert read_all(str(tmp_path / "none")) == b""
    path.chmod(0o644)
    os.close(open_private(str(path), os.O_RDONLY))
    assert _mode(path) == 0o644
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(OSError, match="symbolic link"):
        open_private(str(tmp_path / "link"), os.O_RDONLY)
    assert not make_private_folder(str(path))
    with pytest.raises(NotADirectoryError):
        make_private_folder(str(path / "below"))


def test_a_folder_that_cannot_be_flushed_is_left_but_a_failing_disk_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync_folder(str(tmp_path))
    for code, harmless in ((errno.EINVAL, True), (errno.EBADF, True), (errno.EACCES, True),
                           (errno.ENOTSUP, True), (errno.EISDIR, True), (errno.EIO, False)):  # fmt: skip

        def fail(_: int, code: int = code) -> None:
            raise OSError(code, "no")

        monkeypatch.setattr(atomic.os, "fsync", fail)
        if harmless:
            sync_folder(str(tmp_path))
        else:
            with pytest.raises(OSError, match="no"):
                sync_folder(str(tmp_path))


# Damaged files


def test_what_is_set_aside_keeps_three_and_is_told(tmp_path: Path) -> None:
    told: list[str] = []
    add_damage_listener(told.append)
    add_damage_listener(told.append)
    path = tmp_path / "state"
    made: list[str] = []
    for number in range(5):
        path.write_text(str(number))
        made.append(move_aside(str(path), "the state"))
        # The newest is never one of those that are removed.
        assert Path(made[-1]).read_text() == str(number)
    assert told[-5:] == [
        f"the state was damaged and is rebuilt; the damaged version was moved to {each}" for each in made
    ]
    # A name is free again when the oldest is removed.
    assert len(set(made)) >= 3
    assert len(_names(tmp_path)) == 3
    path.write_text("x")
    with pytest.raises(NotADirectoryError):
        move_aside(str(path), "x", only_folder=True)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        move_aside(str(path), "x")
    path.mkdir()
    assert Path(move_aside(str(path), "x", only_folder=True)).is_dir()


# Scratch files


def test_a_scratch_file_holds_what_was_written_and_goes(tmp_path: Path) -> None:
    target = tmp_path / "s.jsonl"
    with TempFile(str(target)) as scratch:
        assert scratch.write([b"one", b"", b"two"]) is scratch
        path = Path(scratch.path)
        assert path.parent == tmp_path
        assert path.name.startswith(f".s.jsonl.{os.getpid()}-")
        assert path.name.endswith(".steno-tmp")
        assert (path.read_bytes(), _mode(path), scratch.size) == (b"onetwo", 0o600, 6)
        import hashlib

        assert scratch.digest == hashlib.sha256(b"onetwo").hexdigest()
        assert scratch.identity == FileIdentity.from_status(path.stat()) == file_identity(str(path))
        assert scratch.source().read(0, 9) == b"onetwo"
        like = _aged(tmp_path / "like").stat()
        scratch.copy_metadata(like, with_time=False)
        assert _mode(path) == 0o640
        assert int(path.stat().st_mtime) != AGED
        scratch.copy_metadata(like)
        assert path.stat().st_mtime == AGED
    assert _names(tmp_path) == ["like"]
    with pytest.raises(Unwritable) as refused:
        TempFile(str(tmp_path / "none" / "x")).write([b"x"])
    assert str(refused.value) == f"cannot write {tmp_path}/none/x: no such file or directory"

    def failing() -> Any:
        yield b"x"
        raise OSError(errno.ENOSPC, "full")

    with pytest.raises(Unwritable, match="full"):
        TempFile(str(target)).write(failing())
    assert _names(tmp_path) == ["like"]


def test_what_dead_runs_left_is_swept_and_nothing_else(tmp_path: Path) -> None:
    left = {
        f".a.{DEAD}-0123456789ab.steno-tmp": True,
        f".a.{os.getpid()}-0123456789ab.steno-tmp": False,
        f".b.{DEAD}-0123456789ab.steno-tmp": False,
        f".a.{DEAD}-0123456789AB.steno-tmp": False,
        f".a.{DEAD}-0123456789a.steno-tmp": False,
        f"a.{DEAD}-0123456789ab.steno-tmp": False,
        f".a.{DEAD}-0123456789ab.steno-tmp.x": False,
        ".a.0-0123456789ab.steno-tmp": True,
        "a": False,
    }
    for name in left:
        (tmp_path / name).write_text("x")
    removed = remove_stale_temp_files(str(tmp_path / "a"))
    assert sorted(removed) == sorted(str(tmp_path / name) for name, gone in left.items() if gone)
    assert _names(tmp_path) == sorted(name for name, gone in left.items() if not gone)
    assert remove_stale_in_folder(str(tmp_path)) == [str(tmp_path / f".b.{DEAD}-0123456789ab.steno-tmp")]
    assert remove_stale_in_folder(str(tmp_path / "none")) == []
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert real_path(str(tmp_path / "link")) == str(tmp_path / "a")


def test_processes_are_told_alive_or_not() -> None:
    assert is_process_alive(os.getpid())
    assert not any(map(is_process_alive, (0, -1, DEAD, 10**30)))
    child = subprocess.Popen([sys.executable, "-c", "pass"], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.read()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    # Ended, and not heard of yet.
    assert not is_process_alive(child.pid)
    child.wait()
    child.stdout.close()
    start = process_start_time(os.getpid())
    assert start.isdecimal()
    assert process_start_time(DEAD) == ""
    assert is_running(LiveProcess(pid=os.getpid(), proc_start=start))
    assert is_running(LiveProcess(pid=os.getpid(), proc_start=""))
    assert is_running(LiveProcess(pid=os.getpid(), proc_start="later"))
    assert not is_running(LiveProcess(pid=os.getpid(), proc_start=f"{int(start) + 1}"))
    assert not is_running(LiveProcess(pid=DEAD, proc_start=start))


# Exchanging


def test_a_file_is_exchanged_and_brought_back(tmp_path: Path) -> None:
    path = _aged(tmp_path / "s.jsonl")
    seen = file_identity(str(path))
    with TempFile(str(path)) as scratch:
        done = swap(scratch.write([b"new\n"]), str(path), seen)
    backup = Path(f"{path}.before-repair")
    assert (done.path, done.backup) == (str(path), str(backup))
    assert (path.read_bytes(), backup.read_bytes()) == (b"new\n", b"old\n")
    assert (_mode(path), path.stat().st_mtime, _mode(backup)) == (0o640, AGED, 0o640)
    receipt = json.loads(Path(f"{backup}.json").read_text())
    assert (receipt["size"], bool(receipt["version"]), receipt["time"]) == (4, True, now())
    assert list_backups(str(path)) == [str(backup)]
    seen = file_identity(str(path))
    with TempFile(str(path)) as scratch:
        second = swap(scratch.write([b"newer\n"]), str(path), seen)
    assert second.backup == f"{path}.before-repair-2"
    assert list_backups(str(path)) == [str(backup), second.backup]
    back = undo(str(path))
    assert (back.path, back.repaired) == (str(path), f"{path}.undone")
    assert (path.read_bytes(), Path(back.repaired).read_bytes()) == (b"new\n", b"newer\n")
    path.write_bytes(b"more\n")
    with pytest.raises(Busy) as changed:
        undo(str(path))
    assert str(changed.value) == f"{path} has changed since the repair"
    assert changed.value.hint == f"The original file is {backup}."
    assert undo(str(path), force=True).repaired == f"{path}.undone-2"
    assert path.read_bytes() == b"old\n"
    with pytest.raises(NotFound) as never:
        undo(str(path))
    assert str(never.value) == f"nothing to undo: {path} was not repaired"
    assert _names(tmp_path) == ["s.jsonl", "s.jsonl.undone", "s.jsonl.undone-2"]


def test_a_file_that_changed_is_not_exchanged(tmp_path: Path) -> None:
    path = _aged(tmp_path / "s.jsonl")
    seen = file_identity(str(path))
    path.write_bytes(b"other\n")
    for act in (swap, exchange):
        with TempFile(str(path)) as scratch, pytest.raises(Busy) as refused:
            act(scratch.write([b"new\n"]), str(path), seen)
        assert str(refused.value) == f"{path} changed since it was read"
        assert refused.value.hint == "Nothing was written. Run the command again."
    assert (path.read_bytes(), _names(tmp_path)) == (b"other\n", ["s.jsonl"])


def test_an_exchange_keeps_nothing_and_sweeps_what_was_left(tmp_path: Path) -> None:
    path = _aged(tmp_path / "s.jsonl")
    (tmp_path / "s.jsonl.before-move").write_text("left")
    (tmp_path / "s.jsonl.before-move-3").write_text("left")
    with TempFile(str(path)) as scratch:
        exchange(scratch.write([b"new\n"]), str(path), file_identity(str(path)))
    assert (path.read_bytes(), _mode(path), path.stat().st_mtime) == (b"new\n", 0o640, AGED)
    assert _names(tmp_path) == ["s.jsonl"]


def test_a_new_file_is_placed_only_where_nothing_is(tmp_path: Path) -> None:
    like = _aged(tmp_path / "like")
    target = tmp_path / "new"
    with TempFile(str(target)) as scratch:
        assert place_new(scratch.write([b"x"]), str(target), template=str(like)) == str(target)
    assert (target.read_bytes(), _mode(target)) == (b"x", 0o640)
    assert target.stat().st_mtime != AGED
    with TempFile(str(target)) as scratch, pytest.raises(Unwritable) as refused:
        place_new(scratch.write([b"y"]), str(target))
    assert str(refused.value) == f"cannot write {target}: file exists"
    assert (target.read_bytes(), _names(tmp_path)) == (b"x", ["like", "new"])


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV])
def test_without_links_files_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def link(*_: object, **__: object) -> None:
        raise OSError(code, "no links")

    monkeypatch.setattr(os, "link", link)
    path = _aged(tmp_path / "s.jsonl")
    with TempFile(str(path)) as scratch:
        done = swap(scratch.write([b"new\n"]), str(path), file_identity(str(path)))
    backup = Path(done.backup)
    assert (backup.read_bytes(), _mode(backup), backup.stat().st_mtime) == (b"old\n", 0o640, AGED)
    assert path.read_bytes() == b"new\n"
    target = tmp_path / "t"
    with TempFile(str(target)) as scratch:
        place_new(scratch.write([b"x"]), str(target))
    with TempFile(str(target)) as scratch, pytest.raises(Unwritable, match="file exists"):
        place_new(scratch.write([b"y"]), str(target))
    assert target.read_bytes() == b"x"


def test_a_link_that_fails_otherwise_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "Broken")

    path = _aged(tmp_path / "s.jsonl")
    monkeypatch.setattr(os, "link", link)
    with TempFile(str(path)) as scratch, pytest.raises(Unwritable) as refused:
        swap(scratch.write([b"new\n"]), str(path), file_identity(str(path)))
    assert str(refused.value) == f"cannot write {path}: broken"
    assert (path.read_bytes(), _names(tmp_path)) == (b"old\n", ["s.jsonl"])


def test_every_exchange_sweeps_what_dead_runs_left_and_leaves_nothing_open(tmp_path: Path) -> None:
    """Also after many exchanges no file stays open, and no temporary file beside the session."""
    path = _aged(tmp_path / "s.jsonl")

    def left(name: str = "s.jsonl") -> Path:
        made = tmp_path / f".{name}.{DEAD}-0123456789ab.steno-tmp"
        made.write_text("left")
        return made

    def held() -> int:
        return len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 0

    before = held()
    made = left()
    with TempFile(str(path)) as scratch:
        scratch.write([b"new\n"]).source()
        swap(scratch, str(path), file_identity(str(path)))
        assert held() == before
    assert not made.exists()
    made = left()
    undo(str(path))
    assert not made.exists()
    made = left()
    with TempFile(str(path)) as scratch:
        scratch.write([b"newer\n"]).source()
        exchange(scratch, str(path), file_identity(str(path)))
        assert held() == before
    assert not made.exists()
    made = left("other")
    with TempFile(str(tmp_path / "other")) as scratch:
        scratch.write([b"x"]).source()
        place_new(scratch, str(tmp_path / "other"))
        assert held() == before
    assert not made.exists()
    made = left("sessions.jsonl")
    Catalogue(str(tmp_path)).write()
    assert not made.exists()
    assert held() == before
    assert _names(tmp_path) == ["other", "s.jsonl", "s.jsonl.undone", "sessions.jsonl"]
