"""Writes output files and directories; refuses links and paths inside session directories.

with OutputFolder("/home/ada/steps", ("steps.jsonl", "metadata.json"), protected=roots) as output:
    output.write("7c1f…", {"steps.jsonl": b"…", "metadata.json": b"…"})

A new subdirectory appears complete. In an existing one, files are replaced one by one in the given order, so that the
last file can describe the others. Temporary directories of killed processes are removed by the next process.
"""

import os
import re
import stat
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Final, Literal, Self, TypeAlias
from zlib import crc32

from steno.errors import BadRequest, Unwritable
from steno.store.atomic import (
    RANDOM_TEMP_NAME_PATTERN,
    TEMP_NAME_PATTERN,
    make_private_folder,
    temp_name,
    unwritable_error,
    writing,
)
from steno.store.dirfd import Directory
from steno.store.environment import steno_home
from steno.store.file_lock import FileLock, lock_descriptor


def write_output_file(path: str, data: bytes, *, force: bool = False, protected: Sequence[str] = ()) -> str:
    """Atomically write bytes to a path; return its real path.

    An existing path is replaced only with `force`, and only if it is a regular file. Nothing is written below the
    directories of `protected`, even through links. Raises BadRequest if the path is not a valid file path, or
    Unwritable if it exists, is not a regular file, is below a protected directory, or cannot be written.
    """
    absolute_path = os.path.abspath(path)
    folder, name = os.path.realpath(os.path.dirname(absolute_path)), os.path.basename(absolute_path)
    if not name or "\0" in path or path.endswith((os.sep, f"{os.sep}.")):
        raise BadRequest(f"{path!r} is not a file path")
    for protected_folder in protected:
        if is_inside_folder(folder, os.path.realpath(protected_folder)):
            raise Unwritable(f"{path} is inside a session directory", hint="Choose another directory.")
    try:
        with Directory(folder) as directory:
            _write_into(directory, name, path, data, force=force)
    except OSError as error:
        if isinstance(error, Unwritable):
            raise
        raise unwritable_error(path, error) from error
    return os.path.join(folder, name)


def is_inside_folder(folder: str, parent: str) -> bool:
    """Return whether a directory is inside another, comparing inodes because some disks ignore case."""
    if folder == parent or folder.startswith(parent.rstrip(os.sep) + os.sep):
        return True
    try:
        parent_status = os.stat(parent)
        while not os.path.samestat(os.stat(folder), parent_status):
            if folder == os.path.dirname(folder):
                return False
            folder = os.path.dirname(folder)
    except OSError:
        return False
    return True


def _write_into(directory: Directory, name: str, path: str, data: bytes, *, force: bool) -> None:
    existing: os.stat_result | None = None
    with suppress(FileNotFoundError):
        existing = directory.status(name)
    _refuse_existing(existing, path, force=force)
    if existing is None:
        try:
            directory.add_file(name, data)
        except FileExistsError as error:
            raise Unwritable(f"{path} was created by another process") from error
        return

    def refuse_if_exchanged() -> None:
        current = directory.status(name)
        if (current.st_dev, current.st_ino, current.st_mode) != (existing.st_dev, existing.st_ino, existing.st_mode):
            raise Unwritable(f"{path} was replaced by another process")

    directory.replace_file(name, data, existing, before_replace=refuse_if_exchanged)


def _refuse_existing(existing: os.stat_result | None, path: str, *, force: bool) -> None:
    if existing is None:
        return
    if stat.S_ISLNK(existing.st_mode):
        raise Unwritable(f"{path} is a symbolic link", hint="Use the path of the file that it points to.")
    if not stat.S_ISREG(existing.st_mode):
        raise Unwritable(f"{path} is not a regular file")
    if not force:
        raise Unwritable(f"{path} already exists", hint="Add --force to overwrite it.")


OutputEntryKind: TypeAlias = Literal["missing", "empty", "folder", "other"]
"""Kind of an entry in the output directory; a link is `other`."""
_MAX_FILE_SIZE: Final = 1 << 40


class OutputFolder:
    """An output directory, held open and locked inside a `with` block. `files` lists file names in writing order."""

    def __init__(self, path: str, files: Sequence[str], *, protected: Sequence[str] = ()) -> None:
        """Take the path of the directory, which is created if it is missing.

        Raises BadRequest if it is below a directory of `protected`, which contains sessions.
        """
        self.path = path
        self.real_path = os.path.realpath(path)
        self._files = tuple(files)
        for root in protected:
            if is_inside_folder(self.real_path, os.path.realpath(root)):
                raise BadRequest(
                    f"{path} is inside the session directory {root}", hint="Choose a directory outside it."
                )
        self._directory = Directory(self.real_path, make=True)
        self._exit_stack = ExitStack()

    def __enter__(self) -> Self:
        """Create the directory if missing, wait for other processes to finish, and remove temporary files.

        Raises Unwritable if it cannot be created or is not a directory.
        """
        with ExitStack() as stack:
            try:
                stack.enter_context(self._directory)
                self._lock(stack)
                self._remove_temp_folders()
            except OSError as error:
                raise unwritable_error(self.path, error) from error
            self._exit_stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exit_stack.close()

    def _lock(self, stack: ExitStack) -> None:
        """Lock the directory itself to avoid a lock file in it; fall back to a file in steno's home directory."""
        if hasattr(os, "O_DIRECTORY"):
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(self.real_path, flags)
            stack.callback(os.close, descriptor)
            with suppress(OSError):
                lock_descriptor(descriptor, wait=True)
                return
        folder = os.path.join(steno_home(), "steps")
        make_private_folder(folder)
        name = f"{crc32(os.fsencode(self.real_path)):08x}.lock"
        stack.enter_context(FileLock(os.path.join(folder, name)))

    # Reading

    def names(self) -> list[str]:
        """Return the sorted names in the directory, without temporary files.

        Raises Unwritable if it cannot be listed.
        """
        with writing(self.path):
            names = self._directory.names()
        return [name for name in names if not re.fullmatch(TEMP_NAME_PATTERN, name)]

    def kind(self, name: str) -> OutputEntryKind:
        """Return the kind of an entry in the directory."""
        try:
            if not stat.S_ISDIR(self._directory.status(name).st_mode):
                return "other"
            with self._directory.open_directory(name) as directory:
                return "folder" if directory.names() else "empty"
        except FileNotFoundError:
            return "missing"
        except OSError:
            return "other"

    def read(self, name: str, file: str, limit: int = _MAX_FILE_SIZE) -> bytes | None:
        """Return the content of a file in a subdirectory; None if it cannot be read."""
        try:
            with self._directory.open_directory(name) as directory:
                return directory.read(file, limit)
        except OSError:
            return None

    # Writing

    def write(self, name: str, contents: Mapping[str, bytes]) -> None:
        """Write a subdirectory; in an existing one, only the files that differ.

        Raises Unwritable if writing fails; no partial file remains.
        """
        with writing(os.path.join(self.path, name)):
            kind = self.kind(name)
            if kind == "folder":
                self._replace_files(name, contents)
            else:
                self._create_folder(name, contents, empty=kind == "empty")

    def _create_folder(self, name: str, contents: Mapping[str, bytes], *, empty: bool) -> None:
        temporary = temp_name(name)
        self._directory.make_directory(temporary)
        try:
            with self._directory.open_directory(temporary) as directory:
                for file in self._files:
                    directory.replace_file(file, contents[file], None)
                directory.sync()
            if empty:
                self._directory.remove_directory(name)
            self._directory.rename(temporary, name)
        except BaseException:
            self._remove_temp_folder(temporary)
            raise
        self._directory.sync()

    def _replace_files(self, name: str, contents: Mapping[str, bytes]) -> None:
        with self._directory.open_directory(name) as directory:
            _remove_temp_files(directory)
            for file in self._files:
                data = contents[file]
                try:
                    if directory.read(file, len(data) + 1) == data:
                        continue
                except OSError:
                    # Missing, or not a regular file: it is replaced.
                    template = None
                else:
                    template = directory.status(file)
                directory.replace_file(file, data, template)
                directory.sync()

    def remove_temp_files(self, name: str) -> None:
        """Remove temporary files of killed processes from a subdirectory."""
        with suppress(OSError), self._directory.open_directory(name) as directory:
            _remove_temp_files(directory)

    def remove(self, name: str) -> bool:
        """Remove a subdirectory; return False if it stays because it contains other files.

        Raises Unwritable if it cannot be removed.
        """
        with writing(os.path.join(self.path, name)):
            with self._directory.open_directory(name) as directory:
                _remove_temp_files(directory)
                if set(directory.names()) - set(self._files):
                    self._remove_files(directory)
                    return False
            temporary = temp_name(name)
            self._directory.rename(name, temporary)
            self._directory.sync()
        self._remove_temp_folder(temporary)
        return True

    def _remove_files(self, directory: Directory) -> None:
        """Remove steno's files in order: the directory counts as steno's while the last one exists."""
        for file in self._files:
            with suppress(FileNotFoundError):
                directory.remove(file)
        directory.sync()

    def _remove_temp_folders(self) -> None:
        for name in self._directory.names():
            if re.fullmatch(TEMP_NAME_PATTERN, name):
                self._remove_temp_folder(name)

    def _remove_temp_folder(self, name: str) -> None:
        """Remove a temporary directory, unless it contains files that steno did not write."""
        with suppress(OSError):
            with self._directory.open_directory(name) as directory:
                _remove_temp_files(directory)
                self._remove_files(directory)
            self._directory.remove_directory(name)


def _remove_temp_files(directory: Directory) -> None:
    for name in directory.names():
        if re.fullmatch(RANDOM_TEMP_NAME_PATTERN, name):
            with suppress(FileNotFoundError):
                directory.remove(name)
