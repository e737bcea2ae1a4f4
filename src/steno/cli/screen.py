"""Where output goes: how wide it is, whether somebody looks at it, and the writing itself."""

import os
import sys
from collections.abc import Iterable, Sequence
from typing import Final

from steno.safe.terminal import Bit, ColourMode, Line, Paint, wants_colour

__all__ = ["Screen", "complain", "write_bytes", "write_json"]

_DEFAULT: Final = 80
_PIPED: Final = 120
_NARROWEST: Final = 40
_WIDEST: Final = 500


class Screen:
    """The standard output as a place for lines."""

    def __init__(self, color: ColourMode = "auto", width: int | None = None) -> None:
        self.tty = sys.stdout.isatty()
        self.width = max(_NARROWEST, min(width or _columns(tty=self.tty), _WIDEST))
        self.paint = _paint(color, sys.stdout.encoding, tty=self.tty)

    def lines(self, lines: Iterable[Sequence[Bit]]) -> None:
        """Write lines as they come."""
        for line in lines:
            sys.stdout.write(self.paint.line(_trimmed(line)) + "\n")

    def text(self, lines: Iterable[Sequence[Bit]]) -> str:
        """Return lines as text for a pager."""
        return "".join(self.paint.line(_trimmed(line)) + "\n" for line in lines)

    def next_steps(self, *bits: Bit) -> None:
        """Write what one may do next; to people only."""
        if self.tty:
            self.lines([[], [bit if isinstance(bit, tuple) else (bit, "dim") for bit in bits]])


def _trimmed(line: Sequence[Bit]) -> Line:
    """Return a line without blanks at its end, whatever style they have."""
    trimmed = list(line)
    while trimmed:
        text, style = last if isinstance(last := trimmed.pop(), tuple) else (last, "")
        if text.rstrip(" "):
            trimmed.append((text.rstrip(" "), style))
            break
    return trimmed


def _columns(*, tty: bool) -> int:
    told = os.environ.get("COLUMNS", "")
    if told.isdecimal() and int(told):
        return int(told)
    if not tty:
        return _PIPED
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or _DEFAULT
    except (OSError, ValueError):
        return _DEFAULT


def _paint(color: ColourMode, encoding: str | None, *, tty: bool) -> Paint:
    unicode = (encoding or "").lower().replace("-", "") in {"utf8", "utf16", "utf32"}
    return Paint(colour=wants_colour(color, os.environ, tty=tty), unicode=unicode)


def complain(message: str, hint: str = "", color: ColourMode = "auto") -> None:
    """Write one line about what went wrong to the standard error, and a dim hint."""
    paint = _paint(color, sys.stderr.encoding, tty=sys.stderr.isatty())
    lines: list[Line] = [[("steno: ", "bold red"), " ".join(message.split())]]
    if hint:
        lines.append([(f"       {hint}", "dim")])
    for line in lines:
        sys.stderr.write(paint.line(line) + "\n")


def write_bytes(data: bytes) -> None:
    """Write bytes as they are to the standard output."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)


def write_json(value: object) -> None:
    """Write one JSON value, indented. Integers of any size are written as they are."""
    import msgspec

    from steno.format.encode import encode

    data = encode(msgspec.to_builtins(value))
    write_bytes(msgspec.json.format(data, indent=2) + b"\n")
    sys.stdout.buffer.flush()
