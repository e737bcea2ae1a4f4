"""Sorts responses onto the heaps of a report."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from steno.report.usage.cells import (
    SLOT,
    By,
    Cell,
    Cells,
    Heap,
    add,
    band_of,
    block_starts,
    day_of_slot,
    grouped,
    hour_of_slot,
    month_of,
    week_of,
)
from steno.report.usage.wanted import Wanted

if TYPE_CHECKING:
    from steno.index.state import Row

__all__ = [
    "TIMED",
    "Belonging",
    "Belongs",
    "moment_of",
    "named",
    "slot_of",
    "sorted_out",
    "time_names",
    "with_times",
]

Belonging: TypeAlias = tuple[str, str, str]
"""Session, sub-agent and project."""
Belongs: TypeAlias = Callable[[int], Belonging]
_Namer: TypeAlias = "Callable[[Row, Belonging, str], tuple[str, ...]]"

TIMED: Final = ("hour", "block5h")
"""What has a quarter of an hour for a name until all of them are known."""
_NOWHERE: Final = ("", "", "")
_MINUTE: Final = 16
_USUAL: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]\.[0-9]{3}Z"
).fullmatch
_NAMERS: Final[dict[str, _Namer]] = {
    "day": lambda _row, _place, day: (day,),
    "week": lambda _row, _place, day: (week_of(day),),
    "month": lambda _row, _place, day: (month_of(day),),
    "model": lambda row, _place, _day: (row[6],),
    "session": lambda _row, place, _day: (place[0],),
    "project": lambda _row, place, _day: (place[2],),
    "agent": lambda row, place, _day: (place[0], row[8] or place[1]),
    "branch": lambda row, place, _day: (place[2], row[7]),
}
_PLACELESS: Final = ("day", "week", "month", "model", *TIMED)


def moment_of(row: "Row") -> int | None:
    """Return when a response was asked for; a row may still have it as its record does."""
    stamp: Any = row[5]
    if not isinstance(stamp, str):
        return stamp
    # Rows of the index have numbers, and need nothing that reads records.
    from steno.index.moments import millis

    return millis(stamp)


def slot_of(row: "Row") -> int | None:
    """Return the quarter of an hour in which a response was asked for."""
    moment = moment_of(row)
    return None if moment is None else moment // SLOT


def named(by: By, row: "Row", place: Belonging) -> tuple[str, ...]:
    """Return the names of the row of a report that a response belongs to."""
    slot = slot_of(row)
    if by in TIMED:
        return ("" if slot is None else str(slot),)
    return _NAMERS[by](row, place, day_of_slot(slot))


def sorted_out(rows: "Iterable[Row]", wanted: Wanted, belongs: Belongs) -> Cells:
    """Sum up the responses that are wanted."""
    heaps: defaultdict[Cell, list[Row]] = defaultdict(list)
    by, always, everywhere = wanted.by, not wanted.is_bounded, wanted.is_everywhere
    namer = _NAMERS.get(by)
    placeless = everywhere and by in _PLACELESS
    place, minutes = _NOWHERE, dict[str, tuple[int | None, str]]()
    for row in rows:
        if not always and not wanted.has_time(moment_of(row)):
            continue
        if not placeless:
            place = belongs(row[0])
            if not everywhere and not wanted.has_project(place[2]):
                continue
        stamp: Any = row[5]
        minute = stamp[:_MINUTE] if stamp.__class__ is str and _USUAL(stamp) else ""
        found = minutes.get(minute)
        if found is None:
            slot = slot_of(row)
            found = (slot, day_of_slot(slot))
            if minute:
                minutes[minute] = found
        slot, day = found
        name = namer(row, place, day) if namer else ("" if slot is None else str(slot),)
        heaps[name, day, row[6], row[15], band_of(row)].append(row)
    return grouped(heaps)


def time_names(by: By, slots: Iterable[str]) -> Callable[[str], str]:
    """Return what names rows by the clock: by hours, or by blocks of five of them."""
    if by == "hour":
        return lambda slot: hour_of_slot(int(slot)) if slot else ""
    starts = block_starts(int(slot) for slot in slots if slot)
    return lambda slot: starts[int(slot)] if slot else ""


def with_times(cells: Cells, by: By) -> Cells:
    """Give the heaps that are named by a quarter of an hour the names that people know."""
    if by not in TIMED:
        return cells
    name_of = time_names(by, {cell[0][0] for cell in cells})
    renamed: dict[Cell, Heap] = {}
    for (names, day, model, fast, band), heap in cells.items():
        add(renamed, ((name_of(names[0]),), day, model, fast, band), heap)
    return renamed
