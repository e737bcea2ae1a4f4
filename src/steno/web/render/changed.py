"""Which lines of a diff became which, and the words that changed in them."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final

from steno.safe.html import escaped_text

__all__ = ["Marker"]

_WORDS: Final = re.compile(r"\w+|\s+|.", re.DOTALL)
_BLOCK: Final = re.compile(r"-[-\\]*+(\+[+\\]*+)?")
"""The signs of lines that went and of those that came; remarks stand among them."""
_LONG_LINE: Final = 600
"""Letters."""
_MOST_WORDS: Final = 200
_MOST_PAIRS: Final = 4_000
"""Pairs of equal words in two lines."""
_NEAR: Final = 6
"""How many lines may stand for each other where more came than went, or fewer."""
_ALIKE: Final = 0.4
"""How much two lines have in common if one became the other."""


class Marker:
    """Marks what changed inside of lines, as long as there is patience."""

    def __init__(self, patience: int = 400) -> None:
        self._patience = patience
        """How many pairs of lines are still compared."""

    def pairs(self, lines: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Yield the places of lines that were taken out, and of those that came in their stead."""
        for removed, added in _blocks(lines):
            if len(removed) == len(added):
                yield from zip(removed, added, strict=True)
            elif max(len(removed), len(added)) <= _NEAR:
                yield from self._nearest(lines, removed, added)

    def _nearest(
        self, lines: Sequence[str], removed: Sequence[int], added: Sequence[int]
    ) -> Iterator[tuple[int, int]]:
        """Pair each line with the one that is most like it; their order stays."""
        words = {at: Counter(_WORDS.findall(lines[at][1:_LONG_LINE])) for at in (*removed, *added)}
        free = list(added)
        for a in removed:
            alike = [_likeness(words[a], words[b]) for b in free]
            best = max(alike, default=0)
            if best >= _ALIKE:
                place = alike.index(best)
                yield a, free[place]
                free = free[place + 1 :]

    def marked(self, old: str, new: str) -> tuple[str, str] | None:
        """Return both lines with the words that changed; None where they have nothing in common."""
        if self._patience <= 0 or max(len(old), len(new)) > _LONG_LINE:
            return None
        self._patience -= 1
        a, b = _WORDS.findall(old), _WORDS.findall(new)
        if max(len(a), len(b)) > _MOST_WORDS or _equal_pairs(a, b) > _MOST_PAIRS:
            return None
        matcher = SequenceMatcher(None, a, b, autojunk=False)
        if matcher.ratio() < _ALIKE:
            return None
        left: list[str] = []
        right: list[str] = []
        for tag, i, j, k, m in matcher.get_opcodes():
            left.append(_words(a[i:j], marked=tag != "equal"))
            right.append(_words(b[k:m], marked=tag != "equal"))
        return "".join(left), "".join(right)


def _blocks(lines: Sequence[str]) -> Iterator[tuple[list[int], list[int]]]:
    """Yield what was taken out and what was put in at one place."""
    signs = "".join([line[:1] or " " for line in lines])
    for found in _BLOCK.finditer(signs):
        if found[1]:
            places = range(*found.span())
            removed = [place for place in places if signs[place] == "-"]
            yield removed, [place for place in places if signs[place] == "+"]


def _equal_pairs(a: Sequence[str], b: Sequence[str]) -> int:
    """Return how many pairs of equal words there are at most; counted where that is needed."""
    if len(a) * len(b) <= _MOST_PAIRS:
        return len(a) * len(b)
    there = Counter(b)
    return sum([count * there[word] for word, count in Counter(a).items()])


def _likeness(a: Counter[str], b: Counter[str]) -> float:
    """Return, cheaply, how much two lines have in common by their words: 0 to 1."""
    both = sum([min(count, b[word]) for word, count in a.items() if word in b])
    return 2 * both / max(1, a.total() + b.total())


def _words(parts: Iterable[str], *, marked: bool) -> str:
    text = escaped_text("".join(parts))
    return f"<b>{text}</b>" if marked and text else text
