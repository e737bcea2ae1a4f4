"""Differences of two sequences, such as the lines of two texts: common ranges and differing ranges.

Where several results are equally good, `recorded_diff` chooses the same one as Claude Code, `align` pairs the earliest
items, and `readable_diff` prefers long common ranges. The run time is limited: large inputs with little in common are
left unpaired.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import pairwise
from math import inf
from typing import Final, TypeAlias

import msgspec

Pair: TypeAlias = tuple[int, int]
"""Indexes of equal items in both sequences."""
_Block: TypeAlias = tuple[int, int, int]
"""Start of a common range in each sequence, and its length."""
_Reach: TypeAlias = dict[int, int]
"""Furthest position in the first sequence for a number of edits, by diagonal (items removed minus items added)."""
_MAX_SEARCH_STEPS: Final = 250_001
_MAX_PAIRS_PER_GAP: Final = 250_000
_MAX_PAIRS: Final = 4 * _MAX_PAIRS_PER_GAP


class DiffRange(msgspec.Struct, frozen=True):
    """A common range, or a difference, where one of the ranges may be empty."""

    common: bool
    a: range
    b: range


class Alignment(msgspec.Struct, frozen=True):
    """Two whole sequences as alternating common and differing ranges."""

    parts: tuple[DiffRange, ...]
    loose: int = 0
    """Number of items left unpaired because the search would take too long."""

    @property
    def pairs(self) -> list[Pair]:
        """All pairs of common items."""
        return [pair for part in self.parts if part.common for pair in zip(part.a, part.b, strict=True)]


class Hunk(msgspec.Struct, frozen=True):
    """A hunk of a diff: its first line numbers in the old and new text, and its lines."""

    old: int
    new: int
    lines: tuple[str, ...]
    """Lines with their sign: a space, `-` or `+`; a backslash starts a note."""


def common_ends(a: Sequence[Hashable], b: Sequence[Hashable]) -> tuple[int, int]:
    """Return the number of common items at the start and end of two sequences."""
    max_length = min(len(a), len(b))
    head = tail = 0
    while head < max_length and a[head] == b[head]:
        head += 1
    while tail < max_length - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    return head, tail


# Shortest differences


def recorded_diff(a: Sequence[str], b: Sequence[str]) -> list[DiffRange]:
    """Return the shortest difference, as Claude Code records it; too many differences become one change."""
    reaches = _search_edits(a, b, _MAX_SEARCH_STEPS)
    if reaches is None:
        return readable_diff(a, b, max_pairs=-1)
    return _ranges(_join_pairs(_recorded_pairs(reaches, len(a), len(b))), len(a), len(b))


def _search_edits(a: Sequence[Hashable], b: Sequence[Hashable], max_steps: float = inf) -> list[_Reach] | None:
    """Return the reaches for 0, 1, … edits up to the minimum (Myers, 1986); None after too many steps."""
    size_a, size_b = len(a), len(b)
    lowest, highest = -size_b, size_a
    reaches: list[_Reach] = []
    previous: _Reach = {1: 0}
    while max_steps >= 0:
        distance = len(reaches)
        reach: _Reach = {}
        # Diagonals beyond the end of either sequence are left out, two at a time to keep the parity.
        first = max(-distance, lowest + (lowest + distance) % 2)
        for diagonal in range(first, min(distance, highest) + 1, 2):
            less, more = previous.get(diagonal - 1, -1), previous.get(diagonal + 1, -1)
            place = more if less < more else less + 1
            end = min(size_a, size_b + diagonal)
            while place < end and a[place] == b[place - diagonal]:
                place += 1
            reach[diagonal] = place
            if place >= size_a:
                highest = min(highest, diagonal - 1)
            if place - diagonal >= size_b:
                lowest = max(lowest, diagonal + 1)
        reaches.append(reach)
        if reach.get(size_a - size_b) == size_a:
            return reaches
        max_steps -= len(reach)
        previous = reach
    return None


def _recorded_pairs(reaches: list[_Reach], size_a: int, size_b: int) -> Iterable[Pair]:
    """Return the unchanged pairs, tracing back by the edit that reaches further; ties are removals."""
    removed: set[int] = set()
    added: set[int] = set()
    diagonal = size_a - size_b
    for reach in reversed(reaches[:-1]):
        less, more = reach.get(diagonal - 1, -1), reach.get(diagonal + 1, -1)
        if less < more:
            added.add(more - diagonal - 1)
            diagonal += 1
        else:
            removed.add(less)
            diagonal -= 1
    return zip(
        [place for place in range(size_a) if place not in removed],
        [place for place in range(size_b) if place not in added],
        strict=True,
    )


def _earliest_pairs(a: list[int], b: list[int]) -> Iterator[Pair]:
    """Yield the pairs of a longest common subsequence, the earliest in `b` if several are equally long."""
    # The search starts at the end, so that it gives the number of remaining edits at each position.
    reaches = _search_edits(a[::-1], b[::-1]) or []
    place_a = place_b = 0
    while place_a < len(a) and place_b < len(b):
        if a[place_a] == b[place_b]:
            yield place_a, place_b
            place_a, place_b = place_a + 1, place_b + 1
            continue
        reaches.pop()
        left = len(a) - place_a - 1
        diagonal = left - len(b) + place_b
        # Diagonals omitted by the search count as completely reached.
        if abs(diagonal) < len(reaches) and reaches[-1].get(diagonal, left) >= left:
            place_a += 1
        else:
            place_b += 1


def align(
    a: Sequence[Hashable], b: Sequence[Hashable], *, anchors: Sequence[Pair] = (), max_pairs: int = _MAX_PAIRS
) -> Alignment:
    """Return the common items of two sequences in order, using the earliest pairs.

    In large inputs, items that occur once in each are paired first, and the gaps between them are aligned separately.
    `anchors` are pairs to keep, in ascending order; `max_pairs` limits the number of compared pairs.

    >>> [(part.common, *map(len, (part.a, part.b))) for part in align("abcd", "abxd").parts]
    [(True, 2, 2), (False, 1, 1), (True, 1, 1)]
    """
    aligner = _Aligner(a, b, max_pairs)
    aligner.pairs += anchors
    aligner.align_gaps(_gaps_between(anchors, range(len(a)), range(len(b))))
    return Alignment(tuple(_ranges(_join_pairs(sorted(aligner.pairs)), len(a), len(b))), aligner.loose)


class _Aligner:
    def __init__(self, a: Sequence[Hashable], b: Sequence[Hashable], max_pairs: int) -> None:
        # Items are compared often, and comparing numbers is fast.
        numbers: dict[Hashable, int] = {}
        self._a = [numbers.setdefault(item, len(numbers)) for item in a]
        self._b = [numbers.setdefault(item, len(numbers)) for item in b]
        self._pairs_left = max_pairs
        self.pairs: list[Pair] = []
        self.loose = 0

    def align_gaps(self, gaps: list[tuple[range, range]]) -> None:
        """Align gaps and nested gaps; not recursive, because there may be many anchors."""
        while gaps:
            a, b = gaps.pop()
            head, tail = common_ends(self._a[a.start : a.stop], self._b[b.start : b.stop])
            self.pairs += zip(a[:head], b[:head], strict=True)
            self.pairs += zip(a[len(a) - tail :], b[len(b) - tail :], strict=True)
            gaps += self._align_gap(a[head : len(a) - tail], b[head : len(b) - tail])

    def _align_gap(self, a: range, b: range) -> list[tuple[range, range]]:
        items_b = self._b[b.start : b.stop]
        present = set(items_b)
        shared = [place for place in a if self._a[place] in present]
        if not shared:
            return []
        size = len(a) * len(b)
        if size <= min(_MAX_PAIRS_PER_GAP, self._pairs_left):
            self._pairs_left -= size
            pairs = _earliest_pairs([self._a[place] for place in shared], items_b)
            self.pairs += [(shared[place_a], b[place_b]) for place_a, place_b in pairs]
            return []
        # Searching for anchors also has a limit, because a crafted session could make it expensive.
        self._pairs_left -= len(a) + len(b)
        anchors = _longest_increasing(self._unique_pairs(a, b)) if self._pairs_left > 0 else []
        if not anchors:
            self.loose += len(a) + len(b)
            return []
        self.pairs += anchors
        return _gaps_between(anchors, a, b)

    def _unique_pairs(self, a: range, b: range) -> list[Pair]:
        """Return the positions of items that occur once in each range, in the order of `a`."""
        counts = Counter(self._a[a.start : a.stop])
        counts_b = Counter(self._b[b.start : b.stop])
        places_b = {self._b[place]: place for place in b}
        items = [(place, self._a[place]) for place in a]
        return [(place, places_b[item]) for place, item in items if counts[item] == 1 and counts_b[item] == 1]


def _gaps_between(anchors: Sequence[Pair], a: range, b: range) -> list[tuple[range, range]]:
    """Return the ranges before, between and after some pairs."""
    bounds = [(a.start - 1, b.start - 1), *anchors, (a.stop, b.stop)]
    return [(range(start[0] + 1, end[0]), range(start[1] + 1, end[1])) for start, end in pairwise(bounds)]


def _longest_increasing(pairs: list[Pair]) -> list[Pair]:
    """Return the longest chain of pairs that do not cross, from pairs sorted by first position."""
    ends: list[int] = []
    last_pairs: list[int] = []
    previous: list[int] = []
    for number, (_, place_b) in enumerate(pairs):
        position = bisect_left(ends, place_b)
        previous.append(last_pairs[position - 1] if position else -1)
        ends[position : position + 1] = [place_b]
        last_pairs[position : position + 1] = [number]
    chosen: list[Pair] = []
    number = last_pairs[-1] if last_pairs else -1
    while number >= 0:
        chosen.append(pairs[number])
        number = previous[number]
    return chosen[::-1]


def _join_pairs(pairs: Iterable[Pair]) -> Iterator[_Block]:
    """Yield consecutive runs of pairs as blocks."""
    start_a = start_b = size = 0
    for place_a, place_b in pairs:
        if size and (place_a, place_b) == (start_a + size, start_b + size):
            size += 1
            continue
        if size:
            yield start_a, start_b, size
        start_a, start_b, size = place_a, place_b, 1
    if size:
        yield start_a, start_b, size


def _ranges(blocks: Iterable[_Block], size_a: int, size_b: int) -> list[DiffRange]:
    """Return alternating common and differing ranges from common blocks."""
    ranges: list[DiffRange] = []
    end_a = end_b = 0
    for start_a, start_b, size in (*blocks, (size_a, size_b, 0)):
        if start_a > end_a or start_b > end_b:
            ranges.append(DiffRange(common=False, a=range(end_a, start_a), b=range(end_b, start_b)))
        end_a, end_b = start_a + size, start_b + size
        if size:
            ranges.append(DiffRange(common=True, a=range(start_a, end_a), b=range(start_b, end_b)))
    return ranges


# Readable differences, and hunks


def matching_ranges(a: Sequence[str], b: Sequence[str]) -> list[DiffRange]:
    """Return the ranges of `difflib`: the longest common one, then those on its sides."""
    return _ranges(_longest_blocks(a, b), len(a), len(b))


def _longest_blocks(a: Sequence[str], b: Sequence[str]) -> Sequence[_Block]:
    from difflib import SequenceMatcher

    return SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()


def readable_diff(
    a: Sequence[str], b: Sequence[str], *, max_pairs: float = inf, max_equal_pairs: float = inf
) -> list[DiffRange]:
    """Return a readable difference: common ends, and long common ranges between them.

    If there are more pairs, or equal pairs, than allowed, everything between the ends is one change.
    """
    head, tail = common_ends(a, b)
    middle_a, middle_b = a[head : len(a) - tail], b[head : len(b) - tail]
    blocks: list[_Block] = [(0, 0, head)]
    if len(middle_a) * len(middle_b) <= max_pairs and count_equal_pairs(middle_a, middle_b) <= max_equal_pairs:
        middle = _longest_blocks(middle_a, middle_b)
        blocks += [(start_a + head, start_b + head, size) for start_a, start_b, size in middle]
    return _ranges([*blocks, (len(a) - tail, len(b) - tail, tail)], len(a), len(b))


def count_equal_pairs(a: Sequence[str], b: Sequence[str]) -> int:
    """Return the number of pairs of equal items."""
    counts = Counter(b)
    return sum([count * counts[item] for item, count in Counter(a).items()])


def make_hunks(a: Sequence[str], b: Sequence[str], ranges: Sequence[DiffRange], context: int) -> list[Hunk]:
    """Return the changed lines with context; changes with overlapping context share a hunk."""
    return [
        Hunk(
            group[0].a.start + 1,
            group[0].b.start + 1,
            tuple(sign + line for sign, lines in signed_runs(group, a, b) for line in lines),
        )
        for group in group_changes(ranges, context)
    ]


def group_changes(ranges: Sequence[DiffRange], context: int) -> Iterator[list[DiffRange]]:
    """Yield the ranges of each hunk: nearby changes with context items."""
    group: list[DiffRange] = []
    for number, part in enumerate(ranges):
        if not part.common or (0 < number < len(ranges) - 1 and len(part.a) <= 2 * context):
            group.append(part)
            continue
        if group:
            yield [*group, DiffRange(common=True, a=part.a[:context], b=part.b[:context])]
        start = max(0, len(part.a) - context)
        group = [DiffRange(common=True, a=part.a[start:], b=part.b[start:])]
    if ranges and not ranges[-1].common:
        yield group


def signed_runs(ranges: Iterable[DiffRange], a: Sequence[str], b: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the items of ranges with their sign: a space, `-` or `+`."""
    for part in ranges:
        yield " " if part.common else "-", a[part.a.start : part.a.stop]
        if not part.common:
            yield "+", b[part.b.start : part.b.stop]


def numbered_changes(lines: Iterable[str], old: int, new: int) -> Iterator[tuple[int, str, str]]:
    """Yield number, sign and text of the changed lines of a hunk, with one line of context."""
    text_lines = [line for line in lines if not line.startswith("\\")]
    changed = {place for place, line in enumerate(text_lines) if line[:1] in {"+", "-"}}
    for place, line in enumerate(text_lines):
        sign = line[:1]
        if sign == "-":
            yield old, sign, line[1:]
        elif not changed.isdisjoint((place - 1, place, place + 1)):
            yield new, sign if sign == "+" else " ", line[1:]
        old += sign != "+"
        new += sign != "-"
