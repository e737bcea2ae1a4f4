"""What is known of all files and of one, kept while the index stays the same."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from steno.errors import NotFound
from steno.index.opened import Index
from steno.report.files.history import history
from steno.report.files.touched import Choice, Project, Touched, paths, projects, touched
from steno.report.files.values import History
from steno.web.house import House
from steno.web.tags import tag_of

__all__ = ["Shelf", "shelf_of"]

T = TypeVar("T")
_HISTORIES: Final = 3
_LISTS: Final = 6


class Shelf:
    """The last answers about files."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._batch = -1
        self._kept: dict[str, OrderedDict[str, Any]] = {}

    def projects(self, index: Index) -> list[Project]:
        """Return the projects whose sessions touched files."""
        return self._get(index, "projects", "", 1, lambda: projects(index.connection))

    def of_project(self, index: Index, project: str) -> list[Touched]:
        """Return all files of a project, by their paths."""
        choice = Choice(project=project, sort="path")
        return self._get(
            index, "project", project, _LISTS, lambda: touched(index.connection, choice)
        )

    def path(self, index: Index, tag: str) -> str:
        """Return the path that an address names.

        Raises:
            NotFound: no such file was touched.
        """

        def tags() -> dict[str, str]:
            return {tag_of(path): path for path in dict.fromkeys(paths(index.connection))}

        found = self._get(index, "tags", "", 1, tags).get(tag)
        if found is None:
            raise NotFound("no session touched such a file", hint="it may not be indexed yet")
        return found

    def history(self, house: House, index: Index, path: str) -> History:
        """Return one file through time.

        Raises:
            NotFound: there is nothing to tell.
        """
        found = self._get(
            index,
            "history",
            path,
            _HISTORIES,
            lambda: history(index.connection, path, house.shelf.opened),
        )
        if found is None:
            raise NotFound("no session touched such a file")
        return found

    def _get(self, index: Index, kind: str, name: str, most: int, make: Callable[[], T]) -> T:
        (batch,) = index.connection.execute(
            "SELECT coalesce(max(id), 0) FROM batches WHERE NOT open"
        ).fetchone()
        with self._lock:
            if batch != self._batch:
                self._kept.clear()
                self._batch = batch
            kept = self._kept.setdefault(kind, OrderedDict())
            if name in kept:
                kept.move_to_end(name)
                return kept[name]
        made = make()
        with self._lock:
            if batch == self._batch:
                kept[name] = made
                while len(kept) > most:
                    kept.popitem(last=False)
        return made


_SHELVES: Final[WeakKeyDictionary[House, Shelf]] = WeakKeyDictionary()


def shelf_of(house: House) -> Shelf:
    """Return the shelf of a house."""
    return _SHELVES.setdefault(house, Shelf())
