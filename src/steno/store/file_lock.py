"""Advisory file lock that the system releases when its holder exits."""

import os
import sys
from contextlib import suppress
from typing import Final, Self

from steno.errors import Busy
from steno.store.atomic import open_private, unwritable_error
from steno.store.damaged_files import move_aside

_WINDOWS_LOCK_OFFSET: Final = 1 << 30
"""Offset of the locked byte on Windows, far beyond the content so that other processes can read it."""


class FileLock:
    """A lock file held inside a `with` block. A second process waits, or fails with Busy."""

    def __init__(self, path: str, *, wait: bool = True) -> None:
        self._path = path
        self._wait = wait
        self._descriptor = -1

    def __enter__(self) -> Self:
        """Take the lock.

        Raises Busy if another process holds it and `wait` is false, or Unwritable if the file cannot be created or the
        file system has no locks.
        """
        try:
            self._descriptor = self._open()
            acquired = lock_descriptor(self._descriptor, wait=self._wait)
        except OSError as error:
            self._close()
            raise unwritable_error(self._path, error) from error
        if not acquired:
            self._close()
            raise Busy(f"another steno process is using {os.path.dirname(self._path)}")
        return self

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT
        try:
            return open_private(self._path, flags)
        except OSError:
            if not os.path.isdir(self._path):
                raise
        # Another process may have moved it already.
        with suppress(FileNotFoundError, NotADirectoryError):
            move_aside(self._path, f"the lock file {os.path.basename(self._path)}", only_folder=True)
        return open_private(self._path, flags)

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        # Closing the file releases the lock.
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


if sys.platform == "win32":

    def lock_descriptor(descriptor: int, *, wait: bool) -> bool:
        """Lock an open file; return False if another process holds the lock and `wait` is false."""
        import msvcrt

        os.lseek(descriptor, _WINDOWS_LOCK_OFFSET, os.SEEK_SET)
        while True:
            try:
                msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
            except OSError:
                # The call gives up after ten seconds; repeat it when waiting.
                if not wait:
                    return False
            else:
                return True

else:

    def lock_descriptor(descriptor: int, *, wait: bool) -> bool:
        """Lock an open file; return False if another process holds the lock and `wait` is false."""
        import fcntl

        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
