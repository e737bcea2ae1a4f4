"""Markdown as it comes in: what cannot change any more is given out once, the rest is shown live.

A text settles block by block. A long block settles from its top as it outgrows the room there is,
but for a table, whose columns may still move; of code, each line settles alone.
"""

import re
from collections.abc import Callable
from typing import Final, TypeAlias

from steno.console.markdown import parser
from steno.safe.terminal import Line

__all__ = ["Growing", "Render"]

Render: TypeAlias = Callable[[str], list[Line]]
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")


class Growing:
    """One text that grows."""

    def __init__(self, render: Render) -> None:
        self._render = render
        self._tail = ""
        """What has not settled."""
        self._given = 0
        """How many lines of it were given out all the same."""
        self._began = False
        self._shown: tuple[str, list[Line]] = ("", [])

    def grow(self, text: str) -> None:
        """Take more of it."""
        self._tail += text

    def settled(self, room: int) -> list[Line]:
        """Return the lines that are settled by now and were not given out before."""
        given: list[Line] = []
        cut, kind, goes_on = _last_block(self._tail)
        if cut:
            given += self._give(self._tail[:cut])
            self._tail = self._tail[cut:]
            # The items of a list stand together.
            self._began = not goes_on
        if kind == "fence":
            given += self._code(room)
        elif kind != "table_open":
            lines = self._lines()
            over = len(lines) - max(room, 1)
            if over > self._given:
                given += self._apart(lines[self._given : over])
                self._given = over
        return given

    def tail(self, room: int) -> list[Line]:
        """Return the last lines of what has not settled."""
        return self._lines()[self._given :][-room:] if room > 0 else []

    @property
    def between(self) -> bool:
        """Whether what has not settled stands apart from what was given out last."""
        return self._began and not self._given

    def finished(self) -> list[Line]:
        """Return what is left: nothing more will come."""
        given = self._give(self._tail)
        self._tail = ""
        return given

    def _give(self, text: str) -> list[Line]:
        lines = (self._lines() if text == self._tail else self._render(text))[self._given :]
        fresh = not self._given
        self._given = 0
        return self._apart(lines, fresh=fresh) if lines else []

    def _apart(self, lines: list[Line], *, fresh: bool | None = None) -> list[Line]:
        """Return lines with an empty one before them where another block was given out before."""
        first = self._given == 0 if fresh is None else fresh
        began, self._began = self._began, True
        return [[], *lines] if began and first else lines

    def _lines(self) -> list[Line]:
        if self._shown[0] != self._tail:
            self._shown = (self._tail, self._render(self._tail))
        return self._shown[1]

    def _code(self, room: int) -> list[Line]:
        """Give out the lines of code that have no more room, and leave the rest as code."""
        opening, _, body = self._tail.partition("\n")
        lines = body.split("\n")
        cut = len(lines) - 1 - room
        while cut > 0 and not lines[cut - 1].strip():
            cut -= 1
        if cut <= 0 or _is_closed(opening, lines):
            return []
        fence = _FENCE.match(opening)
        closing = fence[1] if fence else "```"
        chunk = "\n".join((opening, *lines[:cut], closing))
        given = self._apart(self._render(chunk), fresh=not self._given)
        left = lines[cut:]
        if left and not left[0].strip():
            given.append([])
        self._tail = "\n".join((opening, *left))
        # From now on what comes belongs to a block that has begun.
        self._given = 0
        self._began = False
        return given


def _is_closed(opening: str, lines: list[str]) -> bool:
    fence = _FENCE.match(opening)
    return fence is not None and any(
        line.strip().startswith(fence[1]) and not line.strip().strip(fence[1][0]) for line in lines
    )


def _last_block(text: str) -> tuple[int, str, bool]:
    """Return where the last block of a text begins, its kind, and whether it is part of a list."""
    if "\n" not in text:
        return 0, "fence" if _FENCE.match(text) else "", False
    tokens = [token for token in parser().parse(text) if token.map and token.level <= 1]
    blocks = [token for token in tokens if token.level == 0]
    if not blocks:
        return 0, "", False
    last = blocks[-1]
    start = first = last.map[0] if last.map else 0
    if last.type in ("bullet_list_open", "ordered_list_open"):
        items = [token.map[0] for token in tokens if token.type == "list_item_open" and token.map]
        start = max(items, default=first)
    at = 0
    for _ in range(start):
        at = text.index("\n", at) + 1
    return at, last.type, start > first
