"""Files are read by span and never changed; what is no file is refused in words."""

import os
from pathlib import Path

import pytest

from steno.errors import Unreadable
from steno.format.lines import read_pieces
from steno.format.records import Record
from steno.store.read import FileSource


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


def test_descriptors_are_given_back(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"one\n")
    for _ in range(2000):
        FileSource(str(path)).read(0, 1)
    source = FileSource(str(path))
    source.close()
    source.close()


def test_a_folder_a_pipe_and_nothing_are_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    for path, words in (
        (tmp_path, "is a folder"),
        (pipe, "is a pipe"),
        (Path("/dev/null"), "is a device"),
        (tmp_path / "none.jsonl", "no such file"),
    ):
        with pytest.raises(Unreadable, match=words):
            FileSource(str(path))
