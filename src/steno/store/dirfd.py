"""File operations relative to an open directory, so that swapped symbolic links cannot redirect them.

with Directory("/home/ada/work/src") as directory:     # no symbolic link on the path is followed
    directory.replace_file("a.py", b"…", directory.status("a.py"))

A path that was checked can be replaced by a link before it is opened. Names relative to an open directory cannot lead
outside it. On systems without directory descriptors, plain paths are used.
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
# Opening a pipe in place of a file must not block until another process writes to it.
_NONBLOCK: Final = getattr(os, "O_NONBLOCK", 0)
# Traversing a directory does not require permission to list it.
_TRAVERSE_FLAGS: Final = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)
_CREATE_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL


class Directory:
    """A directory that is held open inside a `with` block."""

    def __init__(self, path: str, *, make: bool = False) -> None:
        """Take an absolute path with all links resolved; `make` creates missing directories."""
        self.path = path
        self._make = make
        self._descriptor: int | None = None

    def __enter__(self) -> Self:
        """Open the directory, one path component at a time.

        Raises OSError if the directory does not exist; `NotADirectoryError` if a component is a link.
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
        """Open a child directory and close the parent descriptor."""
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
        """A path that a child process can use as its working directory even if the directory is renamed."""
        proc_path = f"/proc/self/fd/{self._descriptor}"
        return proc_path if self._descriptor is not None and os.path.isdir(proc_path) else self.path

    def status(self, name: str) -> os.stat_result:
        """Return the status of a name in the directory; links are not followed."""
        return os.stat(self._path_of(name), dir_fd=self._descriptor, follow_symlinks=False)

    def open(self, name: str, flags: int, mode: int = 0o666) -> int:
        """Open a name in the directory; refuse symbolic links."""
        return os.open(self._path_of(name), flags | _CLOSE_ON_EXEC | _NOFOLLOW, mode, dir_fd=self._descriptor)

    def replace_file(
        self,
        name: str,
        data: bytes,
        template: os.stat_result | None,
        *,
        before_replace: Callable[[], None] = lambda: None,
    ) -> os.stat_result:
        """Atomically replace or create a file and return its new status.

        The file gets the owner and mode of `template`, or the defaults of a new file without one. `before_replace` is
        called immediately before the rename and can raise to abort it.
        """
        with self._temp_file(data, template) as temp_name:
            before_replace()
            os.replace(
                self._path_of(temp_name), self._path_of(name), src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor
            )
            return self.status(name)

    @contextmanager
    def _temp_file(self, data: bytes, template: os.stat_result | None = None) -> Generator[str, None, None]:
        """Yield the name of a temporary file with the given content; the file is removed on exit."""
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
        """Open a subdirectory; refuse symbolic links.

        Raises OSError if it does not exist; `NotADirectoryError` if it is not a directory.
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
        """Return the sorted names in the directory."""
        if self._descriptor is None:
            return sorted(os.listdir(self.path))
        listing = self._open_for_listing(self._descriptor)
        try:
            return sorted(os.listdir(listing))
        finally:
            os.close(listing)

    def sync(self) -> None:
        """Flush the directory entries to disk."""
        if self._descriptor is None:
            sync_folder(self.path)
            return
        listing = self._open_for_listing(self._descriptor)
        try:
            sync_open_folder(listing)
        finally:
            os.close(listing)

    def _open_for_listing(self, descriptor: int) -> int:
        # The held descriptor only permits traversal, not listing.
        flags = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _CLOSE_ON_EXEC
        return os.open(os.curdir, flags, dir_fd=descriptor)

    def read(self, name: str, limit: int) -> bytes:
        """Return the first `limit` bytes of a regular file.

        Raises:
            OSError: the file does not exist, cannot be read, or is not a regular file.
        """
        with os.fdopen(self.open(name, os.O_RDONLY | _NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(errno.EINVAL, "not a regular file")
            return file.read(limit)

    def make_directory(self, name: str) -> None:
        """Create a subdirectory."""
        os.mkdir(self._path_of(name), dir_fd=self._descriptor)

    def rename(self, name: str, new_name: str) -> None:
        """Rename a file or subdirectory."""
        old_path, new_path = self._path_of(name), self._path_of(new_name)
        os.rename(old_path, new_path, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def remove(self, name: str) -> None:
        """Remove a file; a symbolic link itself is removed, not its target."""
        os.unlink(self._path_of(name), dir_fd=self._descriptor)

    def remove_directory(self, name: str) -> None:
        """Remove an empty subdirectory."""
        os.rmdir(self._path_of(name), dir_fd=self._descriptor)

    def add_file(self, name: str, data: bytes) -> None:
        """Atomically create a file under an unused name.

        Raises FileExistsError if the name exists, even as a broken link.
        """
        with self._temp_file(data) as temp_name:
            self._link(temp_name, name)

    def _link(self, temp_name: str, name: str) -> None:
        """Link a file to an unused name; where hard links are not supported, reserve the name first."""
        temp_path, path = self._path_of(temp_name), self._path_of(name)
        try:
            os.link(temp_path, path, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor, follow_symlinks=False)
        except FileExistsError:
            raise
        except (OSError, NotImplementedError):
            os.close(self.open(name, _CREATE_FLAGS))
            os.replace(temp_path, path, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def _copy_metadata(self, name: str, descriptor: int, template: os.stat_result) -> None:
        """Copy mode and owner of another file; the owner only where the system permits it."""
        status = os.fstat(descriptor)
        if (status.st_uid, status.st_gid) != (template.st_uid, template.st_gid) and hasattr(os, "fchown"):
            with suppress(OSError):
                os.fchown(descriptor, template.st_uid, template.st_gid)
        if hasattr(os, "fchmod"):
            os.fchmod(descriptor, stat.S_IMODE(template.st_mode))
        else:
            os.chmod(self._path_of(name), stat.S_IMODE(template.st_mode))
