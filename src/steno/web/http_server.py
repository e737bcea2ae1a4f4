"""The loopback server: addresses, listening socket, connections, preloading of the first pages."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from typing import Final

import h11
import uvicorn
from starlette.requests import Request
from uvicorn.protocols.http.h11_impl import H11Protocol

from steno.errors import BadRequest, StenoError
from steno.web.app import make_app
from steno.web.auth import LOGIN_PATH, SECURITY_HEADERS, LoginKeys
from steno.web.routes.sessions import session_list_page
from steno.web.routes.usage_overview import usage_page
from steno.web.state.app_state import AppState
from steno.web.templating import compile_templates

_REQUEST_TIMEOUT: Final = 30.0
"""Seconds within which a first request has to be there."""


class HttpConnection(H11Protocol):
    """A connection. It says no the way all of the explorer does, and does not wait for ever."""

    request_timeout: float = _REQUEST_TIMEOUT

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Begin, and wait for a request."""
        super().connection_made(transport)
        self.loop.call_later(self.request_timeout, self._close_if_idle)

    def _close_if_idle(self) -> None:
        # Uvicorn says that there is always one; before the first request there is none.
        if getattr(self, "cycle", None) is None and not self.transport.is_closing():
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Say that a request was none, with the headers that everything goes out with."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = msg.encode()
            headers = [
                *((name.encode(), value.encode()) for name, value in SECURITY_HEADERS),
                (b"content-type", b"text/plain; charset=utf-8"),
                (b"content-length", str(len(body)).encode()),
                (b"cache-control", b"no-store"),
                (b"connection", b"close"),
            ]
            for event in (
                h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
                h11.Data(data=body),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


_LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")
_IPV6: Final = 6
_MAX_HEAD_BYTES: Final = 1 << 16
"""Bytes of a request's head."""


class ServerAddress:
    """Where the explorer is found."""

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self.port = port
        self.host = f"[{host}]" if ":" in host else host

    @property
    def base_url(self) -> str:
        """Its address."""
        return f"http://{self.host}:{self.port}"

    @property
    def hosts(self) -> "AllowedHosts":
        """What a request may call it."""
        return AllowedHosts(self)

    def login_url(self, code: str, path: str = "") -> str:
        """The address for a first visit."""
        suffix = f"&to={path}" if path else ""
        return f"{self.base_url}{LOGIN_PATH}?code={code}{suffix}"


class AllowedHosts:
    """What requests may call an explorer: never a name that somebody else can point here."""

    def __init__(self, address: ServerAddress) -> None:
        self._names = frozenset(f"{name}:{address.port}" for name in (*_LOOPBACK_NAMES, address.host))
        self._all_interfaces = _is_unspecified(address.host)
        self._port = f":{address.port}"

    def __contains__(self, host: object) -> bool:
        """Say whether a host is ours; where every address of the machine is, any number may be.

        A number leads where it says. Only names can be made to lead here from elsewhere.
        """
        if host in self._names:
            return True
        if not self._all_interfaces or not isinstance(host, str) or not host.endswith(self._port):
            return False
        name = host.removesuffix(self._port)
        address = _without_brackets(name)
        try:
            return (ip_address(address).version == _IPV6) == (address != name)
        except ValueError:
            return False


def _without_brackets(name: str) -> str:
    return name[1:-1] if name.startswith("[") and name.endswith("]") else name


def _is_unspecified(host: str) -> bool:
    try:
        return ip_address(_without_brackets(host)).is_unspecified
    except ValueError:
        return False


def is_loopback(host: str) -> bool:
    """Say whether only this machine can reach an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def open_socket(host: str, port: int) -> Generator[socket.socket]:
    """Give a socket that listens; port 0 takes any that is free.

    Raises:
        BadRequest: the port is taken, or the address is not one of this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, what is accepted does not wait to send (asyncio looks for it); without,
    # every answer on a kept connection comes 40 ms late.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # One kind of address only: what is told is what is listened on.
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            raise BadRequest(
                f"cannot listen on {host} port {port}: {(error.strerror or str(error)).lower()}",
                hint="`--port 0` takes any that is free",
            ) from error
        listener.listen(128)
        yield listener


class Server(uvicorn.Server):
    """Serves the explorer on a socket. `should_exit` ends it."""

    def __init__(
        self,
        app_state: AppState,
        listener: socket.socket,
        on_new_url: Callable[[str], None] = lambda _: None,
        user_token: str = "",
    ) -> None:
        host, port = listener.getsockname()[:2]
        self.address = ServerAddress(port, host)
        self.login_keys = LoginKeys(port, on_used=lambda: on_new_url(self.login_url()), user_token=user_token)
        self._app_state = app_state
        self._socket = listener
        super().__init__(
            uvicorn.Config(
                make_app(app_state, self.login_keys, self.address.hosts),
                http=HttpConnection,
                ws="none",
                h11_max_incomplete_event_size=_MAX_HEAD_BYTES,
                lifespan="off",
                log_level="critical",
                access_log=False,
                server_header=False,
                date_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=2,
            )
        )

    def login_url(self, path: str = "") -> str:
        """Return the address for the next first visit."""
        return self.address.login_url(self.login_keys.code, path)

    def run_until_stopped(self) -> None:
        """Serve until Ctrl-C, or until it is told to stop."""
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(self.serve(sockets=[self._socket]))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop serving. Streams are ended first: it would wait for them."""
        self._app_state.pubsub.close()
        await super().shutdown(sockets)


_FIRST_PAGES: Final = (("/", "", session_list_page), ("/", "q=the", session_list_page), ("/usage", "", usage_page))


def preload(app_state: AppState) -> None:
    """Make them; what they rest on is kept until the index changes."""
    compile_templates()
    for path, query, handler in _FIRST_PAGES:
        scope: dict[str, object] = {
            "type": "http",
            "method": "GET",
            "path": path,
            "query_string": query.encode(),
            "headers": [],
        }
        # Whatever is wrong is told to whoever asks for the page.
        with suppress(StenoError):
            handler(app_state, Request(scope))
