"""Figures in small heaps: what one row of a report has of one model at one price."""

import time
from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import add as plus
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from steno.index.bands import band_at

if TYPE_CHECKING:
    from steno.index.state import Row

__all__ = [
    "BYS",
    "NAMES",
    "SLOT",
    "By",
    "Cell",
    "Cells",
    "Heap",
    "add",
    "band_of",
    "block_starts",
    "day_of_slot",
    "grouped",
    "heap_of",
    "hour_of_slot",
    "midnight_of",
    "month_of",
    "week_of",
]

By: TypeAlias = Literal[
    "day",
    "week",
    "month",
    "session",
    "project",
    "model",
    "tool",
    "agent",
    "branch",
    "hour",
    "block5h",
]
BYS: Final[tuple[By, ...]] = get_args(By)
NAMES: Final[dict[str, tuple[str, ...]]] = {
    "agent": ("session", "agent"),
    "branch": ("project", "branch"),
}
"""What the names of a row are names of, where it is more than what was asked by."""

Group: TypeAlias = tuple[str, ...]
Cell: TypeAlias = tuple[Group, str, str, int, int]
"""The names of the row, the local day, the model, whether fast, and the band of the context."""
Heap: TypeAlias = tuple[int, ...]
"""Responses, input, output, both cache writes, cache reads, searches, estimated responses."""
Cells: TypeAlias = dict[Cell, Heap]

SLOT: Final = 900_000
"""A quarter of an hour in milliseconds: no zone's hours or days begin anywhere else."""
_BLOCK: Final = 5
_PER_HOUR: Final = 4
_KEPT: Final = 1 << 16


def add(cells: Cells, cell: Cell, heap: Sequence[int]) -> None:
    """Put figures onto a heap."""
    before = cells.get(cell)
    cells[cell] = tuple(heap if before is None else map(plus, before, heap))


def heap_of(row: "Row") -> Heap:
    """Return the figures of one response."""
    return 1, *row[9:15], row[16]


def band_of(row: "Row") -> int:
    """Return how many of the bands a response has left behind."""
    return band_at(row[9] + row[11] + row[12] + row[13])


def grouped(cells: "dict[Cell, list[Row]]") -> Cells:
    """Sum up responses that were sorted onto heaps."""
    sums: Cells = {}
    for cell, rows in cells.items():
        # Input to searches, then whether fast, which is part of the cell, and whether estimated.
        *columns, _, estimated = zip(*[row[9:17] for row in rows], strict=True)
        sums[cell] = (len(rows), *map(sum, columns), sum(estimated))
    return sums


@lru_cache(maxsize=_KEPT)
def day_of_slot(slot: int | None) -> str:
    """Return the local day of a quarter of an hour; nothing for an unknown time."""
    if slot is None:
        return ""
    local = time.localtime(slot * (SLOT // 1000))
    return f"{local.tm_year:04}-{local.tm_mon:02}-{local.tm_mday:02}"


@lru_cache(maxsize=_KEPT)
def hour_of_slot(slot: int | None) -> str:
    """Return the local hour that a quarter of an hour is in."""
    if slot is None:
        return ""
    local = time.localtime(slot * (SLOT // 1000))
    return f"{day_of_slot(slot)} {local.tm_hour:02}:00"


def block_starts(slots: Iterable[int | None]) -> dict[int | None, str]:
    """Return for each quarter of an hour when its block of five hours began, in local time.

    A block begins with the full hour of the first response that no block before it holds.
    """
    starts: dict[int | None, str] = {None: ""}
    start = -(1 << 62)
    name = ""
    for slot in sorted({slot for slot in slots if slot is not None}):
        hour = slot // _PER_HOUR
        if hour - start >= _BLOCK:
            start = hour
            local = time.localtime(hour * 3600)
            name = f"{day_of_slot(hour * _PER_HOUR)} {local.tm_hour:02}:{local.tm_min:02}"
        starts[slot] = name
    return starts


@lru_cache(maxsize=_KEPT)
def week_of(day: str) -> str:
    """Return the week of a day.

    >>> week_of("2026-11-15"), week_of("")
    ('2026-W46', '')
    """
    if not day:
        return ""
    from datetime import date

    year, week, _ = date.fromisoformat(day).isocalendar()
    return f"{year:04}-W{week:02}"


def midnight_of(day: str) -> int:
    """Return when a local day begins, in milliseconds."""
    year, month, number = map(int, day.split("-"))
    return int(time.mktime((year, month, number, 0, 0, 0, 0, 0, -1))) * 1000


def month_of(day: str) -> str:
    """Return the month of a day."""
    return day[:7]
