"""What a program printed → HTML: its colours as classes, every other control made visible.

A program may print over what it printed: progress bars go back to the start of a line, or some
lines up. What is shown is what stood there in the end, as on a screen; the record has the rest.
"""

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Final

import msgspec

from steno.safe.html import Html, escaped_text
from steno.web.render.pen import Pen

__all__ = ["Screen", "ansi", "screen"]

_COLOURS: Final = re.compile(r"\x1b\[([0-9;:]*)m")
_MOVES: Final = re.compile(r"\r(?!\n)|\x08|\x1b\[[0-9;]*[A-GJK]|\x1b\[\?[0-9;]*[hl]|\x1b\]8;")
"""What makes the cheap way wrong."""
_PIECES: Final = re.compile(
    r"\x1b\[(?P<colours>[0-9;:]*)m"
    r"|\x1b\[(?P<count>[0-9;]*)(?P<move>[A-GJK])"
    r"|(?P<quiet>\x1b\[\?[0-9;]{0,20}[hl])"
    r"|\x1b\]8;[^;\x07\x1b]{0,400};(?P<link>[^\x07\x1b]{0,4000})(?:\x07|\x1b\\)"
    r"|(?P<return>\r+)(?P<newline>\n?)"
    r"|(?P<line>\n)"
    r"|(?P<back>\x08+)"
    r"|(?P<text>[^\x1b\r\n\x08]+|\x1b)"
)
_LONGEST: Final = 500_000
"""Letters; in what is longer, moves are shown as they are."""
_WIDEST: Final = 4_000
"""Columns; a move goes no farther."""


class Screen(msgspec.Struct, frozen=True):
    """What stood there in the end, and how many lines were printed over."""

    html: Html
    rewritten: int = 0


class _Paper:
    """Rows of letters with their classes, and a place in them."""

    def __init__(self) -> None:
        self.rows: list[list[tuple[str, str]]] = [[]]
        self.row = 0
        self.column = 0
        self.rewritten: set[int] = set()

    def write(self, text: str, classes: str) -> None:
        """Put a text where we are, over what is there."""
        row = self.rows[self.row]
        if self.column > len(row):
            row += [(" ", "")] * (self.column - len(row))
        end = self.column + len(text)
        if self.column < len(row):
            self.rewritten.add(self.row)
        row[self.column : end] = [(letter, classes) for letter in text]
        self.column = end

    def next_line(self) -> None:
        """Go to the start of the next line."""
        self.row += 1
        self.column = 0
        if self.row == len(self.rows):
            self.rows.append([])

    def step(self, found: re.Match[str]) -> None:
        """Follow a line end, or go back in the line."""
        if found["back"]:
            self.column = max(0, self.column - len(found["back"]))
        elif found["line"] or found["newline"]:
            self.next_line()
        elif found["return"]:
            self.column = 0

    def go(self, move: str, count: str) -> None:
        """Follow a move of the cursor, or clear something."""
        first = count.partition(";")[0][:6]
        by = max(1, int(first or 1))
        match move:
            case "A" | "F":
                self.row = max(0, self.row - by)
            case "B" | "E":
                self.row = min(len(self.rows) - 1, self.row + by)
            case "C":
                self.column = min(_WIDEST, self.column + by)
            case "D":
                self.column = max(0, self.column - by)
            case "G":
                self.column = min(_WIDEST, by) - 1
            case _:
                self._clear(move, first)
        if move in "EF":
            self.column = 0

    def _clear(self, what: str, how: str) -> None:
        """Clear a line, or everything from here on; a whole screen stays, it is all there is."""
        row = self.rows[self.row]
        if what == "K" and how in ("", "0"):
            self._drop(slice(self.column, None))
        elif what == "K" and how == "2":
            self._drop(slice(0, None))
        elif what == "K":
            row[: self.column] = [(" ", "")] * min(self.column, len(row))
        elif how in ("", "0") and self.row < len(self.rows) - 1:
            self.rewritten.update(range(self.row, len(self.rows) - 1))
            self._drop(slice(self.column, None))
            del self.rows[self.row + 1 :]

    def _drop(self, which: slice) -> None:
        row = self.rows[self.row]
        if row[which]:
            self.rewritten.add(self.row)
        del row[which]


def ansi(text: str) -> Html:
    r"""Return what was printed.

    >>> ansi("\x1b[31;1mno\x1b[0m \x1b]0;title")
    '<span class="x-bold x-red">no</span> ␛]0;title'
    >>> ansi("10%\r50%\r100%\nready")
    '100%\nready'
    """
    return screen(text).html


def screen(text: str) -> Screen:
    """Return what stood on the screen in the end."""
    if not ("\x1b" in text or "\r" in text or "\x08" in text):
        # Every colour and every move begins with one of these.
        return Screen(Html(escaped_text(text)))
    if not _MOVES.search(text) or len(text) > _LONGEST:
        return Screen(Html("".join(_straight(text))))
    paper = _followed(text)
    rows = [_row(cells) for cells in paper.rows]
    return Screen(Html("\n".join(rows)), len(paper.rewritten))


def _straight(text: str) -> Iterator[str]:
    """Yield what was printed by a program that only goes on."""
    pen = Pen()
    end = 0
    for found in _COLOURS.finditer(text):
        yield _painted(text[end : found.start()], pen.classes)
        pen.take(found[1])
        end = found.end()
    yield _painted(text[end:], pen.classes)


def _followed(text: str) -> _Paper:
    pen, paper, link = Pen(), _Paper(), ""
    for found in _PIECES.finditer(text):
        kind = found.lastgroup
        if kind == "text":
            paper.write(found["text"], pen.classes)
        elif kind == "colours":
            pen.take(found["colours"])
        elif kind == "move":
            paper.go(found["move"], found["count"])
        elif kind == "link":
            if link and not found["link"]:
                # Where a link leads must be seen; its words may say something else.
                paper.write(f" <{link}>", "x-faint")
            link = found["link"]
        else:
            paper.step(found)
    return paper


def _row(cells: list[tuple[str, str]]) -> str:
    return "".join(
        _painted("".join(letter for letter, _ in same), classes)
        for classes, same in groupby(cells, key=_classes)
    )


def _classes(cell: tuple[str, str]) -> str:
    return cell[1]


def _painted(text: str, classes: str) -> str:
    shown = escaped_text(text)
    return f'<span class="{classes}">{shown}</span>' if text and classes else shown
