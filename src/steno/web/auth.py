"""Request checks and security headers, applied to every request before its handler.

Checks run in this order; the first failure is the response:

    Host      must be a name of the server, else 421 (DNS rebinding)
    method    GET or HEAD without a protocol upgrade, else 405
    origin    same site according to the browser, else 403
    token     the cookie set in exchange for the one-time code, else 401

Response headers forbid loading external content.
"""

import hmac
from collections.abc import Callable, Container
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from steno.web.api.responses import JSON, error_body, is_api

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


LOGIN_PATH: Final = "/enter"
"""Path that exchanges a code for the cookie."""
_SAFE_METHODS: Final = ("GET", "HEAD")
_SAME_SITE: Final = ("same-origin", "none")
_STATIC: Final = "/static/"
_CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS: Final = (
    ("content-security-policy", _CSP),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=()"),
)
"""Headers of every response."""
_NO_STORE: Final = ("cache-control", "no-store")
_Rejection = tuple[int, str, tuple[tuple[str, str], ...]]


class LoginKeys:
    """The one-time code and the token that replaces it.

    A configured `user_token` is also accepted, any number of times, as a code or as a bearer token.
    """

    def __init__(self, port: int, on_used: Callable[[], None] = lambda: None, user_token: str = "") -> None:
        self.cookie = f"steno-{port}"
        """The name includes the port, as cookies are shared by all ports of a host."""
        self.token = token_urlsafe(32)
        self.code = token_urlsafe(16)
        self._on_used = on_used
        self._user_token = user_token

    def redeem(self, code: str) -> bool:
        """Return whether the code is valid, and invalidate it."""
        if self._is_token(code):
            return True
        if not _equal(code, self.code):
            return False
        self.code = token_urlsafe(16)
        self._on_used()
        return True

    def is_authenticated(self, cookies: str, bearer: str = "") -> bool:
        """Return whether the headers contain the token. If the cookie is repeated, one match suffices."""
        pairs = (pair.partition("=") for pair in cookies.split(";"))
        tokens = [value.strip() for name, _, value in pairs if name.strip() == self.cookie]
        kind, _, credentials = bearer.partition(" ")
        return any(_equal(value, self.token) for value in tokens) or (
            kind.lower() == "bearer" and self._is_token(credentials.strip())
        )

    def _is_token(self, text: str) -> bool:
        return bool(self._user_token) and _equal(text, self._user_token)


def _equal(left: str, right: str) -> bool:
    return hmac.compare_digest(left.encode("utf-8", "surrogatepass"), right.encode("utf-8", "surrogatepass"))


class AuthMiddleware:
    """Checks requests and adds security headers."""

    def __init__(self, app: "ASGIApp", login_keys: LoginKeys, hosts: Container[str]) -> None:
        self._app = app
        self._login_keys = login_keys
        self._hosts = hosts

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Forward a request, or reject it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = _headers(scope)
        refusal = self._reject(scope, headers) or self._login(scope, headers)
        if refusal is not None:
            await _send_response(send, scope["path"], *refusal)
            return
        await self._app(scope, receive, _with_security_headers(scope["path"], send))

    def _reject(self, scope: "Scope", headers: dict[str, str]) -> _Rejection | None:
        host = headers.get("host", "").lower()
        if host not in self._hosts:
            return 421, "Host not allowed.", ()
        if scope["method"] not in _SAFE_METHODS or _wants_upgrade(headers):
            return 405, "Method not allowed.", (("allow", ", ".join(_SAFE_METHODS)),)
        site = headers.get("sec-fetch-site")
        if site is not None and site not in _SAME_SITE:
            return 403, "Cross-site request denied.", ()
        origin = headers.get("origin")
        if origin is not None and origin.lower() != f"http://{host}":
            return 403, "Cross-site request denied.", ()
        return None

    def _login(self, scope: "Scope", headers: dict[str, str]) -> _Rejection | None:
        authenticated = self._login_keys.is_authenticated(headers.get("cookie", ""), headers.get("authorization", ""))
        if scope["path"] != LOGIN_PATH:
            locked = _API_LOCKED_MESSAGE if is_api(scope["path"]) else _LOCKED_MESSAGE
            return None if authenticated else (_UNAUTHORIZED, locked, ())
        query = parse_qs(scope["query_string"].decode("latin-1"))
        to = _safe_path(query.get("to", [""])[0])
        if not authenticated:
            if not self._login_keys.redeem(query.get("code", [""])[0]):
                return 401, _LOCKED_MESSAGE, ()
            cookie = f"{self._login_keys.cookie}={self._login_keys.token}; Path=/; HttpOnly; SameSite=Strict"
            # A page with a refresh instead of a redirect: a SameSite=Strict cookie is not sent with a redirect
            # that started on another site.
            return (200, _LOGIN_MESSAGE.format(to=to), (("set-cookie", cookie), ("refresh", f"0; url={to}")))
        return 303, "", (("location", to),)


_LOCKED_MESSAGE: Final = "Not signed in. Open the URL that steno printed at startup; each URL works once."
_LOGIN_MESSAGE: Final = "Opening {to}"
_API_LOCKED_MESSAGE: Final = "no valid token"
_API_HINT: Final = "Start `steno explore` with STENO_TOKEN or --token-file and send `Authorization: Bearer TOKEN`."
_UNAUTHORIZED: Final = 401
_BAD_REQUEST: Final = 400


def _wants_upgrade(headers: dict[str, str]) -> bool:
    """Return whether a request asks for another protocol."""
    return "websocket" in headers.get("upgrade", "").lower()


def _safe_path(to: str) -> str:
    """Return a local path to open after login, never a URL of another site."""
    is_path = to.startswith("/") and not to.startswith("//") and to.isascii() and to.isprintable()
    return to if is_path and not set(to) & set("\\\"'<> ") else "/"


def _headers(scope: "Scope") -> dict[str, str]:
    """Return the headers of a request. Repeated headers are joined, so that they match no valid value."""
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        separator = "; " if key == "cookie" else ", "
        headers[key] = f"{headers[key]}{separator}{text}" if key in headers else text
    return headers


def _with_security_headers(path: str, send: "Send") -> "Send":
    """Return a `send` function that adds the security headers."""
    is_static = path.startswith(_STATIC)

    async def send_with_headers(message: "Message") -> None:
        if message["type"] == "http.response.start":
            existing = {name.lower() for name, _ in message["headers"]}
            added = SECURITY_HEADERS if is_static else (*SECURITY_HEADERS, _NO_STORE)
            message["headers"] = [
                *message["headers"],
                *(_encode_header(name, value) for name, value in added if name.encode() not in existing),
            ]
        await send(message)

    return send_with_headers


async def _send_response(
    send: "Send", path: str, status: int, message: str, headers: tuple[tuple[str, str], ...]
) -> None:
    body, kind = message.encode(), "text/plain; charset=utf-8"
    if is_api(path) and status >= _BAD_REQUEST:
        locked = status == _UNAUTHORIZED
        body = error_body(status, message, _API_HINT if locked else "")
        kind = JSON
        headers = (*headers, ("www-authenticate", "Bearer")) if locked else headers
    length = ("content-length", str(len(body)))
    all_headers = (*SECURITY_HEADERS, _NO_STORE, ("content-type", kind), length, *headers)
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [_encode_header(name, value) for name, value in all_headers],
        }
    )
    await send({"type": "http.response.body", "body": body})


def _encode_header(name: str, value: str) -> tuple[bytes, bytes]:
    return name.encode(), value.encode("latin-1")
