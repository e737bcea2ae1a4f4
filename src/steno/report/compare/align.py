"""Two rows of things side by side: what both have in the same order, and what only one has.

What is small is aligned so that as much as possible is common. In what is large, things that each
row has just once are tied first, and what lies between the ties is aligned by itself; where even
that would take too long, it is left apart and said so.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Final

import msgspec

__all__ = ["Aligned", "Part", "align"]

_CELLS: Final = 250_000
"""How many pairs are looked at in one piece, and in all pieces together four times as many."""
_ALL: Final = 4 * _CELLS


class Part(msgspec.Struct, frozen=True):
    """A stretch that both rows have, or a place where each has its own (or nothing)."""

    common: bool
    a: range
    b: range


class Aligned(msgspec.Struct, frozen=True):
    """Both rows, from beginning to end, as parts that take turns."""

    parts: tuple[Part, ...]
    loose: int = 0
    """How many things were left apart because looking for common ones would have taken too long."""


def align(
    a: Sequence[Hashable],
    b: Sequence[Hashable],
    *,
    ties: Sequence[tuple[int, int]] = (),
    cells: int = _ALL,
) -> Aligned:
    """Return what two rows have in common.

    `ties` are places that belong together whatever stands between them, in rising order; `cells`
    bounds how many pairs are looked at.

    >>> [(part.common, *map(len, (part.a, part.b))) for part in align("abcd", "abxd").parts]
    [(True, 2, 2), (False, 1, 1), (True, 1, 1)]
    """
    work = _Work(a, b, cells)
    work.pairs += ties
    work.between(_gaps(ties, range(len(a)), range(len(b))))
    return Aligned(tuple(_parts(sorted(work.pairs), len(a), len(b))), work.loose)


class _Work:
    """Finds the pairs of places that hold the same thing."""

    def __init__(self, a: Sequence[Hashable], b: Sequence[Hashable], cells: int) -> None:
        # Numbers stand for the things: they are compared a million times.
        numbers: dict[Hashable, int] = {}
        self._a = [numbers.setdefault(each, len(numbers)) for each in a]
        self._b = [numbers.setdefault(each, len(numbers)) for each in b]
        self._cells = cells
        self.pairs: list[tuple[int, int]] = []
        self.loose = 0

    def between(self, stack: list[tuple[range, range]]) -> None:
        """Align some stretches; nothing recurses, because there may be many ties in a row."""
        while stack:
            stack += self._narrow(*self._trimmed(*stack.pop()))

    def _trimmed(self, a: range, b: range) -> tuple[range, range]:
        """Tie what both begin and end with."""
        while a and b and self._same(a[0], b[0]):
            self.pairs.append((a[0], b[0]))
            a, b = a[1:], b[1:]
        while a and b and self._same(a[-1], b[-1]):
            self.pairs.append((a[-1], b[-1]))
            a, b = a[:-1], b[:-1]
        return a, b

    def _narrow(self, a: range, b: range) -> list[tuple[range, range]]:
        if not a or not b or self._disjoint(a, b):
            return []
        size = len(a) * len(b)
        if size <= min(_CELLS, self._cells):
            self._cells -= size
            self._longest(a, b)
            return []
        # Looking for ties costs too, and somebody may have written a session to make it cost much.
        self._cells -= len(a) + len(b)
        ties = _rising(self._once(a, b)) if self._cells > 0 else []
        if not ties:
            self.loose += len(a) + len(b)
            return []
        self.pairs += ties
        return _gaps(ties, a, b)

    def _same(self, one: int, other: int) -> bool:
        return self._a[one] == self._b[other]

    def _disjoint(self, a: range, b: range) -> bool:
        return set(self._a[a.start : a.stop]).isdisjoint(self._b[b.start : b.stop])

    def _once(self, a: range, b: range) -> list[tuple[int, int]]:
        """Return the places of what each stretch has exactly once, by their order in `a`."""
        counts = Counter(self._a[place] for place in a)
        others = Counter(self._b[place] for place in b)
        there = {self._b[place]: place for place in b}
        return [
            (place, there[self._a[place]])
            for place in a
            if counts[self._a[place]] == 1 and others[self._a[place]] == 1
        ]

    def _longest(self, a: range, b: range) -> None:
        """Tie the longest row that both have, the earliest where several are as long."""
        theirs = self._b[b.start : b.stop][::-1]
        # Rows run from the end of `b` to its beginning, so that each is built by appending.
        below = [0] * (len(theirs) + 1)
        best = [below]
        for mine in reversed(self._a[a.start : a.stop]):
            row = [0]
            right = 0
            for place, other in enumerate(theirs):
                if mine == other:
                    right = below[place] + 1
                elif below[place + 1] > right:
                    right = below[place + 1]
                row.append(right)
            best.append(row)
            below = row
        best.reverse()
        one, left, end = 0, len(b), len(b)
        while one < len(a) and left:
            place = end - left
            if self._same(a[one], b[place]):
                self.pairs.append((a[one], b[place]))
                one, left = one + 1, left - 1
            elif best[one + 1][left] >= best[one][left - 1]:
                one += 1
            else:
                left -= 1


def _gaps(ties: Sequence[tuple[int, int]], a: range, b: range) -> list[tuple[range, range]]:
    """Return what lies before, between and behind some ties."""
    return [
        (range(one[0] + 1, two[0]), range(one[1] + 1, two[1]))
        for one, two in zip(
            [(a.start - 1, b.start - 1), *ties], [*ties, (a.stop, b.stop)], strict=True
        )
    ]


def _rising(ties: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the most ties that do not cross, of ties in the order of their first places."""
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for number, (_, other) in enumerate(ties):
        at = bisect_left(ends, other)
        before.append(last[at - 1] if at else -1)
        if at == len(ends):
            ends.append(other)
            last.append(number)
        else:
            ends[at], last[at] = other, number
    chosen: list[tuple[int, int]] = []
    number = last[-1] if last else -1
    while number >= 0:
        chosen.append(ties[number])
        number = before[number]
    return chosen[::-1]


def _parts(pairs: list[tuple[int, int]], a: int, b: int) -> list[Part]:
    parts: list[Part] = []
    at = to = 0
    for one, other in [*pairs, (a, b)]:
        if one > at or other > to:
            parts.append(Part(common=False, a=range(at, one), b=range(to, other)))
        if one < a and other < b:
            _extend(parts, one, other)
        at, to = one + 1, other + 1
    return parts


def _extend(parts: list[Part], one: int, other: int) -> None:
    """Add a pair to the common stretch before it, or begin one."""
    last = parts[-1] if parts else None
    if last is not None and last.common:
        parts[-1] = Part(
            common=True, a=range(last.a.start, one + 1), b=range(last.b.start, other + 1)
        )
    else:
        parts.append(Part(common=True, a=range(one, one + 1), b=range(other, other + 1)))
