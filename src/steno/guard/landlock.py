"""Landlock, the kernel's own way for a program to give up rights, through its system calls."""

import ctypes
import errno
import os
import sys
from collections.abc import Iterable
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
_WRITE_FILE: Final = 0b10
_IOCTL: Final = 1 << 15
_TCP: Final = 0b11
_SCOPES: Final = 0b11
# How many rights over files each version of the interface knows.
_RIGHTS: Final = {1: 13, 2: 14, 3: 15, 4: 15}
_ALL_RIGHTS: Final = 16
_FILE_RIGHTS: Final = 0b111 | 1 << 14 | _IOCTL
_WITH_NETWORK: Final = 4
_WITH_SCOPES: Final = 6


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
    if not sys.platform.startswith("linux"):
        return 0
    return max(0, _call(_CREATE, None, 0, _VERSION))


def restrict(writable: Iterable[str], *, network: bool) -> None:
    """Take from this program the right to write anywhere but below some folders.

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
        _add(ruleset, "/", _READS & handled)
        _add(ruleset, "/dev", (_READS | _WRITE_FILE | _IOCTL) & handled)
        for path in writable:
            _add(ruleset, path, handled if os.path.isdir(path) else handled & _FILE_RIGHTS)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
            raise CannotConfine("the kernel does not let rights be given up")
        if _call(_RESTRICT, ruleset, 0):
            raise CannotConfine("the kernel does not apply Landlock rules")
    finally:
        os.close(ruleset)


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
