"""Address and credentials of a Messages API. The key stays in here.

No `repr`, error or log contains it: `sign` adds it to a request, and `redact` removes it from text
that somebody else wrote.
"""

import re
from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING, Final, Self

from steno.errors import BadRequest
from steno.sanitize.terminal import one_line

if TYPE_CHECKING:
    from urllib.parse import SplitResult


DEFAULT_URL: Final = "https://api.anthropic.com"
_KEY_HEADERS: Final = frozenset({"authorization", "x-api-key"})
# These say where a message ends: whoever sets them by hand can smuggle a second one in.
_FRAMING_HEADERS: Final = frozenset({"connection", "content-length", "host", "transfer-encoding"})
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?")
_HOST: Final = re.compile(r"(?:[0-9A-Za-z._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]+)?")
_URL_CHARACTERS: Final = re.compile(r"[^\x00-\x20\x7f-\U0010ffff\"#?\\]+")
_REDACTED: Final = "[hidden]"
# Anything shorter is no secret, and would be found in the middle of every other word.
_MIN_SECRET: Final = 6
_MAX_SHOWN: Final = 2_000


class MissingKey(BadRequest):
    """There is nothing to say who one is with."""


class Endpoint:
    """An API: its address, a key or a token for it, and how long to wait for it.

    `timeout` is how long an answer may take to begin (and, when it does not stream, to come whole),
    `silence` how long a stream may say nothing, `connect` how long a connection may take; all in
    seconds. `plain_http` allows an address without TLS that is not this machine.
    """

    __slots__ = ("_headers", "base_url", "betas", "connect", "host", "local", "place", "silence", "timeout")

    def __init__(
        self,
        base_url: str = DEFAULT_URL,
        *,
        api_key: str = "",
        auth_token: str = "",
        headers: Mapping[str, str] | None = None,
        timeout: float = 600.0,
        silence: float = 180.0,
        plain_http: bool = False,
    ) -> None:
        parts = _parse_url(base_url)
        self.base_url = base_url.strip().rstrip("/")
        self.host = parts.hostname or ""
        self.place = f"{self.host}:{parts.port}" if parts.port else self.host
        """The host, and its port where that is not the usual one."""
        self.local = _is_loopback(self.host)
        if parts.scheme == "http" and not self.local and not plain_http:
            raise BadRequest(
                f"a key is not sent to {self.host} without encryption",
                hint="use an https:// address, or one of this machine",
            )
        self.timeout = timeout
        self.silence = silence
        self.connect = min(timeout, 30.0)
        extra = _checked_headers(headers or {})
        betas = extra.pop("anthropic-beta", "").split(",")
        self.betas = tuple(beta.strip() for beta in betas if beta.strip())
        """Betas that the given headers ask for."""
        self._headers = _auth_headers(api_key, auth_token) | extra
        if not self._headers.keys() & _KEY_HEADERS:
            raise MissingKey(
                f"there is no key for {self.host}", hint="set ANTHROPIC_API_KEY, or ANTHROPIC_AUTH_TOKEN for a gateway"
            )

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str], *, timeout: float = 600.0, silence: float = 180.0, plain_http: bool = False
    ) -> Self:
        """Return the API that the variables of an environment name.

        A token goes before a key, as in Claude Code: only one of the two is sent.

        Raises:
            MissingKey: neither a key nor a token is set.
            BadRequest: a variable makes no sense, or the address is not safe.
        """
        token = environment.get("ANTHROPIC_AUTH_TOKEN", "").strip()
        key = environment.get("ANTHROPIC_API_KEY", "").strip()
        return cls(
            environment.get("ANTHROPIC_BASE_URL", "").strip() or DEFAULT_URL,
            api_key="" if token else key,
            auth_token=token,
            headers=_parse_header_lines(environment.get("ANTHROPIC_CUSTOM_HEADERS", "")),
            timeout=timeout,
            silence=silence,
            plain_http=plain_http,
        )

    def __repr__(self) -> str:
        return f"Endpoint({self.base_url!r})"

    def __reduce__(self) -> str:
        raise TypeError("an Endpoint has a key and is not copied out of memory")

    @property
    def key_source(self) -> str:
        """The variable that holds the key, as others are told it; `none` for anything but a key."""
        return "ANTHROPIC_API_KEY" if "x-api-key" in self._headers else "none"

    def sign(self, headers: MutableMapping[str, str]) -> None:
        """Put the key, and the headers that were given beside it, on a request."""
        for name, value in self._headers.items():
            headers[name] = value

    def redact(self, text: str) -> str:
        """Return what somebody else wrote as one line that can be shown.

        The key is not in it, nor any other value that was given with it.
        """
        for value in self._headers.values():
            for secret in (value, value.removeprefix("Bearer ")):
                if len(secret) >= _MIN_SECRET:
                    text = text.replace(secret, _REDACTED)
        return one_line(text)[:_MAX_SHOWN]


def _parse_url(base_url: str) -> "SplitResult":
    """Take an address apart. What is wrong with it is said without it: it may hold a password."""
    from urllib.parse import urlsplit

    hint = "such as https://api.anthropic.com"
    try:
        parts = urlsplit(base_url.strip())
        port = parts.port
    except ValueError:
        # Its own words quote the address.
        raise BadRequest("the address of the API is no URL", hint=hint) from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0:
        raise BadRequest("the address of the API is no http or https URL", hint=hint)
    if "@" in parts.netloc:
        raise BadRequest(
            "the address of the API holds a name or password",
            hint="set ANTHROPIC_AUTH_TOKEN or ANTHROPIC_CUSTOM_HEADERS instead",
        )
    # Stricter than the standard: two readers of an address must not find two hosts in it.
    if not _HOST.fullmatch(parts.netloc) or not _URL_CHARACTERS.fullmatch(base_url.strip()):
        raise BadRequest("the address of the API holds more than a place", hint=hint)
    return parts


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    from ipaddress import ip_address

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _auth_headers(api_key: str, auth_token: str) -> dict[str, str]:
    headers: dict[str, str] = {}
    for kind, name, value in (("key", "x-api-key", api_key.strip()), ("token", "authorization", auth_token.strip())):
        if not value:
            continue
        if not _HEADER_VALUE.fullmatch(value):
            raise BadRequest(
                f"the {kind} for the API holds a character that no header can carry",
                hint="it was probably copied with something around it",
            )
        headers[name] = f"Bearer {value}" if name == "authorization" else value
    return headers


def _parse_header_lines(text: str) -> dict[str, str]:
    headers: dict[str, str] = {}
    for number, line in enumerate(text.replace("\r", "\n").split("\n"), start=1):
        name, separator, value = line.partition(":")
        if not line.strip():
            continue
        if not separator:
            raise BadRequest(
                f"line {number} of ANTHROPIC_CUSTOM_HEADERS is no header",
                hint="one header a line, such as `X-Team: blue`",
            )
        headers[name.strip()] = value.strip()
    return headers


def _checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers with their names in lower case; values may be secret and are not told."""
    result: dict[str, str] = {}
    for number, (name, value) in enumerate(headers.items(), start=1):
        if not _HEADER_NAME.fullmatch(name) or (value and not _HEADER_VALUE.fullmatch(value)):
            raise BadRequest(f"custom header {number} holds a character that no header can carry")
        if name.lower() in _FRAMING_HEADERS:
            raise BadRequest(f"the header {name.lower()} cannot be set by hand")
        result[name.lower()] = value
    return result
