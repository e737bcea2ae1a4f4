"""Resolves a policy to real paths. Imports only the standard library.

The result contains readable, writable, read-only and denied paths without symbolic links. Mounts and Landlock rules are
made from it without looking up names again, which another process could change.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final

# Programs and libraries of the system, without user data.
_SYSTEM_FOLDERS: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
# Files in /etc that programs need to start and to format text.
_ETC_FILES: Final = (
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
# Replaced by short versions in a private root.
ACCOUNT_FILES: Final = ("/etc/passwd", "/etc/group", "/etc/nsswitch.conf")
DEVICES: Final = ("null", "zero", "full", "random", "urandom")
# Not included if a working directory is "/".
_EXCLUDED_FROM_ROOT: Final = frozenset(
    {"boot", "dev", "etc", "home", "lost+found", "media", "mnt", "proc", "root", "run", "sys", "tmp", "var"}
)
# File systems that expose data of the kernel and of other processes.
_KERNEL_FILE_SYSTEMS: Final = frozenset(
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
MOUNT_POINT: Final = 4
"""Index of the mount point in a line of mountinfo."""
_MAX_LINKS: Final = 40
_MAX_ENTRIES: Final = 500_000


class SandboxSetupError(Exception):
    """The policy cannot be enforced; the message contains the reason."""


class PathPlan:
    """The real paths that a sandboxed program may access."""

    def __init__(self) -> None:
        self.links: dict[str, str] = {}
        """Symbolic links on the way to the trees: path to target."""
        self.readable: set[str] = set()
        self.writable: set[str] = set()
        self.denied: set[str] = set()
        """Files and directories inside the trees that must not be read."""
        self.read_only: set[str] = set()
        """Files and directories inside the writable trees that must not be changed."""
        self.missing: set[str] = set()
        """Missing paths inside the writable trees that must not be created."""
        self.cwd = "/"
        self.scratch = "/"

    def resolve(self, path: str) -> str | None:
        """Return the real path and record the links on the way; None if the path does not exist.

        Too many links, or a loop of links, count as a missing path, as in the kernel.
        """
        remaining = [part for part in path.split("/") if part not in {"", "."}][::-1]
        real = "/"
        links = 0
        while remaining:
            part = remaining.pop()
            if part == "..":
                real = os.path.dirname(real)
                continue
            next_path = os.path.join(real, part)
            try:
                mode = os.lstat(next_path).st_mode
            except OSError:
                return None
            if not stat.S_ISLNK(mode):
                real = next_path
                continue
            links += 1
            if links > _MAX_LINKS:
                return None
            target = os.readlink(next_path)
            self.links[next_path] = target
            if target.startswith("/"):
                real = "/"
            remaining += [part for part in target.split("/") if part not in {"", "."}][::-1]
        return real


def is_inside(path: str, folder: str) -> bool:
    """Whether a real path is a directory or below it."""
    return folder in {path, "/"} or path.startswith(f"{folder}/")


def is_inside_any(path: str, folders: Iterable[str]) -> bool:
    """Whether a real path is one of the directories or below one."""
    return any(is_inside(path, folder) for folder in folders)


def parent_folders(path: str, root: str) -> Iterator[str]:
    """Yield the parents of a path up to and including the root."""
    while path not in {root, os.path.dirname(path)}:
        path = os.path.dirname(path)
        yield path


def system_paths(*, accounts: bool) -> PathPlan:
    """Return the paths that every sandboxed program may read: programs, libraries, a few settings.

    Args:
        accounts: Whether the system's account files are readable.
    """
    plan = PathPlan()
    _add_system_paths(plan, accounts=accounts)
    return plan


def plan_paths(policy: dict[str, Any], system_plan: PathPlan) -> PathPlan:
    """Return the real paths of a policy.

    Args:
        policy: The fields of a `SandboxPolicy`.
        system_plan: The paths that every program may read.

    Raises:
        SandboxSetupError: the policy contradicts itself or cannot be enforced.
    """
    paths = PathPlan()
    paths.links |= system_plan.links
    paths.readable |= system_plan.readable
    paths.cwd = _existing_folder(paths, policy["cwd"])
    paths.scratch = _existing_folder(paths, policy["scratch"])
    opt_folders = {part for path in policy["programs"] for part in _opt_folders(path)}
    for path in (*policy["programs"], *opt_folders):
        _add_path(paths.readable, paths.resolve(path))
    user_paths: set[str] = set()
    for path in (*policy["readable"], *policy["writable"]):
        _add_path(user_paths, paths.resolve(path))
    if "/" in user_paths:
        user_paths.discard("/")
        user_paths |= {f"/{name}" for name in os.listdir("/") if name not in _EXCLUDED_FROM_ROOT}
        user_paths = {path for path in user_paths if not os.path.islink(path)}
    for path in user_paths:
        if is_inside_any(path, _KERNEL_FOLDERS):
            raise SandboxSetupError(f"{path!r} exposes data of the kernel and of other processes")
    paths.readable |= user_paths
    for path in policy["writable"]:
        _add_path(paths.writable, paths.resolve(path))
    if "/" in paths.writable:
        raise SandboxSetupError("the root directory cannot be writable")
    _add_exceptions(paths, policy, system_plan.readable)
    paths.writable.add(paths.scratch)
    paths.readable -= paths.writable
    return paths


def _existing_folder(plan: PathPlan, path: str) -> str:
    real = plan.resolve(path)
    if real is None or not os.path.isdir(real):
        raise SandboxSetupError(f"not a directory: {path!r}")
    return real


def _add_path(paths: set[str], real: str | None) -> None:
    if real is not None:
        paths.add(real)


def _opt_folders(path: str) -> list[str]:
    match os.path.normpath(path).split("/"):
        case ["", "opt", package, *_]:
            return [f"/opt/{package}"]
        case _:
            return []


def _add_system_paths(plan: PathPlan, *, accounts: bool) -> None:
    for path in _SYSTEM_FOLDERS:
        _add_path(plan.readable, plan.resolve(path))
    names = [*_ETC_FILES]
    with suppress(OSError):
        # Debian's Python reads its sitecustomize from here.
        names += [name for name in os.listdir("/etc") if name.startswith("python3")]
    for name in names:
        _add_path(plan.readable, plan.resolve(f"/etc/{name}"))
    if accounts:
        for path in ACCOUNT_FILES:
            _add_path(plan.readable, plan.resolve(path))


def _add_exceptions(plan: PathPlan, policy: dict[str, Any], system_readable: set[str]) -> None:
    for path in policy["denied"]:
        _add_path(plan.denied, _resolve_exception(plan, path))
    for path in policy["read_only"]:
        real = _resolve_exception(plan, path)
        if real is not None:
            plan.read_only.add(real)
        else:
            _add_path(plan.missing, _topmost_missing(plan, path))
    everything = plan.readable | plan.writable
    plan.denied |= set(_kernel_mounts(everything))
    # Users cannot hard link their files into system directories.
    user_paths = {path for path in everything if not is_inside_any(path, system_readable)}
    plan.denied |= set(_hard_links(plan.denied, user_paths))
    plan.read_only |= set(_hard_links(plan.read_only, plan.writable))
    plan.writable = {path for path in plan.writable if not is_inside_any(path, plan.read_only)}
    if is_inside_any(plan.scratch, plan.denied):
        raise SandboxSetupError(f"the scratch directory {plan.scratch!r} is inside a denied directory")
    if is_inside_any(plan.cwd, plan.denied):
        raise SandboxSetupError(f"the current directory {plan.cwd!r} is inside a denied directory")
    for name in ("readable", "writable"):
        remaining = {path for path in getattr(plan, name) if not is_inside_any(path, plan.denied)}
        setattr(plan, name, remaining)
    everything = plan.readable | plan.writable | {plan.scratch}
    plan.denied = _outermost_paths(path for path in plan.denied if is_inside_any(path, everything))
    plan.read_only = _outermost_paths(
        path for path in plan.read_only if is_inside_any(path, plan.writable) and not is_inside_any(path, plan.denied)
    )
    plan.missing = {
        path
        for path in plan.missing
        if is_inside_any(path, plan.writable)
        and not is_inside_any(path, plan.denied)
        and not is_inside_any(path, plan.read_only)
    }


def _resolve_exception(plan: PathPlan, path: str) -> str | None:
    """Return the real path of an exception; raise an error for links that a program could replace."""
    resolved = PathPlan()
    real = resolved.resolve(path)
    for link in resolved.links:
        if is_inside_any(link, plan.writable):
            raise SandboxSetupError(
                f"{path!r} cannot be protected: {link!r} is a symbolic link in a writable directory"
            )
    return real


def _topmost_missing(plan: PathPlan, name: str) -> str | None:
    """Return the topmost missing part of a path, below the real path of its parent."""
    path = os.path.normpath(name)
    while path != "/":
        parent: str = os.path.dirname(path)
        real = _resolve_exception(plan, parent)
        if real is not None:
            missing = os.path.join(real, os.path.basename(path))
            if os.path.islink(missing):
                raise SandboxSetupError(f"{missing!r} cannot be protected: it is a broken link")
            return missing if os.path.isdir(real) else None
        path = parent
    return None


def _outermost_paths(paths: Iterable[str]) -> set[str]:
    outermost: set[str] = set()
    for path in sorted(paths):
        if not is_inside_any(path, outermost):
            outermost.add(path)
    return outermost


def _kernel_mounts(folders: set[str]) -> Iterator[str]:
    """Yield mount points of kernel file systems below the trees."""
    with open("/proc/self/mountinfo", "rb") as file:
        lines = file.read().split(b"\n")
    for line in lines:
        fields, _, rest = line.partition(b" - ")
        parts = fields.split(b" ")
        if os.fsdecode(rest.split(b" ")[0]) in _KERNEL_FILE_SYSTEMS:
            path = os.fsdecode(_unescape_mount(parts[MOUNT_POINT]))
            if path not in folders and is_inside_any(path, folders) and os.path.lexists(path):
                yield path


def _unescape_mount(text: bytes) -> bytes:
    for code, char in ((b"\\040", b" "), (b"\\011", b"\t"), (b"\\012", b"\n"), (b"\\134", b"\\")):
        text = text.replace(code, char)
    return text


def _hard_links(paths: set[str], folders: set[str]) -> Iterator[str]:
    """Yield other hard links inside the trees to some files.

    Raises:
        SandboxSetupError: there are too many files to check.
    """
    budget = [_MAX_ENTRIES]
    links_by_inode: dict[tuple[int, int], int] = {}
    for path in paths:
        for name in (path, *_files(path, budget)):
            try:
                status = os.lstat(name)
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                links_by_inode[status.st_dev, status.st_ino] = status.st_nlink
    if not links_by_inode:
        return
    numbers = {number for _, number in links_by_inode}
    for tree in _outermost_paths(folders):
        for entry in _entries(tree, budget):
            if entry.inode() in numbers:
                status = entry.stat(follow_symlinks=False)
                if (status.st_dev, status.st_ino) in links_by_inode:
                    yield entry.path


def _files(folder: str, budget: list[int]) -> Iterator[str]:
    if os.path.isdir(folder) and not os.path.islink(folder):
        yield from (entry.path for entry in _entries(folder, budget))


def _entries(folder: str, budget: list[int]) -> Iterator[os.DirEntry[str]]:
    """Yield all entries below a directory except directories.

    Raises:
        SandboxSetupError: there are more than the budget.
    """
    pending = [folder]
    while pending:
        try:
            entry_list = list(os.scandir(pending.pop()))
        except OSError:
            continue
        budget[0] -= len(entry_list)
        if budget[0] < 0:
            raise SandboxSetupError("too many files to search for hard links to denied files")
        for entry in entry_list:
            if entry.is_dir(follow_symlinks=False):
                pending.append(entry.path)
            else:
                yield entry
