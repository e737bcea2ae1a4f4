"""Watches transcripts for changes, and follows several sessions with their sub-agents.

    with FileWatcher(["/home/ada/.claude"]) as watch:
        for changes in watch:
            changes.paths, changes.rescan

Events come from the system (inotify and the like), so waiting costs nothing. When the system fails, loses events or runs
out of watches, and at intervals, everything is scanned. `MultiTail` reads what was added to the files that changed.
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
"""Milliseconds over which changes are gathered at most."""
_ACTIVE_STEP_MS: Final = 40
_IDLE_STEP_MS: Final = 400
_QUIET_AFTER_MS: Final = 5_000
"""Milliseconds without a change after which it is quiet."""


class PathsChanged(msgspec.Struct, frozen=True):
    """Paths that were touched, and how: 1 appeared, 2 changed, 3 went away."""

    changes: frozenset[tuple[int, str]]


class ActivityEnded(msgspec.Struct, frozen=True):
    """Nothing happened for a while, after something had."""


class EventsLost(msgspec.Struct, frozen=True):
    """The system failed: what happened is not known."""

    message: str = ""


WatchEvent: TypeAlias = PathsChanged | ActivityEnded | EventsLost | None
"""None: somebody wants it to stop."""


class WatchUnsupported(Exception):
    """The system refuses to watch: too many folders, a name it cannot take, no support."""


class FsEventListener:
    """Listens to some folders in a thread of its own."""

    def __init__(self, folders: Sequence[str], events: "SimpleQueue[WatchEvent]", *, recursive: bool) -> None:
        from watchfiles._rust_notify import RustNotify

        try:
            # A folder that may not be read is passed over, as everywhere.
            self._notify = RustNotify(list(folders), False, False, 0, recursive, True)
        except (OSError, RuntimeError, ValueError) as error:
            # A ValueError is a path that is no text.
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
    """Folders to listen to, and what they were when it was made."""

    recursive: tuple[str, ...] = ()
    """With everything below them."""
    shallow: tuple[str, ...] = ()
    """Only what lies directly in them: a file that is followed, a root that is still to come."""
    identities: tuple[tuple[int, int], ...] = ()


def make_watch_plan(roots: tuple[str, ...]) -> WatchPlan:
    """Return the folders to listen to for some absolute roots, as the disk is now."""
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
    """Return the nearest folder above a path that is there."""
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
"""Seconds between looks while the system cannot be asked."""
_RETRY_SECONDS: Final = 30.0
_FAILURE_WINDOW: Final = 5.0
"""Seconds: a system that fails again so soon is not asked for a while."""
_MAX_RELIABLE_CHANGES: Final = 4096
"""So many changes at once that some may have been lost; the library does not say so."""
_DELETED: Final = 3
# Elsewhere a wait ends when a signal comes.
_MAX_WAIT: Final = 0.5 if sys.platform == "win32" else 86_400.0
_FileState = tuple[int, int]


class Changes(msgspec.Struct, frozen=True):
    """What changed. With `rescan`, more may have: look at everything."""

    paths: frozenset[str] = frozenset()
    rescan: bool = False


class FileWatcher:
    """Watches roots: folders or files, there or still to come.

    Iterating blocks until something changed. The first answer always comes at once, when the watch stands, and is a
    `rescan`: whoever then looks at everything misses nothing. Paths are spelled as discovery spells them.
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
        """Why the system cannot be asked, so that files are looked at every other second."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def stop(self) -> None:
        """End the iteration; may be called from any thread, or from a signal's handler."""
        self._stopped = True
        self._events.put(None)

    def close(self) -> None:
        """Give everything back."""
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
        """Wait for news; when it is time for a look at everything, that comes first."""
        while (remaining := until - time.monotonic()) > 0:
            try:
                return self._events.get(timeout=min(remaining, _MAX_WAIT))
            except Empty:
                continue
        raise Empty

    # Listening

    def _start_listening(self) -> None:
        """Listen where it is to be listened now; a system that refuses makes us deaf."""
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
        """Look whether anything happened unheard."""
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
        """Whether a root, or a folder on the way to one, came or went; or where it looks into."""
        if path.endswith(JSONL_SUFFIX) and path not in self._plan.recursive:
            return False
        watched_paths = (*self._roots, *self._plan.recursive)
        if any(watched == path or watched.startswith(path + os.sep) for watched in watched_paths):
            return make_watch_plan(self._roots) != self._plan
        return False

    def _as_named(self, path: str) -> str | None:
        """Return a path below a root as discovery spells it; None for what lies elsewhere."""
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
            # What was written into a new folder before it was listened to was not heard of.
            transcripts = {file.path for file in Discovery(path).transcripts()}
            return {each for each in transcripts if self._file_states.get(each) != _file_state(each)}
        return set()

    def _handle_quiet(self) -> Changes:
        """Look once more at what was written to, now that it is quiet."""
        active, self._recently_changed = self._recently_changed, set()
        changed = {path for path in active if self._file_states.get(path) != _file_state(path)}
        self._remember_states(changed)
        return Changes(frozenset(changed))

    def _remember_states(self, paths: Iterable[str]) -> None:
        """Remember what files are like before anybody is told of them."""
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
        # A transcript that cannot be told by its name was heard of, and is no news.
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
    """Return what the system may call the roots, and what we call them; the longest first."""
    pairs = {os.path.abspath(root): root for root in roots_as_named}
    for root in roots_as_named:
        # Some systems answer with the real path, whatever was asked for.
        pairs.setdefault(os.path.realpath(root), root)
    return sorted(pairs.items(), key=_spelling_length, reverse=True)


def _spelling_length(pair: tuple[str, str]) -> int:
    return len(pair[0])


_LARGE_SIZE: Final = 64 << 20
"""Of a longer file only the end is read."""
_READ_END_SIZE: Final = 16 << 20


class FollowedFile:
    """One file that is followed: a session, or a sub-agent of one."""

    def __init__(self, path: str, session_id: str, agent_id: str = "", start: int = 0) -> None:
        self.path = path
        self.session_id = session_id
        self.agent_id = agent_id
        self.meta: AgentMeta | None = _read_agent_meta(path) if agent_id else None
        self.reader = IncrementalReader(path, start)
        self.follower = Follower(start, agent=bool(agent_id))
        self.owner: FollowedFile | None = None

    def restart(self) -> None:
        """Forget what was said; the file is another one now."""
        self.follower = Follower(agent=bool(self.agent_id))

    def agent_brief(self, inner_agent: str = "") -> SubagentTask:
        """Return what a sub-agent is: this file's own, or one that lies inside this file."""
        if inner_agent:
            return self.follower.task_of(inner_agent)
        if self.meta is None and self.agent_id:
            # Written a moment after the transcript, by some clients never.
            self.meta = _read_agent_meta(self.path)
        meta = self.meta or AgentMeta()
        briefs = self.owner.follower.tasks if self.owner is not None else {}
        known_brief = briefs.get(meta.tool_use_id) or briefs.get(self.follower.first_prompt) or SubagentTask()
        return SubagentTask(meta.agent_type or known_brief.kind, meta.description or known_brief.description)


class SourcedEvent(msgspec.Struct, frozen=True):
    """An event, and whose it is."""

    source: FollowedFile
    event: Event


class MultiTail:
    """Those who are listened to: the session at one path and its sub-agents, else everyone."""

    def __init__(self, session_path: str | None = None) -> None:
        self._session_path = session_path
        self._sources: dict[str, FollowedFile] = {}
        self._ignored_sizes: dict[str, int] = {}

    def __iter__(self) -> Iterator[FollowedFile]:
        return iter(list(self._sources.values()))

    def ignore(self, file: DiscoveredFile) -> None:
        """Know a file without reading it; only what is added to it later will be told."""
        self._ignored_sizes[file.path] = file.size

    def has_changes(self, file: DiscoveredFile) -> bool:
        """Say whether a file is not known, or not read to its end."""
        source = self._sources.get(file.path)
        if source is not None:
            return source.reader.offset != file.size
        return self._ignored_sizes.get(file.path) != file.size

    def start_with_recent(self, file: DiscoveredFile, recall: RecentTurns) -> list[SourcedEvent]:
        """Begin with a file that is there, and return those of its last words that are wanted."""
        source = self._follow(file.path, file.place, _start_offset(file.size))
        if source is None:
            return []
        self._ignored_sizes.pop(file.path, None)
        for chunk in source.reader.read_new():
            recall.feed(source.follower.feed(chunk))
        return [SourcedEvent(source, event) for event in recall.events]

    def read_changes(self, paths: Iterable[str]) -> Iterator[list[SourcedEvent]]:
        """Yield what was added to each of some files; the records behind it can be had until then."""
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
        """Let somebody in who is not known, if they belong."""
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
        """Return the session a sub-agent works for, if it is listened to."""
        for source in self._sources.values():
            is_inside = path.startswith(source.path.removesuffix(JSONL_SUFFIX) + os.sep)
            if not source.agent_id and (is_inside or source.session_id == session_id):
                return source
        if self._session_path is None and self._ignored_sizes:
            return self._ignored_owner(path)
        return None

    def _ignored_owner(self, path: str) -> FollowedFile | None:
        """Return a session that was silent so far, now that its sub-agent speaks."""
        folder = os.path.dirname(path)
        while folder != os.path.dirname(folder):
            if folder + JSONL_SUFFIX in self._ignored_sizes:
                return self._follow_new(folder + JSONL_SUFFIX)
            folder = os.path.dirname(folder)
        return None

    def agents(self, session: DiscoveredFile) -> list[DiscoveredFile]:
        """Return the sub-agents of a session that are there."""
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
