"""One file through all sessions, and what lies between two of its versions."""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from difflib import SequenceMatcher
from typing import Final, TypeAlias

import msgspec

from steno.index.changes import shared_ends
from steno.report.files.finding import Finder, Opener
from steno.report.files.rebuild import rebuild
from steno.report.files.texts import normal
from steno.report.files.values import History, Version

__all__ = ["Stretch", "diff", "history", "shown", "surviving"]


_MOST: Final = 50_000_000


class Stretch(msgspec.Struct, frozen=True):
    """Some lines of a diff with their signs: a space, `-` or `+`."""

    old: int
    new: int
    lines: tuple[str, ...]


def history(
    connection: sqlite3.Connection,
    path: str,
    opened: Opener | None = None,
    counts: Callable[[str], bool] | None = None,
) -> History | None:
    """Return everything that is known of a file; None where no session touched it.

    `opened` gives a session; without it nothing is known about abandoned branches. `counts` says of
    a project whether its sessions may be told; without it all are.
    """
    with Finder(connection, path, opened, counts) as finder:
        versions = rebuild(finder.touches())
        owners = finder.owners
        told = tuple(
            msgspec.structs.replace(
                version,
                title=owners[version.file].title,
                turn=finder.turn(version.file, version.turn),
                prompt=finder.prompt(version.file, version.turn, version.offset),
            )
            for version in versions
        )
        if not told and not finder.lost:
            return None
        project = next((owners[v.file].project for v in reversed(told)), "")
        if not project and owners:
            project = next(iter(owners.values())).project
        return History(path=path, project=project, versions=told, lost=finder.lost)


def shown(version: Version) -> str | None:
    """Return the text of a version as its readers saw it; of one known in part what is known."""
    return None if version.text is None else normal(version.text)


_Code: TypeAlias = tuple[str, int, int, int, int]
"""What became of some lines, as `difflib` says it."""


def diff(before: str, after: str, context: int = 3) -> list[Stretch]:
    """Return what changed from one text to another."""
    old, new = _lines(before), _lines(after)
    if old == new:
        return []
    # What is alike at the ends is no part of the search, so that lines are counted as elsewhere.
    head, tail = shared_ends(old, new)
    start, before_tail = max(0, head - context), max(0, tail - context)
    codes = _codes(old[head : len(old) - tail], new[head : len(new) - tail], head - start)
    old, new = old[start : len(old) - before_tail], new[start : len(new) - before_tail]
    made: list[Stretch] = []
    for group in _groups(codes, len(old), len(new), context):
        lines: list[str] = []
        for tag, a, b, c, d in group:
            if tag == "equal":
                lines += [f" {line}" for line in old[a:b]]
                continue
            lines += [f"-{line}" for line in old[a:b]]
            lines += [f"+{line}" for line in new[c:d]]
        made.append(Stretch(group[0][1] + start + 1, group[0][3] + start + 1, tuple(lines)))
    return made


def _codes(old: Sequence[str], new: Sequence[str], shift: int) -> list[_Code]:
    """Return what became of the lines between the ends that are alike."""
    if len(old) * len(new) > _MOST:
        # To find what stayed the same between such texts takes longer than anybody waits.
        return [("replace", shift, shift + len(old), shift, shift + len(new))]
    return [
        (tag, a + shift, b + shift, c + shift, d + shift)
        for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    ]


def _groups(codes: list[_Code], olds: int, news: int, context: int) -> Iterable[list[_Code]]:
    """Yield changes that stand near each other, with the lines around them."""
    first, last = codes[0], codes[-1]
    group: list[_Code] = [("equal", 0, first[1], 0, first[3])] if first[1] else []
    for code in codes:
        tag, a, b, c, d = code
        if tag == "equal" and b - a > 2 * context:
            yield [*group, (tag, a, a + context, c, c + context)]
            group = [(tag, b - context, b, d - context, d)]
        else:
            group.append(code)
    if last[2] < olds:
        group.append(("equal", last[2], olds, last[4], news))
    yield group


def surviving(before: str, after: str, last: str) -> tuple[int, int]:
    """Return how many of the lines that a change put in still stand, and how many it put in."""
    standing: dict[str, int] = {}
    for line in _lines(last):
        standing[line] = standing.get(line, 0) + 1
    added = [
        line[1:]
        for stretch in diff(before, after, 0)
        for line in stretch.lines
        if line.startswith("+") and line[1:].strip()
    ]
    still = 0
    for line in added:
        if standing.get(line):
            standing[line] -= 1
            still += 1
    return still, len(added)


def _lines(text: str) -> list[str]:
    lines = normal(text).split("\n")
    if not lines[-1]:
        lines.pop()
    return lines
