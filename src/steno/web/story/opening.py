"""A session opened for a page: where it lies, what the index knows of it, and its tale."""

from collections.abc import Generator
from contextlib import contextmanager

import msgspec
from starlette.requests import Request

from steno.errors import NotFound
from steno.web.house import House, Place
from steno.web.paint import links
from steno.web.story.head import Lying, lying
from steno.web.story.steps import Manner
from steno.web.story.tale import Tale, tale_of
from steno.web.story.wish import Wish, wish_of

__all__ = ["Opened", "asked_of", "manner_of", "opened", "placed"]


class Opened(msgspec.Struct):
    """All that pages about a session begin with."""

    wish: Wish
    place: Place
    found: Lying
    tale: Tale

    def manner(self, *, live: bool = False) -> Manner:
        """Return how the reader wants it told."""
        return manner_of(self.wish, self.found, live=live)


def manner_of(wish: Wish, found: Lying, *, live: bool = False) -> Manner:
    """Return how a reader wants a session told."""
    return Manner(wish.key, links(), wish.detail, wish.opened, live, found.known.project)


def asked_of(request: Request) -> Wish:
    """Return what a request wants to see."""
    ways = request.path_params
    return wish_of(ways["key"], ways.get("agent", ""), request.query_params)


def placed(house: House, wish: Wish, *, whole: bool = False) -> tuple[Place, Lying]:
    """Return where a session lies, and what is known of it without opening it.

    With `whole` its cost is summed up as well, and its neighbours are looked for.

    Raises:
        NotFound: there is no such session.
    """
    with house.index() as index:
        try:
            place = house.place(index, wish.key)
        except NotFound:
            if not wish.agent:
                raise
            # A sub-agent whose session is not here is told on its own.
            place = house.agent_place(index, wish.key, wish.agent)
        found = lying(house, index, place, whole=whole)
    wish.key = place.key
    return place, found


@contextmanager
def opened(house: House, wish: Wish, *, whole: bool = False) -> Generator[Opened]:
    """Give a session, or a sub-agent, to a page; nobody else reads it meanwhile.

    Raises:
        NotFound: there is no such session or sub-agent, or its file is gone.
        Unreadable: it cannot be read.
    """
    place, found = placed(house, wish, whole=whole)
    with house.session(place) as session:
        yield Opened(wish, place, found, tale_of(house, session, place, wish.agent))
