"""Patterns of rules: texts with `*` for commands, gitignore patterns for paths."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import msgspec

from steno.guard.paths import Place, folded, inside_parts
from steno.guard.words import GAP, HOLE

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

__all__ = ["PathPattern", "TextPattern", "path_pattern", "text_pattern"]

_MOST: Final = 4000


class TextPattern(msgspec.Struct, frozen=True):
    """A pattern over the text of a command; `*` stands for anything."""

    text: str
    named: int
    """How many words it gives in full before its first `*`; all of them counts as very many."""

    @property
    def is_open(self) -> bool:
        """Whether it leaves words open: it has a `*`."""
        return "*" in self.text

    def covers(self, command: str) -> bool:
        """Whether a command fits, whatever its holes stand for."""
        return self._star_spans(command) is not None

    def unnamed(self, words: Sequence[str]) -> dict[int, int] | None:
        """Return the words that `*` covers at least in part; None when the command does not fit.

        The value is how many characters of the word the rule names before the first `*` in it.
        """
        stars = self._star_spans(" ".join(words))
        if stars is None:
            return None
        covered: dict[int, int] = {}
        begin = star = 0
        for place, word in enumerate(words):
            end = begin + len(word)
            while star < len(stars) and stars[star][1] <= begin:
                star += 1
            if star < len(stars) and stars[star][0] < end:
                covered[place] = max(0, stars[star][0] - begin)
            begin = end + 1
        return covered

    def _star_spans(self, command: str) -> list[tuple[int, int]] | None:
        """Return the parts of a command's text that each `*` stands for, as early as possible."""
        first, *middle = self.text.split("*")
        if not middle:
            return [] if command == first else None
        last = middle.pop()
        # `ls *` covers a bare `ls` too, and never `lsof`.
        if not middle and not last and first.endswith(" ") and command == first[:-1]:
            return []
        if not command.startswith(first):
            return None
        found: list[tuple[int, int]] = []
        at = len(first)
        for fixed in middle:
            place = command.find(fixed, at)
            if place < 0:
                return None
            found.append((at, place))
            at = place + len(fixed)
        end = len(command) - len(last)
        if end < at or not command.endswith(last):
            return None
        return [each for each in (*found, (at, end)) if each[0] < each[1]]

    def may_cover(self, command: str) -> bool:
        """Whether something that a command may turn out to be fits."""
        if HOLE not in command:
            return self.covers(command)
        for pattern in (self.text, self.text.removesuffix(" *")):
            if _meet(pattern, command.replace(HOLE, "*") if "*" not in command else command):
                return True
        return False


def text_pattern(specifier: str) -> TextPattern:
    """Read the inside of a `Bash(…)` rule: exact, `words:*`, or with `*` anywhere."""
    text = specifier.strip()
    if text.endswith(":*"):
        text = text[:-2] + " *"
    text = _with_gaps(text)
    fixed, star, _ = text.partition("*")
    if not star:
        return TextPattern(text, _MOST)
    named = len(fixed.split()) - (0 if fixed.endswith(" ") or not fixed else 1)
    return TextPattern(text, named)


def _with_gaps(text: str) -> str:
    """Take quotes off as the shell does, so that a rule and a command look alike."""
    if not re.search(r"['\"\\]", text):
        return " ".join(text.split())
    import shlex

    try:
        words = shlex.split(text)
    except ValueError:
        return text
    return " ".join(re.sub(r"[ \t\n]", GAP, word) or "''" for word in words)


def _meet(one: str, other: str) -> bool:
    """Whether any text fits both of two patterns."""
    reach = {0}
    reach = _stars(one, reach)
    for char in other:
        if char == "*":
            reach = set(range(min(reach), len(one) + 1)) if reach else reach
            continue
        after: set[int] = set()
        for at in reach:
            if at < len(one) and one[at] == "*":
                after.add(at)
            elif at < len(one) and one[at] == char:
                after.add(at + 1)
        reach = _stars(one, after)
        if not reach:
            return False
    return len(one) in reach


def _stars(pattern: str, reach: set[int]) -> set[int]:
    """Add the places that are reached by letting a `*` stand for nothing."""
    found = set(reach)
    for at in sorted(reach):
        step = at
        while step < len(pattern) and pattern[step] == "*":
            step += 1
            found.add(step)
    return found


class PathPattern(msgspec.Struct, frozen=True):
    """A gitignore pattern below a folder."""

    base: str
    """The folder it is below, absolute."""
    pattern: str

    def covers(self, place: Place) -> bool:
        """Whether a rule that allows fits: the resolved path, exactly."""
        rest = inside_parts(place.real_parts, Place.of(self.base).real_parts)
        return rest is not None and _fits(self.pattern, "/".join(rest))

    def touches(self, place: Place) -> bool:
        """Whether a rule that forbids fits: any of the path's names, however it is spelled."""
        base = Place.of(self.base)
        pattern = folded(self.pattern)
        for parts in place.all_parts:
            for below in (base.parts, base.real_parts):
                rest = inside_parts(tuple(map(folded, parts)), tuple(map(folded, below)))
                if rest is None:
                    continue
                path = "/".join(rest)
                if _fits(pattern, path) or _fits(pattern.removesuffix("/**"), path):
                    return True
        return False


def path_pattern(specifier: str, root: str, cwd: str, home: str) -> PathPattern | None:
    """Read the inside of a `Read(…)` or `Edit(…)` rule; None when it makes no sense."""
    text = specifier.strip()
    if not text or text.startswith("!") or "\n" in text or "\0" in text:
        return None
    if text.startswith("//"):
        return PathPattern("/", "/" + text[2:].lstrip("/"))
    if text == "~" or text.startswith("~/"):
        return PathPattern(home, "/" + text[2:]) if home else None
    if text.startswith("/"):
        return PathPattern(root, text)
    if text.startswith("./"):
        return PathPattern(cwd, "/" + text[2:])
    if text.startswith("../") or text == "..":
        return None
    return PathPattern(cwd, text)


def _fits(pattern: str, path: str) -> bool:
    if pattern in {"/", "/**", "**"}:
        return True
    return bool(path) and _spec(pattern).match_file(path)


@lru_cache(maxsize=1024)
def _spec(pattern: str) -> "GitIgnoreSpec":
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines([pattern])
