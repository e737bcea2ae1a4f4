"""URLs of all pages, path tags and numbers in URLs.

Templates build URLs through `Links`, which the HTML export replaces.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final
from urllib.parse import quote, urlencode

from steno.errors import NotFound


def path_tag(path: str) -> str:
    """Return the name that stands for a path."""
    return blake2b(path.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def path_for_tag(tag: str, paths: Iterable[str]) -> str:
    """Return the path that a name stands for.

    Raises:
        NotFound: it stands for none of them.
    """
    for path in paths:
        if path_tag(path) == tag:
            return path
    raise NotFound(f"nothing goes by {tag!r}", hint="it may not be indexed yet")


_MAX_DIGITS: Final = 17


def parse_number(text: str | None, default: int = 0) -> int:
    """Return the number that a part of an address is; one that nothing can have is none.

    >>> parse_number("42"), parse_number("-1"), parse_number("9" * 5000), parse_number("x", -1)
    (42, 0, 0, -1)
    """
    if text is None or not text.isascii() or not text.isdecimal() or len(text) > _MAX_DIGITS:
        return default
    return int(text)


_SAFE: Final = "~"


class Links:
    """Addresses in the explorer. An empty value in a query is left out."""

    live: bool = True
    """Whether there is a server behind the pages."""

    def __init__(self, static_version: str = "") -> None:
        self._static_version = static_version
        """Changes whenever a file of ours does, so that browsers may keep the old one for good."""

    def static(self, name: str) -> str:
        """A stylesheet, script or picture of ours."""
        return f"/static/{self._static_version}/{name}"

    def sessions(self, **query: str | int | None) -> str:
        """All sessions, or some."""
        return _with_query("/", query)

    def sessions_live(self, **query: str | int | None) -> str:
        """What changes in the list of sessions."""
        return _with_query("/live", query)

    def search(self, **query: str | int | None) -> str:
        """What has some words in it, on the list of sessions."""
        return _with_query("/", query)

    def session(self, key: str, anchor: str = "", **query: str | int | None) -> str:
        """A session; `anchor` is a turn (`t4`) or a seam (`c1`) on its page."""
        return _with_query(f"/s/{_quoted(key)}", query) + (f"#{quote(anchor)}" if anchor else "")

    def agent(self, key: str, agent: str, anchor: str = "", **query: str | int | None) -> str:
        """A sub-agent's own page."""
        path = f"/s/{_quoted(key)}/a/{_quoted(agent)}"
        return _with_query(path, query) + (f"#{quote(anchor)}" if anchor else "")

    def thread(self, key: str, agent: str, anchor: str = "", **query: str | int | None) -> str:
        """A session or, with `agent`, a sub-agent's own page."""
        if agent:
            return self.agent(key, agent, anchor, **query)
        return self.session(key, anchor, **query)

    def inside(self, key: str, page: str, agent: str = "", **query: str | int | None) -> str:
        """Something of a session or, with `agent`, of a sub-agent: `turns`, `records` and so on."""
        path = f"/s/{_quoted(key)}" + (f"/a/{_quoted(agent)}" if agent else "")
        return _with_query(f"{path}/{page}", query)

    def record(self, key: str, offset: int, agent: str = "") -> str:
        """One record, just as it stands in its file."""
        return self.inside(key, f"record/{offset}", agent)

    def project(self, key: str, **query: str | int | None) -> str:
        """A project."""
        return _with_query(f"/p/{_quoted(key)}", query)

    def files(self, **query: str | int | None) -> str:
        """Every file that agents touched."""
        return _with_query("/files", query)

    def file(self, key: str, **query: str | int | None) -> str:
        """One file through time."""
        return _with_query(f"/files/{_quoted(key)}", query)

    def usage(self, **query: str | int | None) -> str:
        """What was used and what it cost."""
        return _with_query("/usage", query)

    def usage_lines(self, **query: str | int | None) -> str:
        """The responses behind a figure, and their lines."""
        return _with_query("/usage/lines", query)

    def usage_calls(self, **query: str | int | None) -> str:
        """The calls of a tool."""
        return _with_query("/usage/calls", query)

    def usage_sessions(self, **query: str | int | None) -> str:
        """Sessions by what they cost."""
        return _with_query("/usage/sessions", query)

    def usage_csv(self, **query: str | int | None) -> str:
        """The same figures for a spreadsheet."""
        return _with_query("/usage/table.csv", query)

    def health(self, **query: str | int | None) -> str:
        """What is wrong or about to be."""
        return _with_query("/health", query)

    def compare(self, **query: str | int | None) -> str:
        """Two sessions side by side."""
        return _with_query("/compare", query)


def _quoted(name: str) -> str:
    return quote(name, safe=_SAFE)


def _with_query(path: str, query: dict[str, str | int | None]) -> str:
    pairs = [(name, value) for name, value in query.items() if value not in (None, "")]
    return f"{path}?{urlencode(pairs)}" if pairs else path
