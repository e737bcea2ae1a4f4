"""Writes one sync batch: documents first, then rows; neither is used until both are complete."""

import os
import signal
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from threading import current_thread, main_thread
from types import FrameType
from typing import Any, Final, Self

import msgspec

from steno.errors import Unreadable
from steno.format.paths import JSONL_SUFFIX, PathInfo
from steno.index.database import transaction
from steno.index.session_stats import (
    FILE_ID_SHIFT,
    Extraction,
    ExtractionState,
    TextDocument,
    decode_state,
    encode_state,
)
from steno.index.sync.extract import JobResult, WorkerPool
from steno.index.sync.scan import ScanPlan, ScanTask, file_fingerprint, path_from_column, path_to_column
from steno.index.text_index import FAILED_TAG, SPLIT_TAG, TextIndex, open_text_index
from steno.index.usage_rows import (
    LOCAL_DAY,
    assign_foreign_titles,
    days_of,
    query_chunks,
    update_counted_copies,
    update_daily_sums,
)
from steno.session.turns.prompts import WARMUP_PROMPT, Title, choose_title
from steno.store.discovery import Problem
from steno.store.summary import read_custom_title


class DeferredInterrupt:
    """Inside the `with` block the first Ctrl-C is only recorded; the second one interrupts as usual.

    Has no effect outside the main thread.
    """

    def __init__(self) -> None:
        self.interrupted = False
        self._previous_handler: Any = None

    def __enter__(self) -> Self:
        if current_thread() is main_thread():
            self._previous_handler = signal.getsignal(signal.SIGINT)
            if self._previous_handler is not None:
                signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        if self._previous_handler is not None:
            signal.signal(signal.SIGINT, self._previous_handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.interrupted and callable(self._previous_handler):
            self._previous_handler(number, frame)
        self.interrupted = True


_FileRow = tuple[int, str, str, int]
"""A file of a session: its file ID, agent ID, path, and current owner."""


def session_ids_of(connection: sqlite3.Connection, files: Iterable[int]) -> set[str]:
    """Return the IDs of the sessions that some files belong to."""
    session_ids: set[str] = set()
    for chunk in query_chunks(files):
        placeholders = ", ".join("?" * len(chunk))
        rows = connection.execute(f"SELECT id FROM sessions WHERE file IN ({placeholders})", chunk)
        session_ids.update(session_id for (session_id,) in rows)
    return session_ids


def update_owners(connection: sqlite3.Connection, session_ids: Iterable[str]) -> None:
    """Assign the sub-agents of some sessions to the file of their session."""
    changed: list[tuple[int, int]] = []
    for chunk in query_chunks(session_ids):
        placeholders = ", ".join("?" * len(chunk))
        rows = connection.execute(
            "SELECT s.id, s.file, s.agent, f.path, s.owner FROM sessions s "
            f"JOIN files f ON f.id = s.file WHERE s.id IN ({placeholders}) ORDER BY s.file",
            chunk,
        )
        rows_by_id: dict[str, list[_FileRow]] = {}
        for session_id, file, agent, path, owner in rows:
            rows_by_id.setdefault(session_id, []).append((file, agent, path_from_column(path), owner))
        for same_id in rows_by_id.values():
            changed += _owner_changes(same_id)
    connection.executemany("UPDATE sessions SET owner = ? WHERE file = ?", changed)


def _owner_changes(same_id: list[_FileRow]) -> Iterator[tuple[int, int]]:
    sessions = [row for row in same_id if not row[1]]
    for row in same_id:
        owner = _owner_of(row, sessions) if row[1] else row[0]
        if owner != row[3]:
            yield owner, row[0]


def _owner_of(agent: _FileRow, sessions: list[_FileRow]) -> int:
    """Return the session file next to or above a sub-agent's file; otherwise the only one with its ID."""
    path = agent[2]
    containing = (session for session in sessions if path.startswith(session[2].removesuffix(JSONL_SUFFIX) + os.sep))
    folder = os.path.dirname(path)
    siblings = (session for session in sessions if os.path.dirname(session[2]) == folder)
    only_session = sessions[0] if len(sessions) == 1 else agent
    return next(containing, next(siblings, only_session))[0]


_TABLES_BY_MESSAGE: Final = (
    ("messages", "id"),
    ("tool_calls", "message"),
    ("file_edits", "message"),
    ("file_backups", "message"),
)
_TABLES_BY_FILE: Final = ("turns", "links", "usage")
_USAGE_COLUMNS: Final = (
    "file",
    "key",
    "message",
    "lines",
    "turn",
    "time",
    "model",
    "branch",
    "agent",
    "input",
    "output",
    "cache_5m",
    "cache_1h",
    "cache_read",
    "searches",
    "fast",
    "estimated",
    "copied",
)
_MERGED_COLUMNS: Final = ("file", "key", "lines", "turn", "time")
_FIRST_NAME_ID: Final = FAILED_TAG + 1


def _insert_sql(table: str, columns: int, *, verb: str = "INSERT") -> str:
    return f"{verb} INTO {table} VALUES ({', '.join('?' * columns)})"


_UPSERT_USAGE_SQL: Final = (
    f"INSERT INTO usage ({', '.join(_USAGE_COLUMNS)}) VALUES ({', '.join('?' * len(_USAGE_COLUMNS))}) "
    "ON CONFLICT (file, key) DO UPDATE SET lines = lines + excluded.lines, "
    + ", ".join(
        f"{name} = iif(excluded.output >= output, excluded.{name}, {name})"
        for name in _USAGE_COLUMNS
        if name not in _MERGED_COLUMNS
    )
)


class TableWriter:
    """Writes to the tables inside a transaction, and to the full-text index."""

    def __init__(self, connection: sqlite3.Connection, texts: TextIndex, batch: int) -> None:
        self._connection = connection
        self._texts = texts
        self._batch = batch
        self._name_ids: dict[tuple[str, str], int] = {}
        self._tags_by_traits: dict[tuple[str | bool, ...], tuple[int, ...]] = {}
        self.keys: set[str] = set()
        """Responses whose usage may have changed."""
        self.days: set[str] = set()
        """Days with rows that were removed or reassigned."""
        self.returned_titles: set[str] = set()
        """Last records of sessions whose title was in a removed file."""

    # Files

    def remove_file_rows(self, file: int) -> None:
        """Remove all rows and documents of a file."""
        execute = self._connection.execute
        self._note_affected(file)
        foreign_titles = execute("SELECT target FROM links WHERE file = ? AND kind = 'summary'", (file,))
        self.returned_titles.update(target for (target,) in foreign_titles)
        first, last = file << FILE_ID_SHIFT, (file + 1) << FILE_ID_SHIFT
        for table, column in _TABLES_BY_MESSAGE:
            execute(f"DELETE FROM {table} WHERE {column} >= ? AND {column} < ?", (first, last))
        for table in _TABLES_BY_FILE:
            execute(f"DELETE FROM {table} WHERE file = ?", (file,))
        self._texts.remove_file(file)

    def _note_affected(self, file: int) -> None:
        rows = self._connection.execute(f"SELECT key, {LOCAL_DAY} FROM usage u WHERE file = ?", (file,))
        for key, day in rows:
            self.keys.add(key)
            self.days.add(day)

    def write_extraction(self, extraction: Extraction) -> None:
        """Write the rows and documents of an extraction."""
        executemany = self._connection.executemany
        executemany(_insert_sql("messages", 5), extraction.messages)
        executemany(_insert_sql("tool_calls", 11), extraction.calls)
        executemany(_insert_sql("file_edits", 8), extraction.edits)
        executemany(_insert_sql("links", 5, verb="INSERT OR IGNORE"), extraction.links)
        executemany(_insert_sql("file_backups", 5), extraction.backups)
        executemany(_insert_sql("turns", 8, verb="INSERT OR REPLACE"), extraction.turns)
        executemany(_UPSERT_USAGE_SQL, extraction.usage)
        executemany(
            "UPDATE tool_calls SET result = ?, ended = ?, failed = ? WHERE message = ? AND place = ?",
            extraction.late_results,
        )
        executemany(
            "UPDATE file_edits SET added = ?, removed = ? WHERE message = ? AND place = ?", extraction.edit_sizes
        )
        self.keys.update(row[1] for row in extraction.usage)
        self._add_documents(extraction.file, extraction.documents)

    def update_file(self, task: ScanTask, end: int, fingerprint: bytes, state: ExtractionState, title: Title) -> None:
        """Record how far a file was read, and update its session."""
        row = _session_row(task.file, task.place, state, title)
        gone = round(time.time()) if task.gone else None
        row = (*row, state.ending, self._last_growth(task, end), task.size, gone)
        row = (*row, state.step_counts.records, int(state.step_counts.answered), state.dialect)
        previous = self._connection.execute(
            "SELECT s.id, s.agent, s.project, s.started, f.path "
            "FROM sessions s JOIN files f ON f.id = s.file WHERE s.file = ?",
            (task.file,),
        ).fetchone()
        if previous is not None and previous != (*row[1:4], row[9], path_to_column(task.path)):
            self._note_affected(task.file)
        self._connection.execute(
            "UPDATE files SET root = ?, path = ?, size = ?, mtime = ?, device = ?, inode = ?, "
            "done = ?, mark = ?, state = ?, gone = ? WHERE id = ?",
            (
                path_to_column(task.root),
                path_to_column(task.path),
                task.size,
                task.mtime,
                task.device,
                task.inode,
                end,
                fingerprint,
                encode_state(state),
                gone,
                task.file,
            ),
        )
        self._connection.execute(_insert_sql("sessions", 30, verb="INSERT OR REPLACE"), row)

    def _last_growth(self, task: ScanTask, end: int) -> int | None:
        """Return when a file was last seen growing, compared with the previous sync."""
        if 0 < task.start < end and not task.gone:
            return task.mtime // 1_000_000
        previous = self._connection.execute("SELECT grown FROM sessions WHERE file = ?", (task.file,)).fetchone()
        return previous[0] if previous is not None and not task.reread else None

    # Full-text documents

    def _add_documents(self, file: int, documents: Sequence[TextDocument]) -> None:
        split = {
            document.message
            for document, next_document in pairwise(documents)
            if document.message == next_document.message
        }
        known_tags, batch, add = self._tags_by_traits, self._batch, self._texts.add_document
        for text_document in documents:
            traits = (
                text_document.kind,
                text_document.project,
                text_document.branch,
                text_document.model,
                text_document.tool,
                text_document.failed,
            )
            tags = known_tags.get(traits)
            if tags is None:
                tags = known_tags[traits] = self._document_tags(text_document)
            if text_document.message in split:
                tags = (*tags, SPLIT_TAG)
            add(batch, file, text_document.message, text_document.time, tags, text_document.text)

    def _document_tags(self, document: TextDocument) -> tuple[int, ...]:
        traits = (
            ("kind", document.kind),
            ("project", document.project),
            ("branch", document.branch),
            ("model", document.model),
            ("tool", document.tool),
        )
        tags = tuple(self._name_id(kind, name) for kind, name in traits if name)
        return (*tags, FAILED_TAG) if document.failed else tags

    def _name_id(self, kind: str, name: str) -> int:
        key = (kind, name)
        name_id = self._name_ids.get(key)
        if name_id is None:
            execute = self._connection.execute
            row = execute("SELECT id FROM names WHERE kind = ? AND name = ?", key).fetchone()
            if row is None:
                (highest,) = execute("SELECT max(id) FROM names").fetchone()
                row = (max(_FIRST_NAME_ID, (highest or 0) + 1),)
                execute("INSERT INTO names VALUES (?, ?, ?)", (*row, *key))
            name_id = self._name_ids[key] = row[0]
        return name_id


def _session_row(file: int, location: PathInfo, state: ExtractionState, title: Title) -> tuple[Any, ...]:
    is_agent = location.role == "agent"
    figures = state.stats.current_figures()
    agents = int(state.first_prompt != WARMUP_PROMPT) if is_agent else figures.agents
    return (
        file,
        location.session_id or state.session,
        (location.agent_id or state.agent) if is_agent else "",
        state.project,
        "" if state.branch == "HEAD" else state.branch,
        title.text,
        int(title.is_given),
        state.version,
        figures.model or state.model,
        state.started,
        state.ended,
        figures.turns,
        state.messages,
        state.calls,
        figures.failed,
        int(is_agent or not state.main or not state.prompted),
        figures.branches,
        state.last_uuid,
        figures.steps,
        figures.worked,
        figures.compactions,
        agents,
        file,
    )


_LARGE_BATCH_SIZE: Final = 32 << 20


class _FileProgress(msgspec.Struct):
    task: ScanTask
    done: int
    state: ExtractionState
    cut_off: bool = False
    """Whether an interrupt left part of the file unread."""


class BatchWriter:
    """Writes the content of changed files to the tables and the full-text index."""

    def __init__(self, connection: sqlite3.Connection, folder: str, batch_id: int) -> None:
        self._connection = connection
        self._batch_id = batch_id
        self._texts = open_text_index(folder)
        self._tables = TableWriter(connection, self._texts, batch_id)
        self._files: dict[int, _FileProgress] = {}

    def write(
        self, plan: ScanPlan, workers: WorkerPool, on_progress: Callable[[int], None], unfinished_batches: list[int]
    ) -> int:
        """Write the batch; return the number of bytes read.

        The first Ctrl-C stops reading; everything read by then is written, then KeyboardInterrupt is raised.
        """
        with DeferredInterrupt() as interrupts:
            try:
                with transaction(self._connection):
                    bytes_read = self._write_extractions(plan, workers, on_progress, unfinished_batches, interrupts)
                    self._update_files(plan)
                    self._update_derived()
                    self._texts.commit()
                    self._finish_batch()
            finally:
                self._texts.close()
            if interrupts.interrupted:
                raise KeyboardInterrupt
        return bytes_read

    def _write_extractions(
        self,
        plan: ScanPlan,
        workers: WorkerPool,
        on_progress: Callable[[int], None],
        unfinished_batches: list[int],
        interrupts: DeferredInterrupt,
    ) -> int:
        self._texts.start_writing(is_large=plan.size > _LARGE_BATCH_SIZE)
        for batch in unfinished_batches:
            self._texts.remove_batch(batch)
        bytes_read = 0
        for task, result in workers.extract_files(plan.tasks):
            size = self._write_extraction(task, result, plan.problems)
            bytes_read += size
            on_progress(size)
            if interrupts.interrupted:
                break
        return bytes_read

    def _write_extraction(self, task: ScanTask, result: JobResult, problems: list[Problem]) -> int:
        extraction = result.extraction
        if extraction is None:
            problems.append(Problem("unreadable", task.path, result.problem))
            return 0
        if result.restarted or (task.reread and task.file not in self._files):
            # Removed only when the new rows are available.
            self._tables.remove_file_rows(task.file)
        self._tables.write_extraction(extraction)
        # A part without progress is the last one, even if more bytes follow.
        cut_off = extraction.has_more and extraction.end > extraction.start
        self._files[task.file] = _FileProgress(task, extraction.end, extraction.state, cut_off)
        return extraction.end - extraction.start

    def _update_files(self, plan: ScanPlan) -> None:
        for task in plan.touched:
            self._files[task.file] = _FileProgress(task, task.start, decode_state(task.state))
        for progress in self._files.values():
            task, state = progress.task, progress.state
            if progress.cut_off:
                # With the smaller size, the next sync detects that the file has more bytes.
                task.size = progress.done
            # In a dialect, appended records can change the meaning of earlier ones.
            fingerprint = b"" if state.converted else _fingerprint_or_empty(task.path, progress.done)
            title = _choose_title(state, read_custom_title(task.discovered_file))
            self._tables.update_file(task, progress.done, fingerprint, state, title)
        now = round(time.time())
        self._connection.executemany("UPDATE files SET gone = ? WHERE id = ?", [(now, file) for file in plan.gone])

    def _update_derived(self) -> None:
        tables, connection = self._tables, self._connection
        update_owners(connection, session_ids_of(connection, self._files))
        update_counted_copies(connection, tables.keys)
        update_daily_sums(connection, tables.days | days_of(connection, tables.keys))
        assign_foreign_titles(connection, {*self._files, *self._restore_own_titles()})

    def _restore_own_titles(self) -> Iterator[int]:
        """Give each session whose title was in a removed file the title in its own file; yield these files."""
        for leaf in self._tables.returned_titles:
            rows = self._connection.execute(
                "SELECT s.file, f.state FROM sessions s JOIN files f ON f.id = s.file WHERE s.last_uuid = ?", (leaf,)
            ).fetchall()
            for file, state_data in rows:
                state = decode_state(state_data)
                title = _choose_title(state)
                if file not in self._files and not title.is_given:
                    self._connection.execute(
                        "UPDATE sessions SET named = 0, title = ? WHERE file = ?", (title.text, file)
                    )
                yield file

    def _finish_batch(self) -> None:
        self._connection.execute("DELETE FROM batches WHERE id != ?", (self._batch_id,))
        self._connection.execute("UPDATE batches SET open = 0")


def remove_files(connection: sqlite3.Connection, folder: str, files: list[int]) -> None:
    """Remove files from an index completely."""
    texts = open_text_index(folder)
    texts.start_writing(is_large=False)
    try:
        with transaction(connection):
            tables = TableWriter(connection, texts, 0)
            names = session_ids_of(connection, files)
            for file in files:
                tables.remove_file_rows(file)
                connection.execute("DELETE FROM files WHERE id = ?", (file,))
            update_owners(connection, names)
            update_counted_copies(connection, tables.keys)
            update_daily_sums(connection, tables.days | days_of(connection, tables.keys))
            texts.commit()
    finally:
        texts.close()


def _choose_title(state: ExtractionState, custom_title: str = "") -> Title:
    return choose_title(
        custom=state.custom or custom_title,
        ai=state.ai,
        summary=state.summary,
        last_prompt=state.last_prompt,
        first=state.first_prompt,
        command=state.first_command,
    )


def _fingerprint_or_empty(path: str, end: int) -> bytes:
    """Return the fingerprint of a file; empty, which matches no file, if it cannot be read."""
    try:
        return file_fingerprint(path, end) or b""
    except Unreadable:
        return b""
