"""Paths of files: which can be told, where they lie, what is in a folder."""

import os

__all__ = ["entries_in", "is_in", "is_speakable", "missing_folders"]


def entries_in(folder: str) -> list[os.DirEntry[str]]:
    """Return what is in a folder; nothing where it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def is_in(path: str, folder: str, *, itself: bool = False) -> bool:
    """Whether a path lies in a folder, at any depth, or is the folder `itself`."""
    return path.startswith(folder.rstrip(os.sep) + os.sep) or (itself and path == folder)


def is_speakable(path: str) -> bool:
    """Whether a path can be written down in a session."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def missing_folders(path: str) -> list[str]:
    """Return the folders above a path that are not there, the nearest first."""
    missing: list[str] = []
    folder = os.path.dirname(path)
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    return missing
