"""One writer at a time: a lock that the system takes back when its holder dies."""

import os
import sys
from typing import Final, Self

from steno.errors import Busy

__all__ = ["Lock"]

_FLAGS: Final = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)


class Lock:
    """A lock file, held inside a `with`. Whoever comes second waits, or is told to come again."""

    def __init__(self, path: str, *, wait: bool = True) -> None:
        self._path = path
        self._waits = wait
        self._descriptor = -1

    def __enter__(self) -> Self:
        """Take the lock.

        Raises:
            Busy: another process holds it, and we were not to wait.
            OSError: the file cannot be made.
        """
        self._descriptor = os.open(self._path, _FLAGS, 0o600)
        try:
            _take(self._descriptor, wait=self._waits)
        except OSError as error:
            self._close()
            raise Busy(f"another steno is at work on {os.path.dirname(self._path)}") from error
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


if sys.platform == "win32":

    def _take(descriptor: int, *, wait: bool) -> None:
        import msvcrt

        while True:
            try:
                msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
            except OSError:
                # It gives up after ten seconds; who waits does not.
                if wait:
                    continue
                raise
            return

else:

    def _take(descriptor: int, *, wait: bool) -> None:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
