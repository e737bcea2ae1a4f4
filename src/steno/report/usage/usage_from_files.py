"""Token usage without an index: scans all session files, in several processes if that is faster.

Records are found by the bytes `"usage"`, which cannot occur inside a JSON string, where the quotes would be escaped. A
file with anything unexpected (a line that is not a record, fields of unexpected types) is read again record by record,
so that both methods give the same counts.

Each process reads a partition of the files and resolves copies of a response within it. Responses that occur in several
partitions are sent to the first process, which resolves them; the others are summed by the process that read them.
"""

import os
import struct
from collections.abc import Sequence
from io import FileIO
from typing import Any, Final

import msgspec

from steno.errors import Unreadable
from steno.format.lenient_json import DECODE_ERRORS
from steno.format.lines import LINE_CAP
from steno.format.message import SYNTHETIC, ForkOrigin, RecordFields, projection
from steno.format.paths import JSONL_SUFFIX, classify_transcript, is_uuid
from steno.index.line_decoder import LineUsage, to_millis
from steno.index.session_stats import FILE_ID_SHIFT, Row
from steno.index.sync.scan import path_to_column
from steno.index.usage_rows import UsageRowBuilder, copy_rank
from steno.report.usage.usage_query import (
    Bucket,
    Buckets,
    TokenCounts,
    TranscriptOwner,
    UsageQuery,
    add_counts,
    aggregate_rows,
)
from steno.store.discovery import Problem, TranscriptWalk, path_context

_USAGE_KEY: Final = '"usage"'
_NEWLINE: Final = "\n"
_OPEN_BRACE: Final = ord("{")
_BUFFER_SIZE: Final = 4 << 20
_HEAD_LINES: Final = 64


class _MessageBody(msgspec.Struct, gc=False):
    id: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    usage: LineUsage | None = None


@projection("type uuid session_id timestamp agent_id request_id cwd version git_branch is_sidechain")
class UsageRecord(RecordFields):
    """The fields of a record that usage needs."""

    forked_from: ForkOrigin | None = None
    message: _MessageBody | None = None


@projection("uuid session_id timestamp agent_id cwd is_sidechain")
class _HeadRecord(RecordFields):
    pass


class ScannedFile(msgspec.Struct):
    """Session, project, start and usage rows of a file."""

    path: str
    session: str = ""
    agent: str = ""
    project: str = ""
    started: int | None = None
    has_skipped: bool = False
    """Whether the file contains records with usage that Claude Code wrote without an API request."""
    rows: dict[str, Row] = {}

    def update(self, line: Any) -> None:
        """Set fields from a record, if no earlier record set them."""
        if line.uuid is None:
            return
        self.project = self.project or line.cwd or ""
        self.session = self.session or line.session_id or ""
        if line.is_sidechain:
            self.agent = self.agent or line.agent_id or ""
        if self.started is None:
            self.started = to_millis(line.timestamp)

    @property
    def is_complete(self) -> bool:
        """Whether all fields are set."""
        return bool(self.project and self.session) and self.started is not None


class _UnexpectedContent(Exception):
    """Content that requires the record-by-record scan."""


_decode_usage: Final = msgspec.json.Decoder(UsageRecord).decode
_decode_head: Final = msgspec.json.Decoder(_HeadRecord).decode


def decode_usage_record(raw: bytes) -> UsageRecord | None:
    """Decode the usage fields of a record; None if it requires the tolerant decoder."""
    try:
        return _decode_usage(raw)
    except DECODE_ERRORS:
        return None


class FileScanner:
    """Scans files using one buffer."""

    def __init__(self) -> None:
        self._allocate(_BUFFER_SIZE)

    def _allocate(self, size: int) -> None:
        import stringzilla

        library: Any = stringzilla
        self._view = memoryview(bytearray(size))
        self._text: Any = library.Str(self._view)

    def scan(self, path: str, number: int) -> ScannedFile:
        """Return the usage rows of a file; `number` is the file number.

        The time of a row is a number, or still the text of the record.

        Raises:
            Unreadable: The file cannot be read.
        """
        scanned, tally = ScannedFile(path), UsageRowBuilder(number)
        try:
            self._read(path, number << FILE_ID_SHIFT, scanned, tally)
        except _UnexpectedContent:
            return _scan_by_record(path, number)
        except (OSError, ValueError) as error:
            raise Unreadable(f"cannot read {path}: {error}") from error
        scanned.rows = tally.rows_by_key()
        return scanned

    def _read(self, path: str, base: int, scanned: ScannedFile, tally: UsageRowBuilder) -> None:
        """Read a file; `base` is the first message number."""
        filled = 0
        head_is_read = False
        with FileIO(path) as file:
            while read_count := file.readinto(self._view[filled:]):
                end = filled + read_count
                stop = self._text.rfind(_NEWLINE, filled, end) + 1
                if not head_is_read and stop:
                    head_is_read = self._read_head(stop, scanned)
                if stop:
                    self._scan_lines(stop, base, scanned, tally)
                    self._view[: end - stop] = self._view[stop:end]
                filled = end - stop
                base += stop
                if filled == len(self._view):
                    self._grow()
        if filled:
            if not head_is_read:
                self._read_head(filled, scanned)
            self._scan_lines(filled, base, scanned, tally)

    def _grow(self) -> None:
        """Enlarge the buffer for a line longer than it."""
        size = len(self._view)
        if size > LINE_CAP:
            raise _UnexpectedContent
        old_view = self._view
        self._allocate(4 * size)
        self._view[:size] = old_view

    def _read_head(self, stop: int, scanned: ScannedFile) -> bool:
        """Read the session, project and start from the first records."""
        view, find, start = self._view, self._text.find, 0
        for _ in range(_HEAD_LINES):
            end = find(_NEWLINE, start, stop)
            end = stop if end < 0 else end
            try:
                line = _decode_head(view[start:end])
            except DECODE_ERRORS:
                raise _UnexpectedContent from None
            if view[start] != _OPEN_BRACE:
                raise _UnexpectedContent
            scanned.update(line)
            start = end + 1
            if scanned.is_complete:
                return True
            if start >= stop:
                return False
        raise _UnexpectedContent

    def _scan_lines(self, stop: int, base: int, scanned: ScannedFile, tally: UsageRowBuilder) -> None:
        """Add the usage of all lines in the buffer up to `stop`."""
        view, find, rfind, decode = self._view, self._text.find, self._text.rfind, _decode_usage
        start = last_start = lines = 0
        last: UsageRecord | None = None
        response_id, output, timestamp = "", 0, None
        try:
            while (at := find(_USAGE_KEY, start, stop)) >= 0:
                start = max(start, rfind(_NEWLINE, start, at) + 1)
                end = find(_NEWLINE, at, stop)
                end = stop if end < 0 else end
                line = decode(view[start:end])
                body = line.message
                if line.type != "assistant" or body is None or body.usage is None:
                    pass
                elif body.model == SYNTHETIC:
                    # A synthetic record may have the ID of a response but must not replace it.
                    scanned.has_skipped = True
                else:
                    new_output = body.usage.output_tokens or 0
                    if body.id and body.id == response_id and new_output >= output:
                        # Records of a response are mostly consecutive: keep the last one.
                        lines += 1
                    else:
                        if last is not None:
                            _add_response(last, base + last_start, timestamp, lines, tally)
                        response_id, timestamp, lines = body.id, line.timestamp, 1
                    last, last_start, output = line, start, new_output
                start = end
        except DECODE_ERRORS:
            raise _UnexpectedContent from None
        if last is not None:
            _add_response(last, base + last_start, timestamp, lines, tally)


def _add_response(line: UsageRecord, message: int, timestamp: Any, lines: int, tally: UsageRowBuilder) -> None:
    if timestamp is not None and timestamp.__class__ is not str:
        raise _UnexpectedContent
    if line.is_sidechain and not line.agent_id:
        # The sub-agent depends on all earlier records.
        raise _UnexpectedContent
    agent = (line.agent_id or "") if line.is_sidechain else ""
    tally.add_line(line, message, 0, timestamp, line.git_branch or "", agent, lines)


def _scan_by_record(path: str, number: int) -> ScannedFile:
    """Read a file record by record, tolerating any damage."""
    from steno.format.lines import read_records
    from steno.index.line_decoder import line_from_record
    from steno.store.file_source import FileSource

    scanned, tally = ScannedFile(path), UsageRowBuilder(number)
    with FileSource(path) as source:
        for record in read_records(source):
            line = line_from_record(record)
            scanned.update(line)
            if line.type != "assistant":
                continue
            body = line.message
            if body is not None and body.usage is not None and body.model == SYNTHETIC:
                scanned.has_skipped = True
            agent = (line.agent_id or scanned.agent) if line.is_sidechain else ""
            branch = line.git_branch or ""
            message = (number << FILE_ID_SHIFT) + record.offset
            tally.add_line(line, message, 0, to_millis(line.timestamp), branch, agent)
    scanned.rows = tally.rows_by_key()
    return scanned


_PARALLEL_BYTES: Final = 24 << 20
"""Number of bytes for which another process saves time."""
_MAX_PROCESSES: Final = 4
_HIGHEST_CHARACTER: Final = "\U0010ffff"
_MESSAGE_SIZE: Final = struct.Struct("<Q")

SizedFile = tuple[str, int]
"""Path and size."""


class _WorkerResult(msgspec.Struct, array_like=True):
    cells: list[tuple[Bucket, TokenCounts]]
    claims: list[tuple[str, list[object], list[object]]]
    problems: list[Problem]
    begins: list[tuple[int, TranscriptOwner]]


def transcripts_below(roots: Sequence[str], problems: list[Problem]) -> list[SizedFile]:
    """Return every transcript below directories, with its size."""
    files: dict[str, int] = {}

    def is_transcript(entry: os.DirEntry[str]) -> bool:
        """Add the file if its name identifies a transcript; return False if the file must be inspected."""
        name = entry.name
        if not (name.startswith("agent-") or is_uuid(name[: -len(JSONL_SUFFIX)])):
            return False
        try:
            if not entry.is_file(follow_symlinks=False):
                return False
            files.setdefault(entry.path, entry.stat().st_size)
        except OSError:
            return False
        return True

    for root in roots:
        for session_file in TranscriptWalk(os.path.abspath(root), problems, agents=True, is_known=is_transcript).run():
            files.setdefault(session_file.path, session_file.size)
    return list(files.items())


class FilePartition:
    """Part of the files, and the responses counted in them."""

    def __init__(self, files: Sequence[tuple[int, str]]) -> None:
        self._files = files
        self.rows: dict[str, Row] = {}
        self.copies: list[Row] = []
        """Copies of responses that are counted in another file."""
        self.problems: list[Problem] = []
        self._scanned: dict[int, ScannedFile] = {}
        self._origins: dict[int, TranscriptOwner] = {}

    def read(self) -> None:
        """Read all files."""
        scanner = FileScanner()
        for number, path in self._files:
            try:
                scanned = scanner.scan(path, number)
            except Unreadable as error:
                self.problems.append(Problem("unreadable", path, str(error)))
                continue
            rows, scanned.rows = scanned.rows, {}
            self._scanned[number] = scanned
            for key in self.rows.keys() & rows.keys():
                self._resolve_copies(key, rows)
            self.rows.update(rows)

    def _resolve_copies(self, key: str, rows: dict[str, Row]) -> None:
        """Keep, of two copies of a response, the one that counts."""
        current, other = self.rows[key], rows[key]
        if self.rank(current) < self.rank(other):
            rows[key], current = current, other
        self.copies.append(current)

    def rank(self, row: Row) -> tuple[int, int, int, str, str, str]:
        """Return the sort key of copies of a response."""
        scanned = self._scanned[row[0]]
        session, agent, _ = self.origin_of(row[0])
        # As in SQL, bytes sort after text.
        stored_path = path_to_column(scanned.path)
        path = stored_path if isinstance(stored_path, str) else _HIGHEST_CHARACTER + stored_path.decode("latin-1")
        return copy_rank(row, scanned.started, session, agent, path)

    def origin_of(self, number: int) -> TranscriptOwner:
        """Return the session, sub-agent and project of a file."""
        origin = self._origins.get(number)
        if origin is None:
            scanned = self._scanned[number]
            folder, file_name = os.path.split(scanned.path)
            place = classify_transcript((*path_context(folder), file_name))
            agent = (place.agent_id or scanned.agent) if place.role == "agent" else ""
            origin = (place.session_id or scanned.session, agent, scanned.project)
            self._origins[number] = origin
        return origin

    def files_with_skipped(self, query: UsageQuery) -> list[int]:
        """Return the files with synthetic records."""
        return [
            number
            for number, scanned in self._scanned.items()
            if scanned.has_skipped and query.matches_project(scanned.project)
        ]

    def aggregate(self, query: UsageQuery) -> Buckets:
        """Aggregate the remaining responses."""
        return aggregate_rows(self.rows.values(), query, self.origin_of)


def count_files_usage(
    roots: Sequence[str], query: UsageQuery, problems: list[Problem], *, processes: int | None = None
) -> Buckets:
    """Return the usage of all files below directories."""
    import gc

    # Objects created here live until the end, so garbage collection only costs time.
    gc_was_enabled = gc.isenabled()
    gc.disable()
    try:
        files = transcripts_below(roots, problems)
        if processes is None:
            is_large = sum(size for _, size in files) > _PARALLEL_BYTES
            processes = min(_usable_processors(), _MAX_PROCESSES) if is_large else 1
        first, *other_partitions = (FilePartition(part_files) for part_files in _partition_files(files, processes))
        workers = [_Worker(partition, query) for partition in other_partitions]
        first.read()
        return _combine(first, workers, _keys_in_several(first, workers), query, problems)
    finally:
        if gc_was_enabled:
            gc.enable()


def _keys_in_several(first: FilePartition, workers: "list[_Worker]") -> set[str]:
    """Return the responses that occur in several partitions."""
    seen_keys = set(first.rows)
    shared_keys: set[str] = set()
    for worker in workers:
        keys = worker.receive_keys()
        shared_keys |= seen_keys & keys
        seen_keys |= keys
    return shared_keys


def _combine(
    first: FilePartition, workers: "list[_Worker]", shared_keys: set[str], query: UsageQuery, problems: list[Problem]
) -> Buckets:
    claims = _take_shared(first, shared_keys)
    for worker in workers:
        worker.send_shared_keys(shared_keys)
    buckets = first.aggregate(query)
    problems += first.problems
    origins: dict[int, TranscriptOwner] = {}
    for worker in workers:
        result = worker.receive_result()
        problems += result.problems
        origins.update(result.begins)
        claims += [(key, list(row), list(ranks)) for key, row, ranks in result.claims]
        for (names, day, model, fast, tier), counts in result.cells:
            add_counts(buckets, (tuple(names), day, model, fast, tier), counts)
    best: dict[str, tuple[list[object], list[object]]] = {}
    for key, row, ranks in claims:
        if key not in best or ranks < best[key][1]:
            best[key] = (row, ranks)

    def origin_of(number: int) -> TranscriptOwner:
        return origins[number] if number in origins else first.origin_of(number)

    rows = [tuple(row) for row, _ in best.values()]
    for bucket, counts in aggregate_rows(rows, query, origin_of).items():
        add_counts(buckets, bucket, counts)
    return buckets


def _take_shared(partition: FilePartition, shared_keys: set[str]) -> list[tuple[str, list[object], list[object]]]:
    """Remove the responses that also occur in other partitions, and return them."""
    claims: list[tuple[str, list[object], list[object]]] = []
    for key in shared_keys & partition.rows.keys():
        row = partition.rows.pop(key)
        claims.append((key, list(row), list(partition.rank(row))))
    return claims


def _partition_files(files: Sequence[SizedFile], number: int) -> list[list[tuple[int, str]]]:
    """Distribute the files so that partitions have similar sizes."""
    partitions: list[list[tuple[int, str]]] = [[] for _ in range(number)]
    loads = [0] * number
    for file_number, (path, size) in sorted(enumerate(files), key=lambda numbered_file: -numbered_file[1][1]):
        lightest = loads.index(min(loads))
        partitions[lightest].append((file_number, path))
        loads[lightest] += size
    return partitions


def _usable_processors() -> int:
    from threading import active_count

    # Forking is fast but unsafe with other threads; spawning costs more than it saves.
    if not hasattr(os, "fork") or active_count() > 1:
        return 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Worker:
    """A child process that reads a partition."""

    def __init__(self, partition: FilePartition, query: UsageQuery) -> None:
        self._partition = partition
        self._query = query
        self._shared_keys: set[str] = set()
        self._died = False
        """Whether the child process died, so that this process reads the partition."""
        from_worker, to_worker = os.pipe(), os.pipe()
        self._process = os.fork()
        if not self._process:
            os.close(from_worker[0])
            os.close(to_worker[1])
            _run_worker(partition, query, to_worker[0], from_worker[1])
        os.close(from_worker[1])
        os.close(to_worker[0])
        self._read, self._write = from_worker[0], to_worker[1]

    def receive_keys(self) -> set[str]:
        """Return the keys of the responses in the partition."""
        raw = _receive(self._read)
        if raw is not None:
            return set(msgspec.msgpack.decode(raw, type=list[str]))
        # The child process died: read its partition here.
        self._died = True
        self._partition.read()
        return set(self._partition.rows)

    def send_shared_keys(self, shared_keys: set[str]) -> None:
        """Send the responses that also occur in other partitions."""
        self._shared_keys = shared_keys
        if not self._died:
            try:
                _send(self._write, msgspec.msgpack.encode(sorted(shared_keys)))
            except BrokenPipeError:
                self._died = True
                self._partition.read()
        os.close(self._write)

    def receive_result(self) -> _WorkerResult:
        """Return the aggregated partition."""
        raw = None if self._died else _receive(self._read)
        os.close(self._read)
        os.waitpid(self._process, 0)
        if raw is not None:
            return msgspec.msgpack.decode(raw, type=_WorkerResult)
        if not self._died:
            self._partition.read()
        return _worker_result(self._partition, self._query, self._shared_keys)


def _run_worker(partition: FilePartition, query: UsageQuery, read: int, write: int) -> None:
    """Run in the child process; never returns."""
    import signal

    code = 1
    try:
        # On Ctrl-C, the first process closes the pipe.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        partition.read()
        _send(write, msgspec.msgpack.encode(list(partition.rows)))
        raw = _receive(read)
        if raw is not None:
            shared_keys = set(msgspec.msgpack.decode(raw, type=list[str]))
            _send(write, msgspec.msgpack.encode(_worker_result(partition, query, shared_keys)))
            code = 0
    finally:
        os._exit(code)


def _worker_result(partition: FilePartition, query: UsageQuery, shared_keys: set[str]) -> _WorkerResult:
    claims = _take_shared(partition, shared_keys)
    origins = [(int(str(row[0])), partition.origin_of(int(str(row[0])))) for _, row, _ in claims]
    return _WorkerResult(list(partition.aggregate(query).items()), claims, partition.problems, origins)


def _send(pipe: int, data: bytes) -> None:
    data = _MESSAGE_SIZE.pack(len(data)) + data
    while data:
        data = data[os.write(pipe, data) :]


def _receive(pipe: int) -> bytes | None:
    """Return the received data; None if the other end is closed."""
    header = _read_exactly(pipe, _MESSAGE_SIZE.size)
    return None if header is None else _read_exactly(pipe, _MESSAGE_SIZE.unpack(header)[0])


def _read_exactly(pipe: int, size: int) -> bytes | None:
    chunks: list[bytes] = []
    while size:
        chunk = os.read(pipe, min(size, 1 << 20))
        if not chunk:
            return None
        chunks.append(chunk)
        size -= len(chunk)
    return b"".join(chunks)
