"""Makes the N-th write of a session fail, once, as disks do: at once, or after some of its bytes."""

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

from steno.store import append

__all__ = ["CODES", "LENGTHS", "FailingWrites", "failing"]

CODES: Final = ("ENOSPC", "EDQUOT", "EFBIG", "EIO")
LENGTHS: Final = ("none", "one", "half", "but one", "all")
"""How much of the record the disk takes before it fails."""


class FailingWrites:
    """The module `os` for `store.append`, whose N-th write fails.

    With `EFBIG` the system itself does it, at the byte: a limit on the size of files is set for the
    one write. `none` takes nothing; `all` lets the record in and fails the flush that follows.
    """

    def __init__(self, at: int, code: str, length: str) -> None:
        self._at = at
        self._code = getattr(errno, code)
        self._length = length
        self._left: int | None = None
        self.count = 0
        self.struck = False

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def write(self, descriptor: int, data: bytes) -> int:
        if self._left is not None:
            self._fail()
        self.count += 1
        if self.count != self._at or self._length == "all":
            return os.write(descriptor, data)
        taken = {"none": 0, "one": 1, "half": len(data) // 2, "but one": len(data) - 1}
        self._left = taken[self._length]
        if self._code == errno.EFBIG:
            return self._limited(descriptor, data)
        if not self._left:
            self._fail()
        return os.write(descriptor, data[: self._left])

    def fsync(self, descriptor: int) -> None:
        if self._length == "all" and self.count >= self._at and not self.struck:
            self._fail()
        os.fsync(descriptor)

    def _limited(self, descriptor: int, data: bytes) -> int:
        import resource

        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        limit = os.fstat(descriptor).st_size + (self._left or 0)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        try:
            return os.write(descriptor, data)
        except OSError:
            self._left, self.struck = None, True
            raise
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))

    def _fail(self) -> None:
        self._left, self.struck = None, True
        raise OSError(self._code, os.strerror(self._code))


@contextmanager
def failing(at: int, code: str, length: str) -> Generator[FailingWrites]:
    """Let the N-th write of a session fail inside of the `with`."""
    real, writes = append.os, FailingWrites(at, code, length)
    append.os = writes
    try:
        yield writes
    finally:
        append.os = real
