"""How sessions stand: at work, waiting, at rest. Each is looked at once, and again when it grew."""

import threading
from collections.abc import Sequence
from typing import Final

from steno.errors import StenoError
from steno.report.listing import ShownFile
from steno.store.discover import found_at
from steno.store.glance import glance

__all__ = ["LIVELY", "RECENT", "Standing"]

LIVELY: Final = frozenset(("running", "waiting"))
"""How a session stands that may still be written to."""
RECENT: Final = 86_400_000
"""Milliseconds: who waits longer for an answer has been left, and is no longer live."""
_MOST: Final = 100_000
_AT_ONCE: Final = 200
"""How many sessions are looked at while somebody waits for a page."""


class Standing:
    """How sessions stood when they were last looked at."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, str]] = {}
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def of(self, path: str, size: int, now: float) -> str:
        """Return how a session stands: `running`, `finished` and so on; empty if it cannot be read."""
        known = self._known.get(path)
        # One that was at work when somebody last looked may have died since.
        if known is not None and known[0] == size and known[1] not in LIVELY:
            return known[1]
        try:
            found: str = glance(found_at(path), now).status
        except StenoError:
            found = ""
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[path] = (size, found)
        return found

    @staticmethod
    def is_live(state: str, written: float, now: float) -> bool:
        """Whether somebody should look now; `written` is when its file was, in milliseconds."""
        recent = now * 1000 - written < RECENT
        return state == "running" or (state == "waiting" and recent)

    def kinds(self, files: Sequence[ShownFile], now: float, *, wait: bool) -> dict[int, str] | None:
        """Return how all of them stand, live ones as `live`, by their numbers.

        Many that nobody has looked at take a while: unless told to `wait`, they are looked at in
        the background, and until that is done there is no answer.
        """
        new = [file for file in files if not self._has(file)]
        if len(new) > _AT_ONCE and not wait:
            self._begin(new, now)
            return None
        return {file.file: self._kind(file, now) for file in files}

    def live(self, files: Sequence[ShownFile], now: float) -> list[int]:
        """Return the numbers of those that are live, at work before waiting, the newest first.

        Of many that nobody has looked at, those that were written last are looked at.
        """
        recent = [file for file in files if now * 1000 - file.written < RECENT]
        found: list[tuple[bool, int]] = []
        new = 0
        for file in sorted(recent, key=lambda each: -each.written):
            new += not self._has(file)
            if new > _AT_ONCE:
                break
            state = self.of(file.path, file.size, now)
            if self.is_live(state, file.written, now):
                found.append((state != "running", file.file))
        return [file for _, file in sorted(found, key=lambda pair: pair[0])]

    def wait(self) -> None:
        """Wait until what is looked at in the background is known."""
        if self._thread is not None:
            self._thread.join()

    def close(self) -> None:
        """Stop looking."""
        self._stop.set()
        self.wait()

    def _has(self, file: ShownFile) -> bool:
        known = self._known.get(file.path)
        return known is not None and known[0] == file.size

    def _kind(self, file: ShownFile, now: float) -> str:
        state = self.of(file.path, file.size, now)
        return "live" if self.is_live(state, file.written, now) else state

    def _begin(self, files: Sequence[ShownFile], now: float) -> None:
        with self._lock:
            if self._stop.is_set() or (self._thread is not None and self._thread.is_alive()):
                return
            self._thread = threading.Thread(target=self._look, args=(files, now), daemon=True)
            self._thread.start()

    def _look(self, files: Sequence[ShownFile], now: float) -> None:
        for file in files:
            if self._stop.is_set():
                return
            self.of(file.path, file.size, now)
