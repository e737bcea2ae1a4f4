"""News of changed files, from the thread that watches them to the pages that stream."""

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

__all__ = ["Hearing", "News"]

_MANY: Final = 256
"""Paths that may wait for a slow reader; beyond that it is told to look at everything."""


class Hearing:
    """One reader's share of the news. Whatever is said twice before it listens is heard once."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._event = asyncio.Event()
        self._paths: set[str] | None = set()
        self.over = False

    def tell(self, paths: frozenset[str] | None) -> None:
        """Take in what changed; None for anything. Called in the reader's own loop."""
        if paths is None or self._paths is None or len(self._paths) + len(paths) > _MANY:
            self._paths = None
        else:
            self._paths |= paths
        self._event.set()

    def end(self) -> None:
        """Say that nothing more will come."""
        self.over = True
        self._event.set()

    async def next(self, patience: float | None = None) -> set[str] | None:
        """Wait for news and return the paths that changed; None for anything. Empty in quiet times."""
        try:
            await asyncio.wait_for(self._event.wait(), patience)
        except TimeoutError:
            return set()
        self._event.clear()
        paths, self._paths = self._paths, set()
        return paths


class News:
    """Tells everybody who listens."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hearings: set[Hearing] = set()
        self.closed = False

    @asynccontextmanager
    async def heard(self) -> AsyncGenerator[Hearing]:
        """Listen for as long as the block runs."""
        hearing = Hearing(asyncio.get_running_loop())
        with self._lock:
            self._hearings.add(hearing)
            if self.closed:
                hearing.end()
        try:
            yield hearing
        finally:
            with self._lock:
                self._hearings.discard(hearing)

    @property
    def listeners(self) -> int:
        """How many listen."""
        return len(self._hearings)

    def tell(self, paths: frozenset[str] | None = None) -> None:
        """Say, from any thread, which files changed; None when anything may have."""
        with self._lock:
            for hearing in self._hearings:
                hearing.loop.call_soon_threadsafe(hearing.tell, paths)

    def close(self) -> None:
        """End every stream."""
        with self._lock:
            self.closed = True
            for hearing in self._hearings:
                hearing.loop.call_soon_threadsafe(hearing.end)
