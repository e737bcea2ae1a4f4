"""Ctrl-C that waits until a step is done."""

import signal
from threading import current_thread, main_thread
from types import FrameType
from typing import Any, Self

__all__ = ["Interrupts"]


class Interrupts:
    """Inside the `with`, the first Ctrl-C is only noted; the second one interrupts as ever.

    In a thread that is not told of signals, nothing is changed.
    """

    def __init__(self) -> None:
        self.seen = False
        self._before: Any = None

    def __enter__(self) -> Self:
        if current_thread() is main_thread():
            self._before = signal.getsignal(signal.SIGINT)
            if self._before is not None:
                signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.seen and callable(self._before):
            self._before(number, frame)
        self.seen = True
