"""Where output goes: how wide it is, whether somebody looks at it, and the writing itself."""

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from steno.safe.terminal import Bit, ColourMode, Line, Paint, wants_colour, width

if TYPE_CHECKING:
    from re import Match

__all__ = ["Screen", "complain", "harmless", "write_bytes", "write_json"]

_DEFAULT: Final = 80
_PIPED: Final = 120
_NARROWEST: Final = 40
_WIDEST: Final = 500
# In UTF-8: DEL and C1, soft hyphen, what has no width, what turns the writing, line separators,
# annotations and tags.
_UNSEEN: Final = (
    rb"\x7f|\xc2[\x80-\x9f\xad]|\xd8\x9c|\xe1\xa0\x8e|\xe2\x80[\x8b-\x8f\xa8-\xae]"
    rb"|\xe2\x81[\xa0-\xaf]|\xef\xbb\xbf|\xef\xbf[\xb9-\xbb]|\xf3\xa0[\x80\x81][\x80-\xbf]"
)


class Screen:
    """The standard output as a place for lines."""

    def __init__(self, color: ColourMode = "auto", columns: int | None = None) -> None:
        self.tty = sys.stdout.isatty()
        self.width = max(_NARROWEST, min(columns or _columns(tty=self.tty), _WIDEST))
        self.paint = _paint(color, sys.stdout.encoding, tty=self.tty)

    def lines(self, lines: Iterable[Sequence[Bit]]) -> None:
        """Write lines as they come."""
        for line in lines:
            sys.stdout.write(self.paint.line(_trimmed(line)) + "\n")

    def text(self, lines: Iterable[Sequence[Bit]]) -> str:
        """Return lines as text for a pager."""
        return "".join(self.paint.line(_trimmed(line)) + "\n" for line in lines)

    def next_steps(self, steps: Sequence[str], said: str = "") -> None:
        """Write what one may do next, to people only; a command that would be cut is left out."""
        if not self.tty:
            return
        whole = "   ".join(steps)
        if width(said) + width(whole) + 2 <= self.width:
            self.lines([[], [f"{said}  " if said else "", (whole, "dim")]])
            return
        fitting = [step for step in steps if width(step) <= self.width]
        lines: list[Line] = [[said]] if said else []
        lines.extend([(step, "dim")] for step in fitting)
        self.lines([[], *lines] if lines else [])


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
    if getattr(sys, "stderr", None) is None:
        return
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


def harmless(data: bytes) -> bytes:
    """Return the same JSON with what acts on a terminal, or is not seen on it, as escapes."""
    import re

    return re.sub(_UNSEEN, _escaped, data)


def _escaped(found: "Match[bytes]") -> bytes:
    units = found[0].decode().encode("utf-16-be")
    pairs = (units[at : at + 2] for at in range(0, len(units), 2))
    return b"".join(b"\\u%02x%02x" % (high, low) for high, low in pairs)


def write_json(value: object) -> None:
    """Write one JSON value, indented, as `harmless` has it; integers of any size as they are."""
    import msgspec

    from steno.format.encode import encode

    built = msgspec.to_builtins(value)
    try:
        data = msgspec.json.format(encode(built), indent=2)
    except msgspec.DecodeError:
        # A name or a text with half a letter in it, which JSON cannot hold.
        from steno.report.names import encodable

        data = msgspec.json.format(encode(encodable(built)), indent=2)
    write_bytes(harmless(data) + b"\n")
    sys.stdout.buffer.flush()
