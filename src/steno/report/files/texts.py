"""Texts that change: edits and recorded patches carried out, texts compared, lines known in part."""

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final, Self

import msgspec

from steno.report.files.values import Piece

__all__ = [
    "Change",
    "Hunk",
    "Lines",
    "changed_lines",
    "fits",
    "normal",
    "patched",
    "replaced",
    "same",
]

_NO_NEWLINE: Final = "\\"
_MOST: Final = 4_000_000
"""So many pairs of lines are compared to tell what changed; with more it is only estimated."""
_TAB: Final = "  "


class Change(msgspec.Struct, frozen=True):
    """Words that take the place of others."""

    old: str
    new: str
    every: bool = False


class Hunk(msgspec.Struct, frozen=True):
    """A stretch of a recorded patch; lines bear their sign."""

    old: int
    olds: int
    new: int
    news: int
    lines: tuple[str, ...]

    def side(self, sign: str) -> list[str]:
        """Return the lines of one side: `-` for before, `+` for after."""
        return [line[1:] for line in self.lines if line[:1] in (" ", sign)]

    def ends_bare(self, sign: str) -> bool:
        """Whether one side ends in a line without a newline."""
        before = ""
        for line in self.lines:
            if line.startswith(_NO_NEWLINE) and before in (" ", sign):
                return True
            before = line[:1]
        return False


def normal(text: str) -> str:
    """Return a text with the line endings that clients keep."""
    return text.replace("\r\n", "\n") if "\r" in text else text


def same(one: str, other: str) -> bool:
    """Whether two texts are the same but for their line endings."""
    return one == other or normal(one) == normal(other)


def replaced(text: str, change: Change) -> Iterator[str]:
    """Yield what an edit may have made of a text, the likeliest first; nothing if it does not fit.

    A client that takes lines out takes the newline behind them out, too.
    """
    old, new = change.old, change.new
    if not old:
        # So a file is made, or an empty one filled.
        if not text.strip():
            yield new
        return
    if old not in text:
        return
    times = -1 if change.every else 1
    if not new and not old.endswith("\n") and f"{old}\n" in text:
        yield text.replace(f"{old}\n", new, times)
    yield text.replace(old, new, times)


def patched(text: str, hunks: Sequence[Hunk]) -> str | None:
    """Return a text with a recorded patch carried out; None where the patch is of another text.

    Some clients note patches with tabs made spaces: these fit, and what they add is not believed.
    """
    before = text.split("\n")
    after: list[str] = []
    done = 0
    for hunk in hunks:
        old = hunk.side("-")
        start = hunk.old - 1 if hunk.olds else hunk.old
        if start < done or before[start : start + len(old)] != old:
            return None
        after += before[done:start]
        after += hunk.side("+")
        done = start + len(old)
        if done == len(before) and not hunk.ends_bare("+") and hunk.ends_bare("-"):
            after.append("")
        if hunk.ends_bare("+") and before[done:] == [""]:
            done += 1
    return "\n".join(after + before[done:])


def fits(hunks: Sequence[Hunk], before: str, after: str) -> bool:
    """Whether a recorded patch may be what lies between two texts."""
    if not hunks:
        return True
    made = patched(before, hunks)
    if made is not None:
        # A patch that marks no line as the last one without a newline does not say how it ends.
        marked = any(hunk.ends_bare("+") or hunk.ends_bare("-") for hunk in hunks)
        same = made.removesuffix("\n") == after.removesuffix("\n")
        return made == after or (same and not marked)
    made = patched(_expanded(before), [_spaced(hunk) for hunk in hunks])
    return made is not None and made == _expanded(after)


def _expanded(text: str) -> str:
    """Return a text with the tabs that begin its lines made spaces, as some patches have it."""
    if "\t" not in text:
        return text
    return "\n".join(_untabbed(line) for line in text.split("\n"))


def _untabbed(line: str) -> str:
    bare = line.lstrip("\t")
    return _TAB * (len(line) - len(bare)) + bare


def _spaced(hunk: Hunk) -> Hunk:
    lines = tuple(line[:1] + _untabbed(line[1:]) for line in hunk.lines)
    return Hunk(hunk.old, hunk.olds, hunk.new, hunk.news, lines)


def changed_lines(before: str, after: str) -> tuple[int, int]:
    """Return how many lines came and how many went."""
    old, new = normal(before).split("\n"), normal(after).split("\n")
    if old and not old[-1]:
        old.pop()
    if new and not new[-1]:
        new.pop()
    head = 0
    most = min(len(old), len(new))
    while head < most and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < most - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    old, new = old[head : len(old) - tail], new[head : len(new) - tail]
    if not old or not new or len(old) * len(new) > _MOST:
        return len(new), len(old)
    kept = sum(
        block.size
        for block in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    )
    return len(new) - kept, len(old) - kept


class Lines:
    """A text of which only some lines are known. The last of a text that ends in a newline is empty."""

    def __init__(self, total: int | None = None) -> None:
        self.total = total
        self._known: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._known)

    def copy(self) -> Self:
        """Return the same again."""
        made = type(self)(self.total)
        for piece in self.pieces():
            made.put(piece.start, piece.lines)
        return made

    def put(self, start: int, lines: Iterable[str]) -> None:
        """Take in some lines."""
        for number, line in enumerate(lines, start):
            self._known[number] = line

    def agrees(self, start: int, lines: Iterable[str], total: int | None = None) -> bool:
        """Whether some lines may be of the same text."""
        if total is not None and self.total is not None and total != self.total:
            return False
        known = self._known
        return all(known.get(number, line) == line for number, line in enumerate(lines, start))

    def fit(self, text: str) -> bool:
        """Whether a text may be this one."""
        lines = normal(text).split("\n")
        return self.agrees(1, lines) and all(number <= len(lines) for number in self._known)

    @property
    def text(self) -> str | None:
        """The whole, if every line of it is known."""
        if self.total is None or len(self._known) < self.total:
            return None
        wanted = range(1, self.total + 1)
        if not all(number in self._known for number in wanted):
            return None
        return "\n".join(self._known[number] for number in wanted)

    def patch(self, hunks: Sequence[Hunk]) -> bool:
        """Carry out a recorded patch; False where it is of another text, which is then forgotten."""
        for hunk in hunks:
            if not self.agrees(hunk.old, hunk.side("-")):
                self._known = {}
                self.total = None
                break
        fit = bool(self._known)
        shift = 0
        for hunk in hunks:
            old, new = len(hunk.side("-")), hunk.side("+")
            start = (hunk.old if hunk.olds else hunk.old + 1) + shift
            grown = len(new) - old
            self._known = {
                (number if number < start else number + grown): line
                for number, line in self._known.items()
                if not start <= number < start + old
            }
            self.put(start, new)
            shift += grown
        if self.total is not None:
            self.total += shift
        return fit

    def pieces(self) -> tuple[Piece, ...]:
        """Return what is known, in stretches."""
        made: list[Piece] = []
        stretch: list[str] = []
        first = 0
        for number in sorted(self._known):
            if stretch and number != first + len(stretch):
                made.append(Piece(first, tuple(stretch)))
                stretch = []
            if not stretch:
                first = number
            stretch.append(self._known[number])
        if stretch:
            made.append(Piece(first, tuple(stretch)))
        return tuple(made)
