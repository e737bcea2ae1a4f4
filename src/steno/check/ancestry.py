"""Which records hang on which, if only in the end; worked out once for a whole file."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from steno.session.nodes import Node

__all__ = ["Ancestry"]


class Ancestry:
    """Every record has a stretch of numbers; what hangs on it has its own within that."""

    def __init__(self, members: Iterable[Node], named: Mapping[str, Node]) -> None:
        self._named = named
        self._first: dict[str | None, int] = {}
        self._last: dict[str | None, int] = {}
        below: defaultdict[str | None, list[str | None]] = defaultdict(list)
        for node in members:
            below[node.parent].append(node.uuid)
        for top in [name for name in below if name is None or name not in named]:
            self._number(top, below)

    def _number(self, top: str | None, below: Mapping[str | None, list[str | None]]) -> None:
        waiting = [(top, False)]
        while waiting:
            name, done = waiting.pop()
            if done:
                self._last[name] = len(self._first)
                continue
            self._first[name] = len(self._first)
            waiting.append((name, True))
            waiting.extend((each, False) for each in below.get(name, ()))

    def leads(self, uuid: str | None, above: str | None) -> bool:
        """Whether a record is another, or hangs on it in the end; on None: on nothing.

        What it hangs on in the end may be an id that is not in the file.
        """
        place = self._first.get(uuid)
        if place is None:
            return above in self._ring(uuid)
        return above in self._first and self._first[above] <= place < self._last[above]

    def _ring(self, uuid: str | None) -> set[str | None]:
        """Return all that a record hangs on whose parents lead round in a ring."""
        seen: set[str | None] = set()
        while uuid is not None and uuid not in seen:
            seen.add(uuid)
            found = self._named.get(uuid)
            uuid = found.parent if found is not None else None
        return seen
