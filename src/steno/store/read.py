"""Session files as sources of bytes: opened read-only, read by span, never changed."""

import errno
import os
import stat
import threading
from collections.abc import Iterator
from typing import Final, Self

from steno.errors import Unreadable
from steno.format.source import CHUNK

__all__ = ["FileSource"]

_FLAGS: Final = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)  # a pipe must not make us wait
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_CLOEXEC", 0)
)
_KINDS: Final = (
    (stat.S_ISDIR, "is a folder"),
    (stat.S_ISFIFO, "is a pipe"),
    (stat.S_ISSOCK, "is a socket"),
    (stat.S_ISCHR, "is a device"),
    (stat.S_ISBLK, "is a device"),
)


class FileSource:
    """A file as it was when opened: bytes appended later are not seen."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = threading.Lock()
        try:
            self._descriptor = os.open(path, _FLAGS)
        except OSError as error:
            raise Unreadable(_reason(path, error), hint=_hint(error)) from error
        status = os.fstat(self._descriptor)
        if not stat.S_ISREG(status.st_mode):
            self.close()
            raise Unreadable(f"{path} {_kind(status.st_mode)}, not a session file")
        self.size = status.st_size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Give the file back; harmless when repeated."""
        descriptor = getattr(self, "_descriptor", -1)
        self._descriptor = -1
        if descriptor >= 0:
            os.close(descriptor)

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`."""
        length = max(0, min(length, self.size - offset))
        parts: list[bytes] = []
        while length > 0:
            part = self._read_at(offset, length)
            if not part:
                break
            parts.append(part)
            offset += len(part)
            length -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def chunks(self, start: int = 0) -> Iterator[bytes]:
        """Yield everything from `start` on, in order."""
        data, hole = start, start
        while start < self.size:
            if start >= hole:
                data, hole = self._extent(start)
            empty = min(CHUNK, data - start)
            chunk = bytes(empty) if empty > 0 else self.read(start, CHUNK)
            if not chunk:
                return
            yield chunk
            start += len(chunk)

    def _extent(self, offset: int) -> tuple[int, int]:
        """Return where data begins at or behind `offset`, and where the next hole does."""
        if not hasattr(os, "SEEK_DATA"):
            return offset, self.size
        try:
            data = os.lseek(self._descriptor, offset, os.SEEK_DATA)
            return data, os.lseek(self._descriptor, data, os.SEEK_HOLE)
        except OSError as error:
            beyond = error.errno == errno.ENXIO  # nothing but a hole up to the end
            return (self.size, self.size) if beyond else (offset, self.size)

    def _read_at(self, offset: int, length: int) -> bytes:
        try:
            if hasattr(os, "pread"):
                return os.pread(self._descriptor, length, offset)
            with self._lock:
                os.lseek(self._descriptor, offset, os.SEEK_SET)
                return os.read(self._descriptor, length)
        except OSError as error:
            raise Unreadable(_reason(self.path, error), hint=_hint(error)) from error


def _reason(path: str, error: OSError) -> str:
    return f"cannot read {path}: {(error.strerror or str(error)).lower()}"


def _hint(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "check who may read the file"
    return "`steno ls` lists the sessions there are" if isinstance(error, FileNotFoundError) else ""


def _kind(mode: int) -> str:
    return next((words for test, words in _KINDS if test(mode)), "is no regular file")
