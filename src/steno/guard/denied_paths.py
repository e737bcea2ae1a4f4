"""The files and folders that rules keep from being read, as they are on disk now.

The kernel knows no patterns, so what `Read(.env)` or `Read(**/*.pem)` means is looked up in the
working folders before a command runs confined there.
"""

import os
import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from steno.errors import StenoError
from steno.guard.paths import Place, folded
from steno.guard.patterns import PathPattern
from steno.guard.rules import Rules

__all__ = ["TooManyFiles", "denied_paths"]

_MOST: Final = 200_000
_MAGIC: Final = frozenset("*?[!")


class TooManyFiles(StenoError):
    """The working folders have more files than patterns are looked up in."""


def denied_paths(
    rules: Rules, folders: Iterable[str], *, tool: str = "Read", most: int = _MOST
) -> tuple[str, ...]:
    """Return the real paths in the folders that a tool must not use, folders for their files.

    Rules that deny and rules that ask both count: nobody is asked about what a confined command
    opens. Further names of a file (hard links) are not listed.

    Raises:
        TooManyFiles: a pattern would have to be looked up in more files than `most`.
    """
    roots = tuple(dict.fromkeys(os.path.realpath(folder) for folder in folders))
    patterns = [
        pattern
        for kind in ("deny", "ask")
        for rule in rules.about(kind, tool)
        for pattern in rule.paths or (PathPattern("/", "/**"),)
    ]
    found: dict[str, None] = {}
    walked: list[PathPattern] = []
    for pattern in patterns:
        path = _plain(pattern)
        if not path:
            walked.append(pattern)
        elif os.path.lexists(path):
            found[path] = None
    if walked:
        budget = _Budget(most)
        for root in roots:
            for path in _matching(root, _Matcher(walked), budget):
                found[path] = None
    return tuple(_resolved(found))


def _plain(pattern: PathPattern) -> str:
    """Return the path that an anchored pattern without magic means; empty for any other."""
    text = pattern.pattern.removesuffix("/**").removesuffix("/")
    anchored = text.startswith("/") or "/" in text
    return (
        os.path.join(pattern.base, text.lstrip("/")) if anchored and not _MAGIC & set(text) else ""
    )


class _Budget(msgspec.Struct):
    left: int

    def spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise TooManyFiles("the working folders have too many files to look up deny rules in")


class _Matcher:
    """Holds names against patterns: most of them say only what a name looks like."""

    def __init__(self, patterns: Iterable[PathPattern]) -> None:
        names: list[str] = []
        self._rest: list[PathPattern] = []
        for pattern in patterns:
            text = pattern.pattern.removeprefix("**/").removesuffix("/**").removesuffix("/")
            if "/" in text or "[" in text or "\\" in text or not text:
                self._rest.append(pattern)
            else:
                names.append(_name_regex(text))
        self._names = re.compile("|".join(names) or r"(?!)", re.IGNORECASE | re.DOTALL)

    def fits(self, path: str, name: str) -> bool:
        if self._names.fullmatch(name):
            return True
        # As the laxest of file systems compares names.
        if not name.isascii() and self._names.fullmatch(folded(name)):
            return True
        return any(pattern.touches(Place(path, path)) for pattern in self._rest)


def _name_regex(text: str) -> str:
    return "".join(
        "[^/]*" if char == "*" else "[^/]" if char == "?" else re.escape(char)
        for char in folded(text)
    )


def _matching(root: str, matcher: _Matcher, budget: _Budget) -> Iterator[str]:
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                listed = list(entries)
        except OSError:
            continue
        for entry in listed:
            budget.spend()
            if matcher.fits(entry.path, entry.name):
                yield entry.path
            elif entry.is_dir(follow_symlinks=False) and not entry.path.endswith("/.git/objects"):
                waiting.append(entry.path)


def _resolved(found: Iterable[str]) -> Iterator[str]:
    """Yield what paths lead to; a link itself holds nothing."""
    seen: dict[str, None] = {}
    for path in found:
        seen[os.path.realpath(path)] = None
    yield from filter(os.path.lexists, seen)
