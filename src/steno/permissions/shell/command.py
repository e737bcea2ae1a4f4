"""Words, commands and redirections of a shell script, as far as they are known without running it."""

import re
from typing import Final

import msgspec

UNKNOWN_PART: Final = "\ue000"
"""Placeholder in a word for a part that only the shell can expand: a variable, a file name pattern."""
INNER_SPACE: Final = "\ue001"
"""Placeholder in the text of a command for white space inside a word, to keep words apart."""
_BLANKS: Final = str.maketrans(dict.fromkeys(" \t\n", INNER_SPACE))


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text as a set, for tables."""
    return frozenset(text.split())


# Variables that change the output of a program, not what it runs.
_HARMLESS_VARIABLES: Final = word_set(
    "CI NO_COLOR FORCE_COLOR CLICOLOR TERM COLUMNS LINES LANG LANGUAGE LC_ALL LC_CTYPE TZ NODE_ENV"
    " RUST_BACKTRACE RUST_LOG PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONHASHSEED GOOS GOARCH"
    " DEBUG VERBOSE RAILS_ENV RACK_ENV DJANGO_DEBUG CARGO_TERM_COLOR"
)
# Variables used only by the script. Shells and programs read variables in capitals, and these exceptions.
_SCRIPT_VARIABLE: Final = re.compile(
    r"(?!.*proxy|npm_|path$|fpath$|cdpath$|manpath$|module_path$|prompt$|argv$|status$|histchars$"
    r"|auto_resume$)[a-z][a-z0-9_]*",
    re.ASCII,
)


def is_harmless_variable(name: str) -> bool:
    """Whether setting a variable in a script affects only the script."""
    return name in _HARMLESS_VARIABLES or _SCRIPT_VARIABLE.fullmatch(name) is not None


def is_harmless_prefix(name: str) -> bool:
    """Whether a variable before a command cannot change what the program runs."""
    return name in _HARMLESS_VARIABLES


class Word(msgspec.Struct, frozen=True):
    """One word of a command; its value may have unknown parts."""

    text: str
    splits: bool = False
    """Whether the shell may expand it to zero or several words."""
    tilde: bool = False
    """Whether it starts with an unquoted `~` or `~/`."""
    glob: bool = False
    """Whether it may expand to several words only because it is a file name pattern, so that each has a known start."""

    @property
    def literal(self) -> bool:
        """Whether it is exactly one word with a known value."""
        return UNKNOWN_PART not in self.text and not self.splits

    @property
    def escaped_text(self) -> str:
        """The value as part of a command's text."""
        return self.text.translate(_BLANKS) or "''"


def literal_word(text: str) -> Word:
    """Return a word with a known value."""
    return Word(text)


class Assignment(msgspec.Struct, frozen=True):
    """`NAME=value`, before a command or on its own."""

    name: str
    value: Word


class Redirection(msgspec.Struct, frozen=True):
    """A file that a command reads or writes by redirection."""

    writes: bool
    target: Word


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """A simple command, with the commands nested in its words."""

    words: tuple[Word, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    redirections: tuple[Redirection, ...] = ()
    repeated: bool = False
    """Whether it is in a loop, function or trap and may run more than once."""
    inner: tuple["Command", ...] = ()
    """The nested commands."""
    reach: int = -1
    """Index of the last word that determines the nested commands; a rule must name the words up to it."""
    sealed: str = ""
    """Why the nested commands are unknown; empty if they are known."""
    transparent: bool = False
    """Whether it only runs the nested commands."""

    @property
    def program(self) -> str:
        """The program as written; empty for assignments."""
        return self.words[0].text if self.words else ""

    @property
    def text(self) -> str:
        """The words on one line, as rules match them."""
        return " ".join(word.escaped_text for word in self.words)

    @property
    def text_with_assignments(self) -> str:
        """The words with the assignments before them."""
        prefix = [f"{assignment.name}={assignment.value.escaped_text}" for assignment in self.assignments]
        return " ".join([*prefix, self.text]) if prefix else self.text
