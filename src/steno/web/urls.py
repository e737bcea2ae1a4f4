"""URLs of all pages, path tags and numbers in URLs.

Templates build URLs through `Links`, which the HTML export replaces.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final
from urllib.parse import quote, urlencode

from steno.errors import NotFound


def path_tag(path: str) -> str:
    """Return the tag of a path in URLs."""
    return blake2b(path.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def path_for_tag(tag: str, paths: Iterable[str]) -> str:
    """Return the path of a tag.

    Raises:
        NotFound: No path has this tag.
    """
    for path in paths:
        if path_tag(path) == tag:
            return path
    raise NotFound(f"no project or directory matches {tag!r}", hint="It may not be indexed yet.")


_MAX_DIGITS: Final = 17


def parse_number(text: str | None, default: int = 0) -> int:
    """Return a number from a URL; `default` if it is invalid or too large.

    >>> parse_number("42"), parse_number("-1"), parse_number("9" * 5000), parse_number("x", -1)
    (42, 0, 0, -1)
    """
    if text is None or not text.isascii() or not text.isdecimal() or len(text) > _MAX_DIGITS:
        return default
    return int(text)


_SAFE: Final = "~"


class Links:
    """URLs of the explorer. Empty query values are omitted."""

    live: bool = True
    """Whether the pages are served, rather than exported."""

    def __init__(self, static_version: str = "") -> None:
        self._static_version = static_version
        """Part of the URLs of static files, so that browsers can cache them indefinitely."""

    def static(self, name: str) -> str:
        """Return the URL of a static file."""
        return f"/static/{self._static_version}/{name}"

    def sessions(self, **query: str | int | None) -> str:
        """Return the URL of the session list."""
        return _with_query("/", query)

    def sessions_live(self, **query: str | int | None) -> str:
        """Return the URL of the event stream of the session list."""
        return _with_query("/live", query)

    def search(self, **query: str | int | None) -> str:
        """Return the URL of search results."""
        return _with_query("/", query)

    def session(self, key: str, anchor: str = "", **query: str | int | None) -> str:
        """Return the URL of a session; `anchor` is a turn (`t4`) or a compaction (`c1`)."""
        return _with_query(f"/s/{_quoted(key)}", query) + (f"#{quote(anchor)}" if anchor else "")

    def agent(self, key: str, agent: str, anchor: str = "", **query: str | int | None) -> str:
        """Return the URL of a sub-agent."""
        path = f"/s/{_quoted(key)}/a/{_quoted(agent)}"
        return _with_query(path, query) + (f"#{quote(anchor)}" if anchor else "")

    def thread(self, key: str, agent: str, anchor: str = "", **query: str | int | None) -> str:
        """Return the URL of a session or, with `agent`, of a sub-agent."""
        if agent:
            return self.agent(key, agent, anchor, **query)
        return self.session(key, anchor, **query)

    def inside(self, key: str, page: str, agent: str = "", **query: str | int | None) -> str:
        """Return the URL of a part of a session or sub-agent, such as `turns` or `records`."""
        path = f"/s/{_quoted(key)}" + (f"/a/{_quoted(agent)}" if agent else "")
        return _with_query(f"{path}/{page}", query)

    def record(self, key: str, offset: int, agent: str = "") -> str:
        """Return the URL of a raw record."""
        return self.inside(key, f"record/{offset}", agent)

    def project(self, key: str, **query: str | int | None) -> str:
        """Return the URL of a project."""
        return _with_query(f"/p/{_quoted(key)}", query)

    def files(self, **query: str | int | None) -> str:
        """Return the URL of the files page."""
        return _with_query("/files", query)

    def file(self, key: str, **query: str | int | None) -> str:
        """Return the URL of a file."""
        return _with_query(f"/files/{_quoted(key)}", query)

    def usage(self, **query: str | int | None) -> str:
        """Return the URL of the usage page."""
        return _with_query("/usage", query)

    def usage_lines(self, **query: str | int | None) -> str:
        """Return the URL of the responses that a usage figure counts."""
        return _with_query("/usage/lines", query)

    def usage_calls(self, **query: str | int | None) -> str:
        """Return the URL of the calls of a tool."""
        return _with_query("/usage/calls", query)

    def usage_sessions(self, **query: str | int | None) -> str:
        """Return the URL of the sessions by cost."""
        return _with_query("/usage/sessions", query)

    def usage_csv(self, **query: str | int | None) -> str:
        """Return the URL of the usage CSV file."""
        return _with_query("/usage/table.csv", query)

    def health(self, **query: str | int | None) -> str:
        """Return the URL of the health page."""
        return _with_query("/health", query)

    def compare(self, **query: str | int | None) -> str:
        """Return the URL of a comparison."""
        return _with_query("/compare", query)


def _quoted(name: str) -> str:
    return quote(name, safe=_SAFE)


def _with_query(path: str, query: dict[str, str | int | None]) -> str:
    pairs = [(name, value) for name, value in query.items() if value not in (None, "")]
    return f"{path}?{urlencode(pairs)}" if pairs else path
