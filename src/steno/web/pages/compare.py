"""Two sessions side by side, or what to choose them from."""

from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from steno.errors import NotFound
from steno.index.opened import Index
from steno.report import words
from steno.report.compare import Side, compare
from steno.report.compare.figures import rows_of
from steno.report.compare.partners import find_sessions, listed_of, partners_of
from steno.report.compare.told import ALIKE, asked_of, known_of, said_of
from steno.report.listing import Listed
from steno.web.house import House, Place
from steno.web.paint import duration, links, page
from steno.web.pair.path import drawn
from steno.web.pair.pick import choices_of
from steno.web.pair.told import told
from steno.web.tags import tag_of

__all__ = ["pair"]

_ROWS: Final = 40
"""How many files, commands and tools are listed before the rest is only counted."""
_ALL: Final = 2_000
_LONGEST: Final = 200
_SECOND: Final = 1000


class _Head(msgspec.Struct, frozen=True):
    """A session at the head of its column."""

    letter: str
    key: str
    title: str
    project: str
    tag: str
    branch: str
    when: str
    href: str
    other: str
    """Where to choose another for its place."""


def pair(house: House, request: Request) -> Response:
    """Return the comparison of `a` and `b`; where one is missing, what to choose it from."""
    given = request.query_params
    keys = [given.get("a", ""), given.get("b", "")]
    with house.index() as index:
        places = [house.place(index, key) if key else None for key in keys]
        if places[0] is not None and places[1] is not None and places[0] != places[1]:
            return _compared(house, index, (places[0], places[1]), whole=bool(given.get("all")))
        chosen = places[0] or places[1]
        same = places[0] is not None and places[0] == places[1]
        return _choosing(house, index, chosen, given.get("q", "")[:_LONGEST].strip(), same=same)


# Two sessions


def _compared(house: House, index: Index, places: tuple[Place, Place], *, whole: bool) -> Response:
    sides: list[Side] = []
    heads: list[_Head] = []
    for letter, place, other in zip("ab", places, reversed(places), strict=True):
        listed = _listed(index, place)
        known = known_of(index.connection, listed, house.prices)
        with house.session(place) as session:
            sides.append(told(session, known))
        heads.append(_head(letter, place, listed, house.now(), other))
    found = compare(*sides)
    keys = (places[0].key, places[1].key)
    most = _ALL if whole else _ROWS
    values: dict[str, Any] = {
        "here": "compare",
        "found": found,
        "heads": heads,
        "alike": ALIKE[found.alike],
        "rows": rows_of(found, duration),
        "said": said_of(found),
        "asked": list(asked_of(found)),
        "both_files": sum(one is not None and other is not None for _, one, other in found.files),
        "path": drawn(found, keys, links(), whole=whole),
        "whole": whole,
        "most": most,
        "all": links().compare(a=keys[0], b=keys[1], all=1),
        "folded": links().compare(a=keys[0], b=keys[1]),
        "swap": links().compare(a=keys[1], b=keys[0], all=1 if whole else None),
        "keys": keys,
    }
    return HTMLResponse(page(house, "compare.html.j2", **values))


def _listed(index: Index, place: Place) -> Listed:
    found = listed_of(index.connection, place.id, place.file)
    if found is None:
        raise NotFound("nobody asked anything in this session", hint="there is nothing to compare")
    return found


def _head(letter: str, place: Place, listed: Listed, now: float, other: Place) -> _Head:
    started = None if listed.started is None else listed.started / _SECOND
    return _Head(
        letter,
        place.key,
        listed.title or "Untitled",
        listed.project,
        tag_of(listed.project),
        listed.branch,
        "" if started is None else f"{words.day(started, now)} {words.clock(started)}",
        links().session(place.key),
        links().compare(a=other.key),
    )


# Choosing


def _choosing(
    house: House, index: Index, chosen: Place | None, query: str, *, same: bool
) -> Response:
    connection = index.connection
    values: dict[str, Any] = {
        "here": "compare",
        "chosen": None,
        "likely": [],
        "words": query,
        "same": same,
    }
    mine = None
    if chosen is not None:
        mine = _listed(index, chosen)
        values["chosen"] = _head("a", chosen, mine, house.now(), chosen)
        partners = partners_of(connection, mine)
        values["likely"] = choices_of(house, index, ((each.listed, each.why) for each in partners))
    known = {each.listed.file for each in values["likely"]} if not query else set[int]()
    found = [
        (each, "")
        for each in find_sessions(connection, query)
        if (mine is None or each.file != mine.file) and each.file not in known
    ]
    values["others"] = choices_of(house, index, found)
    return HTMLResponse(page(house, "compare-pick.html.j2", **values))
