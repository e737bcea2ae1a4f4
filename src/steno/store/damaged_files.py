"""Moves damaged state files aside: renames them, keeps the newest few, and reports each in one line.

Imports only the standard library, because the command line registers a listener at every start.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

_DAMAGED_SUFFIX: Final = ".damaged-"
_MAX_VERSIONS: Final = 3
"""Number of damaged versions kept per file."""
_listeners: list[Callable[[str], None]] = []


def add_damage_listener(listener: Callable[[str], None]) -> None:
    """Register a function that is called with one line of text for each moved file."""
    if listener not in _listeners:
        _listeners.append(listener)


def move_aside(path: str, description: str, *, only_folder: bool = False) -> str:
    """Rename a damaged file or directory to `NAME.damaged-TIME`; return the new path.

    Use it only for files that can be rebuilt. `description` names the file in the message. Older damaged versions are
    removed. With `only_folder` a file is never renamed, even if another process creates it meanwhile. Raises OSError if
    the rename fails.
    """
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    target = f"{path}{_DAMAGED_SUFFIX}{stamp}"
    number = 1
    while os.path.lexists(target):
        number += 1
        target = f"{path}{_DAMAGED_SUFFIX}{stamp}-{number}"
    # With a trailing separator the rename succeeds only for a directory.
    os.replace(os.path.join(path, "") if only_folder else path, target)
    _prune_versions(path, os.path.basename(target))
    for listener in _listeners:
        listener(f"{description} was damaged and is rebuilt; the damaged version was moved to {target}")
    return target


def _prune_versions(path: str, newest: str) -> None:
    """Remove the oldest damaged versions; never the newest, however its name sorts."""
    from shutil import rmtree

    folder, name = os.path.split(path)
    with suppress(OSError):
        versions = sorted(version for version in os.listdir(folder) if version.startswith(name + _DAMAGED_SUFFIX))
        for version in [version for version in versions if version != newest][: 1 - _MAX_VERSIONS]:
            version_path = os.path.join(folder, version)
            if os.path.isdir(version_path) and not os.path.islink(version_path):
                rmtree(version_path, ignore_errors=True)
            else:
                os.unlink(version_path)
