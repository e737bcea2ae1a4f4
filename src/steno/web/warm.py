"""The pages that are opened first, made before anybody asks: templates, prices and sums are ready."""

from contextlib import suppress
from typing import Final

from starlette.requests import Request

from steno.errors import StenoError
from steno.web.house import House
from steno.web.pages.sessions import sessions
from steno.web.pages.usage import usage
from steno.web.paint import make_ready

__all__ = ["warm"]

_FIRST: Final = (("/", "", sessions), ("/", "q=the", sessions), ("/usage", "", usage))


def warm(house: House) -> None:
    """Make them; what they rest on is kept until the index changes."""
    make_ready()
    for way, query, made in _FIRST:
        scope: dict[str, object] = {
            "type": "http",
            "method": "GET",
            "path": way,
            "query_string": query.encode(),
            "headers": [],
        }
        # Whatever is wrong is told to whoever asks for the page.
        with suppress(StenoError):
            made(house, Request(scope))
