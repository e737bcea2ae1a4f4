"""An excerpt on a few lines of a screen, with what was found marked."""

import re
from collections.abc import Iterator
from typing import Final

from steno.index.search.excerpts import Excerpt
from steno.safe.terminal import Line, clean, width

__all__ = ["marked_lines"]

_SPACES: Final = re.compile(r"\s+")
_MARK: Final = "bold yellow"
_ELLIPSIS: Final = "…"


def marked_lines(excerpt: Excerpt, columns: int, rows: int, before: str = "") -> Iterator[Line]:
    """Yield an excerpt on at most so many lines; what acts on a terminal is made visible."""
    text, flags = _flat(excerpt, before)
    columns = max(columns, 8)
    at = 0
    for row in range(rows):
        if at >= len(text):
            break
        last = row == rows - 1
        end = _end(text, at, columns - last)
        cut = last and (end < len(text) or not excerpt.ends)
        yield _line(text, flags, at, end, _ELLIPSIS if cut else "")
        at = end
        while at < len(text) and text[at] == " ":
            at += 1


def _flat(excerpt: Excerpt, before: str) -> tuple[str, list[bool]]:
    """Return the text on one line, safe, and of each letter whether it is marked."""
    text = before or ("" if excerpt.begins else _ELLIPSIS)
    flags = [False] * len(text)
    at = 0
    for start, end in [*excerpt.marks, (len(excerpt.text), len(excerpt.text))]:
        for piece, flag in ((excerpt.text[at:start], False), (excerpt.text[start:end], True)):
            shown = clean(_SPACES.sub(" ", piece))
            if shown.startswith(" ") and (not text or text.endswith(" ")):
                shown = shown[1:]
            text += shown
            flags += [flag] * len(shown)
        at = end
    return text, flags


def _end(text: str, at: int, columns: int) -> int:
    """Return where a line of so many columns ends: between words, if there are any."""
    end = min(len(text), at + columns)
    while end > at + 1 and width(text[at:end]) > columns:
        end -= 1
    if end < len(text) and text[end] != " ":
        space = text.rfind(" ", at, end)
        if space > at + columns // 2:
            return space
    return end


def _line(text: str, flags: list[bool], at: int, end: int, behind: str) -> Line:
    line: Line = []
    start = at
    for place in range(at, end + 1):
        if place == end or flags[place] != flags[start]:
            if place > start:
                piece = text[start:place]
                line.append((piece, _MARK) if flags[start] else piece)
            start = place
    return [*line, behind] if behind else line
