"""Caches: open sessions, results valid for one index state, small keyed results.

Only the appended part of an open session is read again.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Generator, Hashable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any, Final, TypeVar

import msgspec

from steno.errors import NotFound
from steno.format.paths import JSONL_SUFFIX
from steno.session.session import Session
from steno.store.archive.catalogue import archived_at
from steno.store.discovery import ArchivedFile, DiscoveredFile, discover_file
from steno.store.session_lookup import open_file_session


class SessionRef(msgspec.Struct, frozen=True):
    """File and URL key of a session or sub-agent."""

    file: int
    """File ID in the index."""
    id: str
    subagent: str
    path: str
    is_deleted: bool
    key: str
    """Key of the session in URLs."""


_MAX_RESULTS: Final = 32
_DEFAULT_SIZE: Final = 2_000
_T = TypeVar("_T")


class IndexCache:
    """Results for the current state of the index."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._stamp: Hashable = None
        self._results: dict[Hashable, Any] = {}

    def get(self, index_stamp: Hashable, key: Hashable, compute: Callable[[], _T]) -> _T:
        """Return a cached result, or compute it. `index_stamp` must be read before the data of the result."""
        with self._lock:
            if index_stamp != self._stamp:
                self._stamp, self._results = index_stamp, {}
            results = self._results
            if key in results:
                return results[key]
        result = compute()
        with self._lock:
            if len(results) >= _MAX_RESULTS:
                del results[next(iter(results))]
            results[key] = result
        return result


class LruCache:
    """Small results keyed by all their inputs. The oldest are evicted first."""

    def __init__(self, max_size: int = _DEFAULT_SIZE) -> None:
        self._lock = Lock()
        self._max_size = max_size
        self._results: dict[Hashable, Any] = {}

    def contains(self, key: Hashable) -> bool:
        """Return whether a result is cached."""
        with self._lock:
            return key in self._results

    def get(self, key: Hashable, compute: Callable[[], _T]) -> _T:
        """Return a cached result, or compute it. Concurrent calls may both compute it."""
        with self._lock:
            if key in self._results:
                return self._results[key]
        result = compute()
        with self._lock:
            if key not in self._results and len(self._results) >= self._max_size:
                del self._results[next(iter(self._results))]
            self._results[key] = result
        return result


_SUBAGENT_PREFIX: Final = "agent-"
_MAX_SESSIONS: Final = 6
"""Maximum open sessions."""


class _CacheEntry:
    """A session with a lock, as it reads lazily and pages are rendered in several threads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.session: Session | None = None
        self.fingerprint: tuple[object, ...] = ()

    def take_session(self, discovered: DiscoveredFile) -> Session | None:
        """Return the session for incremental reading; an archived session is closed instead."""
        session, self.session = self.session, None
        if session is not None and (isinstance(discovered, ArchivedFile) or type(discovered) not in self.fingerprint):
            session.close()
            return None
        return session


class SessionCache:
    """Keeps recently used sessions open."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, _CacheEntry] = OrderedDict()

    @contextmanager
    def open(self, path: str) -> Generator[Session]:
        """Open the session at a path in its current state, for exclusive use.

        Raises:
            NotFound: The file was deleted and not archived.
            Unreadable: The file cannot be read.
        """
        entry = self._entry(path)
        with entry.lock:
            discovered = discover_path(path)
            fingerprint = _fingerprint(discovered)
            if entry.session is None or entry.fingerprint != fingerprint:
                entry.session = open_file_session(discovered, entry.take_session(discovered))
                entry.fingerprint = fingerprint
            yield entry.session

    def close(self) -> None:
        """Close all sessions."""
        with self._lock:
            entries = list(self._entries.values())
            self._entries.clear()
        for entry in entries:
            _close_entry(entry)

    def is_fresh(self, path: str) -> bool:
        """Return whether a session is open and unchanged."""
        with self._lock:
            entry = self._entries.get(path)
        # A locked session is being read and counts as open.
        return entry is not None and (entry.lock.locked() or entry.fingerprint == _fingerprint(discover_path(path)))

    def _entry(self, path: str) -> _CacheEntry:
        with self._lock:
            entry = self._entries.get(path)
            if entry is None:
                entry = self._entries[path] = _CacheEntry()
            self._entries.move_to_end(path)
            evicted = [self._entries.popitem(last=False)[1] for _ in self._excess()]
        for evicted_entry in evicted:
            _close_entry(evicted_entry)
        return entry

    def _excess(self) -> range:
        return range(max(0, len(self._entries) - _MAX_SESSIONS))


def _close_entry(entry: _CacheEntry) -> None:
    # A locked session is in use; its user closes it.
    if entry.lock.acquire(blocking=False):
        try:
            if entry.session is not None:
                entry.session.close()
                entry.session = None
                entry.fingerprint = ()
        finally:
            entry.lock.release()


def discover_path(path: str) -> DiscoveredFile:
    """Return the session file at a path, on disk or in the archive.

    Raises:
        NotFound: The file was deleted and not archived.
    """
    if os.path.lexists(path):
        return discover_file(path)
    archived = archived_at(path)
    if archived is None:
        raise NotFound(
            "the session file was deleted and not archived",
            hint="Run `steno archive` regularly to keep sessions that Claude Code deletes.",
        )
    return archived


def _fingerprint(discovered: DiscoveredFile) -> tuple[object, ...]:
    """Return a fingerprint of a session file and its sub-agent files."""
    path = discovered.path
    files = (*_subagent_files(path.removesuffix(JSONL_SUFFIX), nested=True), *_subagent_files(os.path.dirname(path)))
    return path, discovered.size, discovered.mtime_ns, type(discovered), files


def _subagent_files(folder: str, *, nested: bool = False) -> Iterator[tuple[str, int, int]]:
    """Yield name, size and time of the sub-agent files in a directory."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if nested and entry.is_dir(follow_symlinks=False):
            yield from _subagent_files(entry.path, nested=True)
        elif entry.name.startswith(_SUBAGENT_PREFIX):
            with suppress(OSError):
                status = entry.stat()
                yield entry.name, status.st_size, status.st_mtime_ns
