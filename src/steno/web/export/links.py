"""Addresses in pages that lie in files: other pages, places on the same page, pictures themselves."""

from collections.abc import Callable, Mapping

from steno.web.links import Links

__all__ = ["FileLinks"]

_IMAGE = "image/"


class FileLinks(Links):
    """Where things are without a server; an empty address where they are not."""

    live = False

    def __init__(
        self,
        pages: Mapping[str, str] | None = None,
        pictures: Callable[[str, str], str] | None = None,
    ) -> None:
        super().__init__()
        self._pages = pages or {}
        """The page of each anchor of the session, where it has several."""
        self._pictures = pictures

    def static(self, name: str) -> str:
        """A stylesheet, script or picture of ours stands in the page itself."""
        del name
        return ""

    def sessions(self, **query: str | int | None) -> str:
        """The page that lists all of them, where there is one."""
        del query
        return self._pages.get("index", "")

    def session(self, key: str, anchor: str = "", **query: str | int | None) -> str:
        """A turn or a seam of the same session."""
        del key, query
        return f"{self._pages.get(anchor, '')}#{anchor}" if anchor else ""

    def agent(self, key: str, agent: str, anchor: str = "", **query: str | int | None) -> str:
        """A sub-agent stands inside of the step that called it."""
        del key, agent, anchor, query
        return ""

    def inside(self, key: str, what: str, agent: str = "", **query: str | int | None) -> str:
        """A picture, in itself; nothing else of a session has a page of its own."""
        del key, query
        if what.startswith(_IMAGE) and self._pictures is not None:
            return self._pictures(agent, what.removeprefix(_IMAGE))
        return ""

    def project(self, key: str, **query: str | int | None) -> str:
        """A project has no page."""
        del key, query
        return ""

    def search(self, **query: str | int | None) -> str:
        """Nothing can be asked."""
        del query
        return ""

    def files(self, **query: str | int | None) -> str:
        """Files have no pages."""
        del query
        return ""

    def file(self, key: str, **query: str | int | None) -> str:
        """A file has none."""
        del key, query
        return ""

    def usage(self, **query: str | int | None) -> str:
        """Figures stand beside what they are of."""
        del query
        return ""

    def health(self, **query: str | int | None) -> str:
        """What is wrong is not told to others."""
        del query
        return ""

    def compare(self, **query: str | int | None) -> str:
        """Nothing can be compared."""
        del query
        return ""
