"""Atomic file writes: private files, temporary files, fsync, and steno's own state files.

with TempFile(path) as temp_file:
    temp_file.write(chunks)
    load(temp_file.source())       # check what was written before it is visible
    swap(temp_file, path, expected)  # see `steno.store.replace`

`write_atomic` does it in one call for a small file that nobody else writes.

The name of a `TempFile` contains the process id (`.NAME.PID-LETTERS.steno-tmp`), so that the next run can remove what a
killed run has left; nothing takes it for a session.

Caches (`write_cache`, `read_cache`) begin with a checksum: a damaged one is set aside and counts as missing. Other
state files (`write_private`, `read_private`) are written unchanged and never set aside.
"""

import errno
import os
import re
import stat
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from typing import Final, Self

import msgspec

from steno.errors import Unreadable, Unwritable
from steno.store.damaged_files import move_aside
from steno.store.environment import steno_home
from steno.store.file_source import FileSource

PRIVATE_FILE_MODE: Final = 0o600
PRIVATE_FOLDER_MODE: Final = 0o700
_OPEN_FLAGS: Final = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
# What systems say that cannot flush a folder; there is nothing more to be done there.
_UNSUPPORTED_FSYNC: Final = frozenset({errno.EINVAL, errno.EBADF, errno.EACCES, errno.ENOTSUP, errno.EISDIR})
_READ_SIZE: Final = 1 << 20


def open_private(path: str, flags: int) -> int:
    """Return a descriptor of a file that is its owner's alone, whatever the umask says."""
    descriptor = os.open(path, flags | _OPEN_FLAGS, PRIVATE_FILE_MODE)
    if flags & os.O_CREAT and hasattr(os, "fchmod"):
        os.fchmod(descriptor, PRIVATE_FILE_MODE)
    return descriptor


def make_private_folder(path: str) -> bool:
    """Make a private folder, and those above it where they are missing; False if it was there."""
    if os.path.isdir(path):
        return False
    parent = os.path.dirname(path)
    if parent and not os.path.isdir(parent):
        make_private_folder(parent)
    try:
        os.mkdir(path, PRIVATE_FOLDER_MODE)
    except FileExistsError:
        return False
    os.chmod(path, PRIVATE_FOLDER_MODE)
    sync_folder(parent)
    return True


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of it where the descriptor stands, however little goes in at a time."""
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(descriptor, remaining) :]


def append_lines(path: str, lines: bytes, *, sync: bool = False) -> None:
    """Append whole lines to a private file of steno's, which is made if it is missing.

    A line that was cut off before is ended first, so that it does not take these with it.
    """
    descriptor = open_private(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    try:
        end = os.lseek(descriptor, 0, os.SEEK_END)
        if end:
            os.lseek(descriptor, end - 1, os.SEEK_SET)
            lines = lines if os.read(descriptor, 1) == b"\n" else b"\n" + lines
        write_all(descriptor, lines)
        if sync:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: str) -> None:
    """Have the disk know the content of a file of steno's, and its name."""
    descriptor = open_private(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync_folder(os.path.dirname(path))


def sync_folder(folder: str) -> None:
    """Have the disk know the names in a folder."""
    if os.name == "nt":
        return
    descriptor = os.open(folder or os.curdir, os.O_RDONLY | os.O_CLOEXEC)
    try:
        sync_open_folder(descriptor)
    finally:
        os.close(descriptor)


def sync_open_folder(descriptor: int) -> None:
    """Have the disk know the names in a folder that is open."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _UNSUPPORTED_FSYNC:
            raise


def read_all(path: str) -> bytes:
    """Return what is in a file of ours; nothing if it is not there."""
    try:
        descriptor = os.open(path, os.O_RDONLY | _OPEN_FLAGS)
    except FileNotFoundError:
        return b""
    try:
        return b"".join(iter(lambda: os.read(descriptor, _READ_SIZE), b""))
    finally:
        os.close(descriptor)


_CREATE_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | _OPEN_FLAGS
_PROC_STAT_READ_SIZE: Final = 4096
_PROC_STATE_FIELD: Final = 3 - 3
_PROC_START_FIELD: Final = 22 - 3
TEMP_SUFFIX: Final = ".steno-tmp"
"""How the names of temporary files end."""
TEMP_NAME_PATTERN: Final = r"(?s)\.(?P<of>.+)\.(?P<pid>[0-9]{1,10})-[0-9a-f]{12}\.steno-tmp"
RANDOM_TEMP_NAME_PATTERN: Final = r"\.[0-9a-f]{16}\.steno-tmp"
_DISK_FULL_ERRORS: Final = frozenset({errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)})


def temp_name(name: str) -> str:
    """Return a new temporary name for a file, with the process id in it."""
    return f".{name}.{os.getpid()}-{os.urandom(6).hex()}{TEMP_SUFFIX}"


def random_temp_name() -> str:
    """Return a new temporary name of fixed length, for files that no later run looks for."""
    return f".{os.urandom(8).hex()}{TEMP_SUFFIX}"


@contextmanager
def replacing(path: str) -> Generator[str, None, None]:
    """Yield a path beside another; what is put there replaces the other unless an error is raised."""
    temp_path = os.path.join(os.path.dirname(path), random_temp_name())
    try:
        yield temp_path
        os.replace(temp_path, path)
    finally:
        with suppress(OSError):
            os.unlink(temp_path)


def write_new_private(path: str, chunks: Iterable[bytes], *, sync: bool) -> int:
    """Write a private file where none is; return its size."""
    size = 0
    descriptor = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        for chunk in chunks:
            write_all(descriptor, chunk)
            size += len(chunk)
        if sync:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return size


def write_atomic(path: str, chunks: Iterable[bytes], *, sync: bool) -> int:
    """Replace a file by a private one, whole or not at all; return its size.

    Without `sync` a power cut may leave it damaged: for what is checked when it is read. Raises OSError if it cannot be
    written; what was there before still is.
    """
    with replacing(path) as temp_path:
        return write_new_private(temp_path, chunks, sync=sync)


class FileIdentity(msgspec.Struct, frozen=True):
    """Which file it is and how far it has been written; another value means it has changed."""

    device: int
    inode: int
    size: int
    mtime_ns: int

    @classmethod
    def from_status(cls, status: os.stat_result) -> Self:
        """Return what a look at a file says about it."""
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def file_identity(path: str) -> FileIdentity:
    """Return the identity of a file; ask for it before the file is read.

    Raises Unreadable if it is not there, or not a regular file.
    """
    with FileSource(path) as file:
        return FileIdentity.from_status(os.stat(file.path))


def real_path(path: str) -> str:
    """Return where a file really lies: a link to it stays a link to it."""
    return os.path.realpath(path)


def unreadable_error(path: str, error: OSError) -> Unreadable:
    """Say that a file cannot be read."""
    return Unreadable(f"cannot read {path}: {(error.strerror or str(error)).lower()}")


def unwritable_error(path: str, error: OSError) -> Unwritable:
    """Say that a file cannot be written, and what may help."""
    hint = ""
    if error.errno in _DISK_FULL_ERRORS:
        hint = "nothing was changed; make room and try again"
    elif error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        hint = "nothing was changed; check who may write into the folder"
    return Unwritable(f"cannot write {path}: {(error.strerror or str(error)).lower()}", hint=hint)


@contextmanager
def reading(path: str) -> Generator[None]:
    """Raise what the system says as `Unreadable`, for a block that reads a file."""
    try:
        yield
    except OSError as error:
        raise unreadable_error(path, error) from error


@contextmanager
def writing(path: str) -> Generator[None]:
    """Raise what the system says as `Unwritable`, for a block that writes a file."""
    try:
        yield
    except OSError as error:
        raise unwritable_error(path, error) from error


class TempFile:
    """A new file in the folder of `target`, for its owner's eyes only, removed when left."""

    def __init__(self, target: str) -> None:
        self.target = real_path(target)
        folder, name = os.path.split(self.target)
        self.path = os.path.join(folder, temp_name(name))
        self.size = 0
        self.digest = ""
        self.identity: FileIdentity | None = None
        self._open_sources: list[FileSource] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def write(self, chunks: Iterable[bytes]) -> Self:
        """Write everything, and come back when it is on the disk.

        Raises Unwritable if the disk is full, the folder is not ours to write in, …; nothing is left.
        """
        try:
            descriptor = os.open(self.path, _CREATE_FLAGS, PRIVATE_FILE_MODE)
        except (OSError, ValueError) as error:
            failed = error if isinstance(error, OSError) else OSError(errno.EINVAL, str(error))
            raise unwritable_error(self.target, failed) from error
        try:
            self._write_chunks(descriptor, chunks)
        except BaseException as error:
            os.close(descriptor)
            self.remove()
            if isinstance(error, OSError) and not isinstance(error, Unwritable):
                raise unwritable_error(self.target, error) from error
            raise
        os.close(descriptor)
        return self

    def _write_chunks(self, descriptor: int, chunks: Iterable[bytes]) -> None:
        import hashlib

        digest = hashlib.sha256()
        self.size = 0
        for chunk in chunks:
            digest.update(chunk)
            self.size += len(chunk)
            write_all(descriptor, chunk)
        os.fsync(descriptor)
        self.digest = digest.hexdigest()
        self.identity = FileIdentity.from_status(os.fstat(descriptor))

    def source(self) -> FileSource:
        """Return what was written, to be read; it is closed with the scratch file."""
        source = FileSource(self.path)
        self._open_sources.append(source)
        return source

    def copy_metadata(self, template: os.stat_result, *, with_time: bool = True) -> None:
        """Take on the mode, the owner and the time of the file this one stands in for.

        A file beside it, rather than in its place, has a time of its own (`with_time=False`). Raises Unwritable if that
        cannot be done.
        """
        with writing(self.target):
            if hasattr(os, "chown") and (template.st_uid, template.st_gid) != _owner_of(self.path):
                os.chown(self.path, template.st_uid, template.st_gid)
            os.chmod(self.path, stat.S_IMODE(template.st_mode))
            if with_time:
                os.utime(self.path, ns=(template.st_atime_ns, template.st_mtime_ns))

    def replace(self, path: str, *, sync: bool = True) -> None:
        """Put what was written in the place of a file of ours. Raises Unwritable if that cannot be done."""
        with writing(path):
            os.replace(self.path, path)
            if sync:
                sync_folder(os.path.dirname(path))

    def close(self) -> None:
        """Close what was opened to look at it."""
        while self._open_sources:
            self._open_sources.pop().close()

    def remove(self) -> None:
        """Remove the file, if it still bears its own name; may be repeated."""
        self.close()
        try:
            os.unlink(self.path)
        except OSError:
            # It became the target, was never made, or is left for the next run to sweep.
            return


def _owner_of(path: str) -> tuple[int, int]:
    status = os.stat(path, follow_symlinks=False)
    return status.st_uid, status.st_gid


def remove_stale_temp_files(target: str) -> list[str]:
    """Remove what runs that are dead left beside a file; return the paths."""
    folder, name = os.path.split(real_path(target))
    return _remove_stale(folder, name)


def remove_stale_in_folder(folder: str) -> list[str]:
    """Remove what runs that are dead left in a folder, of whatever file; return the paths."""
    return _remove_stale(folder, "")


def _remove_stale(folder: str, name: str) -> list[str]:
    removed: list[str] = []
    try:
        names = os.listdir(folder)
    except OSError:
        return removed
    for entry_name in names:
        match = re.fullmatch(TEMP_NAME_PATTERN, entry_name)
        if match is None or (name and match["of"] != name) or is_process_alive(int(match["pid"])):
            continue
        path = os.path.join(folder, entry_name)
        try:
            os.unlink(path)
        except OSError:
            # Somebody else swept first, or may not be swept by us: no harm either way.
            continue
        removed.append(path)
    return removed


def is_process_alive(pid: int) -> bool:
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
    return not _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    """Say whether a process has ended and only waits for somebody to hear of it, as Linux tells."""
    return _proc_stat_field(pid, _PROC_STATE_FIELD) in {"Z", "X"}


def process_start_time(pid: int) -> str:
    """Return when a process began, as Linux counts; nothing elsewhere."""
    return _proc_stat_field(pid, _PROC_START_FIELD)


def _proc_stat_field(pid: int, index: int) -> str:
    """Return a field behind the process name, which may itself hold blanks and brackets."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read(_PROC_STAT_READ_SIZE).rpartition(b")")[2].split()
    except OSError:
        return ""
    return fields[index].decode() if len(fields) > index else ""


_MAX_STATE_SIZE: Final = 64 << 20
_CACHE_MAGIC: Final = b"steno-cache 1 "
_CACHE_DIGEST_SIZE: Final = 16
_CACHE_HEADER_SIZE: Final = len(_CACHE_MAGIC) + 2 * _CACHE_DIGEST_SIZE + 1


def read_cache(name: str) -> bytes | None:
    """Return what was kept under a name; None where there is nothing, or nothing readable."""
    path = os.path.join(steno_home(), name)
    try:
        data = _read_state_file(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return _discard_damaged(path, name)
    if data[:_CACHE_HEADER_SIZE] == _cache_header(data[_CACHE_HEADER_SIZE:]):
        return data[_CACHE_HEADER_SIZE:]
    # Earlier releases wrote plain JSON; it is replaced.
    return None if data.startswith(b"{") else _discard_damaged(path, name)


def _discard_damaged(path: str, name: str) -> None:
    try:
        move_aside(path, f"the cache {name}")
    except OSError:
        # It is made again in any case, and kept where that is possible.
        return


def _cache_header(data: bytes) -> bytes:
    from hashlib import blake2b

    return _CACHE_MAGIC + blake2b(data, digest_size=_CACHE_DIGEST_SIZE).hexdigest().encode() + b"\n"


def write_cache(name: str, data: bytes) -> bool:
    """Keep something that can be made again under a name, in one step; whether it could be kept."""
    return write_private(name, _cache_header(data) + data)


def read_private(name: str) -> bytes | None:
    """Return the bytes of a file in steno's folder; None where it is missing or unreadable."""
    try:
        return _read_state_file(os.path.join(steno_home(), name))
    except OSError:
        return None


def _read_state_file(path: str) -> bytes:
    with os.fdopen(os.open(path, os.O_RDONLY), "rb") as file:
        return file.read(_MAX_STATE_SIZE)


def write_private(name: str, data: bytes) -> bool:
    """Write exactly these bytes to a file in steno's folder, in one step; whether that was done."""
    path = os.path.join(steno_home(), name)
    try:
        make_private_folder(os.path.dirname(path))
        write_atomic(path, (data,), sync=False)
    except OSError:
        return False
    return True
