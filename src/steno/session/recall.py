"""The last words of a session: so many turns of it, or those since some time.

`remember` is how those who follow a session for days keep only the newest of what they saw.
"""

from collections import deque
from collections.abc import Iterable
from typing import Final, TypeVar

from steno.session.events import Event

__all__ = ["Recall", "remember"]

T = TypeVar("T")

_FAINT: Final = frozenset(("command", "summary", "notification", "fork"))
"""Prompts that make a turn only when something comes of them."""
_WORK: Final = frozenset(("words", "step", "thought", "error", "unknown"))


class Recall:
    """Takes in events and keeps the last turns: `last` of them, or all since a time in seconds."""

    def __init__(self, last: int = 1, since: float | None = None) -> None:
        self._turns: deque[list[Event]] = deque([[]], last or 1 if since is None else None)
        self._nothing = last == 0 and since is None
        self._since = since
        self._faint: int | None = None

    def take(self, events: Iterable[Event]) -> None:
        """Take in the next events."""
        for event in events:
            self._take(event)
        if self._since is not None:
            while len(self._turns) > 1 and self._is_old(self._turns[0], self._since):
                self._turns.popleft()

    def _take(self, event: Event) -> None:
        now = self._turns[-1]
        prompt = event.prompt if event.kind == "turn" and not event.agent else None
        if prompt is not None and prompt.origin in _FAINT:
            self._faint = len(now)
        elif prompt is not None or (event.kind in _WORK and self._faint is not None):
            at = len(now) if self._faint is None else self._faint
            self._faint = None
            moved = now[at:] if prompt is None else []
            if prompt is None:
                del now[at:]
            if now:
                self._turns.append(moved)
                now = moved
            else:
                now += moved
        now.append(event)

    def _is_old(self, turn: list[Event], since: float) -> bool:
        times = [event.time.timestamp() for event in turn if event.time is not None]
        return not times or max(times) < since

    @property
    def events(self) -> list[Event]:
        """What is kept."""
        if self._nothing:
            return []
        if self._since is not None and self._is_old(self._turns[-1], self._since):
            return []
        return [event for turn in self._turns for event in turn]


def remember(held: dict[str, T], name: str, value: T, most: int) -> None:
    """Note something as the newest, and forget the oldest when there are more than `most`."""
    held.pop(name, None)
    held[name] = value
    if len(held) > most:
        del held[next(iter(held))]
