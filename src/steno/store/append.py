"""Appends records to a session file and keeps the file intact if a write fails.

with Appender(path) as file:
    file.append(line)          # one write per record; after an error the file is unchanged
    file.sync()                # flush the data and the directory entry at the end of a turn

If another program left an unfinished last line, a newline is added first so that the new record starts on a separate
line. If another program has changed the file since the last write, nothing more is written (`steno.errors.Busy`). A
deleted file is recreated with its full content.
"""

import errno
import os
from types import TracebackType
from typing import Final, NoReturn, Self

import msgspec

from steno.errors import Busy, Unwritable
from steno.store.atomic import make_private_folder, sync_folder, unwritable_error, write_all

_NEWLINE: Final = b"\n"
_CHUNK_SIZE: Final = 1 << 20
_TAIL_SIZE: Final = 256
_FILE_MODE: Final = 0o600
_FLAGS: Final = os.O_RDWR | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
_CHANGED_HINT: Final = (
    "Nothing was overwritten. Resume the session again to load the change, or continue in a fork: "
    "--fork-session (in the console: /resume, /fork)."
)


class FileState(msgspec.Struct, frozen=True):
    """Identity, size and last bytes of a file; all zero if it does not exist."""

    device: int = 0
    inode: int = 0
    size: int = 0
    tail: bytes = b""

    @classmethod
    def of(cls, path: str) -> Self:
        """Return the state of the file at a path. Raises Unwritable if it exists and cannot be read."""
        try:
            descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        except FileNotFoundError:
            return cls()
        except OSError as error:
            raise unwritable_error(path, error) from None
        try:
            status = os.fstat(descriptor)
            tail = _read_tail(descriptor, status.st_size)
        except OSError as error:
            raise unwritable_error(path, error) from None
        finally:
            os.close(descriptor)
        return cls(status.st_dev, status.st_ino, status.st_size, tail)


class Appender:
    """One session file, open for appending."""

    def __init__(self, path: str, *, expected: FileState | None = None) -> None:
        """Open a file; `expected` is its state when it was last read or written.

        Raises Busy if its state differs from `expected`, or Unwritable if it cannot be opened.
        """
        self.path = path
        self.recreated = False
        """Whether the file was deleted and created again since it was opened."""
        self._directory_synced = False
        """Whether the directory entry of the file was flushed to disk."""
        self._file = -1
        must_exist = expected is not None and expected.inode > 0
        try:
            self._file = _open_file(path, create=not must_exist)
        except FileNotFoundError as error:
            raise (self._changed_error("it was deleted") if must_exist else unwritable_error(path, error)) from None
        except OSError as error:
            raise unwritable_error(path, error) from None
        try:
            status = os.fstat(self._file)
            self._size: int = status.st_size
            self._tail = _read_tail(self._file, self._size)
            if expected is not None:
                self._refuse_unexpected(expected, status)
        except OSError as error:
            self.close()
            raise error if isinstance(error, Busy) else unwritable_error(path, error) from None

    def _refuse_unexpected(self, expected: FileState, status: os.stat_result) -> None:
        same = (expected.device, expected.inode) == (status.st_dev, status.st_ino)
        if expected.inode and not same:
            raise self._changed_error("it was replaced")
        if self._size != expected.size:
            raise self._changed_error(_size_change(expected.size, self._size))
        if self._tail != expected.tail:
            raise self._changed_error("its last lines were changed")

    def state(self) -> FileState:
        """Return the state after the last write, which the next `Appender` expects."""
        status = os.fstat(self._file)
        return FileState(status.st_dev, status.st_ino, self._size, self._tail)

    def append(self, *lines: bytes) -> None:
        """Write records with their newlines: all of them, or none.

        Raises Busy if another program has changed the file, or Unwritable if writing fails; in both cases none of the
        records remains in the file.
        """
        start, appended = self._size, b""
        try:
            for line in lines:
                self._refuse_if_changed()
                record = line if self._ends_with_newline() else _NEWLINE + line
                appended += record
                self._write(record)
        except Busy:
            raise
        except OSError as error:
            self._undo_append(start, appended)
            raise _append_error(self.path, error) from None

    def _write(self, record: bytes) -> None:
        start, written = self._size, 0
        while written < len(record):
            if written and os.fstat(self._file).st_size != start + written:
                raise self._changed_error("another program wrote at the same time")
            written += os.write(self._file, record[written:] if written else record) or _raise_disk_full()
        self._size = start + written
        self._tail = (self._tail + record[-_TAIL_SIZE:])[-_TAIL_SIZE:]

    def sync(self) -> None:
        """Flush the data, and the directory entry of a new file, to disk.

        Raises Unwritable if flushing fails.
        """
        try:
            os.fsync(self._file)
            if not self._directory_synced:
                sync_folder(os.path.dirname(self.path))
                self._directory_synced = True
        except OSError as error:
            raise _append_error(self.path, error) from None

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Changes by other programs

    def _refuse_if_changed(self) -> None:
        """Raise `Busy` if the file has changed since the last write."""
        status = os.fstat(self._file)
        try:
            path_status = os.stat(self.path)
        except FileNotFoundError:
            if status.st_nlink:
                raise self._changed_error("it was moved") from None
            self._recreate(status.st_size)
            return
        if not os.path.samestat(status, path_status):
            raise self._changed_error("it was replaced")
        if status.st_size != self._size:
            raise self._changed_error(_size_change(self._size, status.st_size))
        if _read_tail(self._file, self._size) != self._tail:
            raise self._changed_error("its last lines were changed")

    def _changed_error(self, reason: str) -> Busy:
        return Busy(f"another program changed {self.path}: {reason}", hint=_CHANGED_HINT)

    def _recreate(self, size: int) -> None:
        """Recreate a deleted file with its full content."""
        make_private_folder(os.path.dirname(self.path) or os.curdir)
        try:
            descriptor = os.open(self.path, _FLAGS | os.O_CREAT | os.O_EXCL, _FILE_MODE)
        except FileExistsError:
            raise self._changed_error("it was replaced") from None
        try:
            for offset in range(0, size, _CHUNK_SIZE):
                write_all(descriptor, _read_range(self._file, offset, min(_CHUNK_SIZE, size - offset)))
        except OSError:
            os.close(descriptor)
            os.unlink(self.path)
            raise
        os.close(self._file)
        self._file = descriptor
        self._directory_synced = False
        self.recreated = True

    # Failed writes

    def _undo_append(self, start: int, data: bytes) -> None:
        """Remove a partially written record, if nothing follows it."""
        try:
            size = os.fstat(self._file).st_size
            added = size - start
            if added > len(data) or _read_range(self._file, start, added) != data[: max(added, 0)]:
                return
            self._size = size
            if added > 0:
                self._tail = _read_tail(self._file, size)
                os.ftruncate(self._file, start)
                self._size = start
                self._tail = _read_tail(self._file, start)
                os.fsync(self._file)
        except OSError:
            # The partial record stays; the next record starts on a new line.
            return

    def _ends_with_newline(self) -> bool:
        return not self._tail or self._tail.endswith(_NEWLINE)


def _append_error(path: str, error: OSError) -> Unwritable:
    """Return the error of a failed append, with the errno of its cause."""
    append_error = unwritable_error(path, error)
    append_error.errno = error.errno
    return append_error


def _raise_disk_full() -> NoReturn:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _size_change(expected: int, size: int) -> str:
    change = size - expected
    return f"{change:,} bytes were added" if change > 0 else f"{-change:,} bytes were removed"


def _read_tail(descriptor: int, size: int) -> bytes:
    return _read_range(descriptor, max(size - _TAIL_SIZE, 0), min(size, _TAIL_SIZE))


def _read_range(descriptor: int, offset: int, length: int) -> bytes:
    """Return the bytes of a range; fewer at the end of the file."""
    parts: list[bytes] = []
    while length > 0:
        part = os.pread(descriptor, min(length, _CHUNK_SIZE), offset)
        if not part:
            break
        parts.append(part)
        offset, length = offset + len(part), length - len(part)
    return b"".join(parts)


def _open_file(path: str, *, create: bool) -> int:
    if not create:
        return os.open(path, _FLAGS)
    make_private_folder(os.path.dirname(path) or os.curdir)
    return os.open(path, _FLAGS | os.O_CREAT, _FILE_MODE)
