"""Sessions that are open: a page and its parts ask for the same one again and again.

Of one that was added to meanwhile, only that is read.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from steno.errors import NotFound
from steno.session.session import Session
from steno.store.archive.gone import gone_at
from steno.store.archive.opened import Archived
from steno.store.discover import found_at
from steno.store.found import Found
from steno.store.library import open_found

__all__ = ["Shelf", "found_at_path"]

_AGENT: Final = "agent-"
_SUFFIX: Final = ".jsonl"
_MOST: Final = 6
"""How many are kept."""


class _Book:
    """One session, with a lock: it reads lazily, and pages are made in several threads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.session: Session | None = None
        self.sign: tuple[object, ...] = ()

    def before(self, found: Found) -> Session | None:
        """Give the session away, to be read on; one that is in the archive cannot grow."""
        session, self.session = self.session, None
        if session is not None and (isinstance(found, Archived) or type(found) not in self.sign):
            session.close()
            return None
        return session


class Shelf:
    """Keeps a few sessions open."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._books: OrderedDict[str, _Book] = OrderedDict()

    @contextmanager
    def opened(self, path: str) -> Generator[Session]:
        """Give the session at a path, as it is now; nobody else reads it meanwhile.

        Raises:
            NotFound: it is gone, and was not archived.
            Unreadable: it cannot be read.
        """
        book = self._book(path)
        with book.lock:
            found = found_at_path(path)
            sign = _sign(found)
            if book.session is None or book.sign != sign:
                book.session = open_found(found, book.before(found))
                book.sign = sign
            yield book.session

    def close(self) -> None:
        """Let go of all."""
        with self._lock:
            books = list(self._books.values())
            self._books.clear()
        for book in books:
            _shut(book)

    def holds(self, path: str) -> bool:
        """Say whether a session was read already, and has not changed since."""
        with self._lock:
            book = self._books.get(path)
        # One that is being read will be there in a moment.
        return book is not None and (book.lock.locked() or book.sign == _sign(found_at_path(path)))

    def _book(self, path: str) -> _Book:
        with self._lock:
            book = self._books.get(path)
            if book is None:
                book = self._books[path] = _Book()
            self._books.move_to_end(path)
            spare = [self._books.popitem(last=False)[1] for _ in self._beyond()]
        for each in spare:
            _shut(each)
        return book

    def _beyond(self) -> range:
        return range(max(0, len(self._books) - _MOST))


def _shut(book: _Book) -> None:
    # One that is being read is left to those who read it.
    if book.lock.acquire(blocking=False):
        try:
            if book.session is not None:
                book.session.close()
                book.session = None
                book.sign = ()
        finally:
            book.lock.release()


def found_at_path(path: str) -> Found:
    """Return the session at a path, on the disk or in the archive.

    Raises:
        NotFound: it is gone, and was not archived.
    """
    if os.path.lexists(path):
        return found_at(path)
    kept = gone_at(path)
    if kept is None:
        raise NotFound(
            "the file of this session is gone, and it was never archived",
            hint="`steno archive` keeps sessions before the client deletes them",
        )
    return kept


def _sign(found: Found) -> tuple[object, ...]:
    """Return what tells whether a session changed: its own file, and those of sub-agents."""
    path = found.path
    files = (*_agents(path.removesuffix(_SUFFIX), nested=True), *_agents(os.path.dirname(path)))
    return path, found.size, found.mtime_ns, type(found), files


def _agents(folder: str, *, nested: bool = False) -> Iterator[tuple[str, int, int]]:
    """Yield the files of sub-agents in a folder, as they are now."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if nested and entry.is_dir(follow_symlinks=False):
            yield from _agents(entry.path, nested=True)
        elif entry.name.startswith(_AGENT):
            with suppress(OSError):
                status = entry.stat()
                yield entry.name, status.st_size, status.st_mtime_ns
