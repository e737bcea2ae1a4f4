"""Landlock rules for confined programs. Imports nothing outside the standard library."""

import ctypes
import errno
import os
import stat
from collections.abc import Iterator
from typing import Final

from steno.guard.confinement import kernel, trees
from steno.guard.confinement.trees import CannotConfine, Trees

_CREATE: Final = 444
_ADD: Final = 445
_RESTRICT: Final = 446
_VERSION: Final = 1
_BENEATH: Final = 1

_EXECUTE: Final = 1 << 0
_WRITE_FILE: Final = 1 << 1
_READ_FILE: Final = 1 << 2
_READ_DIR: Final = 1 << 3
_MAKE_CHAR: Final = 1 << 6
_MAKE_SOCK: Final = 1 << 9
_MAKE_BLOCK: Final = 1 << 11
_TRUNCATE: Final = 1 << 14
_IOCTL_DEV: Final = 1 << 15
_RESOLVE_UNIX: Final = 1 << 16
_READ: Final = _EXECUTE | _READ_FILE | _READ_DIR
_ON_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_NEVER: Final = _MAKE_CHAR | _MAKE_BLOCK | _MAKE_SOCK | _IOCTL_DEV | _RESOLVE_UNIX
# How many rights over files each version of the interface has; later ones have 16 at least.
_RIGHTS: Final = {1: 13, 2: 14, 3: 15, 4: 15}
_TCP: Final = 0b11
_SCOPES: Final = 0b11
_SCOPE_SIGNAL: Final = 0b10
TRUNCATION_FROM: Final = 3
NETWORK_FROM: Final = 4
SCOPES_FROM: Final = 6
_PUBLIC_PROC: Final = ("cpuinfo", "filesystems", "loadavg", "meminfo", "uptime", "version")
# Where mounts cover denied paths, this many names beside them are worth a second wall.
_MOST_NAMES: Final = 2000


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("files", ctypes.c_uint64),
        ("network", ctypes.c_uint64),
        ("scopes", ctypes.c_uint64),
    )


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """Return the version of the kernel's Landlock interface; 0 when it has none."""
    return max(0, kernel.syscall(_CREATE, None, 0, _VERSION))


def _create(abi: int, files: int, scopes: int) -> int:
    rules = _Ruleset(files=files, network=_TCP if files else 0, scopes=scopes)
    size = 8 if abi < NETWORK_FROM else 16 if abi < SCOPES_FROM else 24
    return kernel.syscall(_CREATE, ctypes.byref(rules), ctypes.c_size_t(size), 0)


def _handled(abi: int) -> tuple[int, int]:
    """Return a new ruleset and the rights it handles, with the newest that this kernel knows."""
    files = (1 << _RIGHTS.get(abi, 16)) - 1
    scopes = _SCOPES if abi >= SCOPES_FROM else 0
    if abi > max(_RIGHTS) + 4:
        ruleset = _create(abi, files | _RESOLVE_UNIX, scopes)
        if ruleset >= 0:
            return ruleset, files | _RESOLVE_UNIX
    ruleset = _create(abi, files, scopes)
    if ruleset < 0:
        raise CannotConfine("the kernel refused a Landlock ruleset")
    return ruleset, files


def isolate_signals() -> None:
    """Limit the signals of this process to itself and its later children; needs no_new_privs."""
    ruleset = _create(SCOPES_FROM, 0, _SCOPE_SIGNAL)
    if ruleset < 0 or kernel.syscall(_RESTRICT, ruleset, 0):
        raise CannotConfine("the kernel refused to limit signals")
    os.close(ruleset)


class Rules:
    """A ruleset that is filled first and applied later."""

    def __init__(self, abi: int) -> None:
        self._ruleset, self._rights = _handled(abi)
        self._root = os.open("/", os.O_PATH | os.O_CLOEXEC)

    def fill(self, wanted: Trees, *, mounted: bool, list_denied: bool) -> None:
        """Add the rules for some trees.

        Args:
            wanted: The trees, by real paths.
            mounted: Whether mounts already hold the exceptions of the trees.
            list_denied: Whether names inside of denied folders may be listed.

        Raises:
            CannotConfine: a rule was refused.
        """
        for path in wanted.readable:
            self._grant(path, _READ, wanted, mounted=mounted, list_denied=list_denied)
        writing = self._rights & ~_NEVER
        for path in wanted.writable:
            if path != wanted.scratch:
                self._grant(path, writing, wanted, mounted=mounted, list_denied=list_denied)
        self._add(wanted.scratch, writing)
        for name in trees.DEVICES:
            self._add(f"/dev/{name}", _READ_FILE | _WRITE_FILE | _TRUNCATE, missing=True)
        if mounted:
            for path in ("/proc", "/etc"):
                self._add(path, _READ_FILE | _READ_DIR, missing=True)
            self._add("/", _READ_DIR)
        else:
            for name in _PUBLIC_PROC:
                self._add(f"/proc/{name}", _READ_FILE, missing=True)

    def apply(self) -> None:
        """Restrict this process and all it starts; needs no_new_privs.

        Raises:
            CannotConfine: the kernel refused.
        """
        if kernel.syscall(_RESTRICT, self._ruleset, 0):
            raise CannotConfine("the kernel refused to apply Landlock rules")
        os.close(self._ruleset)
        os.close(self._root)

    def _grant(
        self, tree: str, rights: int, wanted: Trees, *, mounted: bool, list_denied: bool
    ) -> None:
        """Grant rights over a tree except for what is denied or read-only in it.

        Rights hold for everything below a folder and cannot be taken back there, so everything
        beside the way to an exception is named.
        """
        writes = bool(rights & _WRITE_FILE)
        exceptions = {path for path in wanted.denied if trees.inside(path, tree)}
        if writes:
            exceptions |= {
                path for path in wanted.read_only | wanted.missing if trees.inside(path, tree)
            }
        above = {folder for path in exceptions for folder in trees.parents(path, tree)}
        if not exceptions or (mounted and (writes or _names(above) > _MOST_NAMES)):
            self._add(tree, rights)
            return
        if not writes and (mounted or list_denied):
            listable = above
        else:
            folders = {path for path in wanted.denied if os.path.isdir(path)}
            hidden = {folder for path in folders for folder in trees.parents(path, "/")}
            listable = above - (set() if list_denied else hidden)
        for folder in listable:
            self._add(folder, _READ_DIR)
        for path in _beside(above, exceptions):
            # What was removed meanwhile, or cannot be opened, cannot be read either.
            self._add(path, rights, missing=True)
        for path in exceptions & wanted.read_only:
            self._add(path, _READ)

    def _add(self, path: str, rights: int, *, missing: bool = False) -> None:
        try:
            descriptor = kernel.open_in_root(self._root, path)
        except OSError as error:
            if missing:
                return
            raise CannotConfine(f"cannot open {path!r}: {error.strerror}") from error
        try:
            mode = os.fstat(descriptor).st_mode
            allowed = rights & self._rights & (-1 if stat.S_ISDIR(mode) else _ON_FILES)
            rule = _Beneath(allowed=allowed, parent=descriptor)
            if kernel.syscall(_ADD, self._ruleset, _BENEATH, ctypes.byref(rule), 0):
                number = kernel.last_error()
                if missing and number in {errno.EBADFD, errno.EINVAL}:
                    return
                raise CannotConfine(f"no Landlock rule for {path!r}: {os.strerror(number)}")
        finally:
            os.close(descriptor)


def _names(folders: set[str]) -> int:
    return sum(len(os.listdir(folder)) for folder in folders)


def _beside(above: set[str], exceptions: set[str]) -> Iterator[str]:
    """Yield everything in some folders but those folders and the exceptions."""
    for folder in above:
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for name in names:
            path = os.path.join(folder, name)
            if path not in above and path not in exceptions:
                yield path
