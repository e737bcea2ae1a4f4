"""The state of files: paths, content digests, modes and stamps; and atomic replacement."""

import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from typing import Final

import msgspec

from steno.errors import Unreadable
from steno.store.atomic import replacing, write_new_private


def is_encodable(path: str) -> bool:
    """Whether a path can be written down in a session."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def missing_parents(path: str) -> list[str]:
    """Return the folders above a path that are not there, the nearest first."""
    missing: list[str] = []
    folder = os.path.dirname(path)
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    return missing


MODE_BITS: Final = 0o777
"""The part of a mode that is looked at and brought back."""
FileStamp = tuple[int, int, int, int]
"""What is another when a file was written to."""
# Times of files are rough, some by as much as two seconds. What was written so shortly before a
# look may be written again without any sign of it.
_TIME_RESOLUTION_NS: Final = 2_000_000_000
_CHUNK_BYTES: Final = 1 << 20
_OPEN_FLAGS: Final = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


class ContentState(msgspec.Struct, frozen=True):
    """What a file is: its content and its mode."""

    digest: str
    """Of its content, or of where a link leads; nothing where no file is."""
    mode: int = 0
    """With its kind; 0 where it is not known."""

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link."""
        return stat.S_ISLNK(self.mode)

    def matches(self, other: "ContentState") -> bool:
        """Whether both are the same, as far as it is known."""
        if self.digest != other.digest or self.is_link != other.is_link:
            return False
        bits = (self.mode & MODE_BITS, other.mode & MODE_BITS)
        return bits[0] == bits[1] or 0 in (self.mode, other.mode) or self.is_link


ABSENT: Final = ContentState("")


class FileEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a look at a file showed."""

    mtime: int
    ctime: int
    size: int
    inode: int
    mode: int
    digest: str = ""
    """Nothing where the content is not kept: it is too big, or cannot be read."""
    is_recent: bool = False
    """Whether it was written so shortly before that it must be read again."""

    @property
    def stamp(self) -> FileStamp:
        """What is another when the file was written to."""
        return self.mtime, self.ctime, self.size, self.inode


def content_state(path: str) -> tuple[ContentState, FileStamp | None]:
    """Return what is at a path now, and a stamp that stays as long as nothing is written.

    Raises:
        Unreadable: there is a file that cannot be read, or something that is no file.
    """
    started_at = time.time_ns()
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            return ContentState(content_digest(os.fsencode(os.readlink(path))), status.st_mode), None
        if stat.S_ISDIR(status.st_mode):
            return ABSENT, None
        if not stat.S_ISREG(status.st_mode):
            raise Unreadable(f"{path} is no file")
        digest = sha256()
        for chunk in read_chunks(path):
            digest.update(chunk)
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT, None
    except OSError as error:
        if isinstance(error, Unreadable):
            raise
        raise Unreadable(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from error
    entry = file_entry(status, started_at=started_at)
    return ContentState(digest.hexdigest(), status.st_mode), None if entry.is_recent else entry.stamp


def read_chunks(path: str) -> Iterator[bytes]:
    """Yield what is in a regular file; a link is not followed, a pipe not waited for."""
    descriptor = os.open(path, _OPEN_FLAGS)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Unreadable(f"{path} is no file")
        yield from iter(lambda: os.read(descriptor, _CHUNK_BYTES), b"")
    finally:
        os.close(descriptor)


def file_entry(status: os.stat_result, digest: str = "", *, started_at: int = 0) -> FileEntry:
    """Return a look at a file; `started_at` is when the looking began."""
    return FileEntry(
        mtime=status.st_mtime_ns,
        ctime=status.st_ctime_ns,
        size=status.st_size,
        inode=status.st_ino,
        mode=status.st_mode,
        digest=digest,
        is_recent=max(status.st_mtime_ns, status.st_ctime_ns) >= started_at - _TIME_RESOLUTION_NS,
    )


def content_digest(data: bytes) -> str:
    """Return the digest of a content."""
    return sha256(data).hexdigest()


def regular_file_status(path: str) -> os.stat_result | None:
    """Return the status of a regular file; None where there is none."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def file_stamp(path: str) -> FileStamp | None:
    """Return the stamp of a regular file; None where there is none."""
    status = regular_file_status(path)
    if status is None:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def write_atomically(
    path: str, chunks: Iterable[bytes], mode: int, *, owner_status: os.stat_result | None = None, digest: str = ""
) -> str:
    """Put a content at a path, whole or not at all; return its digest."""
    hasher = sha256()

    def hashed_chunks() -> Iterator[bytes]:
        for chunk in chunks:
            hasher.update(chunk)
            yield chunk

    with replacing(path) as temp_path:
        write_new_private(temp_path, hashed_chunks(), sync=True)
        if digest and hasher.hexdigest() != digest:
            raise Unreadable("its backup is damaged")
        if owner_status is not None and hasattr(os, "chown") and owner_status.st_uid != os.stat(temp_path).st_uid:
            with suppress(OSError):
                os.chown(temp_path, owner_status.st_uid, owner_status.st_gid)
        os.chmod(temp_path, mode)
    return hasher.hexdigest()


def link_atomically(path: str, target: bytes) -> None:
    """Put a symbolic link at a path."""
    with replacing(path) as temp_path:
        os.symlink(os.fsdecode(target), temp_path)
