"""Finds files that changed since the last sync with a walk that stats every file.

Only new and modified files are opened, for the few bytes that distinguish an append from a rewrite.
"""

import os
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, NamedTuple
from zlib import crc32

import msgspec

from steno.errors import Unreadable
from steno.format.paths import PathInfo
from steno.store.discovery import DiscoveredFile, Problem, TranscriptWalk, is_below

_EDGE_SIZE: Final = 4_096


class ScanTask(msgspec.Struct):
    """A file to read or update in the index."""

    path: str
    root: str
    place: PathInfo
    size: int
    mtime: int
    device: int
    inode: int
    file: int = 0
    """File ID; 0 for a new file."""
    start: int = 0
    state: bytes = b""
    reread: bool = False
    """Whether the file is indexed but was rewritten."""
    gone: bool = False
    """Whether the file exists only in the archive."""

    @property
    def discovered_file(self) -> DiscoveredFile:
        """The file in the form that discovery returns."""
        return DiscoveredFile(self.path, self.size, self.mtime, self.place, self.root)


class ScanPlan(msgspec.Struct):
    """The work of a sync."""

    tasks: list[ScanTask]
    """Files with bytes to read."""
    touched: list[ScanTask]
    """Files without bytes to read whose time or path has changed."""
    gone: list[int]
    seen: int
    problems: list[Problem]
    archive: str = ""
    """Stamp of the archive, if it has changed."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing has changed."""
        return not (self.tasks or self.touched or self.gone)

    @property
    def size(self) -> int:
        """Number of bytes to read."""
        return sum(task.size - task.start for task in self.tasks)


class _IndexedFile(NamedTuple):
    path: str | bytes
    id: int
    size: int
    mtime: int
    device: int
    inode: int
    gone: int | None


def scan_changes(connection: sqlite3.Connection, roots: Sequence[str]) -> ScanPlan:
    """Return all differences between the files and the index."""
    scanner = _Scanner(connection)
    files: dict[str, DiscoveredFile] = {}
    for root in roots:
        walk = TranscriptWalk(os.path.abspath(root), scanner.problems, agents=True, is_known=scanner.is_unchanged)
        for file in walk.run():
            files.setdefault(file.path, file)
    absolute_roots = tuple(os.path.abspath(root) for root in roots)
    plan = scanner.make_plan(files.values(), absolute_roots)
    scanner.add_archived(plan, files.values(), absolute_roots)
    return plan


class _Scanner:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self.problems: list[Problem] = []
        self._connection = connection
        # Rows with only the compared columns, because most files are unchanged.
        rows = connection.execute("SELECT path, size, mtime, inode FROM files WHERE gone IS NULL")
        self._indexed: dict[str, tuple[Any, ...]] = {path_from_column(row[0]): row for row in rows}
        self._seen: set[str] = set()
        self._unchanged = 0

    def is_unchanged(self, entry: os.DirEntry[str]) -> bool:
        """Return whether a file is unchanged; called for every file in every sync."""
        path = entry.path
        row = self._indexed.get(path)
        if row is None:
            return False
        try:
            status = entry.stat()
        except OSError:
            return False
        self._seen.add(path)
        _, size, mtime, inode = row
        if status.st_size != size or status.st_mtime_ns != mtime or status.st_ino != inode:
            return False
        self._unchanged += 1
        return True

    def make_plan(self, files: Collection[DiscoveredFile], roots: tuple[str, ...]) -> ScanPlan:
        self._seen.update(file.path for file in files)
        missing = [path for path in self._indexed if path not in self._seen]
        renamed: set[int] = set()
        plan = ScanPlan([], [], [], self._unchanged + len(files), self.problems)
        for file in files:
            try:
                task = self._make_task(file, roots, renamed)
            except Unreadable as error:
                # It may be readable later; its rows stay unchanged until then.
                self.problems.append(Problem("unreadable", file.path, str(error)))
                continue
            if task is not None:
                (plan.tasks if task.size > task.start or task.reread else plan.touched).append(task)
        missing_rows = [self._find_row(path) for path in missing if is_below_roots(path, roots)]
        plan.gone = [row.id for row in missing_rows if row is not None and row.id not in renamed]
        return plan

    def add_archived(self, plan: ScanPlan, files: Collection[DiscoveredFile], roots: tuple[str, ...]) -> None:
        """Plan to read files that exist only in the archive, if the archive has changed."""
        from steno.store.environment import archive_stamp

        stamp = archive_stamp()
        # Other roots can have other archived sessions.
        stamp = stamp and f"{stamp} {crc32(os.fsencode(os.pathsep.join(roots)))}"
        row = self._connection.execute("SELECT value FROM facts WHERE name = 'archive'").fetchone()
        if not stamp or (row is not None and row[0] == stamp):
            return
        from steno.store.archive.catalogue import archived_agents, archived_only_below

        plan.archive = stamp
        location = PathInfo("session")
        existing = [
            DiscoveredFile(path, row[1], 0, location, "") for path, row in self._indexed.items() if path in self._seen
        ]
        sessions = archived_only_below(roots, [*files, *existing])
        for archived in (session_file for session in sessions for session_file in (session, *archived_agents(session))):
            if self._find_row(archived.path) is None:
                plan.tasks.append(
                    ScanTask(
                        archived.path, archived.root, archived.place, archived.size, archived.mtime_ns, 0, 0, gone=True
                    )
                )

    def _find_row(self, path: str) -> _IndexedFile | None:
        return next(self._find_rows("path = ?", path_to_column(path)), None)

    def _find_rows(self, where: str, *values: object) -> Iterator[_IndexedFile]:
        columns = ", ".join(_IndexedFile._fields)
        query = f"SELECT {columns} FROM files WHERE {where} ORDER BY id"
        return map(_IndexedFile._make, self._connection.execute(query, values).fetchall())

    def _make_task(self, file: DiscoveredFile, roots: tuple[str, ...], renamed: set[int]) -> ScanTask | None:
        try:
            status = os.stat(file.path)
        except OSError:
            return None
        task = ScanTask(
            file.path, file.root, file.place, status.st_size, status.st_mtime_ns, status.st_dev, status.st_ino
        )
        row = self._find_row(file.path)
        if row is None:
            return self._match_renamed(task, roots, renamed)
        task.file = row.id
        self._resume_or_reread(task, row)
        return task

    def _match_renamed(self, task: ScanTask, roots: tuple[str, ...], renamed: set[int]) -> ScanTask:
        """Recognize a new path with the bytes of a deleted file as the same file."""
        for row in self._find_rows("device = ? AND inode = ?", task.device, task.inode):
            path = path_from_column(row.path)
            if path in self._seen or row.id in renamed or not is_below_roots(path, roots):
                continue
            task.file = row.id
            self._resume_or_reread(task, row)
            if not task.reread:
                renamed.add(row.id)
                return task
            task.file, task.reread = 0, False
        return task

    def _resume_or_reread(self, task: ScanTask, row: _IndexedFile) -> None:
        """Determine whether a file was only appended to; otherwise it is read from the beginning."""
        end, fingerprint, state = self._connection.execute(
            "SELECT done, mark, state FROM files WHERE id = ?", (row.id,)
        ).fetchone()
        same_inode = (task.device, task.inode) == (row.device, row.inode)
        rewritten = task.size == row.size and task.mtime != row.mtime
        moved_back = row.gone is not None and (task.size, task.mtime) == (row.size, row.mtime)
        if (moved_back or (same_inode and not rewritten)) and file_fingerprint(task.path, end) == fingerprint:
            task.start, task.state = end, state
        else:
            task.reread = True


def is_below_roots(path: str, roots: tuple[str, ...]) -> bool:
    """Return whether a path is one of some directories or below one."""
    return any(is_below(path, root, or_equal=True) for root in roots)


def file_fingerprint(path: str, end: int) -> bytes | None:
    """Return the fingerprint of the first `end` bytes of a file; None if it is shorter.

    Raises:
        Unreadable: the file cannot be read.
    """
    try:
        # The same function as in `hashlib`, which loads all of OpenSSL; not available on all platforms.
        from _blake2 import blake2b
    except ImportError:
        from hashlib import blake2b

    from steno.store.file_source import FileSource

    with FileSource(path) as source:
        if source.size < end:
            return None
        head = source.read(0, min(_EDGE_SIZE, end))
        tail = source.read(max(0, end - _EDGE_SIZE), min(_EDGE_SIZE, end))
    return blake2b(b"%d:" % end + head + tail, digest_size=16).digest()


def path_to_column(path: str) -> str | bytes:
    """Return a path as stored in the database: bytes if it is not UTF-8."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return os.fsencode(path)
    return path


def path_from_column(value: str | bytes) -> str:
    """Return a stored path for use in system calls."""
    return os.fsdecode(value) if isinstance(value, bytes) else value
