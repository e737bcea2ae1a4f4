"""Temporary files beside a session file, which become it or vanish.

with Scratch(path) as scratch:
    scratch.write(chunks)
    load(scratch.source())      # look at what was written before anybody else does
    swap(scratch, path, seen)   # see `steno.store.replace`

The name says whose it is (`.NAME.PID-LETTERS.steno-tmp`), so what a killed run leaves behind is
found and removed by the next; nothing takes it for a session.
"""

import errno
import os
import re
import stat
from collections.abc import Iterable
from typing import Final, Self

import msgspec

from steno.errors import Unreadable, Unwritable
from steno.store.read import FileSource

__all__ = [
    "Identity",
    "Scratch",
    "alive",
    "identify",
    "real_file",
    "sweep",
    "sweep_folder",
    "unreadable",
    "unwritable",
]

_FLAGS: Final = (
    os.O_RDWR
    | os.O_CREAT
    | os.O_EXCL
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_STAT: Final = 4096
_PRIVATE: Final = 0o600
_NAME: Final = r"(?s)\.(?P<of>.+)\.(?P<pid>[0-9]{1,10})-[0-9a-f]{12}\.steno-tmp"
_FULL: Final = frozenset({errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)})


class Identity(msgspec.Struct, frozen=True):
    """Which file it is and how far it has been written; another value means it has changed."""

    device: int
    inode: int
    size: int
    mtime_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> Self:
        """Return what a look at a file says about it."""
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def identify(path: str) -> Identity:
    """Return the identity of a file; ask for it before the file is read.

    Raises:
        Unreadable: it is not there, or not a regular file.
    """
    with FileSource(path) as file:
        return Identity.of(os.stat(file.path))


def real_file(path: str) -> str:
    """Return where a file really lies: a link to it stays a link to it."""
    return os.path.realpath(path)


def unreadable(path: str, error: OSError) -> Unreadable:
    """Say that a file cannot be read."""
    return Unreadable(f"cannot read {path}: {(error.strerror or str(error)).lower()}")


def unwritable(path: str, error: OSError) -> Unwritable:
    """Say that a file cannot be written, and what may help."""
    hint = ""
    if error.errno in _FULL:
        hint = "nothing was changed; make room and try again"
    elif error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        hint = "nothing was changed; check who may write into the folder"
    return Unwritable(f"cannot write {path}: {(error.strerror or str(error)).lower()}", hint=hint)


class Scratch:
    """A new file in the folder of `target`, for its owner's eyes only, removed when left."""

    def __init__(self, target: str) -> None:
        self.target = real_file(target)
        folder, name = os.path.split(self.target)
        mark = f"{os.getpid()}-{os.urandom(6).hex()}"
        self.path = os.path.join(folder, f".{name}.{mark}.steno-tmp")
        self.size = 0
        self.digest = ""
        self.identity: Identity | None = None
        self._sources: list[FileSource] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def write(self, chunks: Iterable[bytes]) -> Self:
        """Write everything, and come back when it is on the disk.

        Raises:
            Unwritable: the disk is full, the folder is not ours to write in, …; nothing is left.
        """
        try:
            descriptor = os.open(self.path, _FLAGS, _PRIVATE)
        except (OSError, ValueError) as error:
            failed = error if isinstance(error, OSError) else OSError(errno.EINVAL, str(error))
            raise unwritable(self.target, failed) from error
        try:
            self._fill(descriptor, chunks)
        except BaseException as error:
            os.close(descriptor)
            self.remove()
            if isinstance(error, OSError) and not isinstance(error, Unwritable):
                raise unwritable(self.target, error) from error
            raise
        os.close(descriptor)
        return self

    def _fill(self, descriptor: int, chunks: Iterable[bytes]) -> None:
        import hashlib

        digest = hashlib.sha256()
        self.size = 0
        for chunk in chunks:
            digest.update(chunk)
            self.size += len(chunk)
            rest = memoryview(chunk)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
        self.digest = digest.hexdigest()
        self.identity = Identity.of(os.fstat(descriptor))

    def source(self) -> FileSource:
        """Return what was written, to be read; it is closed with the scratch file."""
        source = FileSource(self.path)
        self._sources.append(source)
        return source

    def dress(self, like: os.stat_result, *, time: bool = True) -> None:
        """Take on the mode, the owner and the time of the file this one stands in for.

        A file beside it, rather than in its place, has a time of its own (`time=False`).

        Raises:
            Unwritable: that cannot be done.
        """
        try:
            if hasattr(os, "chown") and (like.st_uid, like.st_gid) != _owner(self.path):
                os.chown(self.path, like.st_uid, like.st_gid)
            os.chmod(self.path, stat.S_IMODE(like.st_mode))
            if time:
                os.utime(self.path, ns=(like.st_atime_ns, like.st_mtime_ns))
        except OSError as error:
            raise unwritable(self.target, error) from error

    def close(self) -> None:
        """Close what was opened to look at it."""
        while self._sources:
            self._sources.pop().close()

    def remove(self) -> None:
        """Remove the file, if it still bears its own name; may be repeated."""
        self.close()
        try:
            os.unlink(self.path)
        except OSError:
            # It became the target, was never made, or is left for the next run to sweep.
            return


def _owner(path: str) -> tuple[int, int]:
    status = os.stat(path, follow_symlinks=False)
    return status.st_uid, status.st_gid


def sweep(target: str) -> list[str]:
    """Remove what runs that are dead left beside a file; return the paths."""
    folder, name = os.path.split(real_file(target))
    return _sweep(folder, name)


def sweep_folder(folder: str) -> list[str]:
    """Remove what runs that are dead left in a folder, of whatever file; return the paths."""
    return _sweep(folder, "")


def _sweep(folder: str, name: str) -> list[str]:
    removed: list[str] = []
    try:
        names = os.listdir(folder)
    except OSError:
        return removed
    for each in names:
        found = re.fullmatch(_NAME, each)
        if found is None or (name and found["of"] != name) or alive(int(found["pid"])):
            continue
        path = os.path.join(folder, each)
        try:
            os.unlink(path)
        except OSError:
            # Somebody else swept first, or may not be swept by us: no harm either way.
            continue
        removed.append(path)
    return removed


def alive(pid: int) -> bool:
    """Say whether a process of that number is at work; where that cannot be asked, it may be."""
    if pid <= 0:
        return False
    if os.name == "nt":
        # There, asking with signal 0 would end it.
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return not _is_ended(pid)


def _is_ended(pid: int) -> bool:
    """Say whether a process has ended and only waits for somebody to hear of it, as Linux tells."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state = file.read(_STAT).rpartition(b")")[2].split()[:1]
    except OSError:
        return False
    return state in ([b"Z"], [b"X"])
