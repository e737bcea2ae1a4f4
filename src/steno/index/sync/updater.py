"""Synchronizes the index with the files.

    report = sync(locate_index())

Work is done in batches that are complete or absent. A batch is announced in the tables, its documents are committed,
then its rows, which also mark it as finished. A sync that finds an announced, unfinished batch removes its documents;
the files of that batch still count as unread. So an interrupted sync is repaired by the next one.
"""

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from steno.errors import StenoError, Unwritable
from steno.index.database import IndexDamaged, IndexLocation, open_for_writing, transaction
from steno.index.session_stats import EXTRACTION_RULES
from steno.index.sync.scan import ScanPlan, ScanTask, is_below_roots, path_from_column, path_to_column, scan_changes
from steno.store.discovery import Problem
from steno.store.file_lock import FileLock

if TYPE_CHECKING:
    from steno.index.sync.extract import WorkerPool


_BATCH_SIZE: Final = 384 << 20
_BATCH_FILES: Final = 4_000
"""Maximum files per batch: the content of a batch is searchable when the batch is done."""
_LOCK_NAME: Final = "sync.lock"
_MARK_UNREAD_SQL: Final = "UPDATE files SET size = -1, mark = x'' WHERE gone IS NULL"
StartProgress: TypeAlias = Callable[[int], Callable[[int], None]]
"""Receives the number of bytes to read, and returns the callback for the bytes of each step."""


class SyncReport(msgspec.Struct):
    """The result of a sync."""

    files: int = 0
    """Number of files."""
    read: int = 0
    """Number of files with new bytes."""
    size: int = 0
    """Number of bytes read."""
    gone: int = 0
    """Number of files that were deleted since the last sync."""
    problems: list[Problem] = []
    seconds: float = 0.0


def sync(
    index: IndexLocation, *, wait: bool = True, workers: int | None = None, start_progress: StartProgress | None = None
) -> SyncReport:
    """Update an index from the files below its roots; a damaged index is rebuilt.

    `start_progress` receives the number of bytes to read, and returns the callback for the bytes of each step.

    Raises:
        Busy: another sync is running and `wait` is false.
        Unwritable: the index cannot be written.
    """
    start_time = time.monotonic()
    for is_last_attempt in (False, False, True):
        try:
            report = _sync_once(index, start_progress, workers=workers, wait=wait)
        except (StenoError, sqlite3.DatabaseError) as error:
            from steno.index.recovery import recover

            if is_last_attempt or not recover(error, index.folder):
                if isinstance(error, StenoError):
                    raise
                raise _database_error(error, index.folder) from error
        else:
            report.seconds = time.monotonic() - start_time
            return report
    raise AssertionError


def _database_error(error: sqlite3.DatabaseError, folder: str) -> Unwritable:
    hint = "Run `steno sync --rebuild` to read all files again."
    return Unwritable(f"cannot write the index in {folder}: {error}", hint=hint)


def _sync_once(
    index: IndexLocation, start_progress: StartProgress | None, *, workers: int | None, wait: bool
) -> SyncReport:
    folder = index.folder
    connection = open_for_writing(folder)
    try:
        with FileLock(os.path.join(folder, _LOCK_NAME), wait=wait):
            return _SyncRun(connection, folder, workers).run(index.roots, start_progress)
    except StenoError:
        raise
    except OSError as error:
        raise Unwritable(f"cannot write the index in {folder}: {error}") from error
    finally:
        connection.close()


def reset_index(index: IndexLocation) -> None:
    """Mark all files as unread, so that the next sync reads them again; deleted files stay in the index.

    A damaged index is moved aside, including its rows for deleted files.

    Raises:
        Unwritable: the index cannot be written.
    """
    from steno.index.recovery import recover
    from steno.index.text_index import TextIndexDamaged, open_text_index

    try:
        mark_all_unread(index.folder)
        open_text_index(index.folder)
    except (IndexDamaged, TextIndexDamaged, sqlite3.DatabaseError) as error:
        if not recover(error, index.folder):
            if isinstance(error, StenoError):
                raise
            raise _database_error(error, index.folder) from error
        mark_all_unread(index.folder)


def mark_all_unread(folder: str) -> None:
    """Mark every file on disk as unread.

    Raises:
        Unwritable: the index cannot be written.
    """
    connection = open_for_writing(folder)
    try:
        with FileLock(os.path.join(folder, _LOCK_NAME)), transaction(connection):
            connection.execute(_MARK_UNREAD_SQL)
    finally:
        connection.close()


def remove_gone(index: IndexLocation) -> int:
    """Remove files that are deleted or no longer below the roots from the index; return their number.

    Raises:
        Unwritable: the index cannot be written.
    """
    from steno.index.sync.batch_writer import remove_files

    connection = open_for_writing(index.folder)
    try:
        with FileLock(os.path.join(index.folder, _LOCK_NAME)):
            rows = connection.execute("SELECT id, path, gone FROM files").fetchall()
            removed = [
                file
                for file, path, gone in rows
                if gone is not None or not is_below_roots(path_from_column(path), index.roots)
            ]
            if removed:
                remove_files(connection, index.folder, removed)
    finally:
        connection.close()
    return len(removed)


def remove_paths(index: IndexLocation, paths: Iterable[str]) -> int:
    """Remove moved files from the index; return how many were indexed.

    Raises:
        Unwritable: the index cannot be written.
    """
    from steno.index.sync.batch_writer import remove_files

    connection = open_for_writing(index.folder)
    try:
        with FileLock(os.path.join(index.folder, _LOCK_NAME)):
            statement = "SELECT id FROM files WHERE path = ?"
            rows = (connection.execute(statement, (path_to_column(path),)).fetchone() for path in paths)
            file_ids = [row[0] for row in rows if row is not None]
            if file_ids:
                remove_files(connection, index.folder, file_ids)
    finally:
        connection.close()
    return len(file_ids)


class _SyncRun:
    def __init__(self, connection: sqlite3.Connection, folder: str, workers: int | None) -> None:
        self._connection = connection
        self._folder = folder
        self._workers = workers

    def run(self, roots: Sequence[str], start_progress: StartProgress | None) -> SyncReport:
        self._remove_foreign_text_index()
        self._apply_extraction_rules()
        self._apply_time_zone()
        plan = scan_changes(self._connection, roots)
        unfinished_batches = [row[0] for row in self._connection.execute("SELECT id FROM batches WHERE open")]
        report = SyncReport(plan.seen, len(plan.tasks), 0, len(plan.gone), plan.problems)
        if plan.is_empty and not unfinished_batches:
            self._store_fact("archive", plan.archive)
            return report
        from steno.index.sync.extract import WorkerPool

        on_progress = start_progress(plan.size) if start_progress is not None else _ignore_progress
        with WorkerPool(plan.size, self._workers) as workers:
            for part in _split_batches(plan):
                report.size += self._run_batch(part, workers, on_progress, unfinished_batches)
                unfinished_batches = []
        self._store_fact("archive", plan.archive)
        return report

    def _store_fact(self, name: str, value: str) -> None:
        if value:
            statement = "INSERT OR REPLACE INTO facts VALUES (?, ?)"
            self._connection.execute(statement, (name, value))

    def _remove_foreign_text_index(self) -> None:
        """Remove a full-text index that belongs to a lost database."""
        statement = "SELECT 1 FROM files UNION ALL SELECT 1 FROM facts LIMIT 1"
        if self._connection.execute(statement).fetchone() is not None:
            return
        from shutil import rmtree

        from steno.index.text_index import TEXT_FOLDER

        path = os.path.join(self._folder, TEXT_FOLDER)
        if os.path.isdir(path) and not os.path.islink(path):
            rmtree(path)

    def _apply_extraction_rules(self) -> None:
        """Mark all files as unread if the extraction rules have changed."""
        execute = self._connection.execute
        row = execute("SELECT value FROM facts WHERE name = 'rules'").fetchone()
        if row is None or row[0] != EXTRACTION_RULES:
            with transaction(self._connection):
                execute("INSERT OR REPLACE INTO facts VALUES ('rules', ?)", (EXTRACTION_RULES,))
                execute(_MARK_UNREAD_SQL)

    def _apply_time_zone(self) -> None:
        """Recompute all daily sums if the time zone has changed."""
        from steno.index.usage_rows import time_zone_id, update_daily_sums

        execute = self._connection.execute
        current_zone = time_zone_id()
        row = execute("SELECT value FROM facts WHERE name = 'zone'").fetchone()
        if row is None or row[0] != current_zone:
            with transaction(self._connection):
                execute("INSERT OR REPLACE INTO facts VALUES ('zone', ?)", (current_zone,))
                update_daily_sums(self._connection, None)

    def _run_batch(
        self, plan: ScanPlan, workers: "WorkerPool", on_progress: Callable[[int], None], unfinished_batches: list[int]
    ) -> int:
        from steno.index.sync.batch_writer import BatchWriter

        execute = self._connection.execute
        # The full-text index is flushed on commit, so its announcement must be flushed before.
        execute("PRAGMA synchronous = FULL")
        with transaction(self._connection):
            (batch,) = execute("INSERT INTO batches (open) VALUES (1) RETURNING id").fetchone()
            self._announce_files(plan.tasks)
            self._announce_files(plan.touched)
        execute("PRAGMA synchronous = NORMAL")
        return BatchWriter(self._connection, self._folder, batch).write(plan, workers, on_progress, unfinished_batches)

    def _announce_files(self, tasks: list[ScanTask]) -> None:
        execute = self._connection.execute
        for task in tasks:
            if task.reread:
                execute("UPDATE files SET size = -1, mark = x'' WHERE id = ?", (task.file,))
            elif not task.file:
                (task.file,) = execute(
                    "INSERT INTO files (root, path, size, mtime, device, inode) "
                    "VALUES (?, ?, -1, 0, ?, ?) RETURNING id",
                    (path_to_column(task.root), path_to_column(task.path), task.device, task.inode),
                ).fetchone()


def _split_batches(plan: ScanPlan) -> Iterator[ScanPlan]:
    """Split a plan into batches of a size that is worth a commit."""
    batch, size = ScanPlan([], plan.touched, plan.gone, 0, plan.problems), 0
    for task in plan.tasks:
        batch.tasks.append(task)
        size += task.size - task.start
        if size >= _BATCH_SIZE or len(batch.tasks) >= _BATCH_FILES:
            yield batch
            batch, size = ScanPlan([], [], [], 0, plan.problems), 0
    if batch.tasks or batch.touched or batch.gone or not plan.tasks:
        yield batch


def _ignore_progress(_: int) -> None:
    pass
