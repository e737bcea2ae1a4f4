"""Conversion of terminal output to HTML, with colours as classes and visible control characters.

Cursor movement, such as that of progress bars, is applied: the result is the final screen. Colours map to
the nearest of the eight in the stylesheet; background colours are ignored.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

import msgspec

from steno.sanitize.html import SafeHtml, escape_text

_COLOUR_NAMES: Final = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_STYLE_CODES: Final = {1: "bold", 2: "faint", 3: "italic", 4: "under", 7: "inverse", 9: "strike"}
_STYLE_OFF_CODES: Final = {22: ("bold", "faint"), 23: ("italic",), 24: ("under",), 27: ("inverse",), 29: ("strike",)}
_EXTENDED_COLOUR_CODES: Final = (38, 48, 58)
"""Codes of foreground, background and underline colours with parameters."""
_FOREGROUND: Final = 38
_INDEXED: Final = 5
_DIRECT: Final = 2
_NORMAL_COLOURS: Final = range(30, 38)
_BRIGHT_COLOURS: Final = range(90, 98)
_DEFAULT_COLOUR: Final = 39
_COLOUR_CUBE: Final = range(16, 232)
_GREYS: Final = range(232, 256)
_MIN_SATURATION: Final = 48
"""Minimum difference between the highest and lowest channel of a colour that is not grey."""
_LIGHT_THRESHOLD: Final = 128
_LEVELS: Final = (0, 95, 135, 175, 215, 255)


class AnsiStyle:
    """The current text style."""

    def __init__(self) -> None:
        self._styles: set[str] = set()
        self._colour = ""
        self.classes = ""
        """CSS classes of the style."""

    def apply_codes(self, parameters: str) -> None:
        """Apply the codes of one escape sequence."""
        codes = [_parse_code(code) for code in re.split("[;:]", parameters)]
        position = 0
        while position < len(codes):
            code = codes[position]
            if code in _EXTENDED_COLOUR_CODES:
                colour, consumed = _extended_colour(codes[position + 1 :])
                if code == _FOREGROUND:
                    self._colour = colour
                position += consumed
            else:
                self._apply_code(code)
            position += 1
        names = sorted(self._styles) + ([self._colour] if self._colour else [])
        self.classes = " ".join(f"x-{name}" for name in names)

    def _apply_code(self, code: int) -> None:
        if code == 0:
            self._styles.clear()
            self._colour = ""
        elif code in _STYLE_CODES:
            self._styles.add(_STYLE_CODES[code])
        elif code in _STYLE_OFF_CODES:
            self._styles.difference_update(_STYLE_OFF_CODES[code])
        elif code in _NORMAL_COLOURS or code in _BRIGHT_COLOURS:
            self._colour = _COLOUR_NAMES[code % 10]
        elif code == _DEFAULT_COLOUR:
            self._colour = ""


def _parse_code(code: str) -> int:
    return int(code[:6]) if code else 0


def _extended_colour(codes: Sequence[int]) -> tuple[str, int]:
    """Return the nearest colour and the number of codes that define it."""
    kind = codes[0] if codes else 0
    if kind == _INDEXED:
        return (_palette_colour(codes[1]) if codes[1:] else ""), 2
    if kind == _DIRECT:
        return (_nearest_colour(*codes[1:4]) if codes[3:] else ""), 4
    return "", 1


def _palette_colour(code: int) -> str:
    if code < _COLOUR_CUBE.start:
        return _COLOUR_NAMES[code % 8]
    if code in _COLOUR_CUBE:
        position = code - _COLOUR_CUBE.start
        return _nearest_colour(_LEVELS[position // 36], _LEVELS[position // 6 % 6], _LEVELS[position % 6])
    if code in _GREYS:
        return _nearest_colour(*[8 + 10 * (code - _GREYS.start)] * 3)
    return ""


def _nearest_colour(red: int, green: int, blue: int) -> str:
    """Return the nearest colour of the stylesheet.

    >>> _nearest_colour(255, 95, 0), _nearest_colour(90, 90, 90), _nearest_colour(80, 200, 220)
    ('red', 'black', 'cyan')
    """
    low, high = min(red, green, blue), max(red, green, blue)
    if high - low < _MIN_SATURATION:
        return "white" if high >= _LIGHT_THRESHOLD else "black"
    middle = (low + high) / 2
    return _COLOUR_NAMES[(red > middle) + 2 * (green > middle) + 4 * (blue > middle)]


_COLOUR_CODES: Final = re.compile(r"\x1b\[([0-9;:]*)m")
_CURSOR_CODES: Final = re.compile(r"\r(?!\n)|\x08|\x1b\[[0-9;]*[A-GJK]|\x1b\[\?[0-9;]*[hl]|\x1b\]8;")
"""Sequences that require cursor movement."""
_TERMINAL_TOKENS: Final = re.compile(
    r"\x1b\[(?P<colours>[0-9;:]*)m"
    r"|\x1b\[(?P<count>[0-9;]*)(?P<move>[A-GJK])"
    r"|(?P<quiet>\x1b\[\?[0-9;]{0,20}[hl])"
    r"|\x1b\]8;[^;\x07\x1b]{0,400};(?P<link>[^\x07\x1b]{0,4000})(?:\x07|\x1b\\)"
    r"|(?P<return>\r+)(?P<newline>\n?)"
    r"|(?P<line>\n)"
    r"|(?P<back>\x08+)"
    r"|(?P<text>[^\x1b\r\n\x08]+|\x1b)"
)
_MAX_REPLAYED: Final = 500_000
"""Maximum characters whose cursor movement is applied; in longer texts, the sequences are shown."""
_MAX_COLUMNS: Final = 4_000
"""Maximum column of the cursor."""


class TerminalScreen(msgspec.Struct, frozen=True):
    """The final screen, and the number of overwritten lines."""

    html: SafeHtml
    overwritten_lines: int = 0


class _ScreenBuffer:
    """Rows of styled characters and a cursor."""

    def __init__(self) -> None:
        self.rows: list[list[tuple[str, str]]] = [[]]
        self.row = 0
        self.column = 0
        self.overwritten_rows: set[int] = set()

    def write(self, text: str, classes: str) -> None:
        """Write a text at the cursor."""
        row = self.rows[self.row]
        if self.column > len(row):
            row += [(" ", "")] * (self.column - len(row))
        end = self.column + len(text)
        if self.column < len(row):
            self.overwritten_rows.add(self.row)
        row[self.column : end] = [(letter, classes) for letter in text]
        self.column = end

    def next_line(self) -> None:
        """Move the cursor to the start of the next line."""
        self.row += 1
        self.column = 0
        if self.row == len(self.rows):
            self.rows.append([])

    def move_back(self, match: re.Match[str]) -> None:
        """Apply a line end, carriage return or backspace."""
        if match["back"]:
            self.column = max(0, self.column - len(match["back"]))
        elif match["line"] or match["newline"]:
            self.next_line()
        elif match["return"]:
            self.column = 0

    def move_cursor(self, move: str, count: str) -> None:
        """Move the cursor, or clear part of the screen."""
        first = count.partition(";")[0][:6]
        distance = max(1, int(first or 1))
        match move:
            case "A" | "F":
                self.row = max(0, self.row - distance)
            case "B" | "E":
                self.row = min(len(self.rows) - 1, self.row + distance)
            case "C":
                self.column = min(_MAX_COLUMNS, self.column + distance)
            case "D":
                self.column = max(0, self.column - distance)
            case "G":
                self.column = min(_MAX_COLUMNS, distance) - 1
            case _:
                self._clear(move, first)
        if move in "EF":
            self.column = 0

    def _clear(self, command: str, mode: str) -> None:
        """Clear part of a line, or the screen below the cursor. Do not clear the whole screen."""
        row = self.rows[self.row]
        if command == "K" and mode in ("", "0"):
            self._delete_cells(slice(self.column, None))
        elif command == "K" and mode == "2":
            self._delete_cells(slice(0, None))
        elif command == "K":
            row[: self.column] = [(" ", "")] * min(self.column, len(row))
        elif mode in ("", "0") and self.row < len(self.rows) - 1:
            self.overwritten_rows.update(range(self.row, len(self.rows) - 1))
            self._delete_cells(slice(self.column, None))
            del self.rows[self.row + 1 :]

    def _delete_cells(self, cells: slice) -> None:
        row = self.rows[self.row]
        if row[cells]:
            self.overwritten_rows.add(self.row)
        del row[cells]


def ansi_to_html(text: str) -> SafeHtml:
    r"""Return terminal output as HTML.

    >>> ansi_to_html("\x1b[31;1mno\x1b[0m \x1b]0;title")
    '<span class="x-bold x-red">no</span> ␛]0;title'
    >>> ansi_to_html("10%\r50%\r100%\nready")
    '100%\nready'
    """
    return render_screen(text).html


def render_screen(text: str) -> TerminalScreen:
    """Return the final screen as HTML."""
    if not ("\x1b" in text or "\r" in text or "\x08" in text):
        # Every style and cursor sequence contains one of these characters.
        return TerminalScreen(SafeHtml(escape_text(text)))
    if not _CURSOR_CODES.search(text) or len(text) > _MAX_REPLAYED:
        return TerminalScreen(SafeHtml("".join(_colour_only_html(text))))
    buffer = _replay(text)
    rows = [_row_html(cells) for cells in buffer.rows]
    return TerminalScreen(SafeHtml("\n".join(rows)), len(buffer.overwritten_rows))


def _colour_only_html(text: str) -> Iterator[str]:
    """Yield the HTML of output without cursor movement."""
    style = AnsiStyle()
    end = 0
    for match in _COLOUR_CODES.finditer(text):
        yield _span_html(text[end : match.start()], style.classes)
        style.apply_codes(match[1])
        end = match.end()
    yield _span_html(text[end:], style.classes)


def _replay(text: str) -> _ScreenBuffer:
    style, buffer, link = AnsiStyle(), _ScreenBuffer(), ""
    for match in _TERMINAL_TOKENS.finditer(text):
        kind = match.lastgroup
        if kind == "text":
            buffer.write(match["text"], style.classes)
        elif kind == "colours":
            style.apply_codes(match["colours"])
        elif kind == "move":
            buffer.move_cursor(match["move"], match["count"])
        elif kind == "link":
            if link and not match["link"]:
                # Show the target of a link: its text may differ.
                buffer.write(f" <{link}>", "x-faint")
            link = match["link"]
        else:
            buffer.move_back(match)
    return buffer


def _row_html(cells: list[tuple[str, str]]) -> str:
    return "".join(
        _span_html("".join(letter for letter, _ in same), classes)
        for classes, same in groupby(cells, key=_cell_classes)
    )


def _cell_classes(cell: tuple[str, str]) -> str:
    return cell[1]


def _span_html(text: str, classes: str) -> str:
    html = escape_text(text)
    return f'<span class="{classes}">{html}</span>' if text and classes else html
