"""What was found, without listing all of it: how much in which file, and the first ones in order.

A common word stands in nearly every message, and a page shows a few of them. So the engine counts,
and is asked for what is shown; only what it cannot tell by itself is listed and counted here.
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from heapq import nsmallest
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from steno.index.search.finder import Finder, Found, Order
from steno.index.search.language import Query
from steno.index.state import SHIFT
from steno.index.texts import SPLIT

if TYPE_CHECKING:
    from steno.index.search.finder import Clause

__all__ = ["Survey", "survey"]

_First: TypeAlias = Callable[[int, Collection[int] | None], list[int]]


class Survey:
    """What was found."""

    def __init__(self, found: Found, files: dict[int, int], first: _First) -> None:
        self.wanted = found.wanted
        self.scope = found.scope
        self.wide = found.wide
        """Whether words were taken inside longer words, because they were not found as typed."""
        self.files = files
        """How many messages have it, for each file."""
        self._first = first

    def first(self, number: int, files: Collection[int] | None = None) -> list[int]:
        """Return the first so many messages in the order asked for, of some files if any are given."""
        return self._first(number, files)


def survey(finder: Finder, query: Query, order: Order = "newest") -> Survey:
    """Look for what a query asks for, as `Finder.find` does.

    Raises:
        BadRequest: it asks for nothing, or for what cannot be looked for.
    """
    plain = finder.plain(query)
    if plain is not None:
        found, clauses = plain
        files = _counted(finder, clauses)
        if files:
            return Survey(found, files, _Asking(finder, clauses, order))
    found = finder.find(query, order)
    numbers = Counter(message >> SHIFT for message in found.messages)
    return Survey(found, dict(numbers), _Listing(found.messages))


def _counted(finder: Finder, clauses: "Sequence[Clause]") -> dict[int, int]:
    """Count the messages that fit; those of several documents are listed, and count once."""
    from tantivy import Occur, Query

    if not finder.has_split:
        return finder.counts(clauses)
    split = Query.term_query(finder.schema, "tag", SPLIT)
    files = Counter(finder.counts([*clauses, (Occur.MustNot, split)]))
    several = finder.messages([*clauses, (Occur.Must, split)], "newest")
    files.update(message >> SHIFT for message in several)
    return dict(files)


class _Asking:
    """Asks the engine for the first ones."""

    def __init__(self, finder: Finder, clauses: "Sequence[Clause]", order: Order) -> None:
        self._finder = finder
        self._clauses = clauses
        self._order: Order = order

    def __call__(self, number: int, files: Collection[int] | None = None) -> list[int]:
        clauses = [*self._clauses]
        if files is not None:
            clauses.append(self._finder.within(files))
        return self._finder.messages(clauses, self._order, number)


class _Listing:
    """Looks the first ones up."""

    def __init__(self, messages: list[int]) -> None:
        self._messages = messages

    def __call__(self, number: int, files: Collection[int] | None = None) -> list[int]:
        if files is None:
            return self._messages[:number]
        places = chain.from_iterable(self._places.get(file, ()) for file in files)
        return [self._messages[place] for place in nsmallest(number, places)]

    @cached_property
    def _places(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for place, message in enumerate(self._messages):
            found.setdefault(message >> SHIFT, []).append(place)
        return found
