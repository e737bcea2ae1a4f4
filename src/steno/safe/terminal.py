r"""The one way of untrusted text to a terminal.

Session text may hold escape sequences, invisible characters and text that runs backwards. Nothing
of that reaches the screen: `clean` makes it visible, and a `Paint` cleans whatever it is given, so
the only control sequences in its output are its own sixteen colours.

>>> clean("\x1b[31mred\x1b[0m \u202ecod.exe")
'␛[31mred␛[0m \\u{202e}cod.exe'
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias

__all__ = [
    "Bit",
    "ColourMode",
    "Line",
    "Paint",
    "clean",
    "clean_lines",
    "cut",
    "one_line",
    "pad",
    "short_path",
    "wants_colour",
    "width",
    "without_colours",
    "wrap",
]

Bit: TypeAlias = str | tuple[str, str]
"""Words, or words and the names of their styles: `("failed", "bold red")`."""
Line: TypeAlias = list[Bit]
ColourMode: TypeAlias = Literal["auto", "always", "never"]

# Patterns are compiled when they are first needed: most commands write nothing odd.
# Controls; everything that is invisible or turns the direction of text; halves of surrogate pairs.
# Variation selectors 15 and 16 stay: they choose between a text and an emoji form.
_UNSAFE: Final = (
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2"
    "\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ud800-\udfff\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
_UNSAFE_LINES: Final = _UNSAFE.replace("\x0a-\x1f", "\x0b-\x1f")
_HARMLESS: Final = bytes((*b"\t\n", *range(0x20, 0x7F)))
_SPACES: Final = r"[ \t\n\r\f\v\x1c-\x1f\x85\u2028\u2029]+"
_COLOURS: Final = r"\x1b\[[0-9;:]*m"
_PICTURES: Final = 0x2400
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
_TWINS: Final = str.maketrans(
    {
        "●": "*",
        "✗": "x",
        "✓": "+",
        "◻": "o",
        "▪": "#",
        "▸": ">",
        "▾": "v",
        "│": "|",
        "├": "|",
        "└": "`",
        "┌": ".",
        "┐": ".",
        "┘": "'",
        "›": ">",
        "░": ".",
        "┊": ":",
        "╌": "-",
        "─": "-",
        "…": "~",
        "·": "-",
        "\N{MINUS SIGN}": "-",
        "→": ">",
        "\N{PRIME}": "'",
        "•": "*",
        "█": "#",
        "◆": "#",
        "≈": "~",
    }
)


def clean(text: str, *, newlines: bool = False) -> str:
    r"""Make every character visible that would otherwise act, hide or turn text around.

    Tabs stay, and with `newlines` so do line ends. Controls become their pictures (`␛`), other
    characters their number (`\u{202e}`).
    """
    if text.isascii() and text.isprintable():
        return text
    return clean_lines(text) if newlines else re.sub(_UNSAFE, _visible, text)


def clean_lines(text: str) -> str:
    """Return what `clean` does of a text with several lines, or with odd characters."""
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    # Nearly all of a long text is harmless, and goes at the speed of memory; the rest is short.
    rest = text.encode("utf-8", "surrogatepass").translate(None, _HARMLESS)
    if not rest or not re.search(_UNSAFE_LINES, rest.decode("utf-8", "surrogatepass")):
        return text
    return re.sub(_UNSAFE_LINES, _visible, text)


def without_colours(text: str) -> str:
    """Take out the colours a program printed, and nothing else; the rest is still to be cleaned."""
    return re.sub(_COLOURS, "", text) if "\x1b" in text else text


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < _C0_END:
        return chr(_PICTURES + code)
    return "␡" if code == _DELETE else f"\\u{{{code:x}}}"


def width(text: str) -> int:
    """Return how many columns a cleaned text takes."""
    if text.isascii():
        return len(text)
    return sum(_widths(text))


def _widths(text: str) -> list[int]:
    from unicodedata import category, east_asian_width

    widths: list[int] = []
    for letter in text:
        if letter == _EMOJI_FORM and widths:
            widths.append(1 if widths[-1] == 1 else 0)
        elif category(letter) in {"Mn", "Me"}:
            widths.append(0)
        else:
            widths.append(2 if east_asian_width(letter) in {"W", "F"} else 1)
    return widths


def cut(text: str, columns: int) -> str:
    """Return the text in at most that many columns, with … where something is missing."""
    if width(text) <= columns:
        return text
    if columns < 1:
        return ""
    room = columns - 1
    if text.isascii():
        return text[:room].rstrip() + _ELLIPSIS
    used = end = 0
    for columns_of_one in _widths(text):
        if used + columns_of_one > room:
            break
        used += columns_of_one
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
    flat = clean(re.sub(_SPACES, " ", text).strip())
    return flat if columns is None else cut(flat, columns)


def pad(text: str, columns: int, *, right: bool = False) -> str:
    """Return the text in exactly that many columns, cut or filled; `right` sets it flush right."""
    text = cut(text, columns)
    space = " " * (columns - width(text))
    return space + text if right else text + space


def short_path(path: str, columns: int) -> tuple[str, str]:
    """Return folder and file name of a path, cleaned, together in at most that many columns.

    The folder gives way first; the name is cut only where it alone is too wide.

    >>> short_path("/home/ada/tidegauge/src/tidegauge/chart.py", 24)
    ('…/src/tidegauge/', 'chart.py')
    """
    flat = one_line(path)
    split = max(flat.rstrip("/\\").rfind("/"), flat.rstrip("/\\").rfind("\\")) + 1
    folder, name = flat[:split], cut(flat[split:], columns)
    room = columns - width(name)
    if width(folder) <= room:
        return folder, name
    while folder and width(folder) > room - 1:
        separator = min(
            (at for at in (folder.find("/", 1), folder.find("\\", 1)) if at > 0), default=0
        )
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
    at, reach = 0, 4 * columns + 64
    while True:
        window = line[at : at + reach]
        if width(window) <= columns:
            yield window
            at += len(window)
        else:
            end = _fits(window, columns)
            space = window.rfind(" ", 0, end + 1)
            if space > 0 and window[:space].strip():
                end = space
            yield window[:end].rstrip()
            at += end
        while line.startswith(" ", at):
            at += 1
        if at >= len(line):
            return


def _fits(line: str, columns: int) -> int:
    """Return how many letters fit into the columns, at least one."""
    if line.isascii():
        return columns
    used = 0
    for end, columns_of_one in enumerate(_widths(line)):
        used += columns_of_one
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


class Paint:
    """Turns lines of words and styles into text for one terminal. Cleans everything it is given."""

    def __init__(self, *, colour: bool = False, unicode: bool = True) -> None:
        self.colour = colour
        self.unicode = unicode

    def bit(self, text: str, style: str = "") -> str:
        """Return cleaned words in a style such as `bold red`."""
        text = clean(text)
        if not self.unicode:
            text = text.translate(_TWINS)
        codes = [_SGR[name] for name in style.split()] if self.colour and style and text else ()
        return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if codes else text

    def line(self, bits: Iterable[Bit]) -> str:
        """Return one line of text, without its end."""
        return "".join(
            self.bit(bit) if isinstance(bit, str) else self.bit(bit[0], bit[1]) for bit in bits
        )
