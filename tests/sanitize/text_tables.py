"""How recorded inputs of the sanitisers are answered: the terminal, pages, tables and shapes."""

import json
import re
from collections.abc import Callable
from typing import Any, Final

from tests.sanitize.recording import SAME, Answers, Text, visible

from steno.sanitize import csv, html, terminal, value_shape
from steno.sanitize.display_masking import hide_known_secrets, hide_secrets
from steno.sanitize.secret_family import is_password, is_placeholder, is_random, is_scrambled, is_varied

_CODE: Final = re.compile(r"\{([0-9a-f]+)\}")
_LAST: Final = 0x10FFFF


def plain(notation: str) -> str:
    """Return an input with `{1b}` read as the character of that number."""
    return _CODE.sub(lambda found: chr(int(found[1], 16)), Text(notation).text)


def shown(value: object) -> str:
    """Return an answer as ASCII on one line, a text between bars."""
    if isinstance(value, str):
        printed = "".join(each if each.isprintable() else f"{{{ord(each):x}}}" for each in value)
        return f"|{printed}|"
    if isinstance(value, list | tuple):
        return " ".join(map(shown, value))
    return str(value)


def _paint(options: str, text: str) -> str:
    colour, _, style = options.partition("/")
    paint = terminal.TerminalStyler(colour="c" in colour, unicode="a" not in colour)
    return paint.style(text, style.replace("+", " "))


def _line(columns: str, text: str) -> str:
    return terminal.one_line(text, None if columns == "-" else int(columns))


TERMINAL: Final[dict[str, Callable[[str, str], object]]] = {
    "clean": lambda _, text: terminal.clean(text),
    "lines": lambda _, text: terminal.clean(text, newlines=True),
    "clean-lines": lambda _, text: terminal.clean_text_lines(text),
    "uncoloured": lambda _, text: terminal.strip_colours(text),
    "width": lambda _, text: terminal.display_width(text),
    "cut": lambda columns, text: terminal.truncate(text, int(columns)),
    "pad": lambda columns, text: terminal.pad(text, int(columns)),
    "right": lambda columns, text: terminal.pad(text, int(columns), right=True),
    "line": _line,
    "path": lambda columns, text: terminal.shorten_path(text, int(columns)),
    "wrap": lambda columns, text: terminal.wrap(text, int(columns)),
    "paint": _paint,
}
HTML: Final[dict[str, Callable[[str, str], object]]] = {
    "words": lambda _, text: html.escape_markup(text),
    "escaped": lambda _, text: html.escape_html(text),
    "text": lambda _, text: html.escape_text(text),
    "inert": lambda _, text: html.visible_text(text),
    "trusted": lambda _, text: html.trusted_markup(text),
    "washed": lambda _, text: html.sanitize_html(text),
    "csv": lambda _, text: csv.csv_row([text]),
    "csv-cells": lambda _, text: csv.csv_row(json.loads(text)),
}


def answered(kinds: dict[str, Callable[[str, str], object]]) -> Callable[[str], str]:
    """Return what answers `kind option text`; the text goes on to the end of the line."""

    def answer(label: str) -> str:
        kind, option, text = (*label.split(" ", 2), "")[:3]
        return shown(kinds[kind](option, plain(text)))

    return answer


def code_points() -> Answers:
    """Return every range of characters that is made visible, and how its ends are."""
    made: Answers = []
    for newlines in (False, True):
        ranges: list[list[int]] = []
        for code in _changed(newlines=newlines):
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
        for ends in ranges:
            label = f"{'lines ' if newlines else ''}{ends[0]:04x}-{ends[1]:04x}"
            made.append((label, shown([terminal.clean(chr(end), newlines=newlines) for end in ends])))
    return made


def _changed(*, newlines: bool) -> list[int]:
    found: list[int] = []
    for low in range(0, _LAST + 1, 256):
        block = "".join(map(chr, range(low, low + 256)))
        if terminal.clean(block, newlines=newlines) != block:
            found += [ord(each) for each in block if terminal.clean(each, newlines=newlines) != each]
    return found


def hidden(notation: str) -> str:
    """Return what is shown at a glance, and after a bar what an export would mask."""
    text = Text(notation)
    answers: list[str] = []
    for hide in (hide_secrets, hide_known_secrets):
        made = hide(text.text)
        for letters in sorted(text.segments, key=len, reverse=True):
            made = made.replace(letters, f"«{len(letters)}»")
        answers.append(SAME if made == notation or hide(text.text) == text.text else made)
    return " || ".join(visible(each) for each in answers)


def value_kinds(notation: str) -> str:
    """Return what a value is taken for."""
    value = Text(notation).text.encode("latin-1", "replace")
    kinds = {
        "varied": is_varied(value),
        "random": is_random(value),
        "scrambled": is_scrambled(value),
        "placeholder": is_placeholder(value),
        "password": is_password(value, quoted=False),
        "quoted-password": is_password(value, quoted=True),
    }
    # What is neither true nor false has no place here.
    return " ".join(name for name, holds in kinds.items() if {True: 1, False: 0}[holds]) or "nothing"


_KNOWN: Final = frozenset(("port", "name", "free text", "sk-x"))


def shape(notation: str) -> str:
    """Return the shape of a value in JSON, alone and with some names known."""
    value: Any = json.loads(plain(notation))
    alone, known = value_shape.shape_of(value), value_shape.shape_of(value, _KNOWN.__contains__)
    return alone if alone == known else f"{alone} || {known}"


def name_kinds(notation: str) -> str:
    """Return what a name is taken for, and how it is shown."""
    name = plain(notation)
    kinds = {
        "name": value_shape.is_plain_name(name),
        "value": value_shape.is_plain_value(name),
        "capital": value_shape.is_plain_value(name, capital=True),
    }
    held = [kind for kind, holds in kinds.items() if holds]
    return " ".join((*held, value_shape.plain_name(name) if kinds["name"] else value_shape.mask_content(name)))
