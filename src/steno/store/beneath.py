"""A folder held open, so that what is done in it is done in it, whatever its path means by now.

with Folder("/home/ada/work/src") as folder:        # no link on the way is followed
    folder.put("a.py", b"…", folder.status("a.py"))

A path that was looked at can be exchanged for a link before it is opened. Names in a folder that
is held open cannot lead out of it. Where the system has no such thing, paths have to do.
"""

import errno
import os
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Final, Self

from steno.store.disk import flush_folder, flush_open_folder

__all__ = ["Folder"]

_HOLDS: Final = os.open in os.supports_dir_fd and hasattr(os, "O_DIRECTORY")
_CLOSED: Final = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
# Opening a pipe in place of a file must not wait for somebody to write.
_NO_WAIT: Final = getattr(os, "O_NONBLOCK", 0)
# To go through a folder one need not be allowed to list it.
_THROUGH: Final = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL


class Folder:
    """A folder that is held open inside a `with`."""

    def __init__(self, path: str, *, make: bool = False) -> None:
        """Take an absolute path with all links resolved; `make` makes what is missing of it."""
        self.path = path
        self._make = make
        self._held: int | None = None

    def __enter__(self) -> Self:
        """Go there, folder by folder.

        Raises:
            OSError: there is no such folder; `NotADirectoryError` where a link has taken its name.
        """
        if not _HOLDS:
            if self._make:
                os.makedirs(self.path, exist_ok=True)
            return self
        held = os.open(os.sep, _THROUGH | _CLOSED)
        try:
            for name in filter(None, self.path.split(os.sep)):
                held = self._below(held, name)
        except BaseException:
            os.close(held)
            raise
        self._held = held
        return self

    def _below(self, held: int, name: str) -> int:
        """Open a folder in another, and let go of that."""
        flags = _THROUGH | _CLOSED | _NO_LINK
        try:
            below = os.open(name, flags, dir_fd=held)
        except FileNotFoundError:
            if not self._make:
                raise
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=held)
            below = os.open(name, flags, dir_fd=held)
        os.close(held)
        return below

    def __exit__(self, *_: object) -> None:
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def _at(self, name: str) -> str:
        return name if self._held is not None else os.path.join(self.path, name)

    @property
    def standing(self) -> str:
        """A path under which a child process can begin in it, wherever its own path leads by then."""
        way = f"/proc/self/fd/{self._held}"
        return way if self._held is not None and os.path.isdir(way) else self.path

    def status(self, name: str) -> os.stat_result:
        """Say what a name in the folder is; a link is a link."""
        return os.stat(self._at(name), dir_fd=self._held, follow_symlinks=False)

    def open(self, name: str, flags: int, mode: int = 0o666) -> int:
        """Open a name in the folder; a link is refused."""
        return os.open(self._at(name), flags | _CLOSED | _NO_LINK, mode, dir_fd=self._held)

    def put(
        self,
        name: str,
        data: bytes,
        like: os.stat_result | None,
        *,
        before: Callable[[], None] = lambda: None,
    ) -> os.stat_result:
        """Put a file in the place of a name, whole or not at all; return what it is then.

        It gets owner and mode of `like`; a new one gets what new files get. `before` is called at
        the last moment, and stops it by raising.
        """
        scratch = f".{os.urandom(8).hex()}.steno-tmp"
        try:
            descriptor = self.open(scratch, _NEW, 0o666 if like is None else 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                if like is not None:
                    self._dress(scratch, file.fileno(), like)
                os.fsync(file.fileno())
            before()
            os.replace(
                self._at(scratch), self._at(name), src_dir_fd=self._held, dst_dir_fd=self._held
            )
            return self.status(name)
        finally:
            with suppress(OSError):
                os.unlink(self._at(scratch), dir_fd=self._held)

    @contextmanager
    def below(self, name: str) -> Generator["Folder", None, None]:
        """Hold a folder in this one open; a link is refused.

        Raises:
            OSError: there is no such folder; `NotADirectoryError` for anything else of that name.
        """
        inner = Folder(os.path.join(self.path, name))
        if self._held is not None:
            flags = _THROUGH | _CLOSED | _NO_LINK
            inner._held = os.open(name, flags, dir_fd=self._held)
        elif not stat.S_ISDIR(self.status(name).st_mode):
            raise NotADirectoryError(inner.path)
        try:
            yield inner
        finally:
            inner.__exit__()

    def names(self) -> list[str]:
        """Return the names in the folder, sorted."""
        if self._held is None:
            return sorted(os.listdir(self.path))
        listing = self._open_to_list(self._held)
        try:
            return sorted(os.listdir(listing))
        finally:
            os.close(listing)

    def flush(self) -> None:
        """Have the disk know the names in the folder."""
        if self._held is None:
            flush_folder(self.path)
            return
        listing = self._open_to_list(self._held)
        try:
            flush_open_folder(listing)
        finally:
            os.close(listing)

    def _open_to_list(self, held: int) -> int:
        # What is held open may only be gone through.
        flags = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _CLOSED
        return os.open(os.curdir, flags, dir_fd=held)

    def read(self, name: str, limit: int) -> bytes:
        """Return the first `limit` bytes of a regular file.

        Raises:
            OSError: it is not there, cannot be read, or is no regular file.
        """
        with os.fdopen(self.open(name, os.O_RDONLY | _NO_WAIT), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(errno.EINVAL, "not a regular file")
            return file.read(limit)

    def make(self, name: str) -> None:
        """Make a folder in it."""
        os.mkdir(self._at(name), dir_fd=self._held)

    def rename(self, name: str, new_name: str) -> None:
        """Give a file or folder in it another name."""
        one, other = self._at(name), self._at(new_name)
        os.rename(one, other, src_dir_fd=self._held, dst_dir_fd=self._held)

    def remove(self, name: str) -> None:
        """Remove a file; of a link the link itself."""
        os.unlink(self._at(name), dir_fd=self._held)

    def remove_folder(self, name: str) -> None:
        """Remove an empty folder."""
        os.rmdir(self._at(name), dir_fd=self._held)

    def add(self, name: str, data: bytes) -> None:
        """Put a new file under a name that nothing has, whole or not at all.

        Raises:
            FileExistsError: something has it, be it a link to nothing.
        """
        scratch = f".{os.urandom(8).hex()}.steno-tmp"
        try:
            with os.fdopen(self.open(scratch, _NEW), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            self._link(scratch, name)
        finally:
            with suppress(OSError):
                os.unlink(self._at(scratch), dir_fd=self._held)

    def _link(self, scratch: str, name: str) -> None:
        """Give a file a name that nothing has; where there are no links, hold the name first."""
        one, other = self._at(scratch), self._at(name)
        try:
            os.link(one, other, src_dir_fd=self._held, dst_dir_fd=self._held, follow_symlinks=False)
        except FileExistsError:
            raise
        except (OSError, NotImplementedError):
            os.close(self.open(name, _NEW))
            os.replace(one, other, src_dir_fd=self._held, dst_dir_fd=self._held)

    def _dress(self, name: str, descriptor: int, like: os.stat_result) -> None:
        """Give a file the owner and the mode of another; the owner only where the system lets us."""
        made = os.fstat(descriptor)
        if (made.st_uid, made.st_gid) != (like.st_uid, like.st_gid) and hasattr(os, "fchown"):
            with suppress(OSError):
                os.fchown(descriptor, like.st_uid, like.st_gid)
        if hasattr(os, "fchmod"):
            os.fchmod(descriptor, stat.S_IMODE(like.st_mode))
        else:
            os.chmod(self._at(name), stat.S_IMODE(like.st_mode))
