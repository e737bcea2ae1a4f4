"""A private root folder made of mounts. Imports nothing outside the standard library."""

import os
import stat
from contextlib import suppress
from typing import Final

from steno.guard.confinement import kernel
from steno.guard.confinement.trees import DEVICES, Trees, inside, inside_any, parents

_ATTRIBUTES: Final = kernel.ATTR_NOSUID | kernel.ATTR_NODEV
_READ_ONLY: Final = _ATTRIBUTES | kernel.ATTR_RDONLY
_DEVICE: Final = kernel.ATTR_NOSUID | kernel.ATTR_NOEXEC | kernel.ATTR_RDONLY
_DEV_LINKS: Final = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
}
_WRITES: Final = frozenset({"write", "pin"})


def enter_namespaces() -> None:
    """Move this process to new user, mount, network, IPC and UTS namespaces, keeping its user.

    Raises:
        OSError: the kernel refused.
    """
    flags = (
        kernel.CLONE_NEWUSER
        | kernel.CLONE_NEWNS
        | kernel.CLONE_NEWNET
        | kernel.CLONE_NEWIPC
        | kernel.CLONE_NEWUTS
    )
    user, group = os.geteuid(), os.getegid()
    if user:
        kernel.unshare(flags)
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
    else:
        _enter_as_root(flags)
    # Later mounts of the machine arrive here, and none of ours there.
    kernel.mount(None, "/", None, kernel.MS_REC | kernel.MS_SLAVE)


def _enter_as_root(flags: int) -> None:
    """Keep all users, so that files of others stay readable: only the parent may map them."""
    maps = {name: _identity(f"/proc/self/{name}") for name in ("uid_map", "gid_map")}
    process = os.getpid()
    reading, writing = os.pipe()
    writer = os.fork()
    if not writer:
        os.close(writing)
        code = 1
        with suppress(OSError):
            if os.read(reading, 1):
                for name, text in maps.items():
                    _write(f"/proc/{process}/{name}", text)
                code = 0
        os._exit(code)
    os.close(reading)
    try:
        kernel.unshare(flags)
        os.write(writing, b"1")
    finally:
        os.close(writing)
        status = os.waitpid(writer, 0)[1]
    if status:
        raise OSError("the users of this machine cannot be mapped in a user namespace")


def _identity(path: str) -> str:
    with open(path, encoding="ascii") as file:
        rows = [line.split() for line in file]
    return "".join(f"{row[0]} {row[0]} {row[2]}\n" for row in rows)


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def enter_private_root(wanted: Trees, accounts: dict[str, str]) -> None:
    """Replace the root folder of this process by one that holds some trees only.

    The process must be alone in its PID namespace, and own its user namespace.

    Args:
        wanted: The trees, by real paths; none of `missing` may be left.
        accounts: The text of files in /etc.

    Raises:
        OSError: the kernel refused.
    """
    kernel.unshare(kernel.CLONE_NEWNS)
    kernel.mount(None, "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    old = os.open("/", os.O_PATH | os.O_CLOEXEC)
    changes = _changes(wanted)
    clones = {
        path: _clone(old, path, _ATTRIBUTES if change in _WRITES else _READ_ONLY)
        for path, change in changes.items()
        if change != "deny"
    }
    kinds = {path: os.path.isdir(path) for path, change in changes.items() if change == "deny"}
    devices = {name: _clone(old, f"/dev/{name}", _DEVICE) for name in DEVICES}
    # Any folder would do; the trees were copied before this hides it.
    new = wanted.scratch
    flags = kernel.MS_NOSUID | kernel.MS_NODEV
    kernel.mount("tmpfs", new, "tmpfs", flags, "mode=0755,size=4m")
    root = os.open(new, os.O_PATH | os.O_CLOEXEC)
    covers = _covers(root, new, kinds)
    for path in sorted(changes):
        tree = covers[path] if path in covers else clones[path]
        _attach(root, new, path, tree)
    for name, tree in devices.items():
        _attach(root, new, f"/dev/{name}", tree)
    _fill(new, wanted, accounts)
    os.mkdir(f"{new}/proc")
    with suppress(OSError):
        # Containers with a masked /proc refuse; there is none inside then.
        kernel.mount(
            "proc",
            f"{new}/proc",
            "proc",
            flags | kernel.MS_NOEXEC | kernel.MS_RDONLY,
            "subset=pid",
        )
    kernel.set_attributes(root, _READ_ONLY, recursive=False)
    os.chdir(new)
    kernel.pivot_root_here()
    os.close(root)
    os.close(old)


def _changes(wanted: Trees) -> dict[str, str]:
    """Return what is mounted where: read, write, pin (write, but not renamed), deny."""
    changes: dict[str, str] = dict.fromkeys(wanted.readable, "read")
    changes |= dict.fromkeys(wanted.writable, "write")
    # A mount point cannot be renamed; the folders above it could be.
    for path in wanted.read_only | wanted.denied:
        for tree in wanted.writable:
            if path != tree and inside(path, tree):
                for folder in parents(path, tree):
                    changes.setdefault(folder, "pin")
    changes |= dict.fromkeys(wanted.read_only, "read")
    changes |= dict.fromkeys(wanted.denied, "deny")
    changes[wanted.scratch] = "write"
    kept: dict[str, str] = {}
    for path in sorted(changes):
        above = next((kept[each] for each in parents(path, "/") if each in kept), "")
        change = changes[path]
        if above == "deny" or (change == "read" == above):
            continue
        if change == "read" and above in _WRITES and path not in wanted.read_only:
            continue
        if change == "write" and above in _WRITES and path != wanted.scratch:
            continue
        kept[path] = change
    return kept


def _clone(root: int, path: str, attributes: int) -> int:
    place = kernel.open_in_root(root, path)
    try:
        return kernel.clone_tree(place, attributes)
    finally:
        os.close(place)


def _covers(root: int, new: str, kinds: dict[str, bool]) -> dict[str, int]:
    """Return an empty file or folder without any permission for each denied path."""
    os.mkdir(f"{new}/dev")
    os.mkdir(f"{new}/dev/.denied", 0o700)
    os.mkdir(f"{new}/dev/.denied/folder", 0o000)
    _make_file(f"{new}/dev/.denied/file", mode=0o000)
    return {
        path: _clone(
            root,
            f"/dev/.denied/{'folder' if is_folder else 'file'}",
            _READ_ONLY | kernel.ATTR_NOEXEC,
        )
        for path, is_folder in kinds.items()
    }


def _make_file(path: str, text: str = "", mode: int = 0o644) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, mode)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def _attach(root: int, new: str, path: str, tree: int) -> None:
    if not os.path.lexists(new + path):
        os.makedirs(os.path.dirname(new + path), exist_ok=True)
        if stat.S_ISDIR(os.fstat(tree).st_mode):
            os.mkdir(new + path)
        else:
            _make_file(new + path)
    target = kernel.open_in_root(root, path)
    try:
        kernel.move_mount(tree, target)
    finally:
        os.close(target)
        os.close(tree)


def _fill(new: str, wanted: Trees, accounts: dict[str, str]) -> None:
    for name, target in _DEV_LINKS.items():
        os.symlink(target, f"{new}/dev/{name}")
    # Below a denied folder nothing can be made, and nothing has to be.
    with suppress(OSError):
        os.makedirs(f"{new}/etc", exist_ok=True)
    if not inside_any("/etc", wanted.readable | wanted.writable):
        for name, text in accounts.items():
            _make_file(f"{new}/etc/{name}", text)
    for link, target in wanted.links.items():
        if not os.path.lexists(new + link):
            with suppress(OSError):
                os.makedirs(os.path.dirname(new + link), exist_ok=True)
                os.symlink(target, new + link)
    temporary = os.path.join(new, "tmp")
    if not os.path.lexists(temporary):
        os.symlink(wanted.scratch, temporary)
