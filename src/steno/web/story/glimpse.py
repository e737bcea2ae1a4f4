"""The last turns of a very long session, from the end of its file, before the whole was read."""

from typing import Final

from steno.report.doing import end_of
from steno.report.prices import Prices
from steno.session.session import Session
from steno.session.story.turns import Turn
from steno.store.archive.opened import source_of
from steno.store.discover import found_at
from steno.web.story.tale import Tale

__all__ = ["BIG", "glimpse"]

BIG: Final = 12 << 20
"""From this size on the whole takes longer than anybody should wait for the first line."""
_TAIL: Final = 1 << 20
_MOST: Final = 8 << 20
_TURNS: Final = 3


def glimpse(path: str, prices: Prices) -> tuple[Tale, list[Turn]]:
    """Return the last turns of the session at a path; their numbers mean nothing.

    Raises:
        Unreadable: it cannot be read.
    """
    source = source_of(found_at(path))
    length = _TAIL
    while True:
        session = Session(end_of(source, length))
        # What stands first was begun before what was read.
        turns = session.turns()[1:]
        if turns or length >= _MOST:
            return Tale(session, prices), turns[-_TURNS:]
        length *= 4
