"""All sessions, newest first: filtered, grouped, and with what stands beside each title."""

import re
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any, Final, get_args

import msgspec
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from steno.errors import BadRequest, StenoError
from steno.index.opened import Index
from steno.report import words
from steno.report.clock import day_of
from steno.report.listing import (
    HAS,
    SORTS,
    Choice,
    FacetName,
    Has,
    Listed,
    Listing,
    Sort,
    activity_of,
    costs_of,
    counts_of,
    facets_of,
    list_sessions,
)
from steno.store.discover import found_at
from steno.store.glance import Status, glance
from steno.web.house import House
from steno.web.paint import links, page
from steno.web.render.charts import spark
from steno.web.tags import tag_of, tagged

__all__ = ["sessions"]

_PAGE: Final = 50
_LIVE: Final = 900_000
"""Milliseconds: what was written longer ago is not asked whether it still runs."""
_LIVELY: Final = frozenset(("running", "waiting"))
_VIEWS: Final = ("day", "project", "flat")
_SHOWN: Final = 6
"""How many values of a facet are shown before `more`."""
_SECOND: Final = 1000
_NAMES: Final[dict[Has, tuple[str, str]]] = {
    "failed": ("warn", "Failed steps"),
    "agents": ("agent", "Sub-agents"),
    "compacted": ("fold", "Compactions"),
    "abandoned": ("rewind", "Abandoned branches"),
    "archived": ("archive", "Archived only"),
    "pr": ("branch", "Pull requests"),
}
_TIMES: Final = (
    ("", "Any time"),
    ("today", "Today"),
    ("week", "This week"),
    ("month", "This month"),
)
_PLACE: Final = re.compile(r"(-?[0-9]{1,18})_([0-9]{1,18})")
_BACK: Final = {"today": 0, "week": 6, "month": 29}


class _Row(msgspec.Struct, frozen=True):
    """A session as the page shows it."""

    listed: Listed
    key: str
    state: str
    spark: Markup
    seconds: float | None
    cost: int | None
    when: str


class _Group(msgspec.Struct, frozen=True):
    """Rows under one heading."""

    title: str
    note: str
    rows: list[_Row]
    cost: int | None
    href: str = ""


class _Facet(msgspec.Struct, frozen=True):
    """Something to filter by: a link that turns it on, or off again."""

    name: str
    number: int
    href: str
    on: bool
    icon: str = ""


class _Asked(msgspec.Struct, frozen=True):
    """What the address asks for."""

    choice: Choice
    query: dict[str, str]
    """The address again, without where to go on."""
    view: str
    after: tuple[int, int] | None
    open: str
    """The facet that is shown in full."""


def sessions(house: House, request: Request) -> Response:
    """Return the list of sessions, or with `part=rows` only what comes next in it."""
    with house.index() as index:
        asked = _asked(index, request, house.now())
        listing = list_sessions(index.connection, asked.choice, limit=_PAGE, after=asked.after)
        rows = list(_rows(house, index, listing.rows))
        values: dict[str, Any] = {
            "here": "sessions",
            "asked": asked,
            "listing": listing,
            "live": [row for row in rows if row.state in _LIVELY],
            "groups": list(_groups(rows, asked.view, house.now())),
            "next": _next(listing, asked),
        }
        if request.query_params.get("part") == "rows":
            return HTMLResponse(page(house, "sessions-rows.html.j2", **values))
        values["facets"] = _facets(index, asked, house.now())
        values["all"] = index.connection.execute(
            "SELECT count(*), count(DISTINCT project) FROM sessions WHERE agent = '' AND NOT hidden"
        ).fetchone()
    values["views"] = [
        (view, links().sessions(**{**asked.query, "view": "" if view == "day" else view}))
        for view in _VIEWS
    ]
    values["sorts"] = [
        (sort, links().sessions(**{**asked.query, "sort": "" if sort == "newest" else sort}))
        for sort in SORTS
    ]
    return HTMLResponse(page(house, "sessions.html.j2", **values))


# What is asked for


def _asked(index: Index, request: Request, now: float) -> _Asked:
    given = request.query_params
    known = ("project", "branch", "model", "since", "has", "sort", "view")
    query = {name: given[name] for name in known if given.get(name)}
    has = tuple(each for each in get_args(Has) if each in query.get("has", "").split(","))
    project = None
    if "project" in query:
        paths = index.connection.execute("SELECT DISTINCT project FROM sessions")
        project = tagged(query["project"], (path for (path,) in paths))
    choice = Choice(
        project=project,
        branch=query.get("branch"),
        model=query.get("model"),
        since=_since(query.get("since", ""), now),
        has=has,
        sort=_sort(query.get("sort", "newest")),
    )
    view = query.get("view", "day" if choice.sort in ("newest", "oldest") else "flat")
    return _Asked(
        choice,
        query,
        view if view in _VIEWS else "day",
        _after(given.get("after", "")),
        given.get("open", ""),
    )


def _sort(name: str) -> Sort:
    known: dict[str, Sort] = {sort: sort for sort in SORTS}
    return known.get(name, "newest")


def _since(name: str, now: float) -> int | None:
    back = _BACK.get(name)
    return None if back is None else int(day_of(now, back) * _SECOND)


def _after(text: str) -> tuple[int, int] | None:
    if not text:
        return None
    found = _PLACE.fullmatch(text)
    if found is None:
        raise BadRequest(f"not a place in the list: {text!r}")
    return int(found[1]), int(found[2])


def _next(listing: Listing, asked: _Asked) -> str:
    if not listing.more:
        return ""
    last = listing.rows[-1]
    return links().sessions(**asked.query, after=f"{last.rank}_{last.file}")


# Rows


def _rows(house: House, index: Index, listed: list[Listed]) -> Iterator[_Row]:
    costs = costs_of(index.connection, [each.id for each in listed], house.prices)
    names = [each.id for each in listed]
    now = house.now()
    for each in listed:
        shared = names.count(each.id) > 1
        ended = None if each.ended is None else each.ended / _SECOND
        state = "archived" if each.gone else _state(house, each, now)
        yield _Row(
            listed=each,
            key=f"{each.id}~{each.file}" if shared else each.id,
            state=state,
            spark=spark(*activity_of(index.connection, each)),
            seconds=_seconds(each),
            cost=None if (used := costs.get(each.id)) is None else used.cost,
            when="now" if state == "running" else _when(ended, now),
        )


def _seconds(each: Listed) -> float | None:
    if each.started is None or each.ended is None:
        return None
    return max(0, each.ended - each.started) / _SECOND


def _when(ended: float | None, now: float) -> str:
    if ended is None:
        return ""
    if day_of(ended) >= day_of(now, 6):
        return words.clock(ended)
    return words.day(ended, now)


def _state(house: House, each: Listed, now: float) -> Status | str:
    """Return how a session stands; an old one is finished, unless its end says otherwise."""
    if each.ended is None:
        return ""
    found = house.glances.get(each.path, each.size)
    if found is None or now * _SECOND - each.ended < _LIVE:
        try:
            found = glance(found_at(each.path), now).status
        except StenoError:
            return ""
        house.glances.put(each.path, each.size, found)
    return found


# Groups


def _groups(rows: Iterable[_Row], view: str, now: float) -> Iterator[_Group]:
    still = [row for row in rows if row.state not in _LIVELY]
    if view == "flat":
        yield _Group("", "", still, None)
        return
    heads: dict[str, list[_Row]] = {}
    for row in still:
        heads.setdefault(_head(row, view, now), []).append(row)
    for head, some in heads.items():
        costs = [row.cost for row in some if row.cost is not None]
        note = words.count(len(some), "session")
        of_project = view == "project" and head
        title = words.project_name(head) if of_project else head
        href = links().project(tag_of(head)) if of_project else ""
        yield _Group(title or "No project", note, some, sum(costs) if costs else None, href)


def _head(row: _Row, view: str, now: float) -> str:
    if view == "project":
        return row.listed.project
    return "Undated" if row.listed.ended is None else words.day(row.listed.ended / _SECOND, now)


# Facets


def _facets(index: Index, asked: _Asked, now: float) -> list[tuple[str, list[_Facet], str]]:
    connection, choice = index.connection, asked.choice
    starts = [_since(name, now) or 0 for name, _ in _TIMES if name]
    having, since = counts_of(connection, choice, starts)
    anytime = msgspec.structs.replace(choice, since=None)
    total = list_sessions(connection, anytime, limit=0).total
    made = [
        _short("Project", "project", _values(connection, asked, "project"), asked),
        ("Last active", _times(asked.query, [total, *since]), ""),
        ("Has", _haves(asked, having), ""),
        _short("Model", "model", _values(connection, asked, "model"), asked),
        _short("Branch", "branch", _values(connection, asked, "branch"), asked),
    ]
    return [facet for facet in made if facet[1]]


def _values(connection: sqlite3.Connection, asked: _Asked, name: FacetName) -> list[_Facet]:
    """Return the values of a column; only a project may be none and be chosen all the same."""
    chosen = getattr(asked.choice, name)
    named = {"project": words.project_name, "model": words.model_name}.get(name, str)
    return [
        _Facet(
            named(each.name) or "no project",
            each.number,
            _turned(
                asked.query,
                name,
                tag_of(each.name) if name == "project" else each.name,
                on=each.name == chosen,
            ),
            each.name == chosen,
        )
        for each in facets_of(connection, asked.choice, name)
        if each.name or name == "project"
    ]


def _times(query: dict[str, str], numbers: list[int]) -> list[_Facet]:
    now = query.get("since", "")
    return [
        _Facet(label, number, links().sessions(**{**query, "since": name}), name == now)
        for (name, label), number in zip(_TIMES, numbers, strict=True)
    ]


def _haves(asked: _Asked, having: dict[Has, int]) -> list[_Facet]:
    choice = asked.choice
    return [
        _Facet(label, having[name], _having(asked.query, choice, name), name in choice.has, icon)
        for name, (icon, label) in _NAMES.items()
        if having[name] or name in choice.has
    ]


def _short(
    title: str, name: str, some: list[_Facet], asked: _Asked
) -> tuple[str, list[_Facet], str]:
    """Return a facet with its first values; what is chosen is always among them."""
    if asked.open == name or len(some) <= _SHOWN + 1:
        return title, some, ""
    shown = some[:_SHOWN] + [each for each in some[_SHOWN:] if each.on]
    return title, shown, links().sessions(**{**asked.query, "open": name})


def _turned(query: dict[str, str], name: str, value: str, *, on: bool) -> str:
    return links().sessions(**{**query, name: "" if on else value})


def _having(query: dict[str, str], choice: Choice, name: Has) -> str:
    now = [each for each in HAS if (each in choice.has) != (each == name)]
    return links().sessions(**{**query, "has": ",".join(now)})
