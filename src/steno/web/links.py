"""The address of everything. Templates ask here, so that the HTML export can answer otherwise."""

from typing import Final
from urllib.parse import quote, urlencode

__all__ = ["Links"]

_SAFE: Final = "~"


class Links:
    """Addresses in the explorer. An empty value in a query is left out."""

    live: bool = True
    """Whether there is a server behind the pages."""

    def __init__(self, mark: str = "") -> None:
        self._mark = mark
        """Changes whenever a file of ours does, so that browsers may keep the old one for good."""

    def static(self, name: str) -> str:
        """A stylesheet, script or picture of ours."""
        return f"/static/{self._mark}/{name}"

    def sessions(self, **query: str | int | None) -> str:
        """All sessions, or some."""
        return _with("/", query)

    def sessions_live(self, **query: str | int | None) -> str:
        """What changes in the list of sessions."""
        return _with("/live", query)

    def search(self, **query: str | int | None) -> str:
        """What has some words in it, on the list of sessions."""
        return _with("/", query)

    def session(self, key: str, anchor: str = "", **query: str | int | None) -> str:
        """A session; `anchor` is a turn (`t4`) or a seam (`c1`) on its page."""
        return _with(f"/s/{_part(key)}", query) + (f"#{quote(anchor)}" if anchor else "")

    def agent(self, key: str, agent: str, anchor: str = "", **query: str | int | None) -> str:
        """A sub-agent's own page."""
        way = f"/s/{_part(key)}/a/{_part(agent)}"
        return _with(way, query) + (f"#{quote(anchor)}" if anchor else "")

    def inside(self, key: str, what: str, agent: str = "", **query: str | int | None) -> str:
        """Something of a session or, with `agent`, of a sub-agent: `turns`, `records` and so on."""
        way = f"/s/{_part(key)}" + (f"/a/{_part(agent)}" if agent else "")
        return _with(f"{way}/{what}", query)

    def record(self, key: str, offset: int, agent: str = "") -> str:
        """One record, just as it stands in its file."""
        return self.inside(key, f"record/{offset}", agent)

    def project(self, key: str, **query: str | int | None) -> str:
        """A project."""
        return _with(f"/p/{_part(key)}", query)

    def files(self, **query: str | int | None) -> str:
        """Every file that agents touched."""
        return _with("/files", query)

    def file(self, key: str, **query: str | int | None) -> str:
        """One file through time."""
        return _with(f"/files/{_part(key)}", query)

    def usage(self, **query: str | int | None) -> str:
        """What was used and what it cost."""
        return _with("/usage", query)

    def usage_lines(self, **query: str | int | None) -> str:
        """The responses behind a figure, and their lines."""
        return _with("/usage/lines", query)

    def usage_calls(self, **query: str | int | None) -> str:
        """The calls of a tool."""
        return _with("/usage/calls", query)

    def usage_sessions(self, **query: str | int | None) -> str:
        """Sessions by what they cost."""
        return _with("/usage/sessions", query)

    def usage_csv(self, **query: str | int | None) -> str:
        """The same figures for a spreadsheet."""
        return _with("/usage/table.csv", query)

    def health(self, **query: str | int | None) -> str:
        """What is wrong or about to be."""
        return _with("/health", query)

    def compare(self, **query: str | int | None) -> str:
        """Two sessions side by side."""
        return _with("/compare", query)


def _part(name: str) -> str:
    return quote(name, safe=_SAFE)


def _with(way: str, query: dict[str, str | int | None]) -> str:
    kept = [(name, value) for name, value in query.items() if value not in (None, "")]
    return f"{way}?{urlencode(kept)}" if kept else way
