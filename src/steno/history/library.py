"""Where the answers come from: the index, brought up to date, and the sessions themselves."""

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from steno.report import clock
from steno.report.usage.wanted import Wanted

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from steno.index.opened import Index
    from steno.report.usage.cells import By
    from steno.session.session import Session
    from steno.store.found import Found
    from steno.store.glance import Glance

__all__ = ["Library"]


class Library:
    """The sessions below some folders, those of the client without any; of some projects or of all."""

    def __init__(self, where: tuple[str, ...] | None, project: str = "") -> None:
        self.where = where
        self._limit = Wanted(limit=project, here=os.getcwd())

    @property
    def is_limited(self) -> bool:
        """Whether some projects are not told about."""
        return not self._limit.is_everywhere

    def has(self, project: str) -> bool:
        """Whether a project is told about."""
        return self._limit.has_project(project)

    @contextmanager
    def index(self) -> "Generator[Index, None, None]":
        """Open the index; each question has a connection of its own."""
        from steno.index.opened import open_index

        with open_index(self.where) as index:
            yield index

    def found(self, name: str) -> "Found":
        """Return the session that goes by a name, also one that is only in the archive.

        Raises:
            NotFound: none does.
            Ambiguous: several do.
        """
        from steno.store.library import find

        # Agents name sessions, not files of this machine: with `among`, no name is a path.
        return find(name, self.where, among=lambda look: self.has(look.project))

    @contextmanager
    def session(self, name: str) -> "Generator[Session, None, None]":
        """Open a session by its name."""
        from steno.store.library import open_found

        with open_found(self.found(name)) as session:
            yield session

    def newest(self, project: str) -> "Iterator[Glance]":
        """Yield the sessions of some projects, the newest first."""
        from steno.store.library import newest_first, seen

        wanted = self.wanted(project, "", "")
        for _, look in seen(newest_first(self.where, archived=True)):
            if not look.hidden and wanted.has_project(look.project):
                yield look

    def wanted(self, project: str, since: str, until: str, by: "By" = "day") -> Wanted:
        """Return which time and which projects are meant.

        Raises:
            BadRequest: a time means nothing.
        """
        now = clock.now()
        start = clock.meant(since, now)[0] if since else None
        end = clock.meant(until, now)[1] if until else None
        return msgspec.structs.replace(
            self._limit,
            by=by,
            since=None if start is None else round(start * 1000),
            until=None if end is None else round(end * 1000),
            project=project,
        )
