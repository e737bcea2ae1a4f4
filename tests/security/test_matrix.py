"""The gate, in every combination of what a request may say, before every page there is.

What is expected is said here anew, step by step, and not taken from the gate.
"""

import asyncio
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, Final

import pytest
from tests.security.ask import raw, request
from tests.security.crawl import filled, routes
from tests.web.explorer import Explorer

from steno.web.auth import SECURITY_HEADERS, AuthMiddleware, LoginKeys
from steno.web.http_server import ServerAddress

_PORT: Final = 4321
_OK: Final = 200

_HOSTS: Final[dict[str | None, bool]] = {
    "127.0.0.1:{port}": True,
    "localhost:{port}": True,
    "LOCALHOST:{port}": True,
    "[::1]:{port}": True,
    "127.0.0.1": False,
    "localhost": False,
    "localhost.:{port}": False,
    "127.0.0.1.:{port}": False,
    "localhost:1": False,
    "localhost:{port}.evil.test": False,
    "127.0.0.1.evil.test:{port}": False,
    "evil.test:{port}": False,
    "evil.test": False,
    "0.0.0.0:{port}": False,
    "127.1:{port}": False,
    "2130706433:{port}": False,
    "[::ffff:127.0.0.1]:{port}": False,
    "user@localhost:{port}": False,
    "localhost:{port}, evil.test": False,
    "": False,
    None: False,
}
_METHODS: Final = {
    "GET": True,
    "HEAD": True,
    **dict.fromkeys(("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get", "X"), False),
}
_SITES: Final[dict[str | None, bool]] = {
    None: True,
    "none": True,
    "same-origin": True,
    "same-site": False,
    "cross-site": False,
    "": False,
    "SAME-ORIGIN": False,
    "same-origin, cross-site": False,
}
_ORIGINS: Final[dict[str | None, bool]] = {
    None: True,
    "http://{host}": True,
    "null": False,
    "": False,
    "https://{host}": False,
    "http://evil.test": False,
    "http://{host}.evil.test": False,
    "http://localhost:1": False,
    "file://": False,
}
_COOKIES: Final[dict[str | None, bool]] = {
    "steno-{port}={token}": True,
    "a=b; steno-{port}={token}; c=d": True,
    "steno-{port}=wrong; steno-{port}={token}": True,
    'broken{{"json":1}}; steno-{port}={token}': True,
    None: False,
    "": False,
    "steno-{port}=": False,
    "steno-{port}=wrong": False,
    "steno-{port}={token}x": False,
    'steno-{port}="{token}"': False,
    "steno-1={token}": False,
    "STENO-{port}={token}": False,
    "{token}": False,
}


_WELL: Final = ("127.0.0.1:{port}", "GET", "same-origin", None, "steno-{port}={token}")
_WRONG: Final = ("evil.test:{port}", "POST", "cross-site", "null", None)
_Asked = tuple[str | None, str, str | None, str | None, str | None]
"""Host, method, site, origin, cookie."""


def _expected(asked: _Asked) -> int:
    """Return what the first step that says no says."""
    host, method = _HOSTS[asked[0]], _METHODS[asked[1]]
    site, origin, cookie = _SITES[asked[2]], _ORIGINS[asked[3]], _COOKIES[asked[4]]
    for well, status in ((host, 421), (method, 405), (site and origin, 403), (cookie, 401)):
        if not well:
            return status
    return _OK


class _Answers:
    """Stands for all pages, and keeps what the gate sent instead."""

    def __init__(self) -> None:
        self.started: dict[str, Any] = {}
        self.reached = 0

    async def __call__(self, _scope: Any, _receive: Any, send: Any) -> None:
        self.reached += 1
        await send({"type": "http.response.start", "status": _OK, "headers": []})
        await send({"type": "http.response.body", "body": b"secret"})

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.started = message


async def _receive() -> dict[str, Any]:
    return {"type": "http.request", "body": b"", "more_body": False}


def _scope(method: str, headers: dict[str, str | None]) -> dict[str, Any]:
    given = [(name.encode(), value.encode()) for name, value in headers.items() if value is not None]
    return {"type": "http", "method": method, "path": "/", "query_string": b"", "headers": given}


def test_every_combination_is_answered_by_the_first_step_that_says_no() -> None:
    keys, pages = LoginKeys(_PORT), _Answers()
    gate = AuthMiddleware(pages, keys, ServerAddress(_PORT).hosts)
    known = {"port": _PORT, "token": keys.token}

    async def every() -> int:
        number = 0
        for asked in product(_HOSTS, _METHODS, _SITES, _ORIGINS, _COOKIES):
            host, method, site, origin, cookie = asked
            name = None if host is None else host.format(**known)
            headers = {
                "host": name,
                "sec-fetch-site": site,
                "origin": None if origin is None else origin.format(host=(name or "").lower()),
                "cookie": None if cookie is None else cookie.format(**known),
            }
            before = pages.reached
            await gate(_scope(method, headers), _receive, pages.send)
            status = _expected(asked)
            assert pages.started["status"] == status, headers
            assert (pages.reached > before) == (status == _OK)
            sent = {key.decode(): value.decode() for key, value in pages.started["headers"]}
            assert all(sent[key] == value for key, value in SECURITY_HEADERS)
            number += 1
        return number

    assert asyncio.run(every()) > 200_000


def _deviations() -> Iterator[_Asked]:
    """Yield requests that are wrong in one way, and in two."""
    host, method, site, origin, cookie = _WELL
    yield _WELL
    yield from ((each, method, site, origin, cookie) for each in _wrong(_HOSTS))
    yield from ((host, each or "", site, origin, cookie) for each in _wrong(_METHODS))
    yield from ((host, method, each, origin, cookie) for each in _wrong(_SITES))
    yield from ((host, method, site, each, cookie) for each in _wrong(_ORIGINS))
    yield from ((host, method, site, origin, each) for each in _wrong(_COOKIES))
    pairs = ((one, other) for one in range(5) for other in range(one + 1, 5))
    for both in pairs:
        host, method, site, origin, cookie = ((_WRONG if at in both else _WELL)[at] for at in range(5))
        yield host, method or "", site, origin, cookie


def _wrong(table: Mapping[Any, bool]) -> list[Any]:
    return [value for value, fine in table.items() if not fine]


@pytest.mark.parametrize("way", [way for way, _ in routes()])
def test_nothing_gets_past_the_gate_to_any_page(demo: Explorer, way: str) -> None:
    known = {"port": demo.port, "token": demo.server.login_keys.token}
    address = filled(way, demo)
    for asked in _deviations():
        host, method, site, origin, cookie = asked
        status = _expected(asked)
        name = None if host is None else host.format(**known)
        pairs = {
            "Host": name,
            "Sec-Fetch-Site": site,
            "Origin": None if origin is None else origin.format(host=name),
            "Cookie": None if cookie is None else cookie.format(**known),
        }
        given = [(key, value) for key, value in pairs.items() if value is not None]
        said = raw(demo.port, request(method, address, given))
        if name is None:
            # HTTP/1.1 has no requests without a host.
            assert said.status == 400
        elif status == _OK:
            assert said.status in {200, 303, 400, 404}, (address, said.status)
        else:
            assert said.status == status, (address, pairs)
            assert len(said.body) < 200
        for key, value in SECURITY_HEADERS:
            assert said.headers[key] == value, (address, pairs, key)
        assert "set-cookie" not in said.headers


@pytest.mark.parametrize("way", [way for way, _ in routes()])
def test_a_head_has_no_body(demo: Explorer, way: str) -> None:
    given = [("Host", f"127.0.0.1:{demo.port}"), ("Cookie", demo.cookie)]
    said = raw(demo.port, request("HEAD", filled(way, demo), given))
    assert said.status in {200, 303, 400, 404}
    assert said.body == b""


def test_a_code_works_once_whoever_asks(demo: Explorer) -> None:
    code = demo.server.login_keys.code
    host = ("Host", f"127.0.0.1:{demo.port}")
    refused: list[tuple[list[tuple[str, str]], int]] = [
        ([("Host", f"evil.test:{demo.port}")], 421),
        ([host, ("Sec-Fetch-Site", "cross-site")], 403),
        ([host, ("Origin", "null")], 403),
    ]
    for headers, status in refused:
        said = raw(demo.port, request("GET", f"/enter?code={code}", headers))
        assert said.status == status
        assert "set-cookie" not in said.headers
    assert raw(demo.port, request("POST", f"/enter?code={code}", [host])).status == 405
    for wrong in ("", "x", code[:-1], f"{code}x", code.swapcase(), "%00", "%ED%A0%80"):
        assert raw(demo.port, request("GET", f"/enter?code={wrong}", [host])).status == 401
    # None of this used it up.
    said = raw(demo.port, request("GET", f"/enter?code={code}", [host]))
    assert said.status == _OK
    for part in ("HttpOnly", "SameSite=Strict", "Path=/"):
        assert part in said.headers["set-cookie"]
    assert "Domain" not in said.headers["set-cookie"]
    assert raw(demo.port, request("GET", f"/enter?code={code}", [host])).status == 401


@pytest.mark.parametrize(
    "to",
    [
        *("//evil.test", "https://evil.test", "/\\evil.test", "\\\\evil.test", "/%09/evil.test"),
        *("javascript:alert(1)", "/a%0d%0aset-cookie: x=y", "/a b", '/"><script>', "/é", "evil"),
    ],
)
def test_an_entrance_leads_nowhere_else(demo: Explorer, to: str) -> None:
    from urllib.parse import quote

    code = demo.server.login_keys.code
    said = demo.ask(f"/enter?code={code}&to={quote(to, safe='%')}")
    assert said.status == _OK
    assert said.headers["refresh"] == "0; url=/"
    again = demo.get(f"/enter?to={quote(to, safe='%')}")
    assert (again.status, again.headers["location"]) == (303, "/")
