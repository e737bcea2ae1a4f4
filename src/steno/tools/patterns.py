"""Patterns of paths, as Glob and Grep understand them: `src/**/*.{py,pyi}`."""

import os
import re
from typing import Final

from steno.guard.told import told_folder
from steno.tools.base import ToolFailure
from steno.tools.context import ToolContext
from steno.tools.texts import place
from steno.tools.words import shown

__all__ = ["folder_of", "glob_pattern"]

_MOST_CHOICES: Final = 256
_MOST_DEEP: Final = 4
_SIGN: Final = re.compile(r"\*+|\?|\[[!^]?\]?[^\]]*\]|\\.|.", re.DOTALL)
_RANGE: Final = re.compile(r"(.)-(.)|(.)", re.DOTALL)


def folder_of(pattern: str, path: str | None, context: ToolContext) -> tuple[str, str]:
    """Return the folder that a pattern is about, and what is left of the pattern inside of it.

    Raises:
        ToolFailure: there is no such folder.
    """
    if not pattern:
        raise ToolFailure("the pattern is empty")
    place(pattern, context)
    folder = place(path or ".", context)
    folder, pattern = told_folder(pattern, folder, context.cwd, context.env.get("HOME", ""))
    if not os.path.isdir(folder):
        raise ToolFailure(f"there is no folder {shown(folder)}")
    return folder, pattern


def glob_pattern(pattern: str) -> re.Pattern[str]:
    r"""Return what fits the paths that a pattern means, as seen from its folder.

    Raises:
        ToolFailure: it would take too long.

    >>> [bool(glob_pattern("src/**/*.{py,pyi}").fullmatch(p)) for p in ("src/a.py", "b.py")]
    [True, False]
    """
    choices = _choices(pattern, [])
    if any(choice.count("**") > _MOST_DEEP for choice in choices):
        raise ToolFailure(f"a pattern can hold ** at most {_MOST_DEEP} times")
    return re.compile("|".join(f"(?:{_translated(choice)})" for choice in choices), re.DOTALL)


def _choices(pattern: str, found: list[str]) -> list[str]:
    """Return the patterns without braces that a pattern with braces stands for."""
    braces = _innermost(pattern)
    if braces is None:
        found.append(pattern)
        if len(found) > _MOST_CHOICES:
            raise ToolFailure("a pattern cannot hold so many choices in braces")
        return found
    start, end = braces
    for choice in pattern[start + 1 : end].split(","):
        _choices(pattern[:start] + choice + pattern[end + 1 :], found)
    return found


def _innermost(pattern: str) -> tuple[int, int] | None:
    start, at = -1, 0
    while at < len(pattern):
        if pattern[at] == "\\":
            at += 1
        elif pattern[at] == "{":
            start = at
        elif pattern[at] == "}" and start >= 0:
            return start, at
        at += 1
    return None


def _translated(pattern: str) -> str:
    """Return the regular expression of a pattern without braces."""
    anchored = pattern.removeprefix("/")
    parts = anchored.split("/")
    if len(parts) == 1 and anchored == pattern:
        parts.insert(0, "**")
    last = len(parts) - 1
    out = ""
    for number, part in enumerate(parts):
        if part == "**":
            out += "(?:[^/]+/)*" if number < last else ".+"
        else:
            out += _segment(part) + ("/" if number < last else "")
    return out


def _segment(part: str) -> str:
    """Return the regular expression of one name in a pattern.

    What stands between two stars is looked for once, from left to right, and never again: that is
    enough, and no name can make it slow.
    """
    pieces = [""]
    for sign in _SIGN.findall(part):
        if sign.startswith("*"):
            pieces.append("")
        else:
            pieces[-1] += _expression(sign)
    first, *rest = pieces
    middle = "".join(f"(?>[^/]*?{piece})" for piece in rest[:-1])
    return first + middle + (f"[^/]*{rest[-1]}" if rest else "")


def _expression(sign: str) -> str:
    if sign == "?":
        return "[^/]"
    if sign.startswith("[") and sign.endswith("]") and len(sign) > 1:
        return _class(sign[1:-1])
    return re.escape(sign[1:] if len(sign) > 1 else sign)


def _class(inside: str) -> str:
    mark = "^" if inside.startswith(("!", "^")) else ""
    signs = ""
    for first, last, single in _RANGE.findall(inside[len(mark) :]):
        if single:
            signs += re.escape(single)
        elif first <= last:
            signs += f"{re.escape(first)}-{re.escape(last)}"
    return f"(?!/)[{mark}{signs}]" if signs else "(?!)"
