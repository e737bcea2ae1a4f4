"""Figures and times as people read them."""

import doctest
import time

import pytest

import steno.report.humanize
from steno.errors import BadRequest
from steno.report import clock, humanize
from steno.store import environment

NOW = 1_794_744_000.0  # 2026-11-15T12:00:00Z, a Sunday


def test_the_examples_hold() -> None:
    assert doctest.testmod(steno.report.humanize).failed == 0


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        *((None, ""), (0, "0.0 s"), (9.94, "9.9 s"), (59.4, "59 s"), (60, "1m00"), (600, "10m")),
        *((3599, "59m"), (3600, "1h00"), (90_000, "1d01h"), (-1, "")),
    ],
)
def test_durations(seconds: float | None, said: str) -> None:
    assert humanize.duration(seconds) == said


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (45_600, "46 kB"), (5_000_000_000_000, "5000 GB")],
)
def test_sizes(number: int, said: str) -> None:
    assert humanize.size(number) == said


@pytest.mark.parametrize(
    ("back", "said"),
    [
        *((0, "Today"), (1, "Yesterday"), (2, "Friday 13 November"), (6, "Monday 9 November")),
        *((7, "8 November"), (400, "11 October 2025"), (-1, "16 November")),
    ],
)
def test_days(back: int, said: str) -> None:
    assert humanize.day_name(NOW - back * 86_400, NOW) == said


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("today", "2026-11-15T00:00:00.000Z", "2026-11-16T00:00:00.000Z"),
        ("Yesterday", "2026-11-14T00:00:00.000Z", "2026-11-15T00:00:00.000Z"),
        ("2026-11-07", "2026-11-07T00:00:00.000Z", "2026-11-08T00:00:00.000Z"),
        ("2026-11-07T09:30:00Z", "2026-11-07T09:30:00.000Z", "2026-11-07T09:30:00.000Z"),
        ("7d", "2026-11-08T12:00:00.000Z", "2026-11-08T12:00:00.000Z"),
        ("90m", "2026-11-15T10:30:00.000Z", "2026-11-15T10:30:00.000Z"),
    ],
)
def test_what_people_mean_by_a_time(text: str, start: str, end: str) -> None:
    assert tuple(map(clock.iso_time, clock.parse_time_range(text, NOW))) == (start, end)


def test_days_are_local(monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(time, "tzset"):
        pytest.skip("the zone cannot be changed here")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    assert clock.iso_time(clock.parse_time_range("today", NOW)[0]) == "2026-11-14T15:00:00.000Z"
    assert humanize.time_of_day(NOW) == "21:00"


def test_a_day_of_23_hours_ends_at_midnight(monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(time, "tzset"):
        pytest.skip("the zone cannot be changed here")
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    start, end = clock.parse_time_range("2026-03-29", NOW)
    assert end - start == 23 * 3600


def test_nonsense_is_refused() -> None:
    with pytest.raises(BadRequest):
        clock.parse_time_range("soon", NOW)


def test_now_can_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert environment.now() == NOW
    monkeypatch.delenv("STENO_NOW")
    assert environment.now() > 1_700_000_000
    assert clock.iso_time(float("inf")) is None
