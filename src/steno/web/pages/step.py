"""One step, opened: as a piece of the session's page, or as a page of its own."""

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from steno.errors import NotFound
from steno.session.story.steps import Step
from steno.web.house import House
from steno.web.numbers import number_in
from steno.web.paint import links, page
from steno.web.story.line import step_html
from steno.web.story.opening import asked_of, opened
from steno.web.story.steps import places_of, step_body
from steno.web.story.tale import Tale

__all__ = ["step"]


def step(house: House, request: Request) -> Response:
    """Return what is inside a step."""
    wish = asked_of(request)
    place = request.path_params["place"]
    with opened(house, wish) as told:
        found, turn, side = _found(told.tale, place)
        body = step_body(found, place, told.tale, told.manner(), wish=wish)
        if wish.part:
            return HTMLResponse(body)
        line = step_html(found, place, told.tale, told.manner(), body)
        back = {"turn": turn, "branch": side or None, "open": place}
        anchor = f"b{side}" if side else f"t{turn}"
        return HTMLResponse(
            page(
                house,
                "session-step.html.j2",
                here="session",
                lines=[line],
                title=told.found.known.title or told.place.id,
                turn=turn,
                side=side,
                back=wish.address(links(), anchor, **back),
                place=place,
                full=wish.full,
                whole=links().inside(wish.key, f"step/{place}", wish.agent, full=1),
            )
        )


def _found(tale: Tale, place: str) -> tuple[Step, int, int]:
    """Return a step by its place, with its turn and, if it was abandoned, its branch.

    Raises:
        NotFound: there is no step there.
    """
    offset = place.partition("-")[0]
    at = number_in(offset, -1)
    near = tale.turn_at.get(at)
    ordered = [tale.turns[near - 1], *tale.turns] if near is not None else tale.turns
    side = tale.side_at.get(at) if near is None else None
    if side is not None:
        for turn in tale.side_turns(tale.side(side)):
            for name, step in places_of(turn.steps):
                if name == place:
                    return step, tale.side(side).after or 1, side
    for turn in ordered:
        for name, step in places_of(turn.steps):
            if name == place:
                return step, turn.number, 0
    raise NotFound("there is no such step in this session", hint="it may have been abandoned")
