"""Long output, page by page, for people at a terminal."""

import os
import sys
from collections.abc import Iterable, Sequence

from steno.cli.screen import Screen
from steno.safe.terminal import Bit

__all__ = ["page"]

_LINES = 24


def page(screen: Screen, lines: Iterable[Sequence[Bit]], *, wanted: bool = True) -> None:
    """Write lines; at a terminal, through `$PAGER` or `less -R` when they do not fit on it."""
    if not (wanted and screen.tty and sys.stdin.isatty()):
        screen.lines(lines)
        return
    text = screen.text(lines)
    if text.count("\n") < _height():
        sys.stdout.write(text)
        return
    import click

    # `less` shows colours when it is told to; whoever has set LESS knows what they want.
    os.environ.setdefault("LESS", "-R")
    click.echo_via_pager(text, color=screen.paint.colour)


def _height() -> int:
    try:
        return os.get_terminal_size(sys.stdout.fileno()).lines or _LINES
    except (OSError, ValueError):
        return _LINES
