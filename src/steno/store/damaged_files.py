"""Sets damaged state files aside: renames them, keeps the newest few, and reports each in one line.

Imports only the standard library, because the command line registers a listener at every start.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

_DAMAGED_SUFFIX: Final = ".damaged-"
_MAX_VERSIONS: Final = 3
"""Damaged versions of one file that are kept."""
_listeners: list[Callable[[str], None]] = []


def add_damage_listener(listener: Callable[[str], None]) -> None:
    """Have a function called with one line about each file that is set aside."""
    if listener not in _listeners:
        _listeners.append(listener)


def move_aside(path: str, description: str, *, only_folder: bool = False) -> str:
    """Rename a damaged file or folder to `NAME.damaged-TIME`; return the new path.

    Only for what can be made again. `description` names it in the message. Older ones are removed. With `only_folder` only a folder
    is renamed, also where another process puts a file in its place. Raises OSError if it cannot be renamed.
    """
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    target = f"{path}{_DAMAGED_SUFFIX}{stamp}"
    number = 1
    while os.path.lexists(target):
        number += 1
        target = f"{path}{_DAMAGED_SUFFIX}{stamp}-{number}"
    # A name that ends in a separator is that of a folder, or an error.
    os.replace(os.path.join(path, "") if only_folder else path, target)
    _prune_versions(path, os.path.basename(target))
    for listener in _listeners:
        listener(f"{description} was damaged and is rebuilt; the old one is {target}")
    return target


def _prune_versions(path: str, newest: str) -> None:
    """Remove the oldest of what was set aside; never the newest, whatever its name sorts as."""
    from shutil import rmtree

    folder, name = os.path.split(path)
    with suppress(OSError):
        versions = sorted(version for version in os.listdir(folder) if version.startswith(name + _DAMAGED_SUFFIX))
        for each in [each for each in versions if each != newest][: 1 - _MAX_VERSIONS]:
            version_path = os.path.join(folder, each)
            if os.path.isdir(version_path) and not os.path.islink(version_path):
                rmtree(version_path, ignore_errors=True)
            else:
                os.unlink(version_path)
