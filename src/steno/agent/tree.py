"""What is in a working tree, and what has changed in it: found by looking, whoever changed it.

tree = Tree(project, home=steno_home())
before = tree.scan()               # None when there is too much to look at: `tree.too_big` says so
…                                  # a command runs
for change in changed(before, tree.scan()):
    tree.content(change.before.digest)      # what was in a file that is no longer so

What was seen is kept, compressed, in a store of our own outside of the project, so that it is
known after a command what was there before it. A file that looks as it did is not read again.
"""

import os
import stat
import time
from contextlib import suppress
from typing import Final, Literal

import msgspec

from steno.agent.file_paths import entries_in, is_speakable
from steno.agent.file_putting import SCRATCH
from steno.agent.file_states import BITS, Look, digest_of, look_of, pieces
from steno.agent.tree_ignore import IGNORE, Rules, read_rules, rules_above
from steno.agent.tree_store import Store

__all__ = ["Change", "Limits", "Scan", "Tree", "changed", "kept_folder"]

_FILES: Final = "checkpoints"
_SKIPPED: Final = frozenset(
    {
        *(".git", ".hg", ".svn", ".jj", "node_modules", "__pycache__", ".venv", "venv"),
        *(".tox", ".nox", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis"),
    }
)
_VIRTUAL: Final = "pyvenv.cfg"


class Limits(msgspec.Struct, frozen=True):
    """How much is looked at."""

    files: int = 20_000
    size: int = 200_000_000
    """Bytes in all files together."""
    file: int = 5_000_000
    """Bytes of one file: what is bigger is seen, but not kept."""
    entries: int = 200_000
    """Names in all folders, those that are ignored too."""


class Scan(msgspec.Struct, frozen=True):
    """A working tree at a moment: its files and links by their path in it, and its folders."""

    files: dict[str, Look]
    folders: frozenset[str] = frozenset()


class Change(msgspec.Struct, frozen=True):
    """A file that is another than it was."""

    path: str
    """As seen from the project."""
    kind: Literal["created", "modified", "deleted"]
    before: Look | None
    after: Look | None


def changed(before: Scan, after: Scan) -> list[Change]:
    """Return what is another in the second scan; a file that was only touched is not."""
    found: list[Change] = []
    for path, now in after.files.items():
        old = before.files.get(path)
        if old is None:
            found.append(Change(path, "created", None, now))
        elif old is not now and not _alike(old, now):
            found.append(Change(path, "modified", old, now))
    found += [
        Change(path, "deleted", old, None)
        for path, old in before.files.items()
        if path not in after.files
    ]
    return sorted(found, key=lambda change: change.path)


def _alike(one: Look, other: Look) -> bool:
    bits = stat.S_IFMT(one.mode) | BITS
    if one.mode & bits != other.mode & bits:
        return False
    if one.digest and other.digest:
        return one.digest == other.digest
    return one.digest == other.digest and one.stamp == other.stamp


def kept_folder(home: str, project: str) -> str:
    """Return where steno keeps what it knows of a project's files."""
    return os.path.join(home, _FILES, digest_of(os.fsencode(project))[:16])


class Tree:
    """A working tree that is looked at again and again."""

    def __init__(
        self, project: str, *, home: str, skip: tuple[str, ...] = (), limits: Limits | None = None
    ) -> None:
        self.project = os.path.realpath(project)
        self.folder = kept_folder(home, self.project)
        self.too_big = ""
        """Why it is no longer looked at, in plain words."""
        self._limits = limits or Limits()
        self._skip = {os.path.realpath(path) for path in (*skip, home)}
        self._store = Store(self.folder)
        self._last: dict[str, Look] | None = None
        self._rules: dict[str, Rules] = {}

    def scan(self) -> Scan | None:
        """Look at everything; what is new is kept. None when there is too much of it.

        Raises:
            OSError: the store cannot be written.
        """
        if self.too_big:
            return None
        began = time.time_ns()
        walk = _Walk(self.project, self._limits, self._skip, self._rules)
        walk.run()
        self._rules = walk.rules
        if walk.too_big:
            self.too_big, self._last, self._rules = walk.too_big, None, {}
            return None
        if self._last is None:
            self._last = self._store.remembered()
        last = self._last
        files = {
            path: self._seen(path, status, last.get(path), began)
            for path, status in walk.files.items()
        }
        if any(files.get(path) is not look for path, look in last.items()) or len(files) > len(
            last
        ):
            self._store.remember(files)
        self._last = files
        return Scan(files, frozenset(walk.folders))

    def content(self, digest: str) -> bytes:
        """Return what was in a file.

        Raises:
            Unreadable: it is not in the store, or not whole.
        """
        return self._store.get(digest)

    def _seen(self, path: str, status: os.stat_result, last: Look | None, began: int) -> Look:
        look = look_of(status, began=began)
        if last is not None and not last.young and last.stamp == look.stamp:
            return last
        if stat.S_ISREG(status.st_mode) and status.st_size > self._limits.file:
            return look
        full = os.path.join(self.project, path)
        try:
            data = self._read(full, status)
        except OSError:
            return look
        digest = digest_of(data) if data is not None else ""
        if data is not None:
            self._store.put(digest, data)
        found = look_of(status, digest, began=began)
        return last if last is not None and last == found else found

    def _read(self, path: str, status: os.stat_result) -> bytes | None:
        if stat.S_ISLNK(status.st_mode):
            return os.fsencode(os.readlink(path))
        data = bytearray()
        for piece in pieces(path):
            data += piece
            if len(data) > self._limits.file:
                return None
        return bytes(data)


class _Walk:
    """One walk through a tree."""

    def __init__(
        self, project: str, limits: Limits, skip: set[str], known: dict[str, Rules]
    ) -> None:
        self.files: dict[str, os.stat_result] = {}
        self.folders: set[str] = set()
        self.rules: dict[str, Rules] = {}
        self.too_big = ""
        self._project = project
        self._limits = limits
        self._skip = skip
        self._known = known
        self._size = 0
        self._entries = 0

    def run(self) -> None:
        """Find all files, or that there are too many."""
        above = self._known.get("") or rules_above(self._project)
        if above is not None:
            self.rules[""] = above
        stack = [(self._project, above)]
        while stack and not self.too_big:
            folder, rules = stack.pop()
            entries = entries_in(folder)
            names = {entry.name: entry for entry in entries}
            if _VIRTUAL in names and folder != self._project:
                continue
            if folder != self._project:
                self.folders.add(self._inside(folder))
            rules = self._rules_in(folder, rules, names.get(IGNORE), top=".git" in names)
            stack += [(each.path, rules) for each in entries if self._is_folder(each, rules)]
            self._entries += len(entries)
            self._measure()

    def _is_folder(self, entry: os.DirEntry[str], rules: Rules) -> bool:
        """Take in a file; of a folder, return that it is to be walked."""
        if entry.name in _SKIPPED or entry.name.endswith(SCRATCH) or not is_speakable(entry.path):
            return False
        try:
            is_folder = entry.is_dir(follow_symlinks=False)
            if rules.leaves_out(entry.path, is_folder=is_folder) or entry.path in self._skip:
                return False
            if is_folder:
                return True
            status = entry.stat(follow_symlinks=False)
        except OSError:
            # It was there a moment ago.
            return False
        if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
            self.files[self._inside(entry.path)] = status
            self._size += status.st_size if status.st_size <= self._limits.file else 0
        return False

    def _rules_in(
        self, folder: str, above: Rules | None, ignore: os.DirEntry[str] | None, *, top: bool
    ) -> Rules:
        # What lies above a repository does not count in it.
        above = None if top else above
        stamp = None
        if ignore is not None:
            with suppress(OSError):
                status = ignore.stat()
                stamp = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
        rules = self._known.get(folder)
        if rules is None or rules.above is not above or rules.stamp != stamp:
            levels = above.levels if above is not None else ()
            spec = read_rules(folder) if ignore is not None else None
            rules = Rules(above, levels + (((folder, spec),) if spec is not None else ()), stamp)
        self.rules[folder] = rules
        return rules

    def _measure(self) -> None:
        limits = self._limits
        if len(self.files) > limits.files:
            much = f"more than {limits.files:,} files"
        elif self._size > limits.size:
            much = f"more than {limits.size // 1_000_000:,} MB"
        elif self._entries > limits.entries:
            much = f"more than {limits.entries:,} names"
        else:
            return
        self.too_big = (
            f"There is too much in {self._project} to watch what commands change ({much}): only "
            "files that tools have changed can be brought back."
        )

    def _inside(self, path: str) -> str:
        return path[len(self._project.rstrip(os.sep)) + 1 :]
