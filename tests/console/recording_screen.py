"""A screen on paper: what is printed is kept, nothing is drawn."""

from prompt_toolkit.data_structures import Size
from prompt_toolkit.output import DummyOutput

from steno.console.screen import TerminalScreen
from steno.sanitize.terminal import StyledLine, TerminalStyler


class Paper(DummyOutput):
    def __init__(self, columns: int = 80, rows: int = 24) -> None:
        self.text = ""
        self.size = Size(rows=rows, columns=columns)

    def write_raw(self, data: str) -> None:
        self.text += data.replace("\r\n", "\n")

    def get_size(self) -> Size:
        return self.size


def paper(columns: int = 80, *, colour: bool = False) -> tuple[TerminalScreen, Paper]:
    """Return a screen and the paper it writes on."""
    output = Paper(columns)
    return TerminalScreen(output, TerminalStyler(colour=colour)), output


def words(lines: list[StyledLine]) -> list[str]:
    """Return lines as plain text."""
    told = ("".join(bit if isinstance(bit, str) else bit[0] for bit in line) for line in lines)
    return [line.rstrip() for line in told]
