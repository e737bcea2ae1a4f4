"""Change notifications from the file watcher thread to streaming requests."""

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

_MAX_PENDING_PATHS: Final = 256
"""Maximum queued paths per subscriber; on overflow, it is notified of unspecified changes."""


class Subscription:
    """The queued changes of one subscriber. Repeated paths are delivered once."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._event = asyncio.Event()
        self._paths: set[str] | None = set()
        self.closed = False

    def notify(self, paths: frozenset[str] | None) -> None:
        """Queue changed paths; None for unspecified changes. Call in the subscriber's event loop."""
        if paths is None or self._paths is None or len(self._paths) + len(paths) > _MAX_PENDING_PATHS:
            self._paths = None
        else:
            self._paths |= paths
        self._event.set()

    def close(self) -> None:
        """End the subscription."""
        self.closed = True
        self._event.set()

    async def wait(self, time_limit: float | None = None) -> set[str] | None:
        """Wait for changed paths; None for unspecified changes, empty on timeout."""
        try:
            await asyncio.wait_for(self._event.wait(), time_limit)
        except TimeoutError:
            return set()
        self._event.clear()
        paths, self._paths = self._paths, set()
        return paths


class PubSub:
    """Sends changes to all subscribers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscriptions: set[Subscription] = set()
        self.closed = False

    @asynccontextmanager
    async def subscribe(self) -> AsyncGenerator[Subscription]:
        """Subscribe while the block runs."""
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
        """Return the number of subscribers."""
        return len(self._subscriptions)

    def publish(self, paths: frozenset[str] | None = None) -> None:
        """Publish changed paths from any thread; None for unspecified changes."""
        with self._lock:
            for subscription in self._subscriptions:
                subscription.loop.call_soon_threadsafe(subscription.notify, paths)

    def close(self) -> None:
        """End all subscriptions."""
        with self._lock:
            self.closed = True
            for subscription in self._subscriptions:
                subscription.loop.call_soon_threadsafe(subscription.close)
