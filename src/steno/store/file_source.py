"""Session files as byte sources: opened read-only and read by range."""

import errno
import os
import stat
import threading
from collections.abc import Iterator
from typing import Final, Self

from steno.errors import Unreadable
from steno.format.source import CHUNK_SIZE

_FLAGS: Final = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)  # opening a pipe must not block
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_CLOEXEC", 0)
)
_WINDOW_SIZE: Final = 1 << 14
_FILE_KINDS: Final = (
    (stat.S_ISDIR, "is a directory"),
    (stat.S_ISFIFO, "is a pipe"),
    (stat.S_ISSOCK, "is a socket"),
    (stat.S_ISCHR, "is a device"),
    (stat.S_ISBLK, "is a device"),
)


class FileSource:
    """A file at its size when opened: bytes appended later are ignored."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = threading.Lock()
        try:
            self._descriptor = os.open(path, _FLAGS)
        except (OSError, ValueError) as error:
            # A ValueError is an invalid file name.
            raise Unreadable(_read_error_message(path, error), hint=_read_error_hint(error)) from error
        status = os.fstat(self._descriptor)
        if not stat.S_ISREG(status.st_mode):
            self.close()
            raise Unreadable(f"{path} {_file_kind(status.st_mode)}, not a session file")
        self.size = status.st_size
        self.identity = (status.st_dev, status.st_ino)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; can be called repeatedly."""
        descriptor = getattr(self, "_descriptor", -1)
        self._descriptor = -1
        if descriptor >= 0:
            os.close(descriptor)

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`.

        Raises:
            Unreadable: the file was truncated after it was opened.
        """
        length = max(0, min(length, self.size - offset))
        parts: list[bytes] = []
        while length > 0:
            part = self._read_at(offset, length)
            if not part:
                raise _changed_error(self.path)
            parts.append(part)
            offset += len(part)
            length -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def chunks(self, start: int = 0) -> Iterator[bytes]:
        """Yield all bytes from `start` on, in order."""
        data_start, hole_start = start, start
        while start < self.size:
            if start >= hole_start:
                data_start, hole_start = self._data_extent(start)
            empty = min(CHUNK_SIZE, data_start - start)
            chunk = bytes(empty) if empty > 0 else self.read(start, CHUNK_SIZE)
            yield chunk
            start += len(chunk)

    def _data_extent(self, offset: int) -> tuple[int, int]:
        """Return the start of the next data at or after `offset`, and of the hole after that data."""
        if not hasattr(os, "SEEK_DATA"):
            return offset, self.size
        try:
            data = os.lseek(self._descriptor, offset, os.SEEK_DATA)
            return data, os.lseek(self._descriptor, data, os.SEEK_HOLE)
        except OSError as error:
            beyond = error.errno == errno.ENXIO  # only a hole up to the end of the file
            return (self.size, self.size) if beyond else (offset, self.size)

    def _read_at(self, offset: int, length: int) -> bytes:
        try:
            if hasattr(os, "pread"):
                return os.pread(self._descriptor, length, offset)
            with self._lock:
                os.lseek(self._descriptor, offset, os.SEEK_SET)
                return os.read(self._descriptor, length)
        except OSError as error:
            raise Unreadable(_read_error_message(self.path, error), hint=_read_error_hint(error)) from error


class PathSource:
    """A file at its size when first opened; reopened for each read, so that many sources can exist at once."""

    def __init__(self, path: str) -> None:
        self.path = path
        with FileSource(path) as file:
            self.size = file.size
            self.identity = file.identity
        self.fingerprint = b""
        """Start and end of the file, to detect later whether it was only appended to
        (`steno.store.watch.incremental`).
        """
        self._window = (0, b"")

    def open(self) -> FileSource:
        """Return the open file, limited to its size when first opened.

        Raises Unreadable if it was deleted, replaced or truncated.
        """
        file = FileSource(self.path)
        if file.identity != self.identity or file.size < self.size:
            file.close()
            raise _changed_error(self.path)
        file.size = self.size
        return file

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`.

        Reads ahead, because records are mostly read in sequence.
        """
        length = max(0, min(length, self.size - offset))
        start, data = self._window
        if not start <= offset <= offset + length <= start + len(data):
            with self.open() as file:
                if length > _WINDOW_SIZE:
                    return file.read(offset, length)
                start, data = self._window = offset, file.read(offset, _WINDOW_SIZE)
        return data[offset - start : offset - start + length]

    def chunks(self, start: int = 0) -> Iterator[bytes]:
        """Yield all bytes from `start` on, in order."""
        with self.open() as file:
            yield from file.chunks(start)


def _changed_error(path: str) -> Unreadable:
    return Unreadable(f"{path} changed while it was read", hint="Run the command again.")


def _read_error_message(path: str, error: OSError | ValueError) -> str:
    message = error.strerror if isinstance(error, OSError) else ""
    return f"cannot read {path}: {(message or str(error)).lower()}"


def _read_error_hint(error: OSError | ValueError) -> str:
    if isinstance(error, PermissionError):
        return "Check the permissions of the file."
    return "Run `steno ls` to list sessions." if isinstance(error, FileNotFoundError) else ""


def _file_kind(mode: int) -> str:
    return next((description for is_kind, description in _FILE_KINDS if is_kind(mode)), "is not a regular file")
