"""Lines that fit on the screen, however narrow it is."""

from collections.abc import Iterator
from typing import Final

from steno.safe.terminal import Line, one_line, width, wrap

__all__ = ["heading", "wrapped"]

_TITLE: Final = 12
"""As many columns a title needs to say something."""


def heading(name: str, title: str, columns: int) -> Iterator[Line]:
    """Yield what a session is called and what it is about, on two lines where one is too short."""
    shown = one_line(name, columns)
    room = columns - width(shown) - 2
    about = one_line(title, room if room >= _TITLE else columns - 2) or ("(no title)", "dim")
    if room >= _TITLE:
        yield [(shown, "bold"), "  ", about]
    else:
        yield [(shown, "bold")]
        yield ["  ", about]


def wrapped(line: Line, columns: int) -> Iterator[Line]:
    """Yield a line as it is, or in several where it is too wide, which then have no styles."""
    text = "".join(bit if isinstance(bit, str) else bit[0] for bit in line)
    if width(text) <= columns:
        yield line
        return
    for each in wrap(text, columns):
        yield [each]
