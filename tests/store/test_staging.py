"""Where files are worked on: in memory while small, else on the disk, and nothing stays behind."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from steno.errors import Unwritable
from steno.store import replace
from steno.store.replace import StagingArea, make_owner_writable


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder of the test's own, and a bench with room for 100 bytes."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setattr(replace, "MAX_MEMORY_SIZE", 100)
    return folder


def lines(count: int) -> Iterator[bytes]:
    return (b"line %03d\n" % number for number in range(count))


def test_what_is_small_stays_in_memory(place: Path) -> None:
    with StagingArea() as bench:
        source = bench.stage(lines(3))
        assert b"".join(source.chunks()) == b"".join(lines(3))
        assert list(place.iterdir()) == []


def test_what_is_large_goes_to_the_disk_for_its_owners_eyes_only(place: Path) -> None:
    with StagingArea() as bench:
        source = bench.stage(lines(500))
        assert b"".join(source.chunks()) == b"".join(lines(500))
        (folder,) = place.iterdir()
        (file,) = folder.iterdir()
        if os.name == "posix":
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(place.iterdir()) == []


def test_only_the_last_file_is_kept(place: Path) -> None:
    with StagingArea() as bench:
        first = bench.stage(lines(500))
        second = bench.stage(first.chunks())
        third = bench.stage(chunk.upper() for chunk in second.chunks())
        assert b"".join(third.chunks()) == b"".join(lines(500)).upper()
        (folder,) = place.iterdir()
        assert len(list(folder.iterdir())) == 1
        assert bench.stage(lines(1)).size == 9
        assert list(folder.iterdir()) == []


def test_nothing_stays_behind_when_the_work_fails(place: Path) -> None:
    def failing() -> Iterator[bytes]:
        yield from lines(100)
        raise KeyError("gone")

    def work() -> None:
        with StagingArea() as bench:
            bench.stage(failing())

    with pytest.raises(KeyError):
        work()
    assert list(place.iterdir()) == []


def test_no_room_is_an_error_of_ours(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(place / "missing"))
    with StagingArea() as bench, pytest.raises(Unwritable, match="a temporary file"):
        bench.stage(lines(500))


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_a_new_file_is_its_owners_to_write(tmp_path: Path) -> None:
    path = tmp_path / "new"
    path.touch()
    path.chmod(0o444)
    assert make_owner_writable(str(path)) == str(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    with pytest.raises(Unwritable):
        make_owner_writable(str(tmp_path / "missing"))
