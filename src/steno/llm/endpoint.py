"""Address and credentials of a Messages API.

The key is never part of a `repr`, error or log: `sign` adds it to a request, and `redact` removes it from text of
servers and libraries.
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
# These delimit messages: custom values would allow request smuggling.
_FRAMING_HEADERS: Final = frozenset({"connection", "content-length", "host", "transfer-encoding"})
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?")
_HOST: Final = re.compile(r"(?:[0-9A-Za-z._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]+)?")
_URL_CHARACTERS: Final = re.compile(r"[^\x00-\x20\x7f-\U0010ffff\"#?\\]+")
_REDACTED: Final = "[hidden]"
# Shorter values are not secret, and would match parts of other words.
_MIN_SECRET: Final = 6
_MAX_SHOWN: Final = 2_000


class MissingKey(BadRequest):
    """No API key or token is configured."""


class Endpoint:
    """The address of an API, its credentials and timeouts.

    `timeout` limits the time until a response starts (and until a response without streaming is complete), `silence`
    the time between events of a stream, `connect` the time to connect; all in seconds. `plain_http` allows an address
    without TLS on another machine.
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
        """The host, with its port unless it is the default one."""
        self.local = _is_loopback(self.host)
        if parts.scheme == "http" and not self.local and not plain_http:
            raise BadRequest(
                f"refusing to send the API key to {self.host} without encryption",
                hint="Use an https:// address or a local one.",
            )
        self.timeout = timeout
        self.silence = silence
        self.connect = min(timeout, 30.0)
        extra = _checked_headers(headers or {})
        betas = extra.pop("anthropic-beta", "").split(",")
        self.betas = tuple(beta.strip() for beta in betas if beta.strip())
        """Beta names in the custom headers."""
        self._headers = _auth_headers(api_key, auth_token) | extra
        if not self._headers.keys() & _KEY_HEADERS:
            raise MissingKey(
                f"no API key for {self.host}", hint="Set ANTHROPIC_API_KEY, or ANTHROPIC_AUTH_TOKEN for a gateway."
            )

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str], *, timeout: float = 600.0, silence: float = 180.0, plain_http: bool = False
    ) -> Self:
        """Return the endpoint that environment variables configure.

        A token takes precedence over a key, as in Claude Code; only one of them is sent.

        Raises:
            MissingKey: neither a key nor a token is set.
            BadRequest: a variable is invalid, or the address is not safe.
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
        raise TypeError("an Endpoint contains a key and cannot be pickled")

    @property
    def key_source(self) -> str:
        """The variable with the key, as shown to the user; `none` without a key."""
        return "ANTHROPIC_API_KEY" if "x-api-key" in self._headers else "none"

    def sign(self, headers: MutableMapping[str, str]) -> None:
        """Add the credentials and custom headers to a request."""
        for name, value in self._headers.items():
            headers[name] = value

    def redact(self, text: str) -> str:
        """Return text from a server or library as one line that is safe to show.

        The key and the values of custom headers are replaced.
        """
        for value in self._headers.values():
            for secret in (value, value.removeprefix("Bearer ")):
                if len(secret) >= _MIN_SECRET:
                    text = text.replace(secret, _REDACTED)
        return one_line(text)[:_MAX_SHOWN]


def _parse_url(base_url: str) -> "SplitResult":
    """Parse an address. Error messages do not contain it, because it may include a password."""
    from urllib.parse import urlsplit

    hint = "Example: https://api.anthropic.com"
    try:
        parts = urlsplit(base_url.strip())
        port = parts.port
    except ValueError:
        # The original message quotes the address.
        raise BadRequest("the API address is not a valid URL", hint=hint) from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0:
        raise BadRequest("the API address is not an http or https URL", hint=hint)
    if "@" in parts.netloc:
        raise BadRequest(
            "the API address contains a user name or password",
            hint="Use ANTHROPIC_AUTH_TOKEN or ANTHROPIC_CUSTOM_HEADERS instead.",
        )
    # Stricter than the standard, so that URL parsers cannot disagree about the host.
    if not _HOST.fullmatch(parts.netloc) or not _URL_CHARACTERS.fullmatch(base_url.strip()):
        raise BadRequest("the API address contains invalid characters", hint=hint)
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
                f"the API {kind} contains a character that is not valid in a header",
                hint="Check for extra characters from copying, such as a line break.",
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
                f"line {number} of ANTHROPIC_CUSTOM_HEADERS is not a header",
                hint="Use one header per line, such as `X-Team: blue`.",
            )
        headers[name.strip()] = value.strip()
    return headers


def _checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers with lower-case names; error messages omit the values, which may be secret."""
    result: dict[str, str] = {}
    for number, (name, value) in enumerate(headers.items(), start=1):
        if not _HEADER_NAME.fullmatch(name) or (value and not _HEADER_VALUE.fullmatch(value)):
            raise BadRequest(f"custom header {number} contains an invalid character")
        if name.lower() in _FRAMING_HEADERS:
            raise BadRequest(f"the header {name.lower()} cannot be customized")
        result[name.lower()] = value
    return result
