r"""Markdown of strangers that stays what it is: no HTML in it acts, no picture is loaded, no fence runs on.

Where code begins and ends is not guessed the way each reader of Markdown would: fences are written
anew, at the margin and longer than any in them, and a span counts as code only where nothing around
it could be taken for another. Everywhere else `<` is an entity, which no backslash before it undoes.

>>> calm("see <b>this</b>, ![x](http://far/) and `<i>`")
'see &lt;b>this&lt;/b>, !\\[x](http://far/) and `<i>`'
>>> calm("```sh\n# a note")
'```sh\n# a note\n```'
"""

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Final

__all__ = ["calm", "fence_for"]

_FENCE: Final = re.compile(r"(?P<pad>[ \t]*)(?P<mark>`{3,}(?=[^`]*$)|~{3,})(?P<info>.*)")
_LISTED: Final = re.compile(r"^([ \t]*(?:(?:[-*+>]|\d{1,9}[.)])[ \t]*)+)(?=```|~~~)")
"""A fence behind the mark of a list or a quote, which ends with it and not where it seems to."""
_TICKS: Final = re.compile(r"`{3,}")
_WORD: Final = re.compile(r"[\w+#.-]{0,40}")
_HEADING: Final = re.compile(r"^( {0,3})(#{1,6})(?=[ \t]|$)")
_RULE: Final = re.compile(r" {0,3}(?:=+|-+)[ \t]*")
_DOUBTFUL: Final = re.compile(r"``|\\`")
_ACTS: Final = re.compile(r"<(?=[A-Za-z/!?])|!(?=\[)")
_ACTS_OR_CODE: Final = re.compile(rf"(?P<code>`[^`]*`)|{_ACTS.pattern}")
_DEEPEST: Final = 6


def calm(text: str, deeper: int = 0) -> str:
    """Return Markdown that acts on nothing; headings become so much deeper, and are none else."""
    lines = text.split("\n")
    made: list[str] = []
    plain: list[str] = []
    at = 0
    while at < len(lines):
        found = _FENCE.fullmatch(lines[at])
        if found is None:
            plain.append(lines[at])
            at += 1
            continue
        made += _plain(plain, deeper)
        plain = []
        end = _end(lines, at + 1, found)
        made += _fenced(lines[at + 1 : end], found)
        at = end + 1
    return "\n".join([*made, *_plain(plain, deeper)])


def fence_for(text: str) -> str:
    """Return a fence that nothing in a text can end."""
    return "`" * max(3, 1 + max((len(found) for found in _TICKS.findall(text)), default=2))


def _end(lines: list[str], at: int, opened: re.Match[str]) -> int:
    """Return where a fence is closed: at the end of all lines, where it never is."""
    mark = opened["mark"]
    for place in range(at, len(lines)):
        said = lines[place].strip(" \t")
        if len(said) >= len(mark) and said == mark[0] * len(said):
            return place
    return len(lines)


def _fenced(body: list[str], opened: re.Match[str]) -> Iterator[str]:
    fence = fence_for("\n".join(body))
    word = _WORD.match(opened["info"].strip())
    yield fence + (word[0] if word else "")
    pad = len(opened["pad"])
    for line in body:
        yield line[min(pad, len(line) - len(line.lstrip(" \t"))) :]
    yield fence


def _plain(lines: list[str], deeper: int) -> Iterator[str]:
    """Yield lines outside of fences, paragraph by paragraph: no span of code goes beyond one."""
    for blank, group in groupby(lines, key=lambda line: not line.strip()):
        paragraph = list(group)
        sure = all(line.count("`") % 2 == 0 and not _DOUBTFUL.search(line) for line in paragraph)
        for place, line in enumerate(paragraph):
            if deeper and place and _RULE.fullmatch(line):
                # A line of the text above it must not become a heading.
                yield ""
            yield line if blank else _line(line, deeper, sure=sure)


def _line(line: str, deeper: int, *, sure: bool) -> str:
    made = (_ACTS_OR_CODE if sure else _ACTS).sub(_calmed, _LISTED.sub(r"\1\\", line))
    if not deeper:
        return made
    return _HEADING.sub(lambda it: it[1] + "#" * min(_DEEPEST, len(it[2]) + deeper), made)


def _calmed(found: re.Match[str]) -> str:
    if found[0].startswith("`"):
        return found[0]
    return "&lt;" if found[0] == "<" else "!\\"
