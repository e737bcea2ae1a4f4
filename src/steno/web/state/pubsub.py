"""Change notifications from the file watcher thread to streaming requests."""

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

_MAX_PENDING_PATHS: Final = 256
"""Paths that may wait for a slow reader; beyond that it is told to look at everything."""


class Subscription:
    """One reader's share of the news. Whatever is said twice before it listens is heard once."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._event = asyncio.Event()
        self._paths: set[str] | None = set()
        self.closed = False

    def notify(self, paths: frozenset[str] | None) -> None:
        """Take in what changed; None for anything. Called in the reader's own loop."""
        if paths is None or self._paths is None or len(self._paths) + len(paths) > _MAX_PENDING_PATHS:
            self._paths = None
        else:
            self._paths |= paths
        self._event.set()

    def close(self) -> None:
        """Say that nothing more will come."""
        self.closed = True
        self._event.set()

    async def wait(self, time_limit: float | None = None) -> set[str] | None:
        """Wait for news and return the paths that changed; None for anything. Empty in quiet times."""
        try:
            await asyncio.wait_for(self._event.wait(), time_limit)
        except TimeoutError:
            return set()
        self._event.clear()
        paths, self._paths = self._paths, set()
        return paths


class PubSub:
    """Tells everybody who listens."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscriptions: set[Subscription] = set()
        self.closed = False

    @asynccontextmanager
    async def subscribe(self) -> AsyncGenerator[Subscription]:
        """Listen for as long as the block runs."""
        subscription = Subscription(asyncio.get_running_loop())
        with self._lock:
            self._subscriptions.add(subscription)
            if self.closed:
                subscription.close()
        try:
            yield subscription
        finally:
            with self._lock:
                self._subscriptions.discard(subscription)

    @property
    def subscriber_count(self) -> int:
        """How many listen."""
        return len(self._subscriptions)

    def publish(self, paths: frozenset[str] | None = None) -> None:
        """Say, from any thread, which files changed; None when anything may have."""
        with self._lock:
            for subscription in self._subscriptions:
                subscription.loop.call_soon_threadsafe(subscription.notify, paths)

    def close(self) -> None:
        """End every stream."""
        with self._lock:
            self.closed = True
            for subscription in self._subscriptions:
                subscription.loop.call_soon_threadsafe(subscription.close)
