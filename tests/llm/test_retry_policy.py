"""What is tried again, and how long one waits before."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steno.llm.messages_api import ApiError, Response, StreamInterrupted
from steno.llm.retry_policy import (
    DEFAULT_RETRY_POLICY,
    RetryPolicy,
    error_from_response,
    is_retryable,
    parse_retry_after,
    retry_delay,
    status_for_kind,
)

# Sun, 15 Nov 2026 12:00:00 GMT
NOON = 1_794_744_000.0


@pytest.mark.parametrize(
    ("status", "kind", "retried"),
    [
        (429, "rate_limit_error", True),
        (500, "api_error", True),
        (502, "", True),
        (503, "", True),
        (529, "overloaded_error", True),
        (408, "", True),
        (0, "connection_error", True),
        (0, "timeout", True),
        (0, "bad_stream", True),
        (0, "certificate_error", False),
        (0, "bad_url", False),
        (0, "cancelled", False),
        (200, "bad_answer", False),
        (307, "redirect", False),
        (400, "invalid_request_error", False),
        (401, "authentication_error", False),
        (403, "permission_error", False),
        (404, "not_found_error", False),
        (413, "request_too_large", False),
    ],
)
def test_only_what_may_pass_is_tried_again(status: int, kind: str, *, retried: bool) -> None:
    error = ApiError("x", status=status, kind=kind)
    assert is_retryable(error) is retried
    assert (retry_delay(error, 1, random=lambda: 0.5) is not None) is retried


def test_a_stream_that_was_cut_is_tried_again() -> None:
    assert is_retryable(StreamInterrupted("x", partial=Response()))


def test_overloaded_counts_as_529_and_an_unknown_kind_as_nothing() -> None:
    assert status_for_kind("overloaded_error") == 529
    assert status_for_kind("of_tomorrow") == 0


BUSY = ApiError("busy", status=529)


def test_pauses_double_up_to_the_cap_and_are_as_long_as_chance_says() -> None:
    patience = RetryPolicy(retries=6, base=1.0, cap=8.0)
    longest = [retry_delay(BUSY, n, policy=patience, random=lambda: 1.0) for n in range(1, 8)]
    assert longest == [1.0, 2.0, 4.0, 8.0, 8.0, 8.0, None]
    assert retry_delay(BUSY, 3, policy=patience, random=lambda: 0.25) == 1.0
    assert retry_delay(BUSY, 3, policy=patience, random=lambda: 0.0) == 0.0


@given(st.integers(1, 10**6), st.floats(0, 1), st.floats(0, 10**6))
def test_no_pause_is_longer_than_cap_and_total(attempt: int, chance: float, spent: float) -> None:
    patience = RetryPolicy(retries=10**6, cap=20.0, total=1000.0)
    wait = retry_delay(BUSY, attempt, policy=patience, random=lambda: chance, elapsed=spent)
    assert wait is None or (0 <= wait <= 20.0 and spent + wait <= 1000.0)


def test_no_try_begins_after_the_time_in_all_is_over() -> None:
    patience = RetryPolicy(base=4.0, total=10.0)
    assert retry_delay(BUSY, 1, policy=patience, random=lambda: 1.0, elapsed=6.0) == 4.0
    assert retry_delay(BUSY, 1, policy=patience, random=lambda: 1.0, elapsed=6.1) is None


def test_what_the_server_asks_for_goes_before_chance_up_to_a_cap() -> None:
    asked = ApiError("x", status=429, retry_after=7.0)
    assert retry_delay(asked, 5, random=lambda: 0.1) == 7.0
    asked = ApiError("x", status=429, retry_after=9999.0)
    assert retry_delay(asked, 1, random=lambda: 0.1) == DEFAULT_RETRY_POLICY.asked_cap
    asked = ApiError("x", status=429, retry_after=-5.0)
    assert retry_delay(asked, 1, random=lambda: 0.1) == 0.0
    asked = ApiError("x", status=400, retry_after=7.0)
    assert retry_delay(asked, 1, random=lambda: 0.1) is None


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ("7", 7.0),
        (" 1.5 ", 1.5),
        ("0", 0.0),
        ("Sun, 15 Nov 2026 12:00:30 GMT", 30.0),
        ("Sunday, 15-Nov-26 12:00:30 GMT", 30.0),
        ("Sun Nov 15 12:00:30 2026", 30.0),
        ("Sun, 15 Nov 2026 11:00:00 GMT", 0.0),
        ("Sun, 15 Nov 9999 11:00:00 GMT", 366 * 86400.0),
        ("Sun, 99 Nov 2026 99:99:99 GMT", None),
        ("99999999999999999999999999999999", 366 * 86400.0),
        ("-5", None),
        ("nan", None),
        ("inf", None),
        ("soon", None),
        ("", None),
    ],
)
def test_the_header_is_read_as_seconds_or_as_a_date(told: str, seconds: float | None) -> None:
    assert parse_retry_after({"retry-after": told}, NOON) == seconds


def test_without_the_header_nothing_is_asked() -> None:
    assert parse_retry_after({}, NOON) is None


def test_milliseconds_go_before_seconds() -> None:
    assert parse_retry_after({"retry-after-ms": "1500", "retry-after": "2"}, NOON) == 1.5


@given(st.text(max_size=60))
def test_any_header_is_a_time_or_nothing(told: str) -> None:
    seconds = parse_retry_after({"retry-after": told}, NOON)
    assert seconds is None or 0 <= seconds <= 366 * 86400


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        (b'{"error":{"type":"api_error","message":"Oops"}}', "api_error", "Oops"),
        (b'{"error":{"type":"x_error"}}', "x_error", "h returned status 500 with no error message"),
        (b'{"error":"Oops"}', "api_error", "Oops"),
        (b'{"error":5}', "api_error", "h returned status 500 with no error message"),
        (b"<html>Bad gateway", "api_error", "h returned status 500 with an HTML page"),
        (b"[" * 100_000, "api_error", "h returned status 500 with no error message"),
        (b"\xff", "api_error", "h returned status 500 with no error message"),
        (b"", "api_error", "h returned status 500 with no error message"),
    ],
)
def test_a_refusal_is_told_whatever_its_body_is(body: bytes, kind: str, message: str) -> None:
    error = error_from_response(500, {}, body, "h", NOON)
    assert (error.status, error.kind, str(error)) == (500, kind, message)


def test_a_refusal_keeps_the_id_of_the_request_and_the_time_to_wait() -> None:
    body = b'{"error":{"type":"rate_limit_error","message":"x"},"request_id":"req_body"}'
    assert error_from_response(429, {}, body, "h", NOON).request_id == "req_body"
    error = error_from_response(429, {"request-id": "req_head", "retry-after": "3"}, body, "h", NOON)
    assert (error.request_id, error.retry_after) == ("req_head", 3.0)
