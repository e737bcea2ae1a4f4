"""A program's own view of files and network, through the kernel's namespaces.

Landlock gives rights over a folder with all that is in it. What is to be kept from being changed
inside such a folder is mounted over itself here, read-only, and the network is one without
machines. Landlock, which comes afterwards, lets nobody undo a mount.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from steno.guard.landlock import CannotConfine

__all__ = ["shut_off"]

_NEW_FILES: Final = 0x00020000
_NEW_USERS: Final = 0x10000000
_NEW_NETWORK: Final = 0x40000000
_READ_ONLY: Final = 0x1
_REMOUNT: Final = 0x20
_BIND: Final = 0x1000
_RECURSIVE: Final = 0x4000
_PRIVATE: Final = 0x40000
# What a mount has and must keep: without its owner's rights nobody may take these off.
_KEPT_FLAGS: Final = {2: 2, 4: 4, 8: 8, 1024: 1024, 2048: 2048, 4096: 1 << 21}
_GET_FLAGS: Final = 0x8913
_SET_FLAGS: Final = 0x8914
_UP: Final = 1


def shut_off(
    pinned: Iterable[str], kept: Iterable[str], covered: Iterable[str], *, network: bool
) -> None:
    """Give this program files and a network of its own.

    Args:
        pinned: Folders that cannot be moved away.
        kept: Files and folders that cannot be changed.
        covered: Files and folders that are as if they were empty.
        network: Whether the network stays as it is.

    Raises:
        CannotConfine: the kernel does not let it; nothing is promised then.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    _unshare(libc, _NEW_FILES | (0 if network else _NEW_NETWORK))
    _mount(libc, None, "/", None, _RECURSIVE | _PRIVATE)
    for path in covered:
        if os.path.isdir(path):
            _mount(libc, "tmpfs", path, "tmpfs", _READ_ONLY)
        elif os.path.lexists(path):
            _mount(libc, "/dev/null", path, None, _BIND)
    for path in pinned:
        _mount(libc, path, path, None, _BIND | _RECURSIVE)
    for path in kept:
        _mount(libc, path, path, None, _BIND | _RECURSIVE)
        flags = os.statvfs(path).f_flag
        held = sum(mount for flag, mount in _KEPT_FLAGS.items() if flags & flag)
        _mount(libc, None, path, None, _BIND | _REMOUNT | _READ_ONLY | held)
    if not network:
        _loopback_up()


def _unshare(libc: ctypes.CDLL, flags: int) -> None:
    # The machine's own administrator needs no other users, and would lose files of theirs.
    if not libc.unshare(flags):
        return
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(flags | _NEW_USERS):
        said = os.strerror(ctypes.get_errno()).lower()
        raise CannotConfine(f"the kernel gives no namespaces: {said}")
    try:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
    except OSError as error:
        raise CannotConfine(f"no user can be had in a namespace: {error.strerror}") from error


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _mount(libc: ctypes.CDLL, source: str | None, path: str, kind: str | None, flags: int) -> None:
    names = [None if each is None else os.fsencode(each) for each in (source, path, kind)]
    if libc.mount(*names, ctypes.c_ulong(flags), None):
        number = ctypes.get_errno()
        said = os.strerror(number or errno.EPERM).lower()
        raise CannotConfine(f"{path} cannot be kept: {said}")


def _loopback_up() -> None:
    """Let programs talk to themselves; where that fails, they have no network at all."""
    import fcntl
    import socket

    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        asked = fcntl.ioctl(found, _GET_FLAGS, struct.pack("16sh22x", b"lo", 0))
        flags = struct.unpack("16sh22x", asked)[1]
        fcntl.ioctl(found, _SET_FLAGS, struct.pack("16sh22x", b"lo", flags | _UP))
