"""Sessions that are open: a page and its parts ask for the same one again and again.

One that changed meanwhile is read anew.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from steno.errors import NotFound
from steno.session.session import Session
from steno.store.archive.gone import gone_at
from steno.store.discover import found_at
from steno.store.found import Found
from steno.store.library import open_found

__all__ = ["Shelf"]

_MOST: Final = 6
"""How many are kept."""


class _Book:
    """One session, with a lock: it reads lazily, and pages are made in several threads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.session: Session | None = None
        self.sign: tuple[object, ...] = ()


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
            found = _found(path)
            sign = _sign(found)
            if book.session is None or book.sign != sign:
                if book.session is not None:
                    book.session.close()
                book.session = open_found(found)
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
        return book is not None and (book.lock.locked() or book.sign == _sign(_found(path)))

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


def _found(path: str) -> Found:
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
    """Return what tells whether a session changed: its own file, and its folder of sub-agents."""
    try:
        beside = os.stat(os.path.join(found.path.removesuffix(".jsonl"), "subagents")).st_mtime_ns
    except OSError:
        beside = 0
    return found.path, found.size, found.mtime_ns, type(found), beside
