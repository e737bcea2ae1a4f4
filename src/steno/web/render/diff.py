"""Two texts, or a recorded patch → the rows of a diff, with the changed words marked."""

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Final

import msgspec
from markupsafe import Markup

from steno.safe.html import words
from steno.web.render.code import lines_of

__all__ = ["Hunk", "Row", "between", "diff_table", "rows_of"]

_WORDS: Final = re.compile(r"\w+|\s+|.")
_LONG_LINE: Final = 2_000
_NOTHING: Final = Markup("")
_MOST: Final = 4_000
"""Rows; a diff that is longer is cut, and says so."""


class Hunk(msgspec.Struct, frozen=True):
    """A stretch of a diff: where it begins in the old and in the new text, and its lines."""

    old: int
    new: int
    lines: tuple[str, ...]
    """Each with its sign: a space, `-` or `+`."""


class Row(msgspec.Struct, frozen=True):
    """One row."""

    sign: str
    old: int | None = None
    new: int | None = None
    text: Markup = _NOTHING


def between(old: str, new: str, *, context: int = 3, start: int = 1) -> list[Hunk]:
    """Return what changed from one text to another; line numbers count from `start`."""
    before, after = old.split("\n"), new.split("\n")
    hunks: list[Hunk] = []
    for group in SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(context):
        lines: list[str] = []
        for tag, a, b, c, d in group:
            if tag == "equal":
                lines += [f" {line}" for line in before[a:b]]
                continue
            lines += [f"-{line}" for line in before[a:b]]
            lines += [f"+{line}" for line in after[c:d]]
        hunks.append(Hunk(group[0][1] + start, group[0][3] + start, tuple(lines)))
    return hunks


def rows_of(hunks: Sequence[Hunk], language: str = "") -> Iterator[Row]:
    """Yield the rows of a diff; between two stretches stands one with the sign `…`."""
    for place, hunk in enumerate(hunks):
        if place:
            yield Row("…")
        yield from _numbered(hunk, language)


def _numbered(hunk: Hunk, language: str) -> Iterator[Row]:
    old, new = hunk.old, hunk.new
    shown = _painted(hunk.lines, language)
    for line, text in zip(hunk.lines, shown, strict=True):
        sign = line[:1]
        if sign == "-":
            yield Row("-", old=old, text=text)
            old += 1
        elif sign == "+":
            yield Row("+", new=new, text=text)
            new += 1
        else:
            yield Row(" ", old, new, text)
            old, new = old + 1, new + 1


def _painted(lines: Sequence[str], language: str) -> list[Markup]:
    """Return the texts of some lines: the code in colour, a line that became another with marks."""
    shown = lines_of("\n".join(line[1:] for line in lines), language)
    if len(shown) != len(lines):
        shown = [words(line[1:]) for line in lines]
    for removed, added in _changes(lines):
        for a, b in zip_longest(removed, added):
            if a is not None and b is not None:
                shown[a], shown[b] = _marked(lines[a][1:], lines[b][1:])
    return shown


def _changes(lines: Sequence[str]) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the places of lines that were taken out and of those that came in their stead."""
    removed: list[int] = []
    added: list[int] = []
    for place, line in enumerate([*lines, " "]):
        sign = line[:1]
        if sign == "+" and removed:
            added.append(place)
            continue
        if removed and added and len(removed) == len(added):
            yield removed, added
        if sign != "-" or added:
            removed, added = [], []
        if sign == "-":
            removed.append(place)


def _marked(old: str, new: str) -> tuple[Markup, Markup]:
    if max(len(old), len(new)) > _LONG_LINE:
        return words(old), words(new)
    a, b = _WORDS.findall(old), _WORDS.findall(new)
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    left: list[Markup] = []
    right: list[Markup] = []
    for tag, i, j, k, m in matcher.get_opcodes():
        left.append(_words(a[i:j], marked=tag != "equal"))
        right.append(_words(b[k:m], marked=tag != "equal"))
    return Markup("").join(left), Markup("").join(right)


def _words(parts: Iterable[str], *, marked: bool) -> Markup:
    text = "".join(parts)
    if not marked or not text:
        return words(text)
    return Markup("<b>{}</b>").format(words(text))


def diff_table(hunks: Sequence[Hunk], language: str = "") -> Markup:
    """Return a diff as a table."""
    from steno.web.paint import part

    rows: list[Row] = []
    for row in rows_of(hunks, language):
        if len(rows) == _MOST:
            break
        rows.append(row)
    whole = sum(len(hunk.lines) for hunk in hunks)
    return Markup(part("diff.html.j2", rows=rows, cut=max(0, whole - _MOST)))
