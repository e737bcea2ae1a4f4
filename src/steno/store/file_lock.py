"""An advisory file lock that the system releases when its holder dies."""

import os
import sys
from contextlib import suppress
from typing import Final, Self

from steno.errors import Busy
from steno.store.atomic import open_private, unwritable_error
from steno.store.damaged_files import move_aside

_WINDOWS_LOCK_OFFSET: Final = 1 << 30
"""Where Windows locks a byte: far behind what the file says, so that others can read that."""


class FileLock:
    """A lock file, held inside a `with`. Whoever comes second waits, or is told to come again."""

    def __init__(self, path: str, *, wait: bool = True) -> None:
        self._path = path
        self._wait = wait
        self._descriptor = -1

    def __enter__(self) -> Self:
        """Take the lock.

        Raises Busy if another process holds it, and we were not to wait, or Unwritable if the file cannot be made, or
        the system has no locks there.
        """
        try:
            self._descriptor = self._open()
            acquired = lock_descriptor(self._descriptor, wait=self._wait)
        except OSError as error:
            self._close()
            raise unwritable_error(self._path, error) from error
        if not acquired:
            self._close()
            raise Busy(f"another steno is at work on {os.path.dirname(self._path)}")
        return self

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT
        try:
            return open_private(self._path, flags)
        except OSError:
            if not os.path.isdir(self._path):
                raise
        # Another process may be faster.
        with suppress(FileNotFoundError, NotADirectoryError):
            move_aside(self._path, f"the lock file {os.path.basename(self._path)}", only_folder=True)
        return open_private(self._path, flags)

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        # The system takes the lock back with the file.
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


if sys.platform == "win32":

    def lock_descriptor(descriptor: int, *, wait: bool) -> bool:
        """Lock an open file; False when another process has it and we do not wait."""
        import msvcrt

        os.lseek(descriptor, _WINDOWS_LOCK_OFFSET, os.SEEK_SET)
        while True:
            try:
                msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
            except OSError:
                # It gives up after ten seconds; who waits does not.
                if not wait:
                    return False
            else:
                return True

else:

    def lock_descriptor(descriptor: int, *, wait: bool) -> bool:
        """Lock an open file; False when another process has it and we do not wait."""
        import fcntl

        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
