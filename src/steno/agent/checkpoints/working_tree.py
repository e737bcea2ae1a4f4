"""Snapshots of the working tree, and the changes between two snapshots.

tree = WorkingTree(project, home=steno_home())
before = tree.scan()               # None if the tree is too large: see `tree.too_big`
…                                  # a command runs
for change in changes_between(before, tree.scan()):
    tree.content(change.before.digest)      # the content before the change

Contents are stored compressed in steno's home directory, so that the state before a command is available
after it. A file with an unchanged stamp is not read again. Files ignored by git are skipped.
"""

import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final, Literal

import msgspec

from steno.agent.checkpoints.backup_store import (
    MODE_BITS,
    FileEntry,
    content_digest,
    file_entry,
    is_encodable,
    read_chunks,
)
from steno.errors import Unreadable
from steno.store.atomic import TEMP_SUFFIX, make_private_folder, write_atomic
from steno.store.discovery import list_entries

IGNORE_FILE: Final = ".gitignore"
"""The name of git's ignore files."""
_MAX_IGNORE_BYTES: Final = 1 << 20
_MAX_CACHED: Final = 10_000


class IgnoreRules:
    """The rules of the `.gitignore` files in a directory and its parents."""

    def __init__(self, parent: "IgnoreRules | None", levels: tuple[tuple[str, Any], ...], stamp: object) -> None:
        self.parent = parent
        self.levels = levels
        self.stamp = stamp
        # Every scan asks for the same names, and matching is slow.
        self._cache: dict[str, bool] = {}

    def is_ignored(self, path: str, *, is_folder: bool) -> bool:
        """Return whether a file or directory is ignored."""
        if not self.levels:
            return False
        key = path + "/" * is_folder
        if key not in self._cache:
            if len(self._cache) >= _MAX_CACHED:
                self._cache.clear()
            self._cache[key] = self._match(key)
        return self._cache[key]

    def _match(self, path: str) -> bool:
        for base, spec in reversed(self.levels):
            included = spec.check_file(path[len(base) :].lstrip("/")).include
            if included is not None:
                return bool(included)
        return False


def read_ignore_file(folder: str) -> Any:
    """Return the ignore rules of a directory; None without a readable file."""
    from pathspec import GitIgnoreSpec

    try:
        data = b"".join(read_chunks(os.path.join(folder, IGNORE_FILE)))[:_MAX_IGNORE_BYTES]
        return GitIgnoreSpec.from_lines(data.decode("utf-8", "replace").splitlines())
    except (OSError, ValueError):
        return None


def parent_ignore_rules(project: str) -> "IgnoreRules | None":
    """Return the rules of the directories between the repository root and the project."""
    parents: list[str] = []
    folder = project
    while not os.path.lexists(os.path.join(folder, ".git")):
        folder = os.path.dirname(folder)
        if folder == os.path.dirname(folder):
            return None
        parents.append(folder)
    specs = [(folder, read_ignore_file(folder)) for folder in reversed(parents)]
    rules = IgnoreRules(None, tuple((folder, spec) for folder, spec in specs if spec is not None), None)
    # A project that is itself ignored is scanned anyway.
    return None if rules.is_ignored(project, is_folder=True) else rules


_MAX_UNUSED_SECONDS: Final = 7 * 24 * 3600


class ContentStore:
    """File contents by digest, and the index of the last scan. A cache that can be rebuilt."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._objects = os.path.join(folder, "objects")
        self._index = os.path.join(folder, "index")
        self._stored: set[str] = set()
        self._compress: Callable[[bytes], bytes] | None = None

    def put(self, digest: str, data: bytes) -> None:
        """Store the content of a file."""
        if digest in self._stored:
            return
        path = self._path(digest)
        if not os.path.exists(path):
            self._write(path, data)
        self._stored.add(digest)

    def get(self, digest: str) -> bytes:
        """Return the stored content with a digest.

        Raises:
            Unreadable: The content is missing or damaged.
        """
        from zstandard import ZstdDecompressor, ZstdError

        path = self._path(digest)
        try:
            data = ZstdDecompressor().decompress(b"".join(read_chunks(path)))
        except (OSError, ZstdError) as error:
            raise Unreadable(f"the stored content is missing: {path}") from error
        if content_digest(data) != digest:
            raise Unreadable(f"the stored content is damaged: {path}")
        return data

    def load_index(self) -> dict[str, FileEntry]:
        """Return the entries of the last scan whose contents are stored; remove old contents."""
        from zstandard import ZstdDecompressor, ZstdError

        try:
            data = ZstdDecompressor().decompress(b"".join(read_chunks(self._index)))
            files = msgspec.msgpack.decode(data, type=dict[str, FileEntry])
        except (OSError, ZstdError, msgspec.DecodeError):
            files = {}
        indexed_digests = {entry.digest for entry in files.values()}
        self._stored = set(self._sweep(indexed_digests))
        return {path: look for path, look in files.items() if look.digest in self._stored}

    def save_index(self, files: dict[str, FileEntry]) -> None:
        """Save the entries of a scan."""
        self._write(self._index, msgspec.msgpack.encode(files))

    def _sweep(self, indexed_digests: set[str]) -> Iterator[str]:
        """Yield the stored digests; remove contents that were not used for a long time."""
        cutoff = time.time() - _MAX_UNUSED_SECONDS
        for folder in list_entries(self._objects):
            for entry in list_entries(folder.path):
                digest = folder.name + entry.name
                with suppress(OSError):
                    if digest not in indexed_digests and entry.stat().st_mtime < cutoff:
                        os.unlink(entry.path)
                        continue
                    yield digest

    def _path(self, digest: str) -> str:
        return os.path.join(self._objects, digest[:2], digest[2:])

    def _write(self, path: str, data: bytes) -> None:
        if self._compress is None:
            from zstandard import ZstdCompressor

            self._compress = ZstdCompressor(level=1).compress
        make_private_folder(os.path.dirname(path))
        # Not flushed, because there are many files; damage is detected when a content is read.
        write_atomic(path, (self._compress(data),), sync=False)


_STORE_FOLDER: Final = "checkpoints"
_SKIPPED_NAMES: Final = frozenset(
    {
        *(".git", ".hg", ".svn", ".jj", "node_modules", "__pycache__", ".venv", "venv"),
        *(".tox", ".nox", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis"),
    }
)
_VENV_MARKER: Final = "pyvenv.cfg"


class TreeLimits(msgspec.Struct, frozen=True):
    """Limits of a scan."""

    files: int = 20_000
    total_bytes: int = 200_000_000
    """Total size of all files in bytes."""
    file_bytes: int = 5_000_000
    """Size of one file in bytes; the content of a larger file is not stored."""
    entries: int = 200_000
    """Directory entries, including ignored ones."""


class TreeSnapshot(msgspec.Struct, frozen=True):
    """Files, links and directories of a working tree at one moment, by relative path."""

    files: dict[str, FileEntry]
    folders: frozenset[str] = frozenset()


class FileChange(msgspec.Struct, frozen=True):
    """A changed file."""

    path: str
    """Path relative to the project."""
    kind: Literal["created", "modified", "deleted"]
    before: FileEntry | None
    after: FileEntry | None


def changes_between(before: TreeSnapshot, after: TreeSnapshot) -> list[FileChange]:
    """Return the changed files; a file with only a new timestamp is not included."""
    changes: list[FileChange] = []
    for path, new_entry in after.files.items():
        old_entry = before.files.get(path)
        if old_entry is None:
            changes.append(FileChange(path, "created", None, new_entry))
        elif old_entry is not new_entry and not _is_unchanged(old_entry, new_entry):
            changes.append(FileChange(path, "modified", old_entry, new_entry))
    changes += [FileChange(path, "deleted", old, None) for path, old in before.files.items() if path not in after.files]
    return sorted(changes, key=lambda change: change.path)


def _is_unchanged(old_entry: FileEntry, new_entry: FileEntry) -> bool:
    bits = stat.S_IFMT(old_entry.mode) | MODE_BITS
    if old_entry.mode & bits != new_entry.mode & bits:
        return False
    if old_entry.digest and new_entry.digest:
        return old_entry.digest == new_entry.digest
    return old_entry.digest == new_entry.digest and old_entry.stamp == new_entry.stamp


def tree_store_folder(home: str, project: str) -> str:
    """Return the directory in which steno stores the contents of a project."""
    return os.path.join(home, _STORE_FOLDER, content_digest(os.fsencode(project))[:16])


class WorkingTree:
    """A working tree that is scanned repeatedly."""

    def __init__(
        self, project: str, *, home: str, skip: tuple[str, ...] = (), limits: TreeLimits | None = None
    ) -> None:
        self.project = os.path.realpath(project)
        self.folder = tree_store_folder(home, self.project)
        self.too_big = ""
        """Reason why the tree is no longer scanned, as a message for the user."""
        self._limits = limits or TreeLimits()
        self._skip = {os.path.realpath(path) for path in (*skip, home)}
        self._store = ContentStore(self.folder)
        self._last_entries: dict[str, FileEntry] | None = None
        self._ignore_rules: dict[str, IgnoreRules] = {}

    def scan(self) -> TreeSnapshot | None:
        """Scan the tree and store new contents; return None if it is too large.

        Raises:
            OSError: The store cannot be written.
        """
        if self.too_big:
            return None
        started_at = time.time_ns()
        walk = _TreeWalk(self.project, self._limits, self._skip, self._ignore_rules)
        walk.walk()
        self._ignore_rules = walk.ignore_rules
        if walk.too_big:
            self.too_big, self._last_entries, self._ignore_rules = walk.too_big, None, {}
            return None
        if self._last_entries is None:
            self._last_entries = self._store.load_index()
        last_entries = self._last_entries
        files = {
            path: self._entry_for(path, status, last_entries.get(path), started_at)
            for path, status in walk.files.items()
        }
        if any(files.get(path) is not entry for path, entry in last_entries.items()) or len(files) > len(last_entries):
            self._store.save_index(files)
        self._last_entries = files
        return TreeSnapshot(files, frozenset(walk.folders))

    def content(self, digest: str) -> bytes:
        """Return the content of a file.

        Raises:
            Unreadable: The content is missing or damaged.
        """
        return self._store.get(digest)

    def _entry_for(self, path: str, status: os.stat_result, last_entry: FileEntry | None, started_at: int) -> FileEntry:
        entry = file_entry(status, started_at=started_at)
        if last_entry is not None and not last_entry.is_recent and last_entry.stamp == entry.stamp:
            return last_entry
        if stat.S_ISREG(status.st_mode) and status.st_size > self._limits.file_bytes:
            return entry
        full_path = os.path.join(self.project, path)
        try:
            data = self._read(full_path, status)
        except OSError:
            return entry
        digest = content_digest(data) if data is not None else ""
        if data is not None:
            self._store.put(digest, data)
        new_entry = file_entry(status, digest, started_at=started_at)
        return last_entry if last_entry is not None and last_entry == new_entry else new_entry

    def _read(self, path: str, status: os.stat_result) -> bytes | None:
        if stat.S_ISLNK(status.st_mode):
            return os.fsencode(os.readlink(path))
        data = bytearray()
        for chunk in read_chunks(path):
            data += chunk
            if len(data) > self._limits.file_bytes:
                return None
        return bytes(data)


class _TreeWalk:
    """One scan of a tree."""

    def __init__(self, project: str, limits: TreeLimits, skip: set[str], known_rules: dict[str, IgnoreRules]) -> None:
        self.files: dict[str, os.stat_result] = {}
        self.folders: set[str] = set()
        self.ignore_rules: dict[str, IgnoreRules] = {}
        self.too_big = ""
        self._project = project
        self._limits = limits
        self._skip = skip
        self._known_rules = known_rules
        self._size = 0
        self._entries = 0

    def walk(self) -> None:
        """Collect all files, or stop at a limit."""
        parent_rules = self._known_rules.get("") or parent_ignore_rules(self._project)
        if parent_rules is not None:
            self.ignore_rules[""] = parent_rules
        stack = [(self._project, parent_rules)]
        while stack and not self.too_big:
            folder, rules = stack.pop()
            entries = list_entries(folder)
            names = {entry.name: entry for entry in entries}
            if _VENV_MARKER in names and folder != self._project:
                continue
            if folder != self._project:
                self.folders.add(self._relative_path(folder))
            rules = self._ignore_rules_in(folder, rules, names.get(IGNORE_FILE), is_repository=".git" in names)
            stack += [(item.path, rules) for item in entries if self._add_entry(item, rules)]
            self._entries += len(entries)
            self._check_limits()

    def _add_entry(self, entry: os.DirEntry[str], rules: IgnoreRules) -> bool:
        """Add a file; return whether the entry is a directory to walk."""
        if entry.name in _SKIPPED_NAMES or entry.name.endswith(TEMP_SUFFIX) or not is_encodable(entry.path):
            return False
        try:
            is_folder = entry.is_dir(follow_symlinks=False)
            if rules.is_ignored(entry.path, is_folder=is_folder) or entry.path in self._skip:
                return False
            if is_folder:
                return True
            status = entry.stat(follow_symlinks=False)
        except OSError:
            # The entry was deleted during the scan.
            return False
        if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
            self.files[self._relative_path(entry.path)] = status
            self._size += status.st_size if status.st_size <= self._limits.file_bytes else 0
        return False

    def _ignore_rules_in(
        self,
        folder: str,
        parent_rules: IgnoreRules | None,
        ignore_entry: os.DirEntry[str] | None,
        *,
        is_repository: bool,
    ) -> IgnoreRules:
        # Rules above a repository do not apply inside it.
        parent_rules = None if is_repository else parent_rules
        stamp = None
        if ignore_entry is not None:
            with suppress(OSError):
                status = ignore_entry.stat()
                stamp = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
        rules = self._known_rules.get(folder)
        if rules is None or rules.parent is not parent_rules or rules.stamp != stamp:
            levels = parent_rules.levels if parent_rules is not None else ()
            spec = read_ignore_file(folder) if ignore_entry is not None else None
            rules = IgnoreRules(parent_rules, levels + (((folder, spec),) if spec is not None else ()), stamp)
        self.ignore_rules[folder] = rules
        return rules

    def _check_limits(self) -> None:
        limits = self._limits
        if len(self.files) > limits.files:
            excess = f"more than {limits.files:,} files"
        elif self._size > limits.total_bytes:
            excess = f"more than {limits.total_bytes // 1_000_000:,} MB"
        elif self._entries > limits.entries:
            excess = f"more than {limits.entries:,} directory entries"
        else:
            return
        self.too_big = (
            f"{self._project} is too large to track changes made by commands ({excess}). Only "
            "files changed by tools can be restored."
        )

    def _relative_path(self, path: str) -> str:
        return path[len(self._project.rstrip(os.sep)) + 1 :]
