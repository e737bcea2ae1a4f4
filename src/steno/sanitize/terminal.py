r"""Makes untrusted text safe for a terminal, measures and wraps it, and styles it.

Session text may contain escape sequences, invisible characters and bidirectional controls. `clean` makes them visible,
and `TerminalStyler` cleans all its input, so the only control sequences in its output are its own sixteen colours.

>>> clean("\x1b[31mred\x1b[0m \u202ecod.exe")
'␛[31mred␛[0m \\u{202e}cod.exe'
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias

StyledText: TypeAlias = str | tuple[str, str]
"""Text, or text with style names: `("failed", "bold red")`."""
StyledLine: TypeAlias = list[StyledText]
ColourMode: TypeAlias = Literal["auto", "always", "never"]

# Patterns are compiled on first use, because most commands print no unusual characters. They match control characters,
# invisible and bidirectional characters, and unpaired surrogates. Variation selectors 15 and 16 are kept: they select
# text or emoji presentation.
_UNSAFE_CHARACTERS: Final = (
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2"
    "\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ud800-\udfff\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
_UNSAFE_EXCEPT_NEWLINE: Final = _UNSAFE_CHARACTERS.replace("\x0a-\x1f", "\x0b-\x1f")
_HARMLESS: Final = bytes((*b"\t\n", *range(0x20, 0x7F)))
_SPACES: Final = r"[ \t\n\r\f\v\x1c-\x1f\x85\u2028\u2029]+"
_COLOURS: Final = r"\x1b\[[0-9;:]*m"
_CONTROL_PICTURES: Final = 0x2400
_C0_END: Final = 0x20
_DELETE: Final = 0x7F
_ELLIPSIS: Final = "…"
_EMOJI_FORM: Final = "\ufe0f"

_SGR: Final = {
    "bold": "1",
    "dim": "2",
    "italic": "3",
    "underline": "4",
    "strike": "9",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}
_ASCII_FALLBACKS: Final = str.maketrans(
    "●✗✓◻▪▸▾│├└┌┐┘›░┊╌─…·\N{MINUS SIGN}→\N{PRIME}•█◆≈", "*x+o#>v||`..'>.:--~-->'*##~"
)


def clean(text: str, *, newlines: bool = False) -> str:
    r"""Make control, invisible and bidirectional characters visible.

    Tabs are kept, and with `newlines` also line ends. Control characters become their symbols (`␛`), other characters
    their code point (`\u{202e}`).
    """
    if text.isascii() and text.isprintable():
        return text
    return clean_text_lines(text) if newlines else re.sub(_UNSAFE_CHARACTERS, _visible_form, text)


def clean_text_lines(text: str) -> str:
    """Return a cleaned text with several lines or unusual characters."""
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    # Deleting the harmless bytes is fast and usually leaves little text for the pattern.
    rest = text.encode("utf-8", "surrogatepass").translate(None, _HARMLESS)
    if not rest or not re.search(_UNSAFE_EXCEPT_NEWLINE, rest.decode("utf-8", "surrogatepass")):
        return text
    return re.sub(_UNSAFE_EXCEPT_NEWLINE, _visible_form, text)


def strip_colours(text: str) -> str:
    """Remove colour sequences, and nothing else; the result still has to be cleaned."""
    return re.sub(_COLOURS, "", text) if "\x1b" in text else text


def _visible_form(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < _C0_END:
        return chr(_CONTROL_PICTURES + code)
    return "␡" if code == _DELETE else f"\\u{{{code:x}}}"


def display_width(text: str) -> int:
    """Return the number of columns that a cleaned text occupies."""
    if text.isascii():
        return len(text)
    return sum(_display_widths(text))


# Not wcwidth: it takes 50 ms to import (unicodedata: 0.2 ms), is not in the base install, and measures only one of
# 9,800 corpus texts differently.
def _display_widths(text: str) -> list[int]:
    from unicodedata import category, east_asian_width

    widths: list[int] = []
    for character in text:
        if character == _EMOJI_FORM and widths:
            widths.append(1 if widths[-1] == 1 else 0)
        elif category(character) in {"Mn", "Me"}:
            widths.append(0)
        else:
            widths.append(2 if east_asian_width(character) in {"W", "F"} else 1)
    return widths


def truncate(text: str, columns: int) -> str:
    """Truncate a text to a number of columns, ending in … if it was cut."""
    if display_width(text) <= columns:
        return text
    if columns < 1:
        return ""
    available = columns - 1
    if text.isascii():
        return text[:available].rstrip() + _ELLIPSIS
    used = end = 0
    for character_width in _display_widths(text):
        if used + character_width > available:
            break
        used += character_width
        end += 1
    return text[:end].rstrip() + _ELLIPSIS


def one_line(text: str, columns: int | None = None) -> str:
    r"""Return the text on one line: cleaned, white space collapsed, truncated to `columns`.

    >>> one_line("  two\n\n lines ", 7)
    'two li…'
    """
    if columns is not None:
        # Avoids cleaning text far beyond the cut.
        text = text[: columns * 8 + 256]
    collapsed = clean(re.sub(_SPACES, " ", text).strip())
    return collapsed if columns is None else truncate(collapsed, columns)


def pad(text: str, columns: int, *, right: bool = False) -> str:
    """Return the text in exactly this many columns, truncated or padded; `right` aligns it right."""
    text = truncate(text, columns)
    space = " " * (columns - display_width(text))
    return space + text if right else text + space


def shorten_path(path: str, columns: int) -> tuple[str, str]:
    """Return directory and file name of a path, cleaned, together in at most `columns` columns.

    The directory is shortened first; the name is cut only if it alone is too wide.

    >>> shorten_path("/home/ada/tidegauge/src/tidegauge/chart.py", 24)
    ('…/src/tidegauge/', 'chart.py')
    """
    clean_path = one_line(path)
    split = max(clean_path.rstrip("/\\").rfind("/"), clean_path.rstrip("/\\").rfind("\\")) + 1
    folder, name = clean_path[:split], truncate(clean_path[split:], columns)
    room = columns - display_width(name)
    if display_width(folder) <= room:
        return folder, name
    while folder and display_width(folder) > room - 1:
        separator = min((index for index in (folder.find("/", 1), folder.find("\\", 1)) if index > 0), default=0)
        folder = folder[separator:] if separator else ""
        if len(folder) == 1:
            folder = ""
    if not folder:
        return ("…/", name) if room > 1 else ("", name)
    return _ELLIPSIS + folder, name


def wrap(text: str, columns: int) -> list[str]:
    """Break a text at spaces so that no line is wider than `columns`."""
    columns = max(columns, 1)
    lines: list[str] = []
    for line in clean(text, newlines=True).expandtabs(4).split("\n"):
        lines.extend(_wrap_line(line.rstrip(), columns))
    return lines


def _wrap_line(line: str, columns: int) -> Iterable[str]:
    """Yield the parts of one line, measuring only a window of it at a time."""
    position, window_size = 0, 4 * columns + 64
    while True:
        window = line[position : position + window_size]
        if display_width(window) <= columns:
            yield window
            position += len(window)
        else:
            end = _fitting_length(window, columns)
            space = window.rfind(" ", 0, end + 1)
            if space > 0 and window[:space].strip():
                end = space
            yield window[:end].rstrip()
            position += end
        while line.startswith(" ", position):
            position += 1
        if position >= len(line):
            return


def _fitting_length(line: str, columns: int) -> int:
    """Return the number of characters that fit into the columns, at least one."""
    if line.isascii():
        return columns
    used = 0
    for end, character_width in enumerate(_display_widths(line)):
        used += character_width
        if used > columns:
            return max(end, 1)
    return len(line)


def wants_colour(mode: ColourMode, env: Mapping[str, str], *, tty: bool) -> bool:
    """Return whether to use colour, given the mode, the environment and the terminal."""
    if mode != "auto":
        return mode == "always"
    if env.get("NO_COLOR"):
        return False
    if any(env.get(name, "0") not in {"", "0"} for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return tty and env.get("TERM") != "dumb"


class TerminalStyler:
    """Renders lines of styled text for one terminal. Cleans all its input."""

    def __init__(self, *, colour: bool = False, unicode: bool = True) -> None:
        self.colour = colour
        self.unicode = unicode

    def style(self, text: str, style: str = "") -> str:
        """Return cleaned text in a style such as `bold red`."""
        text = clean(text)
        if not self.unicode:
            text = text.translate(_ASCII_FALLBACKS)
        codes = [_SGR[name] for name in style.split()] if self.colour and style and text else ()
        return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if codes else text

    def style_line(self, parts: Iterable[StyledText]) -> str:
        """Return one line of text without a line end."""
        return "".join(self.style(part) if isinstance(part, str) else self.style(part[0], part[1]) for part in parts)
