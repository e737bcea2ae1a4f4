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
"""Names of the key parts of groupings with more than one part."""

GroupKey: TypeAlias = tuple[str, ...]
Bucket: TypeAlias = tuple[GroupKey, str, str, int, int]
"""Group key, local day, model, fast flag, and context price tier."""
TokenCounts: TypeAlias = tuple[int, ...]
"""Responses, input, output, 5-minute and 1-hour cache write, cache read, searches, estimated responses."""
Buckets: TypeAlias = dict[Bucket, TokenCounts]

SLOT_MILLIS: Final = 900_000
"""Length of a slot in milliseconds: 15 minutes, as hours and days of all time zones start at a multiple of it."""
_BLOCK_HOURS: Final = 5
BLOCK_MILLIS: Final = _BLOCK_HOURS * 3_600_000
"""Length of a 5-hour block in milliseconds."""
_SLOTS_PER_HOUR: Final = 4
_CACHE_SIZE: Final = 1 << 16


def add_counts(buckets: Buckets, bucket: Bucket, counts: Sequence[int]) -> None:
    """Add counts to a bucket."""
    before = buckets.get(bucket)
    buckets[bucket] = tuple(counts if before is None else map(plus, before, counts))


def counts_of_row(row: "Row") -> TokenCounts:
    """Return the counts of one response."""
    return 1, *row[9:15], row[16]


def tier_of_row(row: "Row") -> int:
    """Return the price tier of a response."""
    return price_tier_of(row[9] + row[11] + row[12] + row[13])


def sum_buckets(rows_by_bucket: "dict[Bucket, list[Row]]") -> Buckets:
    """Sum up the responses of each bucket."""
    sums: Buckets = {}
    for bucket, rows in rows_by_bucket.items():
        # Columns from input to searches, the fast flag (part of the bucket), and the estimated flag.
        *columns, _, estimated = zip(*[row[9:17] for row in rows], strict=True)
        sums[bucket] = (len(rows), *map(sum, columns), sum(estimated))
    return sums


@lru_cache(maxsize=_CACHE_SIZE)
def day_of_slot(slot: int | None) -> str:
    """Return the local day of a slot; empty for an unknown time."""
    if slot is None:
        return ""
    local = time.localtime(slot * (SLOT_MILLIS // 1000))
    return f"{local.tm_year:04}-{local.tm_mon:02}-{local.tm_mday:02}"


@lru_cache(maxsize=_CACHE_SIZE)
def hour_of_slot(slot: int | None) -> str:
    """Return the local hour of a slot; empty for an unknown time."""
    if slot is None:
        return ""
    local = time.localtime(slot * (SLOT_MILLIS // 1000))
    return f"{day_of_slot(slot)} {local.tm_hour:02}:00"


def block_starts(slots: Iterable[int | None]) -> dict[int | None, str]:
    """Return the local start of the 5-hour block of each slot.

    A block starts at the full hour of the first response outside the previous block.
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
    """Return the ISO week of a day.

    >>> week_of("2026-11-15"), week_of("")
    ('2026-W46', '')
    """
    if not day:
        return ""
    from datetime import date

    year, week, _ = date.fromisoformat(day).isocalendar()
    return f"{year:04}-W{week:02}"


def midnight_millis(day: str) -> int:
    """Return the start of a local day in milliseconds."""
    year, month, number = map(int, day.split("-"))
    return int(time.mktime((year, month, number, 0, 0, 0, 0, 0, -1))) * 1000


def month_of(day: str) -> str:
    """Return the month of a day."""
    return day[:7]


_CLOCK_EXPRESSION: Final = re.compile(r"\d+\s*[mh]|.*:.*")

_PATH_SEPARATORS: Final = "/\\"


class UsageQuery(msgspec.Struct, frozen=True):
    """Filter and grouping of usage."""

    by: Grouping = "day"
    since: int | None = None
    """Inclusive start in milliseconds."""
    until: int | None = None
    """Exclusive end in milliseconds."""
    project: str = ""
    limit: str = ""
    """Additional project filter that always applies, in the format of `project`."""
    here: str = ""
    """Directory that `.` refers to."""
    sessions: tuple[str, ...] | None = None
    """Session IDs to restrict to; None for all."""

    @property
    def is_bounded(self) -> bool:
        """Whether a time range is set; responses without a time are then excluded."""
        return self.since is not None or self.until is not None

    @property
    def is_whole_days(self) -> bool:
        """Whether the range starts and ends at local midnight."""
        return all(bound is None or _is_midnight(bound) for bound in (self.since, self.until))

    def matches_time(self, moment: int | None) -> bool:
        """Return whether a time is in the range."""
        if moment is None:
            return not self.is_bounded
        return (self.since is None or moment >= self.since) and (self.until is None or moment < self.until)

    @property
    def is_everywhere(self) -> bool:
        """Whether all projects are included."""
        return not (self.project or self.limit)

    def matches_project(self, project: str) -> bool:
        """Return whether a project is included."""
        filters = (project_filter for project_filter in (self.project, self.limit) if project_filter)
        return all(matches_project(project, each, self.here) for each in filters)


def matches_project(project: str, pattern: str, current_folder: str) -> bool:
    """Return whether a project path contains a pattern; `.` matches the current directory and its subdirectories."""
    if pattern == ".":
        return project == current_folder or project.startswith(
            tuple(current_folder + separator for separator in _PATH_SEPARATORS)
        )
    return pattern.casefold() in project.casefold()


def _is_midnight(moment: int) -> bool:
    local = time.localtime(moment / 1000)
    return not (moment % 1000 or local.tm_sec or local.tm_min or local.tm_hour)


def parse_period(since: str, until: str, now: float) -> tuple[int | None, int | None]:
    """Return the start and the exclusive end of a period in milliseconds.

    Both expressions mean whole days unless they contain a time of day or hours; empty ones set no limit.

    Raises:
        BadRequest: An expression is not a time.
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
"""Session ID, sub-agent ID and project."""
OwnerLookup: TypeAlias = Callable[[int], TranscriptOwner]
_RowNamer: TypeAlias = "Callable[[Row, TranscriptOwner, str], tuple[str, ...]]"

CLOCK_GROUPINGS: Final = ("hour", "block5h")
"""Groupings by hour or 5-hour block; responses are first grouped by slot, until all slots are known."""
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
    """Return the time of a response; a row may still contain it as text."""
    stamp: Any = row[5]
    if not isinstance(stamp, str):
        return stamp
    # Rows of the index contain numbers, so the decoder is imported only for rows of files.
    from steno.index.line_decoder import to_millis

    return to_millis(stamp)


def slot_of_row(row: "Row") -> int | None:
    """Return the slot of a response."""
    moment = response_time(row)
    return None if moment is None else moment // SLOT_MILLIS


def group_key(grouping: Grouping, row: "Row", owner: TranscriptOwner) -> tuple[str, ...]:
    """Return the group key of a response."""
    slot = slot_of_row(row)
    if grouping in CLOCK_GROUPINGS:
        return ("" if slot is None else str(slot),)
    return _ROW_NAMERS[grouping](row, owner, day_of_slot(slot))


def aggregate_rows(rows: "Iterable[Row]", query: UsageQuery, owner_of: OwnerLookup) -> Buckets:
    """Aggregate the responses that match the query."""
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
    """Return a function that converts slots to hours or 5-hour blocks."""
    if grouping == "hour":
        return lambda slot: hour_of_slot(int(slot)) if slot else ""
    starts = block_starts(int(slot) for slot in slots if slot)
    return lambda slot: starts[int(slot)] if slot else ""


def with_clock_names(buckets: Buckets, grouping: Grouping) -> Buckets:
    """Return buckets with slots replaced by hours or 5-hour blocks."""
    if grouping not in CLOCK_GROUPINGS:
        return buckets
    name_of = clock_namer(grouping, {bucket[0][0] for bucket in buckets})
    renamed: dict[Bucket, TokenCounts] = {}
    for (names, day, model, fast, tier), counts in buckets.items():
        add_counts(renamed, ((name_of(names[0]),), day, model, fast, tier), counts)
    return renamed
