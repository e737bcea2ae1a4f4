"""Rows under headings: by day or by project, with the totals of each."""

from collections.abc import Iterable
from typing import Final

import msgspec

from steno.index.opened import Index
from steno.report import words
from steno.report.clock import day_of
from steno.report.listing import Choice, Group, group_totals
from steno.web.house import House
from steno.web.listed.rows import Row
from steno.web.paint import links
from steno.web.tags import tag_of

__all__ = ["Section", "sections_of"]

_SECOND: Final = 1000
_MOST_PRICED: Final = 2_000
"""Sessions whose cost is summed for the headings of one page."""


class Section(msgspec.Struct, frozen=True):
    """Rows under one heading."""

    title: str
    note: str
    rows: list[Row]
    cost: int | None
    href: str = ""


def sections_of(
    house: House, index: Index, choice: Choice, rows: Iterable[Row], view: str
) -> list[Section]:
    """Return rows under their headings; a heading counts all its sessions, also those not shown."""
    if view == "flat":
        return [Section("", "", list(rows), None)]
    groups: dict[Group, list[Row]] = {}
    for row in rows:
        groups.setdefault(_group(row, view), []).append(row)
    stamp = house.stamp()
    totals = house.kept.get(
        stamp,
        ("groups", choice, tuple(groups)),
        lambda: group_totals(
            index.connection, choice, list(groups), house.prices, most=_MOST_PRICED
        ),
    )
    return [
        _section(group, some, number, cost, house.now())
        for (group, some), (number, cost) in zip(groups.items(), totals, strict=True)
    ]


def _group(row: Row, view: str) -> Group:
    if view == "project":
        return Group(project=row.listed.project)
    if row.listed.ended is None:
        return Group()
    ended = row.listed.ended / _SECOND
    return Group(low=round(day_of(ended) * _SECOND), high=round(day_of(ended, -1) * _SECOND))


def _section(group: Group, rows: list[Row], number: int, cost: int | None, now: float) -> Section:
    note = words.count(number, "session")
    if group.project is not None:
        title = words.project_name(group.project) or "No project"
        href = links().project(tag_of(group.project)) if group.project else ""
        return Section(title, note, rows, cost, href)
    title = "Undated" if group.low is None else words.day(group.low / _SECOND, now)
    return Section(title, note, rows, cost)
