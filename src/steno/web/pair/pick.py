"""Sessions to choose from."""

from collections.abc import Iterable

import msgspec

from steno.index.opened import Index
from steno.report import words
from steno.report.listing import Listed, costs_of
from steno.web.house import House
from steno.web.tags import tag_of

__all__ = ["Choice", "choices_of"]


class Choice(msgspec.Struct, frozen=True):
    """A session that can be chosen."""

    listed: Listed
    key: str
    when: str
    cost: int | None
    why: str = ""
    project: str = ""


def choices_of(house: House, index: Index, some: Iterable[tuple[Listed, str]]) -> list[Choice]:
    """Return sessions as a list shows them, each with a word on why it is there."""
    pairs = list(some)
    costs = costs_of(index.connection, [each.file for each, _ in pairs], house.prices)
    now = house.now()
    made: list[Choice] = []
    for each, why in pairs:
        figures = costs.get(each.file)
        made.append(
            Choice(
                each,
                each.key,
                "" if each.ended is None else words.day(each.ended / 1000, now),
                None if figures is None else figures.cost,
                why,
                tag_of(each.project) if each.project else "",
            )
        )
    return made
