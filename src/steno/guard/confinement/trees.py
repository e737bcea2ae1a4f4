"""Turns a policy into trees and exceptions. Imports nothing outside the standard library.

The result holds real paths only, without symbolic links, so that mounts and Landlock rules can
be made from it without another look at names that somebody might change meanwhile.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final

# Programs and libraries of the system; none of them holds data of a user.
_SYSTEM: Final = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/gnu/store",
)
# Files of /etc that programs need to start and to print text.
_ETC: Final = (
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "timezone",
    "alternatives",
    "terminfo",
    "locale.alias",
    "locale.conf",
    "magic",
    "magic.mime",
    "mime.types",
    "perl",
    "ssl/openssl.cnf",
    "pki/tls/openssl.cnf",
    "crypto-policies/back-ends",
)
# With a private root these are replaced by short ones.
ACCOUNTS: Final = ("/etc/passwd", "/etc/group", "/etc/nsswitch.conf")
DEVICES: Final = ("null", "zero", "full", "random", "urandom")
# A working folder "/" does not include these.
_NOT_OF_ROOT: Final = frozenset(
    {
        "boot",
        "dev",
        "etc",
        "home",
        "lost+found",
        "media",
        "mnt",
        "proc",
        "root",
        "run",
        "sys",
        "tmp",
        "var",
    }
)
# File systems that show what the kernel and other programs hold.
_KERNEL_FILES: Final = frozenset(
    {
        "binfmt_misc",
        "bpf",
        "cgroup",
        "cgroup2",
        "configfs",
        "debugfs",
        "devpts",
        "devtmpfs",
        "efivarfs",
        "fusectl",
        "mqueue",
        "nsfs",
        "proc",
        "pstore",
        "rpc_pipefs",
        "securityfs",
        "selinuxfs",
        "sysfs",
        "tracefs",
    }
)
_KERNEL_FOLDERS: Final = ("/proc", "/sys", "/dev")
# The field of a line of mountinfo.
_MOUNT_POINT: Final = 4
_MOST_LINKS: Final = 40
_MOST_ENTRIES: Final = 500_000


class CannotConfine(Exception):
    """The policy cannot be enforced here; the message says why."""


class Trees:
    """The files of a confined program, by real paths."""

    def __init__(self) -> None:
        self.links: dict[str, str] = {}
        """Symbolic links on the way to the trees: path to target."""
        self.readable: set[str] = set()
        self.writable: set[str] = set()
        self.denied: set[str] = set()
        """Files and folders inside the trees that may not be read."""
        self.read_only: set[str] = set()
        """Files and folders inside the writable trees that may not be changed."""
        self.missing: set[str] = set()
        """Paths inside the writable trees that do not exist and may not be created."""
        self.cwd = "/"
        self.scratch = "/"

    def resolve(self, path: str) -> str | None:
        """Return the real path, recording the links on the way; None if nothing is there.

        Behind too many links, or links in a circle, the kernel finds nothing either.
        """
        rest = [part for part in path.split("/") if part not in {"", "."}][::-1]
        real = "/"
        links = 0
        while rest:
            part = rest.pop()
            if part == "..":
                real = os.path.dirname(real)
                continue
            step = os.path.join(real, part)
            try:
                mode = os.lstat(step).st_mode
            except OSError:
                return None
            if not stat.S_ISLNK(mode):
                real = step
                continue
            links += 1
            if links > _MOST_LINKS:
                return None
            target = os.readlink(step)
            self.links[step] = target
            if target.startswith("/"):
                real = "/"
            rest += [part for part in target.split("/") if part not in {"", "."}][::-1]
        return real


def inside(path: str, folder: str) -> bool:
    """Whether a real path is a folder, or below it."""
    return folder in {path, "/"} or path.startswith(f"{folder}/")


def inside_any(path: str, folders: Iterable[str]) -> bool:
    """Whether a real path is one of some folders, or below one."""
    return any(inside(path, folder) for folder in folders)


def parents(path: str, root: str) -> Iterator[str]:
    """Yield the folders strictly between a root and a path below it, and the root at last."""
    while path not in {root, "/"}:
        path = os.path.dirname(path)
        yield path


def system_trees(*, accounts: bool) -> Trees:
    """Return what every confined program may read: programs, libraries, a few settings.

    Args:
        accounts: Whether the system's own list of users is readable.
    """
    trees = Trees()
    _add_system(trees, accounts=accounts)
    return trees


def plan(policy: dict[str, Any], system: Trees) -> Trees:
    """Return the trees of a policy.

    Args:
        policy: The fields of a `Confinement`.
        system: What every program may read.

    Raises:
        CannotConfine: the policy contradicts itself or cannot be enforced.
    """
    trees = Trees()
    trees.links |= system.links
    trees.readable |= system.readable
    trees.cwd = _existing(trees, policy["cwd"])
    trees.scratch = _existing(trees, policy["scratch"])
    opt = {part for path in policy["programs"] for part in _opt_package(path)}
    for path in (*policy["programs"], *opt):
        _add(trees.readable, trees.resolve(path))
    users: set[str] = set()
    for path in (*policy["readable"], *policy["writable"]):
        _add(users, trees.resolve(path))
    if "/" in users:
        users.discard("/")
        users |= {f"/{name}" for name in os.listdir("/") if name not in _NOT_OF_ROOT}
        users = {path for path in users if not os.path.islink(path)}
    for path in users:
        if inside_any(path, _KERNEL_FOLDERS):
            raise CannotConfine(f"{path!r} shows what the kernel and other programs hold")
    trees.readable |= users
    for path in policy["writable"]:
        _add(trees.writable, trees.resolve(path))
    if "/" in trees.writable:
        raise CannotConfine("the root folder cannot be made writable")
    _add_exceptions(trees, policy, system.readable)
    trees.writable.add(trees.scratch)
    trees.readable -= trees.writable
    return trees


def _existing(trees: Trees, path: str) -> str:
    real = trees.resolve(path)
    if real is None or not os.path.isdir(real):
        raise CannotConfine(f"not a directory: {path!r}")
    return real


def _add(paths: set[str], real: str | None) -> None:
    if real is not None:
        paths.add(real)


def _opt_package(path: str) -> list[str]:
    match os.path.normpath(path).split("/"):
        case ["", "opt", package, *_]:
            return [f"/opt/{package}"]
        case _:
            return []


def _add_system(trees: Trees, *, accounts: bool) -> None:
    for path in _SYSTEM:
        _add(trees.readable, trees.resolve(path))
    names = [*_ETC]
    with suppress(OSError):
        # Debian's Python reads its sitecustomize from here.
        names += [name for name in os.listdir("/etc") if name.startswith("python3")]
    for name in names:
        _add(trees.readable, trees.resolve(f"/etc/{name}"))
    if accounts:
        for path in ACCOUNTS:
            _add(trees.readable, trees.resolve(path))


def _add_exceptions(trees: Trees, policy: dict[str, Any], system: set[str]) -> None:
    for path in policy["denied"]:
        _add(trees.denied, _protected(trees, path))
    for path in policy["read_only"]:
        real = _protected(trees, path)
        if real is not None:
            trees.read_only.add(real)
        else:
            _add(trees.missing, _first_missing(trees, path))
    everything = trees.readable | trees.writable
    trees.denied |= set(_kernel_mounts(everything))
    # Users cannot link their files into the folders of the system.
    users = {path for path in everything if not inside_any(path, system)}
    trees.denied |= set(_other_names(trees.denied, users))
    trees.read_only |= set(_other_names(trees.read_only, trees.writable))
    trees.writable = {path for path in trees.writable if not inside_any(path, trees.read_only)}
    if inside_any(trees.scratch, trees.denied):
        raise CannotConfine(f"the scratch folder {trees.scratch!r} is inside a denied folder")
    if inside_any(trees.cwd, trees.denied):
        raise CannotConfine(f"the current folder {trees.cwd!r} is inside a denied folder")
    for name in ("readable", "writable"):
        kept = {path for path in getattr(trees, name) if not inside_any(path, trees.denied)}
        setattr(trees, name, kept)
    everything = trees.readable | trees.writable | {trees.scratch}
    trees.denied = _outermost(path for path in trees.denied if inside_any(path, everything))
    trees.read_only = _outermost(
        path
        for path in trees.read_only
        if inside_any(path, trees.writable) and not inside_any(path, trees.denied)
    )
    trees.missing = {
        path
        for path in trees.missing
        if inside_any(path, trees.writable)
        and not inside_any(path, trees.denied)
        and not inside_any(path, trees.read_only)
    }


def _protected(trees: Trees, path: str) -> str | None:
    """Return the real path of an exception, refusing links that a program could replace."""
    found = Trees()
    real = found.resolve(path)
    for link in found.links:
        if inside_any(link, trees.writable):
            raise CannotConfine(
                f"{path!r} cannot be protected: {link!r} is a symbolic link in a writable folder"
            )
    return real


def _first_missing(trees: Trees, name: str) -> str | None:
    """Return the topmost part of a path that does not exist, below its real parent."""
    path = os.path.normpath(name)
    while path != "/":
        parent: str = os.path.dirname(path)
        real = _protected(trees, parent)
        if real is not None:
            missing = os.path.join(real, os.path.basename(path))
            if os.path.islink(missing):
                raise CannotConfine(f"{missing!r} cannot be protected: it is a broken link")
            return missing if os.path.isdir(real) else None
        path = parent
    return None


def _outermost(paths: Iterable[str]) -> set[str]:
    kept: set[str] = set()
    for path in sorted(paths):
        if not inside_any(path, kept):
            kept.add(path)
    return kept


def _kernel_mounts(trees: set[str]) -> Iterator[str]:
    """Yield mount points below the trees whose files come from the kernel."""
    with open("/proc/self/mountinfo", "rb") as file:
        lines = file.read().split(b"\n")
    for line in lines:
        fields, _, rest = line.partition(b" - ")
        parts = fields.split(b" ")
        if os.fsdecode(rest.split(b" ")[0]) in _KERNEL_FILES:
            path = os.fsdecode(_unescape(parts[_MOUNT_POINT]))
            if path not in trees and inside_any(path, trees) and os.path.lexists(path):
                yield path


def _unescape(text: bytes) -> bytes:
    for code, char in ((b"\\040", b" "), (b"\\011", b"\t"), (b"\\012", b"\n"), (b"\\134", b"\\")):
        text = text.replace(code, char)
    return text


def _other_names(paths: set[str], trees: set[str]) -> Iterator[str]:
    """Yield further names inside the trees of files that have several (hard links).

    Raises:
        CannotConfine: there are too many files to look at.
    """
    budget = [_MOST_ENTRIES]
    shared: dict[tuple[int, int], int] = {}
    for path in paths:
        for name in (path, *_files(path, budget)):
            try:
                status = os.lstat(name)
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                shared[status.st_dev, status.st_ino] = status.st_nlink
    if not shared:
        return
    numbers = {number for _, number in shared}
    for tree in _outermost(trees):
        for entry in _entries(tree, budget):
            if entry.inode() in numbers:
                status = entry.stat(follow_symlinks=False)
                if (status.st_dev, status.st_ino) in shared:
                    yield entry.path


def _files(folder: str, budget: list[int]) -> Iterator[str]:
    if os.path.isdir(folder) and not os.path.islink(folder):
        yield from (entry.path for entry in _entries(folder, budget))


def _entries(folder: str, budget: list[int]) -> Iterator[os.DirEntry[str]]:
    """Yield everything below a folder.

    Raises:
        CannotConfine: there is more than the budget.
    """
    todo = [folder]
    while todo:
        try:
            found = list(os.scandir(todo.pop()))
        except OSError:
            continue
        budget[0] -= len(found)
        if budget[0] < 0:
            raise CannotConfine("too many files to search for other names of denied files")
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                todo.append(entry.path)
            else:
                yield entry
