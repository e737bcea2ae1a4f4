"""Requests as nobody's browser would send them."""

import http.client
import socket
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, Self

import msgspec

__all__ = ["Line", "Said", "raw"]

_ENOUGH: Final = 1 << 22
_STREAM: Final = "text/event-stream"


class Said(msgspec.Struct, frozen=True):
    """What came back; status 0 where the connection was ended without a word."""

    status: int
    headers: dict[str, str]
    body: bytes
    version: str = ""


class Line:
    """A connection that is kept, for many questions of a reader who is let in."""

    def __init__(self, port: int, cookie: str) -> None:
        self._port = port
        self._cookie = cookie
        self._connection: http.client.HTTPConnection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._hang_up()

    def get(self, way: str) -> Said:
        """Ask for an address, just as it is written; of a stream only the head is read."""
        try:
            return self._get(way)
        except (http.client.HTTPException, ConnectionError):
            self._hang_up()
            return self._get(way)

    def _get(self, way: str) -> Said:
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        self._connection.putrequest("GET", way)
        self._connection.putheader("cookie", self._cookie)
        self._connection.endheaders()
        answer = self._connection.getresponse()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        if headers.get("content-type", "").startswith(_STREAM):
            self._hang_up()
            return Said(answer.status, headers, b"")
        body = answer.read()
        if headers.get("connection") == "close":
            self._hang_up()
        return Said(answer.status, headers, body)

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def raw(port: int, head: bytes, *, timeout: float = 20) -> Said:
    """Send bytes and return what comes back until the other side ends it, or a stream begins."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as line:
        data = b""
        with suppress(ConnectionError):
            line.sendall(head)
            while len(data) < _ENOUGH and _STREAM.encode() not in data:
                more = line.recv(1 << 16)
                if not more:
                    break
                data += more
                if _is_whole(data):
                    break
    return _said(data)


def request(method: str, way: str, headers: Iterable[tuple[str, str]], version: str = "1.1") -> bytes:
    """Return a request, with nothing added."""
    lines = [f"{method} {way} HTTP/{version}", *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join([*lines, "connection: close", "", ""]).encode("latin-1")


def _is_whole(data: bytes) -> bool:
    head, end, body = data.partition(b"\r\n\r\n")
    said = _said(head + end)
    return bool(end) and body.__len__() >= int(said.headers.get("content-length", 1 << 40))


def _said(data: bytes) -> Said:
    if not data.startswith(b"HTTP/"):
        return Said(0, {}, data)
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    version, status, *_ = first.split(" ")
    pairs = (line.partition(":") for line in lines)
    return Said(int(status), {a.lower(): b.strip() for a, _, b in pairs}, body, version)
