"""Words, commands and redirections of a shell script, as far as known without running it."""

import re
from typing import Final

import msgspec

UNKNOWN_PART: Final = "\ue000"
"""Stands in a word for what only the shell will know: an expansion, a file name pattern."""
INNER_SPACE: Final = "\ue001"
"""Stands in the text of a command for white space inside a word, so that words stay apart."""
_BLANKS: Final = str.maketrans(dict.fromkeys(" \t\n", INNER_SPACE))


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text, for tables."""
    return frozenset(text.split())


# Variables that change how a program looks or talks, and not what it runs.
_HARMLESS_VARIABLES: Final = word_set(
    "CI NO_COLOR FORCE_COLOR CLICOLOR TERM COLUMNS LINES LANG LANGUAGE LC_ALL LC_CTYPE TZ NODE_ENV"
    " RUST_BACKTRACE RUST_LOG PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONHASHSEED GOOS GOARCH"
    " DEBUG VERBOSE RAILS_ENV RACK_ENV DJANGO_DEBUG CARGO_TERM_COLOR"
)
# A variable of the script's own; what shells and programs read is in capitals, but for these.
_SCRIPT_VARIABLE: Final = re.compile(
    r"(?!.*proxy|npm_|path$|fpath$|cdpath$|manpath$|module_path$|prompt$|argv$|status$|histchars$"
    r"|auto_resume$)[a-z][a-z0-9_]*",
    re.ASCII,
)


def is_harmless_variable(name: str) -> bool:
    """Whether setting a variable in a script changes nothing but the script's own words."""
    return name in _HARMLESS_VARIABLES or _SCRIPT_VARIABLE.fullmatch(name) is not None


def is_harmless_prefix(name: str) -> bool:
    """Whether a variable may be set for a program without changing what the program runs."""
    return name in _HARMLESS_VARIABLES


class Word(msgspec.Struct, frozen=True):
    """One word: its value with holes where the value is not known."""

    text: str
    splits: bool = False
    """Whether the shell may make none or several words of it."""
    tilde: bool = False
    """Whether it begins with an unquoted `~` or `~/`."""
    glob: bool = False
    """Whether it splits only because it is a file name pattern: each result has its fixed start."""

    @property
    def literal(self) -> bool:
        """Whether it is one word, and all of its value is known."""
        return UNKNOWN_PART not in self.text and not self.splits

    @property
    def escaped_text(self) -> str:
        """Its value as a part of a command's text."""
        return self.text.translate(_BLANKS) or "''"


def literal_word(text: str) -> Word:
    """Return a word of known value."""
    return Word(text)


class Assignment(msgspec.Struct, frozen=True):
    """`NAME=value`, before a command or alone."""

    name: str
    value: Word


class Redirection(msgspec.Struct, frozen=True):
    """A file that a command reads from or writes to."""

    writes: bool
    target: Word


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """A simple command, and the commands that hide in its words."""

    words: tuple[Word, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    redirections: tuple[Redirection, ...] = ()
    repeated: bool = False
    """Whether it stands in a loop, a function or a trap, and may run more than once."""
    inner: tuple["Command", ...] = ()
    """What its words make it run."""
    reach: int = -1
    """The last word that says what else it does: a rule which names it knows what it allows."""
    sealed: str = ""
    """Why nobody can say what else it runs; empty when it can be said."""
    transparent: bool = False
    """Whether it does nothing but run what is inner."""

    @property
    def program(self) -> str:
        """The name of what is run, as it is written; empty for bare assignments."""
        return self.words[0].text if self.words else ""

    @property
    def text(self) -> str:
        """The words in one line, as rules see them."""
        return " ".join(word.escaped_text for word in self.words)

    @property
    def text_with_assignments(self) -> str:
        """The words with the assignments before them."""
        prefix = [f"{assignment.name}={assignment.value.escaped_text}" for assignment in self.assignments]
        return " ".join([*prefix, self.text]) if prefix else self.text
