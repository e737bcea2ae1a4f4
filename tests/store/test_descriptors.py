"""No file stays open: neither after what went well nor after what was refused."""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from tests.index.transcripts import Script
from tests.store.relocate.moving import unflushed

from steno.errors import StenoError
from steno.store.append import Appender
from steno.store.archive.archive import Archive, archive_all
from steno.store.archive.catalogue import MovedSession, record_moves
from steno.store.archive.file_access import open_file, open_transcript
from steno.store.atomic import TempFile, file_identity, read_all
from steno.store.dirfd import Directory
from steno.store.discovery import discover_file, peek
from steno.store.file_lock import FileLock
from steno.store.file_source import FileSource, PathSource
from steno.store.replace import exchange, swap, undo
from steno.store.session_lock import SessionAnnouncement, SessionLock
from steno.store.summary import project_in_listing, summarize

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark: Final = pytest.mark.skipif(sys.platform != "linux", reason="/proc tells what is open")
ONE: Final = "11111111-0000-4000-8000-000000000001"


def _open() -> list[str]:
    found: list[str] = []
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found.append(str(entry.readlink()))
    return sorted(name for name in found if not name.startswith("/proc/"))


def _exchanged(path: Path) -> None:
    with TempFile(str(path)) as scratch:
        scratch.write([b"new\n"])
        exchange(scratch, str(path), file_identity(str(path)))


def _repaired(path: Path) -> None:
    with TempFile(str(path)) as scratch:
        scratch.write([path.read_bytes(), b"more\n"])
        swap(scratch, str(path), file_identity(str(path)))
    undo(str(path))


def _failing(path: Path) -> None:
    def chunks() -> "list[bytes]":
        raise OSError(5, "Input/output error")

    with TempFile(str(path)) as scratch:
        scratch.write(each for each in chunks())


def _held(path: Path) -> None:
    with SessionLock.acquire(str(path), check_clients=False):
        SessionLock.acquire(str(path), check_clients=False)


def _appended(path: Path) -> None:
    appender = Appender(str(path))
    appender.close()
    appender.close()


def _through(path: str, name: str = "") -> None:
    with Directory(path) as folder:
        folder.replace_file("put", b"x", folder.status(name) if name else None)


def test_nothing_stays_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", unflushed)
    config = tmp_path / "config"
    path = config / "projects" / "-p" / f"{ONE}.jsonl"
    path.parent.mkdir(parents=True)
    data = Script().user("Go", sessionId=ONE).bot("x", sessionId=ONE).bytes()
    path.write_bytes(data)
    os.utime(path, (1_790_000_000, 1_790_000_000))
    other = tmp_path / "other"
    other.write_bytes(b"other\n")
    (tmp_path / "link").symlink_to(path.parent)
    os.mkfifo(tmp_path / "pipe")
    found = discover_file(str(path))
    actions: dict[str, Callable[[], object]] = {
        "a folder": lambda: _through(str(tmp_path)),
        "a folder with a file like another": lambda: _through(str(tmp_path), "other"),
        "a folder that is none": lambda: _through(str(tmp_path / "none" / "deep")),
        "a folder that is a link": lambda: _through(str(tmp_path / "link")),
        "an appender": lambda: _appended(path),
        "an appender of a folder": lambda: _appended(tmp_path),
        "a lock": lambda: FileLock(str(tmp_path / "lock")).__enter__().__exit__(None, None, None),
        "a session lock that is held": lambda: _held(path),
        "a note of a live client": lambda: SessionAnnouncement(str(config), ONE, "/p", "1").__enter__().__exit__(None, None, None),
        "a pipe": lambda: FileSource(str(tmp_path / "pipe")),
        "the head of a pipe": lambda: peek(str(tmp_path / "pipe"), 9, []),
        "the head of a folder": lambda: peek(str(tmp_path), 9, []),
        "the head of a file": lambda: peek(str(path), 9, []),
        "all of a file": lambda: read_all(str(path)),
        "a file by its path": lambda: [*PathSource(str(path)).chunks(), PathSource(str(path)).read(0, 9)],
        "a glance": lambda: (summarize(found, 0.0), project_in_listing(found)),
        "an exchange": lambda: _exchanged(other),
        "a repair": lambda: _repaired(other),
        "a write that fails": lambda: _failing(other),
        "a note of a move": lambda: record_moves([MovedSession("/a", "/b", 1)]),
        "archiving": lambda: archive_all((str(config),)),
        "archiving again": lambda: Archive().keep(found, full=True),
        "proving": lambda: list(Archive().verify()),
        "reading from the archive": lambda: b"".join(Archive().source(Archive().entry(str(path))).chunks()),
        "restoring": lambda: Archive().restore(Archive().entry(str(path)), str(tmp_path / "to")),
        "a session wherever it is": lambda: open_transcript(str(path)).close(),
        "a found session": lambda: open_file(found).close(),
    }  # fmt: skip
    before = _open()
    for name, act in actions.items():
        with suppress(StenoError, OSError):
            act()
        assert _open() == before, name
