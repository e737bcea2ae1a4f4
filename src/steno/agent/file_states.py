"""What a file is: its content and its mode, and how it looks without being read."""

import os
import stat
import time
from collections.abc import Iterator
from hashlib import sha256
from typing import Final

import msgspec

from steno.errors import Unreadable

__all__ = [
    "ABSENT",
    "BITS",
    "Look",
    "Stamp",
    "State",
    "digest_of",
    "look_of",
    "pieces",
    "stamp_of",
    "state_of",
    "status_of",
]

BITS: Final = 0o777
"""The part of a mode that is looked at and brought back."""
Stamp = tuple[int, int, int, int]
"""What is another when a file was written to."""
# Times of files are rough, some by as much as two seconds. What was written so shortly before a
# look may be written again without any sign of it.
_ROUGH: Final = 2_000_000_000
_PIECE: Final = 1 << 20
_READ: Final = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


class State(msgspec.Struct, frozen=True):
    """What a file is: its content and its mode."""

    digest: str
    """Of its content, or of where a link leads; nothing where no file is."""
    mode: int = 0
    """With its kind; 0 where it is not known."""

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link."""
        return stat.S_ISLNK(self.mode)

    def same(self, other: "State") -> bool:
        """Whether both are the same, as far as it is known."""
        if self.digest != other.digest or self.is_link != other.is_link:
            return False
        bits = (self.mode & BITS, other.mode & BITS)
        return bits[0] == bits[1] or 0 in (self.mode, other.mode) or self.is_link


ABSENT: Final = State("")


class Look(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a look at a file showed."""

    mtime: int
    ctime: int
    size: int
    inode: int
    mode: int
    digest: str = ""
    """Nothing where the content is not kept: it is too big, or cannot be read."""
    young: bool = False
    """Whether it was written so shortly before that it must be read again."""

    @property
    def stamp(self) -> Stamp:
        """What is another when the file was written to."""
        return self.mtime, self.ctime, self.size, self.inode


def state_of(path: str) -> tuple[State, Stamp | None]:
    """Return what is at a path now, and a stamp that stays as long as nothing is written.

    Raises:
        Unreadable: there is a file that cannot be read, or something that is no file.
    """
    began = time.time_ns()
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            return State(digest_of(os.fsencode(os.readlink(path))), status.st_mode), None
        if stat.S_ISDIR(status.st_mode):
            return ABSENT, None
        if not stat.S_ISREG(status.st_mode):
            raise Unreadable(f"{path} is no file")
        digest = sha256()
        for piece in pieces(path):
            digest.update(piece)
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT, None
    except OSError as error:
        if isinstance(error, Unreadable):
            raise
        raise Unreadable(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from error
    look = look_of(status, began=began)
    return State(digest.hexdigest(), status.st_mode), None if look.young else look.stamp


def pieces(path: str) -> Iterator[bytes]:
    """Yield what is in a regular file; a link is not followed, a pipe not waited for."""
    descriptor = os.open(path, _READ)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Unreadable(f"{path} is no file")
        yield from iter(lambda: os.read(descriptor, _PIECE), b"")
    finally:
        os.close(descriptor)


def look_of(status: os.stat_result, digest: str = "", *, began: int = 0) -> Look:
    """Return a look at a file; `began` is when the looking began."""
    return Look(
        mtime=status.st_mtime_ns,
        ctime=status.st_ctime_ns,
        size=status.st_size,
        inode=status.st_ino,
        mode=status.st_mode,
        digest=digest,
        young=max(status.st_mtime_ns, status.st_ctime_ns) >= began - _ROUGH,
    )


def digest_of(data: bytes) -> str:
    """Return the digest of a content."""
    return sha256(data).hexdigest()


def status_of(path: str) -> os.stat_result | None:
    """Return the status of a regular file; None where there is none."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def stamp_of(path: str) -> Stamp | None:
    """Return the stamp of a regular file; None where there is none."""
    status = status_of(path)
    if status is None:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino
