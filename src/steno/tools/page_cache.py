"""Web pages that were read a short time ago."""

from typing import Final

import msgspec

__all__ = ["FRESH", "Page", "PageCache"]

FRESH: Final = 15 * 60.0
"""For how many seconds a page is not read again."""
_MOST: Final = 32


class Page(msgspec.Struct, frozen=True):
    """The response of an address, with its text."""

    url: str
    text: str
    size: int
    code: int
    reason: str
    moved_to: str = ""


class PageCache:
    """Pages by address."""

    def __init__(self) -> None:
        self.loopback = False
        """Whether pages of this machine may be read; only tests do."""
        self._pages: dict[str, tuple[float, Page]] = {}

    def get(self, url: str, now: float) -> Page | None:
        """Return a page that is still fresh at a moment of the monotonic clock."""
        for old in [key for key, (when, _) in self._pages.items() if now - when >= FRESH]:
            del self._pages[old]
        return self._pages[url][1] if url in self._pages else None

    def put(self, url: str, page: Page, now: float) -> None:
        """Add a page that was asked for at a moment of the monotonic clock."""
        if len(self._pages) >= _MOST:
            del self._pages[next(iter(self._pages))]
        self._pages[url] = (now, page)
