"""A folder whose sub-folders steno writes, replaces and removes; one process at a time.

with OutputFolder("/home/ada/steps", ("steps.jsonl", "metadata.json"), never=roots) as output:
    output.write("7c1f…", {"steps.jsonl": b"…", "metadata.json": b"…"})

A new sub-folder appears whole. In one that is there, files are replaced one by one in the order that
was named, so that the last one can say what the others have to be. No link is followed, whatever
is put into the folder meanwhile, and what a killed process leaves behind is removed by the next.
"""

import os
import re
import stat
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Final, Literal, Self, TypeAlias
from zlib import crc32

from steno.errors import BadRequest
from steno.store.beneath import Folder
from steno.store.lock import Lock, take
from steno.store.places import steno_home
from steno.store.placing import is_below
from steno.store.scratch import unwritable

__all__ = ["EntryKind", "OutputFolder"]

EntryKind: TypeAlias = Literal["missing", "empty", "folder", "other"]
"""What a name in the folder is; a link is `other`."""
_LARGEST: Final = 1 << 40
_OWN_FOLDER: Final = re.compile(r"(?s)\..+\.[0-9]{1,10}-[0-9a-f]{12}\.steno-tmp")
_OWN_FILE: Final = re.compile(r"\.[0-9a-f]{16}\.steno-tmp")


class OutputFolder:
    """Held open and locked inside a `with`. `files` are the names of the files, in writing order."""

    def __init__(self, path: str, files: Sequence[str], *, never: Sequence[str] = ()) -> None:
        """Take the folder, which is made if it is missing.

        Raises:
            BadRequest: it lies below a folder of `never`, where sessions are kept.
        """
        self.path = path
        self.real_path = os.path.realpath(path)
        self._files = tuple(files)
        for root in never:
            if is_below(self.real_path, os.path.realpath(root)):
                raise BadRequest(
                    f"{path} is inside {root}, where sessions are kept",
                    hint="name a folder outside of it",
                )
        self._held = Folder(self.real_path, make=True)
        self._open = ExitStack()

    def __enter__(self) -> Self:
        """Make it if it is missing, wait for another process that writes to it, and tidy up.

        Raises:
            Unwritable: it cannot be made, or is not a directory.
        """
        with ExitStack() as stack:
            try:
                stack.enter_context(self._held)
                self._lock(stack)
                self._sweep()
            except OSError as error:
                raise unwritable(self.path, error) from error
            self._open = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _lock(self, stack: ExitStack) -> None:
        """Lock the folder itself, so that it contains no lock file; elsewhere where that fails."""
        if hasattr(os, "O_DIRECTORY"):
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(self.real_path, flags)
            stack.callback(os.close, descriptor)
            with suppress(OSError):
                take(descriptor, wait=True)
                return
        from steno.store.disk import make_folder

        folder = os.path.join(steno_home(), "steps")
        make_folder(folder)
        name = f"{crc32(os.fsencode(self.real_path)):08x}.lock"
        stack.enter_context(Lock(os.path.join(folder, name)))

    # Reading

    def names(self) -> list[str]:
        """Return the names of what is in it, sorted; what killed processes left is not among them.

        Raises:
            Unwritable: it cannot be listed.
        """
        try:
            names = self._held.names()
        except OSError as error:
            raise unwritable(self.path, error) from error
        return [name for name in names if not _OWN_FOLDER.fullmatch(name)]

    def kind(self, name: str) -> EntryKind:
        """Return what a name in it is."""
        try:
            if not stat.S_ISDIR(self._held.status(name).st_mode):
                return "other"
            with self._held.below(name) as inner:
                return "folder" if inner.names() else "empty"
        except FileNotFoundError:
            return "missing"
        except OSError:
            return "other"

    def read(self, name: str, file: str, limit: int = _LARGEST) -> bytes | None:
        """Return a file of a sub-folder; None where there is none that can be read."""
        try:
            with self._held.below(name) as inner:
                return inner.read(file, limit)
        except OSError:
            return None

    # Writing

    def write(self, name: str, contents: Mapping[str, bytes]) -> None:
        """Write a sub-folder; of one that is there only the files that differ.

        Raises:
            Unwritable: it cannot be written; nothing is half there.
        """
        try:
            kind = self.kind(name)
            if kind == "folder":
                self._replace(name, contents)
            else:
                self._make(name, contents, empty=kind == "empty")
        except OSError as error:
            raise unwritable(os.path.join(self.path, name), error) from error

    def _make(self, name: str, contents: Mapping[str, bytes], *, empty: bool) -> None:
        temporary = _temporary_name(name)
        self._held.make(temporary)
        try:
            with self._held.below(temporary) as inner:
                for file in self._files:
                    inner.put(file, contents[file], None)
                inner.flush()
            if empty:
                self._held.remove_folder(name)
            self._held.rename(temporary, name)
        except BaseException:
            self._discard(temporary)
            raise
        self._held.flush()

    def _replace(self, name: str, contents: Mapping[str, bytes]) -> None:
        with self._held.below(name) as inner:
            _sweep_files(inner)
            for file in self._files:
                data = contents[file]
                try:
                    if inner.read(file, len(data) + 1) == data:
                        continue
                except OSError:
                    # Missing, or something else of that name: it is replaced.
                    before = None
                else:
                    before = inner.status(file)
                inner.put(file, data, before)
                inner.flush()

    def tidy(self, name: str) -> None:
        """Remove from a sub-folder what a killed process left in it."""
        with suppress(OSError), self._held.below(name) as inner:
            _sweep_files(inner)

    def remove(self, name: str) -> bool:
        """Remove a sub-folder; False where it stays because other files are in it.

        Raises:
            Unwritable: it cannot be removed.
        """
        try:
            with self._held.below(name) as inner:
                _sweep_files(inner)
                if set(inner.names()) - set(self._files):
                    self._empty(inner)
                    return False
            temporary = _temporary_name(name)
            self._held.rename(name, temporary)
            self._held.flush()
        except OSError as error:
            raise unwritable(os.path.join(self.path, name), error) from error
        self._discard(temporary)
        return True

    def _empty(self, inner: Folder) -> None:
        """Remove our files in their order: as long as the last one is there, the folder is ours."""
        for file in self._files:
            with suppress(FileNotFoundError):
                inner.remove(file)
        inner.flush()

    def _sweep(self) -> None:
        for name in self._held.names():
            if _OWN_FOLDER.fullmatch(name):
                self._discard(name)

    def _discard(self, name: str) -> None:
        """Remove a temporary folder; what is in it and not ours stays, and so does the folder."""
        with suppress(OSError):
            with self._held.below(name) as inner:
                _sweep_files(inner)
                self._empty(inner)
            self._held.remove_folder(name)


def _temporary_name(name: str) -> str:
    return f".{name}.{os.getpid()}-{os.urandom(6).hex()}.steno-tmp"


def _sweep_files(inner: Folder) -> None:
    for name in inner.names():
        if _OWN_FILE.fullmatch(name):
            with suppress(FileNotFoundError):
                inner.remove(name)
