"""The loopback server around the explorer."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Final

import uvicorn

from steno.errors import BadRequest
from steno.web.app import make_app
from steno.web.gate import ENTER, Keys
from steno.web.house import House
from steno.web.wire import Wire

__all__ = ["Address", "Hosts", "Server", "is_loopback", "listening"]

_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")
_SIX: Final = 6
_LONGEST: Final = 1 << 16
"""Bytes of a request's head."""


class Address:
    """Where the explorer is found."""

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self.port = port
        self.host = f"[{host}]" if ":" in host else host

    @property
    def base(self) -> str:
        """Its address."""
        return f"http://{self.host}:{self.port}"

    @property
    def hosts(self) -> "Hosts":
        """What a request may call it."""
        return Hosts(self)

    def entrance(self, code: str, to: str = "") -> str:
        """The address for a first visit."""
        more = f"&to={to}" if to else ""
        return f"{self.base}{ENTER}?code={code}{more}"


class Hosts:
    """What requests may call an explorer: never a name that somebody else can point here."""

    def __init__(self, address: Address) -> None:
        self._names = frozenset(f"{name}:{address.port}" for name in (*_NAMES, address.host))
        self._everywhere = _is_everywhere(address.host)
        self._port = f":{address.port}"

    def __contains__(self, host: object) -> bool:
        """Say whether a host is ours; where every address of the machine is, any number may be.

        A number leads where it says. Only names can be made to lead here from elsewhere.
        """
        if host in self._names:
            return True
        if not self._everywhere or not isinstance(host, str) or not host.endswith(self._port):
            return False
        name = host.removesuffix(self._port)
        inside = _bare(name)
        try:
            return (ip_address(inside).version == _SIX) == (inside != name)
        except ValueError:
            return False


def _bare(name: str) -> str:
    return name[1:-1] if name.startswith("[") and name.endswith("]") else name


def _is_everywhere(host: str) -> bool:
    try:
        return ip_address(_bare(host)).is_unspecified
    except ValueError:
        return False


def is_loopback(host: str) -> bool:
    """Say whether only this machine can reach an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def listening(host: str, port: int) -> Generator[socket.socket]:
    """Give a socket that listens; port 0 takes any that is free.

    Raises:
        BadRequest: the port is taken, or the address is not one of this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, what is accepted does not wait to send (asyncio looks for it); without,
    # every answer on a kept connection comes 40 ms late.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # One kind of address only: what is told is what is listened on.
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            made.bind((host, port))
        except OSError as error:
            raise BadRequest(
                f"cannot listen on {host} port {port}: {(error.strerror or str(error)).lower()}",
                hint="`--port 0` takes any that is free",
            ) from error
        made.listen(128)
        yield made


class Server(uvicorn.Server):
    """Serves a house on a socket. `should_exit` ends it."""

    def __init__(
        self,
        house: House,
        made: socket.socket,
        again: Callable[[str], None] = lambda _: None,
        word: str = "",
    ) -> None:
        host, port = made.getsockname()[:2]
        self.address = Address(port, host)
        self.keys = Keys(port, on_used=lambda: again(self.entrance()), word=word)
        self._house = house
        self._socket = made
        super().__init__(
            uvicorn.Config(
                make_app(house, self.keys, self.address.hosts),
                http=Wire,
                ws="none",
                h11_max_incomplete_event_size=_LONGEST,
                lifespan="off",
                log_level="critical",
                access_log=False,
                server_header=False,
                date_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=2,
            )
        )

    def entrance(self, to: str = "") -> str:
        """Return the address for the next first visit."""
        return self.address.entrance(self.keys.code, to)

    def run_here(self) -> None:
        """Serve until Ctrl-C, or until it is told to stop."""
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(self.serve(sockets=[self._socket]))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop serving. Streams are ended first: it would wait for them."""
        self._house.news.close()
        await super().shutdown(sockets)
