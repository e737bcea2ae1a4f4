"""Static files: stylesheets, scripts, icons. The content of a URL never changes."""

from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from steno.web.state.app_state import AppState
from steno.web.templating import static_bytes, static_names

_MEDIA_TYPES: Final = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
_CACHE_HEADERS: Final = {"cache-control": "private, max-age=31536000, immutable"}


def static_file(_app_state: AppState, request: Request) -> Response:
    """Return a static file."""
    name = request.path_params["name"]
    kind = _MEDIA_TYPES.get(name.rpartition(".")[2])
    if kind is None or name not in static_names():
        raise HTTPException(404)
    return Response(static_bytes(name), media_type=kind, headers=_CACHE_HEADERS)


def favicon(_app_state: AppState, _request: Request) -> Response:
    """Return the icon for browsers that request `/favicon.ico`."""
    return Response(static_bytes("mark.svg"), media_type=_MEDIA_TYPES["svg"])
