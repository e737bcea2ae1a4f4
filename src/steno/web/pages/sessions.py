"""All sessions, newest first."""

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from steno.web.house import House
from steno.web.paint import page

__all__ = ["sessions"]


def sessions(house: House, _request: Request) -> Response:
    """Return the list of sessions."""
    return HTMLResponse(page(house, "sessions.html.j2", here="sessions"))
