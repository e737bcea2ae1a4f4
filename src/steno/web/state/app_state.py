"""State shared by all requests: index, open sessions, prices, caches, change notifications."""

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Final

import msgspec

from steno.errors import NotFound, StenoError
from steno.index.database import IndexLocation, SessionIndex, database_stamp, locate_index, open_for_reading
from steno.index.text_index import TextIndex, open_text_index
from steno.report.price_sources import load_price_table
from steno.report.pricing import PriceTable
from steno.report.session_lookup import keys_and_titles_at, parse_session_key, session_key
from steno.report.session_references import shell_argument
from steno.session.session import Session
from steno.store import environment
from steno.web.state.caches import IndexCache, LruCache, SessionCache, SessionRef
from steno.web.state.health_monitor import HealthMonitor
from steno.web.state.pubsub import PubSub

_SESSION_SQL: Final = "SELECT f.id, s.id, s.agent, f.path, f.gone FROM sessions s JOIN files f ON f.id = s.file "


class NotReady(NotFound):
    """Raised while the index is built for the first time."""


class IndexStatus(msgspec.Struct):
    """The state of the index."""

    syncing: bool = True
    done: int = 0
    planned: int = 0
    updated: float = 0.0
    """Time of the last update."""
    problem: str = ""


class AppState:
    """The index and all state needed to render pages."""

    def __init__(self, home: IndexLocation, *, demo: bool = False, now: Callable[[], float] = environment.now) -> None:
        self.home = home
        self.demo = demo
        """Whether demo sessions are shown."""
        self.now = now
        self.session_cache = SessionCache()
        self.pubsub = PubSub()
        self.index_status = IndexStatus()
        self.index_cache = IndexCache()
        self.result_cache = LruCache()
        self.rebuild: Callable[[], None] = _do_nothing
        """Starts a rebuild of the index, if the explorer updates the index."""
        self.location_options = _location_options(home, demo=demo)
        """Options that make a command use the same directories."""
        self.health_monitor = HealthMonitor(home.roots, now, self.location_options)

    @contextmanager
    def index(self) -> Generator[SessionIndex]:
        """Open the index in its current state.

        Raises:
            NotReady: The index does not exist yet.
        """
        connection = open_for_reading(self.home.folder)
        if connection is None:
            raise NotReady("the index is being built")
        with SessionIndex(self.home, connection) as index:
            yield index

    @cached_property
    def texts(self) -> TextIndex:
        """Return the text index."""
        return open_text_index(self.home.folder)

    def reset_texts(self) -> None:
        """Reopen the text index on its next use."""
        self.__dict__.pop("texts", None)

    @cached_property
    def prices(self) -> PriceTable:
        """Return model prices, including those of the user's price file."""
        return load_price_table()

    def index_stamp(self) -> tuple[int, ...]:
        """Return a stamp that changes with every change of the index."""
        return database_stamp(self.home.folder)

    # Sessions by URL key

    def keys_and_titles_at(self, paths: Sequence[str]) -> dict[str, tuple[str, str]]:
        """Return the keys and titles of the indexed sessions at some paths."""
        try:
            with self.index() as index:
                return keys_and_titles_at(index.connection, paths)
        except NotReady:
            return {}

    def session_ref(self, index: SessionIndex, key: str) -> SessionRef:
        """Return a session by its URL key.

        Raises:
            NotFound: The session does not exist.
        """
        name, file_number = parse_session_key(key)
        if not name and file_number is not None:
            rows = _session_rows(index, "WHERE s.file = ? AND s.agent = ''", file_number)
        else:
            rows = _session_rows(index, "WHERE s.id = ? AND s.agent = ''", name)
        matches = [row for row in rows if file_number is None or row[0] == file_number]
        if not matches:
            raise NotFound(f"no session matches {key!r}", hint="The session may not be indexed yet.")
        return _session_ref_of_row(min(matches, key=_row_order), shared=len(rows) > 1)

    def subagent_ref(self, index: SessionIndex, key: str, agent: str) -> SessionRef:
        """Return a sub-agent that has a separate file.

        Raises:
            NotFound: The sub-agent does not exist, or has no separate file.
        """
        try:
            session_ref = self.session_ref(index, key)
        except NotFound:
            # The session file may be missing while the sub-agent file exists.
            rows = _session_rows(index, "WHERE s.id = ? AND s.agent = ?", parse_session_key(key)[0], agent)
        else:
            rows = _session_rows(index, "WHERE s.owner = ? AND s.agent = ?", session_ref.file, agent)
            key = session_ref.key
        if not rows:
            raise NotFound(f"no sub-agent {agent!r} in this session")
        return msgspec.structs.replace(_session_ref_of_row(min(rows, key=_row_order), shared=False), key=key)

    @contextmanager
    def open_session(self, session_ref: SessionRef) -> Generator[Session]:
        """Open a session in its current state, for exclusive use.

        Raises:
            NotFound: The file was deleted and not archived.
            Unreadable: The file cannot be read.
        """
        with self.session_cache.open(session_ref.path) as session:
            yield session

    def close(self) -> None:
        """End all subscriptions and checks, and close all sessions."""
        self.pubsub.close()
        self.health_monitor.close()
        self.session_cache.close()


def _do_nothing() -> None:
    pass


def _location_options(home: IndexLocation, *, demo: bool) -> str:
    """Return the options that make a command use the same directories."""
    if demo:
        return " --demo"
    try:
        if home.roots == locate_index().roots:
            return ""
    except StenoError:
        return ""
    return "".join(f" --root {quoted}" for root in home.roots if (quoted := shell_argument(root)))


def _session_rows(index: SessionIndex, where: str, *values: str | int) -> list[tuple[Any, ...]]:
    return index.connection.execute(_SESSION_SQL + where, values).fetchall()


def _row_order(row: tuple[Any, ...]) -> tuple[bool, int]:
    """Sort existing files first, then newer before older."""
    return row[4] is not None, -row[0]


def _session_ref_of_row(row: tuple[Any, ...], *, shared: bool) -> SessionRef:
    file, name, agent, path, gone = row
    key = session_key(name, file, shared=shared)
    return SessionRef(file, name, agent, os.fsdecode(path), gone is not None, key)
