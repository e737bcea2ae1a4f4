"""Atomic file writes: private files, temporary files, fsync, and steno's own state files.

with TempFile(path) as temp_file:
    temp_file.write(chunks)
    load(temp_file.source())       # check the written file before it becomes visible
    swap(temp_file, path, expected)  # see `steno.store.replace`

`write_atomic` does it in one call for a small file that no other process writes.

The name of a `TempFile` contains the PID (`.NAME.PID-RANDOM.steno-tmp`), so that the next process can remove the files
of a killed process; discovery ignores these files.

Caches (`write_cache`, `read_cache`) start with a checksum: a damaged cache is moved aside and counts as missing. Other
state files (`write_private`, `read_private`) have no checksum and are never moved aside.
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
# Error numbers of systems that cannot flush a directory; ignored.
_UNSUPPORTED_FSYNC: Final = frozenset({errno.EINVAL, errno.EBADF, errno.EACCES, errno.ENOTSUP, errno.EISDIR})
_READ_SIZE: Final = 1 << 20


def open_private(path: str, flags: int) -> int:
    """Return a descriptor of a file that only its owner can access, regardless of the umask."""
    descriptor = os.open(path, flags | _OPEN_FLAGS, PRIVATE_FILE_MODE)
    if flags & os.O_CREAT and hasattr(os, "fchmod"):
        os.fchmod(descriptor, PRIVATE_FILE_MODE)
    return descriptor


def make_private_folder(path: str) -> bool:
    """Create a private directory and its missing parents; return False if it exists."""
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
    """Write all data at the current position, repeating partial writes."""
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(descriptor, remaining) :]


def append_lines(path: str, lines: bytes, *, sync: bool = False) -> None:
    """Append whole lines to a private state file, creating it if missing.

    An incomplete last line is ended first, so that it does not damage the new lines.
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
    """Flush the content and the directory entry of a state file to disk."""
    descriptor = open_private(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync_folder(os.path.dirname(path))


def sync_folder(folder: str) -> None:
    """Flush the entries of a directory to disk."""
    if os.name == "nt":
        return
    descriptor = os.open(folder or os.curdir, os.O_RDONLY | os.O_CLOEXEC)
    try:
        sync_open_folder(descriptor)
    finally:
        os.close(descriptor)


def sync_open_folder(descriptor: int) -> None:
    """Flush the entries of an open directory to disk."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _UNSUPPORTED_FSYNC:
            raise


def read_all(path: str) -> bytes:
    """Return the content of a state file; empty if it does not exist."""
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
"""Suffix of temporary file names."""
TEMP_NAME_PATTERN: Final = r"(?s)\.(?P<of>.+)\.(?P<pid>[0-9]{1,10})-[0-9a-f]{12}\.steno-tmp"
RANDOM_TEMP_NAME_PATTERN: Final = r"\.[0-9a-f]{16}\.steno-tmp"
_DISK_FULL_ERRORS: Final = frozenset({errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)})


def temp_name(name: str) -> str:
    """Return a new temporary name for a file, containing the PID."""
    return f".{name}.{os.getpid()}-{os.urandom(6).hex()}{TEMP_SUFFIX}"


def random_temp_name() -> str:
    """Return a new temporary name of fixed length, for files that later processes do not clean up."""
    return f".{os.urandom(8).hex()}{TEMP_SUFFIX}"


@contextmanager
def replacing(path: str) -> Generator[str, None, None]:
    """Yield a temporary path in the same directory; on exit without error it replaces `path`."""
    temp_path = os.path.join(os.path.dirname(path), random_temp_name())
    try:
        yield temp_path
        os.replace(temp_path, path)
    finally:
        with suppress(OSError):
            os.unlink(temp_path)


def write_new_private(path: str, chunks: Iterable[bytes], *, sync: bool) -> int:
    """Create a private file, which must not exist; return its size."""
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
    """Atomically replace a file by a private one; return its size.

    Without `sync` a power cut may damage it, so use that only for files that are verified when read. Raises OSError if
    writing fails; the old file is then unchanged.
    """
    with replacing(path) as temp_path:
        return write_new_private(temp_path, chunks, sync=sync)


class FileIdentity(msgspec.Struct, frozen=True):
    """Identity, size and modification time of a file; a different value means the file has changed."""

    device: int
    inode: int
    size: int
    mtime_ns: int

    @classmethod
    def from_status(cls, status: os.stat_result) -> Self:
        """Return the identity in a stat result."""
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def file_identity(path: str) -> FileIdentity:
    """Return the identity of a file; call it before reading the file.

    Raises Unreadable if the file is missing or not a regular file.
    """
    with FileSource(path) as file:
        return FileIdentity.from_status(os.stat(file.path))


def real_path(path: str) -> str:
    """Resolve the links in a path, so that a link to the file stays in place when the file is replaced."""
    return os.path.realpath(path)


def unreadable_error(path: str, error: OSError) -> Unreadable:
    """Return the error for a file that cannot be read."""
    return Unreadable(f"cannot read {path}: {(error.strerror or str(error)).lower()}")


def unwritable_error(path: str, error: OSError) -> Unwritable:
    """Return the error for a file that cannot be written, with a hint."""
    hint = ""
    if error.errno in _DISK_FULL_ERRORS:
        hint = "Nothing was changed. Free disk space and run the command again."
    elif error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        hint = "Nothing was changed. Check the permissions of the directory."
    return Unwritable(f"cannot write {path}: {(error.strerror or str(error)).lower()}", hint=hint)


@contextmanager
def reading(path: str) -> Generator[None]:
    """Convert an OSError in a block that reads a file to `Unreadable`."""
    try:
        yield
    except OSError as error:
        raise unreadable_error(path, error) from error


@contextmanager
def writing(path: str) -> Generator[None]:
    """Convert an OSError in a block that writes a file to `Unwritable`."""
    try:
        yield
    except OSError as error:
        raise unwritable_error(path, error) from error


class TempFile:
    """A private temporary file in the directory of `target`, removed on exit."""

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
        """Write all chunks and flush them to disk.

        Raises Unwritable if the disk is full, the directory is not writable, …; the file is then removed.
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
        """Return the written content as a source, which is closed with the temporary file."""
        source = FileSource(self.path)
        self._open_sources.append(source)
        return source

    def copy_metadata(self, template: os.stat_result, *, with_time: bool = True) -> None:
        """Copy mode, owner and modification time of the file that this one replaces.

        Pass `with_time=False` for a new file next to the original. Raises Unwritable on failure.
        """
        with writing(self.target):
            if hasattr(os, "chown") and (template.st_uid, template.st_gid) != _owner_of(self.path):
                os.chown(self.path, template.st_uid, template.st_gid)
            os.chmod(self.path, stat.S_IMODE(template.st_mode))
            if with_time:
                os.utime(self.path, ns=(template.st_atime_ns, template.st_mtime_ns))

    def replace(self, path: str, *, sync: bool = True) -> None:
        """Move the file over a state file. Raises Unwritable on failure."""
        with writing(path):
            os.replace(self.path, path)
            if sync:
                sync_folder(os.path.dirname(path))

    def close(self) -> None:
        """Close the sources of the file."""
        while self._open_sources:
            self._open_sources.pop().close()

    def remove(self) -> None:
        """Remove the file unless it was renamed; can be called repeatedly."""
        self.close()
        try:
            os.unlink(self.path)
        except OSError:
            # Renamed to the target, never created, or left for the next process to remove.
            return


def _owner_of(path: str) -> tuple[int, int]:
    status = os.stat(path, follow_symlinks=False)
    return status.st_uid, status.st_gid


def remove_stale_temp_files(target: str) -> list[str]:
    """Remove temporary files of a file left by killed processes; return their paths."""
    folder, name = os.path.split(real_path(target))
    return _remove_stale(folder, name)


def remove_stale_in_folder(folder: str) -> list[str]:
    """Remove all temporary files in a directory left by killed processes; return their paths."""
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
            # Removed by another process, or not removable: harmless in both cases.
            continue
        removed.append(path)
    return removed


def is_process_alive(pid: int) -> bool:
    """Return whether a process is running; True where this cannot be determined."""
    if pid <= 0:
        return False
    if os.name == "nt":
        # On Windows, signal 0 would terminate the process.
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return not _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    """Return whether a process has exited but not been reaped (Linux only)."""
    return _proc_stat_field(pid, _PROC_STATE_FIELD) in {"Z", "X"}


def process_start_time(pid: int) -> str:
    """Return the start time of a process as reported by Linux; empty on other systems."""
    return _proc_stat_field(pid, _PROC_START_FIELD)


def _proc_stat_field(pid: int, index: int) -> str:
    """Return a field after the process name, which can contain spaces and parentheses."""
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
    """Return the content of a cache; None if it is missing or damaged."""
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
        # The cache is rebuilt in any case.
        return


def _cache_header(data: bytes) -> bytes:
    from hashlib import blake2b

    return _CACHE_MAGIC + blake2b(data, digest_size=_CACHE_DIGEST_SIZE).hexdigest().encode() + b"\n"


def write_cache(name: str, data: bytes) -> bool:
    """Atomically write a cache; return whether this succeeded."""
    return write_private(name, _cache_header(data) + data)


def read_private(name: str) -> bytes | None:
    """Return the content of a file in steno's home directory; None if it is missing or unreadable."""
    try:
        return _read_state_file(os.path.join(steno_home(), name))
    except OSError:
        return None


def _read_state_file(path: str) -> bytes:
    with os.fdopen(os.open(path, os.O_RDONLY), "rb") as file:
        return file.read(_MAX_STATE_SIZE)


def write_private(name: str, data: bytes) -> bool:
    """Atomically write a file in steno's home directory; return whether this succeeded."""
    path = os.path.join(steno_home(), name)
    try:
        make_private_folder(os.path.dirname(path))
        write_atomic(path, (data,), sync=False)
    except OSError:
        return False
    return True
