"""Landlock rules for sandboxed programs. Imports only the standard library."""

import ctypes
import errno
import os
import stat
from collections.abc import Iterator
from typing import Final

from steno.permissions.sandbox import path_plan, syscalls
from steno.permissions.sandbox.path_plan import PathPlan, SandboxSetupError

_CREATE_RULESET: Final = 444
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446
_VERSION_FLAG: Final = 1
_PATH_BENEATH: Final = 1

_EXECUTE: Final = 1 << 0
WRITE_FILE: Final = 1 << 1
_READ_FILE: Final = 1 << 2
READ_DIR: Final = 1 << 3
MAKE_CHAR: Final = 1 << 6
_MAKE_SOCK: Final = 1 << 9
MAKE_BLOCK: Final = 1 << 11
_TRUNCATE: Final = 1 << 14
IOCTL_DEV: Final = 1 << 15
_RESOLVE_UNIX: Final = 1 << 16
READ_RIGHTS: Final = _EXECUTE | _READ_FILE | READ_DIR
FILE_RIGHTS: Final = _EXECUTE | WRITE_FILE | _READ_FILE | _TRUNCATE | IOCTL_DEV
_NEVER_GRANTED: Final = MAKE_CHAR | MAKE_BLOCK | _MAKE_SOCK | IOCTL_DEV | _RESOLVE_UNIX
# Number of file rights by version of the interface; later versions have at least 16.
_RIGHTS_BY_VERSION: Final = {1: 13, 2: 14, 3: 15, 4: 15}
TCP: Final = 0b11
SCOPES: Final = 0b11
_SCOPE_SIGNAL: Final = 0b10
TRUNCATION_VERSION: Final = 3
NETWORK_VERSION: Final = 4
SCOPES_VERSION: Final = 6
_PUBLIC_PROC: Final = ("cpuinfo", "filesystems", "loadavg", "meminfo", "uptime", "version")
# Limit of names for adding Landlock rules on top of mounts that already cover denied paths.
_MAX_NAMES: Final = 2000


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def abi_version() -> int:
    """Return the kernel's Landlock version; 0 if it has none."""
    return max(0, syscalls.syscall(_CREATE_RULESET, None, 0, _VERSION_FLAG))


def file_rights(abi: int) -> int:
    """Return all file rights that a version supports; at most 16."""
    return (1 << _RIGHTS_BY_VERSION.get(abi, 16)) - 1


def create_ruleset(abi: int, *, files: int, network: int, scopes: int) -> int:
    """Return the descriptor of a ruleset that handles some rights; negative if the kernel refuses."""
    rules = _Ruleset(files=files, network=network, scopes=scopes)
    size = 8 if abi < NETWORK_VERSION else 16 if abi < SCOPES_VERSION else 24
    return syscalls.syscall(_CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(size), 0)


def add_path_rule(ruleset: int, descriptor: int, rights: int) -> int:
    """Grant rights below an open file or directory; return nonzero if the kernel refuses."""
    rule = _PathBeneath(allowed=rights, parent=descriptor)
    return syscalls.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)


def restrict_self(ruleset: int) -> int:
    """Apply a ruleset to this process; return nonzero if the kernel refuses."""
    return syscalls.syscall(_RESTRICT_SELF, ruleset, 0)


def _create_ruleset(abi: int) -> tuple[int, int]:
    """Return a new ruleset and the rights it handles, as many as the kernel supports."""
    files = file_rights(abi)
    scopes = SCOPES if abi >= SCOPES_VERSION else 0
    if abi > max(_RIGHTS_BY_VERSION) + 4:
        ruleset = create_ruleset(abi, files=files | _RESOLVE_UNIX, network=TCP, scopes=scopes)
        if ruleset >= 0:
            return ruleset, files | _RESOLVE_UNIX
    ruleset = create_ruleset(abi, files=files, network=TCP, scopes=scopes)
    if ruleset < 0:
        raise SandboxSetupError("the kernel refused a Landlock ruleset")
    return ruleset, files


def limit_signals() -> None:
    """Limit the signals of this process to itself and later children; requires no_new_privs."""
    ruleset = create_ruleset(SCOPES_VERSION, files=0, network=0, scopes=_SCOPE_SIGNAL)
    if ruleset < 0 or restrict_self(ruleset):
        raise SandboxSetupError("the kernel refused to limit signals")
    os.close(ruleset)


class LandlockRuleset:
    """A ruleset that is filled first and applied later."""

    def __init__(self, abi: int) -> None:
        self._ruleset, self._rights = _create_ruleset(abi)
        self._root = os.open("/", os.O_PATH | os.O_CLOEXEC)

    def add_rules(self, plan: PathPlan, *, has_mounts: bool, list_denied: bool) -> None:
        """Add the rules of a path plan.

        Args:
            plan: The real paths.
            has_mounts: Whether mounts already enforce the exceptions inside the trees.
            list_denied: Whether names inside denied directories may be listed.

        Raises:
            SandboxSetupError: the kernel refused a rule.
        """
        for path in plan.readable:
            self._grant_rights(path, READ_RIGHTS, plan, has_mounts=has_mounts, list_denied=list_denied)
        write_rights = self._rights & ~_NEVER_GRANTED
        for path in plan.writable:
            if path != plan.scratch:
                self._grant_rights(path, write_rights, plan, has_mounts=has_mounts, list_denied=list_denied)
        self._add_rule(plan.scratch, write_rights)
        for name in path_plan.DEVICES:
            self._add_rule(f"/dev/{name}", _READ_FILE | WRITE_FILE | _TRUNCATE, may_be_missing=True)
        if has_mounts:
            for path in ("/proc", "/etc"):
                self._add_rule(path, _READ_FILE | READ_DIR, may_be_missing=True)
            self._add_rule("/", READ_DIR)
        else:
            for name in _PUBLIC_PROC:
                self._add_rule(f"/proc/{name}", _READ_FILE, may_be_missing=True)

    def apply(self) -> None:
        """Restrict this process and its children; requires no_new_privs.

        Raises:
            SandboxSetupError: the kernel refused.
        """
        if restrict_self(self._ruleset):
            raise SandboxSetupError("the kernel refused to apply Landlock rules")
        os.close(self._ruleset)
        os.close(self._root)

    def _grant_rights(self, tree: str, rights: int, plan: PathPlan, *, has_mounts: bool, list_denied: bool) -> None:
        """Grant rights over a tree except for denied and read-only paths in it.

        Rights apply to everything below a directory and cannot be revoked there, so every path next to the parents of
        an exception gets its own rule.
        """
        writes = bool(rights & WRITE_FILE)
        exceptions = {path for path in plan.denied if path_plan.is_inside(path, tree)}
        if writes:
            exceptions |= {path for path in plan.read_only | plan.missing if path_plan.is_inside(path, tree)}
        parent_folders = {folder for path in exceptions for folder in path_plan.parent_folders(path, tree)}
        if not exceptions or (has_mounts and (writes or _count_names(parent_folders) > _MAX_NAMES)):
            self._add_rule(tree, rights)
            return
        if not writes and (has_mounts or list_denied):
            listable = parent_folders
        else:
            folders = {path for path in plan.denied if os.path.isdir(path)}
            hidden = {folder for path in folders for folder in path_plan.parent_folders(path, "/")}
            listable = parent_folders - (set() if list_denied else hidden)
        for folder in listable:
            self._add_rule(folder, READ_DIR)
        for path in _paths_beside(parent_folders, exceptions):
            # A path that was removed or cannot be opened cannot be read either.
            self._add_rule(path, rights, may_be_missing=True)
        for path in exceptions & plan.read_only:
            self._add_rule(path, READ_RIGHTS)

    def _add_rule(self, path: str, rights: int, *, may_be_missing: bool = False) -> None:
        try:
            descriptor = syscalls.open_in_root(self._root, path)
        except OSError as error:
            if may_be_missing:
                return
            raise SandboxSetupError(f"cannot open {path!r}: {error.strerror}") from error
        try:
            mode = os.fstat(descriptor).st_mode
            allowed = rights & self._rights & (-1 if stat.S_ISDIR(mode) else FILE_RIGHTS)
            if add_path_rule(self._ruleset, descriptor, allowed):
                number = syscalls.last_error()
                if may_be_missing and number in {errno.EBADFD, errno.EINVAL}:
                    return
                raise SandboxSetupError(f"no Landlock rule for {path!r}: {os.strerror(number)}")
        finally:
            os.close(descriptor)


def _count_names(folders: set[str]) -> int:
    return sum(len(os.listdir(folder)) for folder in folders)


def _paths_beside(folders: set[str], exceptions: set[str]) -> Iterator[str]:
    """Yield the paths in some directories except those directories and the exceptions."""
    for folder in folders:
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for name in names:
            path = os.path.join(folder, name)
            if path not in folders and path not in exceptions:
                yield path
