"""What the system says about changes, brought to one queue by threads that sleep in between.

The library looks for news in steps: short ones while something happens, so that words appear as
they are written, long ones when it is quiet, so that waiting costs next to nothing.
"""

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

if TYPE_CHECKING:
    from queue import SimpleQueue

    from watchfiles._rust_notify import RustNotify

__all__ = ["CannotListen", "Ear", "Heard", "Lost", "Quiet", "Said"]

_TOGETHER: Final = 200
"""Milliseconds over which changes are gathered at most."""
_STEP: Final = 40
_IDLE_STEP: Final = 400
_ACTIVE: Final = 5_000
"""Milliseconds without a change after which it is quiet."""


class Heard(msgspec.Struct, frozen=True):
    """Paths that were touched, and how: 1 appeared, 2 changed, 3 went away."""

    changes: frozenset[tuple[int, str]]


class Quiet(msgspec.Struct, frozen=True):
    """Nothing happened for a while, after something had."""


class Lost(msgspec.Struct, frozen=True):
    """The system failed: what happened is not known."""

    message: str = ""


Said: TypeAlias = Heard | Quiet | Lost | None
"""None: somebody wants it to stop."""


class CannotListen(Exception):
    """The system refuses to watch: too many folders, a name it cannot take, no support."""


class Ear:
    """Listens to some folders in a thread of its own."""

    def __init__(self, folders: Sequence[str], said: "SimpleQueue[Said]", *, deep: bool) -> None:
        from watchfiles._rust_notify import RustNotify

        try:
            # A folder that may not be read is passed over, as everywhere.
            self._notify = RustNotify(list(folders), False, False, 0, deep, True)
        except (OSError, RuntimeError, ValueError) as error:
            # A ValueError is a path that is no text.
            raise CannotListen(str(error)) from error
        self._said = said
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="steno-watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._stop.set()
        self._thread.join()
        self._notify.close()

    def _listen(self) -> None:
        active = True
        while True:
            try:
                got = _next(self._notify, self._stop, active=active)
            except RuntimeError as error:
                self._said.put(Lost(str(error)))
                return
            if got == "timeout":
                active = False
                self._said.put(Quiet())
            elif isinstance(got, set):
                active = True
                self._said.put(Heard(frozenset(got)))
            else:
                return


def _next(
    notify: "RustNotify", stop: threading.Event, *, active: bool
) -> set[tuple[int, str]] | str:
    if active:
        return notify.watch(_TOGETHER, _STEP, _ACTIVE, stop)
    return notify.watch(_TOGETHER, _IDLE_STEP, 0, stop)
