"""Times in milliseconds, by the fast way and by the slow one."""

import pytest

from steno.index.line_decoder import to_millis


@pytest.mark.parametrize(
    ("stamp", "expected"),
    [
        ("1970-01-01T00:00:00.000Z", 0),
        ("1970-01-01T00:00:00.001Z", 1),
        ("2026-11-15T12:00:00.250Z", 1794744000250),
        ("2026-11-15T12:00:00Z", 1794744000000),
        ("2026-11-15T12:00:00.25Z", 1794744000250),
        ("2026-11-15T13:00:00.250+01:00", 1794744000250),
        ("2026-13-15T12:00:00.250Z", None),
        ("2026-11-15T12:00:00x250Z", None),
        ("yesterday, at noon, or so", None),
        ("", None),
        (None, None),
    ],
)
def test_a_time_is_read_to_the_millisecond(stamp: str | None, expected: int | None) -> None:
    assert to_millis(stamp) == expected
