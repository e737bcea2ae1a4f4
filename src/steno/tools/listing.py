"""The files of a folder: all that git does not ignore, when they changed, how to name them.

`walk` stands in for ripgrep's own listing where there is no ripgrep.
"""

import os
import stat
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from steno.tools.context import ToolContext

__all__ = ["relative", "walk", "when_changed"]

_MOST_RULES: Final = 1 << 20


class _Rules(msgspec.Struct, frozen=True):
    """What the files named `.gitignore` and `.ignore` in and above a folder leave out."""

    levels: tuple[tuple[str, Any], ...] = ()
    """Folders and what their files say of the paths in them, outermost first."""
    in_repository: bool = False

    def leaves_out(self, path: str, *, is_folder: bool) -> bool:
        for base, spec in reversed(self.levels):
            inside = path[len(base) :].lstrip("/") + "/" * is_folder
            said = spec.check_file(inside).include
            if said is not None:
                return said
        return False

    def inside(self, folder: str) -> "_Rules":
        """Return the rules for what is in a folder."""
        is_top = os.path.lexists(os.path.join(folder, ".git"))
        known = self.in_repository or is_top
        names = [".git/info/exclude"] if is_top else []
        names += [".gitignore", ".ignore"] if known else [".ignore"]
        specs = [_spec(os.path.join(folder, name)) for name in names]
        # What lies above a repository does not count in it.
        levels = () if is_top else self.levels
        return _Rules(levels + tuple((folder, spec) for spec in specs if spec is not None), known)


def _spec(path: str) -> Any:
    from pathspec import GitIgnoreSpec

    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None
        with open(path, "rb") as file:
            lines = file.read(_MOST_RULES).decode("utf-8", "replace").splitlines()
    except OSError:
        return None
    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError:
        return None


def walk(folder: str) -> Iterator[str]:
    """Give the paths of all files in a folder that git does not ignore, as seen from there."""
    rules = _Rules()
    above = [folder]
    while above[-1] != os.path.dirname(above[-1]):
        above.append(os.path.dirname(above[-1]))
    for parent in reversed(above[1:]):
        rules = rules.inside(parent)
    if rules.leaves_out(folder, is_folder=True):
        # It was asked for by its name, so that what is said of it above does not count.
        rules = _Rules()
    stack = [(folder, rules)]
    while stack:
        path, rules = stack.pop()
        rules = rules.inside(path)
        for entry in _entries(path):
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.name == ".git" or rules.leaves_out(entry.path, is_folder=is_folder):
                continue
            if is_folder:
                stack.append((entry.path, rules))
            elif entry.is_file(follow_symlinks=False):
                yield entry.path[len(folder.rstrip(os.sep)) + 1 :]


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def when_changed(path: str) -> int:
    """Return when a file was changed, in ns; 0 when that cannot be said."""
    try:
        return os.lstat(path).st_mtime_ns
    except OSError:
        return 0


def relative(path: str, context: ToolContext) -> str:
    """Return a path as seen from the working directory, if it is in there."""
    folder = context.cwd.rstrip(os.sep) + os.sep
    return path.removeprefix(folder) or path
