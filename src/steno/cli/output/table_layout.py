"""Layout of lines: columns, headings and wrapping that fit the screen width.

The flexible column of a table gets the remaining width; optional columns are dropped if it would
become too narrow.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from steno.sanitize.terminal import StyledLine, display_width, one_line, pad, truncate, wrap

_COLUMN_GAP: Final = 2


class Column(msgspec.Struct):
    """A column: heading, cells and layout."""

    heading: str
    cells: list[str]
    style: str = ""
    align_right: bool = False
    max_width: int = 40
    flexible: bool = False
    min_flexible_width: int = 0
    """Drop this column if the flexible column would be narrower; 0 never drops it."""

    @property
    def natural_width(self) -> int:
        """Width of the widest cell, up to `max_width`."""
        return min(self.max_width, max((display_width(cell) for cell in (self.heading, *self.cells)), default=0))


def layout_columns(columns: Sequence[Column], available: int) -> tuple[StyledLine, list[StyledLine]]:
    """Return the heading line and one line per row, none wider than `available`."""
    visible = [column for column in columns if any(column.cells)]
    while True:
        remaining = _remaining_width(visible, available)
        optional = max(visible, key=_min_flexible_width_of, default=None)
        if optional is None or optional.min_flexible_width <= remaining:
            break
        visible.remove(optional)
    widths = [max(remaining, 1) if column.flexible else column.natural_width for column in visible]
    heading_line: StyledLine = [
        (pad(c.heading, w, right=c.align_right), "dim") for c, w in zip(visible, widths, strict=True)
    ]
    rows = len(visible[0].cells) if visible else 0
    lines: list[StyledLine] = []
    for row in range(rows):
        cells: StyledLine = [
            (pad(truncate(c.cells[row], w), w, right=c.align_right), c.style)
            for c, w in zip(visible, widths, strict=True)
        ]
        lines.append(_join_cells(cells))
    return _join_cells(heading_line), lines


def _min_flexible_width_of(column: Column) -> int:
    return column.min_flexible_width


def _remaining_width(columns: Sequence[Column], available: int) -> int:
    fixed = sum(column.natural_width for column in columns if not column.flexible)
    return available - fixed - _COLUMN_GAP * max(len(columns) - 1, 0)


def _join_cells(cells: StyledLine) -> StyledLine:
    line: StyledLine = []
    for cell in cells:
        if line:
            line.append(" " * _COLUMN_GAP)
        line.append(cell)
    return line


_MIN_TITLE_WIDTH: Final = 12
"""Minimum useful width of a title."""


def session_heading(name: str, title: str, columns: int) -> Iterator[StyledLine]:
    """Yield the ID and title of a session, on two lines if one is too narrow."""
    visible_name = one_line(name, columns)
    available = columns - display_width(visible_name) - 2
    visible_title = one_line(title, available if available >= _MIN_TITLE_WIDTH else columns - 2) or (
        "(no title)",
        "dim",
    )
    if available >= _MIN_TITLE_WIDTH:
        yield [(visible_name, "bold"), "  ", visible_title]
    else:
        yield [(visible_name, "bold")]
        yield ["  ", visible_title]


def wrap_line(line: StyledLine, columns: int) -> Iterator[StyledLine]:
    """Yield a line; if it is too wide, wrapped and without styles."""
    text = "".join(styled if isinstance(styled, str) else styled[0] for styled in line)
    if display_width(text) <= columns:
        yield line
        return
    for part in wrap(text, columns):
        yield [part]
