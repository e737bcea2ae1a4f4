"""Answers that hold until the index changes, so that looking twice does not cost twice."""

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, Final, TypeVar

__all__ = ["Few", "Kept"]

_MOST: Final = 32
_FEW: Final = 2_000
_T = TypeVar("_T")


class Kept:
    """A few answers about one state of the index."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._stamp: Hashable = None
        self._known: dict[Hashable, Any] = {}

    def get(self, stamp: Hashable, question: Hashable, answer: Callable[[], _T]) -> _T:
        """Return an answer. `stamp` says of which state, and must be older than the answer is."""
        with self._lock:
            if stamp != self._stamp:
                self._stamp, self._known = stamp, {}
            known = self._known
            if question in known:
                return known[question]
        made = answer()
        with self._lock:
            if len(known) >= _MOST:
                del known[next(iter(known))]
            known[question] = made
        return made


class Few:
    """Small answers about things that are named by all that they depend on; the oldest go first."""

    def __init__(self, most: int = _FEW) -> None:
        self._lock = Lock()
        self._most = most
        self._known: dict[Hashable, Any] = {}

    def holds(self, name: Hashable) -> bool:
        """Return whether an answer is known."""
        with self._lock:
            return name in self._known

    def get(self, name: Hashable, answer: Callable[[], _T]) -> _T:
        """Return an answer; two who ask at once may both work it out, and neither waits."""
        with self._lock:
            if name in self._known:
                return self._known[name]
        made = answer()
        with self._lock:
            if name not in self._known and len(self._known) >= self._most:
                del self._known[next(iter(self._known))]
            self._known[name] = made
        return made
