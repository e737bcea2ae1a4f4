"""Linux system calls that the standard library lacks. Imports only the standard library."""

import ctypes
import errno
import os
import platform
from typing import Final

CLONE_NEWNS: Final = 0x00020000
CLONE_NEWUTS: Final = 0x04000000
CLONE_NEWIPC: Final = 0x08000000
CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWPID: Final = 0x20000000
CLONE_NEWNET: Final = 0x40000000
CLONE_NEWCGROUP: Final = 0x02000000
CLONE_NEWTIME: Final = 0x00000080

MS_RDONLY: Final = 0x1
MS_NOSUID: Final = 0x2
MS_NODEV: Final = 0x4
MS_NOEXEC: Final = 0x8
MS_REMOUNT: Final = 0x20
MS_BIND: Final = 0x1000
MS_REC: Final = 0x4000
MS_PRIVATE: Final = 0x40000
MS_SLAVE: Final = 0x80000
MNT_DETACH: Final = 2

ATTR_RDONLY: Final = 0x1
ATTR_NOSUID: Final = 0x2
ATTR_NODEV: Final = 0x4
ATTR_NOEXEC: Final = 0x8

PR_SET_PDEATHSIG: Final = 1
PR_SET_DUMPABLE: Final = 4
PR_SET_SECCOMP: Final = 22
PR_CAPBSET_DROP: Final = 24
PR_SET_CHILD_SUBREAPER: Final = 36
PR_SET_NO_NEW_PRIVS: Final = 38
PR_CAP_AMBIENT: Final = 47
PR_CAP_AMBIENT_CLEAR_ALL: Final = 4

_AT_EMPTY_PATH: Final = 0x1000
_AT_RECURSIVE: Final = 0x8000
_OPEN_TREE_CLONE: Final = 1
_MOVE_FROM_EMPTY: Final = 0x4
_MOVE_TO_EMPTY: Final = 0x40
_RESOLVE_NO_MAGICLINKS: Final = 0x02
_RESOLVE_NO_SYMLINKS: Final = 0x04
_RESOLVE_IN_ROOT: Final = 0x10
_OPEN_TREE: Final = 428
_MOVE_MOUNT: Final = 429
_CLOSE_RANGE: Final = 436
_OPENAT2: Final = 437
_MOUNT_SETATTR: Final = 442
_PIVOT_ROOT: Final = {"x86_64": 155, "aarch64": 41}
_CAPSET: Final = {"x86_64": 126, "aarch64": 91}
_CAPABILITY_VERSION: Final = 0x20080522
_LAST_CAPABILITY: Final = 63

_libc = ctypes.CDLL(None, use_errno=True)


class _MountAttr(ctypes.Structure):
    _fields_ = (
        ("attr_set", ctypes.c_uint64),
        ("attr_clr", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns_fd", ctypes.c_uint64),
    )


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _CapabilityData(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def machine() -> str:
    """Return the processor architecture as the kernel names it."""
    name = platform.machine() if not hasattr(os, "uname") else os.uname().machine
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(name, name)


def syscall(number: int, *arguments: object) -> int:
    """Make a system call; return -1 and set errno if it fails."""
    return int(_libc.syscall(ctypes.c_long(number), *arguments))


def last_error() -> int:
    """Return errno of the last failed call."""
    return ctypes.get_errno()


def _check_result(result: int, operation: str) -> int:
    if result < 0:
        number = ctypes.get_errno() or errno.EPERM
        raise OSError(number, f"{operation}: {os.strerror(number)}")
    return result


def prctl(option: int, value: object, third: object = 0) -> None:
    """Call prctl.

    Raises:
        OSError: the kernel refused.
    """
    _check_result(_libc.prctl(option, value, third, 0, 0), f"prctl {option}")


def unshare(flags: int) -> None:
    """Move this process (for PID namespaces: its children) to new namespaces."""
    _check_result(_libc.unshare(flags), "unshare")


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str = "") -> None:
    """Call mount."""
    names = [None if name is None else os.fsencode(name) for name in (source, target, kind)]
    _check_result(_libc.mount(*names, ctypes.c_ulong(flags), data.encode() or None), f"mount {target!r}")


def pivot_to_current_directory() -> None:
    """Make the current directory, a mount point, the root, and detach the previous root."""
    _check_result(syscall(_PIVOT_ROOT[machine()], b".", b"."), "pivot_root")
    _check_result(_libc.umount2(b".", MNT_DETACH), "umount")
    os.chdir("/")


def clone_mount_tree(location: int, attributes: int) -> int:
    """Return a detached copy of the mounts at a descriptor, with attributes added.

    Attributes are only added, so flags that the kernel locked in a user namespace stay set.
    """
    flags = _OPEN_TREE_CLONE | os.O_CLOEXEC | _AT_RECURSIVE | _AT_EMPTY_PATH
    descriptor = _check_result(syscall(_OPEN_TREE, location, b"", ctypes.c_uint(flags)), "open_tree")
    try:
        set_attributes(descriptor, attributes, recursive=True)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def set_attributes(descriptor: int, attributes: int, *, recursive: bool) -> None:
    """Add attributes such as read-only to a mount, and to the mounts below it."""
    change = _MountAttr(attr_set=attributes, propagation=MS_PRIVATE)
    flags = _AT_EMPTY_PATH | (_AT_RECURSIVE if recursive else 0)
    size = ctypes.c_size_t(ctypes.sizeof(change))
    result = syscall(_MOUNT_SETATTR, descriptor, b"", ctypes.c_uint(flags), ctypes.byref(change), size)
    _check_result(result, "mount_setattr")


def move_mount(tree: int, target: int) -> None:
    """Attach a detached tree to the file or directory that a descriptor refers to."""
    flags = _MOVE_FROM_EMPTY | _MOVE_TO_EMPTY
    _check_result(syscall(_MOVE_MOUNT, tree, b"", target, b"", ctypes.c_uint(flags)), "move_mount")


def open_in_root(root: int, path: str) -> int:
    """Open a path below a root with O_PATH; refuse symbolic links in any component."""
    how = _OpenHow(
        flags=os.O_PATH | os.O_CLOEXEC, resolve=_RESOLVE_NO_SYMLINKS | _RESOLVE_NO_MAGICLINKS | _RESOLVE_IN_ROOT
    )
    size = ctypes.c_size_t(ctypes.sizeof(how))
    result = syscall(_OPENAT2, root, os.fsencode(path), ctypes.byref(how), size)
    return _check_result(result, f"open {path!r}")


def close_other_descriptors(keep: set[int]) -> None:
    """Close all file descriptors except the given ones."""
    first = 0
    for descriptor in [*sorted(keep), -1]:
        last = 0xFFFFFFFF if descriptor < 0 else descriptor - 1
        if first <= last:
            _close_range(first, last)
        first = descriptor + 1


def _close_range(first: int, last: int) -> None:
    if syscall(_CLOSE_RANGE, ctypes.c_uint(first), ctypes.c_uint(last), ctypes.c_uint(0)) == 0:
        return
    # Before Linux 5.9 there is no close_range.
    os.closerange(first, min(last + 1, os.sysconf("SC_OPEN_MAX")))


def drop_capabilities(keep: frozenset[int]) -> None:
    """Reduce the capabilities of this process, and of programs it executes, to a set.

    Raises:
        OSError: the kernel refused.
    """
    for number in range(_LAST_CAPABILITY + 1):
        if number not in keep:
            # EINVAL: the kernel has no such capability. EPERM: this process has none to drop,
            # and with no_new_privs set it cannot gain any.
            _libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0)
    _libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    mask = sum(1 << number for number in keep) & _permitted_capabilities()
    data = (_CapabilityData * 2)()
    for index in range(2):
        part = (mask >> (32 * index)) & 0xFFFFFFFF
        data[index].effective = data[index].permitted = part
    header = _CapabilityHeader(version=_CAPABILITY_VERSION, pid=0)
    result = syscall(_CAPSET[machine()], ctypes.byref(header), ctypes.byref(data))
    _check_result(result, "capset")


def _permitted_capabilities() -> int:
    data = (_CapabilityData * 2)()
    header = _CapabilityHeader(version=_CAPABILITY_VERSION, pid=0)
    # capget is the number before capset on both architectures.
    result = syscall(_CAPSET[machine()] - 1, ctypes.byref(header), ctypes.byref(data))
    _check_result(result, "capget")
    return data[0].permitted | data[1].permitted << 32
