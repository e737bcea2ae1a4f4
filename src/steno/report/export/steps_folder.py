"""Keeps a steps directory in sync with the sessions: only changed sessions are written.

    report = sync_steps(StepsJob("/home/ada/steps", roots_of()))

A session is changed if the SHA-256 of its file differs from the one in `metadata.json`. A copy with another
modification time is therefore unchanged, and a file rewritten with the same size is changed. After a sync the
directory has the same content as an export into an empty one, even if earlier runs were interrupted.

steno owns a session directory if its metadata names steno as writer and matches the directory name. Other directories
are not modified. A cache in steno's directory saves reading unchanged files; without it every file is read once more.
"""

import errno
import os
import time
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b, sha256
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast
from zlib import crc32

import msgspec

from steno.errors import Unreadable, Unwritable
from steno.format.records import read_time
from steno.report.export.session_export import unused_name
from steno.report.export.steps_format import (
    METADATA_FILE,
    STEP_FILES,
    STEPS_FILE,
    SYNC_VERSION,
    WRITER,
    Source,
    SourceState,
    StepsOutput,
    is_running,
    read_steps,
    running_until,
    sealed_metadata,
    status_name,
)
from steno.sanitize.secret_masker import Masker
from steno.session.session_status import StepCounts, is_listed
from steno.store import atomic, environment
from steno.store.archive.file_access import open_file
from steno.store.discovery import ArchivedFile, DiscoveredFile, Discovery, Problem, is_below
from steno.store.environment import config_dir
from steno.store.safe_output import OutputFolder

if TYPE_CHECKING:
    from steno.session.session_status import Ending


FileIdentity: TypeAlias = tuple[int, int, int, int, int]
"""Device, inode, size, modification time and change time."""
_SETTLED_NANOS: Final = 2_000_000_000
"""Minimum age of a change: a later write within the timestamp resolution would be missed."""


class _Entry(msgspec.Struct, array_like=True):
    identity: FileIdentity
    state: SourceState


class _StoredCache(msgspec.Struct):
    version: int
    entries: dict[str, _Entry] = {}


class SourceCache:
    """States of the sources of one output directory."""

    def __init__(self, folder: str, version: int) -> None:
        self._name = os.path.join("steps", f"{crc32(os.fsencode(folder)):08x}.cache")
        self._version = version
        self._entries = _load_cache(self._name, version)
        self._changed = False

    def identity(self, source: Source) -> FileIdentity | None:
        """Return the identity of a file's current content; None if it is not reliable."""
        if isinstance(source.found, ArchivedFile):
            return None
        try:
            status = os.stat(source.found.path)
        except OSError:
            return None
        latest = max(status.st_mtime_ns, status.st_ctime_ns)
        if latest > time.time_ns() - _SETTLED_NANOS:
            return None
        return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)

    def state(self, source: Source) -> SourceState | None:
        """Return the state of a file that has not changed since it was read."""
        entry = self._entries.get(source.id)
        if entry is None or entry.identity != self.identity(source):
            return None
        return entry.state

    def last_state(self, source: Source) -> SourceState | None:
        """Return the state of a file when it was last read."""
        entry = self._entries.get(source.id)
        return None if entry is None else entry.state

    def put(self, source: Source, identity: FileIdentity | None, state: SourceState) -> None:
        """Store a state; `identity` was determined before the file was read."""
        if identity is not None:
            self._entries[source.id] = _Entry(identity, state)
            self._changed = True

    def store(self, sources: set[str]) -> None:
        """Write the states of the given sources to the cache, and drop all others."""
        entries = {name: entry for name, entry in self._entries.items() if name in sources}
        if self._changed or len(entries) != len(self._entries):
            atomic.write_cache(self._name, msgspec.msgpack.encode(_StoredCache(self._version, entries)))


def _load_cache(name: str, version: int) -> dict[str, _Entry]:
    raw = atomic.read_cache(name)
    if raw is None:
        return {}
    try:
        stored = msgspec.msgpack.decode(raw, type=_StoredCache)
    except msgspec.MsgspecError:
        return {}
    return stored.entries if stored.version == version else {}


ProgressPlan: TypeAlias = Callable[[int], Callable[[int], None]]
"""Receives the total number of bytes and returns a progress callback."""
_LARGEST_METADATA: Final = 1 << 20
_FOLDER_ERRORS: Final = frozenset(
    (errno.EISDIR, errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST, errno.ELOOP, errno.EACCES, errno.EPERM)
)
"""Errors caused by the content or the permissions of one directory."""
_INCOMPLETE_KINDS: Final = frozenset(("denied", "unreadable", "missing", "too-deep"))
"""Problems that may hide existing sessions."""


class Skipped(msgspec.Struct, frozen=True):
    """A file that was not written, and the reason."""

    path: str
    reason: str
    failed: bool = False
    """Whether it is an error that the file was not written."""


class StepsJob(msgspec.Struct):
    """Options of a sync."""

    out: str
    roots: tuple[str, ...]
    masker: Masker | None = None
    listed: bool = False
    """Whether to omit short sessions, as `steno ls --listed` does."""
    force: bool = False
    """Whether to overwrite directories that steno did not write."""
    planned: ProgressPlan | None = None


class StepsReport(msgspec.Struct):
    """Result of a sync. Sessions are identified by their directories."""

    written: list[str] = []
    unchanged: list[str] = []
    removed: list[str] = []
    skipped: list[Skipped] = []
    problems: list[Problem] = []
    status_changes_at: float | None = None
    """Time of the next status change of a running session, if its file does not change."""

    @property
    def changed(self) -> bool:
        """Whether the sync changed any file."""
        return bool(self.written or self.removed)

    @property
    def failed(self) -> list[Skipped]:
        """Files that could not be written."""
        return [each for each in self.skipped if each.failed]


def sync_steps(job: StepsJob, selected: Sequence[DiscoveredFile] | None = None) -> StepsReport:
    """Write the steps of changed sessions, and remove those of deleted sessions.

    Without `selected`, all sessions below the roots are synced; with it, other existing sessions keep their
    directories.

    Raises:
        BadRequest: The directory is inside a directory of sessions.
        Unwritable: The directory cannot be written; earlier writes are complete.
    """
    forbidden_folders = [root for root in (*job.roots, config_dir()) if not os.path.isfile(root)]
    with OutputFolder(job.out, STEP_FILES, protected=forbidden_folders) as output:
        return _SyncRun(job, output).run(selected)


class _RecordedFolder(msgspec.Struct, frozen=True):
    """Source of a session directory, from its metadata."""

    version: int
    redacted: bool
    source_id: str
    root_id: str
    status: str
    steps_size: int
    steps_sha256: str
    state: SourceState
    intact: bool
    """Whether the metadata is unmodified."""


class _SyncRun:
    def __init__(self, job: StepsJob, output: OutputFolder) -> None:
        self._job = job
        self._output = output
        self._now = environment.now()
        self._report = StepsReport()
        self._roots = tuple(os.path.abspath(root) for root in job.roots)
        self._cache = SourceCache(output.real_path, SYNC_VERSION)
        self._folders: dict[str, _RecordedFolder] = {}
        """Directories owned by steno, by name."""
        self._folders_by_source: dict[str, list[str]] = {}
        self._remaining_names: set[str] = set()
        """Names of directories to keep."""
        self._used_names: set[str] = set()

    def run(self, selected: Sequence[DiscoveredFile] | None) -> StepsReport:
        for name in self._output.names():
            recorded = _recorded_folder(name, self._output.read(name, METADATA_FILE, _LARGEST_METADATA))
            if recorded is not None:
                self._folders[name] = recorded
                self._folders_by_source.setdefault(recorded.source_id, []).append(name)
        existing = self._find_sources()
        if selected is None:
            self._skip_agents()
            sources = sorted(existing.values(), key=_by_path)
        else:
            sources = [self._source(session_file) for session_file in selected]
            existing |= {source.id: source for source in sources}
            selected_ids = {source.id for source in sources}
            self._used_names |= {
                name.lower()
                for name, recorded in self._folders.items()
                if recorded.source_id in existing and recorded.source_id not in selected_ids
            }
        step = self._plan(sources)
        for source in sources:
            self._sync_source(source, sync_all=selected is None)
            step(source.found.size)
        self._remove_gone(existing, sources)
        self._cache.store({source.id for source in existing.values()})
        return self._report

    def _plan(self, sources: Iterable[Source]) -> Callable[[int], None]:
        if self._job.planned is None:
            return _ignore
        return self._job.planned(sum(source.found.size for source in sources))

    # Sources

    def _find_sources(self) -> dict[str, Source]:
        """Return every session below the roots by source ID."""
        sources: dict[str, Source] = {}
        for root in self._job.roots:
            for session_file in Discovery(root, self._report.problems).sessions():
                source = self._source(session_file)
                sources.setdefault(source.id, source)
        return sources

    def _skip_agents(self) -> None:
        paths = {
            os.path.abspath(transcript_file.path)
            for root in self._job.roots
            for transcript_file in Discovery(root).transcripts()
            if transcript_file.place.role == "agent"
        }
        for path in sorted(paths):
            self._report.skipped.append(Skipped(path, "transcript of a sub-agent"))

    def _source(self, session_file: DiscoveredFile) -> Source:
        path = os.path.abspath(session_file.path)
        root = os.path.abspath(session_file.root)
        # Use the known root, however the path of the session was given.
        root = next((known_root for known_root in self._roots if is_below(path, known_root)), root)
        return Source(session_file, path, _path_hash(path), _path_hash(root))

    def _skip(self, source: Source, reason: str, *, failed: bool = False) -> None:
        self._report.skipped.append(Skipped(source.path, reason, failed))

    # One session

    def _sync_source(self, source: Source, *, sync_all: bool) -> None:
        try:
            self._update_source(source, sync_all=sync_all)
        except Unreadable as error:
            names = self._folders_by_source.get(source.id, ())
            self._skip(source, str(error), failed=True)
            self._remaining_names.update(names)
            # A copy with the same ID must not take over its directory.
            self._used_names.update(name.lower() for name in names)

    def _update_source(self, source: Source, *, sync_all: bool) -> None:
        state = self._known_state(source)
        output = None
        if state is None:
            output = self._read(source)
            state = output.state
        if reason := self._reason_to_skip(state):
            self._skip(source, reason)
            return
        name = self._folder_name(source, state, sync_all=sync_all)
        if self._is_unchanged(name, source, state):
            self._output.remove_temp_files(name)
            self._report.unchanged.append(name)
        elif self._may_write(name):
            output = output or self._read(source)
            state = output.state
            if not self._write(name, source, output):
                return
        else:
            folder = self._output.kind(name) == "folder"
            problem = "was not written by steno" if folder else "is not a readable directory"
            reason = f"{os.path.join(self._job.out, name)} {problem}"
            self._skip(source, reason, failed=True)
            return
        self._remaining_names.add(name)
        self._note_status_change(state)

    def _write(self, name: str, source: Source, output: StepsOutput) -> bool:
        """Write a session; return False if only its directory cannot be written.

        Raises:
            Unwritable: Nothing can be written.
        """
        try:
            self._output.write(name, output.files(self._now))
        except Unwritable as error:
            if name not in self._folders or not _is_about_one_folder(error):
                raise
            self._skip(source, str(error), failed=True)
            self._remaining_names.add(name)
            return False
        self._report.written.append(name)
        return True

    def _reason_to_skip(self, state: SourceState) -> str:
        running = is_running(state, self._now)
        if not state.reason and self._job.listed and not is_listed(state.counts, running=running):
            return "short session (--listed)"
        return state.reason

    def _note_status_change(self, state: SourceState) -> None:
        """Record when the status of a running session changes even if its file does not."""
        if is_running(state, self._now):
            until, earliest = running_until(state), self._report.status_changes_at
            self._report.status_changes_at = until if earliest is None else min(earliest, until)

    def _known_state(self, source: Source) -> SourceState | None:
        """Return the known state of an unchanged file; None if the file must be read."""
        cached_state = self._cache.state(source)
        if cached_state is not None:
            return cached_state
        folders = [self._folders[name] for name in self._folders_by_source.get(source.id, ())]
        earlier_states = [candidate.state for candidate in folders if candidate.version == SYNC_VERSION]
        if (cached := self._cache.last_state(source)) is not None:
            earlier_states.append(cached)
        size = _size(source.found)
        earlier_states = [state for state in earlier_states if state.size == size]
        if not earlier_states:
            return None
        identity = self._cache.identity(source)
        size, digest = _hash_file(source.found)
        state = next((each for each in earlier_states if (each.size, each.sha256) == (size, digest)), None)
        if state is not None:
            self._cache.put(source, identity, state)
        return state

    def _read(self, source: Source) -> StepsOutput:
        identity = self._cache.identity(source)
        output = read_steps(source, self._job.masker)
        self._cache.put(source, identity, output.state)
        return output

    def _folder_name(self, source: Source, state: SourceState, *, sync_all: bool) -> str:
        """Return the directory of a session; further copies with the same ID get a number suffix."""
        if not sync_all:
            for name in self._folders_by_source.get(source.id, ()):
                if name.lower() not in self._used_names:
                    self._used_names.add(name.lower())
                    return name
        lower = unused_name(state.session_id.lower(), self._used_names)
        return state.session_id + lower[len(state.session_id) :]

    def _is_unchanged(self, name: str, source: Source, state: SourceState) -> bool:
        recorded = self._folders.get(name)
        if recorded is None or not recorded.intact or recorded.state != state:
            return False
        status = status_name(running=is_running(state, self._now))
        expected = (SYNC_VERSION, self._job.masker is not None, source.id, source.root_id, status)
        if expected != (recorded.version, recorded.redacted, recorded.source_id, recorded.root_id, recorded.status):
            return False
        steps = self._output.read(name, STEPS_FILE, recorded.steps_size + 1)
        return steps is not None and sha256(steps).hexdigest() == recorded.steps_sha256

    def _may_write(self, name: str) -> bool:
        if name in self._folders:
            return True
        kind = self._output.kind(name)
        return kind in ("missing", "empty") or (self._job.force and kind == "folder")

    # Deleted sessions

    def _remove_gone(self, existing: dict[str, Source], sources: Sequence[Source]) -> None:
        """Remove the directories of sessions that are deleted or no longer written."""
        is_complete = not any(problem.kind in _INCOMPLETE_KINDS for problem in self._report.problems)
        roots = {_path_hash(root) for root in self._roots}
        selected_ids = {source.id for source in sources}
        for name, recorded in self._folders.items():
            if name in self._remaining_names:
                continue
            gone = is_complete and recorded.source_id not in existing and recorded.root_id in roots
            # Otherwise the session exists and is written to another directory or excluded.
            if gone or recorded.source_id in selected_ids:
                self._remove(name)

    def _remove(self, name: str) -> None:
        path = os.path.join(self._job.out, name)
        try:
            removed_completely = self._output.remove(name)
        except Unwritable as error:
            if not _is_about_one_folder(error):
                raise
            self._report.skipped.append(Skipped(path, str(error), failed=True))
            return
        if not removed_completely:
            self._report.skipped.append(Skipped(path, "kept other files in the directory"))
        self._report.removed.append(name)


def _is_about_one_folder(error: Unwritable) -> bool:
    """Return whether the error affects only the directory of one session."""
    cause = error.__cause__
    return isinstance(cause, OSError) and cause.errno in _FOLDER_ERRORS


def _recorded_folder(name: str, raw: bytes | None) -> _RecordedFolder | None:
    """Return the metadata of a directory, if steno wrote it for a directory with that name."""
    if raw is None:
        return None
    try:
        metadata: Any = msgspec.json.decode(raw)
        sync = metadata["sync"]
        source, steps = sync["source"], sync["steps"]
        session_id = str(metadata["session_id"])
        if sync["writer"] != WRITER or not _is_folder_of(name, session_id):
            return None
        last_record = read_time(sync["last_record_at"])
        state = SourceState(
            int(source["size"]),
            str(source["sha256"]),
            session_id,
            "",
            StepCounts(int(metadata["step_count"]), bool(sync["answered"])),
            cast("Ending", str(sync["ending"])),
            None if last_record is None else round(last_record.timestamp(), 3),
        )
        return _RecordedFolder(
            int(sync["version"]),
            bool(sync["redacted"]),
            str(source["id"]),
            str(source["root_id"]),
            str(metadata["status"]),
            int(steps["size"]),
            str(steps["sha256"]),
            state,
            sealed_metadata(metadata) == raw,
        )
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, LookupError, TypeError,
            ValueError, OverflowError):  # fmt: skip
        return None


def _is_folder_of(name: str, session_id: str) -> bool:
    """Return whether a directory name is a session ID, optionally with a number suffix."""
    number = name[len(session_id) :]
    if not session_id or not name.startswith(session_id):
        return False
    return not number or (number[:1] == "_" and number[1:].isdecimal())


def _path_hash(path: str) -> str:
    """Return the hash of a path: masked metadata must not reveal the path."""
    return blake2b(os.fsencode(path), digest_size=16).hexdigest()


def _by_path(source: Source) -> str:
    return source.path


def _size(session_file: DiscoveredFile) -> int:
    if isinstance(session_file, ArchivedFile):
        return session_file.size
    try:
        return os.stat(session_file.path).st_size
    except OSError as error:
        raise Unreadable(f"cannot read {session_file.path}: {error.strerror}") from error


def _hash_file(session_file: DiscoveredFile) -> tuple[int, str]:
    digest, size = sha256(), 0
    with open_file(session_file) as source:
        for chunk in source.chunks(0):
            digest.update(chunk)
            size += len(chunk)
    return size, digest.hexdigest()


def _ignore(_: int) -> None:
    pass
