"""Which machines of the web may be reached: those of the public network, by the address itself."""

import asyncio
import ipaddress
import socket
from typing import Final, TypeAlias
from urllib.parse import SplitResult, urljoin, urlsplit

import msgspec

from steno.tools.base import ToolFailure
from steno.tools.output import harmless

__all__ = ["Target", "found_at", "is_public", "is_same_site", "target_of"]

_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_LONGEST: Final = 2_000
_PORTS: Final = {"http": 80, "https": 443}
# Written out: what the standard library counts as public differs between its versions.
_INSIDE: Final = tuple(
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",
        "168.63.129.16/32",
    )
)
# Of the newer kind, only what is given out to the public is public; these are parts of that.
_GIVEN_OUT: Final = ipaddress.ip_network("2000::/3")
_NOT_GIVEN_OUT: Final = tuple(
    ipaddress.ip_network(network)
    for network in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)


class Target(msgspec.Struct, frozen=True):
    """An address of the web, taken apart."""

    scheme: str
    host: str
    port: int
    rest: str
    """Path and query."""

    @property
    def authority(self) -> str:
        """Host and port as a server expects them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The address as it is written."""
        return f"{self.scheme}://{self.authority}{self.rest}"

    def at(self, address: str) -> str:
        """Return the address with a machine's number in place of its name."""
        number = f"[{address}]" if ":" in address else address
        return f"{self.scheme}://{number}:{self.port}{self.rest}"

    def join(self, location: str) -> str:
        """Return where a redirect leads."""
        try:
            return urljoin(self.url, location.strip())
        except ValueError:
            raise ToolFailure(f"{self.url} leads to no address that makes sense.") from None


def target_of(url: str, *, loopback: bool) -> Target:
    """Take an address apart; `http` becomes `https`, but for this very machine where allowed.

    Raises:
        ToolFailure: it is none, or none that is read.
    """
    shown = harmless(url[:200])
    if len(url) > _LONGEST or not url.isprintable() or " " in url or "\\" in url:
        raise ToolFailure(f"This is no address that can be read: {shown}")
    try:
        parts = urlsplit(url)
        host, port = _host(parts), parts.port
    except (ValueError, UnicodeError):
        raise ToolFailure(f"This is no address that can be read: {shown}") from None
    if parts.scheme not in _PORTS or not host:
        raise ToolFailure(f"Only http and https addresses can be read, not {shown}")
    if parts.username is not None or parts.password is not None:
        raise ToolFailure("An address with a name or a password in it is not read.")
    scheme = parts.scheme
    if scheme == "http" and not (loopback and _is_loopback(host)):
        scheme, port = "https", None if port == _PORTS["http"] else port
    rest = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(scheme, host, port or _PORTS[scheme], rest)


def _host(parts: SplitResult) -> str:
    """Return the host's name in the letters that name servers know."""
    host = (parts.hostname or "").rstrip(".")
    if "%" in host:
        raise ValueError(host)
    return host if host.isascii() else host.encode("idna").decode("ascii")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_same_site(one: Target, other: Target) -> bool:
    """Say whether a redirect stays with the host, with or without `www.`."""
    ours, theirs = (each.host.removeprefix("www.") for each in (one, other))
    return (ours, one.port, one.scheme) == (theirs, other.port, other.scheme)


async def found_at(target: Target, *, loopback: bool) -> str:
    """Return the number of the machine that a name stands for, if it may be reached.

    Raises:
        ToolFailure: the name is not known, or any of its numbers is of a machine inside.
    """
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise ToolFailure(f"The host {harmless(target.host)} is not known.") from None
    numbers = [str(entry[4][0]) for entry in found]
    for number in numbers:
        address = ipaddress.ip_address(number.partition("%")[0])
        if not is_public(address) and not (loopback and address.is_loopback):
            raise ToolFailure(
                f"{harmless(target.host)} is an address inside a private network or of this "
                "machine, which is not read."
            )
    if not numbers:
        raise ToolFailure(f"The host {harmless(target.host)} is not known.")
    return numbers[0]


def is_public(address: _Address) -> bool:
    """Say whether an address belongs to the public network.

    >>> is_public(ipaddress.ip_address("::ffff:10.0.0.1"))
    False
    """
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _INSIDE)
    # A number of the older kind that hides in one of the newer is not reached that way at all.
    return address in _GIVEN_OUT and not any(address in network for network in _NOT_GIVEN_OUT)
