"""Commands that run without sandbox and approval: fixed programs with fixed options."""

import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from steno.permissions.shell.command import Command, Word

_FixedOperands: TypeAlias = Literal["paths", "pattern", "text", "none"]
_NUMBER: Final = re.compile(r"[+-]?[0-9]+")
_NUMBER_RANGES: Final = re.compile(r"[0-9,-]+")


class _FixedShape(msgspec.Struct, frozen=True):
    """The allowed options and operands of one program."""

    flags: str = ""
    """Letters of options without a value."""
    numbered: str = ""
    """Letters of options with a number or a list of numbers as value."""
    single: str = ""
    """Letters of options with one character as value."""
    operands: _FixedOperands = "paths"
    folders: bool = False
    """Whether operands may be directories."""


_FIXED_COMMANDS: Final[Mapping[str, _FixedShape]] = {
    "ls": _FixedShape("aAhlrtS1dFip", folders=True),
    "cat": _FixedShape("nbsAETv"),
    "head": _FixedShape("q", "nc"),
    "tail": _FixedShape("q", "nc"),
    "wc": _FixedShape("clmw"),
    "nl": _FixedShape(),
    "cut": _FixedShape("s", "bcf", "d"),
    "sort": _FixedShape("bdfgnruV", "k", "t"),
    "uniq": _FixedShape("cdiu", operands="none"),
    "tr": _FixedShape("cds", operands="text"),
    "grep": _FixedShape("EFcHhilnoqsvwx", "ABCm", operands="pattern"),
    "echo": _FixedShape("neE", operands="text"),
    "pwd": _FixedShape("LP", operands="none"),
    "true": _FixedShape(operands="none"),
    "false": _FixedShape(operands="none"),
    ":": _FixedShape(operands="none"),
    "basename": _FixedShape(operands="text"),
    "dirname": _FixedShape(operands="text"),
    "whoami": _FixedShape(operands="none"),
    "uname": _FixedShape("amnrs", operands="none"),
    "exit": _FixedShape(operands="text"),
}


def fixed_paths(command: Command) -> tuple[tuple[Word, ...], bool] | None:
    """Return the paths that a command reads and whether they may be directories; None for any other command.

    >>> from steno.permissions.shell.command import Command, literal_word
    >>> words = tuple(map(literal_word, "head -n 5 a.txt".split()))
    >>> [word.text for word in fixed_paths(Command(words=words))[0]]
    ['a.txt']
    >>> fixed_paths(Command(words=tuple(map(literal_word, "head --lines=5 a.txt".split()))))
    """
    shape = _FIXED_COMMANDS.get(command.program)
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
            # Programs disagree about whether an option after an operand is an option.
            continue
        if operands and shape.operands != "text":
            return None
        value = _fixed_option(word.text, shape)
        if value is None:
            return None
        if value and not _fits_shape(value, next(rest, None), shape):
            return None
    return _operand_paths(operands, shape)


def _fixed_option(text: str, shape: _FixedShape) -> str | None:
    """Return the letter of an option with its value in the next word, or an empty string; None if unlisted."""
    if shape.operands == "text" and not shape.flags:
        return None
    if _NUMBER.fullmatch(text) and "n" in shape.numbered:
        return ""
    for index, letter in enumerate(text[1:], 2):
        if letter in shape.flags:
            continue
        if letter not in shape.numbered + shape.single:
            return None
        value = text[index:]
        if not value:
            return letter
        return "" if _fits_shape(letter, Word(value), shape) else None
    return ""


def _fits_shape(letter: str, value: Word | None, shape: _FixedShape) -> bool:
    if value is None:
        return False
    if letter in shape.single:
        return len(value.text) == 1
    return (_NUMBER.fullmatch(value.text) or _NUMBER_RANGES.fullmatch(value.text)) is not None


def _operand_paths(operands: list[Word], shape: _FixedShape) -> tuple[tuple[Word, ...], bool] | None:
    if shape.operands == "none":
        return None if operands else ((), False)
    if shape.operands == "text":
        return (), False
    if shape.operands == "pattern":
        if not operands:
            return None
        operands = operands[1:]
    return tuple(word for word in operands if word.text != "-"), shape.folders
