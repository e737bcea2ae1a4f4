"""The terminal: finished lines are printed once, and a small region below them is redrawn.

Scrollback is never rewritten and the screen is never cleared. Output is sent in frames (synchronized output) to avoid
flicker. After the window gets narrower, the region is located again and erased.
"""

import os
import sys
from collections.abc import AsyncGenerator, Generator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Final, TextIO

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Size
from prompt_toolkit.output.vt100 import Vt100_Output

from steno.sanitize.terminal import StyledLine, StyledText, TerminalStyler

if TYPE_CHECKING:
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.layout.screen import Screen
    from prompt_toolkit.output import Output


_BEGIN_SYNC: Final = "\x1b[?2026h"
_END_SYNC: Final = "\x1b[?2026l"
_DEFAULT_ROWS: Final = 24
_DEFAULT_COLUMNS: Final = 80


@contextmanager
def hold_output(output: "Output") -> Generator[None]:
    """Hold back output; it is sent with the next frame."""
    if not isinstance(output, FrameOutput):
        yield
        return
    was_held, output.is_held = output.is_held, True
    try:
        yield
    finally:
        output.is_held = was_held


class FrameOutput(Vt100_Output):
    """An output that sends whole frames.

    Terminals with synchronized output (mode 2026) show a frame at once; others ignore the marks and get it in one
    write.
    """

    is_held = False
    """Nothing is sent while this is set."""

    def erase_down(self) -> None:
        """Erase from the cursor down, but not starting at the top left corner.

        There tmux treats the sequence as a clear and copies the screen to its scrollback.
        """
        self.write_raw("\x1b[K\x1b7\x1b[C\x1b[J\x1b8")

    def flush(self) -> None:
        """Send the buffer as one frame."""
        if self.is_held or not self._buffer:
            return
        self._buffer = [_BEGIN_SYNC, *self._buffer, _END_SYNC]
        super().flush()


def create_terminal_output(stdout: TextIO) -> "Output":
    """Return the output for a terminal; on Windows, the output object that prompt_toolkit creates."""
    if sys.platform == "win32":
        from prompt_toolkit.output import create_output

        return create_output(stdout)
    # No cursor position request (CPR): the region always starts where the last line ended.
    return FrameOutput(stdout, lambda: _terminal_size(stdout), term=os.environ.get("TERM"), enable_cpr=False)


def _terminal_size(stdout: TextIO) -> Size:
    try:
        size = os.get_terminal_size(stdout.fileno())
    except (OSError, ValueError):
        return Size(rows=_DEFAULT_ROWS, columns=_DEFAULT_COLUMNS)
    return Size(rows=size.lines or _DEFAULT_ROWS, columns=size.columns or _DEFAULT_COLUMNS)


_REFLOW_VARIABLES: Final = ("TMUX", "VTE_VERSION", "KITTY_WINDOW_ID", "KONSOLE_VERSION", "ALACRITTY_WINDOW_ID")
_REFLOW_PROGRAMS: Final = frozenset({"Apple_Terminal", "WarpTerminal", "WezTerm", "ghostty", "iTerm.app", "vscode"})


class RegionApplication(Application[None]):
    """Draws the region below the printed lines."""

    _last_columns = 0
    """Columns of the window at the last draw."""

    def erase_reflowed(self) -> None:
        """Erase a region that was drawn in a wider window and reflowed."""
        columns, previous = self.output.get_size().columns, self._last_columns
        self._last_columns = columns
        last_screen = self.renderer.last_rendered_screen
        if last_screen is None or columns >= previous or not terminal_reflows(os.environ):
            return
        cursor = last_screen.get_cursor_position(self.layout.current_window)
        with hold_output(self.output):
            self.output.cursor_up(_reflowed_rows(last_screen, cursor.y, cursor.x, columns))
            self.renderer.erase(leave_alternate_screen=False)

    def _on_resize(self) -> None:
        with hold_output(self.output):
            self.erase_reflowed()
            super()._on_resize()
        self.output.flush()


def terminal_reflows(env: Mapping[str, str]) -> bool:
    """Whether the terminal reflows long lines when it gets narrower; not all such terminals can be detected."""
    return any(env.get(name) for name in _REFLOW_VARIABLES) or env.get("TERM_PROGRAM") in _REFLOW_PROGRAMS


def _reflowed_rows(last_screen: "Screen", row: int, column: int, columns: int) -> int:
    """Return the number of rows by which reflowed lines moved the cursor down."""
    extra_rows = column // columns
    for number in range(row):
        cells = last_screen.data_buffer[number]
        used_columns = max(
            (cell_column + cell.width for cell_column, cell in cells.items() if cell.char.strip()), default=0
        )
        extra_rows += max(used_columns - 1, 0) // columns
    return extra_rows


_MIN_WIDTH: Final = 20
_MAX_WIDTH: Final = 500
_STYLES: Final = {
    "red": "ansired",
    "green": "ansigreen",
    "yellow": "ansiyellow",
    "blue": "ansiblue",
    "magenta": "ansimagenta",
    "cyan": "ansicyan",
}


class TerminalScreen:
    """The output of one terminal."""

    def __init__(self, output: "Output", paint: TerminalStyler, *, reader: bool = False) -> None:
        self.output = output
        self.paint = paint
        self.is_screen_reader = reader
        """Screen reader mode: print whole lines only, without animation."""
        self.app: Application[Any] | None = None
        self._plain = TerminalStyler(unicode=paint.unicode)
        self._pending_lines: list[str] = []
        self._height = 0

    @property
    def width(self) -> int:
        """Usable columns."""
        return max(_MIN_WIDTH, min(self.output.get_size().columns, _MAX_WIDTH))

    @property
    def rows(self) -> int:
        """Rows of the terminal."""
        return self.output.get_size().rows

    def print(self, lines: Iterable[Sequence[StyledText]]) -> None:
        """Print finished lines above the region, in order."""
        self._pending_lines += [
            self.paint.style_line(map(_without_reverse, strip_trailing_blanks(line))) for line in lines
        ]
        self.refresh()

    def refresh(self) -> None:
        """Redraw the region soon."""
        if self.app is not None and self.app.is_running:
            self.app.invalidate()
        else:
            self._write_pending()
            self.output.flush()

    def send(self, raw: str) -> None:
        """Send a control sequence, such as a title or a bell."""
        self.output.write_raw(raw)
        self.output.flush()

    def attach(self, app: "Application[Any]") -> None:
        """Use an application to draw the region."""
        self.app = app
        app.before_render += self._before_render

    def fragments(self, lines: Iterable[Sequence[StyledText]]) -> "StyleAndTextTuples":
        """Return lines as prompt_toolkit fragments, with unsafe characters cleaned."""
        fragments: StyleAndTextTuples = []
        for number, line in enumerate(lines):
            if number:
                fragments.append(("", "\n"))
            for bit in line:
                text, style = bit if isinstance(bit, tuple) else (bit, "")
                fragments.append((self._style(style), self._plain.style(text)))
        return fragments

    def _style(self, names: str) -> str:
        if not self.paint.colour:
            return "reverse" if "reverse" in names else ""
        return " ".join(_STYLES.get(name, name) for name in names.split())

    @asynccontextmanager
    async def release_terminal(self) -> AsyncGenerator[None, None]:
        """Release the terminal to a program; the region is redrawn below its output."""
        from prompt_toolkit.application import in_terminal

        if self.app is None or not self.app.is_running:
            yield
            return
        async with in_terminal():
            self._write_pending()
            self.output.flush()
            yield

    def _before_render(self, app: "Application[Any]") -> None:
        """Print pending lines and erase rows that a smaller region no longer covers."""
        size = self.output.get_size()
        preferred = app.layout.container.preferred_height(size.columns, size.rows).preferred
        height, self._height = self._height, min(preferred, size.rows)
        if not self._pending_lines and self._height >= height:
            return
        with hold_output(self.output):
            app.renderer.erase(leave_alternate_screen=False)
            self._write_pending()

    def _write_pending(self) -> None:
        pending, self._pending_lines = self._pending_lines, []
        if pending:
            self.output.write_raw("\r\n".join(pending) + "\r\n")


def _without_reverse(bit: StyledText) -> StyledText:
    """Remove the reverse style, which is reserved for choices."""
    return bit if isinstance(bit, str) else (bit[0], bit[1].replace("reverse", ""))


def strip_trailing_blanks(line: Sequence[StyledText]) -> StyledLine:
    """Remove blanks at the end of a line, so that copied text has none."""
    bits = list(line)
    while bits:
        text, style = last if isinstance(last := bits.pop(), tuple) else (last, "")
        if text.rstrip(" "):
            bits.append((text.rstrip(" "), style))
            break
    return bits
