"""Appending: whole lines, files cut back after failed writes, changes by other programs noticed."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steno.errors import Busy, Unwritable
from steno.store import append, atomic
from steno.store.append import Appender, FileState

LINE = b'{"type":"user","n":%d}\n'


class Recorded:
    """The module `os` for `store.append`, with one function replaced."""

    def __init__(self, **replaced: Callable[..., Any]) -> None:
        self._replaced = replaced

    def __getattr__(self, name: str) -> Any:
        return self._replaced.get(name, getattr(os, name))


def test_records_are_appended_to_a_file_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "projects" / "p" / "s.jsonl"
    with Appender(str(path)) as file:
        file.append(b"one\n")
        file.append(b"two\n")
        file.sync()
    assert path.read_bytes() == b"one\ntwo\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o077 == 0


def test_a_torn_tail_stays_alone_on_its_line(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"one\ntor")
    with Appender(str(path)) as file:
        file.append(b"two\n")
    assert path.read_bytes() == b"one\ntor\ntwo\n"


def test_a_place_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(Unwritable, match="cannot write"):
        Appender(str(tmp_path / "file" / "s.jsonl"))


# Failed writes


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_a_full_disk_is_one_clear_error() -> None:
    with Appender("/dev/full") as file, pytest.raises(Unwritable, match="/dev/full") as raised:
        file.append(b"one\n")
    assert raised.value.errno == errno.ENOSPC


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO])
@pytest.mark.parametrize("written", [0, 1, 10, len(LINE) - 1])
@pytest.mark.parametrize("before", [b"", b"one\n", b"one\ntorn by another program"])
def test_a_failed_write_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, written: int, before: bytes
) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(before)
    calls: list[int] = []

    def write(descriptor: int, data: bytes) -> int:
        calls.append(len(data))
        if len(calls) == 1 and written:
            return os.write(descriptor, data[:written])
        raise OSError(code, os.strerror(code))

    with Appender(str(path)) as file:
        with monkeypatch.context() as patch:
            patch.setattr(append, "os", Recorded(write=write))
            with pytest.raises(Unwritable, match="cannot write") as raised:
                file.append(LINE)
        assert raised.value.errno == code
        assert "\n" not in str(raised.value)
        assert path.read_bytes() == before
        # Where there is room again the same file goes on.
        file.append(LINE)
    healed = before + (b"\n" if before and not before.endswith(b"\n") else b"")
    assert path.read_bytes() == healed + LINE


def test_a_short_write_that_can_be_finished_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.jsonl"

    def one(descriptor: int, data: bytes) -> int:
        return os.write(descriptor, data[:1])

    with Appender(str(path)) as file:
        monkeypatch.setattr(append, "os", Recorded(write=one))
        file.append(LINE)
        file.append(LINE)
    assert path.read_bytes() == LINE * 2


@pytest.mark.parametrize("foreign", [b"!", b"another program's line\n"])
def test_bytes_of_another_program_behind_a_failed_write_are_not_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, foreign: bytes
) -> None:
    path = tmp_path / "s.jsonl"
    calls: list[int] = []

    def write(descriptor: int, data: bytes) -> int:
        calls.append(len(data))
        count = os.write(descriptor, data[:4])
        with path.open("ab") as other:
            other.write(foreign)
        return count

    with Appender(str(path)) as file:
        file.append(b"one\n")
        monkeypatch.setattr(append, "os", Recorded(write=write))
        with pytest.raises(Busy, match="at the same time"):
            file.append(LINE)
        assert len(calls) == 1
        with pytest.raises(Busy):
            file.append(LINE)
    assert path.read_bytes() == b"one\n" + LINE[:4] + foreign


def test_a_file_that_cannot_be_cut_back_goes_on_with_a_new_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.jsonl"
    calls: list[int] = []

    def write(descriptor: int, data: bytes) -> int:
        calls.append(len(data))
        if len(calls) == 1:
            return os.write(descriptor, data[:4])
        raise OSError(errno.EIO, "bad disk")

    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, "bad disk")

    with Appender(str(path)) as file:
        file.append(b"one\n")
        with monkeypatch.context() as patch:
            patch.setattr(append, "os", Recorded(write=write, ftruncate=refuse))
            with pytest.raises(Unwritable, match="bad disk"):
                file.append(LINE)
        file.append(LINE)
    assert path.read_bytes() == b"one\n" + LINE[:4] + b"\n" + LINE


def test_a_limit_of_the_system_cuts_at_the_byte_and_the_file_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    code = (
        "import resource, sys\n"
        "from steno.errors import Unwritable\n"
        "from steno.store.append import Appender\n"
        "file, line = Appender(sys.argv[1]), b'x' * 99 + b'\\n'\n"
        "hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]\n"
        "for limit in range(300, 400):\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))\n"
        "    for count in range(4):\n"
        "        try:\n"
        "            file.append(line)\n"
        "        except Unwritable:\n"
        "            print(count)\n"
        "            break\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))\n"
        "    data = open(sys.argv[1], 'rb').read()\n"
        "    assert data == line * 3, (limit, len(data))\n"
        "file.append(line)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.split() == ["3", *["0"] * 99]
    assert path.stat().st_size == 400


# The disk


def test_what_is_synced_was_flushed_first_the_file_then_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "new" / "s.jsonl"
    flushed: list[tuple[str, int]] = []

    def fsync(descriptor: int) -> None:
        os.fsync(descriptor)
        name = str(Path(f"/proc/self/fd/{descriptor}").readlink())
        flushed.append((os.path.relpath(name, tmp_path), os.fstat(descriptor).st_size))

    for module in (append, atomic):
        monkeypatch.setattr(module, "os", Recorded(fsync=fsync))
    with Appender(str(path)) as file:
        assert [name for name, _ in flushed] == ["."]
        flushed.clear()
        file.append(LINE)
        assert flushed == []
        file.sync()
        assert [name for name, _ in flushed] == ["new/s.jsonl", "new"]
        assert flushed[0] == ("new/s.jsonl", len(LINE))
        flushed.clear()
        file.append(LINE)
        file.sync()
        assert flushed == [("new/s.jsonl", 2 * len(LINE))]


def test_a_sync_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(_descriptor: int) -> None:
        raise OSError(errno.EIO, "bad disk")

    with Appender(str(tmp_path / "s.jsonl")) as file:
        file.append(LINE)
        monkeypatch.setattr(append, "os", Recorded(fsync=fsync))
        with pytest.raises(Unwritable, match="bad disk"):
            file.sync()


# Other programs


def _append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"foreign\n")


def _append_torn(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"{")


def _truncate(path: Path) -> None:
    os.truncate(path, 2)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _edit_the_end(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-3] + b"X" + data[-2:])


def _truncate_and_write_as_much(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(b"y" * (len(data) - 1) + b"\n")


def _replace(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(b"other\n")
    other.replace(path)


def _replace_with_the_same(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    other.replace(path)


def _delete_and_create(path: Path) -> None:
    path.unlink()
    path.write_bytes(b"other\n")


def _move(path: Path) -> None:
    path.rename(path.with_name("moved"))


CHANGES = (
    _append,
    _append_torn,
    _truncate,
    _empty,
    _edit_the_end,
    _truncate_and_write_as_much,
    _replace,
    _replace_with_the_same,
    _delete_and_create,
    _move,
)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("length", [4, 5000])
def test_a_file_that_another_program_changed_is_left_alone(
    tmp_path: Path, change: Callable[[Path], None], length: int
) -> None:
    path = tmp_path / "s.jsonl"
    with Appender(str(path)) as file:
        file.append(b"x" * (length - 1) + b"\n")
        change(path)
        after = contents(tmp_path)
        for _ in range(2):
            with pytest.raises(Busy, match="another program changed") as raised:
                file.append(b"two\n")
            assert str(path) in str(raised.value)
            assert "--fork-session" in raised.value.hint
    assert contents(tmp_path) == after


@pytest.mark.parametrize("change", [*CHANGES, Path.unlink])
def test_a_change_between_reading_and_the_first_write_is_noticed(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"one two three\n")
    seen = FileState.of(str(path))
    Appender(str(path), expected=seen).close()
    change(path)
    after = contents(tmp_path)
    with pytest.raises(Busy, match="another program changed"):
        Appender(str(path), expected=seen)
    assert contents(tmp_path) == after


def test_a_new_file_that_another_program_writes_first_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    seen = FileState.of(str(path))
    assert seen == FileState()
    path.write_bytes(b"other\n")
    with pytest.raises(Busy, match="6 bytes were added"):
        Appender(str(path), expected=seen)
    assert path.read_bytes() == b"other\n"


def test_the_state_after_a_write_is_what_the_next_one_expects(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    with Appender(str(path)) as file:
        file.append(LINE * 100)
        state = file.state()
    assert state == FileState.of(str(path))
    with Appender(str(path), expected=state) as file:
        file.append(LINE)


def test_a_file_that_was_deleted_is_there_again_with_all_that_was_in_it(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "s.jsonl"
    with Appender(str(path)) as file:
        file.append(b"one\n" * 1_000_000)
        path.unlink()
        path.parent.rmdir()
        assert not file.recreated
        file.append(b"two\n")
        assert file.recreated
        path.unlink()
        file.append(b"three\n")
    assert path.read_bytes() == b"one\n" * 1_000_000 + b"two\nthree\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_deleted_file_that_does_not_fit_on_the_disk_any_more_leaves_no_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.jsonl"

    def write(descriptor: int, data: bytes) -> int:
        if os.fstat(descriptor).st_size:
            raise OSError(errno.ENOSPC, "full")
        return os.write(descriptor, data[:100])

    with Appender(str(path)) as file:
        file.append(LINE * 100)
        path.unlink()
        with monkeypatch.context() as patch:
            patch.setattr(atomic, "os", Recorded(write=write))
            with pytest.raises(Unwritable, match="full"):
                file.append(LINE)
        assert not path.exists()
        file.append(LINE)
    assert path.read_bytes() == LINE * 101
