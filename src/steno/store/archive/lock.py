"""One writer at a time: a lock that the system takes back when its holder dies."""

import os
import sys
from typing import Final, Self

from steno.store.archive.disk import open_private
from steno.store.scratch import unwritable

__all__ = ["Lock"]

_NAME: Final = "lock"


class Lock:
    """Held inside a `with`; whoever comes second waits. Made for short work."""

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, _NAME)
        self._descriptor = -1

    def __enter__(self) -> Self:
        try:
            self._descriptor = open_private(self._path, os.O_RDWR | os.O_CREAT)
            _wait(self._descriptor)
        except OSError as error:
            self._close()
            raise unwritable(self._path, error) from error
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        # The system takes the lock back with the file.
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


if sys.platform == "win32":

    def _wait(descriptor: int) -> None:
        import msvcrt

        while True:
            try:
                msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)
            except OSError:
                # It gives up after ten seconds; we do not.
                continue
            return

else:

    def _wait(descriptor: int) -> None:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX)
