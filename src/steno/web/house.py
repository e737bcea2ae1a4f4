"""What the pages share: the index, the sessions that are open, prices, and news of changes."""

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Final

import msgspec

from steno.errors import NotFound, StenoError
from steno.index.database import open_to_read, stamp_of
from steno.index.home import Home, index_of
from steno.index.opened import Index
from steno.index.texts import Texts, open_texts
from steno.report.keys import key_of, read_key
from steno.report.names import argument
from steno.report.price_file import chosen_prices
from steno.report.prices import Prices
from steno.session.session import Session
from steno.store import clock
from steno.web.kept import Few, Kept
from steno.web.news import News
from steno.web.place import Place
from steno.web.shelf import Shelf
from steno.web.ward import Ward

__all__ = ["House", "NotReady", "Place", "State"]

_PLACE: Final = (
    "SELECT f.id, s.id, s.agent, f.path, f.gone FROM sessions s JOIN files f ON f.id = s.file "
)


class NotReady(NotFound):
    """There is no index yet; it is being made."""


class State(msgspec.Struct):
    """How fresh the index is."""

    syncing: bool = True
    done: int = 0
    planned: int = 0
    fresh: float = 0.0
    """When it was last brought up to date."""
    problem: str = ""


class House:
    """One index and all that is needed to show it."""

    def __init__(
        self, home: Home, *, demo: bool = False, now: Callable[[], float] = clock.now
    ) -> None:
        self.home = home
        self.demo = demo
        """Whether made-up sessions are shown."""
        self.now = now
        self.shelf = Shelf()
        self.news = News()
        self.state = State()
        self.kept = Kept()
        self.drawn = Few()
        self.rebuild: Callable[[], None] = _nothing
        """Starts to make the index anew, where somebody keeps it fresh."""
        self.where = _where(home, demo=demo)
        """The options that make a command look at the same folders."""
        self.ward = Ward(home.roots, now, self.where)

    @contextmanager
    def index(self) -> Generator[Index]:
        """Give the index, as far as it is.

        Raises:
            NotReady: there is none yet.
        """
        connection = open_to_read(self.home.folder)
        if connection is None:
            raise NotReady("the sessions are being read for the first time")
        with Index(self.home, connection) as index:
            yield index

    @cached_property
    def texts(self) -> Texts:
        """The words of the index."""
        return open_texts(self.home.folder)

    def forget_words(self) -> None:
        """Open the words again when they are next asked for."""
        self.__dict__.pop("texts", None)

    @cached_property
    def prices(self) -> Prices:
        """What models cost, with the reader's own prices if there are any."""
        return chosen_prices()

    def stamp(self) -> tuple[int, ...]:
        """Return what changes with every change of the index."""
        return stamp_of(self.home.folder)

    # Sessions by what addresses call them

    def place(self, index: Index, key: str) -> Place:
        """Return the session that an address names.

        Raises:
            NotFound: there is none.
        """
        name, number = read_key(key)
        if not name and number is not None:
            rows = _rows(index, "WHERE s.file = ? AND s.agent = ''", number)
        else:
            rows = _rows(index, "WHERE s.id = ? AND s.agent = ''", name)
        chosen = [row for row in rows if number is None or row[0] == number]
        if not chosen:
            raise NotFound(f"no session is called {key!r}", hint="it may not be indexed yet")
        return _place(min(chosen, key=_age), shared=len(rows) > 1)

    def agent_place(self, index: Index, key: str, agent: str) -> Place:
        """Return the sub-agent that an address names, with a file of its own.

        Raises:
            NotFound: there is none.
        """
        try:
            found = self.place(index, key)
        except NotFound:
            # The session may be gone, or elsewhere, while its sub-agent is here.
            rows = _rows(index, "WHERE s.id = ? AND s.agent = ?", read_key(key)[0], agent)
        else:
            rows = _rows(index, "WHERE s.owner = ? AND s.agent = ?", found.file, agent)
            key = found.key
        if not rows:
            raise NotFound(f"no sub-agent of this session is called {agent!r}")
        return msgspec.structs.replace(_place(min(rows, key=_age), shared=False), key=key)

    @contextmanager
    def session(self, place: Place) -> Generator[Session]:
        """Give the session at a place, as it is now; nobody else reads it meanwhile.

        Raises:
            NotFound: its file is gone, and it was not archived.
            Unreadable: it cannot be read.
        """
        with self.shelf.opened(place.path) as session:
            yield session

    def close(self) -> None:
        """Let go of everything."""
        self.news.close()
        self.ward.close()
        self.shelf.close()


def _nothing() -> None:
    pass


def _where(home: Home, *, demo: bool) -> str:
    """Return the options that make a command look at the same folders."""
    if demo:
        return " --demo"
    try:
        if home.roots == index_of().roots:
            return ""
    except StenoError:
        return ""
    return "".join(f" --root {quoted}" for root in home.roots if (quoted := argument(root)))


def _rows(index: Index, where: str, *values: str | int) -> list[tuple[Any, ...]]:
    return index.connection.execute(_PLACE + where, values).fetchall()


def _age(row: tuple[Any, ...]) -> tuple[bool, int]:
    """Files that are there come first, newer before older."""
    return row[4] is not None, -row[0]


def _place(row: tuple[Any, ...], *, shared: bool) -> Place:
    file, name, agent, path, gone = row
    key = key_of(name, file, shared=shared)
    return Place(file, name, agent, os.fsdecode(path), gone is not None, key)
