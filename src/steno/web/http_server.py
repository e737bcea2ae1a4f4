"""The local server: addresses, listening socket, connections, preloading of the first pages."""

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
"""Seconds before a connection without a complete request is closed."""


class HttpConnection(H11Protocol):
    """A connection with a timeout and with security headers on error responses."""

    request_timeout: float = _REQUEST_TIMEOUT

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Start the timeout for the first request."""
        super().connection_made(transport)
        self.loop.call_later(self.request_timeout, self._close_if_idle)

    def _close_if_idle(self) -> None:
        # Uvicorn declares `cycle` as always set; it is missing before the first request.
        if getattr(self, "cycle", None) is None and not self.transport.is_closing():
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Send a 400 response with security headers."""
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
"""Maximum bytes of request headers."""


class ServerAddress:
    """The address of the explorer."""

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self.port = port
        self.host = f"[{host}]" if ":" in host else host

    @property
    def base_url(self) -> str:
        """Return the base URL."""
        return f"http://{self.host}:{self.port}"

    @property
    def hosts(self) -> "AllowedHosts":
        """Return the allowed host names."""
        return AllowedHosts(self)

    def login_url(self, code: str, path: str = "") -> str:
        """Return the URL that logs in with a code."""
        suffix = f"&to={path}" if path else ""
        return f"{self.base_url}{LOGIN_PATH}?code={code}{suffix}"


class AllowedHosts:
    """Host names that requests may use; others are rejected to prevent DNS rebinding."""

    def __init__(self, address: ServerAddress) -> None:
        self._names = frozenset(f"{name}:{address.port}" for name in (*_LOOPBACK_NAMES, address.host))
        self._all_interfaces = _is_unspecified(address.host)
        self._port = f":{address.port}"

    def __contains__(self, host: object) -> bool:
        """Return whether a host is allowed; if the server listens on all addresses, any IP address is.

        IP addresses are safe: DNS rebinding requires a name.
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
    """Return whether an address is only reachable from this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def open_socket(host: str, port: int) -> Generator[socket.socket]:
    """Open a listening socket; port 0 selects a free port.

    Raises:
        BadRequest: The port is in use, or the address is not available on this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio disables Nagle's algorithm only if the protocol is given; otherwise responses on a kept-alive
    # connection are delayed by 40 ms.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # Listen on one address family only, so that the printed address is the only one.
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            raise BadRequest(
                f"cannot listen on {host} port {port}: {(error.strerror or str(error)).lower()}",
                hint="Use `--port 0` to select a free port.",
            ) from error
        listener.listen(128)
        yield listener


class Server(uvicorn.Server):
    """Serves the explorer on a socket. Set `should_exit` to stop."""

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
        """Return a URL for one login."""
        return self.address.login_url(self.login_keys.code, path)

    def run_until_stopped(self) -> None:
        """Serve until Ctrl-C or `should_exit`."""
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(self.serve(sockets=[self._socket]))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop serving. End streams first, as uvicorn waits for them."""
        self._app_state.pubsub.close()
        await super().shutdown(sockets)


_FIRST_PAGES: Final = (("/", "", session_list_page), ("/", "q=the", session_list_page), ("/usage", "", usage_page))


def preload(app_state: AppState) -> None:
    """Render the main pages to fill the caches."""
    compile_templates()
    for path, query, handler in _FIRST_PAGES:
        scope: dict[str, object] = {
            "type": "http",
            "method": "GET",
            "path": path,
            "query_string": query.encode(),
            "headers": [],
        }
        # Errors are reported when the page is requested.
        with suppress(StenoError):
            handler(app_state, Request(scope))
