"""Sessions to choose from."""

from collections.abc import Iterable

import msgspec

from steno.index.opened import Index
from steno.report import words
from steno.report.listing import Listed, costs_of
from steno.web.house import House
from steno.web.tags import tag_of

__all__ = ["Choice", "choices_of", "key_of"]


class Choice(msgspec.Struct, frozen=True):
    """A session that can be chosen."""

    listed: Listed
    key: str
    when: str
    cost: int | None
    why: str = ""
    project: str = ""


def key_of(index: Index, each: Listed) -> str:
    """Return what an address calls a session; copies of one are told apart by their file."""
    (number,) = index.connection.execute(
        "SELECT count(*) FROM sessions WHERE id = ? AND agent = ''", (each.id,)
    ).fetchone()
    return f"{each.id}~{each.file}" if number > 1 else each.id


def choices_of(house: House, index: Index, some: Iterable[tuple[Listed, str]]) -> list[Choice]:
    """Return sessions as a list shows them, each with a word on why it is there."""
    pairs = list(some)
    costs = costs_of(index.connection, [each.id for each, _ in pairs], house.prices)
    now = house.now()
    made: list[Choice] = []
    for each, why in pairs:
        figures = costs.get(each.id)
        made.append(
            Choice(
                each,
                key_of(index, each),
                "" if each.ended is None else words.day(each.ended / 1000, now),
                None if figures is None else figures.cost,
                why,
                tag_of(each.project) if each.project else "",
            )
        )
    return made
