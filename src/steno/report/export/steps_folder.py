"""Keeps a folder of steps in step with the sessions: only what changed is written.

    report = sync_steps(StepsJob("/home/ada/steps", roots_of()))

Whether a session changed is told by the SHA-256 of its file, which `metadata.json` has; so a copy with
another time is unchanged, and a file rewritten with the same size is not. What is in the folder
afterwards is what an export into an empty one would write, however the runs before were cut off.

A folder is steno's own if its metadata says so and names the folder. Nothing else is ever touched.
"""

import errno
import os
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b, sha256
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import msgspec

from steno.errors import Unreadable, Unwritable
from steno.format.records import read_time
from steno.report.export.names import free_name
from steno.report.export.source_cache import SourceCache
from steno.report.export.steps import (
    FILES,
    METADATA,
    STEPS,
    SYNC_VERSION,
    WRITER,
    Source,
    SourceState,
    StepsOutput,
    is_running,
    read_steps,
    running_until,
    sealed_metadata,
    status_word,
)
from steno.safe.masking import Masker
from steno.session.step_records import StepCounts, is_listed
from steno.store import clock
from steno.store.archive.opened import Archived, opened
from steno.store.discover import Discovery, Found, Problem
from steno.store.output_folder import OutputFolder
from steno.store.places import config_dir

if TYPE_CHECKING:
    from steno.session.liveness import Ending

__all__ = ["Skipped", "StepsJob", "StepsReport", "sync_steps"]

Planned: TypeAlias = Callable[[int], Callable[[int], None]]
"""What is told how many bytes there are, and returns what is told of each step."""
_LARGEST_METADATA: Final = 1 << 20
_OF_ONE_FOLDER: Final = frozenset(
    (
        errno.EISDIR,
        errno.ENOTDIR,
        errno.ENOTEMPTY,
        errno.EEXIST,
        errno.ELOOP,
        errno.EACCES,
        errno.EPERM,
    )
)
"""Errors that come of what is in a folder, or of who may write to it."""
_UNSURE: Final = frozenset(("denied", "unreadable", "missing", "too-deep"))
"""Problems because of which a session may be there and was not found."""


class Skipped(msgspec.Struct, frozen=True):
    """A file of which nothing was written, and why."""

    path: str
    reason: str
    failed: bool = False
    """Whether it should have been written."""


class StepsJob(msgspec.Struct):
    """What to write where."""

    out: str
    roots: tuple[str, ...]
    masker: Masker | None = None
    listed: bool = False
    """Only sessions that the list rule shows."""
    force: bool = False
    """Also into folders that something else wrote."""
    planned: Planned | None = None


class StepsReport(msgspec.Struct):
    """What was done. Sessions are named by their folders."""

    written: list[str] = []
    unchanged: list[str] = []
    removed: list[str] = []
    skipped: list[Skipped] = []
    problems: list[Problem] = []
    status_changes_at: float | None = None
    """When the status of a running session changes next, if nothing is written to it."""

    @property
    def changed(self) -> bool:
        """Whether anything in the folder is different now."""
        return bool(self.written or self.removed)

    @property
    def failed(self) -> list[Skipped]:
        """What should have been written."""
        return [each for each in self.skipped if each.failed]


def sync_steps(job: StepsJob, chosen: Sequence[Found] | None = None) -> StepsReport:
    """Write the steps of changed sessions, and remove those whose session is gone.

    Without `chosen` it is about all sessions on the disk below the roots; with it, other sessions that
    are still there keep their folders.

    Raises:
        BadRequest: the folder lies where sessions are kept.
        Unwritable: the folder cannot be written; what was written before is complete.
    """
    never = [root for root in (*job.roots, config_dir()) if not os.path.isfile(root)]
    with OutputFolder(job.out, FILES, never=never) as output:
        return _Run(job, output).run(chosen)


class _Recorded(msgspec.Struct, frozen=True):
    """What the metadata of a folder says about its source."""

    version: int
    redacted: bool
    source_id: str
    root_id: str
    status: str
    steps_size: int
    steps_sha256: str
    state: SourceState
    intact: bool
    """Whether the metadata is as it was written."""


class _Run:
    def __init__(self, job: StepsJob, output: OutputFolder) -> None:
        self._job = job
        self._output = output
        self._now = clock.now()
        self._report = StepsReport()
        self._roots = tuple(os.path.abspath(root) for root in job.roots)
        self._cache = SourceCache(output.real_path, SYNC_VERSION)
        self._folders: dict[str, _Recorded] = {}
        """The folders that are steno's own, by name."""
        self._of_source: dict[str, list[str]] = {}
        self._kept: set[str] = set()
        """The names of folders that stay."""
        self._taken: set[str] = set()

    def run(self, chosen: Sequence[Found] | None) -> StepsReport:
        for name in self._output.names():
            recorded = _recorded(name, self._output.read(name, METADATA, _LARGEST_METADATA))
            if recorded is not None:
                self._folders[name] = recorded
                self._of_source.setdefault(recorded.source_id, []).append(name)
        there = self._find()
        if chosen is None:
            self._skip_agents()
            sources = sorted(there.values(), key=_by_path)
        else:
            sources = [self._source(found) for found in chosen]
            there |= {source.id: source for source in sources}
            mine = {source.id for source in sources}
            self._taken |= {
                name.lower()
                for name, recorded in self._folders.items()
                if recorded.source_id in there and recorded.source_id not in mine
            }
        step = self._plan(sources)
        for source in sources:
            self._take(source, whole=chosen is None)
            step(source.found.size)
        self._remove_gone(there, sources)
        self._cache.keep({source.id for source in there.values()})
        return self._report

    def _plan(self, sources: Iterable[Source]) -> Callable[[int], None]:
        if self._job.planned is None:
            return _ignore
        return self._job.planned(sum(source.found.size for source in sources))

    # What there is

    def _find(self) -> dict[str, Source]:
        """Return every session on the disk below the roots, by its id."""
        there: dict[str, Source] = {}
        for root in self._job.roots:
            for found in Discovery(root, self._report.problems).sessions():
                source = self._source(found)
                there.setdefault(source.id, source)
        return there

    def _skip_agents(self) -> None:
        paths = {
            os.path.abspath(found.path)
            for root in self._job.roots
            for found in Discovery(root).transcripts()
            if found.place.role == "agent"
        }
        for path in sorted(paths):
            self._report.skipped.append(Skipped(path, "transcript of a sub-agent"))

    def _source(self, found: Found) -> Source:
        path = os.path.abspath(found.path)
        root = os.path.abspath(found.root)
        # The same folder, however somebody named the session.
        root = next((each for each in self._roots if _lies_in(path, each)), root)
        return Source(found, path, _mark(path), _mark(root))

    def _skip(self, source: Source, reason: str, *, failed: bool = False) -> None:
        self._report.skipped.append(Skipped(source.path, reason, failed))

    # One session

    def _take(self, source: Source, *, whole: bool) -> None:
        """Write a session if it changed."""
        try:
            self._bring_up_to_date(source, whole=whole)
        except Unreadable as error:
            names = self._of_source.get(source.id, ())
            self._skip(source, str(error), failed=True)
            self._kept.update(names)
            # A copy with the same id does not take its folder over.
            self._taken.update(name.lower() for name in names)

    def _bring_up_to_date(self, source: Source, *, whole: bool) -> None:
        state = self._known_state(source)
        read = None
        if state is None:
            read = self._read(source)
            state = read.state
        if reason := self._reason_to_skip(state):
            self._skip(source, reason)
            return
        name = self._name(source, state, whole=whole)
        if self._is_unchanged(name, source, state):
            self._output.tidy(name)
            self._report.unchanged.append(name)
        elif self._may_write(name):
            read = read or self._read(source)
            state = read.state
            if not self._write(name, source, read):
                return
        else:
            folder = self._output.kind(name) == "folder"
            problem = "was not written by steno" if folder else "is not a readable folder"
            reason = f"{os.path.join(self._job.out, name)} {problem}"
            self._skip(source, reason, failed=True)
            return
        self._kept.add(name)
        self._note_status_change(state)

    def _write(self, name: str, source: Source, read: StepsOutput) -> bool:
        """Write a session; False where its own folder cannot be written, and others may be.

        Raises:
            Unwritable: nothing can be written.
        """
        try:
            self._output.write(name, read.files(self._now))
        except Unwritable as error:
            if name not in self._folders or not _is_about_one_folder(error):
                raise
            self._skip(source, str(error), failed=True)
            self._kept.add(name)
            return False
        self._report.written.append(name)
        return True

    def _reason_to_skip(self, state: SourceState) -> str:
        running = is_running(state, self._now)
        if not state.reason and self._job.listed and not is_listed(state.counts, running=running):
            return "short session (--listed)"
        return state.reason

    def _note_status_change(self, state: SourceState) -> None:
        """Note when the status of a running session changes without anything being written."""
        if is_running(state, self._now):
            until, earliest = running_until(state), self._report.status_changes_at
            self._report.status_changes_at = until if earliest is None else min(earliest, until)

    def _known_state(self, source: Source) -> SourceState | None:
        """Return the state of a file that is as it was; None where it has to be read."""
        known = self._cache.state(source)
        if known is not None:
            return known
        folders = [self._folders[name] for name in self._of_source.get(source.id, ())]
        before = [each.state for each in folders if each.version == SYNC_VERSION]
        if (cached := self._cache.last_state(source)) is not None:
            before.append(cached)
        size = _size(source.found)
        before = [state for state in before if state.size == size]
        if not before:
            return None
        identity = self._cache.identity(source)
        size, digest = _digest(source.found)
        state = next((each for each in before if (each.size, each.sha256) == (size, digest)), None)
        if state is not None:
            self._cache.put(source, identity, state)
        return state

    def _read(self, source: Source) -> StepsOutput:
        identity = self._cache.identity(source)
        read = read_steps(source, self._job.masker)
        self._cache.put(source, identity, read.state)
        return read

    def _name(self, source: Source, state: SourceState, *, whole: bool) -> str:
        """Return the folder of a session; a copy with the same id has a number behind it."""
        if not whole:
            for name in self._of_source.get(source.id, ()):
                if name.lower() not in self._taken:
                    self._taken.add(name.lower())
                    return name
        lower = free_name(state.session_id.lower(), self._taken)
        return state.session_id + lower[len(state.session_id) :]

    def _is_unchanged(self, name: str, source: Source, state: SourceState) -> bool:
        recorded = self._folders.get(name)
        if recorded is None or not recorded.intact or recorded.state != state:
            return False
        status = status_word(running=is_running(state, self._now))
        expected = (SYNC_VERSION, self._job.masker is not None, source.id, source.root_id, status)
        if expected != (
            recorded.version,
            recorded.redacted,
            recorded.source_id,
            recorded.root_id,
            recorded.status,
        ):
            return False
        steps = self._output.read(name, STEPS, recorded.steps_size + 1)
        return steps is not None and sha256(steps).hexdigest() == recorded.steps_sha256

    def _may_write(self, name: str) -> bool:
        if name in self._folders:
            return True
        kind = self._output.kind(name)
        return kind in ("missing", "empty") or (self._job.force and kind == "folder")

    # What is gone

    def _remove_gone(self, there: dict[str, Source], sources: Sequence[Source]) -> None:
        """Remove the folders of sessions that are gone, or are not written any more."""
        sure = not any(problem.kind in _UNSURE for problem in self._report.problems)
        roots = {_mark(root) for root in self._roots}
        mine = {source.id for source in sources}
        for name, recorded in self._folders.items():
            if name in self._kept:
                continue
            gone = sure and recorded.source_id not in there and recorded.root_id in roots
            # Else its file is there, and is written elsewhere now or not at all.
            if gone or recorded.source_id in mine:
                self._remove(name)

    def _remove(self, name: str) -> None:
        path = os.path.join(self._job.out, name)
        try:
            whole = self._output.remove(name)
        except Unwritable as error:
            if not _is_about_one_folder(error):
                raise
            self._report.skipped.append(Skipped(path, str(error), failed=True))
            return
        if not whole:
            self._report.skipped.append(Skipped(path, "other files in it were left"))
        self._report.removed.append(name)


def _is_about_one_folder(error: Unwritable) -> bool:
    """Return whether only the folder of one session cannot be written, and others can."""
    cause = error.__cause__
    return isinstance(cause, OSError) and cause.errno in _OF_ONE_FOLDER


def _recorded(name: str, raw: bytes | None) -> _Recorded | None:
    """Return what metadata says, if steno wrote it for a folder of that name."""
    if raw is None:
        return None
    try:
        metadata: Any = msgspec.json.decode(raw)
        sync = metadata["sync"]
        source, steps = sync["source"], sync["steps"]
        session_id = str(metadata["session_id"])
        if sync["writer"] != WRITER or not _is_folder_of(name, session_id):
            return None
        last = read_time(sync["last_record_at"])
        state = SourceState(
            int(source["size"]),
            str(source["sha256"]),
            session_id,
            "",
            StepCounts(int(metadata["step_count"]), bool(sync["answered"])),
            cast("Ending", str(sync["ending"])),
            None if last is None else round(last.timestamp(), 3),
        )
        return _Recorded(
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
    """Return whether a folder is named after a session, with a number behind it or without."""
    number = name[len(session_id) :]
    if not session_id or not name.startswith(session_id):
        return False
    return not number or (number[:1] == "_" and number[1:].isdecimal())


def _mark(path: str) -> str:
    """Return a path as a hash: metadata that is masked must not tell it."""
    return blake2b(os.fsencode(path), digest_size=16).hexdigest()


def _lies_in(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip(os.sep) + os.sep)


def _by_path(source: Source) -> str:
    return source.path


def _size(found: Found) -> int:
    """Return how large a file is now."""
    if isinstance(found, Archived):
        return found.size
    try:
        return os.stat(found.path).st_size
    except OSError as error:
        raise Unreadable(f"cannot read {found.path}: {error.strerror}") from error


def _digest(found: Found) -> tuple[int, str]:
    digest, size = sha256(), 0
    with opened(found) as source:
        for chunk in source.chunks(0):
            digest.update(chunk)
            size += len(chunk)
    return size, digest.hexdigest()


def _ignore(_: int) -> None:
    pass
