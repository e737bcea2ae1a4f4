"""Sets damaged state files aside: renamed, kept a few at a time, and reported in one line."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

__all__ = ["on_damage", "set_aside"]

_MARK: Final = ".damaged-"
_KEPT: Final = 3
"""Damaged versions of one file that are kept."""
_listeners: list[Callable[[str], None]] = []


def on_damage(listener: Callable[[str], None]) -> None:
    """Have a function called with one line about each file that is set aside."""
    if listener not in _listeners:
        _listeners.append(listener)


def set_aside(path: str, what: str, *, folder: bool = False) -> str:
    """Rename a damaged file or folder to `NAME.damaged-TIME`; return the new path.

    Only for what can be made again. `what` names it in the message. Older ones are removed.
    With `folder` only a folder is renamed, also where another process puts a file in its place.

    Raises:
        OSError: it cannot be renamed.
    """
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    target = f"{path}{_MARK}{stamp}"
    number = 1
    while os.path.lexists(target):
        number += 1
        target = f"{path}{_MARK}{stamp}-{number}"
    # A name that ends in a separator is that of a folder, or an error.
    os.replace(os.path.join(path, "") if folder else path, target)
    _prune(path, os.path.basename(target))
    for listener in _listeners:
        listener(f"{what} was damaged and is rebuilt; the old one is {target}")
    return target


def _prune(path: str, newest: str) -> None:
    """Remove the oldest of what was set aside; never the newest, whatever its name sorts as."""
    from shutil import rmtree

    folder, name = os.path.split(path)
    with suppress(OSError):
        old = sorted(each for each in os.listdir(folder) if each.startswith(name + _MARK))
        for each in [each for each in old if each != newest][: 1 - _KEPT]:
            gone = os.path.join(folder, each)
            if os.path.isdir(gone) and not os.path.islink(gone):
                rmtree(gone, ignore_errors=True)
            else:
                os.unlink(gone)
