"""Files and folders of steno's own: private whatever the umask, whole writes, flushed names."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steno.errors import BadRequest, Unreadable
from steno.store.atomic import make_private_folder, open_private, read_all, sync_folder, write_all, write_atomic
from steno.store.discovery import read_regular_file
from steno.store.file_source import PathSource
from steno.store.watch.incremental import reload_transcript


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o000, 0o022, 0o277])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_a_file_that_is_made_is_its_owners_alone(tmp_path: Path) -> None:
    os.close(open_private(str(tmp_path / "a"), os.O_WRONLY | os.O_CREAT))
    assert mode(tmp_path / "a") == 0o600


def test_the_mode_of_a_file_that_is_only_opened_stays(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x")
    path.chmod(0o640)
    os.close(open_private(str(path), os.O_RDONLY))
    assert mode(path) == 0o640
    os.close(open_private(str(path), os.O_RDWR | os.O_CREAT))
    assert mode(path) == 0o600


def test_no_link_is_followed_and_no_descriptor_inherited(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for act in (lambda: open_private(str(tmp_path / "link"), os.O_RDONLY), lambda: read_all(str(tmp_path / "link"))):
        with pytest.raises(OSError, match="symbolic link") as caught:
            act()
        assert caught.value.errno == errno.ELOOP
    file = open_private(str(tmp_path / "real"), os.O_RDONLY)
    assert not os.get_inheritable(file)
    os.close(file)


@pytest.mark.usefixtures("umask")
def test_folders_are_made_private_all_the_way_down(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    deep = tmp_path / "a" / "b" / "c"
    assert make_private_folder(str(deep))
    assert [mode(path) for path in (deep, deep.parent, deep.parent.parent)] == [0o700] * 3
    assert mode(tmp_path) == 0o755
    assert not make_private_folder(str(deep))


def test_a_folder_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(mode=0o755)
    (tmp_path / "a").chmod(0o755)
    assert not make_private_folder(str(tmp_path / "a"))
    assert mode(tmp_path / "a") == 0o755


def test_a_folder_that_somebody_else_makes_meanwhile_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(_path: str, _mode: int) -> None:
        raise FileExistsError

    monkeypatch.setattr(os, "mkdir", late)
    assert not make_private_folder(str(tmp_path / "a"))


def flushed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note which folders are flushed."""
    names: list[str] = []
    real = os.fsync

    def fsync(file: int) -> None:
        names.append(str(Path(f"/proc/self/fd/{file}").readlink()))
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    return names


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")
def test_the_folder_above_each_new_one_is_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = flushed(monkeypatch)
    make_private_folder(str(tmp_path / "a" / "b"))
    assert names == [str(tmp_path), str(tmp_path / "a")]
    sync_folder("")
    assert names[-1] == str(Path.cwd())


def test_a_system_that_cannot_flush_a_folder_is_let_be_and_a_failing_disk_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(code: int) -> Any:
        def fsync(_file: int) -> None:
            raise OSError(code, os.strerror(code))

        return fsync

    for code in (errno.EINVAL, errno.EBADF, errno.EACCES, errno.ENOTSUP, errno.EISDIR):
        monkeypatch.setattr(os, "fsync", failing(code))
        sync_folder(str(tmp_path))
    for code in (errno.EIO, errno.ENOSPC):
        monkeypatch.setattr(os, "fsync", failing(code))
        with pytest.raises(OSError, match=os.strerror(code)) as caught:
            sync_folder(str(tmp_path))
        assert caught.value.errno == code


def test_all_is_written_however_little_goes_in_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write

    def few(file: int, data: memoryview) -> int:
        return real(file, data[:3])

    monkeypatch.setattr(os, "write", few)
    file = open_private(str(tmp_path / "a"), os.O_WRONLY | os.O_CREAT)
    write_all(file, b"0123456789")
    os.close(file)
    assert read_all(str(tmp_path / "a")) == b"0123456789"
    assert read_all(str(tmp_path / "none")) == b""


def test_a_large_file_is_read_whole(tmp_path: Path) -> None:
    data = bytes(range(256)) * 9000
    (tmp_path / "a").write_bytes(data)
    assert read_all(str(tmp_path / "a")) == data


# Files that somebody names


def test_a_named_file_is_read_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x" * (2 << 20))
    assert len(read_regular_file(str(path), 2 << 20)) == 2 << 20
    with pytest.raises(BadRequest, match="is larger than 1 MB"):
        read_regular_file(str(path), (2 << 20) - 1)


def test_what_is_no_plain_file_is_one_clear_error(tmp_path: Path) -> None:
    for name in ("none", "."):
        with pytest.raises(Unreadable, match="cannot read") as caught:
            read_regular_file(str(tmp_path / name), 100)
        assert not str(caught.value).endswith(": ")
        assert "\n" not in str(caught.value)


# Files that grow

LINE = b'{"type":"user","uuid":"%d","message":{"content":"x"}}\n'


def read_again(path: Path, change: bytes, *, count: int = 200) -> tuple[int, list[str | None]]:
    """Read a file, change it, read it again; return how many nodes were kept, and all ids."""
    path.write_bytes(b"".join(LINE % number for number in range(count)))
    first = reload_transcript(None, PathSource(str(path)))
    path.write_bytes(change)
    second = reload_transcript(first, PathSource(str(path)))
    kept = sum(new is old for new, old in zip(second.nodes, first.nodes, strict=False))
    return kept, [node.uuid for node in second.nodes]


def test_only_what_was_added_is_read(tmp_path: Path) -> None:
    old = b"".join(LINE % number for number in range(200))
    kept, names = read_again(tmp_path / "a.jsonl", old + LINE % 200)
    assert (kept, len(names)) == (200, 201)


@pytest.mark.parametrize("where", ["beginning", "end", "shorter"])
def test_a_file_that_is_another_is_read_as_a_whole(tmp_path: Path, where: str) -> None:
    lines = [LINE % number for number in range(200)]
    if where == "beginning":
        lines[0] = lines[0].replace(b'"0"', b'"z"')
    elif where == "end":
        lines[199] = lines[199].replace(b'"x"', b'"y"')
    else:
        lines = lines[:-1]
    more = LINE % 900 if where != "shorter" else b""
    kept, names = read_again(tmp_path / "a.jsonl", b"".join(lines) + more)
    assert kept == 0
    expected = [str(number) for number in range(200)]
    if where == "beginning":
        expected[0] = "z"
    assert names == (expected[:-1] if where == "shorter" else [*expected, "900"])


def test_a_file_with_the_same_beginning_in_its_place_is_read_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    data = b"".join(LINE % number for number in range(200))
    path.write_bytes(data)
    first = reload_transcript(None, PathSource(str(path)))
    (tmp_path / "b").write_bytes(data + LINE % 200)
    (tmp_path / "b").replace(path)
    second = reload_transcript(first, PathSource(str(path)))
    assert len(second.nodes) == 201
    assert second.nodes[0] is not first.nodes[0]


@pytest.mark.usefixtures("umask")
@pytest.mark.parametrize("sync", [False, True])
def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, *, sync: bool) -> None:
    def failing_chunks() -> Iterator[bytes]:
        yield b"half"
        raise OSError(errno.ENOSPC, "no room")

    path = tmp_path / "a"
    assert write_atomic(str(path), (b"on", b"e"), sync=sync) == 3
    with pytest.raises(OSError, match="no room"):
        write_atomic(str(path), failing_chunks(), sync=sync)
    assert (read_all(str(path)), mode(path)) == (b"one", 0o600)
    assert [each.name for each in tmp_path.iterdir()] == ["a"]
