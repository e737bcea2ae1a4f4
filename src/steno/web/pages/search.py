"""Where words were looked for before: the list of sessions does that now, at its own address."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from steno.web.house import House
from steno.web.paint import links

__all__ = ["search"]


def search(_house: House, request: Request) -> Response:
    """Lead to the list with the same words."""
    return RedirectResponse(links().search(**dict(request.query_params)), 303)
