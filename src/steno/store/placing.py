"""Puts a file where somebody said, and nowhere else: no link, device or session is written over."""

import os
import stat
from collections.abc import Sequence
from contextlib import suppress

from steno.errors import BadRequest, Unwritable
from steno.store.beneath import Folder
from steno.store.scratch import unwritable

__all__ = ["is_below", "place"]


def place(path: str, data: bytes, *, force: bool = False, never: Sequence[str] = ()) -> str:
    """Put bytes at a path, whole or not at all; return where that really is.

    What is there already is replaced only with `force`, and only if it is a plain file. Below the
    folders of `never` nothing is written, whatever links lead there.

    Raises:
        BadRequest: the path names no file.
        Unwritable: it is there already, it is no plain file, it is where sessions are kept, or it
            cannot be written.
    """
    whole = os.path.abspath(path)
    folder, name = os.path.realpath(os.path.dirname(whole)), os.path.basename(whole)
    if not name or "\0" in path or path.endswith((os.sep, f"{os.sep}.")):
        raise BadRequest(f"{path!r} names no file")
    for each in never:
        if is_below(folder, os.path.realpath(each)):
            raise Unwritable(f"{path} is where sessions are kept", hint="name another folder")
    try:
        with Folder(folder) as held:
            _put(held, name, path, data, force=force)
    except OSError as error:
        if isinstance(error, Unwritable):
            raise
        raise unwritable(path, error) from error
    return os.path.join(folder, name)


def is_below(folder: str, above: str) -> bool:
    """Say whether a folder lies in another, under whatever name: some disks take `A` for `a`."""
    if folder == above or folder.startswith(above.rstrip(os.sep) + os.sep):
        return True
    try:
        wanted = os.stat(above)
        while not os.path.samestat(os.stat(folder), wanted):
            if folder == os.path.dirname(folder):
                return False
            folder = os.path.dirname(folder)
    except OSError:
        return False
    return True


def _put(held: Folder, name: str, path: str, data: bytes, *, force: bool) -> None:
    there: os.stat_result | None = None
    with suppress(FileNotFoundError):
        there = held.status(name)
    _refuse(there, path, force=force)
    if there is None:
        try:
            held.add(name, data)
        except FileExistsError as error:
            raise Unwritable(f"{path} came into being meanwhile") from error
        return

    def still() -> None:
        now = held.status(name)
        if (now.st_dev, now.st_ino, now.st_mode) != (there.st_dev, there.st_ino, there.st_mode):
            raise Unwritable(f"{path} was exchanged meanwhile")

    held.put(name, data, there, before=still)


def _refuse(there: os.stat_result | None, path: str, *, force: bool) -> None:
    if there is None:
        return
    if stat.S_ISLNK(there.st_mode):
        raise Unwritable(f"{path} is a link", hint="name the file itself")
    if not stat.S_ISREG(there.st_mode):
        raise Unwritable(f"{path} is no plain file")
    if not force:
        raise Unwritable(f"{path} is already there", hint="--force writes over it")
