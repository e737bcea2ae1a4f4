"""What pages load: stylesheet, scripts, icons. They never change under one address."""

from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from steno.web.house import House
from steno.web.paint import static_bytes, static_names

__all__ = ["icon", "static"]

_KINDS: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_FOREVER: Final = {"cache-control": "private, max-age=31536000, immutable"}


def static(_house: House, request: Request) -> Response:
    """Return a file of ours, by its name alone."""
    name = request.path_params["name"]
    kind = _KINDS.get(name.rpartition(".")[2])
    if kind is None or name not in static_names():
        raise HTTPException(404)
    return Response(static_bytes(name), media_type=kind, headers=_FOREVER)


def icon(_house: House, _request: Request) -> Response:
    """Return the mark, for browsers that ask for it where no page named it."""
    return Response(static_bytes("mark.svg"), media_type=_KINDS["svg"])
