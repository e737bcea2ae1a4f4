"""Commands that may run without confinement and without approval: fixed programs, fixed shapes.

They are all that runs unasked where the kernel offers no confinement, and all that may stand next
to a command that a rule allows. Every word is literal, every option is listed here, and what is not
an option names a file that the caller checks.
"""

import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from steno.guard.words import Command, Word

__all__ = ["fixed_paths"]

_Operands: TypeAlias = Literal["paths", "pattern", "text", "none"]
_NUMBER: Final = re.compile(r"[+-]?[0-9]+")
_RANGES: Final = re.compile(r"[0-9,-]+")


class _Shape(msgspec.Struct, frozen=True):
    """The options and operands of one program."""

    flags: str = ""
    """Letters of options without a value."""
    numbered: str = ""
    """Letters of options whose value is a number or a list of numbers."""
    single: str = ""
    """Letters of options whose value is one character."""
    operands: _Operands = "paths"
    folders: bool = False
    """Whether an operand may be a folder."""


_SHAPES: Final[Mapping[str, _Shape]] = {
    "ls": _Shape("aAhlrtS1dFip", folders=True),
    "cat": _Shape("nbsAETv"),
    "head": _Shape("q", "nc"),
    "tail": _Shape("q", "nc"),
    "wc": _Shape("clmw"),
    "nl": _Shape(),
    "cut": _Shape("s", "bcf", "d"),
    "sort": _Shape("bdfgnruV", "k", "t"),
    "uniq": _Shape("cdiu", operands="none"),
    "tr": _Shape("cds", operands="text"),
    "grep": _Shape("EFcHhilnoqsvwx", "ABCm", operands="pattern"),
    "echo": _Shape("neE", operands="text"),
    "pwd": _Shape("LP", operands="none"),
    "true": _Shape(operands="none"),
    "false": _Shape(operands="none"),
    ":": _Shape(operands="none"),
    "basename": _Shape(operands="text"),
    "dirname": _Shape(operands="text"),
    "whoami": _Shape(operands="none"),
    "uname": _Shape("amnrs", operands="none"),
    "exit": _Shape(operands="text"),
}


def fixed_paths(command: Command) -> tuple[tuple[Word, ...], bool] | None:
    """Return the paths a command reads and whether folders are meant; None for any other command.

    >>> from steno.guard.words import Command, literal
    >>> words = tuple(map(literal, "head -n 5 a.txt".split()))
    >>> [word.text for word in fixed_paths(Command(words=words))[0]]
    ['a.txt']
    >>> fixed_paths(Command(words=tuple(map(literal, "head --lines=5 a.txt".split()))))
    """
    shape = _SHAPES.get(command.program)
    if shape is None or command.inner or command.sealed or command.assignments:
        return None
    if any(not word.literal for word in command.words):
        return None
    operands: list[Word] = []
    rest = iter(command.words[1:])
    for word in rest:
        if word.text == "--":
            operands += rest
            break
        if not word.text.startswith("-") or word.text == "-":
            operands.append(word)
            # An option behind an operand is taken for one by some programs and not by others.
            continue
        if operands and shape.operands != "text":
            return None
        value = _option(word.text, shape)
        if value is None:
            return None
        if value and not _fits(value, next(rest, None), shape):
            return None
    return _paths(operands, shape)


def _option(text: str, shape: _Shape) -> str | None:
    """Return the letter whose value is the next word, empty if none; None for an unlisted option."""
    if shape.operands == "text" and not shape.flags:
        return None
    if _NUMBER.fullmatch(text) and "n" in shape.numbered:
        return ""
    for at, letter in enumerate(text[1:], 2):
        if letter in shape.flags:
            continue
        if letter not in shape.numbered + shape.single:
            return None
        value = text[at:]
        if not value:
            return letter
        return "" if _fits(letter, Word(value), shape) else None
    return ""


def _fits(letter: str, value: Word | None, shape: _Shape) -> bool:
    if value is None:
        return False
    if letter in shape.single:
        return len(value.text) == 1
    return (_NUMBER.fullmatch(value.text) or _RANGES.fullmatch(value.text)) is not None


def _paths(operands: list[Word], shape: _Shape) -> tuple[tuple[Word, ...], bool] | None:
    if shape.operands == "none":
        return None if operands else ((), False)
    if shape.operands == "text":
        return (), False
    if shape.operands == "pattern":
        if not operands:
            return None
        operands = operands[1:]
    return tuple(word for word in operands if word.text != "-"), shape.folders
