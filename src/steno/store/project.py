"""A project's own folder, as far as the explorer looks into it: a few files by their names.

Where the folder lies is what some session says, so nothing is taken on trust: only files of known
names are opened, and no link is followed to a place outside.
"""

import os
import stat
from typing import Final

import msgspec

from steno.store.found import listed

__all__ = ["ProjectFolder", "ProjectText"]

_FLAGS: Final = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_BINARY", 0)
)
_MOST: Final = 256 << 10
_FILES: Final = 200
_DEEPEST: Final = 3


class ProjectText(msgspec.Struct, frozen=True):
    """A text file of a project."""

    name: str
    """Its path from the project's folder on."""
    text: str
    size: int

    @property
    def is_cut(self) -> bool:
        """Whether the file is longer than what was read of it."""
        return self.size > _MOST


class ProjectFolder:
    """The folder that sessions ran in, if it is there. `refused` names what led out of it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.refused: list[str] = []
        self._real = _real(path)

    @property
    def is_there(self) -> bool:
        """Whether it exists here and may be looked into."""
        return bool(self._real)

    def text(self, name: str) -> ProjectText | None:
        """Return a text file, its end left out if it is huge; None if there is none."""
        read = self.read(name)
        if read is None:
            return None
        data, size = read
        return ProjectText(name, data.decode("utf-8", "replace"), size)

    def read(self, name: str) -> tuple[bytes, int] | None:
        """Return the first bytes of a file and how many it has."""
        path = self._inside(name)
        if path is None:
            return None
        try:
            handle = os.open(path, _FLAGS)
        except (OSError, ValueError):
            return None
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                return None
            return os.read(handle, _MOST), status.st_size
        except OSError:
            return None
        finally:
            os.close(handle)

    def names(self, folder: str, ending: str) -> list[str]:
        """Return the files below one of its folders by their names' end, at most 200 of them."""
        found: list[str] = []
        stack = [(folder, 0)]
        while stack and len(found) < _FILES:
            name, depth = stack.pop()
            path = self._inside(name)
            if path is None or not os.path.isdir(path):
                continue
            for entry in listed(path, []):
                below = f"{name}/{entry.name}"
                if entry.name.endswith(ending):
                    found.append(below)
                elif depth < _DEEPEST and entry.is_dir(follow_symlinks=False):
                    stack.append((below, depth + 1))
        return sorted(found)[:_FILES]

    def _inside(self, name: str) -> str | None:
        """Return where a name of the project really leads; None, and a note, if that is outside."""
        if not self._real:
            return None
        try:
            real = os.path.realpath(os.path.join(self._real, *name.split("/")))
        except (OSError, ValueError):
            return None
        if real.startswith(self._real + os.sep):
            return real
        if name not in self.refused:
            self.refused.append(name)
        return None


def _real(path: str) -> str:
    """Return where the folder really lies; nothing for what is none, is the root, or is remote."""
    if not os.path.isabs(path) or path.startswith(("\\\\", "//")) or "\0" in path:
        return ""
    try:
        real = os.path.realpath(path)
        if not os.path.isdir(real) or os.path.dirname(real) == real:
            return ""
    except (OSError, ValueError):
        return ""
    return real if os.access(real, os.R_OK | os.X_OK) else ""
