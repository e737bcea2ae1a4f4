"""The paths of a call, read in one way by the guard that judges them and the tool that opens them.

>>> told("~/notes", "/srv", "/home/ada")
'/home/ada/notes'
>>> told_folder("../x/*.py", "src", "/srv", "/home/ada")
('/srv/x', '/*.py')
"""

import os
from typing import Final

__all__ = ["told", "told_folder"]

_MAGIC: Final = frozenset("*?[{\\")


def told(given: str, cwd: str, home: str) -> str:
    """Return the absolute path that a call means; links are followed only where `..` needs it."""
    if home and (given == "~" or given.startswith("~/")):
        given = home + given[1:]
    path = os.path.join(cwd, given)
    if os.pardir not in path.split(os.sep):
        return os.path.normpath(path)
    # Only the file system knows where `..` leads behind a link.
    folder, name = os.path.split(path)
    if name in {"", os.curdir, os.pardir}:
        return os.path.realpath(path)
    return os.path.join(os.path.realpath(folder), name)


def told_folder(pattern: str, path: str | None, cwd: str, home: str) -> tuple[str, str]:
    """Return the folder that a pattern of names is looked for in, and what is left of it there."""
    folder = told(path or ".", cwd, home)
    pattern = pattern.removeprefix("./")
    if not pattern.startswith(("/", "~/")) and ".." not in pattern.split("/"):
        return folder, pattern
    parts = pattern.split("/")
    plain = next((n for n, part in enumerate(parts) if _MAGIC & set(part)), len(parts) - 1)
    plain = min(plain, len(parts) - 1)
    above = "/".join(parts[:plain]) or "/" * pattern.startswith("/") or "."
    return told(above, folder, home), "/" + "/".join(parts[plain:])
