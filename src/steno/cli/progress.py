"""How far a long reading has come: one line on a terminal's standard error, gone at the end."""

import math
import os
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final, Self, TextIO

from steno.report import words
from steno.safe.terminal import Paint, cut, one_line, width

__all__ = ["Progress", "planned"]

_SLICE: Final = 0.1
_PATIENCE: Final = 0.5
"""What is done sooner than this needs no bar."""
_BAR: Final = 20
_COLUMNS: Final = 80
_MINUTE: Final = 60
_LABEL: Final = 40


class Progress:
    """A bar with rate and time left, for people at a terminal; for everybody else nothing at all.

    with Progress(total_bytes, "Checking") as bar: bar.add(n)
    """

    def __init__(
        self,
        total_bytes: int,
        label: str,
        *,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._total = total_bytes
        self._label = one_line(label, _LABEL)
        self._stream = getattr(sys, "stderr", None) if stream is None else stream
        self._clock = clock
        self._done = 0
        self._start = clock()
        self._next = self._start + _PATIENCE
        self._drawn = 0
        self._shown = _is_watched(self._stream)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()
        self._shown = False

    def add(self, number: int) -> None:
        """Say that so many more bytes are done."""
        self._done += number
        if not self._shown:
            return
        now = self._clock()
        if now >= self._next:
            self._next = now + _SLICE
            self._draw(now)

    def clear(self) -> None:
        """Take the bar away, as before writing anything else to the terminal; `add` draws it."""
        if self._drawn and self._stream is not None:
            self._stream.write("\r" + " " * self._drawn + "\r")
            self._stream.flush()
            self._drawn = 0

    def _draw(self, now: float) -> None:
        if self._stream is None:
            return
        unicode = (self._stream.encoding or "").lower().replace("-", "").startswith("utf")
        # The last column stays free: some terminals begin a new line behind it.
        text = cut(self._text(now), _columns(self._stream) - 1)
        line = Paint(unicode=unicode).bit(text)
        rest = " " * max(0, self._drawn - width(text))
        self._drawn = width(text)
        self._stream.write(f"\r{line}{rest}")
        self._stream.flush()

    def _text(self, now: float) -> str:
        done = min(self._done, self._total) if self._total else self._done
        rate = self._done / max(now - self._start, 1e-9)
        parts = [self._label]
        if self._total:
            full = done * _BAR // self._total
            parts.append("█" * full + "·" * (_BAR - full))
            parts.append(f"{done * 100 // self._total:3}%")
            parts.append(f"{words.size(done)} of {words.size(self._total)}")
        else:
            parts.append(words.size(done))
        parts.append(f"{words.size(round(rate))}/s")
        if self._total and rate and done < self._total:
            parts.append(f"{_left((self._total - done) / rate)} left")
        return "  ".join(parts)


@contextmanager
def planned(label: str) -> Generator[Callable[[int], Callable[[int], None]], None, None]:
    """Give a sync something to tell how much there is to read, and how far it is; draw a bar."""
    bars: list[Progress] = []

    def begin(size: int) -> Callable[[int], None]:
        bar = Progress(size, label)
        bars.append(bar)
        return bar.add

    try:
        yield begin
    finally:
        for bar in bars:
            bar.clear()


def _left(seconds: float) -> str:
    whole = math.ceil(seconds)
    return f"{whole} s" if whole < _MINUTE else words.duration(whole)


def _is_watched(stream: TextIO | None) -> bool:
    """Whether somebody sits at a terminal that can go back to the start of a line."""
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


def _columns(stream: TextIO) -> int:
    told = os.environ.get("COLUMNS", "")
    if told.isdecimal() and int(told):
        return int(told)
    try:
        return os.get_terminal_size(stream.fileno()).columns or _COLUMNS
    except (OSError, ValueError):
        return _COLUMNS
