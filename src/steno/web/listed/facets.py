"""What the list can be narrowed by: links that turn something on, or off again."""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from steno.index.opened import Index
from steno.report import words
from steno.report.listing import (
    HAS,
    SIZES,
    Choice,
    Count,
    FacetName,
    FacetValues,
    Has,
    Size,
    counts_of,
    facets_of,
    files_at,
    lengths_of,
    list_sessions,
    sizes_of,
    statuses_of,
)
from steno.report.session_status import StatusFilter
from steno.web.house import House
from steno.web.listed.asked import Asked, since_of
from steno.web.paint import links
from steno.web.tags import tag_of

__all__ = ["Counted", "Facet", "among", "counted", "facets_for"]

_SHOWN: Final = 6
"""How many values of a facet are shown before `more`."""
_NAMES: Final[dict[Has, tuple[str, str]]] = {
    "failed": ("warn", "Failed steps"),
    "agents": ("agent", "Sub-agents"),
    "compacted": ("fold", "Compactions"),
    "abandoned": ("rewind", "Abandoned branches"),
    "archived": ("archive", "Archived only"),
    "pr": ("branch", "Pull requests"),
    "answered": ("say", "Text answers"),
}
_TIMES: Final = (
    ("", "Any time"),
    ("today", "Today"),
    ("week", "This week"),
    ("month", "This month"),
)


_STATES: Final[dict[StatusFilter, tuple[str, str]]] = {
    "live": ("run", "Live"),
    "waiting": ("clock", "Left waiting"),
    "finished": ("check", "Finished"),
    "interrupted": ("stop", "Interrupted"),
    "failed": ("cross", "Ended in an error"),
    "damaged": ("warn", "Damaged"),
}
"""How sessions stand, in the words of `steno ls`; and whether something of them is lost."""
_SIZES: Final[dict[Size, str]] = {
    "small": "Under 100 KB",
    "medium": "100 KB to 1 MB",
    "large": "1 to 10 MB",
    "huge": "Over 10 MB",
}


class Facet(msgspec.Struct, frozen=True):
    """Something to filter by: a link that turns it on, or off again."""

    name: str
    number: int
    href: str
    on: bool
    icon: str = ""


class Counted(msgspec.Struct, frozen=True):
    """How many sessions there are of each kind, beside what is chosen."""

    having: dict[Has, int]
    since: list[int]
    """Any time, then since each of the times."""
    statuses: dict[str, int]
    sizes: dict[Size, int]
    lengths: dict[int, int]
    """How many have at least so many step records."""
    listed: int
    """How many the list rule shows."""
    values: dict[FacetName, FacetValues]


def counted(connection: sqlite3.Connection, choice: Choice, starts: Sequence[int]) -> Counted:
    """Count; this is most of the work of the page, and the same until the index changes."""
    having, since = counts_of(connection, choice, starts)
    anytime = msgspec.structs.replace(choice, since=None)
    since = [list_sessions(connection, anytime, limit=0).total, *since]
    names: tuple[FacetName, ...] = ("project", "model", "branch")
    values: dict[FacetName, FacetValues] = {
        name: facets_of(connection, choice, name) for name in names
    }
    statuses, sizes = statuses_of(connection, choice), sizes_of(connection, choice)
    lengths, listed = lengths_of(connection, choice)
    return Counted(having, since, statuses, sizes, lengths, listed, values)


Facets = list[tuple[str, list[Facet], str]]


def among(asked: Asked, files: Sequence[int]) -> Asked:
    """Return what is asked for, of some sessions only, by the numbers of their files."""
    choice = msgspec.structs.replace(asked.choice, among=tuple(files))
    return msgspec.structs.replace(asked, choice=choice)


def facets_for(
    house: House,
    index: Index,
    asked: Asked,
    keep: Callable[[object, Callable[[], Counted]], Counted],
) -> Facets:
    """Return the facets of a list; `keep` keeps what was counted."""
    choice = asked.choice
    starts = tuple(since_of(name, house.now()) or 0 for name, _ in _TIMES if name)
    question = "facets", msgspec.structs.replace(choice, sort="newest"), starts
    found = keep(question, lambda: counted(index.connection, choice, starts))
    made = [
        _short("Project", "project", found, asked),
        ("Last active", _times(asked.query, found.since), ""),
        ("Status", _states(house, index, asked, found.statuses), ""),
        ("Has", _haves(asked, found.having), ""),
        _short("Model", "model", found, asked),
        _short("Branch", "branch", found, asked),
        ("Size", _sizes(asked, found.sizes), ""),
        ("Step records", _lengths(asked, found), ""),
    ]
    return [facet for facet in made if facet[1]]


def _values(found: Counted, asked: Asked, name: FacetName) -> list[Facet]:
    """Return the values of a column; only a project may be none and be chosen all the same."""
    chosen = getattr(asked.choice, name)
    some = [each for each in found.values[name].values if each.name or name == "project"]
    shown = some if asked.open == name else _first(some, chosen)
    names = _named([each.name for each in some], name)
    return [
        Facet(
            names.get(each.name, each.name) or "no project",
            each.number,
            _turned(
                asked.query,
                name,
                tag_of(each.name) if name == "project" else each.name,
                on=each.name == chosen,
            ),
            each.name == chosen,
        )
        for each in shown
    ]


def _first(some: list[Count], chosen: str | None) -> list[Count]:
    """Return the first values, if there are many; what is chosen is always among them."""
    if len(some) <= _SHOWN + 1:
        return some
    return some[:_SHOWN] + [each for each in some[_SHOWN:] if each.name == chosen]


def _named(values: list[str], name: FacetName) -> dict[str, str]:
    if name == "project":
        return words.project_names(values)
    return {value: words.model_name(value) for value in values} if name == "model" else {}


def _short(
    title: str, name: FacetName, found: Counted, asked: Asked
) -> tuple[str, list[Facet], str]:
    """Return a facet with its first values, and the address of all."""
    shown = _values(found, asked, name)
    values = found.values[name].values
    more = len(shown) < sum(bool(each.name) or name == "project" for each in values)
    return title, shown, links().sessions(**{**asked.query, "open": name}) if more else ""


def _times(query: dict[str, str], numbers: list[int]) -> list[Facet]:
    now = query.get("since", "")
    return [
        Facet(label, number, links().sessions(**{**query, "since": name}), name == now)
        for (name, label), number in zip(_TIMES, numbers, strict=True)
    ]


def _states(house: House, index: Index, asked: Asked, statuses: dict[str, int]) -> list[Facet]:
    chosen = asked.choice.status
    numbers = dict(statuses)
    if damaged := sorted(house.ward.broken):
        choice = msgspec.structs.replace(
            asked.choice, status="damaged", files=files_at(index.connection, damaged)
        )
        numbers["damaged"] = list_sessions(index.connection, choice, limit=0).total
    return [
        Facet(
            label,
            numbers.get(name, 0),
            _turned(asked.query, "status", name, on=name == chosen),
            name == chosen,
            icon,
        )
        for name, (icon, label) in _STATES.items()
        if numbers.get(name) or name == chosen
    ]


def _sizes(asked: Asked, numbers: dict[Size, int]) -> list[Facet]:
    chosen = asked.choice.size
    return [
        Facet(
            _SIZES[name],
            numbers[name],
            _turned(asked.query, "size", name, on=name == chosen),
            name == chosen,
        )
        for name in SIZES
        if numbers[name] or name == chosen
    ]


def _lengths(asked: Asked, found: Counted) -> list[Facet]:
    """Return the filters by step records: lines of `steps.jsonl`, and the list rule over them."""
    choice, query = asked.choice, asked.query
    made = [
        Facet(
            f"{number:,} or more",
            count,
            _turned(query, "min_steps", str(number), on=number == choice.min_steps),
            number == choice.min_steps,
        )
        for number, count in found.lengths.items()
        if count or number == choice.min_steps
    ]
    if found.listed or choice.listed:
        href = _turned(query, "listed", "1", on=choice.listed)
        made.append(Facet("Hide short sessions", found.listed, href, choice.listed))
    return made


def _haves(asked: Asked, having: dict[Has, int]) -> list[Facet]:
    choice = asked.choice
    return [
        Facet(label, having[name], _having(asked.query, choice, name), name in choice.has, icon)
        for name, (icon, label) in _NAMES.items()
        if having[name] or name in choice.has
    ]


def _turned(query: dict[str, str], name: str, value: str, *, on: bool) -> str:
    return links().sessions(**{**query, name: "" if on else value})


def _having(query: dict[str, str], choice: Choice, name: Has) -> str:
    now = [each for each in HAS if (each in choice.has) != (each == name)]
    return links().sessions(**{**query, "has": ",".join(now)})
