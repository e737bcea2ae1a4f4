"""The terminal: finished lines are printed once, and below them a small region is redrawn.

Scrollback is never touched again. What is printed goes out in one frame with the region below it,
so that nothing flickers; the screen is never cleared.
"""

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from steno.console.output import holding
from steno.safe.terminal import Bit, Line, Paint

if TYPE_CHECKING:
    from prompt_toolkit.application import Application
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.output import Output

__all__ = ["Screen", "trimmed"]

_NARROWEST: Final = 20
_WIDEST: Final = 500
_STYLES: Final = {
    "red": "ansired",
    "green": "ansigreen",
    "yellow": "ansiyellow",
    "blue": "ansiblue",
    "magenta": "ansimagenta",
    "cyan": "ansicyan",
}


class Screen:
    """One terminal, and how to write on it."""

    def __init__(self, output: "Output", paint: Paint, *, reader: bool = False) -> None:
        self.output = output
        self.paint = paint
        self.reader = reader
        """Whether somebody has it read out: then there are whole lines only, and nothing moves."""
        self.app: Application[Any] | None = None
        self._plain = Paint(unicode=paint.unicode)
        self._waiting: list[str] = []
        self._height = 0

    @property
    def width(self) -> int:
        """How many columns there are to write in."""
        return max(_NARROWEST, min(self.output.get_size().columns, _WIDEST))

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.output.get_size().rows

    def print(self, lines: Iterable[Sequence[Bit]]) -> None:
        """Print finished lines above the region, in order, once and for all."""
        self._waiting += [self.paint.line(map(_lasting, trimmed(line))) for line in lines]
        self.refresh()

    def refresh(self) -> None:
        """Have the region drawn again soon."""
        if self.app is not None and self.app.is_running:
            self.app.invalidate()
        else:
            self._write_waiting()
            self.output.flush()

    def send(self, raw: str) -> None:
        """Send a control sequence of our own: a title, a bell."""
        self.output.write_raw(raw)
        self.output.flush()

    def attach(self, app: "Application[Any]") -> None:
        """Let an application draw the region from now on."""
        self.app = app
        app.before_render += self._make_way

    def fragments(self, lines: Iterable[Sequence[Bit]]) -> "StyleAndTextTuples":
        """Return lines as the region draws them; every text is cleaned here as well."""
        made: StyleAndTextTuples = []
        for number, line in enumerate(lines):
            if number:
                made.append(("", "\n"))
            for bit in line:
                text, style = bit if isinstance(bit, tuple) else (bit, "")
                made.append((self._style(style), self._plain.bit(text)))
        return made

    def _style(self, names: str) -> str:
        if not self.paint.colour:
            return "reverse" if "reverse" in names else ""
        return " ".join(_STYLES.get(name, name) for name in names.split())

    @asynccontextmanager
    async def lent(self) -> AsyncGenerator[None, None]:
        """Lend the terminal to a program; the region comes back behind what it printed."""
        from prompt_toolkit.application import in_terminal

        if self.app is None or not self.app.is_running:
            yield
            return
        async with in_terminal():
            self._write_waiting()
            self.output.flush()
            yield

    def _make_way(self, app: "Application[Any]") -> None:
        """Before the region is drawn: print what waits, and take away what was too high."""
        size = self.output.get_size()
        wanted = app.layout.container.preferred_height(size.columns, size.rows).preferred
        height, self._height = self._height, min(wanted, size.rows)
        if not self._waiting and self._height >= height:
            return
        with holding(self.output):
            app.renderer.erase(leave_alternate_screen=False)
            self._write_waiting()

    def _write_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting:
            self.output.write_raw("\r\n".join(waiting) + "\r\n")


def _lasting(bit: Bit) -> Bit:
    """Return words without the style that only what can be chosen has."""
    return bit if isinstance(bit, str) else (bit[0], bit[1].replace("reverse", ""))


def trimmed(line: Sequence[Bit]) -> Line:
    """Return a line without blanks at its end: whoever copies it gets none."""
    bits = list(line)
    while bits:
        text, style = last if isinstance(last := bits.pop(), tuple) else (last, "")
        if text.rstrip(" "):
            bits.append((text.rstrip(" "), style))
            break
    return bits
