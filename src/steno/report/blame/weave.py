"""Versions of a file → which of them put each line of a text there.

The lines of the file are carried from version to version: what stays the same keeps its mark, what
is new gets the mark of the version that has it. A version from outside that is an earlier text
again gives that text its marks back.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from steno.index.changes import shared_ends
from steno.report.compare.align import align
from steno.report.files.texts import normal
from steno.report.files.values import Version

__all__ = ["BEFORE", "NOBODY", "Woven", "common", "lines_of", "weave"]

NOBODY: Final = -1
"""The mark of a line that came after all versions."""
BEFORE: Final = -2
"""The mark of a line that was there when the file was first seen."""
_BOM: Final = "\ufeff"


class Woven(msgspec.Struct, frozen=True):
    """A mark for each line: the place of a version, `NOBODY` or `BEFORE`."""

    marks: tuple[int, ...]
    doubts: int
    """How many touches may have changed the file in a way that nobody knows."""


def lines_of(text: str) -> list[str]:
    r"""Return the lines of a text; the newline at its end begins no line.

    >>> lines_of("a\r\nb\n"), lines_of("")
    (['a', 'b'], [])
    """
    lines = normal(text).removeprefix(_BOM).split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def common(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return the places of the lines that two texts share, in rising order."""
    head, tail = shared_ends(old, new)
    pairs = [(at, at) for at in range(head)]
    inner = align(old[head : len(old) - tail], new[head : len(new) - tail])
    for part in inner.parts:
        if part.common:
            both = zip(part.a, part.b, strict=True)
            pairs += [(one + head, other + head) for one, other in both]
    ends = len(old) - tail, len(new) - tail
    return pairs + [(ends[0] + at, ends[1] + at) for at in range(tail)]


def weave(versions: Sequence[Version], now: str) -> Woven:
    """Return who put each line of a text there, by the versions of its file, oldest first."""
    text = normal(now)
    last = next(
        (each.name for each in reversed(versions) if each.text and normal(each.text) == text), ""
    )
    wanted = {each.back for each in versions if each.back} | {last}
    loom = _Loom(wanted)
    for place, version in enumerate(versions):
        loom.take(place, version)
    if last and last in loom.kept:
        return Woven(tuple(loom.kept[last][1]), loom.doubts)
    loom.carry(lines_of(now), NOBODY)
    return Woven(tuple(loom.marks), loom.doubts)


class _Loom:
    """The lines of the file at one time, each with its mark."""

    def __init__(self, wanted: set[str]) -> None:
        self.kept: dict[str, tuple[list[str], list[int]]] = {}
        self.marks: list[int] = []
        self.doubts = 0
        self._wanted = wanted
        self._lines: list[str] | None = None
        self._loose: dict[str, int] = {}
        """Lines that were put in where nobody knows the whole file, and by which version."""

    def take(self, place: int, version: Version) -> None:
        """Go on to the next version."""
        if version.settled:
            return
        if version.text is None:
            self.doubts += version.changes
            self._loose |= {line: place for line in version.wrote if line.strip()}
            return
        if version.back in self.kept:
            self._lines, self.marks = self.kept[version.back]
        elif version.verb in ("write", "edit"):
            self._changed(place, version, version.text)
        else:
            self.carry(lines_of(version.text), BEFORE if self._lines is None else place)
        if version.name in self._wanted and self._lines is not None:
            self.kept[version.name] = (self._lines, self.marks)

    def _changed(self, place: int, version: Version, text: str) -> None:
        if version.before is not None:
            # What a change found and no version had is of nobody.
            found = lines_of(version.before)
            self.carry(found, BEFORE if self._lines is None else NOBODY)
        elif self._lines is None and version.verb == "edit":
            self.carry(lines_of(text), BEFORE)
        self.carry(lines_of(text), place)

    def carry(self, lines: list[str], mark: int) -> None:
        """Take on another text: what is new in it gets a mark."""
        old = self._lines
        if old is not None and old == lines:
            return
        marks = [mark] * len(lines)
        for one, other in common(old or (), lines):
            marks[other] = self.marks[one]
        if self._loose:
            self._claim(lines, marks, mark)
        self._lines, self.marks = lines, marks

    def _claim(self, lines: list[str], marks: list[int], mark: int) -> None:
        """Give lines that nobody is known to have put in to the edit that told of them."""
        for at, line in enumerate(lines):
            if marks[at] == mark and line in self._loose:
                marks[at] = self._loose[line]
        self._loose = {}
