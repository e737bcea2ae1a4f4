"""What changed on disk since the last sync: a walk that stats every file and opens none.

Only files that are new or not as they were are looked into, and of those only the few bytes that
tell an append from a change.
"""

import os
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, NamedTuple
from zlib import crc32

import msgspec

from steno.errors import Unreadable
from steno.format.paths import Place
from steno.store.found import Found, Problem
from steno.store.walk import Walk

__all__ = ["Plan", "Task", "is_below", "make_mark", "path_from", "path_to", "scan"]

_EDGE: Final = 4_096


class Task(msgspec.Struct):
    """A file that has something to be read."""

    path: str
    root: str
    place: Place
    size: int
    mtime: int
    device: int
    inode: int
    file: int = 0
    """Its number; none for a file that was never seen."""
    start: int = 0
    state: bytes = b""
    anew: bool = False
    """Whether it is in the index, and no longer what it was."""
    gone: bool = False
    """Whether it is gone from the disk, and only in the archive."""

    @property
    def found(self) -> Found:
        """The file as the rest of the house knows it."""
        return Found(self.path, self.size, self.mtime, self.place, self.root)


class Plan(msgspec.Struct):
    """What a sync has to do."""

    tasks: list[Task]
    """Files with something to be read."""
    touched: list[Task]
    """Files in which nothing is to be read: only their time or place changed."""
    gone: list[int]
    seen: int
    problems: list[Problem]
    archive: str = ""
    """What the archive was like, when that is news."""

    @property
    def is_empty(self) -> bool:
        """Whether everything is as it was."""
        return not (self.tasks or self.touched or self.gone)

    @property
    def size(self) -> int:
        """How many bytes there are to read."""
        return sum(task.size - task.start for task in self.tasks)


class _Row(NamedTuple):
    """What the index knows of a file."""

    path: str | bytes
    id: int
    size: int
    mtime: int
    device: int
    inode: int
    gone: int | None


def scan(connection: sqlite3.Connection, roots: Sequence[str]) -> Plan:
    """Return what is not in the index yet, or not any more as it is."""
    look = _Look(connection)
    found: dict[str, Found] = {}
    for root in roots:
        walk = Walk(os.path.abspath(root), look.problems, agents=True, known=look.is_known)
        for each in walk.run():
            found.setdefault(each.path, each)
    tops = tuple(os.path.abspath(root) for root in roots)
    plan = look.plan(found.values(), tops)
    look.add_archived(plan, found.values(), tops)
    return plan


class _Look:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self.problems: list[Problem] = []
        self._connection = connection
        # As they come, and no more than is compared: of the many hardly one is not as it was.
        rows = connection.execute("SELECT path, size, mtime, inode FROM files WHERE gone IS NULL")
        self._living: dict[str, tuple[Any, ...]] = {path_from(row[0]): row for row in rows}
        self._seen: set[str] = set()
        self._unchanged = 0

    def is_known(self, entry: os.DirEntry[str]) -> bool:
        """Whether a file is just as it was; said for every file of every sync."""
        path = entry.path
        row = self._living.get(path)
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

    def plan(self, found: Collection[Found], roots: tuple[str, ...]) -> Plan:
        self._seen.update(each.path for each in found)
        missing = [each for each in self._living if each not in self._seen]
        renamed: set[int] = set()
        plan = Plan([], [], [], self._unchanged + len(found), self.problems)
        for each in found:
            try:
                task = self._task(each, roots, renamed)
            except Unreadable as error:
                # It may be another time; until then all stays as it is.
                self.problems.append(Problem("unreadable", each.path, str(error)))
                continue
            if task is not None:
                (plan.tasks if task.size > task.start or task.anew else plan.touched).append(task)
        lost = [self._row(each) for each in missing if is_below(each, roots)]
        plan.gone = [row.id for row in lost if row is not None and row.id not in renamed]
        return plan

    def add_archived(self, plan: Plan, found: Collection[Found], roots: tuple[str, ...]) -> None:
        """Plan to read what is only in the archive, if the archive has news."""
        from steno.store.archived import archive_stamp

        stamp = archive_stamp()
        # Other roots may have other sessions in it.
        stamp = stamp and f"{stamp} {crc32(os.fsencode(os.pathsep.join(roots)))}"
        row = self._connection.execute("SELECT value FROM facts WHERE name = 'archive'").fetchone()
        if not stamp or (row is not None and row[0] == stamp):
            return
        from steno.store.archive.gone import agents_in, gone_below

        plan.archive = stamp
        place = Place("session")
        living = [
            Found(path, row[1], 0, place, "")
            for path, row in self._living.items()
            if path in self._seen
        ]
        sessions = gone_below(roots, [*found, *living])
        for each in (kept for session in sessions for kept in (session, *agents_in(session))):
            if self._row(each.path) is None:
                plan.tasks.append(
                    Task(
                        each.path, each.root, each.place, each.size, each.mtime_ns, 0, 0, gone=True
                    )
                )

    def _row(self, path: str) -> _Row | None:
        """Return what the index knows of a file, also of one that is gone."""
        return next(self._rows("path = ?", path_to(path)), None)

    def _rows(self, where: str, *values: object) -> Iterator[_Row]:
        columns = ", ".join(_Row._fields)
        query = f"SELECT {columns} FROM files WHERE {where} ORDER BY id"
        return map(_Row._make, self._connection.execute(query, values).fetchall())

    def _task(self, found: Found, roots: tuple[str, ...], renamed: set[int]) -> Task | None:
        try:
            status = os.stat(found.path)
        except OSError:
            return None
        task = Task(
            found.path,
            found.root,
            found.place,
            status.st_size,
            status.st_mtime_ns,
            status.st_dev,
            status.st_ino,
        )
        row = self._row(found.path)
        if row is None:
            return self._perhaps_renamed(task, roots, renamed)
        task.file = row.id
        self._go_on(task, row)
        return task

    def _perhaps_renamed(self, task: Task, roots: tuple[str, ...], renamed: set[int]) -> Task:
        """Take a new name with the bytes of a file that went away for the same file."""
        for row in self._rows("device = ? AND inode = ?", task.device, task.inode):
            path = path_from(row.path)
            if path in self._seen or row.id in renamed or not is_below(path, roots):
                continue
            task.file = row.id
            self._go_on(task, row)
            if not task.anew:
                renamed.add(row.id)
                return task
            task.file, task.anew = 0, False
        return task

    def _go_on(self, task: Task, row: _Row) -> None:
        """Find out whether a file was only added to; else it is read from its beginning."""
        done, mark, state = self._connection.execute(
            "SELECT done, mark, state FROM files WHERE id = ?", (row.id,)
        ).fetchone()
        same = (task.device, task.inode) == (row.device, row.inode)
        rewritten = task.size == row.size and task.mtime != row.mtime
        moved_back = row.gone is not None and (task.size, task.mtime) == (row.size, row.mtime)
        if (moved_back or (same and not rewritten)) and make_mark(task.path, done) == mark:
            task.start, task.state = done, state
        else:
            task.anew = True


def is_below(path: str, roots: tuple[str, ...]) -> bool:
    """Whether a path is one of some folders, or lies in one."""
    return any(path == root or path.startswith(root.rstrip(os.sep) + os.sep) for root in roots)


def make_mark(path: str, done: int) -> bytes | None:
    """Return the fingerprint of a file up to a place; None where it is shorter than that.

    Raises:
        Unreadable: it cannot be read.
    """
    try:
        # The same as in `hashlib`, which loads all of OpenSSL; but not everywhere.
        from _blake2 import blake2b
    except ImportError:
        from hashlib import blake2b

    from steno.store.read import FileSource

    with FileSource(path) as source:
        if source.size < done:
            return None
        head = source.read(0, min(_EDGE, done))
        tail = source.read(max(0, done - _EDGE), min(_EDGE, done))
    return blake2b(b"%d:" % done + head + tail, digest_size=16).digest()


def path_to(path: str) -> str | bytes:
    """Return a path as it is kept: bytes, where it is not UTF-8."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return os.fsencode(path)
    return path


def path_from(kept: str | bytes) -> str:
    """Return a path as the system takes it."""
    return os.fsdecode(kept) if isinstance(kept, bytes) else kept
