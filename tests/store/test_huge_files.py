"""Huge and odd files in a listing: a bounded number of bytes is read of each."""

import os
import socket
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.builders import session

from steno.store.discovery import discover_file
from steno.store.file_source import FileSource
from steno.store.session_counts import count_turns
from steno.store.session_lookup import sessions_newest_first, summarize_files
from steno.store.summary import summarize

_MOST_READ = 24 << 20
_GIGABYTE = 1 << 30


@contextmanager
def _counted() -> Generator[list[int]]:
    """Count the bytes that are read of files."""
    number = [0]
    read, chunks = FileSource.read, FileSource.chunks

    def counted(self: FileSource, offset: int, length: int) -> bytes:
        data = read(self, offset, length)
        number[0] += len(data)
        return data

    def in_chunks(self: FileSource, start: int = 0) -> Iterator[bytes]:
        for chunk in chunks(self, start):
            number[0] += len(chunk)
            yield chunk

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FileSource, "read", counted)
        patch.setattr(FileSource, "chunks", in_chunks)
        yield number


def _huge(path: Path, kind: str) -> None:
    head = session().turn("Hello there", "Hi").bytes()
    with path.open("wb") as file:
        file.write(b"" if kind == "hole alone" else head)
        if kind == "line":
            file.write(b'{"type":"user","uuid":"u9","message":{"role":"user","content":"')
        file.seek(2 * _GIGABYTE, os.SEEK_CUR)
        file.write(b'x"}}\n' if kind == "line" else b"\n")
        file.write(b"" if kind == "no end" else head)


@pytest.mark.parametrize("kind", ["line", "zeros", "no end", "hole alone"])
def test_a_listing_reads_the_two_ends_of_a_huge_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "huge.jsonl"
    _huge(path, kind)
    found = discover_file(str(path))
    with _counted() as number:
        look = summarize(found, 0.0)
        assert count_turns(found) is None
    assert number[0] <= _MOST_READ
    if kind != "hole alone":
        assert look.title == "Hello there"


def test_what_is_no_file_is_not_opened(tmp_path: Path) -> None:
    folder = tmp_path / "projects" / "-x"
    folder.mkdir(parents=True)
    name = "0000000{}-0000-4000-8000-000000000000.jsonl"
    (folder / name.format(1)).write_bytes(session().turn("Hello", "Hi").bytes())
    os.mkfifo(folder / name.format(2))
    (folder / name.format(3)).symlink_to("/dev/zero")
    (folder / name.format(4)).mkdir()
    here = Path.cwd()
    with socket.socket(socket.AF_UNIX) as made:
        os.chdir(folder)
        try:
            made.bind(name.format(5))
        finally:
            os.chdir(here)
        files = sessions_newest_first(str(tmp_path), [])
        shown = [found.path for found, _ in summarize_files(files, 0.0, [])]
    assert [Path(path).name for path in shown] == [name.format(1)]
