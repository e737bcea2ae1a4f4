"""A session, turn by turn; and a sub-agent of one, which is told the same way."""

from typing import Any

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from steno.errors import NotFound, StenoError
from steno.web.house import House, Place
from steno.web.numbers import number_in
from steno.web.paint import links, page, part
from steno.web.story.find import marked, seek
from steno.web.story.finding import Finding, finding_of
from steno.web.story.findings import findings_of
from steno.web.story.glimpse import BIG, glimpse
from steno.web.story.head import Head, Lying, head_of
from steno.web.story.map import map_of
from steno.web.story.opening import Opened, asked_of, manner_of, opened, placed
from steno.web.story.panel import panel_of
from steno.web.story.steps import Manner
from steno.web.story.tale import Tale, name_of
from steno.web.story.turns import side_of, turn_of
from steno.web.story.window import all_sides, around, between
from steno.web.story.wish import Wish

__all__ = ["branch", "findings", "panel", "session", "sides", "turns"]

_SMALL = 4_000
"""Records; beside more of them the panel comes after the page."""


def session(house: House, request: Request) -> Response:
    """Return the page of a session, or of a sub-agent."""
    wish = asked_of(request)
    place, found = placed(house, wish)
    cold = found.known.size > BIG and not place.gone and not house.shelf.holds(place.path)
    if cold and not wish.whole and not wish.agent:
        return HTMLResponse(_first_glimpse(house, wish, place, found))
    with opened(house, wish, whole=True) as told:
        goto = ""
        if wish.at is not None:
            known = seek(told.tale, wish)
            if known is None:
                # The story does not tell it; it has a page of its own.
                way = links().record(wish.key, wish.at, wish.agent)
                return RedirectResponse(way, status_code=303)
            goto = known
        return HTMLResponse(_page(house, told, goto))


def _page(house: House, told: Opened, goto: str = "") -> str:
    wish, place, found, tale = told.wish, told.place, told.found, told.tale
    head = head_of(tale, place, found, house.now())
    manner = told.manner(live=head.live)
    finding = finding_of(tale, wish, manner)
    at = _start(tale, wish, head, found)
    pieces = part("session-turns.html.j2", pieces=around(tale, manner, at, wish.branch))
    small = wish.panel or len(tale.transcript.nodes) <= _SMALL
    last = tale.turns[-1] if tale.turns else None
    return page(
        house,
        "session.html.j2",
        **_frame(wish, place, found, head),
        pieces=marked(pieces, finding.words),
        finding=finding,
        goto=goto,
        ends=at > 1 and not wish.turn,
        map=_map(tale),
        panel=panel_of(tale, manner, found.copied) if small else None,
        panel_source=links().inside(wish.key, "panel", wish.agent, detail=wish.query()["detail"]),
        live_source=links().inside(wish.key, "live", wish.agent, detail=wish.query()["detail"]),
        live_at=f"{last.number}.{tale.marks[-1]}" if last is not None else "0.",
        records=len(tale.transcript.nodes),
        size=tale.transcript.source.size,
        loose=_loose(tale, manner),
        glimpsed=False,
    )


def _frame(wish: Wish, place: Place, found: Lying, head: Head) -> dict[str, Any]:
    """Return what every form of the page has."""
    return {
        "here": "session",
        "wish": wish,
        "place": place,
        "head": head,
        "found": found,
        "details": [
            (name, wish.address(links(), detail="" if name == "steps" else name, turn=None))
            for name in ("prompts", "answers", "steps", "everything")
        ],
        "toggles": {
            "abandoned": wish.address(links(), abandoned="off" if wish.abandoned else ""),
            "thinking": wish.address(links(), thinking="off" if wish.thinking else ""),
        },
    }


def _map(tale: Tale) -> Markup:
    if "map" not in tale.parts:
        tale.parts["map"] = map_of(tale)
    return Markup(tale.parts["map"])


def _start(tale: Tale, wish: Wish, head: Head, found: Lying) -> int:
    """Return the turn that the page begins at."""
    if wish.turn:
        return min(wish.turn, max(1, len(tale.turns)))
    newest = head.live or (found.known.size > BIG and not wish.agent)
    return max(1, len(tale.turns)) if newest else 1


def _loose(tale: Tale, manner: Manner) -> list[tuple[str, str]]:
    """Return the sub-agents that no call was found for, so that they can be opened all the same."""
    if tale.thread is not None:
        return []
    return [
        (
            each.description or each.prompt.strip().split("\n")[0][:120] or name_of(each),
            manner.links.agent(manner.key, name_of(each)),
        )
        for each in tale.session.loose_agents
    ]


# Before the whole was read


def _first_glimpse(house: House, wish: Wish, place: Place, found: Lying) -> str:
    known = found.known
    manner = manner_of(wish, found, live=False)
    boxes: list[Any] = []
    if not wish.turn and not wish.find and not wish.branch and wish.at is None:
        tale, turns = glimpse(place.path, house.prices)
        boxes = [turn_of(turn, tale, manner, label="…", prefix="g") for turn in turns]
    head = Head(known.title or place.id, known.project, known.branch, place.id[:8])
    return page(
        house,
        "session.html.j2",
        **_frame(wish, place, found, head),
        pieces=Markup(part("session-turns.html.j2", pieces=boxes)),
        finding=Finding(),
        goto="",
        ends=bool(boxes),
        map="",
        panel=None,
        panel_source="",
        live_source="",
        live_at="",
        records=0,
        size=known.size,
        loose=[],
        glimpsed=wish.address(links(), whole=1, at=wish.at),
    )


# Pieces of the page


def turns(house: House, request: Request) -> Response:
    """Return some turns."""
    wish = asked_of(request)
    with opened(house, wish) as told:
        last = wish.last or len(told.tale.turns)
        pieces = between(told.tale, told.manner(), wish.first or 1, last)
        return HTMLResponse(part("session-turns.html.j2", pieces=pieces))


def sides(house: House, request: Request) -> Response:
    """Return everything that was abandoned behind a turn."""
    with opened(house, asked_of(request)) as told:
        pieces = all_sides(told.tale, told.manner(), told.wish.first)
        return HTMLResponse(part("session-turns.html.j2", pieces=pieces))


def branch(house: House, request: Request) -> Response:
    """Return what is in an abandoned branch."""
    number = request.path_params["number"]
    with opened(house, asked_of(request)) as told:
        side = told.tale.side(number_in(number))
        box = side_of(side, told.tale, told.manner(), opened=True)
        return HTMLResponse(part("session-turns.html.j2", pieces=[box]))


def panel(house: House, request: Request) -> Response:
    """Return what stands beside the turns."""
    with opened(house, asked_of(request), whole=True) as told:
        parts, detail = told.tale.parts, told.wish.detail
        if detail not in parts:
            made = panel_of(told.tale, told.manner(), told.found.copied)
            parts[detail] = part("session-panel.html.j2", panel=made)
        return HTMLResponse(parts[detail])


def findings(house: House, request: Request) -> Response:
    """Return what is wrong with the file of a session."""
    wish = asked_of(request)
    place, _ = placed(house, wish)
    if wish.agent:
        place = _agent_place(house, wish, place)
    try:
        found = findings_of(house, place, links(), wish.agent)
    except StenoError as error:
        return HTMLResponse(part("session-findings.html.j2", findings=None, why=str(error)))
    return HTMLResponse(part("session-findings.html.j2", findings=found, why="", asked=wish.agent))


def _agent_place(house: House, wish: Wish, place: Place) -> Place:
    """Return where a sub-agent's own file lies; one without any is in its session's."""
    with house.index() as index:
        try:
            return house.agent_place(index, wish.key, wish.agent)
        except NotFound:
            return place
