"""Extracts index rows from transcripts, in this process or in worker processes.

Reading can stop and resume at any line: the `ExtractionState` carries everything that the next part needs. A file read
at once and a file read in any number of parts give the same rows.
"""

import os
import re
import sqlite3
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, Self, TypeAlias, cast

import msgspec

from steno.errors import Unreadable
from steno.format.dialects.detection import hidden_ids
from steno.format.lenient_json import DECODE_ERRORS
from steno.format.lines import LINE_CAP, LineBatch, read_line, read_line_batches
from steno.format.records import DIALECT_TYPES, Gap, Piece, Record
from steno.format.source import OpenSource, Source
from steno.index.line_decoder import IndexedLine, LineBlock, decode_lines, line_from_record
from steno.index.session_stats import Extraction, ExtractionState, decode_state, encode_state, is_converted_state
from steno.index.sync.row_builder import RowBuilder
from steno.index.sync.scan import ScanTask, path_from_column
from steno.store.archive.file_access import open_transcript
from steno.store.summary import find_uuids

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor
    from multiprocessing.context import BaseContext


def open_indexed_file(connection: sqlite3.Connection, file_id: int) -> OpenSource | None:
    """Open an indexed file, converted if it has records in a dialect; None if it is not indexed.

    Raises:
        Unreadable: the file is neither on disk nor in the archive, or cannot be read.
    """
    row = connection.execute("SELECT path, state FROM files WHERE id = ?", (file_id,)).fetchone()
    if row is None:
        return None
    return open_transcript(path_from_column(row[0]), converted=is_converted_state(row[1] or b""))


_OPENING_BRACE: Final = ord("{")
_CLOSING_BRACE: Final = ord("}")
_LINE_PATTERN: Final = re.compile(rb"[^\n]+")
_MESSAGE_ROLES: Final = frozenset(("user", "assistant"))
_KNOWN_BLOCK_TYPES: Final = frozenset(
    (
        "text",
        "thinking",
        "redacted_thinking",
        "tool_use",
        "tool_result",
        "image",
        "document",
        "server_tool_use",
        "tool_reference",
    )
)
_NUMBER_TYPES: Final = frozenset((int, float))
_DecodedStretch: TypeAlias = tuple[LineBatch, list[IndexedLine]]


def extract_rows(
    source: Source,
    file: int,
    start: int = 0,
    state: ExtractionState | None = None,
    *,
    limit: int = 1 << 62,
    line_cap: int = LINE_CAP,
) -> Extraction:
    """Read a file from `start` on, up to about `limit` bytes.

    Stops at a record in a dialect: the file must then be converted and read again.
    """
    builder = RowBuilder(file, start, state or ExtractionState(), hidden_ids(source))
    for piece in _read_stretches(source, start, line_cap):
        if isinstance(piece, tuple):
            _add_lines(builder, *piece)
        elif isinstance(piece, Record):
            if piece.dialect != "claude":
                return Extraction(file, start, start, builder.build(source.size).state, in_dialect=True)
            builder.add_record(line_from_record(piece), piece.line, piece.offset, piece.length, piece)
        elif piece.ends_line(source):
            builder.end = piece.offset + piece.length
        if builder.end - start >= limit:
            break
    if unseen_leaves := builder.summaries.unseen_leaves:
        builder.summaries.match_leaves(find_uuids(source, unseen_leaves, builder.end))
    extraction = builder.build(source.size)
    if not extraction.has_more or extraction.end == extraction.start:
        _count_in_full(source, extraction.state)
    return extraction


def _count_in_full(source: Source, state: ExtractionState) -> None:
    """Count a session that is not linear by reading it in full."""
    stats = state.stats
    if stats.needs_full_count and state.main:
        from steno.session.session import Session
        from steno.session.transcript import load
        from steno.session.turns.session_facts import count_session

        session = Session(load(source))
        leaf = session.leaf
        stats.set_full_figures(count_session(session), leaf.uuid or "" if leaf is not None else "")


def _add_lines(builder: RowBuilder, stretch: LineBatch, lines: list[IndexedLine]) -> None:
    """Add lines that were decoded together, which is how most of a file is read."""
    data, first, ended = stretch.data, stretch.offset, stretch.ended
    start = 0
    for line in lines:
        line_end = data.find(b"\n", start)
        if line_end < 0:
            line_end = len(data)
        builder.add_record(line, data[start:line_end], first + start, line_end - start + ended)
        start = line_end + 1


def decoded_lines(
    source: Source, start: int = 0, *, line_cap: int = LINE_CAP
) -> Iterator[tuple[IndexedLine, bytes, int, bool] | Record | Gap]:
    """Yield the lines of a file as decoded for the index, its irregular records, and its gaps.

    A line is yielded with its bytes, its offset, and whether it ends with a newline.
    """
    for piece in _read_stretches(source, start, line_cap):
        if not isinstance(piece, tuple):
            yield piece
            continue
        stretch, lines = piece
        for line, stretch_line in zip(lines, stretch.lines(), strict=True):
            yield line, stretch_line.data, stretch_line.offset, stretch_line.ended


def _read_stretches(source: Source, start: int, line_cap: int) -> Iterator[_DecodedStretch | Piece]:
    """Yield lines in batches that can be decoded together; irregular lines are yielded separately."""
    for stretch in read_line_batches(source, start, cap=line_cap):
        if isinstance(stretch, Gap):
            yield stretch
            continue
        lines = _decode_stretch(stretch)
        if lines is not None:
            yield stretch, lines
            continue
        yield from _read_single_lines(stretch)


def _read_single_lines(stretch: LineBatch) -> Iterator[_DecodedStretch | Piece]:
    """Yield the lines of a batch one by one; consecutive blank lines are one gap."""
    data, end = stretch.data, 0
    for match in _LINE_PATTERN.finditer(data):
        start, line_end = match.span()
        if start > end:
            yield Gap(stretch.offset + end, start - end, b"", ())
        line_stretch = stretch.line_at(start, line_end)
        lines = _decode_stretch(line_stretch)
        if lines is not None:
            yield line_stretch, lines
        else:
            yield from read_line(line_stretch)
        end = line_end + 1
    if end <= len(data) and (blank_size := len(data) - end + stretch.ended):
        yield Gap(stretch.offset + end, blank_size, b"", ())


def _decode_stretch(stretch: LineBatch) -> list[IndexedLine] | None:
    """Decode the lines of a batch; return None if any of them is irregular."""
    if stretch.after_zeros:
        return None
    data = stretch.data
    try:
        lines = decode_lines(data)
    except DECODE_ERRORS:
        return None
    # The decoder skips whitespace, including newlines inside records; regular lines have none.
    newlines = data.count(b"\n")
    if len(lines) != newlines + 1 or data.count(b"}\n{") != newlines:
        return None
    if data[0] != _OPENING_BRACE or data[-1] != _CLOSING_BRACE:
        return None
    return lines if all(map(_is_regular, lines)) else None


def _is_regular(line: IndexedLine) -> bool:
    message = line.message
    if line.type not in _MESSAGE_ROLES:
        return message is None and line.type not in DIALECT_TYPES and line.subtype != "tool_result"
    if message is None or line.timestamp.__class__ in _NUMBER_TYPES:
        return False
    content = message.content
    if content.__class__ is not list:
        return True
    return all(block.type in _KNOWN_BLOCK_TYPES for block in cast("list[LineBlock]", content))


STRETCH_SIZE: Final = 16 << 20
"""Bytes of one file that are read in one job."""
_JOB_SIZE: Final = 4 << 20
_MAX_JOB_FILES: Final = 64
"""Maximum files per job: decoding its result blocks all other threads of the process."""
_SINGLE_PROCESS_SIZE: Final = 48 << 20
_WORKER_COUNT: Final = 2


class ExtractionJob(msgspec.Struct, array_like=True):
    """A part of a file to read."""

    task: int
    file: int
    path: str
    start: int
    state: bytes


class JobResult(msgspec.Struct, array_like=True):
    """The result of a job: an extraction, or a problem."""

    task: int
    extraction: Extraction | None
    problem: str = ""
    restarted: bool = False
    """Whether earlier rows of the file must be removed because it has records in a dialect."""


class WorkerPool:
    """Worker processes. Start it before any threads; it is used for the whole sync.

    with WorkerPool(size) as workers:
        for task, result in workers.extract_files(tasks): …
    """

    def __init__(self, size: int, worker_count: int | None = None) -> None:
        """Take the total number of bytes to read."""
        if worker_count is None:
            worker_count = _WORKER_COUNT if size > _SINGLE_PROCESS_SIZE and (os.cpu_count() or 1) > 1 else 0
        self._worker_count = worker_count
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        if self._worker_count:
            from concurrent.futures import ProcessPoolExecutor

            self._pool = ProcessPoolExecutor(
                self._worker_count, mp_context=_process_context(), initializer=_ignore_interrupts
            )
            # The first job starts the processes.
            self._pool.submit(int).result()
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def extract_files(self, tasks: Sequence[ScanTask]) -> Iterator[tuple[ScanTask, JobResult]]:
        """Yield the results of reading the files, in parts; the parts of a file are in order."""
        queue = _JobQueue(tasks)
        if self._pool is not None:
            from concurrent.futures.process import BrokenProcessPool

            try:
                for result in queue.run_in_pool(self._pool, self._worker_count):
                    yield tasks[result.task], result
            except BrokenProcessPool:
                # A worker was killed, possibly because of memory. The remaining jobs run in this process.
                self._pool = None
                queue.requeue_submitted()
        for result in queue.run_here():
            yield tasks[result.task], result


class _JobQueue:
    """Queue of the parts still to be read."""

    def __init__(self, tasks: Sequence[ScanTask]) -> None:
        self._tasks = tasks
        self._jobs = deque(
            ExtractionJob(number, task.file, task.path, task.start, task.state) for number, task in enumerate(tasks)
        )
        self._submitted: dict[Future[bytes], list[ExtractionJob]] = {}

    def run_here(self) -> Iterator[JobResult]:
        """Run all jobs in this process."""
        while self._jobs:
            result = _run_job(self._jobs.popleft())
            yield result
            self._requeue_rest(result)

    def run_in_pool(self, pool: "ProcessPoolExecutor", worker_count: int) -> Iterator[JobResult]:
        """Run all jobs in worker processes."""
        from concurrent.futures import FIRST_COMPLETED, wait

        decoder = msgspec.msgpack.Decoder(list[JobResult])
        while self._jobs or self._submitted:
            # One job more than workers: no worker waits, and little is held in memory.
            while self._jobs and len(self._submitted) <= worker_count:
                jobs = self._next_jobs()
                self._submitted[pool.submit(_run_jobs, jobs)] = jobs
            finished, _ = wait(self._submitted, return_when=FIRST_COMPLETED)
            for future in finished:
                for job_result in decoder.decode(future.result()):
                    yield job_result
                    self._requeue_rest(job_result)
                del self._submitted[future]

    def requeue_submitted(self) -> None:
        """Put submitted jobs that will not finish back into the queue."""
        for jobs in self._submitted.values():
            self._jobs.extendleft(reversed(jobs))

    def _next_jobs(self) -> list[ExtractionJob]:
        """Take the next jobs from the queue: several small files or one large file."""
        bundle: list[ExtractionJob] = []
        size = 0
        while self._jobs and size < _JOB_SIZE and len(bundle) < _MAX_JOB_FILES:
            job = self._jobs.popleft()
            bundle.append(job)
            size += self._tasks[job.task].size - job.start
        return bundle

    def _requeue_rest(self, result: JobResult) -> None:
        """Put the rest of a file at the front of the queue."""
        extraction = result.extraction
        # If a job made no progress, repeating it would make none either.
        if extraction is not None and extraction.has_more and extraction.end > extraction.start:
            path = self._tasks[result.task].path
            state = encode_state(extraction.state)
            self._jobs.appendleft(ExtractionJob(result.task, extraction.file, path, extraction.end, state))


def _process_context() -> "BaseContext":
    from multiprocessing import get_context
    from threading import active_count

    # Forking is fast, but not safe with other threads or on macOS.
    forks = sys.platform == "linux" and active_count() == 1
    return get_context("fork" if forks else "spawn")


def _ignore_interrupts() -> None:
    """Ignore Ctrl-C, which the main process handles."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _run_jobs(jobs: list[ExtractionJob]) -> bytes:
    return msgspec.msgpack.encode([_run_job(job) for job in jobs])


def _run_job(job: ExtractionJob) -> JobResult:
    try:
        state = decode_state(job.state)
        extraction = _extract_stretch(job, job.start, state, converted=state.converted if job.start else None)
        if extraction.in_dialect:
            converted_extraction = _extract_stretch(job, 0, ExtractionState(), converted=True)
            return JobResult(job.task, converted_extraction, restarted=bool(job.start))
        return JobResult(job.task, extraction)
    except Unreadable as error:
        return JobResult(job.task, None, str(error))


def _extract_stretch(job: ExtractionJob, start: int, state: ExtractionState, *, converted: bool | None) -> Extraction:
    """Read a part of a file; with `converted` None, the beginning of the file decides whether to convert it."""
    from steno.format.dialects.detection import is_converted
    from steno.format.paths import project_from_slug
    from steno.store.archive.file_access import open_transcript

    with open_transcript(job.path, converted=converted) as source:
        if is_converted(source) and not start:
            state.converted, state.dialect = True, source.dialect
            if state.dialect != "claude":
                # The working directory of such a session appears only in the name of its directory.
                state.project = project_from_slug(os.path.basename(os.path.dirname(job.path)))
        return extract_rows(source, job.file, start, state, limit=STRETCH_SIZE)
