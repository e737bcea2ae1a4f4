"""Aligns two sequences: items that both have in the same order, and items that only one has.

Small inputs get a longest common subsequence. In large ones, items that occur exactly once in each
are matched first, and the gaps between them are aligned separately; gaps that would take too long
stay unaligned and are counted.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Final

import msgspec

_MAX_PAIRS_PER_GAP: Final = 250_000
"""How many pairs are looked at in one piece, and in all pieces together four times as many."""
_MAX_PAIRS: Final = 4 * _MAX_PAIRS_PER_GAP


class AlignedRange(msgspec.Struct, frozen=True):
    """A stretch that both rows have, or a place where each has its own (or nothing)."""

    common: bool
    a: range
    b: range


class Alignment(msgspec.Struct, frozen=True):
    """Both rows, from beginning to end, as parts that take turns."""

    parts: tuple[AlignedRange, ...]
    loose: int = 0
    """How many things were left apart because looking for common ones would have taken too long."""


def align(
    a: Sequence[Hashable],
    b: Sequence[Hashable],
    *,
    anchors: Sequence[tuple[int, int]] = (),
    max_pairs: int = _MAX_PAIRS,
) -> Alignment:
    """Return what two rows have in common.

    `ties` are places that belong together whatever stands between them, in rising order; `cells`
    bounds how many pairs are looked at.

    >>> [(part.common, *map(len, (part.a, part.b))) for part in align("abcd", "abxd").parts]
    [(True, 2, 2), (False, 1, 1), (True, 1, 1)]
    """
    aligner = _Aligner(a, b, max_pairs)
    aligner.pairs += anchors
    aligner.align_gaps(_gaps_between(anchors, range(len(a)), range(len(b))))
    return Alignment(tuple(_aligned_ranges(sorted(aligner.pairs), len(a), len(b))), aligner.loose)


class _Aligner:
    """Finds the pairs of places that hold the same thing."""

    def __init__(self, a: Sequence[Hashable], b: Sequence[Hashable], max_pairs: int) -> None:
        # Numbers stand for the things: they are compared a million times.
        numbers: dict[Hashable, int] = {}
        self._a = [numbers.setdefault(item, len(numbers)) for item in a]
        self._b = [numbers.setdefault(each, len(numbers)) for each in b]
        self._pairs_left = max_pairs
        self.pairs: list[tuple[int, int]] = []
        self.loose = 0

    def align_gaps(self, stack: list[tuple[range, range]]) -> None:
        """Align some stretches; nothing recurses, because there may be many ties in a row."""
        while stack:
            stack += self._align_gap(*self._match_ends(*stack.pop()))

    def _match_ends(self, a: range, b: range) -> tuple[range, range]:
        """Tie what both begin and end with."""
        while a and b and self._same(a[0], b[0]):
            self.pairs.append((a[0], b[0]))
            a, b = a[1:], b[1:]
        while a and b and self._same(a[-1], b[-1]):
            self.pairs.append((a[-1], b[-1]))
            a, b = a[:-1], b[:-1]
        return a, b

    def _align_gap(self, a: range, b: range) -> list[tuple[range, range]]:
        if not a or not b or self._disjoint(a, b):
            return []
        size = len(a) * len(b)
        if size <= min(_MAX_PAIRS_PER_GAP, self._pairs_left):
            self._pairs_left -= size
            self._match_longest(a, b)
            return []
        # Looking for ties costs too, and somebody may have written a session to make it cost much.
        self._pairs_left -= len(a) + len(b)
        anchors = _longest_increasing(self._unique_matches(a, b)) if self._pairs_left > 0 else []
        if not anchors:
            self.loose += len(a) + len(b)
            return []
        self.pairs += anchors
        return _gaps_between(anchors, a, b)

    def _same(self, index_a: int, index_b: int) -> bool:
        return self._a[index_a] == self._b[index_b]

    def _disjoint(self, a: range, b: range) -> bool:
        return set(self._a[a.start : a.stop]).isdisjoint(self._b[b.start : b.stop])

    def _unique_matches(self, a: range, b: range) -> list[tuple[int, int]]:
        """Return the places of what each stretch has exactly once, by their order in `a`."""
        counts = Counter(self._a[place] for place in a)
        counts_b = Counter(self._b[place] for place in b)
        positions_b = {self._b[place]: place for place in b}
        return [
            (place, positions_b[self._a[place]])
            for place in a
            if counts[self._a[place]] == 1 and counts_b[self._a[place]] == 1
        ]

    def _match_longest(self, a: range, b: range) -> None:
        """Tie the longest row that both have, the earliest where several are as long."""
        reversed_b = self._b[b.start : b.stop][::-1]
        # Rows run from the end of `b` to its beginning, so that each is built by appending.
        previous_row = [0] * (len(reversed_b) + 1)
        table = [previous_row]
        for item_a in reversed(self._a[a.start : a.stop]):
            row = [0]
            length = 0
            for place, item_b in enumerate(reversed_b):
                if item_a == item_b:
                    length = previous_row[place] + 1
                elif previous_row[place + 1] > length:
                    length = previous_row[place + 1]
                row.append(length)
            table.append(row)
            previous_row = row
        table.reverse()
        index_a, remaining_b, end = 0, len(b), len(b)
        while index_a < len(a) and remaining_b:
            place = end - remaining_b
            if self._same(a[index_a], b[place]):
                self.pairs.append((a[index_a], b[place]))
                index_a, remaining_b = index_a + 1, remaining_b - 1
            elif table[index_a + 1][remaining_b] >= table[index_a][remaining_b - 1]:
                index_a += 1
            else:
                remaining_b -= 1


def _gaps_between(anchors: Sequence[tuple[int, int]], a: range, b: range) -> list[tuple[range, range]]:
    """Return what lies before, between and behind some ties."""
    return [
        (range(anchor[0] + 1, next_anchor[0]), range(anchor[1] + 1, next_anchor[1]))
        for anchor, next_anchor in zip(
            [(a.start - 1, b.start - 1), *anchors], [*anchors, (a.stop, b.stop)], strict=True
        )
    ]


def _longest_increasing(anchors: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the most ties that do not cross, of ties in the order of their first places."""
    ends: list[int] = []
    last_anchors: list[int] = []
    previous: list[int] = []
    for number, (_, index_b) in enumerate(anchors):
        position = bisect_left(ends, index_b)
        previous.append(last_anchors[position - 1] if position else -1)
        if position == len(ends):
            ends.append(index_b)
            last_anchors.append(number)
        else:
            ends[position], last_anchors[position] = index_b, number
    chosen: list[tuple[int, int]] = []
    number = last_anchors[-1] if last_anchors else -1
    while number >= 0:
        chosen.append(anchors[number])
        number = previous[number]
    return chosen[::-1]


def _aligned_ranges(pairs: list[tuple[int, int]], a: int, b: int) -> list[AlignedRange]:
    parts: list[AlignedRange] = []
    next_a = next_b = 0
    for index_a, index_b in [*pairs, (a, b)]:
        if index_a > next_a or index_b > next_b:
            parts.append(AlignedRange(common=False, a=range(next_a, index_a), b=range(next_b, index_b)))
        if index_a < a and index_b < b:
            _extend_common(parts, index_a, index_b)
        next_a, next_b = index_a + 1, index_b + 1
    return parts


def _extend_common(parts: list[AlignedRange], index_a: int, index_b: int) -> None:
    """Add a pair to the common stretch before it, or begin one."""
    last = parts[-1] if parts else None
    if last is not None and last.common:
        parts[-1] = AlignedRange(common=True, a=range(last.a.start, index_a + 1), b=range(last.b.start, index_b + 1))
    else:
        parts.append(AlignedRange(common=True, a=range(index_a, index_a + 1), b=range(index_b, index_b + 1)))
