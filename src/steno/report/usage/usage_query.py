"""Usage query: which responses count, how they are grouped and aggregated.

Token counts are aggregated per group, day, model and price tier.
"""

import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from operator import add as plus
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import msgspec

from steno.errors import BadRequest
from steno.index.price_tiers import price_tier_of
from steno.report.clock import local_midnight, parse_time_range
from steno.report.humanize import MS_PER_SECOND

if TYPE_CHECKING:
    from steno.index.session_stats import Row


Grouping: TypeAlias = Literal[
    "day", "week", "month", "session", "project", "model", "tool", "agent", "branch", "hour", "block5h"
]
GROUPINGS: Final[tuple[Grouping, ...]] = get_args(Grouping)
GROUP_PARTS: Final[dict[str, tuple[str, ...]]] = {"agent": ("session", "agent"), "branch": ("project", "branch")}
"""What the names of a row are names of, where it is more than what was asked by."""

GroupKey: TypeAlias = tuple[str, ...]
Bucket: TypeAlias = tuple[GroupKey, str, str, int, int]
"""The names of the row, the local day, the model, whether fast, and the band of the context."""
TokenCounts: TypeAlias = tuple[int, ...]
"""Responses, input, output, both cache writes, cache reads, searches, estimated responses."""
Buckets: TypeAlias = dict[Bucket, TokenCounts]

SLOT_MILLIS: Final = 900_000
"""A quarter of an hour in milliseconds: no zone's hours or days begin anywhere else."""
_BLOCK_HOURS: Final = 5
BLOCK_MILLIS: Final = _BLOCK_HOURS * 3_600_000
"""The length of a block of usage limits."""
_SLOTS_PER_HOUR: Final = 4
_CACHE_SIZE: Final = 1 << 16


def add_counts(buckets: Buckets, bucket: Bucket, counts: Sequence[int]) -> None:
    """Put figures onto a heap."""
    before = buckets.get(bucket)
    buckets[bucket] = tuple(counts if before is None else map(plus, before, counts))


def counts_of_row(row: "Row") -> TokenCounts:
    """Return the figures of one response."""
    return 1, *row[9:15], row[16]


def tier_of_row(row: "Row") -> int:
    """Return how many of the bands a response has left behind."""
    return price_tier_of(row[9] + row[11] + row[12] + row[13])


def sum_buckets(rows_by_bucket: "dict[Bucket, list[Row]]") -> Buckets:
    """Sum up responses that were sorted onto heaps."""
    sums: Buckets = {}
    for bucket, rows in rows_by_bucket.items():
        # Input to searches, then whether fast, which is part of the cell, and whether estimated.
        *columns, _, estimated = zip(*[row[9:17] for row in rows], strict=True)
        sums[bucket] = (len(rows), *map(sum, columns), sum(estimated))
    return sums


@lru_cache(maxsize=_CACHE_SIZE)
def day_of_slot(slot: int | None) -> str:
    """Return the local day of a quarter of an hour; nothing for an unknown time."""
    if slot is None:
        return ""
    local = time.localtime(slot * (SLOT_MILLIS // 1000))
    return f"{local.tm_year:04}-{local.tm_mon:02}-{local.tm_mday:02}"


@lru_cache(maxsize=_CACHE_SIZE)
def hour_of_slot(slot: int | None) -> str:
    """Return the local hour that a quarter of an hour is in."""
    if slot is None:
        return ""
    local = time.localtime(slot * (SLOT_MILLIS // 1000))
    return f"{day_of_slot(slot)} {local.tm_hour:02}:00"


def block_starts(slots: Iterable[int | None]) -> dict[int | None, str]:
    """Return for each quarter of an hour when its block of five hours began, in local time.

    A block begins with the full hour of the first response that no block before it holds.
    """
    starts: dict[int | None, str] = {None: ""}
    start = -(1 << 62)
    name = ""
    for slot in sorted({slot for slot in slots if slot is not None}):
        hour = slot // _SLOTS_PER_HOUR
        if hour - start >= _BLOCK_HOURS:
            start = hour
            local = time.localtime(hour * 3600)
            name = f"{day_of_slot(hour * _SLOTS_PER_HOUR)} {local.tm_hour:02}:{local.tm_min:02}"
        starts[slot] = name
    return starts


@lru_cache(maxsize=_CACHE_SIZE)
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


def midnight_millis(day: str) -> int:
    """Return when a local day begins, in milliseconds."""
    year, month, number = map(int, day.split("-"))
    return int(time.mktime((year, month, number, 0, 0, 0, 0, 0, -1))) * 1000


def month_of(day: str) -> str:
    """Return the month of a day."""
    return day[:7]


_CLOCK_EXPRESSION: Final = re.compile(r"\d+\s*[mh]|.*:.*")

_PATH_SEPARATORS: Final = "/\\"


class UsageQuery(msgspec.Struct, frozen=True):
    """Which figures, and how they are to be sorted."""

    by: Grouping = "day"
    since: int | None = None
    """The first moment that counts, in milliseconds."""
    until: int | None = None
    """The first moment that no longer counts."""
    project: str = ""
    limit: str = ""
    """As `project`: nothing else counts, whatever else is asked for."""
    here: str = ""
    """The folder that `.` stands for."""
    sessions: tuple[str, ...] | None = None
    """The only sessions that count, by their ids; None for all."""

    @property
    def is_bounded(self) -> bool:
        """Whether only some time counts; what has no time then does not."""
        return self.since is not None or self.until is not None

    @property
    def is_whole_days(self) -> bool:
        """Whether the time that counts begins and ends with local days."""
        return all(bound is None or _is_midnight(bound) for bound in (self.since, self.until))

    def matches_time(self, moment: int | None) -> bool:
        """Whether a moment counts."""
        if moment is None:
            return not self.is_bounded
        return (self.since is None or moment >= self.since) and (self.until is None or moment < self.until)

    @property
    def is_everywhere(self) -> bool:
        """Whether all projects count."""
        return not (self.project or self.limit)

    def matches_project(self, project: str) -> bool:
        """Whether a project counts."""
        filters = (project_filter for project_filter in (self.project, self.limit) if project_filter)
        return all(matches_project(project, each, self.here) for each in filters)


def matches_project(project: str, pattern: str, current_folder: str) -> bool:
    """Whether a project's path has some words in it; `.` is the folder one is in, or below."""
    if pattern == ".":
        return project == current_folder or project.startswith(
            tuple(current_folder + separator for separator in _PATH_SEPARATORS)
        )
    return pattern.casefold() in project.casefold()


def _is_midnight(moment: int) -> bool:
    local = time.localtime(moment / 1000)
    return not (moment % 1000 or local.tm_sec or local.tm_min or local.tm_hour)


def parse_period(since: str, until: str, now: float) -> tuple[int | None, int | None]:
    """Return the first moment of a period and the first one behind it, in milliseconds.

    Both mean whole days, unless they name a time of day or hours; empty ones set no limit.

    Raises:
        BadRequest: one means no time.
    """
    return _period_limit(since, now, end=False), _period_limit(until, now, end=True)


def _period_limit(text: str, now: float, *, end: bool) -> int | None:
    if not text:
        return None
    start, after = parse_time_range(text, now)
    if _CLOCK_EXPRESSION.fullmatch(text.strip().lower()) is not None:
        return round((after if end else start) * MS_PER_SECOND)
    try:
        return round(local_midnight(start, -1 if end else 0) * MS_PER_SECOND)
    except (OverflowError, OSError, ValueError) as error:
        raise BadRequest(f"not a time: {text!r}") from error


TranscriptOwner: TypeAlias = tuple[str, str, str]
"""Session, sub-agent and project."""
OwnerLookup: TypeAlias = Callable[[int], TranscriptOwner]
_RowNamer: TypeAlias = "Callable[[Row, TranscriptOwner, str], tuple[str, ...]]"

CLOCK_GROUPINGS: Final = ("hour", "block5h")
"""What has a quarter of an hour for a name until all of them are known."""
_NO_OWNER: Final = ("", "", "")
_MINUTE_LENGTH: Final = 16
_matches_usual_timestamp: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]\.[0-9]{3}Z"
).fullmatch
_ROW_NAMERS: Final[dict[str, _RowNamer]] = {
    "day": lambda _row, _place, day: (day,),
    "week": lambda _row, _place, day: (week_of(day),),
    "month": lambda _row, _place, day: (month_of(day),),
    "model": lambda row, _place, _day: (row[6],),
    "session": lambda _row, place, _day: (place[0],),
    "project": lambda _row, place, _day: (place[2],),
    "agent": lambda row, place, _day: (place[0], row[8] or place[1]),
    "branch": lambda row, place, _day: (place[2], row[7]),
}
_OWNERLESS_GROUPINGS: Final = ("day", "week", "month", "model", *CLOCK_GROUPINGS)


def response_time(row: "Row") -> int | None:
    """Return when a response was asked for; a row may still have it as its record does."""
    stamp: Any = row[5]
    if not isinstance(stamp, str):
        return stamp
    # Rows of the index have numbers, and need nothing that reads records.
    from steno.index.line_decoder import to_millis

    return to_millis(stamp)


def slot_of_row(row: "Row") -> int | None:
    """Return the quarter of an hour in which a response was asked for."""
    moment = response_time(row)
    return None if moment is None else moment // SLOT_MILLIS


def group_key(grouping: Grouping, row: "Row", owner: TranscriptOwner) -> tuple[str, ...]:
    """Return the names of the row of a report that a response belongs to."""
    slot = slot_of_row(row)
    if grouping in CLOCK_GROUPINGS:
        return ("" if slot is None else str(slot),)
    return _ROW_NAMERS[grouping](row, owner, day_of_slot(slot))


def aggregate_rows(rows: "Iterable[Row]", query: UsageQuery, owner_of: OwnerLookup) -> Buckets:
    """Sum up the responses that are wanted."""
    rows_by_bucket: defaultdict[Bucket, list[Row]] = defaultdict(list)
    grouping, is_unbounded, everywhere = query.by, not query.is_bounded, query.is_everywhere
    namer = _ROW_NAMERS.get(grouping)
    needs_no_owner = everywhere and grouping in _OWNERLESS_GROUPINGS
    owner, minutes = _NO_OWNER, dict[str, tuple[int | None, str]]()
    for row in rows:
        if not is_unbounded and not query.matches_time(response_time(row)):
            continue
        if not needs_no_owner:
            owner = owner_of(row[0])
            if not everywhere and not query.matches_project(owner[2]):
                continue
        timestamp: Any = row[5]
        minute = (
            timestamp[:_MINUTE_LENGTH] if timestamp.__class__ is str and _matches_usual_timestamp(timestamp) else ""
        )
        slot_and_day = minutes.get(minute)
        if slot_and_day is None:
            slot = slot_of_row(row)
            slot_and_day = (slot, day_of_slot(slot))
            if minute:
                minutes[minute] = slot_and_day
        slot, day = slot_and_day
        key = namer(row, owner, day) if namer else ("" if slot is None else str(slot),)
        rows_by_bucket[key, day, row[6], row[15], tier_of_row(row)].append(row)
    return sum_buckets(rows_by_bucket)


def clock_namer(grouping: Grouping, slots: Iterable[str]) -> Callable[[str], str]:
    """Return what names rows by the clock: by hours, or by blocks of five of them."""
    if grouping == "hour":
        return lambda slot: hour_of_slot(int(slot)) if slot else ""
    starts = block_starts(int(slot) for slot in slots if slot)
    return lambda slot: starts[int(slot)] if slot else ""


def with_clock_names(buckets: Buckets, grouping: Grouping) -> Buckets:
    """Give the heaps that are named by a quarter of an hour the names that people know."""
    if grouping not in CLOCK_GROUPINGS:
        return buckets
    name_of = clock_namer(grouping, {bucket[0][0] for bucket in buckets})
    renamed: dict[Bucket, TokenCounts] = {}
    for (names, day, model, fast, tier), counts in buckets.items():
        add_counts(renamed, ((name_of(names[0]),), day, model, fast, tier), counts)
    return renamed
