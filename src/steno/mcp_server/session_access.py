"""Where the answers come from: the index, brought up to date, and the sessions themselves."""

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from steno.report import clock
from steno.report.usage.usage_query import UsageQuery
from steno.store import environment

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from steno.index.database import SessionIndex
    from steno.report.usage.usage_query import Grouping
    from steno.session.session import Session
    from steno.store.discovery import DiscoveredFile
    from steno.store.summary import SessionSummary


class SessionAccess:
    """The sessions below some folders, those of the client without any; of some projects or of all."""

    def __init__(self, roots: tuple[str, ...] | None, project: str = "") -> None:
        self.roots = roots
        self._project_filter = UsageQuery(limit=project, here=os.getcwd())

    @property
    def is_limited(self) -> bool:
        """Whether some projects are not told about."""
        return not self._project_filter.is_everywhere

    def includes_project(self, project: str) -> bool:
        """Whether a project is told about."""
        return self._project_filter.matches_project(project)

    @contextmanager
    def index(self) -> "Generator[SessionIndex, None, None]":
        """Open the index; each question has a connection of its own."""
        from steno.index.database import open_index

        with open_index(self.roots) as index:
            yield index

    def find(self, name: str) -> "DiscoveredFile":
        """Return the session that goes by a name, also one that is only in the archive.

        Raises:
            NotFound: none does.
            Ambiguous: several do.
        """
        from steno.store.session_lookup import find

        # Agents name sessions, not files of this machine: with `among`, no name is a path.
        return find(name, self.roots, session_filter=lambda summary: self.includes_project(summary.project))

    @contextmanager
    def session(self, name: str) -> "Generator[Session, None, None]":
        """Open a session by its name."""
        from steno.store.session_lookup import open_file_session

        with open_file_session(self.find(name)) as session:
            yield session

    def newest_sessions(self, project: str) -> "Iterator[SessionSummary]":
        """Yield the sessions of some projects, the newest first."""
        from steno.store.session_lookup import sessions_newest_first, summarize_files

        selection = self.usage_filter(project, "", "")
        for _, summary in summarize_files(sessions_newest_first(self.roots, archived=True)):
            if not summary.hidden and selection.matches_project(summary.project):
                yield summary

    def usage_filter(self, project: str, since: str, until: str, by: "Grouping" = "day") -> UsageQuery:
        """Return which time and which projects are meant.

        Raises:
            BadRequest: a time means nothing.
        """
        now = environment.now()
        start = clock.parse_time_range(since, now)[0] if since else None
        end = clock.parse_time_range(until, now)[1] if until else None
        return msgspec.structs.replace(
            self._project_filter,
            by=by,
            since=None if start is None else round(start * 1000),
            until=None if end is None else round(end * 1000),
            project=project,
        )
