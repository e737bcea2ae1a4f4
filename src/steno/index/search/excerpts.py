"""Words → the stretch around what was found, and where in it, to the letter.

The text is cut just as the index cuts it, and the match is looked for again: what does not have it
any more gives no excerpt.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from steno.index.search.finder import Wanted
from steno.index.search.reader import Text
from steno.index.search.scope import Scope
from steno.index.search.terms import Span, Token, spans_in
from steno.index.words import Part

__all__ = ["Excerpt", "excerpt_of", "stretch"]

LONG: Final = 240
"""About so many letters an excerpt has."""
_BEFORE: Final = 48
_NEAR: Final = 120
_SNAP: Final = 24


class Excerpt(msgspec.Struct):
    """A stretch of a text."""

    part: Part
    text: str
    """The stretch, just as it stands in the part."""
    start: int
    """Where in the part it begins."""
    marks: list[Span]
    """What was found, by letters of `text`."""
    begins: bool
    """Whether nothing stands before it."""
    ends: bool


class _Looked(msgspec.Struct):
    part: Part
    found: list[list[Span]]


def excerpt_of(
    text: Text,
    wanted: Wanted,
    scope: Scope,
    cut: Callable[[str], list[Token]],
    pattern: Callable[[str], Sequence[Span]] | None = None,
) -> Excerpt | None:
    """Return the stretch of a message that shows best why it was found; None if it was not.

    `pattern` finds what else must be there.
    """
    parts = [part for part in text.parts if scope.fits(part)]
    looked = [_look(part, wanted, cut, pattern) for part in parts]
    needed = len(wanted.groups) + (pattern is not None)
    if not looked or not all(any(each.found[at] for each in looked) for at in range(needed)):
        return None
    best = max(looked, key=_worth)
    return stretch(best.part, best.found)


def _look(
    part: Part,
    wanted: Wanted,
    cut: Callable[[str], list[Token]],
    pattern: Callable[[str], Sequence[Span]] | None,
) -> _Looked:
    found: list[list[Span]] = []
    if wanted.groups:
        tokens = cut(part.text)
        found = [spans_in(forms, tokens) for forms in wanted.groups]
    if pattern is not None:
        found.append(list(pattern(part.text)))
    return _Looked(part, found)


def _worth(looked: _Looked) -> int:
    return sum(bool(spans) for spans in looked.found)


def stretch(part: Part, found: list[list[Span]]) -> Excerpt:
    """Return the stretch of a text where most of what was looked for stands together."""
    spans = sorted((span, number) for number, spans in enumerate(found) for span in spans)
    start = _beginning(spans)
    text = part.text
    first = _snapped(text, max(0, start - _BEFORE), start)
    last = min(len(text), first + LONG)
    marks = [(at - first, min(end, last) - first) for (at, end), _ in spans if first <= at < last]
    return Excerpt(part, text[first:last], first, _merged(marks), first == 0, last == len(text))


def _beginning(spans: list[tuple[Span, int]]) -> int:
    """Return where the first of those matches begins that stand together best.

    What is rare in the text says more than what is everywhere.
    """
    weights = {number: 1 / count for number, count in Counter(n for _, n in spans).items()}
    best, most = 0, 0.0
    for place, ((start, _), _) in enumerate(spans):
        near: set[int] = set()
        for (at, _), number in spans[place:]:
            if at > start + _NEAR:
                break
            near.add(number)
        worth = len(near) + sum(weights[number] for number in near)
        if worth > most:
            best, most = start, worth
    return best


def _snapped(text: str, at: int, start: int) -> int:
    """Return where the line of a match begins, else a word shortly before it."""
    line = text.rfind("\n", at, start)
    if line >= 0:
        return line + 1
    space = text.find(" ", at, min(at + _SNAP, start))
    return space + 1 if at and space >= 0 else at


def _merged(marks: list[Span]) -> list[Span]:
    """Return the marks without overlaps."""
    merged: list[Span] = []
    for start, end in marks:
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
