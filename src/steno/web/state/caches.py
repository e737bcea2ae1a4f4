"""Caches: open sessions, results valid for one index state, small keyed results.

Of an open session that grew, only the new part is read.
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
    """Where a session, or a sub-agent of one, lies, and what it is called in addresses."""

    file: int
    """Its number in the index."""
    id: str
    subagent: str
    path: str
    is_deleted: bool
    key: str
    """What an address calls the session."""


_MAX_RESULTS: Final = 32
_DEFAULT_SIZE: Final = 2_000
_T = TypeVar("_T")


class IndexCache:
    """A few answers about one state of the index."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._stamp: Hashable = None
        self._results: dict[Hashable, Any] = {}

    def get(self, index_stamp: Hashable, key: Hashable, compute: Callable[[], _T]) -> _T:
        """Return an answer. `stamp` says of which state, and must be older than the answer is."""
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
    """Small answers about things that are named by all that they depend on; the oldest go first."""

    def __init__(self, max_size: int = _DEFAULT_SIZE) -> None:
        self._lock = Lock()
        self._max_size = max_size
        self._results: dict[Hashable, Any] = {}

    def contains(self, key: Hashable) -> bool:
        """Return whether an answer is known."""
        with self._lock:
            return key in self._results

    def get(self, key: Hashable, compute: Callable[[], _T]) -> _T:
        """Return an answer; two who ask at once may both work it out, and neither waits."""
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
"""How many are kept."""


class _CacheEntry:
    """One session, with a lock: it reads lazily, and pages are made in several threads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.session: Session | None = None
        self.fingerprint: tuple[object, ...] = ()

    def take_session(self, discovered: DiscoveredFile) -> Session | None:
        """Give the session away, to be read on; one that is in the archive cannot grow."""
        session, self.session = self.session, None
        if session is not None and (isinstance(discovered, ArchivedFile) or type(discovered) not in self.fingerprint):
            session.close()
            return None
        return session


class SessionCache:
    """Keeps a few sessions open."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, _CacheEntry] = OrderedDict()

    @contextmanager
    def open(self, path: str) -> Generator[Session]:
        """Give the session at a path, as it is now; nobody else reads it meanwhile.

        Raises:
            NotFound: it is gone, and was not archived.
            Unreadable: it cannot be read.
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
        """Let go of all."""
        with self._lock:
            entries = list(self._entries.values())
            self._entries.clear()
        for entry in entries:
            _close_entry(entry)

    def is_fresh(self, path: str) -> bool:
        """Say whether a session was read already, and has not changed since."""
        with self._lock:
            entry = self._entries.get(path)
        # One that is being read will be there in a moment.
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
    # One that is being read is left to those who read it.
    if entry.lock.acquire(blocking=False):
        try:
            if entry.session is not None:
                entry.session.close()
                entry.session = None
                entry.fingerprint = ()
        finally:
            entry.lock.release()


def discover_path(path: str) -> DiscoveredFile:
    """Return the session at a path, on the disk or in the archive.

    Raises:
        NotFound: it is gone, and was not archived.
    """
    if os.path.lexists(path):
        return discover_file(path)
    archived = archived_at(path)
    if archived is None:
        raise NotFound(
            "the file of this session is gone, and it was never archived",
            hint="`steno archive` keeps sessions before the client deletes them",
        )
    return archived


def _fingerprint(discovered: DiscoveredFile) -> tuple[object, ...]:
    """Return what tells whether a session changed: its own file, and those of sub-agents."""
    path = discovered.path
    files = (*_subagent_files(path.removesuffix(JSONL_SUFFIX), nested=True), *_subagent_files(os.path.dirname(path)))
    return path, discovered.size, discovered.mtime_ns, type(discovered), files


def _subagent_files(folder: str, *, nested: bool = False) -> Iterator[tuple[str, int, int]]:
    """Yield the files of sub-agents in a folder, as they are now."""
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
