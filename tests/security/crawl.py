"""Every address of an explorer that can be reached from its own table of routes.

New pages need no line here: the table is asked for what it has, and every address that stands in
an answer is followed, some of each shape.
"""

import re
from collections import Counter, deque
from collections.abc import Iterator
from html import unescape
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from starlette.routing import Match, Route
from tests.security.ask import Line
from tests.web.explorer import Explorer

from steno.web.app import ADDRESSES
from steno.web.templating import links

__all__ = ["crawl", "filled", "is_stream", "routes"]

_ADDRESS: Final = re.compile(rb"""[\w-]+=(?:"(/[^"]*)"|'(/[^']*)')""")
_HOLE: Final = re.compile(r"\{(\w+)(?::\w+)?\}")
_TWO: Final = 2
_PAIRS: Final = 2
_STREAM: Final = "text/event-stream"


async def _nothing(_: object) -> None:
    """Stand for a page."""


def routes() -> list[tuple[str, Route]]:
    """Return every way of the table, and what tells whether an address is one of its."""
    return [(way, Route(way, _nothing)) for way in ADDRESSES]


def filled(way: str, of: Explorer) -> str:
    """Return an address of a route, with things that there are where that is known."""
    with of.house.index() as index:
        name, file = index.connection.execute(
            "SELECT id, file FROM sessions WHERE agent = '' AND NOT hidden ORDER BY file"
        ).fetchone()
        agent = index.connection.execute("SELECT agent FROM sessions WHERE agent <> '' AND id = ?", (name,)).fetchone()
    known = {
        "key": name,
        "id": name,
        "agent": agent[0] if agent else "none",
        "mark": links().static("").split("/")[2],
        "name": "steno.css",
        "offset": "0",
        "place": "0-0",
        "number": "1",
    }
    del file
    return _HOLE.sub(lambda hole: known.get(hole[1], "0"), way)


def is_stream(headers: dict[str, str]) -> bool:
    """Say whether an answer never ends."""
    return headers.get("content-type", "").startswith(_STREAM)


def crawl(of: Explorer, *, each: int, at_most: dict[str, int] | None = None) -> dict[str, str]:
    """Return addresses that answer with a page, and the pages: at most `each` of one shape.

    `at_most` says how many of a route there may be, where that is more.
    """
    known = routes()
    waiting = deque(filled(way, of) for way, _ in known)
    seen = set(waiting)
    shapes: Counter[str] = Counter()
    found: dict[str, str] = {}
    with Line(of.port, of.cookie) as line:
        while waiting:
            address = waiting.popleft()
            answer = line.get(address)
            assert answer.status < 500 or answer.status == 503, (address, answer.status)
            if answer.status != 200 or is_stream(answer.headers):
                continue
            if answer.headers["content-type"].startswith("text/html"):
                found[address] = answer.body.decode()
            for next_one in _addresses(answer.body):
                route, shape, asked = _shape(next_one, known)
                # What is asked for together is more than anybody could look at.
                most = (at_most or {}).get(route, each) if asked <= 1 else _PAIRS if asked == _TWO else 0
                if next_one not in seen and shapes[shape] < most:
                    shapes[shape] += 1
                    seen.add(next_one)
                    waiting.append(next_one)
    return found


def _addresses(body: bytes) -> Iterator[str]:
    for one, other in _ADDRESS.findall(body):
        address = unescape((one or other).decode("utf-8", "replace")).partition("#")[0]
        if address.isascii() and " " not in address and not address.startswith("//"):
            yield address


def _shape(address: str, known: list[tuple[str, Route]]) -> tuple[str, str, int]:
    """Return the route of an address, what it has in common with others, and how much it asks."""
    parts = urlsplit(address)
    scope = {"type": "http", "method": "GET", "path": parts.path, "root_path": ""}
    way = next((way for way, route in known if route.matches(scope)[0] is Match.FULL), "none")
    asked = sorted({name for name, _ in parse_qsl(parts.query)})
    return way, f"{way}?{','.join(asked)}", len(asked)
