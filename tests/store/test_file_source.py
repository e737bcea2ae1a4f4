"""Files are read by span and never changed; what is no file is refused in words."""

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from steno.errors import Unreadable
from steno.format.lines import read_pieces
from steno.format.records import Record
from steno.store.file_source import FileSource, PathSource


def test_spans_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"0123456789")
    with FileSource(str(path)) as source:
        assert source.size == 10
        assert source.read(3, 4) == b"3456"
        assert source.read(8, 100) == b"89"
        assert source.read(50, 5) == b""
        assert b"".join(source.chunks(4)) == b"456789"


def test_bytes_appended_later_are_not_seen(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"one\n")
    with FileSource(str(path)) as source:
        with path.open("ab") as more:
            more.write(b"two\n")
        assert b"".join(source.chunks()) == b"one\n"


def test_holes_are_crossed_without_reading_them(tmp_path: Path) -> None:
    path = tmp_path / "sparse.jsonl"
    with path.open("wb") as out:
        out.write(b'{"type":"mode"}\n')
        out.truncate(64 << 20)
        out.seek(64 << 20)
        out.write(b'{"type":"tag"}\n')
        out.truncate(96 << 20)
    with FileSource(str(path)) as source:
        pieces = list(read_pieces(source))
    assert [piece.type for piece in pieces if isinstance(piece, Record)] == ["mode", "tag"]
    assert sum(piece.length for piece in pieces) == 96 << 20


def test_reading_leaves_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"one\n")
    path.chmod(0o400)
    before = path.stat()
    with FileSource(str(path)) as source:
        source.read(0, 4)
    after = path.stat()
    assert (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size)
    assert list(tmp_path.iterdir()) == [path]


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    """Leave the test with no more than sixteen files to have open at once."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(each.name) for each in Path("/dev/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 16, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("few_descriptors")
def test_descriptors_are_given_back(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"one\n")
    too_many = resource.getrlimit(resource.RLIMIT_NOFILE)[0] + 1
    for _ in range(too_many):
        FileSource(str(path)).read(0, 1)
    held = [PathSource(str(path)) for _ in range(too_many)]
    assert {source.read(1, 2) for source in held} == {b"ne"}
    with pytest.raises(Unreadable, match="too many open files"):
        _ = [FileSource(str(path)) for _ in range(too_many)]


def test_closing_may_be_repeated(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"one\n")
    source = FileSource(str(path))
    source.close()
    source.close()


def test_a_file_that_is_opened_for_each_look_shows_what_was_there_at_first(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"one\n")
    source = PathSource(str(path))
    with path.open("ab") as more:
        more.write(b"two\n")
    assert (source.size, source.read(0, 100), b"".join(source.chunks(1))) == (4, b"one\n", b"ne\n")


@pytest.mark.parametrize("change", ["cut", "replaced"])
def test_a_file_that_changed_is_not_read_on(tmp_path: Path, change: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"one\ntwo\n")
    source, held = PathSource(str(path)), FileSource(str(path))
    if change == "cut":
        path.write_bytes(b"one\n")
        with pytest.raises(Unreadable, match="changed while it was read"):
            list(held.chunks())
    else:
        (tmp_path / "b").write_bytes(b"other words\n")
        (tmp_path / "b").rename(path)
    held.close()
    with pytest.raises(Unreadable, match="changed while it was read"):
        source.read(0, 2)


def test_a_name_that_no_file_can_have_is_refused() -> None:
    with pytest.raises(Unreadable, match="null"):
        FileSource("a\0b")


def test_a_folder_a_pipe_and_nothing_are_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    for path, words in (
        (tmp_path, "is a directory"),
        (pipe, "is a pipe"),
        (Path("/dev/null"), "is a device"),
        (tmp_path / "none.jsonl", "no such file"),
    ):
        with pytest.raises(Unreadable, match=words):
            FileSource(str(path))
