"""Landlock, the kernel's own way for a program to give up rights, through its system calls."""

import ctypes
import errno
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

from steno.errors import StenoError

__all__ = ["CannotConfine", "abi", "restrict"]

_CREATE: Final = 444
_ADD: Final = 445
_RESTRICT: Final = 446
_VERSION: Final = 1
_BENEATH: Final = 1
_NO_NEW_PRIVILEGES: Final = 38
_READS: Final = 0b1101
"""Execute, read files, read folders."""
_READ_FOLDER: Final = 0b1000
_WRITE_FILE: Final = 0b10
_MAKE_DEVICES: Final = 1 << 6 | 1 << 11
_IOCTL: Final = 1 << 15
_TCP: Final = 0b11
_SCOPES: Final = 0b11
# How many rights over files each version of the interface knows.
_RIGHTS: Final = {1: 13, 2: 14, 3: 15, 4: 15}
_ALL_RIGHTS: Final = 16
_FILE_RIGHTS: Final = 0b111 | 1 << 14 | _IOCTL
_WITH_NETWORK: Final = 4
_WITH_SCOPES: Final = 6
_DROP: Final = 24
_POWERS: Final = 64
# Over files alone: changing owners, and writing what belongs to others.
_FILE_POWERS: Final = frozenset({0, 1, 3, 4, 5, 6, 7})
# Not the whole of /dev: for an administrator it has the disks.
_DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts")


class CannotConfine(StenoError):
    """The program could not give up its rights."""


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("files", ctypes.c_uint64),
        ("network", ctypes.c_uint64),
        ("scopes", ctypes.c_uint64),
    )


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def abi() -> int:
    """Return the version of the interface that this kernel has; 0 when it has none."""
    if sys.platform != "linux":
        return 0
    return max(0, _call(_CREATE, None, 0, _VERSION))


def restrict(
    writable: Iterable[str],
    *,
    network: bool,
    hidden: Iterable[str] = (),
    shown: Iterable[str] = (),
) -> None:
    """Take from this program the right to write anywhere but below some folders.

    Args:
        writable: Where it may write; it may read there as well.
        network: Whether it may connect, and be connected to, as before.
        hidden: What it may not read; names of files in there can still be listed.
        shown: What it may read of that all the same.

    Raises:
        CannotConfine: the kernel does not let it; nothing is promised then.
    """
    version = abi()
    if version < 1:
        raise CannotConfine("this kernel has no Landlock")
    handled = (1 << _RIGHTS.get(version, _ALL_RIGHTS)) - 1
    rules = _Ruleset(
        files=handled,
        network=_TCP if version >= _WITH_NETWORK and not network else 0,
        scopes=_SCOPES if version >= _WITH_SCOPES else 0,
    )
    size = 8 if version < _WITH_NETWORK else 16 if version < _WITH_SCOPES else 24
    ruleset = _call(_CREATE, ctypes.byref(rules), size, 0)
    if ruleset < 0:
        raise CannotConfine("the kernel refuses a set of Landlock rules")
    try:
        _add_all(ruleset, handled, writable, (tuple(hidden), tuple(shown)))
        libc = ctypes.CDLL(None, use_errno=True)
        _give_up_powers(libc)
        if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
            raise CannotConfine("the kernel does not let rights be given up")
        if _call(_RESTRICT, ruleset, 0):
            raise CannotConfine("the kernel does not apply Landlock rules")
    finally:
        os.close(ruleset)


def _add_all(
    ruleset: int,
    handled: int,
    writable: Iterable[str],
    reading: tuple[tuple[str, ...], tuple[str, ...]],
) -> None:
    hidden, shown = reading
    reads = _READS & handled
    if hidden:
        _add(ruleset, "/", _READ_FOLDER & handled)
        for path in _all_but(hidden):
            # What cannot be opened, or is gone by now, could not be read either.
            with suppress(CannotConfine):
                _add(ruleset, path, reads if os.path.isdir(path) else reads & _FILE_RIGHTS)
    else:
        _add(ruleset, "/", reads)
    for path in shown:
        _add(ruleset, path, reads if os.path.isdir(path) else reads & _FILE_RIGHTS)
    for name in _DEVICES:
        with suppress(CannotConfine):
            _add(ruleset, f"/dev/{name}", (_READS | _WRITE_FILE | _IOCTL) & handled & _FILE_RIGHTS)
    given = handled & ~_MAKE_DEVICES
    for path in writable:
        _add(ruleset, path, given if os.path.isdir(path) else given & _FILE_RIGHTS)


def _give_up_powers(libc: ctypes.CDLL) -> None:
    """Keep an administrator from what is none of a command's business: devices, other programs.

    Some of these powers lead around Landlock, into the memory of whoever started the program.
    Others than an administrator have none to give up.
    """
    for number in range(_POWERS):
        if number not in _FILE_POWERS:
            libc.prctl(_DROP, number, 0, 0, 0)


def _all_but(hidden: tuple[str, ...]) -> Iterator[str]:
    """Yield paths below which everything is, but for what is hidden.

    Rights are given downwards and never taken back, so everything beside the way to a hidden
    place is named. Links are not: what they lead to is named where it is.
    """
    above = {folder for path in hidden for folder in _folders_above(path)}
    for folder in above:
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for name in names:
            path = os.path.join(folder, name)
            if path not in above and path not in hidden and not os.path.islink(path):
                yield path


def _folders_above(path: str) -> Iterator[str]:
    while path != os.path.dirname(path):
        path = os.path.dirname(path)
        yield path


def _add(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, getattr(os, "O_PATH", 0) | os.O_CLOEXEC)
    except OSError as error:
        raise CannotConfine(f"{path} cannot be opened: {os.strerror(error.errno or 0)}") from error
    try:
        rule = _Beneath(allowed=rights, parent=descriptor)
        if _call(_ADD, ruleset, _BENEATH, ctypes.byref(rule), 0):
            raise CannotConfine(f"no Landlock rule can be made for {path}")
    finally:
        os.close(descriptor)


def _call(number: int, *arguments: object) -> int:
    try:
        libc = ctypes.CDLL(None, use_errno=True)
    except OSError:
        return -errno.ENOSYS
    return int(libc.syscall(ctypes.c_long(number), *arguments))
