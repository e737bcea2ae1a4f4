"""Addresses that want out: of every place in an address there is, to files that are not ours."""

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest
from tests.security.ask import Line, raw, request
from tests.security.crawl import filled
from tests.web.explorer import Explorer

from steno.web import routes
from steno.web.app import PAGES
from steno.web.templating import static_bytes, static_names

_FOREIGN: Final = "this-is-not-yours-81d0"
_UPS: Final = (
    "../",
    "..\\",
    "..%2f",
    "..%5c",
    "%2e%2e/",
    "%2e%2e%2f",
    "%2e%2e%5c",
    "%252e%252e%252f",
    "..%252f",
    "..%c0%af",
    "%c0%ae%c0%ae/",
    "%e0%80%ae%e0%80%ae%e0%80%af",
    "..%ef%bc%8f",
    "%uff0e%uff0e%u2215",
    "..;/",
    "....//",
    "..%00/",
    ".%2e/",
    "..//",
    "/%2e%2e/",
    "..%0d%0a/",
    "..%09/",
    "%2e%2e%252f",
    "..%u2216",
)
_ENDS: Final = ("", "%00", "%00.css", "%2500.css", "?x", "#x", "/", "%20", ".", "::$DATA", ";.css")
_STARTS: Final = ("", "/", "%2f", "file:///", "C:%5c", "~/", "%5c%5c127.0.0.1%5cshare%5c")
_FILES: Final = ("etc/passwd", "proc/self/environ")
_ODD: Final = (
    *("%00", "%0a", "%ff", "%ed%a0%80", "%F0%9F%92%A9", "%7f", "%1b%5b2J", "%e2%80%ae", "%25", "%"),
    *("-1", "0", "1e9", "NaN", "٣", "0x10", "1" * 400, "9" * 19, str(1 << 63), str(1 << 64), "+1"),
    *("~", "~1", "x~", "x~99999999999999999999", "a" * 5000, "null", "None", "[]", "%7B%7D", "'"),
    *("%27%20OR%201%3D1--", "%22", "%3Cscript%3E", "{0.__class__}", "${x}", "*", "?", "%23", "|id"),
)
_TEMPTING: Final = ("/static/x/{}", "/{}", "/s/{}", "/static/{}")
_SHARE: Final = 8
_OK: Final = 200
_HOLE: Final = re.compile(r"\{(\w+)(?::\w+)?\}")
_ASKED: Final = re.compile(r"""(?:get|query_params)[(\[]+\s*["'](\w+)["']""")


def _variants(secret: Path) -> list[str]:
    """Return ways out, to a file that is there and to files that every system has."""
    near = f"{secret.parent.name}/{secret.name}"
    found = dict.fromkeys(
        f"{start}{up * depth}{file}{end}"
        for start, up, depth, file, end in product(_STARTS[:1], _UPS, (1, 3, 12), (*_FILES, near), _ENDS[:3])
    )
    more = (f"{start}{file}{end}" for start, file, end in product(_STARTS, (*_FILES, str(secret).lstrip("/")), _ENDS))
    found |= dict.fromkeys(more)
    found |= dict.fromkeys(quote(each, safe="") for each in list(found)[::3])
    return [*found, *_ODD]


def _asked(page: str) -> list[str]:
    """Return every name that a page looks for in the query of its address."""
    module = page.partition(":")[0]
    file = Path(next(iter(routes.__path__))) / f"{module}.py"
    return sorted(set(_ASKED.findall(file.read_text())))


def _places(demo: Explorer) -> Iterator[str]:
    """Yield addresses with one hole each, `{}`: where routes have one, and in queries."""
    for way, page in PAGES:
        for hole in _HOLE.findall(way):
            yield filled(way.replace(f"{{{hole}}}", "\0"), demo).replace("\0", "{}")
        for name in _asked(page):
            yield f"{filled(way, demo)}?{name}={{}}"


@pytest.mark.timeout(180)
def test_no_way_leads_out(demo: Explorer) -> None:
    secret = Path(demo.house.home.roots[0]).parent / "secret.txt"
    secret.write_text(_FOREIGN)
    variants = _variants(secret)
    places = [place for place in _places(demo) if "/live" not in place]
    assert len(variants) >= 1000
    assert len(places) > 20
    ours = {static_bytes(name) for name in static_names()}
    tried = 0
    with Line(demo.port, demo.cookie) as line:
        for number, variant in enumerate(variants):
            # Each place gets its share, and the most tempting ones get more.
            some = {places[number % len(places)], *_TEMPTING[number % 8 :: 8]}
            for place in some:
                plain = variant.replace("#", "%23").replace(" ", "%20")
                way = place.replace("{}", plain)
                if not way.isascii():
                    way = quote(way, safe="/%?=&~.")
                said = line.get(way)
                tried += 1
                assert said.status in {200, 303, 400, 404, 503}, (way, said.status)
                assert _FOREIGN.encode() not in said.body, way
                assert b"root:x:0:0" not in said.body, way
                assert b"STENO_NOW=" not in said.body, way
                if place.startswith("/static/") and said.status == _OK:
                    assert said.body in ours, way
    assert tried > 1200


def test_every_odd_value_is_taken_or_refused_everywhere(demo: Explorer) -> None:
    with Line(demo.port, demo.cookie) as line:
        for number, place in enumerate(_places(demo)):
            for odd in (*_ODD, *_ODD)[number * 5 % len(_ODD) :][:_SHARE]:
                way = place.replace("{}", odd.replace("#", "%23"))
                way = way if way.isascii() else quote(way, safe="/%?=&~.")
                assert line.get(way).status in {200, 303, 400, 404, 503}, way


@pytest.mark.parametrize(
    "target",
    [
        *("http://evil.test/", "http://127.0.0.1/", "//evil.test/", "*", "evil.test:443"),
        *("file:///etc/passwd", "../", "..", "/../../etc/passwd", "/./", "/%2f%2fevil.test", "\\"),
    ],
)
def test_a_target_that_is_no_path_of_ours_gets_nothing(demo: Explorer, target: str) -> None:
    given = [("Host", f"127.0.0.1:{demo.port}"), ("Cookie", demo.cookie)]
    said = raw(demo.port, request("GET", target, given))
    assert said.status in {400, 404}
    assert "location" not in said.headers
