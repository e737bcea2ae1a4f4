"""What a program printed → HTML: its colours as classes, every other control made visible."""

import re
from typing import Final

from markupsafe import Markup

from steno.safe.html import words

__all__ = ["ansi"]

_COLOURS: Final = re.compile(r"\x1b\[([0-9;:]*)m")
_NAMES: Final = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_STYLES: Final = {1: "bold", 2: "faint", 3: "italic", 4: "under", 7: "inverse", 9: "strike"}
_OFF: Final = {
    22: ("bold", "faint"),
    23: ("italic",),
    24: ("under",),
    27: ("inverse",),
    29: ("strike",),
}
_FOREGROUND: Final = 38
_BACKGROUND: Final = 48
_STEPS: Final = {5: 1, 2: 3}
_PLAIN: Final = range(30, 38)
_BRIGHT: Final = range(90, 98)
_DEFAULT: Final = 39


class _Pen:
    """What the program asked for last."""

    def __init__(self) -> None:
        self.styles: set[str] = set()
        self.colour = ""

    @property
    def classes(self) -> str:
        """The names of it, for the stylesheet."""
        names = sorted(self.styles) + ([self.colour] if self.colour else [])
        return " ".join(f"x-{name}" for name in names)

    def take(self, codes: list[int]) -> None:
        """Follow a sequence. Backgrounds and finer colours are left out: the page has its own."""
        place = 0
        while place < len(codes):
            code = codes[place]
            if code in (_FOREGROUND, _BACKGROUND):
                place += 1 + _STEPS.get(codes[place + 1] if place + 1 < len(codes) else 0, 0)
                if code == _FOREGROUND:
                    self.colour = ""
            else:
                self._one(code)
            place += 1

    def _one(self, code: int) -> None:
        if code == 0:
            self.styles.clear()
            self.colour = ""
        elif code in _STYLES:
            self.styles.add(_STYLES[code])
        elif code in _OFF:
            self.styles.difference_update(_OFF[code])
        elif code in _PLAIN or code in _BRIGHT:
            self.colour = _NAMES[code % 10]
        elif code == _DEFAULT:
            self.colour = ""


def ansi(text: str) -> Markup:
    r"""Return what was printed.

    >>> str(ansi("\x1b[31;1mno\x1b[0m \x1b]0;title"))
    '<span class="x-bold x-red">no</span> ␛]0;title'
    """
    pen = _Pen()
    made: list[Markup] = []
    end = 0
    for found in _COLOURS.finditer(text):
        made.append(_painted(text[end : found.start()], pen))
        pen.take([int(code) if code else 0 for code in re.split("[;:]", found[1])])
        end = found.end()
    made.append(_painted(text[end:], pen))
    return Markup("").join(made)


def _painted(text: str, pen: _Pen) -> Markup:
    shown = words(text)
    if not text or not pen.classes:
        return shown
    return Markup('<span class="{}">{}</span>').format(pen.classes, shown)
