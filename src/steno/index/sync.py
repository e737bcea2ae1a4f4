"""Brings the index up to date with the files.

    report = sync(index_of())

Work is done in batches, each of which is all there or not there at all. A batch is announced in the
tables, its words are committed, then its rows, which also say that it is done. When a sync finds a
batch that was announced and never done, it takes its words out again; the files of that batch are
still as unread as they were. So whatever stops a sync, and whenever, the next one makes it good.
"""

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from steno.errors import StenoError, Unwritable
from steno.index.database import Damaged, open_database, transaction
from steno.index.home import Home
from steno.index.scan import Plan, Task, is_below, path_from, path_to, scan
from steno.index.state import RULES
from steno.store.found import Problem
from steno.store.lock import Lock

if TYPE_CHECKING:
    from steno.index.workers import Workers

__all__ = ["Planned", "Report", "forget", "forget_files", "forget_gone", "read_again", "sync"]

_BATCH: Final = 384 << 20
_BATCH_FILES: Final = 4_000
"""Files in one batch: what is read is in the index as soon as its batch is done."""
_LOCK: Final = "sync.lock"
_UNREAD: Final = "UPDATE files SET size = -1, mark = x'' WHERE gone IS NULL"
Planned: TypeAlias = Callable[[int], Callable[[int], None]]
"""What is told how many bytes there are to read, and returns what is told of each step."""


class Report(msgspec.Struct):
    """What a sync did."""

    files: int = 0
    """How many there are."""
    read: int = 0
    """How many had something new."""
    size: int = 0
    """How many bytes were read."""
    gone: int = 0
    """How many were there before and are not any more."""
    problems: list[Problem] = []
    seconds: float = 0.0


def sync(
    index: Home,
    *,
    wait: bool = True,
    workers: int | None = None,
    planned: Planned | None = None,
) -> Report:
    """Read whatever is new below an index's roots into it; a damaged index is made anew.

    `planned` is told how many bytes there are to read, and returns what is to be told of each step.

    Raises:
        Busy: another sync is at work, and we were not to wait.
        Unwritable: the index cannot be written.
    """
    began = time.monotonic()
    for last in (False, False, True):
        try:
            report = _sync_once(index, planned, workers=workers, wait=wait)
        except (StenoError, sqlite3.DatabaseError) as error:
            from steno.index.recovery import recover

            if last or not recover(error, index.folder):
                if isinstance(error, StenoError):
                    raise
                raise _explained(error, index.folder) from error
        else:
            report.seconds = time.monotonic() - began
            return report
    raise AssertionError


def _explained(error: sqlite3.DatabaseError, folder: str) -> Unwritable:
    hint = "`steno sync --rebuild` reads everything again"
    return Unwritable(f"cannot write the index in {folder}: {error}", hint=hint)


def _sync_once(index: Home, planned: Planned | None, *, workers: int | None, wait: bool) -> Report:
    folder = index.folder
    connection = open_database(folder)
    try:
        with Lock(os.path.join(folder, _LOCK), wait=wait):
            return _Sync(connection, folder, workers).run(index.roots, planned)
    except StenoError:
        raise
    except OSError as error:
        raise Unwritable(f"cannot write the index in {folder}: {error}") from error
    finally:
        connection.close()


def forget(index: Home) -> None:
    """Have everything read again by the next sync; what is gone from the disk stays as it is.

    A damaged index is put aside, and so is what it knew of files that are gone.

    Raises:
        Unwritable: the index cannot be written.
    """
    from steno.index.recovery import recover
    from steno.index.texts import WordsDamaged, open_texts

    try:
        read_again(index.folder)
        open_texts(index.folder)
    except (Damaged, WordsDamaged, sqlite3.DatabaseError) as error:
        if not recover(error, index.folder):
            if isinstance(error, StenoError):
                raise
            raise _explained(error, index.folder) from error
        read_again(index.folder)


def read_again(folder: str) -> None:
    """Mark every file that is on the disk as unread.

    Raises:
        Unwritable: the index cannot be written.
    """
    connection = open_database(folder)
    try:
        with Lock(os.path.join(folder, _LOCK)), transaction(connection):
            connection.execute(_UNREAD)
    finally:
        connection.close()


def forget_gone(index: Home) -> int:
    """Take out the files that are gone, or not below the roots any more; return how many.

    Raises:
        Unwritable: the index cannot be written.
    """
    from steno.index.batch import take_out

    connection = open_database(index.folder)
    try:
        with Lock(os.path.join(index.folder, _LOCK)):
            rows = connection.execute("SELECT id, path, gone FROM files").fetchall()
            lost = [
                file
                for file, path, gone in rows
                if gone is not None or not is_below(path_from(path), index.roots)
            ]
            if lost:
                take_out(connection, index.folder, lost)
    finally:
        connection.close()
    return len(lost)


def forget_files(index: Home, paths: Iterable[str]) -> int:
    """Take out some files, which lie elsewhere now; return how many were in.

    Raises:
        Unwritable: the index cannot be written.
    """
    from steno.index.batch import take_out

    connection = open_database(index.folder)
    try:
        with Lock(os.path.join(index.folder, _LOCK)):
            find = "SELECT id FROM files WHERE path = ?"
            rows = (connection.execute(find, (path_to(path),)).fetchone() for path in paths)
            known = [row[0] for row in rows if row is not None]
            if known:
                take_out(connection, index.folder, known)
    finally:
        connection.close()
    return len(known)


class _Sync:
    def __init__(self, connection: sqlite3.Connection, folder: str, workers: int | None) -> None:
        self._connection = connection
        self._folder = folder
        self._workers = workers

    def run(self, roots: Sequence[str], planned: Planned | None) -> Report:
        self._drop_words_of_another()
        self._read_alike()
        self._keep_days_local()
        plan = scan(self._connection, roots)
        broken = [row[0] for row in self._connection.execute("SELECT id FROM batches WHERE open")]
        report = Report(plan.seen, len(plan.tasks), 0, len(plan.gone), plan.problems)
        if plan.is_empty and not broken:
            self._note("archive", plan.archive)
            return report
        from steno.index.workers import Workers

        step = planned(plan.size) if planned is not None else _ignore
        with Workers(plan.size, self._workers) as workers:
            for part in _parts(plan):
                report.size += self._run_batch(part, workers, step, broken)
                broken = []
        self._note("archive", plan.archive)
        return report

    def _note(self, name: str, value: str) -> None:
        """Keep a fact, if there is one."""
        if value:
            statement = "INSERT OR REPLACE INTO facts VALUES (?, ?)"
            self._connection.execute(statement, (name, value))

    def _drop_words_of_another(self) -> None:
        """Remove words that are older than the tables: those they belonged to were lost."""
        known = "SELECT 1 FROM files UNION ALL SELECT 1 FROM facts LIMIT 1"
        if self._connection.execute(known).fetchone() is not None:
            return
        from shutil import rmtree

        from steno.index.texts import FOLDER

        path = os.path.join(self._folder, FOLDER)
        if os.path.isdir(path) and not os.path.islink(path):
            rmtree(path)

    def _read_alike(self) -> None:
        """Have everything read again if it was read by other rules than today's."""
        execute = self._connection.execute
        row = execute("SELECT value FROM facts WHERE name = 'rules'").fetchone()
        if row is None or row[0] != RULES:
            with transaction(self._connection):
                execute("INSERT OR REPLACE INTO facts VALUES ('rules', ?)", (RULES,))
                execute(_UNREAD)

    def _keep_days_local(self) -> None:
        """Sum up all days anew when the time zone is another than it was."""
        from steno.index.sums import sum_days, zone

        execute = self._connection.execute
        here = zone()
        row = execute("SELECT value FROM facts WHERE name = 'zone'").fetchone()
        if row is None or row[0] != here:
            with transaction(self._connection):
                execute("INSERT OR REPLACE INTO facts VALUES ('zone', ?)", (here,))
                sum_days(self._connection, None)

    def _run_batch(
        self, plan: Plan, workers: "Workers", step: Callable[[int], None], broken: list[int]
    ) -> int:
        from steno.index.batch import Batch

        execute = self._connection.execute
        # The words are on the disk when they are committed; what announces them must be before.
        execute("PRAGMA synchronous = FULL")
        with transaction(self._connection):
            (batch,) = execute("INSERT INTO batches (open) VALUES (1) RETURNING id").fetchone()
            self._announce(plan.tasks)
            self._announce(plan.touched)
        execute("PRAGMA synchronous = NORMAL")
        return Batch(self._connection, self._folder, batch).run(plan, workers, step, broken)

    def _announce(self, tasks: list[Task]) -> None:
        """Give new files their numbers, and mark those that will be read anew as unread."""
        execute = self._connection.execute
        for task in tasks:
            if task.anew:
                execute("UPDATE files SET size = -1, mark = x'' WHERE id = ?", (task.file,))
            elif not task.file:
                (task.file,) = execute(
                    "INSERT INTO files (root, path, size, mtime, device, inode) "
                    "VALUES (?, ?, -1, 0, ?, ?) RETURNING id",
                    (path_to(task.root), path_to(task.path), task.device, task.inode),
                ).fetchone()


def _parts(plan: Plan) -> Iterator[Plan]:
    """Yield what is to be done in lots that are worth a commit each."""
    lot, size = Plan([], plan.touched, plan.gone, 0, plan.problems), 0
    for task in plan.tasks:
        lot.tasks.append(task)
        size += task.size - task.start
        if size >= _BATCH or len(lot.tasks) >= _BATCH_FILES:
            yield lot
            lot, size = Plan([], [], [], 0, plan.problems), 0
    if lot.tasks or lot.touched or lot.gone or not plan.tasks:
        yield lot


def _ignore(_: int) -> None:
    pass
