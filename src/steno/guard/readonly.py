"""Commands that only read: which of their options can neither write nor run anything.

An option that is not listed is not known to be harmless, and long options count only in full.

A command that runs confined may have words whose value is not known (`cat *.md`): the kernel decides
what they can reach. What the tables decide then is only what is worth a try without asking.
"""

import os
import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Final

import msgspec

from steno.guard.content_readers import formats_raw
from steno.guard.readers import FIND, FIND_PATHS, GIT, READ_ONLY, Plain
from steno.guard.words import Command, Word, harmless, literal

__all__ = ["Reads", "read_by", "repository_of"]


class Reads(msgspec.Struct, frozen=True):
    """What a command reads."""

    paths: tuple[Word, ...] = ()
    deep: bool = False
    """Whether it reads what is in files it was not given by name."""


def read_by(command: Command, *, confined: bool = False) -> Reads | None:
    """Return what a command reads; None when it is not known only to read.

    `confined` says that it will run where it can do nothing but read.
    """
    if not command.words or not command.words[0].literal:
        return None
    if command.sealed:
        return None
    if confined:
        found = _read_confined(command)
        if found is not None:
            return found
    if command.inner:
        return None
    name = command.program
    special = _SPECIAL.get(name)
    if special is not None:
        return special(_known(command.words) if confined else command.words)
    plain = READ_ONLY.get(name)
    if plain is None or (confined and name in _OF_OTHERS):
        return None
    return _plain(_known(command.words[1:]) if confined else command.words[1:], plain)


def _known(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return the words whose value is known; the kernel decides what the others can reach."""
    return tuple(word for word in words if word.literal)


def _read_confined(command: Command) -> Reads | None:
    """Return what a command reads that only reads because it is confined."""
    name, words = command.program, _known(command.words)
    texts = [word.text for word in words[1:]]
    if name in _SCRIPTED:
        if command.inner or any(_IN_PLACE.match(text) for text in texts):
            return None
        files = [word for word in words[1:] if not word.text.startswith("-")][1:]
        return Reads(tuple(word for word in files if "=" not in word.text))
    if name == "find":
        if any(text in _FIND_CHANGES for text in texts):
            return None
        return _find(_without_exec(words))
    if name == "xargs":
        return Reads() if command.inner and not _XARGS_FILE.search(" ".join(texts)) else None
    if len(texts) == 1 and len(words) == len(command.words) and _BARE.fullmatch(name):
        short = texts[0] == "-v" and name in _VERSION_IS_V
        return Reads() if short or texts[0] in _ABOUT else None
    if name in _LISTS and texts and _LISTS[name].fullmatch(texts[0]):
        files = [word for word in words[2:] if not word.text.startswith("-")]
        plain = len(files) == len(words[2:]) and not command.inner
        return Reads(tuple(files)) if plain else None
    return None


# Programs that list what is in an archive, and the options with which they do nothing else.
_LISTS: Final[Mapping[str, re.Pattern[str]]] = {
    "tar": re.compile(r"-?t[vzjJ]*f?|-?[zjJv]*tf|--list"),
    "unzip": re.compile(r"-[lZ]1?"),
    "zipinfo": re.compile(r"-1"),
}
_VERSION_IS_V: Final = frozenset(
    {"node", "npm", "pnpm", "yarn", "bun", "ruby", "php", "tsc", "perl", "rg", "mvn", "gradle"}
)


_SCRIPTED: Final = frozenset({"awk", "gawk", "mawk", "nawk", "sed", "gsed"})
_IN_PLACE: Final = re.compile(r"-[a-zA-Z]*[iI]|--in-place|-f$|--file|--include|--load")
_FIND_CHANGES: Final = frozenset(
    {"-delete", "-fprint", "-fprint0", "-fls", "-fprintf", "-ok", "-okdir", "-files0-from"}
)
_XARGS_FILE: Final = re.compile(r"(?:^| )(?:-[a-zA-Z0-9]*a|--arg-file)")
_ABOUT: Final = frozenset({"--version", "-V", "--help", "version"})
_BARE: Final = re.compile(r"[A-Za-z0-9][\w.+-]*")
# They tell of other processes, which a confined program does not see.
_OF_OTHERS: Final = frozenset({"ps", "lsof"})


def _without_exec(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return the words of `find` without the commands it runs, which are judged by themselves."""
    found: list[Word] = []
    inside = False
    for at, word in enumerate(words):
        if word.text in {"-exec", "-execdir"}:
            inside = True
        elif inside and (word.text == ";" or (word.text == "+" and words[at - 1].text == "{}")):
            inside = False
        elif not inside:
            found.append(word)
    return tuple(found)


def _plain(words: tuple[Word, ...], plain: Plain) -> Reads | None:
    """Hold words against what a program may be given."""
    if plain.operands == "text" and not plain.short and not plain.valued and not plain.long:
        return Reads()
    operands: list[Word] = []
    deep = plain.deep == "*"
    has_pattern = False
    rest = iter(words)
    for word in rest:
        if not word.literal:
            return None
        if word.text == "--":
            operands += rest
            break
        if not word.text.startswith("-") or word.text == "-":
            operands.append(word)
            continue
        taken = _option(word.text, plain)
        if taken is None:
            return None
        deep = deep or _is_deep(word.text, plain)
        has_pattern = (
            has_pattern or re.match(r"-[^-]*e|--regexp|--files|--type-list", word.text) is not None
        )
        if taken:
            value = next(rest, None)
            if value is None or not value.literal:
                return None
    return _operands(operands, plain, deep=deep, has_pattern=has_pattern)


def _operands(operands: list[Word], plain: Plain, *, deep: bool, has_pattern: bool) -> Reads | None:
    if any(not word.literal for word in operands) or len(operands) > plain.most:
        return None
    if plain.operands == "none":
        return Reads() if not operands else None
    if plain.operands == "text":
        return Reads()
    if plain.operands == "pattern" and not has_pattern:
        operands = operands[1:]
    return Reads(tuple(word for word in operands if word.text != "-"), deep)


def _option(text: str, plain: Plain) -> bool | None:
    """Return whether an option takes the next word; None when it is not listed."""
    if text.startswith("--"):
        name, given, _ = text.partition("=")
        if name in plain.long_valued.split():
            return not given
        return False if name in plain.long.split() else None
    if plain.numbers and re.fullmatch(r"-[0-9]+", text):
        return False
    for at, letter in enumerate(text[1:], 2):
        if letter in plain.valued:
            return not text[at:]
        if letter not in plain.short:
            return None
    return False


def _is_deep(text: str, plain: Plain) -> bool:
    if text.startswith("--"):
        return text[2:].partition("=")[0] in plain.deep.split()
    return any(letter in plain.deep.split() for letter in text[1:])


def _find(words: tuple[Word, ...]) -> Reads | None:
    paths: list[Word] = []
    tests = False
    after = ""
    for word in words[1:]:
        if not word.literal:
            return None
        text = word.text
        tests = tests or text.startswith("-") or text in {"(", "!"}
        if text.startswith("-") and text not in FIND and not re.fullmatch(r"-[0-9]+.*", text):
            return None
        if after in FIND_PATHS or not tests:
            paths.append(word)
        after = text
    return Reads(tuple(paths))


def _git(words: tuple[Word, ...]) -> Reads | None:
    """`git` with a subcommand that reads; options before it only where they change nothing."""
    rest = list(words[1:])
    paths: list[Word] = [literal(".")]
    while rest and rest[0].text.startswith("-"):
        option = rest.pop(0).text
        if option == "-C" and rest and rest[0].literal:
            paths.append(rest.pop(0))
        elif option not in {"--no-pager", "--no-optional-locks", "--version"}:
            return None
    if not rest:
        return Reads()
    if not rest[0].literal:
        return None
    name, given = rest[0].text, tuple(rest[1:])
    if _is_listing(name, tuple(word.text for word in given)):
        return Reads(tuple(paths))
    if name == "reflog" and given and not given[0].text.startswith("-"):
        return None
    given = tuple(word for word in given if name != "status" or word.text not in _UNTRACKED)
    plain = GIT.get(name)
    found = _plain(given, plain) if plain is not None else None
    if found is None:
        return None
    return Reads((*paths, *found.paths), deep=_shows_content(name, given))


def _is_listing(name: str, texts: tuple[str, ...]) -> bool:
    """Whether a git command lists things, by words that mean something else in other places."""
    if name == "tag" and texts[:1] in {("-l",), ("--list",)}:
        # What follows are patterns; without the option a word would be the name of a new tag.
        return all(_PLAIN_PATTERN.fullmatch(text) for text in texts[1:])
    return (name, *texts) in {("stash", "list"), ("worktree", "list")}


_PLAIN_PATTERN: Final = re.compile(r"[\w*?.][\w*?./-]*")
_UNTRACKED: Final = frozenset({"-uall", "-uno", "-unormal"})


def _shows_content(name: str, given: tuple[Word, ...]) -> bool:
    """Whether a git command may print what is in files, also in ones that were committed once."""
    options = [word.text for word in given if word.text.startswith("-") and word.text != "--"]
    if name in {"log", "diff"}:
        plain = all(_SUMMARY.fullmatch(option) for option in options)
        return not plain or (name == "diff" and not any(map(_NAMES.fullmatch, options)))
    if name == "status":
        return any(re.match(r"-[a-z]*v|--v", option) for option in options)
    if name in {"branch", "for-each-ref", "tag"} and formats_raw(given):
        return True
    return name not in _METADATA


_METADATA: Final = frozenset(
    {"branch", "describe", "ls-files", "ls-tree", "merge-base", "remote", "rev-list", "rev-parse"}
    | {"shortlog", "tag", "check-ignore", "for-each-ref", "count-objects", "name-rev", "version"}
)
_NAMES: Final = re.compile(r"--(?:stat|shortstat|numstat|name-only|name-status)")
_SUMMARY: Final = re.compile(
    r"-[0-9]+|-n(?:[0-9]+)?|--(?:oneline|graph|all|decorate|no-decorate|stat|shortstat|numstat"
    r"|name-only|name-status|abbrev-commit|reverse|merges|no-merges|first-parent|follow|no-color"
    r"|tags|branches|remotes|cached|staged|exit-code|quiet"
    r"|(?:format|pretty|since|until|after|before|author|max-count|skip|date)(?:=.*)?)",
    re.DOTALL,
)


def _sed(words: tuple[Word, ...]) -> Reads | None:
    """`sed -n 1,5p file`."""
    given = words[1:]
    if any(not word.literal for word in given):
        return None
    match [word.text for word in given]:
        case ["-n", script, *_] if re.fullmatch(r"[0-9]+(?:,(?:[0-9]+|\$))?p", script):
            files = given[2:]
            return Reads(files) if not any(f.text.startswith("-") for f in files) else None
        case _:
            return None


def _read(words: tuple[Word, ...]) -> Reads | None:
    for word in words[1:]:
        if not word.literal:
            return None
        if word.text != "-r" and not (re.fullmatch(r"\w+", word.text) and harmless(word.text)):
            return None
    return Reads()


def _declared(words: tuple[Word, ...]) -> Reads | None:
    for word in words[1:]:
        name, given, _ = word.text.partition("=")
        if not harmless(name) or (not given and words[0].text != "unset" and not word.literal):
            return None
    return Reads()


def _jq(words: tuple[Word, ...]) -> Reads | None:
    found = _plain(words[1:], READ_ONLY["jq"])
    texts = " ".join(word.text for word in words[1:])
    # A filter may read the environment and files of its own.
    return (
        found if not re.search(r"\benv\b|ENV|import|include|input_|getpath|\$__", texts) else None
    )


def _date(words: tuple[Word, ...]) -> Reads | None:
    # Anything but a format would set the clock.
    formats = [word for word in words[1:] if not word.text.startswith("-")]
    known = all(
        word.text.startswith("+") or before.text in {"-d", "--date"}
        for before, word in pairwise(words)
        if word in formats
    )
    return _plain(words[1:], READ_ONLY["date"]) if known else None


def _test(words: tuple[Word, ...]) -> Reads | None:
    if any(not word.literal for word in words):
        return None
    known = re.compile(r"-[fderwxszLhn]|-nt|-ot|-ef|-eq|-ne|-lt|-le|-gt|-ge|!|=|==|!=|[^-].*|")
    return Reads() if all(known.fullmatch(word.text) for word in words[1:]) else None


_SPECIAL: Final[Mapping[str, Callable[[tuple[Word, ...]], Reads | None]]] = {
    "find": _find,
    "git": _git,
    "sed": _sed,
    "read": _read,
    "export": _declared,
    "local": _declared,
    "readonly": _declared,
    "unset": _declared,
    "jq": _jq,
    "date": _date,
    "test": _test,
}


def repository_of(folder: str) -> str:
    """Return the folder whose `.git` git would use; `?` when it might be one made to look so."""
    at = os.path.realpath(folder)
    while True:
        if os.path.lexists(os.path.join(at, ".git")):
            return at
        if all(os.path.lexists(os.path.join(at, name)) for name in ("HEAD", "objects", "refs")):
            return "?"
        above = os.path.dirname(at)
        if above == at:
            return ""
        at = above
