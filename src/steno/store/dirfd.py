"""File operations relative to an open directory, so that no exchanged link can redirect them.

with Directory("/home/ada/work/src") as directory:     # no link on the way is followed
    directory.replace_file("a.py", b"…", directory.status("a.py"))

A path that was checked can be replaced by a link before it is opened. Names relative to an open directory cannot lead
out of it. Where the system has no directory descriptors, paths are used.
"""

import errno
import os
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Final, Self

from steno.store.atomic import random_temp_name, sync_folder, sync_open_folder

_HAS_DIR_FD: Final = os.open in os.supports_dir_fd and hasattr(os, "O_DIRECTORY")
_CLOSE_ON_EXEC: Final = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NOFOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
# Opening a pipe in place of a file must not wait for somebody to write.
_NONBLOCK: Final = getattr(os, "O_NONBLOCK", 0)
# To go through a folder one need not be allowed to list it.
_TRAVERSE_FLAGS: Final = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)
_CREATE_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL


class Directory:
    """A folder that is held open inside a `with`."""

    def __init__(self, path: str, *, make: bool = False) -> None:
        """Take an absolute path with all links resolved; `make` makes what is missing of it."""
        self.path = path
        self._make = make
        self._descriptor: int | None = None

    def __enter__(self) -> Self:
        """Go there, folder by folder.

        Raises OSError if there is no such folder; `NotADirectoryError` where a link has taken its name.
        """
        if not _HAS_DIR_FD:
            if self._make:
                os.makedirs(self.path, exist_ok=True)
            return self
        descriptor = os.open(os.sep, _TRAVERSE_FLAGS | _CLOSE_ON_EXEC)
        try:
            for name in filter(None, self.path.split(os.sep)):
                descriptor = self._open_child(descriptor, name)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        return self

    def _open_child(self, descriptor: int, name: str) -> int:
        """Open a folder in another, and let go of that."""
        flags = _TRAVERSE_FLAGS | _CLOSE_ON_EXEC | _NOFOLLOW
        try:
            child = os.open(name, flags, dir_fd=descriptor)
        except FileNotFoundError:
            if not self._make:
                raise
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=descriptor)
            child = os.open(name, flags, dir_fd=descriptor)
        os.close(descriptor)
        return child

    def __exit__(self, *_: object) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _path_of(self, name: str) -> str:
        return name if self._descriptor is not None else os.path.join(self.path, name)

    @property
    def stable_path(self) -> str:
        """A path under which a child process can begin in it, wherever its own path leads by then."""
        proc_path = f"/proc/self/fd/{self._descriptor}"
        return proc_path if self._descriptor is not None and os.path.isdir(proc_path) else self.path

    def status(self, name: str) -> os.stat_result:
        """Say what a name in the folder is; a link is a link."""
        return os.stat(self._path_of(name), dir_fd=self._descriptor, follow_symlinks=False)

    def open(self, name: str, flags: int, mode: int = 0o666) -> int:
        """Open a name in the folder; a link is refused."""
        return os.open(self._path_of(name), flags | _CLOSE_ON_EXEC | _NOFOLLOW, mode, dir_fd=self._descriptor)

    def replace_file(
        self,
        name: str,
        data: bytes,
        template: os.stat_result | None,
        *,
        before_replace: Callable[[], None] = lambda: None,
    ) -> os.stat_result:
        """Put a file in the place of a name, whole or not at all; return what it is then.

        It gets owner and mode of `template`; a new one gets what new files get. `before_replace` is called at the last moment, and
        stops it by raising.
        """
        with self._temp_file(data, template) as temp_name:
            before_replace()
            os.replace(
                self._path_of(temp_name), self._path_of(name), src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor
            )
            return self.status(name)

    @contextmanager
    def _temp_file(self, data: bytes, template: os.stat_result | None = None) -> Generator[str, None, None]:
        """Yield the name of a temporary file with some content, removed when left."""
        temp_name = random_temp_name()
        try:
            descriptor = self.open(temp_name, _CREATE_FLAGS, 0o666 if template is None else 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                if template is not None:
                    self._copy_metadata(temp_name, file.fileno(), template)
                os.fsync(file.fileno())
            yield temp_name
        finally:
            with suppress(OSError):
                os.unlink(self._path_of(temp_name), dir_fd=self._descriptor)

    @contextmanager
    def open_directory(self, name: str) -> Generator["Directory", None, None]:
        """Hold a folder in this one open; a link is refused.

        Raises OSError if there is no such folder; `NotADirectoryError` for anything else of that name.
        """
        directory = Directory(os.path.join(self.path, name))
        if self._descriptor is not None:
            flags = _TRAVERSE_FLAGS | _CLOSE_ON_EXEC | _NOFOLLOW
            directory._descriptor = os.open(name, flags, dir_fd=self._descriptor)
        elif not stat.S_ISDIR(self.status(name).st_mode):
            raise NotADirectoryError(directory.path)
        try:
            yield directory
        finally:
            directory.__exit__()

    def names(self) -> list[str]:
        """Return the names in the folder, sorted."""
        if self._descriptor is None:
            return sorted(os.listdir(self.path))
        listing = self._open_for_listing(self._descriptor)
        try:
            return sorted(os.listdir(listing))
        finally:
            os.close(listing)

    def sync(self) -> None:
        """Have the disk know the names in the folder."""
        if self._descriptor is None:
            sync_folder(self.path)
            return
        listing = self._open_for_listing(self._descriptor)
        try:
            sync_open_folder(listing)
        finally:
            os.close(listing)

    def _open_for_listing(self, descriptor: int) -> int:
        # What is held open may only be gone through.
        flags = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _CLOSE_ON_EXEC
        return os.open(os.curdir, flags, dir_fd=descriptor)

    def read(self, name: str, limit: int) -> bytes:
        """Return the first `limit` bytes of a regular file.

        Raises:
            OSError: it is not there, cannot be read, or is no regular file.
        """
        with os.fdopen(self.open(name, os.O_RDONLY | _NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(errno.EINVAL, "not a regular file")
            return file.read(limit)

    def make_directory(self, name: str) -> None:
        """Make a folder in it."""
        os.mkdir(self._path_of(name), dir_fd=self._descriptor)

    def rename(self, name: str, new_name: str) -> None:
        """Give a file or folder in it another name."""
        old_path, new_path = self._path_of(name), self._path_of(new_name)
        os.rename(old_path, new_path, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def remove(self, name: str) -> None:
        """Remove a file; of a link the link itself."""
        os.unlink(self._path_of(name), dir_fd=self._descriptor)

    def remove_directory(self, name: str) -> None:
        """Remove an empty folder."""
        os.rmdir(self._path_of(name), dir_fd=self._descriptor)

    def add_file(self, name: str, data: bytes) -> None:
        """Put a new file under a name that nothing has, whole or not at all.

        Raises FileExistsError if something has it, be it a link to nothing.
        """
        with self._temp_file(data) as temp_name:
            self._link(temp_name, name)

    def _link(self, temp_name: str, name: str) -> None:
        """Give a file a name that nothing has; where there are no links, hold the name first."""
        temp_path, path = self._path_of(temp_name), self._path_of(name)
        try:
            os.link(temp_path, path, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor, follow_symlinks=False)
        except FileExistsError:
            raise
        except (OSError, NotImplementedError):
            os.close(self.open(name, _CREATE_FLAGS))
            os.replace(temp_path, path, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def _copy_metadata(self, name: str, descriptor: int, template: os.stat_result) -> None:
        """Give a file the owner and the mode of another; the owner only where the system lets us."""
        status = os.fstat(descriptor)
        if (status.st_uid, status.st_gid) != (template.st_uid, template.st_gid) and hasattr(os, "fchown"):
            with suppress(OSError):
                os.fchown(descriptor, template.st_uid, template.st_gid)
        if hasattr(os, "fchmod"):
            os.fchmod(descriptor, stat.S_IMODE(template.st_mode))
        else:
            os.chmod(self._path_of(name), stat.S_IMODE(template.st_mode))
