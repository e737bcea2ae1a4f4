"""How bytes get to the disk: private files, whole writes, names that survive a power cut."""

import errno
import os
from typing import Final

__all__ = [
    "FOLDER",
    "PRIVATE",
    "append",
    "flush_folder",
    "flush_open_folder",
    "make_folder",
    "open_private",
    "read_all",
]

PRIVATE: Final = 0o600
FOLDER: Final = 0o700
_ALWAYS: Final = (
    getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
)
# What systems say that cannot flush a folder; there is nothing more to be done there.
_NO_FLUSH: Final = frozenset({errno.EINVAL, errno.EBADF, errno.EACCES, errno.ENOTSUP, errno.EISDIR})
_PIECE: Final = 1 << 20


def open_private(path: str, flags: int) -> int:
    """Return a descriptor of a file that is its owner's alone, whatever the umask says."""
    descriptor = os.open(path, flags | _ALWAYS, PRIVATE)
    if flags & os.O_CREAT and hasattr(os, "fchmod"):
        os.fchmod(descriptor, PRIVATE)
    return descriptor


def make_folder(path: str) -> bool:
    """Make a private folder, and those above it where they are missing; False if it was there."""
    if os.path.isdir(path):
        return False
    above = os.path.dirname(path)
    if above and not os.path.isdir(above):
        make_folder(above)
    try:
        os.mkdir(path, FOLDER)
    except FileExistsError:
        return False
    os.chmod(path, FOLDER)
    flush_folder(above)
    return True


def append(descriptor: int, data: bytes) -> None:
    """Write all of it where the descriptor stands, however little goes in at a time."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def flush_folder(folder: str) -> None:
    """Have the disk know the names in a folder."""
    if os.name == "nt":
        return
    descriptor = os.open(folder or os.curdir, os.O_RDONLY | os.O_CLOEXEC)
    try:
        flush_open_folder(descriptor)
    finally:
        os.close(descriptor)


def flush_open_folder(descriptor: int) -> None:
    """Have the disk know the names in a folder that is open."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_FLUSH:
            raise


def read_all(path: str) -> bytes:
    """Return what is in a file of ours; nothing if it is not there."""
    try:
        descriptor = os.open(path, os.O_RDONLY | _ALWAYS)
    except FileNotFoundError:
        return b""
    try:
        return b"".join(iter(lambda: os.read(descriptor, _PIECE), b""))
    finally:
        os.close(descriptor)
