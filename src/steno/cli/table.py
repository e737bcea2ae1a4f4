"""Columns that fit: one takes what room is left, the least needed go when there is none."""

from collections.abc import Sequence
from typing import Final

import msgspec

from steno.safe.terminal import Line, cut, pad, width

__all__ = ["Column", "layout"]

_GAP: Final = 2


class Column(msgspec.Struct):
    """One column: its head, its cells and how it behaves."""

    head: str
    cells: list[str]
    style: str = ""
    right: bool = False
    most: int = 40
    flexible: bool = False
    needs: int = 0
    """It goes when the flexible column would be left with less than that; 0 always stays."""

    @property
    def natural(self) -> int:
        """How wide it would like to be."""
        return min(self.most, max((width(cell) for cell in (self.head, *self.cells)), default=0))


def layout(columns: Sequence[Column], room: int) -> tuple[Line, list[Line]]:
    """Return the line of heads and one line per row, none wider than `room`."""
    kept = [column for column in columns if any(column.cells)]
    while True:
        left = _left(kept, room)
        most = max(kept, key=_needs, default=None)
        if most is None or most.needs <= left:
            break
        kept.remove(most)
    widths = [max(left, 1) if column.flexible else column.natural for column in kept]
    heads: Line = [
        (pad(c.head, w, right=c.right), "dim") for c, w in zip(kept, widths, strict=True)
    ]
    rows = len(kept[0].cells) if kept else 0
    lines: list[Line] = []
    for row in range(rows):
        cells: Line = [
            (pad(cut(c.cells[row], w), w, right=c.right), c.style)
            for c, w in zip(kept, widths, strict=True)
        ]
        lines.append(_spaced(cells))
    return _spaced(heads), lines


def _needs(column: Column) -> int:
    return column.needs


def _left(columns: Sequence[Column], room: int) -> int:
    fixed = sum(column.natural for column in columns if not column.flexible)
    return room - fixed - _GAP * max(len(columns) - 1, 0)


def _spaced(cells: Line) -> Line:
    line: Line = []
    for cell in cells:
        if line:
            line.append(" " * _GAP)
        line.append(cell)
    return line
