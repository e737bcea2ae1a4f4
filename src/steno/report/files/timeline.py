"""Versions → what stands in the column of time, newest first."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

import msgspec

from steno.report import words
from steno.report.files.values import Version
from steno.session.story.steps import one_line

__all__ = ["Entry", "brief_day", "entries_of", "how_of", "what_of", "when_of", "where_of"]

_SAID: Final = 160
_SECOND: Final = 1000
_SHORT: Final = 3
_TITLE: Final = 80
_WHAT: Final = {"write": "Written", "edit": "Edited", "read": "Read", "command": "May have changed"}

_HOW: Final = {
    "exact": {
        "write": "Exact: it was written as a whole.",
        "edit": "Exact: the client kept the whole file.",
        "read": "Exact: it was read as a whole.",
        "outside": "Exact: what came next recorded the whole file.",
        "command": "Exact: what came later shows that nothing changed.",
    },
    "derived": "Derived: the file before, with the edit carried out.",
    "partial": "In part: only some lines were ever read or recorded.",
    "unknown": "Not known: nobody recorded it.",
}


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One row: a version, or reads that came one after the other."""

    version: Version
    """The one that the row opens."""
    names: tuple[str, ...]
    what: str
    kind: str
    say: str
    where: str
    when: str
    day: str = ""
    """The day, where it is another than that of the row above."""


def entries_of(versions: Sequence[Version], now: float) -> list[Entry]:
    """Return the rows. Commands that are known to have changed nothing are left out."""
    shown = [each for each in reversed(versions) if not each.settled]
    made = [_entry(group, now) for group in _groups(shown)]
    days = [_day(entry.version, now) for entry in made]
    return [
        msgspec.structs.replace(entry, day=day if day != before else "")
        for entry, (before, day) in zip(made, pairwise(["", *days]), strict=True)
    ]


def _groups(shown: Iterable[Version]) -> Iterator[list[Version]]:
    group: list[Version] = []
    for version in shown:
        if group and not _together(group[0], version):
            yield group
            group = []
        group.append(version)
    if group:
        yield group


def _together(one: Version, other: Version) -> bool:
    return (
        one.verb == other.verb == "read"
        and one.session == other.session
        and one.agent == other.agent
        and one.abandoned == other.abandoned
    )


def _entry(group: list[Version], now: float) -> Entry:
    version = group[0]
    turns = sorted({each.turn for each in group})
    return Entry(
        version=version,
        names=tuple(each.name for each in group),
        what=f"Read {len(group)} times" if len(group) > 1 else what_of(version),
        kind=_kind(version),
        say=_say(version),
        where=where_of(version, turns),
        when=when_of(version),
        day=_day(version, now),
    )


def what_of(version: Version) -> str:
    """Return what happened, in a word or two."""
    if version.verb == "outside":
        return "Put back" if version.back else "Changed outside"
    what = _WHAT[version.verb]
    if version.tool == "attached":
        what = "Attached"
    return f"{what}, then rewound" if version.abandoned and version.verb != "read" else what


def how_of(version: Version) -> str:
    """Return how it is known, in a sentence."""
    told = _HOW[version.known]
    return told if isinstance(told, str) else told[version.verb]


def _kind(version: Version) -> str:
    if version.abandoned:
        return "gone"
    return {"write": "edit", "edit": "edit"}.get(version.verb, version.verb)


def _say(version: Version) -> str:
    if version.verb == "outside":
        return version.note.partition(";")[0].partition(":")[0].rstrip(".")
    if version.verb == "command":
        return one_line(version.command, _SAID)
    return one_line(version.prompt, _SAID)


def where_of(version: Version, turns: Sequence[int] = ()) -> str:
    """Return which session, and where in it."""
    numbers = [number for number in turns or [version.turn] if number]
    parts: list[str] = []
    if version.agent:
        parts.append("sub-agent")
    elif len(numbers) > 1:
        parts.append(f"turns {numbers[0]}\N{EN DASH}{numbers[-1]}")
    elif numbers:
        parts.append(f"turn {numbers[0]}")
    if version.verb == "outside" and parts:
        parts[0] = f"found in {parts[0]}"
    return " · ".join([*parts, one_line(version.title, _TITLE) or "Untitled"])


def when_of(version: Version) -> str:
    """Return the time of day."""
    return "" if version.time is None else words.clock(version.time / _SECOND)


def _day(version: Version, now: float) -> str:
    return "Undated" if version.time is None else brief_day(version.time / _SECOND, now)


def brief_day(seconds: float, now: float) -> str:
    """Return a day in a word: Today, Yesterday, Fri, 9 Nov, 3 Sep 2025."""
    told = words.day(seconds, now)
    first, *rest = told.split()
    if not rest:
        return told
    if not first.isdecimal():
        return first[:_SHORT]
    return " ".join([first, rest[0][:_SHORT], *rest[1:]])
