"""Restricts this process with Landlock and namespaces, then executes a program.

    python -m steno.permissions.sandbox.restricted_exec … -- argv

The program never runs with more rights than requested: if they cannot be dropped, this prints the reason and exits with
126, as a shell does for a command that it cannot run.

Landlock grants rights over whole directories. Read-only paths inside a writable directory are bind-mounted read-only in
a namespace, and the network namespace has no connections. Landlock is applied last and prevents undoing a mount.
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
from steno.permissions.sandbox import landlock_rules, syscalls
from steno.permissions.sandbox.landlock_rules import (
    FILE_RIGHTS,
    IOCTL_DEV,
    MAKE_BLOCK,
    MAKE_CHAR,
    NETWORK_VERSION,
    READ_DIR,
    READ_RIGHTS,
    SCOPES,
    SCOPES_VERSION,
    TCP,
    WRITE_FILE,
)
from steno.permissions.sandbox.path_plan import DEVICES, parent_folders
from steno.permissions.sandbox.syscalls import (
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWUSER,
    MS_BIND,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
)

_CAPABILITY_COUNT: Final = 64
# Capabilities for files: changing owners, and writing files of other users.
_KEPT_CAPABILITIES: Final = frozenset({0, 1, 3, 4, 5, 6, 7})
# Not all of /dev, where root could access the disks.
_DEVICES: Final = (*DEVICES, "tty", "ptmx", "pts")


class RestrictionError(StenoError):
    """The process could not drop its rights."""


def restrict_process(
    writable: Iterable[str], *, network: bool, hidden: Iterable[str] = (), readable: Iterable[str] = ()
) -> None:
    """Remove the right of this process to write outside some directories.

    Args:
        writable: Directories that it may read and write.
        network: Whether network access is unrestricted.
        hidden: Paths that it may not read; names inside them can still be listed.
        readable: Readable paths inside `hidden`.

    Raises:
        RestrictionError: the kernel refused; the restrictions may be incomplete.
    """
    version = landlock_rules.abi_version()
    if version < 1:
        raise RestrictionError("this kernel has no Landlock")
    handled = landlock_rules.file_rights(version)
    ruleset = landlock_rules.create_ruleset(
        version,
        files=handled,
        network=TCP if version >= NETWORK_VERSION and not network else 0,
        scopes=SCOPES if version >= SCOPES_VERSION else 0,
    )
    if ruleset < 0:
        raise RestrictionError("the kernel refused a Landlock ruleset")
    try:
        _add_rules(ruleset, handled, writable, (tuple(hidden), tuple(readable)))
        libc = ctypes.CDLL(None, use_errno=True)
        _drop_capabilities(libc)
        if libc.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
            raise RestrictionError("the kernel refused no_new_privs")
        if landlock_rules.restrict_self(ruleset):
            raise RestrictionError("the kernel refused to apply Landlock rules")
    finally:
        os.close(ruleset)


def _add_rules(
    ruleset: int, handled: int, writable: Iterable[str], hidden_and_shown: tuple[tuple[str, ...], tuple[str, ...]]
) -> None:
    hidden, readable = hidden_and_shown
    read_rights = READ_RIGHTS & handled
    if hidden:
        _add_rule(ruleset, "/", READ_DIR & handled)
        for path in _paths_beside(hidden):
            # A path that cannot be opened, or is gone, cannot be read either.
            with suppress(RestrictionError):
                _add_rule(ruleset, path, read_rights if os.path.isdir(path) else read_rights & FILE_RIGHTS)
    else:
        _add_rule(ruleset, "/", read_rights)
    for path in readable:
        _add_rule(ruleset, path, read_rights if os.path.isdir(path) else read_rights & FILE_RIGHTS)
    for name in _DEVICES:
        with suppress(RestrictionError):
            _add_rule(ruleset, f"/dev/{name}", (READ_RIGHTS | WRITE_FILE | IOCTL_DEV) & handled & FILE_RIGHTS)
    write_rights = handled & ~(MAKE_CHAR | MAKE_BLOCK)
    for path in writable:
        _add_rule(ruleset, path, write_rights if os.path.isdir(path) else write_rights & FILE_RIGHTS)


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    """Drop the capabilities of root that commands do not need, such as devices and other processes.

    Some of them bypass Landlock, through the memory of the parent process. Other users have none to drop.
    """
    for number in range(_CAPABILITY_COUNT):
        if number not in _KEPT_CAPABILITIES:
            libc.prctl(syscalls.PR_CAPBSET_DROP, number, 0, 0, 0)


def _paths_beside(hidden: tuple[str, ...]) -> Iterator[str]:
    """Yield paths that together contain everything except the hidden paths.

    Rights apply to everything below a directory and cannot be revoked, so every path next to the parents of a hidden
    path is included. Symbolic links are not included; their targets are included at their own paths.
    """
    parents = {folder for path in hidden for folder in parent_folders(path, "/")}
    for folder in parents:
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for name in names:
            path = os.path.join(folder, name)
            if path not in parents and path not in hidden and not os.path.islink(path):
                yield path


def _add_rule(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, getattr(os, "O_PATH", 0) | os.O_CLOEXEC)
    except OSError as error:
        raise RestrictionError(f"cannot open {path}: {os.strerror(error.errno or 0)}") from error
    try:
        if landlock_rules.add_path_rule(ruleset, descriptor, rights):
            raise RestrictionError(f"cannot add a Landlock rule for {path}")
    finally:
        os.close(descriptor)


# Mount flags that must be kept: an unprivileged user cannot remove them.
_LOCKED_MOUNT_FLAGS: Final = {2: 2, 4: 4, 8: 8, 1024: 1024, 2048: 2048, 4096: 1 << 21}
_GET_FLAGS: Final = 0x8913
_SET_FLAGS: Final = 0x8914
_INTERFACE_UP: Final = 1


def enter_namespaces(pinned: Iterable[str], read_only: Iterable[str], covered: Iterable[str], *, network: bool) -> None:
    """Move this process to new mount and network namespaces.

    Args:
        pinned: Directories that cannot be moved.
        read_only: Files and directories that cannot be changed.
        covered: Files and directories that appear empty.
        network: Whether to keep the network.

    Raises:
        RestrictionError: the kernel refused; the restrictions may be incomplete.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    _unshare(libc, CLONE_NEWNS | (0 if network else CLONE_NEWNET))
    _mount(libc, None, "/", None, MS_REC | MS_PRIVATE)
    for path in covered:
        if os.path.isdir(path):
            _mount(libc, "tmpfs", path, "tmpfs", MS_RDONLY)
        elif os.path.lexists(path):
            _mount(libc, "/dev/null", path, None, MS_BIND)
    for path in pinned:
        _mount(libc, path, path, None, MS_BIND | MS_REC)
    for path in read_only:
        _mount(libc, path, path, None, MS_BIND | MS_REC)
        flags = os.statvfs(path).f_flag
        locked_flags = sum(mount for flag, mount in _LOCKED_MOUNT_FLAGS.items() if flags & flag)
        _mount(libc, None, path, None, MS_BIND | MS_REMOUNT | MS_RDONLY | locked_flags)
    if not network:
        _enable_loopback()


def _unshare(libc: ctypes.CDLL, flags: int) -> None:
    # Root needs no user namespace, and would lose access to files of other users in one.
    if not libc.unshare(flags):
        return
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(flags | CLONE_NEWUSER):
        message = os.strerror(ctypes.get_errno()).lower()
        raise RestrictionError(f"the kernel refused namespaces: {message}")
    try:
        _write_file("/proc/self/setgroups", "deny")
        _write_file("/proc/self/uid_map", f"{user} {user} 1")
        _write_file("/proc/self/gid_map", f"{group} {group} 1")
    except OSError as error:
        raise RestrictionError(f"cannot map the user in a namespace: {error.strerror}") from error


def _write_file(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _mount(libc: ctypes.CDLL, source: str | None, path: str, kind: str | None, flags: int) -> None:
    names = [None if name is None else os.fsencode(name) for name in (source, path, kind)]
    if libc.mount(*names, ctypes.c_ulong(flags), None):
        number = ctypes.get_errno()
        message = os.strerror(number or errno.EPERM).lower()
        raise RestrictionError(f"cannot mount {path}: {message}")


def _enable_loopback() -> None:
    """Enable the loopback interface; if that fails, programs have no network at all."""
    import fcntl
    import socket

    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        response = fcntl.ioctl(control, _GET_FLAGS, struct.pack("16sh22x", b"lo", 0))
        flags = struct.unpack("16sh22x", response)[1]
        fcntl.ioctl(control, _SET_FLAGS, struct.pack("16sh22x", b"lo", flags | _INTERFACE_UP))


_CANNOT_RUN = 126
_NOT_FOUND = 127
_USAGE = (
    "usage: python -m steno.permissions.sandbox.restricted_exec [--network] [--write DIRECTORY]… [--hide PATH]… [--show PATH]…"
    " [--apart] [--pin PATH]… [--keep PATH]… [--cover PATH]… -- PROGRAM …"
)


def main(arguments: list[str]) -> int:
    """Restrict this process and run the command after `--`; return only if that fails."""
    if "--" not in arguments:
        return _print_error(_USAGE)
    separator = arguments.index("--")
    options, argv = arguments[:separator], arguments[separator + 1 :]
    if not argv:
        return _print_error("no command given")
    try:
        _apply_options(options)
    except RestrictionError as error:
        return _print_error(f"not run, because it cannot be sandboxed: {error}")
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
        enter_namespaces(option_values("--pin"), option_values("--keep"), option_values("--cover"), network=network)
        # Enter the directory through the new mounts.
        _change_directory(folder)
        network = True
    restrict_process(
        option_values("--write"), network=network, hidden=option_values("--hide"), readable=option_values("--show")
    )


def _change_directory(folder: str) -> None:
    try:
        os.chdir(folder)
    except OSError as error:
        raise RestrictionError(f"cannot enter {folder}") from error


def _print_error(message: str) -> int:
    sys.stderr.write(f"steno: {message}\n")
    return _CANNOT_RUN


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
