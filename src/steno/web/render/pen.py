"""The colours and styles a program asks for → names for the stylesheet.

The page has eight inks of its own, readable on its own ground. Finer colours become the nearest of
them; backgrounds are left out, because nobody can know what stands out on them.
"""

import re
from collections.abc import Sequence
from typing import Final

__all__ = ["Pen"]

_NAMES: Final = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_STYLES: Final = {1: "bold", 2: "faint", 3: "italic", 4: "under", 7: "inverse", 9: "strike"}
_OFF: Final = {
    22: ("bold", "faint"),
    23: ("italic",),
    24: ("under",),
    27: ("inverse",),
    29: ("strike",),
}
_FINE: Final = (38, 48, 58)
"""Foreground, background and underline in more than eight colours."""
_FOREGROUND: Final = 38
_INDEXED: Final = 5
_DIRECT: Final = 2
_PLAIN: Final = range(30, 38)
_BRIGHT: Final = range(90, 98)
_DEFAULT: Final = 39
_CUBE: Final = range(16, 232)
_GREYS: Final = range(232, 256)
_GREY: Final = 48
"""How far apart red, green and blue are at least in what is a colour at all."""
_LIGHT: Final = 128
_LEVELS: Final = (0, 95, 135, 175, 215, 255)


class Pen:
    """What the program asked for last."""

    def __init__(self) -> None:
        self._styles: set[str] = set()
        self._colour = ""
        self.classes = ""
        """The names of it, for the stylesheet."""

    def take(self, asked: str) -> None:
        """Follow the numbers of one sequence."""
        codes = [_number(code) for code in re.split("[;:]", asked)]
        place = 0
        while place < len(codes):
            code = codes[place]
            if code in _FINE:
                colour, used = _fine(codes[place + 1 :])
                if code == _FOREGROUND:
                    self._colour = colour
                place += used
            else:
                self._one(code)
            place += 1
        names = sorted(self._styles) + ([self._colour] if self._colour else [])
        self.classes = " ".join(f"x-{name}" for name in names)

    def _one(self, code: int) -> None:
        if code == 0:
            self._styles.clear()
            self._colour = ""
        elif code in _STYLES:
            self._styles.add(_STYLES[code])
        elif code in _OFF:
            self._styles.difference_update(_OFF[code])
        elif code in _PLAIN or code in _BRIGHT:
            self._colour = _NAMES[code % 10]
        elif code == _DEFAULT:
            self._colour = ""


def _number(code: str) -> int:
    return int(code[:6]) if code else 0


def _fine(codes: Sequence[int]) -> tuple[str, int]:
    """Return the nearest ink, and how many numbers say the colour."""
    kind = codes[0] if codes else 0
    if kind == _INDEXED:
        return (_indexed(codes[1]) if codes[1:] else ""), 2
    if kind == _DIRECT:
        return (_nearest(*codes[1:4]) if codes[3:] else ""), 4
    return "", 1


def _indexed(code: int) -> str:
    if code < _CUBE.start:
        return _NAMES[code % 8]
    if code in _CUBE:
        place = code - _CUBE.start
        return _nearest(_LEVELS[place // 36], _LEVELS[place // 6 % 6], _LEVELS[place % 6])
    if code in _GREYS:
        return _nearest(*[8 + 10 * (code - _GREYS.start)] * 3)
    return ""


def _nearest(red: int, green: int, blue: int) -> str:
    """Return the ink that is nearest to a colour.

    >>> _nearest(255, 95, 0), _nearest(90, 90, 90), _nearest(80, 200, 220)
    ('red', 'black', 'cyan')
    """
    low, high = min(red, green, blue), max(red, green, blue)
    if high - low < _GREY:
        return "white" if high >= _LIGHT else "black"
    middle = (low + high) / 2
    return _NAMES[(red > middle) + 2 * (green > middle) + 4 * (blue > middle)]
