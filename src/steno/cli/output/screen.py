"""Standard output: width, colour, paging, and writing of lines, bytes and JSON; error messages."""

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from steno.sanitize.terminal import ColourMode, StyledLine, StyledText, TerminalStyler, display_width, wants_colour

if TYPE_CHECKING:
    from re import Match

    from steno.store.discovery import Problem


_DEFAULT_WIDTH: Final = 80
_PIPED_WIDTH: Final = 120
_MIN_WIDTH: Final = 40
_MAX_WIDTH: Final = 500
# UTF-8 of DEL and C1 controls, soft hyphens, zero-width characters, text direction controls, line
# separators, annotations and tags.
_INVISIBLE_BYTES: Final = (
    rb"\x7f|\xc2[\x80-\x9f\xad]|\xd8\x9c|\xe1\xa0\x8e|\xe2\x80[\x8b-\x8f\xa8-\xae]"
    rb"|\xe2\x81[\xa0-\xaf]|\xef\xbb\xbf|\xef\xbf[\xb9-\xbb]|\xf3\xa0[\x80\x81][\x80-\xbf]"
)


class Screen:
    """Standard output for styled lines."""

    def __init__(self, color: ColourMode = "auto", columns: int | None = None) -> None:
        self.is_terminal = sys.stdout.isatty()
        self.width = max(_MIN_WIDTH, min(columns or _terminal_columns(is_terminal=self.is_terminal), _MAX_WIDTH))
        self.styler = _styler(color, sys.stdout.encoding, tty=self.is_terminal)

    def print_lines(self, lines: Iterable[Sequence[StyledText]]) -> None:
        """Write lines one at a time."""
        for line in lines:
            sys.stdout.write(self.styler.style_line(_strip_trailing_blanks(line)) + "\n")

    def render_text(self, lines: Iterable[Sequence[StyledText]]) -> str:
        """Return lines as text for a pager."""
        return "".join(self.styler.style_line(_strip_trailing_blanks(line)) + "\n" for line in lines)

    def print_next_steps(self, steps: Sequence[str], note: str = "") -> None:
        """Write suggested commands, only on terminals; a command wider than the screen is omitted."""
        if not self.is_terminal:
            return
        joined = "   ".join(steps)
        if display_width(note) + display_width(joined) + 2 <= self.width:
            self.print_lines([[], [f"{note}  " if note else "", (joined, "dim")]])
            return
        fitting_steps = [step for step in steps if display_width(step) <= self.width]
        lines: list[StyledLine] = [[note]] if note else []
        lines.extend([(step, "dim")] for step in fitting_steps)
        self.print_lines([[], *lines] if lines else [])


def _strip_trailing_blanks(line: Sequence[StyledText]) -> StyledLine:
    """Return a line without trailing blanks of any style."""
    trimmed = list(line)
    while trimmed:
        text, style = last if isinstance(last := trimmed.pop(), tuple) else (last, "")
        if text.rstrip(" "):
            trimmed.append((text.rstrip(" "), style))
            break
    return trimmed


def _terminal_columns(*, is_terminal: bool) -> int:
    environment_columns = os.environ.get("COLUMNS", "")
    if environment_columns.isdecimal() and int(environment_columns):
        return int(environment_columns)
    if not is_terminal:
        return _PIPED_WIDTH
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or _DEFAULT_WIDTH
    except (OSError, ValueError):
        return _DEFAULT_WIDTH


def _styler(color_mode: ColourMode, encoding: str | None, *, tty: bool) -> TerminalStyler:
    unicode = (encoding or "").lower().replace("-", "") in {"utf8", "utf16", "utf32"}
    return TerminalStyler(colour=wants_colour(color_mode, os.environ, tty=tty), unicode=unicode)


def print_error(message: str, hint: str = "", color: ColourMode = "auto") -> None:
    """Write an error and a dim hint, one line each, to standard error."""
    if getattr(sys, "stderr", None) is None:
        return
    paint = _styler(color, sys.stderr.encoding, tty=sys.stderr.isatty())
    line: StyledLine = [("steno: ", "bold red"), " ".join(message.split())]
    sys.stderr.write(paint.style_line(line) + "\n")
    if hint:
        print_note(hint, color)


def print_note(text: str, color: ColourMode = "auto") -> None:
    """Write a dim line below an error to standard error."""
    paint = _styler(color, sys.stderr.encoding, tty=sys.stderr.isatty())
    sys.stderr.write(paint.style_line([(f"       {text}", "dim")]) + "\n")


def report_unreadable(problems: Sequence["Problem"], *, action: str = "read", with_reason: bool = False) -> None:
    """Report the number of unreadable paths, and the first one."""
    if problems:
        from steno.report.humanize import count

        first = problems[0]
        reason = f": {first.message}" if with_reason and first.message else ""
        number = count(len(problems), "path")
        print_error(f"{number} could not be {action}, such as {first.path}{reason}")


def write_bytes(data: bytes) -> None:
    """Write bytes unchanged to standard output."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)


def escape_invisible(data: bytes) -> bytes:
    """Return JSON with control and invisible characters escaped."""
    import re

    return re.sub(_INVISIBLE_BYTES, _json_escape, data)


def _json_escape(match: "Match[bytes]") -> bytes:
    units = match[0].decode().encode("utf-16-be")
    pairs = (units[start : start + 2] for start in range(0, len(units), 2))
    return b"".join(b"\\u%02x%02x" % (high, low) for high, low in pairs)


def write_json(value: object) -> None:
    """Write an indented JSON value with invisible characters escaped; integers have any size."""
    import msgspec

    from steno.format.encode import encode

    built = msgspec.to_builtins(value)
    try:
        data = msgspec.json.format(encode(built), indent=2)
    except msgspec.DecodeError:
        # A string with a lone surrogate, which JSON cannot represent.
        from steno.report.session_references import json_encodable

        data = msgspec.json.format(encode(json_encodable(built)), indent=2)
    write_bytes(escape_invisible(data) + b"\n")
    sys.stdout.buffer.flush()


_DEFAULT_HEIGHT = 24


def print_paged(screen: Screen, lines: Iterable[Sequence[StyledText]], *, use_pager: bool = True) -> None:
    """Write lines; on a terminal through `$PAGER` or `less -R` if they exceed its height."""
    if not (use_pager and screen.is_terminal and sys.stdin.isatty()):
        screen.print_lines(lines)
        return
    text = screen.render_text(lines)
    if text.count("\n") < _terminal_height():
        sys.stdout.write(text)
        return
    import click

    # `less` needs -R to show colours; a LESS that the user has set takes precedence.
    os.environ.setdefault("LESS", "-R")
    click.echo_via_pager(text, color=screen.styler.colour)


def _terminal_height() -> int:
    try:
        return os.get_terminal_size(sys.stdout.fileno()).lines or _DEFAULT_HEIGHT
    except (OSError, ValueError):
        return _DEFAULT_HEIGHT
