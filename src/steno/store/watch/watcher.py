"""File watcher for transcripts, and a live tail of several sessions with their sub-agents.

    with FileWatcher(["/home/ada/.claude"]) as watch:
        for changes in watch:
            changes.paths, changes.rescan

Changes come from system notifications (inotify and similar), so waiting uses no CPU. Everything is rescanned at
intervals, and when notifications fail, are lost, or the system runs out of watches. `MultiTail` reads what was appended
to changed files.
"""

import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final, Self, TypeAlias

import msgspec

from steno.format.paths import JSONL_SUFFIX, PathInfo, classify_transcript, meta_path
from steno.format.sidecars import AgentMeta, read_agent_meta
from steno.session.live_turns import Event, Follower, RecentTurns, SubagentTask
from steno.store.discovery import (
    HEAD_SIZE,
    IGNORED_FOLDERS,
    DiscoveredFile,
    Discovery,
    discover_agents,
    is_transcript,
    path_context,
    peek,
    session_id_in,
    watched_folders,
)
from steno.store.watch.incremental import IncrementalReader

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

_DEBOUNCE_MS: Final = 200
"""Maximum milliseconds over which changes are collected."""
_ACTIVE_STEP_MS: Final = 40
_IDLE_STEP_MS: Final = 400
_QUIET_AFTER_MS: Final = 5_000
"""Milliseconds without a change before `ActivityEnded` is reported."""


class PathsChanged(msgspec.Struct, frozen=True):
    """Changed paths with their kind: 1 created, 2 modified, 3 deleted."""

    changes: frozenset[tuple[int, str]]


class ActivityEnded(msgspec.Struct, frozen=True):
    """No change was reported for a while after the last one."""


class EventsLost(msgspec.Struct, frozen=True):
    """Notifications failed; changes may have been missed."""

    message: str = ""


WatchEvent: TypeAlias = PathsChanged | ActivityEnded | EventsLost | None
"""An event, or None to stop."""


class WatchUnsupported(Exception):
    """The system cannot watch the paths: too many directories, an invalid name, or no support."""


class FsEventListener:
    """Listener for changes in directories, on a background thread."""

    def __init__(self, folders: Sequence[str], events: "SimpleQueue[WatchEvent]", *, recursive: bool) -> None:
        from watchfiles._rust_notify import RustNotify

        try:
            # Directories without read permission are skipped.
            self._notify = RustNotify(list(folders), False, False, 0, recursive, True)
        except (OSError, RuntimeError, ValueError) as error:
            # A ValueError is a path that is not valid Unicode.
            raise WatchUnsupported(str(error)) from error
        self._events = events
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="steno-watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._stop.set()
        self._thread.join()
        self._notify.close()

    def _run(self) -> None:
        active = True
        while True:
            try:
                result = _wait_for_changes(self._notify, self._stop, active=active)
            except RuntimeError as error:
                self._events.put(EventsLost(str(error)))
                return
            if result == "timeout":
                active = False
                self._events.put(ActivityEnded())
            elif isinstance(result, set):
                active = True
                self._events.put(PathsChanged(frozenset(result)))
            else:
                return


def _wait_for_changes(notify: "RustNotify", stop: threading.Event, *, active: bool) -> set[tuple[int, str]] | str:
    if active:
        return notify.watch(_DEBOUNCE_MS, _ACTIVE_STEP_MS, _QUIET_AFTER_MS, stop)
    return notify.watch(_DEBOUNCE_MS, _IDLE_STEP_MS, 0, stop)


class WatchPlan(msgspec.Struct, frozen=True):
    """Directories to listen to, with their identities when the plan was made."""

    recursive: tuple[str, ...] = ()
    """Directories watched with all subdirectories."""
    shallow: tuple[str, ...] = ()
    """Directories watched without subdirectories: parents of watched files and of missing roots."""
    identities: tuple[tuple[int, int], ...] = ()


def make_watch_plan(roots: tuple[str, ...]) -> WatchPlan:
    """Return the directories to listen to for absolute roots, as they exist now."""
    recursive: dict[str, None] = {}
    shallow: dict[str, None] = {}
    for root in roots:
        if os.path.isdir(root):
            recursive.update(dict.fromkeys(watched_folders(root)))
        else:
            shallow[_nearest_existing(root)] = None
    folders = (*recursive, *shallow)
    return WatchPlan(tuple(recursive), tuple(shallow), tuple(_folder_identity(folder) for folder in folders))


def _nearest_existing(path: str) -> str:
    """Return the nearest existing parent directory of a path."""
    parent = os.path.dirname(path)
    while not os.path.isdir(parent) and parent != os.path.dirname(parent):
        parent = os.path.dirname(parent)
    return parent


def _folder_identity(folder: str) -> tuple[int, int]:
    try:
        status = os.stat(folder)
    except OSError:
        return 0, 0
    return status.st_dev, status.st_ino


RECONCILE_SECONDS: Final = 300.0
_POLL_SECONDS: Final = 2.0
"""Seconds between scans while notifications are unavailable."""
_RETRY_SECONDS: Final = 30.0
_FAILURE_WINDOW: Final = 5.0
"""Seconds within which a second failure suspends notifications."""
_MAX_RELIABLE_CHANGES: Final = 4096
"""Number of changes in one batch from which some may have been lost; the library does not report it."""
_DELETED: Final = 3
# On Windows a signal does not interrupt a wait.
_MAX_WAIT: Final = 0.5 if sys.platform == "win32" else 86_400.0
_FileState = tuple[int, int]


class Changes(msgspec.Struct, frozen=True):
    """Changed files. With `rescan`, more files may have changed and everything must be checked."""

    paths: frozenset[str] = frozenset()
    rescan: bool = False


class FileWatcher:
    """Watcher of roots: directories or files, existing or not yet created.

    Iterating blocks until something changes. The first result follows immediately after the watch starts and is a
    `rescan`; a caller that then checks everything misses no change. Paths are spelled as in discovery.
    """

    def __init__(self, roots: Sequence[str], reconcile: float = RECONCILE_SECONDS) -> None:
        self._named_roots = tuple(dict.fromkeys(roots))
        self._roots = tuple(os.path.abspath(root) for root in self._named_roots)
        self._root_spellings = _spell_roots(self._named_roots)
        self._reconcile_seconds = reconcile
        self._events: SimpleQueue[WatchEvent] = SimpleQueue()
        self._listeners: list[FsEventListener] = []
        self._plan = WatchPlan()
        self._file_states: dict[str, _FileState] = {}
        self._recently_changed: set[str] = set()
        self._stopped = False
        self._failed_at = self._scanned_at = float("-inf")
        self.polling_reason = ""
        """Why notifications are unavailable, so that files are polled."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def stop(self) -> None:
        """End the iteration; can be called from any thread or signal handler."""
        self._stopped = True
        self._events.put(None)

    def close(self) -> None:
        """Stop listening and release all resources."""
        listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener.close()

    def __iter__(self) -> Iterator[Changes]:
        try:
            self._start_listening()
            self._file_states = self._scan_states()
            if not self._stopped:
                yield Changes(rescan=True)
            while not self._stopped:
                changes = self._next_changes()
                if changes.paths or changes.rescan:
                    yield changes
        finally:
            self.close()

    # Waiting

    def _next_changes(self) -> Changes:
        interval = min(self._reconcile_seconds, _POLL_SECONDS) if self.polling_reason else self._reconcile_seconds
        try:
            event = self._wait_for_event(self._scanned_at + interval)
        except Empty:
            return self._reconcile()
        match event:
            case PathsChanged():
                return self._handle_changes(event)
            case ActivityEnded():
                return self._handle_quiet()
            case EventsLost():
                return self._handle_loss(event)
            case None:
                return Changes()

    def _wait_for_event(self, until: float) -> WatchEvent:
        """Wait for an event. Raises `Empty` when a scan is due."""
        while (remaining := until - time.monotonic()) > 0:
            try:
                return self._events.get(timeout=min(remaining, _MAX_WAIT))
            except Empty:
                continue
        raise Empty

    # Listening

    def _start_listening(self) -> None:
        """Listen to the current directories; fall back to polling where the system refuses."""
        self.close()
        self._plan = make_watch_plan(self._roots)
        self.polling_reason = ""
        try:
            for folders, recursive in ((self._plan.recursive, True), (self._plan.shallow, False)):
                if folders:
                    self._listeners.append(FsEventListener(folders, self._events, recursive=recursive))
        except WatchUnsupported as error:
            self.close()
            self._failed_at = time.monotonic()
            self.polling_reason = str(error) or "refused"

    def _handle_loss(self, event: EventsLost) -> Changes:
        now = time.monotonic()
        fails_often, self._failed_at = now - self._failed_at < _FAILURE_WINDOW, now
        if fails_often:
            self.close()
            self.polling_reason = event.message
        else:
            self._start_listening()
        return self._rescan_all()

    def _rescan_all(self) -> Changes:
        return Changes(self._compare_states(), rescan=True)

    def _reconcile(self) -> Changes:
        """Check for changes that were not reported."""
        if self.polling_reason and time.monotonic() - self._failed_at >= _RETRY_SECONDS:
            self._start_listening()
        elif not self.polling_reason and make_watch_plan(self._roots) != self._plan:
            self._start_listening()
            return self._rescan_all()
        return Changes(self._compare_states())

    # What changed

    def _handle_changes(self, event: PathsChanged) -> Changes:
        paths: set[str] = set()
        rescan = len(event.changes) >= _MAX_RELIABLE_CHANGES
        for kind, path in event.changes:
            rescan = rescan or self._affects_roots(path)
            path_as_named = self._as_named(path)
            if path_as_named is not None:
                paths |= self._changed_transcripts(kind, path_as_named)
        if rescan:
            self._start_listening()
            return Changes(frozenset(paths) | self._compare_states(), rescan=True)
        self._recently_changed |= paths
        self._remember_states(paths)
        return Changes(frozenset(paths))

    def _affects_roots(self, path: str) -> bool:
        """Return whether a path changes the watched directories: a root or a parent of one was created or deleted."""
        if path.endswith(JSONL_SUFFIX) and path not in self._plan.recursive:
            return False
        watched_paths = (*self._roots, *self._plan.recursive)
        if any(watched == path or watched.startswith(path + os.sep) for watched in watched_paths):
            return make_watch_plan(self._roots) != self._plan
        return False

    def _as_named(self, path: str) -> str | None:
        """Return a path below a root as spelled in discovery; None for other paths."""
        for real, named in self._root_spellings:
            if path == real:
                return named
            if path.startswith(real + os.sep):
                return os.path.join(named, path[len(real) + 1 :])
        return None

    def _changed_transcripts(self, kind: int, path: str) -> set[str]:
        if path.endswith(JSONL_SUFFIX):
            return set() if IGNORED_FOLDERS.intersection(path.split(os.sep)) else {path}
        if kind == _DELETED:
            prefix = path + os.sep
            return {known_path for known_path in self._file_states if known_path.startswith(prefix)}
        if os.path.isdir(path) and os.path.basename(path) not in IGNORED_FOLDERS:
            # Changes in a new directory before it was listened to were not reported.
            transcripts = {file.path for file in Discovery(path).transcripts()}
            return {path for path in transcripts if self._file_states.get(path) != _file_state(path)}
        return set()

    def _handle_quiet(self) -> Changes:
        """Check recently changed files once more after activity has ended."""
        active, self._recently_changed = self._recently_changed, set()
        changed = {path for path in active if self._file_states.get(path) != _file_state(path)}
        self._remember_states(changed)
        return Changes(frozenset(changed))

    def _remember_states(self, paths: Iterable[str]) -> None:
        """Store the state of files before their changes are reported."""
        for path in paths:
            state = _file_state(path)
            if state is None:
                self._file_states.pop(path, None)
            else:
                self._file_states[path] = state

    def _compare_states(self) -> frozenset[str]:
        previous, self._file_states = self._file_states, self._scan_states()
        deleted = previous.keys() - self._file_states.keys()
        changed = {path for path, state in self._file_states.items() if previous.get(path) != state}
        # A file that discovery does not recognize by name was reported already; it has not changed.
        deleted = {path for path in deleted if _file_state(path) != previous[path]}
        self._file_states |= {path: previous[path] for path in previous.keys() - self._file_states.keys() - deleted}
        return frozenset(changed | deleted)

    def _scan_states(self) -> dict[str, _FileState]:
        self._scanned_at = time.monotonic()
        return {
            file.path: (file.size, file.mtime_ns)
            for root in self._named_roots
            for file in Discovery(root).transcripts()
        }


def _file_state(path: str) -> _FileState | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def _spell_roots(roots_as_named: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return pairs of a root as the system spells it and as given, longest first."""
    pairs = {os.path.abspath(root): root for root in roots_as_named}
    for root in roots_as_named:
        # Some systems report the real path instead of the given one.
        pairs.setdefault(os.path.realpath(root), root)
    return sorted(pairs.items(), key=_spelling_length, reverse=True)


def _spelling_length(pair: tuple[str, str]) -> int:
    return len(pair[0])


_LARGE_SIZE: Final = 64 << 20
"""Bytes above which only the end of a file is read."""
_READ_END_SIZE: Final = 16 << 20


class FollowedFile:
    """One followed file: a session or one of its sub-agents."""

    def __init__(self, path: str, session_id: str, agent_id: str = "", start: int = 0) -> None:
        self.path = path
        self.session_id = session_id
        self.agent_id = agent_id
        self.meta: AgentMeta | None = _read_agent_meta(path) if agent_id else None
        self.reader = IncrementalReader(path, start)
        self.follower = Follower(start, agent=bool(agent_id))
        self.owner: FollowedFile | None = None

    def restart(self) -> None:
        """Discard the state after the file was replaced."""
        self.follower = Follower(agent=bool(self.agent_id))

    def agent_brief(self, inner_agent: str = "") -> SubagentTask:
        """Return the task of this file's sub-agent, or of a sub-agent inside this file."""
        if inner_agent:
            return self.follower.task_of(inner_agent)
        if self.meta is None and self.agent_id:
            # Written shortly after the transcript; some versions of Claude Code never write it.
            self.meta = _read_agent_meta(self.path)
        meta = self.meta or AgentMeta()
        briefs = self.owner.follower.tasks if self.owner is not None else {}
        known_brief = briefs.get(meta.tool_use_id) or briefs.get(self.follower.first_prompt) or SubagentTask()
        return SubagentTask(meta.agent_type or known_brief.kind, meta.description or known_brief.description)


class SourcedEvent(msgspec.Struct, frozen=True):
    """An event with the file it came from."""

    source: FollowedFile
    event: Event


class MultiTail:
    """Tail of one session with its sub-agents, or of all sessions if no path is given."""

    def __init__(self, session_path: str | None = None) -> None:
        self._session_path = session_path
        self._sources: dict[str, FollowedFile] = {}
        self._ignored_sizes: dict[str, int] = {}

    def __iter__(self) -> Iterator[FollowedFile]:
        return iter(list(self._sources.values()))

    def ignore(self, file: DiscoveredFile) -> None:
        """Register a file without reading it; only later additions are reported."""
        self._ignored_sizes[file.path] = file.size

    def has_changes(self, file: DiscoveredFile) -> bool:
        """Return whether a file is unknown or not read to its end."""
        source = self._sources.get(file.path)
        if source is not None:
            return source.reader.offset != file.size
        return self._ignored_sizes.get(file.path) != file.size

    def start_with_recent(self, file: DiscoveredFile, recall: RecentTurns) -> list[SourcedEvent]:
        """Follow an existing file and return its most recent events."""
        source = self._follow(file.path, file.place, _start_offset(file.size))
        if source is None:
            return []
        self._ignored_sizes.pop(file.path, None)
        for chunk in source.reader.read_new():
            recall.feed(source.follower.feed(chunk))
        return [SourcedEvent(source, event) for event in recall.events]

    def read_changes(self, paths: Iterable[str]) -> Iterator[list[SourcedEvent]]:
        """Yield the events added to each file; their records can be read until the next iteration."""
        for path in sorted(paths, key=_owner_first_key):
            yield from self._read_file_changes(path)

    def _read_file_changes(self, path: str) -> Iterator[list[SourcedEvent]]:
        source = self._sources.get(path) or self._follow_new(path)
        if source is None:
            return
        existed = source.reader.exists
        if source.reader.detect_replacement():
            source.restart()
            yield [SourcedEvent(source, Event(kind="anew"))]
        elif not source.reader.exists:
            if existed:
                yield [SourcedEvent(source, Event(kind="gone"))]
            return
        for chunk in source.reader.read_new():
            events = [SourcedEvent(source, event) for event in source.follower.feed(chunk)]
            if events:
                yield events

    def _follow_new(self, path: str) -> FollowedFile | None:
        """Start to follow a file if it belongs to the followed sessions."""
        size = _file_size(path)
        if size is None:
            return None
        ignored_size = self._ignored_sizes.pop(path, 0)
        ignored_size = ignored_size if ignored_size <= size else 0
        start = _start_offset(ignored_size)
        source = self._follow(path, classify_transcript(path_context(path)), start)
        if source is not None:
            for chunk in source.reader.read_new(ignored_size):
                source.follower.feed(chunk)
        return source

    def _follow(self, path: str, location: PathInfo, start: int = 0) -> FollowedFile | None:
        session_id = location.session_id
        if location.role == "agent":
            session_id = session_id or session_id_in(peek(path, HEAD_SIZE, []) or b"")
            owner = self._owner_of(path, session_id)
            if owner is None and self._session_path not in (None, path):
                return None
            source = FollowedFile(path, session_id, location.agent_id, start)
            source.owner = owner
        else:
            if self._session_path not in (None, path):
                return None
            if (
                self._session_path is None
                and location.role != "session"
                and not is_transcript(peek(path, HEAD_SIZE, []) or b"")
            ):
                return None
            stem = os.path.basename(path).removesuffix(JSONL_SUFFIX)
            source = FollowedFile(path, session_id or stem, "", start)
        self._sources[path] = source
        return source

    def _owner_of(self, path: str, session_id: str) -> FollowedFile | None:
        """Return the followed session of a sub-agent, if any."""
        for source in self._sources.values():
            is_inside = path.startswith(source.path.removesuffix(JSONL_SUFFIX) + os.sep)
            if not source.agent_id and (is_inside or source.session_id == session_id):
                return source
        if self._session_path is None and self._ignored_sizes:
            return self._ignored_owner(path)
        return None

    def _ignored_owner(self, path: str) -> FollowedFile | None:
        """Follow and return the ignored session whose sub-agent became active."""
        folder = os.path.dirname(path)
        while folder != os.path.dirname(folder):
            if folder + JSONL_SUFFIX in self._ignored_sizes:
                return self._follow_new(folder + JSONL_SUFFIX)
            folder = os.path.dirname(folder)
        return None

    def agents(self, session: DiscoveredFile) -> list[DiscoveredFile]:
        """Return the existing sub-agents of a session."""
        return discover_agents(session)


def _read_agent_meta(path: str) -> AgentMeta | None:
    raw = peek(meta_path(path), HEAD_SIZE, [])
    return read_agent_meta(raw)[0] if raw is not None else None


def _start_offset(size: int) -> int:
    return size - _READ_END_SIZE if size > _LARGE_SIZE else 0


def _file_size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except OSError:
        return None


def _owner_first_key(path: str) -> tuple[int, str]:
    return path.count(os.sep), path
