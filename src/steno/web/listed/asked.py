"""What the address of a list asks for."""

import re
from typing import Final, get_args

import msgspec
from starlette.requests import Request

from steno.errors import BadRequest
from steno.index.opened import Index
from steno.report.clock import day_of
from steno.report.listing import SORTS, Choice, Has, Sort
from steno.web.tags import tagged

__all__ = ["VIEWS", "Asked", "asked_of", "since_of"]

VIEWS: Final = ("day", "project", "flat")
_SECOND: Final = 1000
_PLACE: Final = re.compile(r"(-?[0-9]{1,18})_([0-9]{1,18})")
_BACK: Final = {"today": 0, "week": 6, "month": 29}
_KNOWN: Final = ("project", "branch", "model", "since", "has", "sort", "view")


class Asked(msgspec.Struct, frozen=True):
    """What the address asks for."""

    choice: Choice
    query: dict[str, str]
    """The address again, without where to go on."""
    view: str
    after: tuple[int, int] | None
    open: str
    """The facet that is shown in full."""


def asked_of(index: Index, request: Request, now: float) -> Asked:
    """Return what a request for the list asks for.

    Raises:
        BadRequest: it names no place in the list.
        NotFound: it names a project that there is not.
    """
    given = request.query_params
    query = {name: given[name] for name in _KNOWN if given.get(name)}
    has = tuple(each for each in get_args(Has) if each in query.get("has", "").split(","))
    project = None
    if "project" in query:
        paths = index.connection.execute("SELECT DISTINCT project FROM sessions")
        project = tagged(query["project"], (path for (path,) in paths))
    choice = Choice(
        project=project,
        branch=query.get("branch"),
        model=query.get("model"),
        since=since_of(query.get("since", ""), now),
        has=has,
        sort=_sort(query.get("sort", "newest")),
    )
    view = query.get("view", "day" if choice.sort in ("newest", "oldest") else "flat")
    return Asked(
        choice,
        query,
        view if view in VIEWS else "day",
        _after(given.get("after", "")),
        given.get("open", ""),
    )


def since_of(name: str, now: float) -> int | None:
    """Return when `today`, `week` or `month` began, in milliseconds; None for any other word."""
    back = _BACK.get(name)
    return None if back is None else int(day_of(now, back) * _SECOND)


def _sort(name: str) -> Sort:
    known: dict[str, Sort] = {sort: sort for sort in SORTS}
    return known.get(name, "newest")


def _after(text: str) -> tuple[int, int] | None:
    if not text:
        return None
    found = _PLACE.fullmatch(text)
    if found is None:
        raise BadRequest(f"not a place in the list: {text!r}")
    return int(found[1]), int(found[2])
