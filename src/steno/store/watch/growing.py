"""A file that grows: each look reads only what is new."""

from collections.abc import Iterator
from typing import Final

from steno.errors import Unreadable
from steno.store.read import FileSource

__all__ = ["Growing"]

_SAME: Final = 64
"""So many bytes before the new ones are compared, to notice a file that was written anew."""


class Growing:
    """What was added to a file since the last look."""

    def __init__(self, path: str, start: int = 0) -> None:
        self.path = path
        self.offset = start
        """Up to where it was read."""
        self.read = 0
        """How many bytes were read in all, for those who count the work."""
        self.there = True
        self._identity: tuple[int, int] | None = None
        self._end = b""

    def began_anew(self) -> bool:
        """Say whether the file was replaced or cut short; then it is read from its beginning."""
        try:
            with FileSource(self.path) as source:
                # What comes back is another file, even in the place of the old one.
                anew = not self.there or not self._continues(source)
        except Unreadable:
            self.there = False
            return False
        self.there = True
        if anew:
            self.offset, self._end, self._identity = 0, b"", None
        return anew

    def more(self, until: int | None = None) -> Iterator[bytes]:
        """Yield what is new, up to a place if one is named."""
        try:
            with FileSource(self.path) as source:
                self._identity = source.identity
                source.size = source.size if until is None else min(until, source.size)
                for chunk in source.chunks(self.offset):
                    self.offset += len(chunk)
                    self.read += len(chunk)
                    self._end = (self._end + chunk)[-_SAME:]
                    yield chunk
        except Unreadable:
            # Cut short while it was read, or gone: the next look tells which.
            return

    def _continues(self, source: FileSource) -> bool:
        if self._identity is None:
            return source.size >= self.offset
        if source.identity != self._identity or source.size < self.offset:
            return False
        self.read += len(self._end)
        return source.read(self.offset - len(self._end), len(self._end)) == self._end
