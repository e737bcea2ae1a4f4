"""Rows under headings: those that are live, then by day or by project."""

from collections.abc import Iterable, Iterator

import msgspec

from steno.report import words
from steno.web.listed.rows import Row
from steno.web.paint import links
from steno.web.tags import tag_of

__all__ = ["Group", "groups_of"]

_SECOND = 1000


class Group(msgspec.Struct, frozen=True):
    """Rows under one heading."""

    title: str
    note: str
    rows: list[Row]
    cost: int | None
    href: str = ""


def groups_of(rows: Iterable[Row], view: str, now: float) -> Iterator[Group]:
    """Yield the rows that are not live, under their headings."""
    still = [row for row in rows if not row.live]
    if view == "flat":
        yield Group("", "", still, None)
        return
    heads: dict[str, list[Row]] = {}
    for row in still:
        heads.setdefault(_head(row, view, now), []).append(row)
    for head, some in heads.items():
        costs = [row.cost for row in some if row.cost is not None]
        note = words.count(len(some), "session")
        of_project = view == "project" and head
        title = words.project_name(head) if of_project else head
        href = links().project(tag_of(head)) if of_project else ""
        yield Group(title or "No project", note, some, sum(costs) if costs else None, href)


def _head(row: Row, view: str, now: float) -> str:
    if view == "project":
        return row.listed.project
    return "Undated" if row.listed.ended is None else words.day(row.listed.ended / _SECOND, now)
