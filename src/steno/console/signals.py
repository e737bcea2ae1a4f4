"""Leaving as one should when the terminal goes away, or somebody ends the program."""

import asyncio
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Final

__all__ = ["heeding_signals"]

_NAMES: Final = ("SIGHUP", "SIGTERM")


@contextmanager
def heeding_signals(leave: Callable[[], None]) -> Generator[None]:
    """Have something done when one of these signals comes; not all systems have them."""
    loop = asyncio.get_running_loop()
    numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    for number in numbers:
        with suppress(NotImplementedError, ValueError, RuntimeError):
            loop.add_signal_handler(number, leave)
    try:
        yield
    finally:
        for number in numbers:
            with suppress(NotImplementedError, ValueError, RuntimeError):
                loop.remove_signal_handler(number)
