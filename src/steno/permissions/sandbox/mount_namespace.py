"""Namespaces with a private mount tree. Imports only the standard library."""

import os
import stat
from contextlib import suppress
from typing import Final

from steno.permissions.sandbox import syscalls
from steno.permissions.sandbox.path_plan import DEVICES, PathPlan, is_inside, is_inside_any, parent_folders

_ATTRIBUTES: Final = syscalls.ATTR_NOSUID | syscalls.ATTR_NODEV
_READ_ONLY_ATTRIBUTES: Final = _ATTRIBUTES | syscalls.ATTR_RDONLY
_DEVICE_ATTRIBUTES: Final = syscalls.ATTR_NOSUID | syscalls.ATTR_NOEXEC | syscalls.ATTR_RDONLY
_DEV_LINKS: Final = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
}
_WRITE_CHANGES: Final = frozenset({"write", "pin"})


def enter_namespaces() -> None:
    """Move this process to new user, mount, network, IPC and UTS namespaces, keeping its user.

    Raises:
        OSError: the kernel refused.
    """
    flags = (
        syscalls.CLONE_NEWUSER
        | syscalls.CLONE_NEWNS
        | syscalls.CLONE_NEWNET
        | syscalls.CLONE_NEWIPC
        | syscalls.CLONE_NEWUTS
    )
    user, group = os.geteuid(), os.getegid()
    if user:
        syscalls.unshare(flags)
        _write_file("/proc/self/setgroups", "deny")
        _write_file("/proc/self/uid_map", f"{user} {user} 1")
        _write_file("/proc/self/gid_map", f"{group} {group} 1")
    else:
        _enter_as_root(flags)
    # Later mounts of the machine propagate here, but not the other way.
    syscalls.mount(None, "/", None, syscalls.MS_REC | syscalls.MS_SLAVE)


def _enter_as_root(flags: int) -> None:
    """Map all users, so that files of other users stay readable; only a process outside may do that."""
    maps = {name: _identity_map(f"/proc/self/{name}") for name in ("uid_map", "gid_map")}
    process = os.getpid()
    read_end, write_end = os.pipe()
    writer = os.fork()
    if not writer:
        os.close(write_end)
        code = 1
        with suppress(OSError):
            if os.read(read_end, 1):
                for name, text in maps.items():
                    _write_file(f"/proc/{process}/{name}", text)
                code = 0
        os._exit(code)
    os.close(read_end)
    try:
        syscalls.unshare(flags)
        os.write(write_end, b"1")
    finally:
        os.close(write_end)
        status = os.waitpid(writer, 0)[1]
    if status:
        raise OSError("cannot map the users of this machine in a user namespace")


def _identity_map(path: str) -> str:
    with open(path, encoding="ascii") as file:
        rows = [line.split() for line in file]
    return "".join(f"{row[0]} {row[0]} {row[2]}\n" for row in rows)


def _write_file(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def enter_private_root(plan: PathPlan, accounts: dict[str, str]) -> None:
    """Replace the root directory of this process with one that contains only some trees.

    The process must be alone in its PID namespace and own its user namespace.

    Args:
        plan: The real paths; `missing` must be empty.
        accounts: Contents of files in /etc.

    Raises:
        OSError: the kernel refused.
    """
    syscalls.unshare(syscalls.CLONE_NEWNS)
    syscalls.mount(None, "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
    old = os.open("/", os.O_PATH | os.O_CLOEXEC)
    changes = _mount_plan(plan)
    clones = {
        path: _clone_path(old, path, _ATTRIBUTES if change in _WRITE_CHANGES else _READ_ONLY_ATTRIBUTES)
        for path, change in changes.items()
        if change != "deny"
    }
    denied_folders = {path: os.path.isdir(path) for path, change in changes.items() if change == "deny"}
    devices = {name: _clone_path(old, f"/dev/{name}", _DEVICE_ATTRIBUTES) for name in DEVICES}
    # Any directory works; the trees were cloned before this one is covered.
    new_root = plan.scratch
    flags = syscalls.MS_NOSUID | syscalls.MS_NODEV
    syscalls.mount("tmpfs", new_root, "tmpfs", flags, "mode=0755,size=4m")
    root = os.open(new_root, os.O_PATH | os.O_CLOEXEC)
    covers = _create_covers(root, new_root, denied_folders)
    for path in sorted(changes):
        tree = covers[path] if path in covers else clones[path]
        _attach_tree(root, new_root, path, tree)
    for name, tree in devices.items():
        _attach_tree(root, new_root, f"/dev/{name}", tree)
    _fill_root(new_root, plan, accounts)
    os.mkdir(f"{new_root}/proc")
    with suppress(OSError):
        # Containers with a masked /proc refuse; then the sandbox has none.
        syscalls.mount(
            "proc", f"{new_root}/proc", "proc", flags | syscalls.MS_NOEXEC | syscalls.MS_RDONLY, "subset=pid"
        )
    syscalls.set_attributes(root, _READ_ONLY_ATTRIBUTES, recursive=False)
    os.chdir(new_root)
    syscalls.pivot_to_current_directory()
    os.close(root)
    os.close(old)


def _mount_plan(plan: PathPlan) -> dict[str, str]:
    """Return the type of each mount: read, write, pin (write, but not renamed), deny."""
    changes: dict[str, str] = dict.fromkeys(plan.readable, "read")
    changes |= dict.fromkeys(plan.writable, "write")
    # A mount point cannot be renamed, but its parent directories can.
    for path in plan.read_only | plan.denied:
        for tree in plan.writable:
            if path != tree and is_inside(path, tree):
                for folder in parent_folders(path, tree):
                    changes.setdefault(folder, "pin")
    changes |= dict.fromkeys(plan.read_only, "read")
    changes |= dict.fromkeys(plan.denied, "deny")
    changes[plan.scratch] = "write"
    mounts: dict[str, str] = {}
    for path in sorted(changes):
        parent_change = next((mounts[parent] for parent in parent_folders(path, "/") if parent in mounts), "")
        change = changes[path]
        if parent_change == "deny" or (change == "read" == parent_change):
            continue
        if change == "read" and parent_change in _WRITE_CHANGES and path not in plan.read_only:
            continue
        if change == "write" and parent_change in _WRITE_CHANGES and path != plan.scratch:
            continue
        mounts[path] = change
    return mounts


def _clone_path(root: int, path: str, attributes: int) -> int:
    location = syscalls.open_in_root(root, path)
    try:
        return syscalls.clone_mount_tree(location, attributes)
    finally:
        os.close(location)


def _create_covers(root: int, new_root: str, denied_folders: dict[str, bool]) -> dict[str, int]:
    """Return an empty file or directory without permissions for each denied path."""
    os.mkdir(f"{new_root}/dev")
    os.mkdir(f"{new_root}/dev/.denied", 0o700)
    os.mkdir(f"{new_root}/dev/.denied/folder", 0o000)
    _create_file(f"{new_root}/dev/.denied/file", mode=0o000)
    return {
        path: _clone_path(
            root, f"/dev/.denied/{'folder' if is_folder else 'file'}", _READ_ONLY_ATTRIBUTES | syscalls.ATTR_NOEXEC
        )
        for path, is_folder in denied_folders.items()
    }


def _create_file(path: str, text: str = "", mode: int = 0o644) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, mode)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def _attach_tree(root: int, new_root: str, path: str, tree: int) -> None:
    if not os.path.lexists(new_root + path):
        os.makedirs(os.path.dirname(new_root + path), exist_ok=True)
        if stat.S_ISDIR(os.fstat(tree).st_mode):
            os.mkdir(new_root + path)
        else:
            _create_file(new_root + path)
    target = syscalls.open_in_root(root, path)
    try:
        syscalls.move_mount(tree, target)
    finally:
        os.close(target)
        os.close(tree)


def _fill_root(new_root: str, plan: PathPlan, accounts: dict[str, str]) -> None:
    for name, target in _DEV_LINKS.items():
        os.symlink(target, f"{new_root}/dev/{name}")
    # Fails below a denied directory, where nothing is needed.
    with suppress(OSError):
        os.makedirs(f"{new_root}/etc", exist_ok=True)
    if not is_inside_any("/etc", plan.readable | plan.writable):
        for name, text in accounts.items():
            _create_file(f"{new_root}/etc/{name}", text)
    for link, target in plan.links.items():
        if not os.path.lexists(new_root + link):
            with suppress(OSError):
                os.makedirs(os.path.dirname(new_root + link), exist_ok=True)
                os.symlink(target, new_root + link)
    temporary = os.path.join(new_root, "tmp")
    if not os.path.lexists(temporary):
        os.symlink(plan.scratch, temporary)
