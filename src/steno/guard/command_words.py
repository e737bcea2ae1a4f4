"""The words of one command: the texts rules may know it by, and the paths it may name."""

import os
import re
from collections.abc import Iterator
from typing import Final

import msgspec

from steno.guard.words import GAP, Command, Redirection, Word, literal
from steno.guard.wrappers import base_name

__all__ = [
    "DEVICES",
    "file_redirections",
    "guessed_spellings",
    "is_plain_file",
    "path_words",
    "spellings",
]

DEVICES: Final = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin"})


def file_redirections(command: Command) -> Iterator[Redirection]:
    """Yield the redirections of a command to files that are none of the standard devices."""
    return (each for each in command.redirections if each.target.text not in DEVICES)


def is_plain_file(path: str, *, folders: bool) -> bool:
    """Whether a path is missing, a regular file, or with `folders` a folder: none that can block."""
    return os.path.isfile(path) or (folders and os.path.isdir(path)) or not os.path.lexists(path)


def spellings(command: Command) -> Iterator[str]:
    """Yield the texts under which a rule that forbids may know a command."""
    if not command.words:
        return
    named = msgspec.structs.replace(
        command, words=(literal(base_name(command.program)), *command.words[1:])
    )
    spelled = (command, named, _without_options(command), _without_options(named))
    for each in spelled:
        for text in (each.text, each.set_text):
            yield text
            yield text.replace(GAP, " ")


def _without_options(command: Command) -> Command:
    """Leave out the options between a program and its first operand: `git -P push` is a push."""
    at = 1
    while at < len(command.words) and command.words[at].text.startswith("-"):
        at += 1
    return msgspec.structs.replace(command, words=(command.words[0], *command.words[at:]))


def guessed_spellings(command: Command) -> Iterator[str]:
    """Yield a command without options that may take a value: `git -C x push` may be a push."""
    at = 1
    while at < len(command.words) and command.words[at].text.startswith("-"):
        at += 1 if "=" in command.words[at].text else 2
    if 1 < at < len(command.words):
        yield " ".join([base_name(command.program), *(word.shown for word in command.words[at:])])


def path_words(command: Command) -> Iterator[Word]:
    """Yield the words of a command that may be paths, and parts of options that may be."""
    for word in command.words[1:]:
        yield word
        _, given, value = word.text.partition("=")
        if given and value:
            yield Word(value, splits=word.splits)
        if re.match(r"-[^-].", word.text):
            yield Word(word.text[2:], splits=word.splits)
