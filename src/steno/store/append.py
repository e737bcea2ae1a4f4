"""Appends records to a session file, the way the file can be trusted afterwards.

with Appender(path) as file:
    file.append(line)          # one write for one record; what was acknowledged is in the file
    file.sync()                # and on the disk: at the end of a turn

A tail without a newline is ended first, so that a torn record stays alone on its line. What
somebody else appends in between is noticed (`strangers`), never overwritten. A file that was removed
meanwhile is made again with all that was in it.
"""

import os
from types import TracebackType
from typing import Final, Self

from steno.errors import Unwritable
from steno.store.scratch import unwritable

__all__ = ["Appender"]

_NEWLINE: Final = b"\n"
_CHUNK: Final = 1 << 20
_FOLDER_MODE: Final = 0o700
_FILE_MODE: Final = 0o600


class Appender:
    """One session file, open for appending."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.strangers = 0
        """How many bytes others have appended since it was opened."""
        try:
            self._file = _opened(path)
        except OSError as error:
            raise unwritable(path, error) from None
        self._size: int = os.fstat(self._file).st_size

    def append(self, line: bytes) -> None:
        """Write one record, with the newline that ends it, in one write.

        Raises:
            Unwritable: it is not in the file, or not all of it; the next one begins a line anew.
        """
        try:
            self._meet_strangers()
            data = line if self._ends_a_line() else _NEWLINE + line
            written = os.write(self._file, data)
        except OSError as error:
            raise unwritable(self.path, error) from None
        self._size += written
        if written < len(data):
            # A full disk, mostly. The rest is not sent after it: others may have written between.
            raise Unwritable(f"{self.path}: only {written:,} of {len(data):,} bytes were written")

    def sync(self) -> None:
        """Wait until everything written is on the disk."""
        try:
            os.fsync(self._file)
        except OSError as error:
            raise unwritable(self.path, error) from None

    def close(self) -> None:
        """Let the file go."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _meet_strangers(self) -> None:
        status = os.fstat(self._file)
        if status.st_nlink == 0:
            self._come_back(status.st_size)
        size = os.fstat(self._file).st_size
        if size != self._size:
            self.strangers += max(size - self._size, 0)
            self._size = size

    def _come_back(self, size: int) -> None:
        """Go on in the file that now has the name: what is written to one without is lost.

        Where there is none, it is made again with everything that was in it.
        """
        old, self._file = self._file, _opened(self.path)
        try:
            if os.fstat(self._file).st_size:
                # Somebody has put another in its place.
                self.strangers += 1
                return
            for place in range(0, size, _CHUNK):
                _write_all(self._file, os.pread(old, _CHUNK, place))
        finally:
            os.close(old)

    def _ends_a_line(self) -> bool:
        return self._size == 0 or os.pread(self._file, 1, self._size - 1) == _NEWLINE


def _opened(path: str) -> int:
    os.makedirs(os.path.dirname(path) or ".", mode=_FOLDER_MODE, exist_ok=True)
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
    return os.open(path, flags, _FILE_MODE)


def _write_all(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]
