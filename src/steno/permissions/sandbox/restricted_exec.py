"""Restricts this process with Landlock and namespaces, then executes a program.

    python -m steno.permissions.sandbox.restricted_exec … -- argv

It never runs the program with more rights than requested: when they cannot be given up, it prints
the reason and exits with 126, as a shell does for what it cannot run.

Landlock grants rights over a folder with all that is in it. What must not be changed inside such a
folder is mounted over itself read-only in a namespace, and the network is one without machines.
Landlock, which comes afterwards, prevents undoing a mount.
"""

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import pairwise
from typing import Final

from steno.errors import StenoError

_CREATE_RULESET: Final = 444
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446
_VERSION_FLAG: Final = 1
_PATH_BENEATH: Final = 1
_NO_NEW_PRIVILEGES: Final = 38
_READ_RIGHTS: Final = 0b1101
"""Execute, read files, read folders."""
_READ_FOLDER: Final = 0b1000
_WRITE_FILE: Final = 0b10
_MAKE_DEVICES: Final = 1 << 6 | 1 << 11
_IOCTL: Final = 1 << 15
_TCP: Final = 0b11
_SCOPES: Final = 0b11
# How many rights over files each version of the interface knows.
_RIGHTS_BY_VERSION: Final = {1: 13, 2: 14, 3: 15, 4: 15}
_ALL_RIGHTS: Final = 16
_FILE_RIGHTS: Final = 0b111 | 1 << 14 | _IOCTL
_NETWORK_VERSION: Final = 4
_SCOPES_VERSION: Final = 6
_CAPBSET_DROP: Final = 24
_CAPABILITY_COUNT: Final = 64
# Over files alone: changing owners, and writing what belongs to others.
_KEPT_CAPABILITIES: Final = frozenset({0, 1, 3, 4, 5, 6, 7})
# Not the whole of /dev: for an administrator it has the disks.
_DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts")


class RestrictionError(StenoError):
    """The program could not give up its rights."""


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("files", ctypes.c_uint64),
        ("network", ctypes.c_uint64),
        ("scopes", ctypes.c_uint64),
    )


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def landlock_version() -> int:
    """Return the version of the interface that this kernel has; 0 when it has none."""
    if sys.platform != "linux":
        return 0
    return max(0, _landlock_syscall(_CREATE_RULESET, None, 0, _VERSION_FLAG))


def restrict_process(
    writable: Iterable[str],
    *,
    network: bool,
    hidden: Iterable[str] = (),
    readable: Iterable[str] = (),
) -> None:
    """Take from this program the right to write anywhere but below some folders.

    Args:
        writable: Where it may write; it may read there as well.
        network: Whether it may connect, and be connected to, as before.
        hidden: What it may not read; names of files in there can still be listed.
        readable: What it may read of that all the same.

    Raises:
        SandboxSetupError: the kernel does not let it; nothing is promised then.
    """
    version = landlock_version()
    if version < 1:
        raise RestrictionError("this kernel has no Landlock")
    handled = (1 << _RIGHTS_BY_VERSION.get(version, _ALL_RIGHTS)) - 1
    rules = _Ruleset(
        files=handled,
        network=_TCP if version >= _NETWORK_VERSION and not network else 0,
        scopes=_SCOPES if version >= _SCOPES_VERSION else 0,
    )
    size = 8 if version < _NETWORK_VERSION else 16 if version < _SCOPES_VERSION else 24
    ruleset = _landlock_syscall(_CREATE_RULESET, ctypes.byref(rules), size, 0)
    if ruleset < 0:
        raise RestrictionError("the kernel refuses a set of Landlock rules")
    try:
        _add_rules(ruleset, handled, writable, (tuple(hidden), tuple(readable)))
        libc = ctypes.CDLL(None, use_errno=True)
        _drop_capabilities(libc)
        if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
            raise RestrictionError("the kernel does not let rights be given up")
        if _landlock_syscall(_RESTRICT_SELF, ruleset, 0):
            raise RestrictionError("the kernel does not apply Landlock rules")
    finally:
        os.close(ruleset)


def _add_rules(
    ruleset: int,
    handled: int,
    writable: Iterable[str],
    hidden_and_shown: tuple[tuple[str, ...], tuple[str, ...]],
) -> None:
    hidden, readable = hidden_and_shown
    read_rights = _READ_RIGHTS & handled
    if hidden:
        _add_rule(ruleset, "/", _READ_FOLDER & handled)
        for path in _paths_beside(hidden):
            # What cannot be opened, or is gone by now, could not be read either.
            with suppress(RestrictionError):
                _add_rule(
                    ruleset,
                    path,
                    read_rights if os.path.isdir(path) else read_rights & _FILE_RIGHTS,
                )
    else:
        _add_rule(ruleset, "/", read_rights)
    for path in readable:
        _add_rule(ruleset, path, read_rights if os.path.isdir(path) else read_rights & _FILE_RIGHTS)
    for name in _DEVICES:
        with suppress(RestrictionError):
            _add_rule(
                ruleset,
                f"/dev/{name}",
                (_READ_RIGHTS | _WRITE_FILE | _IOCTL) & handled & _FILE_RIGHTS,
            )
    write_rights = handled & ~_MAKE_DEVICES
    for path in writable:
        _add_rule(
            ruleset, path, write_rights if os.path.isdir(path) else write_rights & _FILE_RIGHTS
        )


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    """Keep an administrator from what is none of a command's business: devices, other programs.

    Some of these powers lead around Landlock, into the memory of whoever started the program.
    Others than an administrator have none to give up.
    """
    for number in range(_CAPABILITY_COUNT):
        if number not in _KEPT_CAPABILITIES:
            libc.prctl(_CAPBSET_DROP, number, 0, 0, 0)


def _paths_beside(hidden: tuple[str, ...]) -> Iterator[str]:
    """Yield paths below which everything is, but for what is hidden.

    Rights are given downwards and never taken back, so everything beside the way to a hidden
    place is named. Links are not: what they lead to is named where it is.
    """
    parents = {folder for path in hidden for folder in _parent_folders(path)}
    for folder in parents:
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for name in names:
            path = os.path.join(folder, name)
            if path not in parents and path not in hidden and not os.path.islink(path):
                yield path


def _parent_folders(path: str) -> Iterator[str]:
    while path != os.path.dirname(path):
        path = os.path.dirname(path)
        yield path


def _add_rule(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, getattr(os, "O_PATH", 0) | os.O_CLOEXEC)
    except OSError as error:
        raise RestrictionError(
            f"{path} cannot be opened: {os.strerror(error.errno or 0)}"
        ) from error
    try:
        rule = _PathBeneath(allowed=rights, parent=descriptor)
        if _landlock_syscall(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0):
            raise RestrictionError(f"no Landlock rule can be made for {path}")
    finally:
        os.close(descriptor)


def _landlock_syscall(number: int, *arguments: object) -> int:
    try:
        libc = ctypes.CDLL(None, use_errno=True)
    except OSError:
        return -errno.ENOSYS
    return int(libc.syscall(ctypes.c_long(number), *arguments))


_NEW_MOUNTS: Final = 0x00020000
_NEW_USERS: Final = 0x10000000
_NEW_NETWORK: Final = 0x40000000
_READ_ONLY: Final = 0x1
_REMOUNT: Final = 0x20
_BIND: Final = 0x1000
_RECURSIVE: Final = 0x4000
_PRIVATE: Final = 0x40000
# What a mount has and must keep: without its owner's rights nobody may take these off.
_LOCKED_MOUNT_FLAGS: Final = {2: 2, 4: 4, 8: 8, 1024: 1024, 2048: 2048, 4096: 1 << 21}
_GET_FLAGS: Final = 0x8913
_SET_FLAGS: Final = 0x8914
_INTERFACE_UP: Final = 1


def enter_namespaces(
    pinned: Iterable[str], read_only: Iterable[str], covered: Iterable[str], *, network: bool
) -> None:
    """Give this program files and a network of its own.

    Args:
        pinned: Folders that cannot be moved away.
        read_only: Files and folders that cannot be changed.
        covered: Files and folders that are as if they were empty.
        network: Whether the network stays as it is.

    Raises:
        SandboxSetupError: the kernel does not let it; nothing is promised then.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    _unshare(libc, _NEW_MOUNTS | (0 if network else _NEW_NETWORK))
    _mount(libc, None, "/", None, _RECURSIVE | _PRIVATE)
    for path in covered:
        if os.path.isdir(path):
            _mount(libc, "tmpfs", path, "tmpfs", _READ_ONLY)
        elif os.path.lexists(path):
            _mount(libc, "/dev/null", path, None, _BIND)
    for path in pinned:
        _mount(libc, path, path, None, _BIND | _RECURSIVE)
    for path in read_only:
        _mount(libc, path, path, None, _BIND | _RECURSIVE)
        flags = os.statvfs(path).f_flag
        locked_flags = sum(mount for flag, mount in _LOCKED_MOUNT_FLAGS.items() if flags & flag)
        _mount(libc, None, path, None, _BIND | _REMOUNT | _READ_ONLY | locked_flags)
    if not network:
        _enable_loopback()


def _unshare(libc: ctypes.CDLL, flags: int) -> None:
    # The machine's own administrator needs no other users, and would lose files of theirs.
    if not libc.unshare(flags):
        return
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(flags | _NEW_USERS):
        message = os.strerror(ctypes.get_errno()).lower()
        raise RestrictionError(f"the kernel gives no namespaces: {message}")
    try:
        _write_file("/proc/self/setgroups", "deny")
        _write_file("/proc/self/uid_map", f"{user} {user} 1")
        _write_file("/proc/self/gid_map", f"{group} {group} 1")
    except OSError as error:
        raise RestrictionError(f"no user can be had in a namespace: {error.strerror}") from error


def _write_file(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _mount(libc: ctypes.CDLL, source: str | None, path: str, kind: str | None, flags: int) -> None:
    names = [None if name is None else os.fsencode(name) for name in (source, path, kind)]
    if libc.mount(*names, ctypes.c_ulong(flags), None):
        number = ctypes.get_errno()
        message = os.strerror(number or errno.EPERM).lower()
        raise RestrictionError(f"{path} cannot be kept: {message}")


def _enable_loopback() -> None:
    """Let programs talk to themselves; where that fails, they have no network at all."""
    import fcntl
    import socket

    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        response = fcntl.ioctl(control, _GET_FLAGS, struct.pack("16sh22x", b"lo", 0))
        flags = struct.unpack("16sh22x", response)[1]
        fcntl.ioctl(control, _SET_FLAGS, struct.pack("16sh22x", b"lo", flags | _INTERFACE_UP))


_CANNOT_RUN = 126
_NOT_FOUND = 127
_USAGE = (
    "usage: confine [--network] [--write FOLDER]… [--hide PATH]… [--show PATH]…"
    " [--apart] [--pin PATH]… [--keep PATH]… [--cover PATH]… -- PROGRAM …"
)


def main(arguments: list[str]) -> int:
    """Restrict this process and run what stands behind `--`; return only when that fails."""
    if "--" not in arguments:
        return _print_error(_USAGE)
    separator = arguments.index("--")
    options, argv = arguments[:separator], arguments[separator + 1 :]
    if not argv:
        return _print_error("there is nothing to run")
    try:
        _apply_options(options)
    except RestrictionError as error:
        return _print_error(f"not run, because it cannot be confined: {error}")
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        _print_error(f"{argv[0]}: {(error.strerror or str(error)).lower()}")
        return _NOT_FOUND


def _apply_options(options: list[str]) -> None:
    def option_values(flag: str) -> list[str]:
        return [path for name, path in pairwise(options) if name == flag]

    network = "--network" in options
    if "--apart" in options:
        folder = os.getcwd()
        enter_namespaces(
            option_values("--pin"),
            option_values("--keep"),
            option_values("--cover"),
            network=network,
        )
        # Through the new mounts, not under them.
        _change_directory(folder)
        network = True
    restrict_process(
        option_values("--write"),
        network=network,
        hidden=option_values("--hide"),
        readable=option_values("--show"),
    )


def _change_directory(folder: str) -> None:
    try:
        os.chdir(folder)
    except OSError as error:
        raise RestrictionError(f"{folder} cannot be entered") from error


def _print_error(message: str) -> int:
    sys.stderr.write(f"steno: {message}\n")
    return _CANNOT_RUN


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
