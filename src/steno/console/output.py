"""Bytes to the terminal: what belongs together goes out in one piece, and is shown in one piece."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TextIO

from prompt_toolkit.data_structures import Size
from prompt_toolkit.output.vt100 import Vt100_Output

if TYPE_CHECKING:
    from prompt_toolkit.output import Output

__all__ = ["Frames", "holding", "output_for"]

_BEGIN: Final = "\x1b[?2026h"
_END: Final = "\x1b[?2026l"
_ROWS: Final = 24
_COLUMNS: Final = 80


@contextmanager
def holding(output: "Output") -> Generator[None]:
    """Hold back what is written meanwhile; it goes out with what comes next."""
    if not isinstance(output, Frames):
        yield
        return
    before, output.held = output.held, True
    try:
        yield
    finally:
        output.held = before


class Frames(Vt100_Output):
    """An output that holds back what is written until a frame is whole.

    Terminals that know synchronized output (mode 2026) then show it at once; others ignore the two
    marks and get it in one write.
    """

    held = False
    """While it is set nothing goes out."""

    def erase_down(self) -> None:
        """Erase from the cursor on, but never from the corner of the screen.

        There tmux takes it for a clear, and keeps what was on the screen in its scrollback.
        """
        self.write_raw("\x1b[K\x1b7\x1b[C\x1b[J\x1b8")

    def flush(self) -> None:
        """Send what was written, as one frame."""
        if self.held or not self._buffer:
            return
        self._buffer = [_BEGIN, *self._buffer, _END]
        super().flush()


def output_for(stdout: TextIO) -> "Output":
    """Return the output for a terminal; on Windows that of the library, which knows its ways."""
    if sys.platform == "win32":
        from prompt_toolkit.output import create_output

        return create_output(stdout)
    # Where the cursor is need not be asked: whatever is drawn begins where the last line ended.
    return Frames(stdout, lambda: _size(stdout), term=os.environ.get("TERM"), enable_cpr=False)


def _size(stdout: TextIO) -> Size:
    try:
        size = os.get_terminal_size(stdout.fileno())
    except (OSError, ValueError):
        return Size(rows=_ROWS, columns=_COLUMNS)
    return Size(rows=size.lines or _ROWS, columns=size.columns or _COLUMNS)
