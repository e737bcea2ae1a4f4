"""Who may look: every request passes here before any page sees it.

In this order, and the first that says no ends it:

    Host      is one of ours, else 421: a name that points here from elsewhere gets nothing
    method    only reads, and no other protocol, else 405
    origin    the browser says that no other site asks, else 403
    token     the cookie that the one-time code was swapped for, else 401

What a page sends back goes out with headers that let it load nothing from anywhere else.
"""

import hmac
from collections.abc import Callable, Container
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from steno.web.api.responses import JSON, error_body, is_api

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["ENTER", "HEADERS", "Gate", "Keys"]

ENTER: Final = "/enter"
"""Where a code is swapped for the cookie."""
_READS: Final = ("GET", "HEAD")
_OURS: Final = ("same-origin", "none")
_STATIC: Final = "/static/"
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = (
    ("content-security-policy", _POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=()"),
)
"""What goes out with everything."""
_UNKEPT: Final = ("cache-control", "no-store")
_Refusal = tuple[int, str, tuple[tuple[str, str], ...]]


class Keys:
    """The code for the first visit, and the token that it is swapped for.

    A `word` that somebody chose opens as well, as often as they like: as a code, or sent as a
    bearer.
    """

    def __init__(
        self, port: int, on_used: Callable[[], None] = lambda: None, word: str = ""
    ) -> None:
        self.cookie = f"steno-{port}"
        """Cookies know no ports, so the name has to."""
        self.token = token_urlsafe(32)
        self.code = token_urlsafe(16)
        self._on_used = on_used
        self._word = word

    def swap(self, code: str) -> bool:
        """Say whether a code is the one that is valid; it is not any more afterwards."""
        if self._is_word(code):
            return True
        if not _same(code, self.code):
            return False
        self.code = token_urlsafe(16)
        self._on_used()
        return True

    def holds(self, cookies: str, bearer: str = "") -> bool:
        """Say whether the headers have the token; of several cookies with its name, any may."""
        pairs = (each.partition("=") for each in cookies.split(";"))
        own = [value.strip() for name, _, value in pairs if name.strip() == self.cookie]
        kind, _, word = bearer.partition(" ")
        return any(_same(value, self.token) for value in own) or (
            kind.lower() == "bearer" and self._is_word(word.strip())
        )

    def _is_word(self, text: str) -> bool:
        return bool(self._word) and _same(text, self._word)


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(
        one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass")
    )


class Gate:
    """Stands before the pages."""

    def __init__(self, app: "ASGIApp", keys: Keys, hosts: Container[str]) -> None:
        self._app = app
        self._keys = keys
        self._hosts = hosts

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Let a request through, or say why not."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = _headers(scope)
        refusal = self._refusal(scope, headers) or self._entry(scope, headers)
        if refusal is not None:
            await _answer(send, scope["path"], *refusal)
            return
        await self._app(scope, receive, _sealed(scope["path"], send))

    def _refusal(self, scope: "Scope", headers: dict[str, str]) -> _Refusal | None:
        host = headers.get("host", "").lower()
        if host not in self._hosts:
            return 421, "This address does not belong to steno.", ()
        if scope["method"] not in _READS or _wants_more(headers):
            return 405, "The explorer only reads.", (("allow", ", ".join(_READS)),)
        site = headers.get("sec-fetch-site")
        if site is not None and site not in _OURS:
            return 403, "Another site may not ask for this.", ()
        origin = headers.get("origin")
        if origin is not None and origin.lower() != f"http://{host}":
            return 403, "Another site may not ask for this.", ()
        return None

    def _entry(self, scope: "Scope", headers: dict[str, str]) -> _Refusal | None:
        known = self._keys.holds(headers.get("cookie", ""), headers.get("authorization", ""))
        if scope["path"] != ENTER:
            locked = _API_LOCKED if is_api(scope["path"]) else _LOCKED
            return None if known else (_UNAUTHORIZED, locked, ())
        asked = parse_qs(scope["query_string"].decode("latin-1"))
        to = _below(asked.get("to", [""])[0])
        if not known:
            if not self._keys.swap(asked.get("code", [""])[0]):
                return 401, _LOCKED, ()
            kept = f"{self._keys.cookie}={self._keys.token}; Path=/; HttpOnly; SameSite=Strict"
            # A page of our own, not a redirect: the cookie is strict, and the way here was not ours.
            return 200, _WELCOME.format(to=to), (("set-cookie", kept), ("refresh", f"0; url={to}"))
        return 303, "", (("location", to),)


_LOCKED: Final = "Locked. Open the address that steno printed when it started; each works once."
_WELCOME: Final = "steno opens {to}"
_API_LOCKED: Final = "no valid token"
_API_HINT: Final = (
    "Start `steno explore` with STENO_TOKEN or --token-file and send `Authorization: Bearer TOKEN`."
)
_UNAUTHORIZED: Final = 401
_FAILED: Final = 400


def _wants_more(headers: dict[str, str]) -> bool:
    """Say whether somebody wants to talk another protocol on the same connection."""
    return "websocket" in headers.get("upgrade", "").lower()


def _below(to: str) -> str:
    """Return where to go first: a path of ours, never another site."""
    plain = to.startswith("/") and not to.startswith("//") and to.isascii() and to.isprintable()
    return to if plain and not set(to) & set("\\\"'<> ") else "/"


def _headers(scope: "Scope") -> dict[str, str]:
    """Return the headers of a request; of one that comes twice, both together, which fits nothing."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        joint = "; " if key == "cookie" else ", "
        found[key] = f"{found[key]}{joint}{text}" if key in found else text
    return found


def _sealed(path: str, send: "Send") -> "Send":
    """Return a way out that puts our headers on everything."""
    fixed = path.startswith(_STATIC)

    async def seal(message: "Message") -> None:
        if message["type"] == "http.response.start":
            own = {name.lower() for name, _ in message["headers"]}
            more = HEADERS if fixed else (*HEADERS, _UNKEPT)
            message["headers"] = [
                *message["headers"],
                *(_pair(name, value) for name, value in more if name.encode() not in own),
            ]
        await send(message)

    return seal


async def _answer(
    send: "Send", path: str, status: int, words: str, headers: tuple[tuple[str, str], ...]
) -> None:
    body, kind = words.encode(), "text/plain; charset=utf-8"
    if is_api(path) and status >= _FAILED:
        locked = status == _UNAUTHORIZED
        body = error_body(status, words, _API_HINT if locked else "")
        kind = JSON
        headers = (*headers, ("www-authenticate", "Bearer")) if locked else headers
    length = ("content-length", str(len(body)))
    every = (*HEADERS, _UNKEPT, ("content-type", kind), length, *headers)
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [_pair(name, value) for name, value in every],
        }
    )
    await send({"type": "http.response.body", "body": body})


def _pair(name: str, value: str) -> tuple[bytes, bytes]:
    return name.encode(), value.encode("latin-1")
