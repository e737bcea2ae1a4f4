"""The policy of a confined program."""

import os

import msgspec

from steno.errors import StenoError


class ConfinementError(StenoError):
    """The program could not be confined, so it was not run."""


class Confinement(msgspec.Struct, frozen=True, kw_only=True):
    """What a confined program may read and write; everything else is denied."""

    cwd: str
    readable: tuple[str, ...]
    """Working folders: absolute, as the user wrote them, symbolic links allowed."""
    scratch: str
    """An existing private folder: writable, and the value of `TMPDIR`."""
    writable: tuple[str, ...] = ()
    """Further folders that may be written, and read."""
    read_only: tuple[str, ...] = ()
    """Paths inside `writable` that may not be changed, nor created if they do not exist."""
    denied: tuple[str, ...] = ()
    """Files and folders that may not be read, listed or written."""
    programs: tuple[str, ...] = ()
    """Folders whose programs may be run."""
    list_denied_names: bool = False
    """Allow listing the names (not the contents) inside denied folders under Landlock alone.

    Landlock grants rights over whole trees: without this, a folder that contains a denied folder
    cannot be listed either. It has no effect where namespaces are used.
    """

    def check(self) -> None:
        """Reject paths that are not absolute or that no file can have.

        Raises:
            ConfinementError: a path is invalid, or `cwd` or `scratch` is not a directory.
        """
        paths = (self.cwd, self.scratch, *self.readable, *self.writable)
        for path in (*paths, *self.read_only, *self.denied, *self.programs):
            if not os.path.isabs(path) or "\0" in path:
                raise ConfinementError(f"Not an absolute path: {path!r}")
        for path in (self.cwd, self.scratch):
            if not os.path.isdir(path):
                raise ConfinementError(f"Not a directory: {path!r}")
