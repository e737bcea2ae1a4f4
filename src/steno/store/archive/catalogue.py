"""One line for each session in the archive: what a listing asks, without opening the folders.

It says nothing that the journals of the folders do not say; lost, it is made again from them.
"""

import os
import re
from typing import Final

import msgspec

from steno.store.archive.index import Index, decode_line, encode_line, path_of, said_path
from steno.store.archive.opened import CATALOGUE
from steno.store.disk import append, flush_folder, open_private, read_all
from steno.store.scratch import Scratch, sweep, unreadable, unwritable

__all__ = ["Catalogue", "Entry", "entry_of", "folder_name", "read_entries"]

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]")
_LONGEST: Final = 80
_SPARE: Final = 200
_LETTERS: Final = 12


class Entry(msgspec.Struct, frozen=True):
    """A session in the archive, as it was when last kept."""

    said: str = msgspec.field(name="path")
    raw: str = ""
    folder: str = ""
    """The name of its folder in the archive."""
    number: int = 0
    """Which of the folder's files the session itself is; its last generation."""
    size: int = 0
    mtime_ns: int = 0
    files: int = 0
    total: int = 0
    """How many bytes all generations of all its files have."""
    packed: int = 0
    """How many bytes they take in the archive, without damaged copies that were replaced."""
    generations: int = 1
    """How many generations the session's own file has."""
    state: str = ""
    latest: int = 0
    """How many bytes the last generations of all its files have."""

    @property
    def path(self) -> str:
        """Where the session lies, or lay."""
        return path_of(self.said, self.raw)


_DECODER: Final = msgspec.json.Decoder(Entry)


def folder_name(path: str) -> str:
    """Return the name of the folder for a session: its own name, so that people find it."""
    from hashlib import sha256

    stem = os.path.basename(path).removesuffix(".jsonl")
    mark = sha256(os.fsencode(path)).hexdigest()[:_LETTERS]
    return f"{_UNSAFE.sub('_', stem)[:_LONGEST]}-{mark}"


def entry_of(index: Index, state: str = "") -> Entry | None:
    """Return the line about a folder; None where its journal does not say whose it is."""
    session = index.session
    if session is None:
        return None
    return Entry(
        *said_path(index.path),
        os.path.basename(index.folder),
        session.number,
        session.size,
        session.mtime_ns,
        len(index.newest()),
        sum(file.size for file in index.standing()),
        sum(file.packed for file in index.standing()),
        len(index.generations(index.path)),
        state,
        sum(file.size for file in index.newest()),
    )


def read_entries(path: str) -> tuple[dict[str, Entry], int, int]:
    """Return the last line about each session, how many whole bytes and how many lines there are.

    Raises:
        Unreadable: the catalogue is there and cannot be read.
    """
    try:
        data = read_all(path)
    except OSError as error:
        raise unreadable(path, error) from error
    entries: dict[str, Entry] = {}
    whole = data.rfind(b"\n") + 1
    lines = data[:whole].split(b"\n")[:-1]
    for raw in lines:
        entry = decode_line(raw, _DECODER)
        # What leads out of the archive's own folder was not written by us.
        if entry is not None and _UNSAFE.search(entry.folder) is None and entry.folder[:1] != ".":
            entries[entry.path] = entry
    return entries, whole, len(lines)


class Catalogue:
    """The catalogue, for somebody who holds the lock when writing."""

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, CATALOGUE[-1])
        self.entries, _, self._lines = read_entries(self._path)

    def add(self, entry: Entry) -> None:
        """Write the line about a session.

        Raises:
            Unwritable: that cannot be done.
        """
        if self.entries.get(entry.path) == entry:
            return
        self.entries[entry.path] = entry
        self._lines += 1
        try:
            descriptor = open_private(self._path, os.O_RDWR | os.O_CREAT)
            try:
                self._append(descriptor, encode_line(entry))
            finally:
                os.close(descriptor)
        except OSError as error:
            raise unwritable(self._path, error) from error

    def _append(self, descriptor: int, line: bytes) -> None:
        end = os.lseek(descriptor, 0, os.SEEK_END)
        if end:
            os.lseek(descriptor, end - 1, os.SEEK_SET)
            # A line that was cut off must not take this one with it.
            line = line if os.read(descriptor, 1) == b"\n" else b"\n" + line
            os.lseek(descriptor, end, os.SEEK_SET)
        append(descriptor, line)

    def forget(self, path: str) -> None:
        """Take out the line about a session.

        Raises:
            Unwritable: that cannot be done; it is as it was.
        """
        self.entries, _, self._lines = read_entries(self._path)
        if self.entries.pop(path, None) is not None:
            self.write()

    def tidy(self) -> None:
        """Have it on the disk; written anew, without what is out of date, when most of it is.

        Raises:
            Unwritable: that cannot be done.
        """
        if self._lines > 2 * len(self.entries) + _SPARE:
            # Somebody else may have written since it was read.
            self.entries, _, self._lines = read_entries(self._path)
            self.write()
            return
        # Once for all sessions of a run. A line that a power cut takes would leave a session
        # whose file is gone since where nobody looks.
        try:
            descriptor = open_private(self._path, os.O_RDWR)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            flush_folder(os.path.dirname(self._path))
        except OSError as error:
            raise unwritable(self._path, error) from error

    def write(self) -> None:
        """Write all of it anew.

        Raises:
            Unwritable: that cannot be done; it is as it was.
        """
        sweep(self._path)
        with Scratch(self._path) as scratch:
            scratch.write(map(encode_line, self.entries.values()))
            try:
                os.replace(scratch.path, self._path)
                flush_folder(os.path.dirname(self._path))
            except OSError as error:
                raise unwritable(self._path, error) from error
        self._lines = len(self.entries)
