"""The application that draws the region, and finds it again when the window was made narrower."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from prompt_toolkit.application import Application

from steno.console.output import holding

if TYPE_CHECKING:
    from prompt_toolkit.layout.screen import Screen

__all__ = ["Region", "reflows"]

_MARKS: Final = (
    "TMUX",
    "VTE_VERSION",
    "KITTY_WINDOW_ID",
    "KONSOLE_VERSION",
    "ALACRITTY_WINDOW_ID",
)
_PROGRAMS: Final = frozenset(
    {"Apple_Terminal", "WarpTerminal", "WezTerm", "ghostty", "iTerm.app", "vscode"}
)


class Region(Application[None]):
    """A region below what was printed."""

    _columns = 0
    """How wide the window was when it was drawn last."""

    def find_again(self) -> None:
        """Take away a region that was drawn in a wider window, wherever it is by now."""
        columns, before = self.output.get_size().columns, self._columns
        self._columns = columns
        drawn = self.renderer.last_rendered_screen
        if drawn is None or columns >= before or not reflows(os.environ):
            return
        here = drawn.get_cursor_position(self.layout.current_window)
        with holding(self.output):
            self.output.cursor_up(_pushed_down(drawn, here.y, here.x, columns))
            self.renderer.erase(leave_alternate_screen=False)

    def _on_resize(self) -> None:
        with holding(self.output):
            self.find_again()
            super()._on_resize()
        self.output.flush()


def reflows(env: Mapping[str, str]) -> bool:
    """Whether the terminal breaks long lines anew when it is made narrower; not all say so."""
    return any(env.get(name) for name in _MARKS) or env.get("TERM_PROGRAM") in _PROGRAMS


def _pushed_down(drawn: "Screen", row: int, column: int, columns: int) -> int:
    """Return by how many rows the cursor has gone down because lines above it were broken."""
    more = column // columns
    for number in range(row):
        cells = drawn.data_buffer[number]
        used = max((at + cell.width for at, cell in cells.items() if cell.char.strip()), default=0)
        more += max(used - 1, 0) // columns
    return more
