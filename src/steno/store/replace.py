"""Stages new content for a session file and replaces the file atomically.

expected = file_identity(path)               # before it is read
with TempFile(path) as temp_file:
    temp_file.write(repaired(path))
    result = swap(temp_file, path, expected)  # `path` is the whole old or the whole new file
undo(path)                                 # restore the old one

A reader never sees a partial file. The old file is kept next to the new one as `NAME.jsonl.before-repair` (then `…-2`,
`…-3`), with a small receipt of the replacement. A file that another process is writing is not replaced.
"""

import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from io import BytesIO
from tempfile import TemporaryDirectory
from typing import Final, NoReturn, Self

import msgspec

from steno._version import __version__
from steno.errors import Busy, NotFound, StenoError, Unreadable, Unwritable
from steno.format.source import CHUNK_SIZE, BytesSource, Source
from steno.store.atomic import (
    FileIdentity,
    TempFile,
    file_identity,
    reading,
    real_path,
    remove_stale_temp_files,
    sync_folder,
    unwritable_error,
    writing,
)
from steno.store.discovery import peek
from steno.store.environment import now
from steno.store.file_source import FileSource
from steno.store.session_lock import SessionLock, current_identity, refuse_if_written

_BACKUP_SUFFIX: Final = "before-repair"
_UNDONE_SUFFIX: Final = "undone"
_ASIDE_SUFFIX: Final = "before-move"
_MAX_RECEIPT_SIZE: Final = 1 << 16
# Error numbers of file systems that do not support hard links.
_UNSUPPORTED_LINK: Final = frozenset(
    {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK, errno.EXDEV}
)


class ReplacementReceipt(msgspec.Struct, frozen=True):
    """The receipt of a repair; stored as JSON next to the backup."""

    size: int
    sha256: str
    version: str = ""
    time: float = 0.0


class SwapResult(msgspec.Struct, frozen=True):
    """Paths of the replaced file and of the backup of the original."""

    path: str
    backup: str


class UndoResult(msgspec.Struct, frozen=True):
    """Paths of the restored file and of the repaired file that was kept."""

    path: str
    repaired: str


# Replacing files


def place_new(temp_file: TempFile, path: str, *, template: str = "") -> str:
    """Move a written file to an unused path; return the path.

    The file gets the mode of `template`, the file it was made from, but not its modification time, because Claude Code
    deletes sessions by age. Raises Unwritable if the path exists or cannot be written.
    """
    remove_stale_temp_files(temp_file.target)
    if template:
        temp_file.copy_metadata(_lstat(real_path(template)), with_time=False)
    temp_file.close()
    with writing(path):
        if not _hard_link(temp_file.path, path):
            _rename_new(temp_file.path, path)
        sync_folder(os.path.dirname(path))
    temp_file.remove()
    return path


def swap(temp_file: TempFile, path: str, expected: FileIdentity, *, check_clients: bool = True) -> SwapResult:
    """Replace a file with a written one and keep the original as a backup.

    `expected` is the result of `file_identity` from before the file was read. `check_clients=False` skips the check for
    running clients; the lock of another steno process always counts. Raises Busy if the file has changed since, or a
    client uses it, or Unwritable if the directory cannot be written.
    """
    return SwapResult(*_exchange(temp_file, path, expected, _BACKUP_SUFFIX, check_clients=check_clients, receipt=True))


def exchange(temp_file: TempFile, path: str, expected: FileIdentity) -> None:
    """Replace a file that other processes also write, without keeping a backup.

    The old file temporarily has a second name, so that a line appended during the exchange is not lost; leftovers of
    killed processes under such names are removed. Raises Busy if the file has changed since `expected` or changes
    during the exchange, or Unwritable if the directory cannot be written.
    """
    target = real_path(path)
    for _, stale in _set_aside_files(target, _ASIDE_SUFFIX):
        with suppress(OSError):
            os.unlink(stale)
    _, backup = _exchange(temp_file, path, expected, _ASIDE_SUFFIX, check_clients=False, receipt=False)
    with suppress(OSError):
        os.unlink(backup)


def _exchange(
    temp_file: TempFile, path: str, expected: FileIdentity, suffix: str, *, check_clients: bool, receipt: bool
) -> tuple[str, str]:
    """Replace a file with a written one; return its real path and the second name of the old file."""
    target = real_path(path)
    remove_stale_temp_files(target)
    refuse_if_written(path, expected, check_clients=check_clients)
    temp_file.copy_metadata(_lstat(target))
    temp_file.close()
    with SessionLock.acquire(target, check_clients=False), _OpenOriginal(target) as open_file:
        backup = _add_backup_name(target, suffix)
        if receipt:
            _write_receipt(target, backup, ReplacementReceipt(temp_file.size, temp_file.digest, __version__, now()))
        placed = current_identity(temp_file.path)
        refuse_if_written(path, expected, check_clients=False)
        _replace_file(temp_file.path, target)
        if open_file.was_written(expected, backup):
            _revert_exchange(target, placed, backup)
    return target, backup


def undo(path: str, *, force: bool = False, check_clients: bool = True) -> UndoResult:
    """Undo the last repair of a file; the repaired file is kept as `NAME.jsonl.undone`.

    Raises NotFound if the file has no backup, Busy if the file has changed since the repair (unless `force`) or a
    client uses it, or Unwritable if the directory cannot be written.
    """
    target = real_path(path)
    remove_stale_temp_files(target)
    identity = file_identity(target)
    backup = next(reversed(list_backups(target)), "")
    if not backup:
        raise NotFound(f"nothing to undo: {path} was not repaired")
    if not force and not _is_repaired_content(target, backup):
        raise Busy(f"{path} has changed since the repair", hint=f"The original file is {backup}.")
    refuse_if_written(path, identity, check_clients=check_clients)
    with SessionLock.acquire(target, check_clients=False), _OpenOriginal(target) as open_file:
        repaired_path = _add_backup_name(target, _UNDONE_SUFFIX)
        refuse_if_written(path, identity, check_clients=False)
        _replace_file(backup, target)
        open_file.was_written(identity, repaired_path)
    with suppress(OSError):
        os.unlink(_receipt_path(backup))
    return UndoResult(target, repaired_path)


def list_backups(path: str) -> list[str]:
    """Return the backups of a file, oldest first; never the file itself."""
    target = real_path(path)
    names = [name for _, name in _set_aside_files(target, _BACKUP_SUFFIX) if os.path.isfile(name)]
    # A process killed before the exchange leaves a second name of the file itself.
    return [name for name in names if not _is_same_file(name, target)]


# Steps of an exchange


def _lstat(path: str) -> os.stat_result:
    with reading(path):
        return os.stat(path, follow_symlinks=False)


def _is_same_file(path: str, other: str) -> bool:
    try:
        return os.path.samestat(_lstat(path), _lstat(other))
    except Unreadable:
        return False


def _set_aside_files(target: str, suffix: str) -> list[tuple[int, str]]:
    """Return the files set aside under a suffix with their numbers, oldest first."""
    folder, name = os.path.split(target)
    pattern = re.compile(rf"{re.escape(name)}\.{suffix}(?:-([1-9][0-9]{{0,8}}))?")
    with writing(target):
        names = os.listdir(folder or os.curdir)
    matches = [match for match in map(pattern.fullmatch, names) if match]
    return sorted((int(m[1] or 1), os.path.join(folder, m[0])) for m in matches)


def _add_backup_name(target: str, suffix: str) -> str:
    """Give a file a second, unused name; copy it where hard links are not supported.

    The second name that a killed process gave this file is reused.
    """
    existing = _set_aside_files(target, suffix)
    for _, name in existing:
        if _is_same_file(name, target):
            return name
    number = existing[-1][0] + 1 if existing else 1
    name = f"{target}.{suffix}" + (f"-{number}" if number > 1 else "")
    try:
        if not _hard_link(target, name):
            _copy_file(target, name)
        sync_folder(os.path.dirname(name))
    except FileExistsError:
        # Another process took the name; the next attempt uses another one.
        return _add_backup_name(target, suffix)
    except OSError as error:
        if isinstance(error, StenoError):
            raise
        raise unwritable_error(target, error) from error
    return name


def _hard_link(path: str, name: str) -> bool:
    """Give a file a second name; return False if the file system does not support hard links."""
    try:
        os.link(path, name, follow_symlinks=False)
    except NotImplementedError:
        return False
    except OSError as error:
        if error.errno in _UNSUPPORTED_LINK:
            return False
        raise
    return True


def _rename_new(path: str, name: str) -> None:
    # Without hard links, only Windows has a rename that does not overwrite.
    if os.path.lexists(name):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
    os.rename(path, name)


def _copy_file(path: str, name: str) -> None:
    with FileSource(path) as source, TempFile(path) as temp_file:
        temp_file.write(source.chunks())
        temp_file.copy_metadata(_lstat(path))
        _rename_new(temp_file.path, name)


def _replace_file(path: str, target: str) -> None:
    with writing(target):
        os.replace(path, target)
    try:
        sync_folder(os.path.dirname(target))
    except OSError as error:
        message = (error.strerror or str(error)).lower()
        raise Unwritable(f"{target} was replaced but may not be on disk yet: {message}") from error


def _revert_exchange(target: str, placed: FileIdentity | None, backup: str) -> NoReturn:
    """Restore the old file, because it was written during the exchange."""
    if current_identity(target) != placed:
        raise Busy(f"{target} was written while it was replaced", hint=f"Part of the content is in {backup}.")
    _replace_file(backup, target)
    with suppress(OSError):
        os.unlink(_receipt_path(backup))
    raise Busy(
        f"{target} was written while it was replaced",
        hint="The original was restored. Try again when no process uses it.",
    )


class _OpenOriginal:
    """A file kept open during its replacement, to detect writes by other processes."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = -1
        if os.name == "nt":
            # Windows cannot replace an open file.
            return
        with reading(path):
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def was_written(self, expected: FileIdentity, aside: str) -> bool:
        """Return whether the file has changed; if so, keep the changed content at `aside`."""
        if self._descriptor < 0:
            return False
        status = os.fstat(self._descriptor)
        if FileIdentity.from_status(status) == expected:
            return False
        if not os.path.samestat(status, _lstat(aside)):
            with TempFile(self._path) as temp_file:
                temp_file.write(iter(lambda: os.read(self._descriptor, CHUNK_SIZE), b""))
                temp_file.copy_metadata(status)
                _replace_file(temp_file.path, aside)
        return True


# Receipts


def _receipt_path(backup: str) -> str:
    return f"{backup}.json"


def _write_receipt(target: str, backup: str, receipt: ReplacementReceipt) -> None:
    path = _receipt_path(backup)
    # Named like a temporary file of the session, so that cleanup of temporary files includes it.
    with TempFile(target) as temp_file:
        temp_file.write([msgspec.json.encode(receipt), b"\n"])
        # Written before the exchange: after a power cut, a new file without a receipt could not be undone.
        temp_file.replace(path)


def _is_repaired_content(target: str, backup: str) -> bool:
    raw = peek(_receipt_path(backup), _MAX_RECEIPT_SIZE, [])
    try:
        receipt = msgspec.json.decode(raw or b"", type=ReplacementReceipt)
    except msgspec.DecodeError:
        return False
    with FileSource(target) as file:
        return file.size == receipt.size and _sha256_of(file) == receipt.sha256


def _sha256_of(file: FileSource) -> str:
    import hashlib

    digest = hashlib.sha256()
    for chunk in file.chunks():
        digest.update(chunk)
    return digest.hexdigest()


MAX_MEMORY_SIZE: Final = 64 << 20
"""Bytes above which staged content is written to disk."""


class StagingArea:
    """Staging area for bytes that are returned as a source; all content is discarded on exit.

    New content may be generated from the previously staged content, which it replaces.
    """

    def __init__(self) -> None:
        self._folder: TemporaryDirectory[str] | None = None
        self._temp_file: TempFile | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._clear()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def stage(self, chunks: Iterable[bytes]) -> Source:
        """Stage chunks and return them as one source. Raises Unwritable if the disk is full."""
        remaining = iter(chunks)
        buffer = BytesIO()
        for chunk in remaining:
            buffer.write(chunk)
            if buffer.tell() > MAX_MEMORY_SIZE:
                return self._spill(buffer, remaining)
        self._clear()
        return BytesSource(buffer.getvalue())

    def _spill(self, buffer: BytesIO, remaining: Iterable[bytes]) -> Source:
        temp_file = TempFile(os.path.join(self._temp_folder(), "work"))
        temp_file.write(_coalesce(buffer, remaining))
        self._clear()
        self._temp_file = temp_file
        return temp_file.source()

    def _temp_folder(self) -> str:
        if self._folder is None:
            with writing("a temporary file"):
                self._folder = TemporaryDirectory(prefix="steno-")
        return self._folder.name

    def _clear(self) -> None:
        if self._temp_file is not None:
            self._temp_file.remove()
            self._temp_file = None


def _coalesce(buffer: BytesIO, remaining: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the buffered and remaining bytes in chunks of at least `CHUNK_SIZE`."""
    yield buffer.getvalue()
    buffer.close()
    pending: list[bytes] = []
    size = 0
    for chunk in remaining:
        pending.append(chunk)
        size += len(chunk)
        if size >= CHUNK_SIZE:
            yield b"".join(pending)
            pending.clear()
            size = 0
    yield b"".join(pending)


def make_owner_writable(path: str) -> str:
    """Make a file writable for its owner, regardless of the mode of the file it was made from."""
    with writing(path):
        os.chmod(path, stat.S_IMODE(os.stat(path).st_mode) | stat.S_IRUSR | stat.S_IWUSR)
    return path
