"""Progress bar: one line on a terminal's standard error, removed at the end."""

import os
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final, Self, TextIO

from steno.report import humanize
from steno.sanitize.terminal import TerminalStyler, display_width, one_line, truncate

_REDRAW_SECONDS: Final = 0.1
_DELAY_SECONDS: Final = 0.5
"""Seconds before the bar is shown."""
_BAR_WIDTH: Final = 20
_DEFAULT_COLUMNS: Final = 80
_MAX_LABEL_WIDTH: Final = 40


class ProgressBar:
    """A progress bar with rate and time left; invisible unless standard error is a terminal.

    with ProgressBar(total_bytes, "Checking") as bar: bar.advance(n)
    """

    def __init__(
        self, total_bytes: int, label: str, *, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._total_bytes = total_bytes
        self._label = one_line(label, _MAX_LABEL_WIDTH)
        self._stream = getattr(sys, "stderr", None) if stream is None else stream
        self._clock = clock
        self._done_bytes = 0
        self._started_at = clock()
        self._next_draw = self._started_at + _DELAY_SECONDS
        self._drawn_width = 0
        self._is_visible = _can_redraw(self._stream)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()
        self._is_visible = False

    def advance(self, number: int) -> None:
        """Add to the number of processed bytes."""
        self._done_bytes += number
        if not self._is_visible:
            return
        now = self._clock()
        if now >= self._next_draw:
            self._next_draw = now + _REDRAW_SECONDS
            self._draw(now)

    def clear(self) -> None:
        """Remove the bar before other output; the next `advance` draws it again."""
        if self._drawn_width and self._stream is not None:
            self._stream.write("\r" + " " * self._drawn_width + "\r")
            self._stream.flush()
            self._drawn_width = 0

    def _draw(self, now: float) -> None:
        if self._stream is None:
            return
        unicode = (self._stream.encoding or "").lower().replace("-", "").startswith("utf")
        # The last column stays free: some terminals wrap the line after it.
        text = truncate(self._text(now), _terminal_columns(self._stream) - 1)
        line = TerminalStyler(unicode=unicode).style(text)
        padding = " " * max(0, self._drawn_width - display_width(text))
        self._drawn_width = display_width(text)
        self._stream.write(f"\r{line}{padding}")
        self._stream.flush()

    def _text(self, now: float) -> str:
        done_bytes = min(self._done_bytes, self._total_bytes) if self._total_bytes else self._done_bytes
        rate = self._done_bytes / max(now - self._started_at, 1e-9)
        parts = [self._label]
        if self._total_bytes:
            filled_width = done_bytes * _BAR_WIDTH // self._total_bytes
            parts.append("█" * filled_width + "·" * (_BAR_WIDTH - filled_width))
            parts.append(f"{done_bytes * 100 // self._total_bytes:3}%")
            parts.append(f"{humanize.size(done_bytes)} of {humanize.size(self._total_bytes)}")
        else:
            parts.append(humanize.size(done_bytes))
        parts.append(f"{humanize.size(round(rate))}/s")
        if self._total_bytes and rate and done_bytes < self._total_bytes:
            parts.append(f"{humanize.time_left((self._total_bytes - done_bytes) / rate)} left")
        return "  ".join(parts)


@contextmanager
def progress_factory(label: str) -> Generator[Callable[[int], Callable[[int], None]], None, None]:
    """Yield a function that starts a bar for a total size and returns its `advance`."""
    bars: list[ProgressBar] = []

    def begin(size: int) -> Callable[[int], None]:
        bar = ProgressBar(size, label)
        bars.append(bar)
        return bar.advance

    try:
        yield begin
    finally:
        for bar in bars:
            bar.clear()


def _can_redraw(stream: TextIO | None) -> bool:
    """Return whether a stream is a terminal that can return to the start of a line."""
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


def _terminal_columns(stream: TextIO) -> int:
    environment_columns = os.environ.get("COLUMNS", "")
    if environment_columns.isdecimal() and int(environment_columns):
        return int(environment_columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or _DEFAULT_COLUMNS
    except (OSError, ValueError):
        return _DEFAULT_COLUMNS
