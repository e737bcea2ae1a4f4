r"""Makes untrusted text safe for a terminal, measures and wraps it, and styles it.

Session text may hold escape sequences, invisible characters and text that runs backwards. `clean` makes them visible,
and a `TerminalStyler` cleans whatever it is given, so the only control sequences in its output are its own sixteen
colours.

>>> clean("\x1b[31mred\x1b[0m \u202ecod.exe")
'␛[31mred␛[0m \\u{202e}cod.exe'
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias

StyledText: TypeAlias = str | tuple[str, str]
"""Words, or words and the names of their styles: `("failed", "bold red")`."""
StyledLine: TypeAlias = list[StyledText]
ColourMode: TypeAlias = Literal["auto", "always", "never"]

# Patterns are compiled when they are first needed: most commands write nothing odd.
# Controls; everything that is invisible or turns the direction of text; halves of surrogate pairs.
# Variation selectors 15 and 16 stay: they choose between a text and an emoji form.
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
    r"""Make every character visible that would otherwise act, hide or turn text around.

    Tabs stay, and with `newlines` so do line ends. Controls become their pictures (`␛`), other characters their number
    (`\u{202e}`).
    """
    if text.isascii() and text.isprintable():
        return text
    return clean_text_lines(text) if newlines else re.sub(_UNSAFE_CHARACTERS, _visible_form, text)


def clean_text_lines(text: str) -> str:
    """Return what `clean` does of a text with several lines, or with odd characters."""
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    # Nearly all of a long text is harmless, and goes at the speed of memory; the rest is short.
    rest = text.encode("utf-8", "surrogatepass").translate(None, _HARMLESS)
    if not rest or not re.search(_UNSAFE_EXCEPT_NEWLINE, rest.decode("utf-8", "surrogatepass")):
        return text
    return re.sub(_UNSAFE_EXCEPT_NEWLINE, _visible_form, text)


def strip_colours(text: str) -> str:
    """Take out the colours a program printed, and nothing else; the rest is still to be cleaned."""
    return re.sub(_COLOURS, "", text) if "\x1b" in text else text


def _visible_form(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < _C0_END:
        return chr(_CONTROL_PICTURES + code)
    return "␡" if code == _DELETE else f"\\u{{{code:x}}}"


def display_width(text: str) -> int:
    """Return how many columns a cleaned text takes."""
    if text.isascii():
        return len(text)
    return sum(_display_widths(text))


# Not wcwidth: it takes 50 ms to import (unicodedata: 0.2 ms), is not in the base install, and of 9,800
# texts of the corpus it measures one otherwise.
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
    """Return the text in at most that many columns, with … where something is missing."""
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
    r"""Return the text on one line: cleaned, white space collapsed, cut to `columns`.

    >>> one_line("  two\n\n lines ", 7)
    'two li…'
    """
    if columns is not None:
        # What is far behind the cut need not be looked at.
        text = text[: columns * 8 + 256]
    collapsed = clean(re.sub(_SPACES, " ", text).strip())
    return collapsed if columns is None else truncate(collapsed, columns)


def pad(text: str, columns: int, *, right: bool = False) -> str:
    """Return the text in exactly that many columns, cut or filled; `right` sets it flush right."""
    text = truncate(text, columns)
    space = " " * (columns - display_width(text))
    return space + text if right else text + space


def shorten_path(path: str, columns: int) -> tuple[str, str]:
    """Return folder and file name of a path, cleaned, together in at most that many columns.

    The folder gives way first; the name is cut only where it alone is too wide.

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
    """Break a text of one or more lines at spaces so that no line is wider than `columns`."""
    columns = max(columns, 1)
    lines: list[str] = []
    for line in clean(text, newlines=True).expandtabs(4).split("\n"):
        lines.extend(_wrap_line(line.rstrip(), columns))
    return lines


def _wrap_line(line: str, columns: int) -> Iterable[str]:
    """Yield the parts of one line; only a window of it is measured at a time."""
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
    """Return how many letters fit into the columns, at least one."""
    if line.isascii():
        return columns
    used = 0
    for end, character_width in enumerate(_display_widths(line)):
        used += character_width
        if used > columns:
            return max(end, 1)
    return len(line)


def wants_colour(mode: ColourMode, env: Mapping[str, str], *, tty: bool) -> bool:
    """Say whether to use colour: as told, else as the environment and the terminal have it."""
    if mode != "auto":
        return mode == "always"
    if env.get("NO_COLOR"):
        return False
    if any(env.get(name, "0") not in {"", "0"} for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return tty and env.get("TERM") != "dumb"


class TerminalStyler:
    """Turns lines of words and styles into text for one terminal. Cleans everything it is given."""

    def __init__(self, *, colour: bool = False, unicode: bool = True) -> None:
        self.colour = colour
        self.unicode = unicode

    def style(self, text: str, style: str = "") -> str:
        """Return cleaned words in a style such as `bold red`."""
        text = clean(text)
        if not self.unicode:
            text = text.translate(_ASCII_FALLBACKS)
        codes = [_SGR[name] for name in style.split()] if self.colour and style and text else ()
        return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if codes else text

    def style_line(self, parts: Iterable[StyledText]) -> str:
        """Return one line of text, without its end."""
        return "".join(self.style(part) if isinstance(part, str) else self.style(part[0], part[1]) for part in parts)
