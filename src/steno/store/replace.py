"""Puts a file in the place of another: the only exchange of session bytes there is.

seen = identify(path)                      # before it is read
with Scratch(path) as scratch:
    scratch.write(repaired(path))
    done = swap(scratch, path, seen)       # `path` is the whole old or the whole new file
undo(path)                                 # and back

At no instant does a reader find half a file. The old one stays beside it, whatever happens, as
`NAME.jsonl.before-repair` (then `…-2`, `…-3`), with a small receipt of what was put in its place.
A file that somebody else is writing to is not exchanged.
"""

import errno
import os
import re
from contextlib import suppress
from typing import Final, NoReturn, Self

import msgspec

from steno._version import __version__
from steno.errors import Busy, NotFound, StenoError, Unreadable, Unwritable
from steno.format.source import CHUNK
from steno.store.busy import look_now, refuse_if_busy
from steno.store.clock import now
from steno.store.found import peek
from steno.store.read import FileSource
from steno.store.scratch import (
    Identity,
    Scratch,
    identify,
    real_file,
    sweep,
    unreadable,
    unwritable,
)
from steno.store.session_lock import SessionLock

__all__ = [
    "Receipt",
    "Swapped",
    "Undone",
    "backups",
    "exchange",
    "keep_new",
    "swap",
    "undo",
]

_BEFORE: Final = "before-repair"
_UNDONE: Final = "undone"
_ASIDE: Final = "before-move"
_MOST: Final = 1 << 16
# What file systems say that know no second name for a file.
_NO_LINKS: Final = frozenset(
    {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK, errno.EXDEV}
)
# What they say that cannot flush a folder; there is nothing more to be done there.
_NO_FLUSH: Final = frozenset({errno.EINVAL, errno.EBADF, errno.EACCES, errno.ENOTSUP, errno.EISDIR})


class Receipt(msgspec.Struct, frozen=True):
    """What a repair put in the place of a file: lies beside the backup as JSON."""

    size: int
    sha256: str
    version: str = ""
    time: float = 0.0


class Swapped(msgspec.Struct, frozen=True):
    """Where the file lies that was exchanged, and where the one it was before."""

    path: str
    backup: str


class Undone(msgspec.Struct, frozen=True):
    """Where the file lies that was brought back, and where the repaired one is kept."""

    path: str
    kept: str


# Putting files in place


def keep_new(scratch: Scratch, path: str, *, like: str = "") -> str:
    """Put what was written at a path where nothing is; return the path.

    It gets the mode of `like`, the file it was made from, but not its age: clients delete by age.

    Raises:
        Unwritable: something is there already, or it cannot be written.
    """
    sweep(scratch.target)
    if like:
        scratch.dress(_look(real_file(like)), time=False)
    scratch.close()
    try:
        if not _linked(scratch.path, path):
            _renamed(scratch.path, path)
        _flush(path)
    except OSError as error:
        raise unwritable(path, error) from error
    scratch.remove()
    return path


def swap(scratch: Scratch, path: str, expected: Identity, *, live: bool = True) -> Swapped:
    """Put what was written in the place of a file, and keep the file as it was beside it.

    `expected` is what `identify` said before the file was read. `live=False` does not ask whether
    a client says it is at work on the session; the lock of another steno process always counts.

    Raises:
        Busy: the file has changed since, or a client is at work on it.
        Unwritable: the folder cannot be written.
    """
    target = real_file(path)
    sweep(target)
    refuse_if_busy(path, expected, live=live)
    scratch.dress(_look(target))
    scratch.close()
    with SessionLock.take(target, live=False), _Held(target) as old:
        backup = _set_aside(target, _BEFORE)
        _write_receipt(target, backup, Receipt(scratch.size, scratch.digest, __version__, now()))
        placed = look_now(scratch.path)
        refuse_if_busy(path, expected, live=False)
        _put(scratch.path, target)
        if old.was_written(expected, backup):
            _take_back(target, placed, backup)
    return Swapped(target, backup)


def exchange(scratch: Scratch, path: str, expected: Identity) -> None:
    """Put what was written in the place of a file that others write too, and keep nothing.

    For a moment the old file has a second name beside it, so that a line which somebody writes to
    it meanwhile is not lost; what a killed run leaves under such a name is removed here.

    Raises:
        Busy: the file has changed since, or while it was exchanged.
        Unwritable: the folder cannot be written.
    """
    target = real_file(path)
    sweep(target)
    for _, left in _asides(target, _ASIDE):
        with suppress(OSError):
            os.unlink(left)
    refuse_if_busy(path, expected, live=False)
    scratch.dress(_look(target))
    scratch.close()
    with SessionLock.take(target, live=False), _Held(target) as old:
        aside = _set_aside(target, _ASIDE)
        placed = look_now(scratch.path)
        refuse_if_busy(path, expected, live=False)
        _put(scratch.path, target)
        if old.was_written(expected, aside):
            _take_back(target, placed, aside)
    with suppress(OSError):
        os.unlink(aside)


def undo(path: str, *, force: bool = False, live: bool = True) -> Undone:
    """Bring back what the last repair replaced; the repaired file is kept as `NAME.jsonl.undone`.

    Raises:
        NotFound: no repair left a backup.
        Busy: the file is no longer what the repair wrote (`force=True` takes it back even so), or
            a client is at work on it.
        Unwritable: the folder cannot be written.
    """
    target = real_file(path)
    sweep(target)
    seen = identify(target)
    backup = next(reversed(backups(target)), "")
    if not backup:
        raise NotFound(f"{path} was not repaired, so there is nothing to undo")
    if not force and not _is_as_repaired(target, backup):
        raise Busy(
            f"{path} is no longer what the repair wrote",
            hint=f"the file as it was before is {backup}",
        )
    refuse_if_busy(path, seen, live=live)
    with SessionLock.take(target, live=False), _Held(target) as repaired:
        kept = _set_aside(target, _UNDONE)
        refuse_if_busy(path, seen, live=False)
        _put(backup, target)
        repaired.was_written(seen, kept)
    with suppress(OSError):
        os.unlink(_receipt_path(backup))
    return Undone(target, kept)


def backups(path: str) -> list[str]:
    """Return what repairs of a file have kept, oldest first; never the file itself."""
    target = real_file(path)
    found = [name for _, name in _asides(target, _BEFORE) if os.path.isfile(name)]
    # A run that was killed before the exchange leaves a second name of the file itself.
    return [name for name in found if not _is_same(name, target)]


# The steps


def _look(path: str) -> os.stat_result:
    try:
        return os.stat(path, follow_symlinks=False)
    except OSError as error:
        raise unreadable(path, error) from error


def _is_same(one: str, other: str) -> bool:
    try:
        return os.path.samestat(_look(one), _look(other))
    except Unreadable:
        return False


def _asides(target: str, word: str) -> list[tuple[int, str]]:
    """Return what was set aside of a file under a word, with its number, oldest first."""
    folder, name = os.path.split(target)
    pattern = re.compile(rf"{re.escape(name)}\.{word}(?:-([1-9][0-9]{{0,8}}))?")
    try:
        names = os.listdir(folder or os.curdir)
    except OSError as error:
        raise unwritable(target, error) from error
    matches = [match for match in map(pattern.fullmatch, names) if match]
    return sorted((int(m[1] or 1), os.path.join(folder, m[0])) for m in matches)


def _set_aside(target: str, word: str) -> str:
    """Give a file a second name beside it that nothing has had; a copy where there are no links.

    The name that an earlier, killed run gave this very file is taken again.
    """
    there = _asides(target, word)
    for _, name in there:
        if _is_same(name, target):
            return name
    number = there[-1][0] + 1 if there else 1
    name = f"{target}.{word}" + (f"-{number}" if number > 1 else "")
    try:
        if not _linked(target, name):
            _copied(target, name)
        _flush(name)
    except FileExistsError:
        # Somebody took the name this moment: the next try finds it taken.
        return _set_aside(target, word)
    except OSError as error:
        if isinstance(error, StenoError):
            raise
        raise unwritable(target, error) from error
    return name


def _linked(path: str, name: str) -> bool:
    """Give a file a second name; False where the file system knows no such thing."""
    try:
        os.link(path, name, follow_symlinks=False)
    except NotImplementedError:
        return False
    except OSError as error:
        if error.errno in _NO_LINKS:
            return False
        raise
    return True


def _renamed(path: str, name: str) -> None:
    # Without links there is no way to rename that refuses to overwrite, but on Windows.
    if os.path.lexists(name):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
    os.rename(path, name)


def _copied(path: str, name: str) -> None:
    with FileSource(path) as source, Scratch(path) as copy:
        copy.write(source.chunks())
        copy.dress(_look(path))
        _renamed(copy.path, name)


def _put(path: str, target: str) -> None:
    try:
        os.replace(path, target)
    except OSError as error:
        raise unwritable(target, error) from error
    try:
        _flush(target)
    except OSError as error:
        said = (error.strerror or str(error)).lower()
        raise Unwritable(
            f"{target} was exchanged, but may not be on the disk yet: {said}"
        ) from error


def _take_back(target: str, placed: Identity | None, backup: str) -> NoReturn:
    """Bring the old file back, to which somebody wrote while it was exchanged."""
    if look_now(target) != placed:
        raise Busy(
            f"{target} was written to while it was exchanged", hint=f"some of it is in {backup}"
        )
    _put(backup, target)
    with suppress(OSError):
        os.unlink(_receipt_path(backup))
    raise Busy(
        f"{target} was written to while it was exchanged",
        hint="it was put back as it was; try again when nobody uses it",
    )


class _Held:
    """A file kept open while another takes its name, to see whether anybody still writes to it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = -1
        if os.name == "nt":
            # There, no file that is open can be exchanged.
            return
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise unreadable(path, error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def was_written(self, expected: Identity, aside: str) -> bool:
        """Say whether the file has changed; if so, what was set aside of it has the change too."""
        if self._descriptor < 0:
            return False
        status = os.fstat(self._descriptor)
        if Identity.of(status) == expected:
            return False
        if not os.path.samestat(status, _look(aside)):
            with Scratch(self._path) as whole:
                whole.write(iter(lambda: os.read(self._descriptor, CHUNK), b""))
                whole.dress(status)
                _put(whole.path, aside)
        return True


def _flush(path: str) -> None:
    """Have the disk know the names in a file's folder."""
    if os.name == "nt":
        return
    folder = os.open(os.path.dirname(path) or os.curdir, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in _NO_FLUSH:
            raise
    finally:
        os.close(folder)


# Receipts


def _receipt_path(backup: str) -> str:
    return f"{backup}.json"


def _write_receipt(target: str, backup: str, receipt: Receipt) -> None:
    path = _receipt_path(backup)
    # Named as a scratch file of the session, so that it is swept with the others.
    with Scratch(target) as scratch:
        scratch.write([msgspec.json.encode(receipt), b"\n"])
        try:
            os.replace(scratch.path, path)
            # Before the exchange: after a power cut a new file without it could not be taken back.
            _flush(path)
        except OSError as error:
            raise unwritable(path, error) from error


def _is_as_repaired(target: str, backup: str) -> bool:
    raw = peek(_receipt_path(backup), _MOST, [])
    try:
        receipt = msgspec.json.decode(raw or b"", type=Receipt)
    except msgspec.DecodeError:
        return False
    with FileSource(target) as file:
        return file.size == receipt.size and _digest(file) == receipt.sha256


def _digest(file: FileSource) -> str:
    import hashlib

    digest = hashlib.sha256()
    for chunk in file.chunks():
        digest.update(chunk)
    return digest.hexdigest()
