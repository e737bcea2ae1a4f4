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
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from steno.errors import StenoError, Unwritable
from steno.index.database import open_database, transaction
from steno.index.home import Home
from steno.index.scan import Plan, Task, path_to, scan
from steno.store.found import Problem
from steno.store.lock import Lock

__all__ = ["Report", "forget", "sync"]

_BATCH: Final = 384 << 20
_LOCK: Final = "sync.lock"


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
    planned: Callable[[int], Callable[[int], None]] | None = None,
) -> Report:
    """Read whatever is new below an index's roots into it.

    `planned` is told how many bytes there are to read, and returns what is to be told of each step.

    Raises:
        Busy: another sync is at work, and we were not to wait.
        Unwritable: the index cannot be written.
    """
    folder = index.folder
    began = time.monotonic()
    connection = open_database(folder)
    try:
        with Lock(os.path.join(folder, _LOCK), wait=wait):
            report = _Sync(connection, folder, workers).run(index.roots, planned)
    except StenoError:
        raise
    except (sqlite3.OperationalError, OSError) as error:
        raise Unwritable(f"cannot write the index in {folder}: {error}") from error
    finally:
        connection.close()
    report.seconds = time.monotonic() - began
    return report


def forget(index: Home) -> None:
    """Have everything read again by the next sync; what is gone from the disk stays as it is.

    Raises:
        Unwritable: the index cannot be written.
    """
    from steno.index.texts import drop_damaged_texts

    connection = open_database(index.folder)
    try:
        with Lock(os.path.join(index.folder, _LOCK)), transaction(connection):
            drop_damaged_texts(index.folder)
            connection.execute("UPDATE files SET size = -1, mark = x'' WHERE gone IS NULL")
    finally:
        connection.close()


class _Sync:
    def __init__(self, connection: sqlite3.Connection, folder: str, workers: int | None) -> None:
        self._connection = connection
        self._folder = folder
        self._workers = workers

    def run(
        self, roots: Sequence[str], planned: Callable[[int], Callable[[int], None]] | None
    ) -> Report:
        plan = scan(self._connection, roots)
        broken = [row[0] for row in self._connection.execute("SELECT id FROM batches WHERE open")]
        report = Report(plan.seen, len(plan.tasks), 0, len(plan.gone), plan.problems)
        self._keep_days_local()
        if plan.is_empty and not broken:
            return report
        step = planned(plan.size) if planned is not None else _ignore
        batches = list(_batches(plan.tasks)) or [[]]
        for number, tasks in enumerate(batches):
            first = number == 0
            part = Plan(
                tasks,
                plan.touched if first else [],
                plan.gone if first else [],
                0,
                plan.problems,
            )
            report.size += self._run_batch(part, broken if first else [], step)
        return report

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

    def _run_batch(self, plan: Plan, broken: list[int], step: Callable[[int], None]) -> int:
        from steno.index.batch import Batch

        with transaction(self._connection):
            (batch,) = self._connection.execute(
                "INSERT INTO batches (open) VALUES (1) RETURNING id"
            ).fetchone()
            self._announce(plan.tasks)
            self._announce(plan.touched)
        writing = Batch(self._connection, self._folder, batch)
        return writing.run(plan, step, broken=broken, workers=self._workers)

    def _announce(self, tasks: list[Task]) -> None:
        """Give new files their numbers, and mark those that will be read anew as unread."""
        execute = self._connection.execute
        for task in tasks:
            if task.anew:
                execute("UPDATE files SET size = -1 WHERE id = ?", (task.file,))
            elif not task.file:
                (task.file,) = execute(
                    "INSERT INTO files (root, path, size, mtime, device, inode) "
                    "VALUES (?, ?, -1, 0, ?, ?) RETURNING id",
                    (path_to(task.root), path_to(task.path), task.device, task.inode),
                ).fetchone()


def _batches(tasks: list[Task]) -> Iterator[list[Task]]:
    """Yield the tasks in lots that are worth a commit each."""
    lot: list[Task] = []
    size = 0
    for task in tasks:
        lot.append(task)
        size += task.size - task.start
        if size >= _BATCH:
            yield lot
            lot, size = [], 0
    if lot:
        yield lot


def _ignore(_: int) -> None:
    pass
