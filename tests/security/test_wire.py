"""What comes by wire and is no proper request; and readers who take their time."""

import asyncio
import socket
from collections.abc import MutableMapping
from contextlib import ExitStack
from typing import Any

import pytest
from tests.security.ask import raw, request
from tests.web.explorer import Explorer

from steno.web import app
from steno.web.auth import SECURITY_HEADERS
from steno.web.http_server import HttpConnection
from steno.web.state.app_state import AppState


def _host(demo: Explorer) -> tuple[str, str]:
    return "Host", f"127.0.0.1:{demo.port}"


def _known(demo: Explorer) -> list[tuple[str, str]]:
    return [_host(demo), ("Cookie", demo.cookie)]


def test_without_a_host_there_is_nothing(demo: Explorer) -> None:
    cookie = ("Cookie", demo.cookie)
    assert raw(demo.port, request("GET", "/", [cookie])).status == 400
    assert raw(demo.port, request("GET", "/", [cookie], "1.0")).status == 421


def test_the_oldest_http_is_answered(demo: Explorer) -> None:
    said = raw(demo.port, request("GET", "/", _known(demo), "1.0"))
    assert said.status == 200
    assert b"<h1>Sessions</h1>" in said.body


@pytest.mark.parametrize("second", ["evil.test", "127.0.0.1:{port}", ""])
def test_two_hosts_are_none(demo: Explorer, second: str) -> None:
    other = ("Host", second.format(port=demo.port))
    for both in ([_host(demo), other], [other, _host(demo)]):
        said = raw(demo.port, request("GET", "/", [*both, ("Cookie", demo.cookie)]))
        assert said.status in {400, 421}


@pytest.mark.parametrize(
    "data",
    [
        b"\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET  / HTTP/1.1\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n folded: y\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused_with_all_headers(demo: Explorer, data: bytes) -> None:
    said = raw(demo.port, data + b"\r\n\r\n")
    assert said.status in {400, 421}
    for name, value in SECURITY_HEADERS:
        assert said.headers[name] == value


def test_two_requests_in_one_are_judged_one_by_one(demo: Explorer) -> None:
    """What one request smuggles in its body has no more rights than anybody."""
    inner = request("GET", "/", [("Host", "evil.test")])
    head = "\r\n".join(["GET / HTTP/1.1", *(f"{a}: {b}" for a, b in _known(demo)), f"Content-Length: {len(inner)}"])
    said = raw(demo.port, head.encode() + b"\r\nconnection: close\r\n\r\n" + inner)
    assert said.status == 200
    assert said.body.count(b"<h1>") == 1
    both = head + "\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    assert raw(demo.port, both.encode() + inner).status in {200, 400}


def test_a_head_without_end_is_cut_off(demo: Explorer) -> None:
    for huge in (
        b"GET /?q=" + b"a" * 500_000 + b" HTTP/1.1\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 500_000 + b"\r\n",
        b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(50_000)),
    ):
        assert raw(demo.port, huge + b"\r\n").status in {0, 400}
    assert demo.get("/").status == 200


def test_a_long_query_is_refused_or_answered_and_never_breaks(demo: Explorer) -> None:
    for way in ("/", "/health", "/palette"):
        assert demo.get(f"{way}?q={'%F0%9F%92%A9' * 4000}").status in {200, 400}
        assert demo.get(f"{way}?{'&'.join(f'q{n}=1' for n in range(3000))}").status in {200, 303}


def test_a_socket_for_anything_but_pages_is_refused(demo: Explorer) -> None:
    upgrade = [
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ]
    lines = [f"{a}: {b}" for a, b in (*_known(demo), *upgrade)]
    said = raw(demo.port, "\r\n".join(["GET / HTTP/1.1", *lines, "", ""]).encode())
    assert said.status == 405
    lines = [f"{a}: {b}" for a, b in (("Host", "evil.test"), *upgrade)]
    assert raw(demo.port, "\r\n".join(["GET / HTTP/1.1", *lines, "", ""]).encode()).status == 421


def test_another_kind_of_connection_is_ended() -> None:
    from steno.web.auth import AuthMiddleware, LoginKeys

    sent: list[str] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message["type"])

    async def receive() -> dict[str, Any]:
        return {}

    async def never(*_: object) -> None:
        pytest.fail("the gate was passed")

    gate = AuthMiddleware(never, LoginKeys(1), frozenset())

    async def knock() -> None:
        await gate({"type": "websocket"}, receive, send)

    asyncio.run(knock())
    assert sent == ["websocket.close"]


def test_slow_readers_and_slow_writers_keep_nobody_waiting(demo: Explorer) -> None:
    with ExitStack() as stack:
        for number in range(60):
            line = stack.enter_context(socket.create_connection(("127.0.0.1", demo.port)))
            whole = request("GET", "/", _known(demo))
            # Some never finish asking, some never read the answer.
            line.sendall(whole if number % 2 else whole[: number + 5])
        for way in ("/", "/?q=tide", "/health"):
            assert demo.get(way).status == 200


def test_who_never_asks_is_hung_up_on(demo: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HttpConnection, "request_timeout", 0.05)
    with socket.create_connection(("127.0.0.1", demo.port), timeout=20) as line:
        line.sendall(b"GET / HTT")
        assert line.recv(1) == b""


def test_a_fault_is_a_plain_page_and_is_told_once(
    demo: Explorer, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(_house: AppState, *_: object) -> None:
        raise ZeroDivisionError("secret \x1b[31m words")

    from steno.web.auth import AuthMiddleware, LoginKeys
    from steno.web.http_server import ServerAddress

    monkeypatch.setattr("steno.web.routes.sessions.session_list_page", broken)
    keys = LoginKeys(demo.port)
    made = app.make_app(demo.house, keys, ServerAddress(demo.port).hosts)
    assert isinstance(made, AuthMiddleware)

    async def ask() -> list[MutableMapping[str, Any]]:
        sent: list[MutableMapping[str, Any]] = []

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(message)

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        headers = [(b"host", f"127.0.0.1:{demo.port}".encode()), (b"cookie", f"{keys.cookie}={keys.token}".encode())]
        scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": headers}
        with pytest.raises(ZeroDivisionError):
            # Whoever serves learns of it too; the answer is out by then.
            await made(scope, receive, send)
        return sent

    for _ in range(2):
        start, body = asyncio.run(ask())
        assert start["status"] == 500
        assert {(a.encode(), b.encode()) for a, b in SECURITY_HEADERS} <= set(start["headers"])
        assert b"secret" not in body["body"]
        assert b"Traceback" not in body["body"]
    told = capfd.readouterr().err
    assert told.count("ZeroDivisionError: secret") == 1
    assert "\x1b" not in told


def test_browsers_find_the_icon_they_look_for(demo: Explorer) -> None:
    said = demo.get("/favicon.ico")
    assert (said.status, said.headers["content-type"]) == (200, "image/svg+xml")
    assert demo.ask("/favicon.ico").status == 401
