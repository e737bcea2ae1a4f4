"""Times as people write them."""

import time
from collections.abc import Generator

import pytest

from steno.errors import BadRequest
from steno.report.clock import parse_time_range

FORMAT = "%Y-%m-%d %H:%M"


@pytest.fixture(autouse=True)
def berlin(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def local(text: str) -> float:
    return time.mktime(time.strptime(text, FORMAT))


def shown(moment: float) -> str:
    return time.strftime(FORMAT, time.localtime(moment))


THURSDAY = "2026-11-19 15:30"


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("today", "2026-11-19 00:00", "2026-11-20 00:00"),
        ("Yesterday", "2026-11-18 00:00", "2026-11-19 00:00"),
        ("monday", "2026-11-16 00:00", "2026-11-17 00:00"),
        ("on tuesday", "2026-11-17 00:00", "2026-11-18 00:00"),
        ("thursday", "2026-11-19 00:00", "2026-11-20 00:00"),
        ("last thursday", "2026-11-12 00:00", "2026-11-13 00:00"),
        ("last  Friday", "2026-11-13 00:00", "2026-11-14 00:00"),
        ("sat", "2026-11-14 00:00", "2026-11-15 00:00"),
        ("this week", "2026-11-16 00:00", "2026-11-23 00:00"),
        ("last week", "2026-11-09 00:00", "2026-11-16 00:00"),
        ("last month", "2026-10-01 00:00", "2026-11-01 00:00"),
        ("this year", "2026-01-01 00:00", "2027-01-01 00:00"),
        ("last year", "2025-01-01 00:00", "2026-01-01 00:00"),
        ("2026-11-07", "2026-11-07 00:00", "2026-11-08 00:00"),
    ],
)
def test_days_and_periods(text: str, start: str, end: str) -> None:
    first, after = parse_time_range(text, local(THURSDAY))
    assert (shown(first), shown(after)) == (start, end)


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("7d", "2026-11-12 15:30"),
        ("2 days ago", "2026-11-17 15:30"),
        ("an hour ago", "2026-11-19 14:30"),
        ("a week ago", "2026-11-12 15:30"),
        ("10 minutes", "2026-11-19 15:20"),
        ("9 months ago", "2026-02-19 00:00"),
        ("a year ago", "2025-11-19 00:00"),
    ],
)
def test_a_time_ago_is_a_moment(text: str, start: str) -> None:
    first, after = parse_time_range(text, local(THURSDAY))
    assert (shown(first), shown(after)) == (start, start)


def test_months_ago_end_on_the_last_day_of_a_shorter_month() -> None:
    assert shown(parse_time_range("8 months ago", local("2026-10-31 12:00"))[0]) == "2026-02-28 00:00"


def test_a_week_with_a_change_of_clocks_begins_at_midnight() -> None:
    first, after = parse_time_range("last week", local("2026-10-28 12:00"))
    assert (shown(first), shown(after)) == ("2026-10-19 00:00", "2026-10-26 00:00")


@pytest.mark.parametrize(
    "text", ["", "soon", "last", "ago", "next monday", "5 months from now", "9" * 12 + " years ago"]
)
def test_other_text_is_refused_with_what_can_be_written(text: str) -> None:
    with pytest.raises(BadRequest, match="not a time"):
        parse_time_range(text, local(THURSDAY))
