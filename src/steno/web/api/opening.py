"""A session opened for an endpoint, found by its key as the pages find it."""

from collections.abc import Generator
from contextlib import contextmanager

from msgspec import UnsetType

from steno.web.house import House
from steno.web.story.opening import Opened, opened
from steno.web.story.wish import wish_of


@contextmanager
def open_key(
    house: House, key: str, agent: str | UnsetType = "", *, whole: bool = False
) -> Generator[Opened]:
    """Give the session that a key names, or a sub-agent of it.

    With `whole`, its cost and its neighbours are looked up as well.

    Raises:
        NotFound: there is none, or its file is gone and not in the archive.
        Unreadable: it cannot be read.
    """
    wish = wish_of(key, agent if isinstance(agent, str) else "", {})
    with opened(house, wish, whole=whole) as found:
        yield found
