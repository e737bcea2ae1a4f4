"""What the address of a list asks for."""

import re
from collections.abc import Iterable
from typing import Final, get_args

import msgspec
from starlette.requests import Request

from steno.errors import BadRequest
from steno.index.opened import Index
from steno.index.search.finder import Order
from steno.report.clock import day_of
from steno.report.listing import SIZES, SORTS, Choice, Has, Size, Sort, files_at
from steno.report.session_status import STATUSES, StatusFilter
from steno.web.numbers import number_in
from steno.web.paint import links
from steno.web.tags import tagged

__all__ = ["LONGEST", "VIEWS", "Asked", "asked_of", "since_of"]

VIEWS: Final = ("day", "project", "flat")
_SECOND: Final = 1000
_STEP: Final = 15_000
"""Milliseconds for which counted statuses hold."""
_PLACE: Final = re.compile(r"(-?[0-9]{1,18})_([0-9]{1,18})")
_BACK: Final = {"today": 0, "week": 6, "month": 29}
LONGEST: Final = 2_000
"""So many letters may be looked for."""
_LONGEST_VALUE: Final = 300
_MOST_STEPS: Final = 1_000_000_000
_FILTERS: Final = (
    *("project", "branch", "model", "status", "size", "since", "has", "min_steps", "listed"),
)
_KNOWN: Final = ("q", *_FILTERS, "sort", "view", "order")


class Asked(msgspec.Struct, frozen=True):
    """What the address asks for."""

    choice: Choice
    query: dict[str, str]
    """The address again, without where to go on."""
    view: str
    after: tuple[int, int] | None
    open: str
    """The facet that is shown in full."""
    words: str = ""
    """What is looked for in them."""
    order: Order = "newest"
    only: str = ""
    """The only session to show, with all that was found in it."""
    start: int = 0
    """How many sessions with something found come before."""

    @property
    def narrowed(self) -> int:
        """How many filters are on; a value that none of them has is not counted."""
        choice = self.choice
        values = (choice.project, choice.branch, choice.model, choice.status, choice.size)
        chosen = sum(value is not None for value in (*values, choice.since))
        return chosen + bool(choice.has) + (choice.min_steps > 0) + choice.listed

    def but(self, **changed: str | int) -> str:
        """Return the address with something changed, from its beginning on."""
        return links().sessions(**{**self.query, **changed})


def asked_of(
    index: Index, request: Request, now: float, damaged: Iterable[str] = frozenset()
) -> Asked:
    """Return what a request for the list asks for; `damaged` are paths of damaged sessions.

    Raises:
        BadRequest: it names no place in the list, or looks for too much.
        NotFound: it names a project that there is not.
    """
    given = request.query_params
    query = {name: given[name] for name in _KNOWN if given.get(name, "").strip()}
    if len(query.get("q", "")) > LONGEST:
        raise BadRequest("too many words to look for", hint=f"at most {LONGEST:,} letters")
    for name, value in query.items():
        if name != "q" and len(value) > _LONGEST_VALUE:
            raise BadRequest(f"{name} is too long", hint=f"Use at most {_LONGEST_VALUE} letters.")
    has = tuple(each for each in get_args(Has) if each in query.get("has", "").split(","))
    project = None
    if "project" in query:
        paths = index.connection.execute("SELECT DISTINCT project FROM sessions")
        project = tagged(query["project"], (path for (path,) in paths))
    status = _status(query.get("status", ""))
    choice = Choice(
        status=status,
        now=int(now * _SECOND) // _STEP * _STEP,
        files=files_at(index.connection, sorted(damaged)) if status == "damaged" else None,
        project=project,
        branch=query.get("branch"),
        model=query.get("model"),
        since=since_of(query.get("since", ""), now),
        size=_size(query.get("size", "")),
        has=has,
        min_steps=_min_steps(query.get("min_steps", "")),
        listed=query.get("listed") == "1",
        sort=_sort(query.get("sort", "newest")),
    )
    view = query.get("view", "day" if choice.sort in ("newest", "oldest") else "flat")
    return Asked(
        choice,
        query,
        view if view in VIEWS else "day",
        _after(given.get("after", "")),
        given.get("open", ""),
        query.get("q", "").strip(),
        _order(query.get("order", "newest")),
        given.get("session", ""),
        number_in(given.get("from", "0")),
    )


def since_of(name: str, now: float) -> int | None:
    """Return when `today`, `week` or `month` began, in milliseconds; None for any other word."""
    back = _BACK.get(name)
    return None if back is None else int(day_of(now, back) * _SECOND)


def _sort(name: str) -> Sort:
    known: dict[str, Sort] = {sort: sort for sort in SORTS}
    return known.get(name, "newest")


def _status(name: str) -> StatusFilter | None:
    known: dict[str, StatusFilter] = {status: status for status in STATUSES}
    return known.get(name)


def _size(name: str) -> Size | None:
    known: dict[str, Size] = {size: size for size in SIZES}
    return known.get(name)


def _min_steps(text: str) -> int:
    """Return the fewest step records that are asked for; 0 for what is no number."""
    return min(int(text), _MOST_STEPS) if text.isascii() and text.isdecimal() else 0


def _order(name: str) -> Order:
    known: dict[str, Order] = {order: order for order in get_args(Order)}
    return known.get(name, "newest")


def _after(text: str) -> tuple[int, int] | None:
    if not text:
        return None
    found = _PLACE.fullmatch(text)
    if found is None:
        raise BadRequest(f"not a place in the list: {text!r}")
    return int(found[1]), int(found[2])
