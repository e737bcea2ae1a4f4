"""Parses API errors, and decides whether a request is retried and after what delay."""

import math
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from steno.format.lenient_json import DECODE_ERRORS
from steno.llm.messages_api import ApiError

ERROR_STATUSES: Final[Mapping[str, int]] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""HTTP status of each error type; an error inside a stream comes without it."""

# Errors without a status that a retry would repeat.
_NEVER_RETRIED: Final = frozenset({"bad_url", "cancelled", "certificate_error"})
_HINTS: Final = {
    401: "Check that ANTHROPIC_API_KEY (or ANTHROPIC_AUTH_TOKEN) is valid for this address.",
    403: "The API key is valid but lacks the required permission.",
    404: "Check the model name, and that ANTHROPIC_BASE_URL does not end with /v1.",
    413: "The request is too large. Use /compact to shorten the conversation.",
}
_REDIRECTS: Final = range(300, 400)
_MAX_RETRY_AFTER: Final = 366 * 86_400.0
_MAX_DOUBLINGS: Final = 64


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Limits for retries. Times are in seconds."""

    retries: int = 10
    """Maximum number of retries."""
    unheard: int = 3
    """Maximum number of retries after a refused connection."""
    base: float = 0.5
    """Maximum of the first delay; it doubles with each retry."""
    cap: float = 32.0
    """Maximum delay, unless the server requests a longer one."""
    asked_cap: float = 120.0
    """Maximum delay that a server can request."""
    total: float = 900.0
    """No retry starts later than this after the first attempt."""


DEFAULT_RETRY_POLICY: Final = RetryPolicy()


class _ErrorDetail(msgspec.Struct):
    type: str | None = None
    message: str | None = None


class _Refusal(msgspec.Struct):
    """An error body of the API; some gateways send only a string."""

    error: _ErrorDetail | str
    request_id: str | None = None


def status_for_kind(kind: str) -> int:
    """Return the HTTP status of an error type; 0 if it is unknown.

    >>> status_for_kind("overloaded_error")
    529
    """
    return ERROR_STATUSES.get(kind, 0)


def is_retryable(error: ApiError) -> bool:
    """Return whether the same request may be retried after an error."""
    return error.is_transient and error.kind not in _NEVER_RETRIED


def max_retries(error: ApiError, policy: RetryPolicy = DEFAULT_RETRY_POLICY) -> int:
    """Return the maximum number of retries after an error."""
    is_refused = error.kind == "connection_refused"
    return min(policy.unheard, policy.retries) if is_refused else policy.retries


def retry_delay(
    error: ApiError,
    attempt: int,
    *,
    policy: RetryPolicy = DEFAULT_RETRY_POLICY,
    random: Callable[[], float],
    elapsed: float = 0.0,
) -> float | None:
    """Return the delay before a retry; None if the request is not retried.

    `attempt` is the number of the retry, from 1; `elapsed` is the time since the first attempt; `random` returns
    numbers from 0 to 1. A delay requested by the server takes precedence over the random one, which spreads the retries
    of many clients.
    """
    if not is_retryable(error) or attempt > max_retries(error, policy):
        return None
    if error.retry_after is not None:
        delay = min(max(error.retry_after, 0.0), policy.asked_cap)
    else:
        max_delay = policy.base * 2.0 ** min(attempt - 1, _MAX_DOUBLINGS)
        delay = random() * min(max_delay, policy.cap)
    return delay if elapsed + delay <= policy.total else None


def parse_retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Return the delay in seconds that a server requests, as a number or a date; None if it requests no delay.

    >>> parse_retry_after({"retry-after": "7"}, now=0.0)
    7.0
    """
    milliseconds = _parse_number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    header = headers.get("retry-after", "").strip()
    seconds = _parse_number(header)
    if seconds is None:
        date = _parse_date(header)
        seconds = None if date is None else max(date - now, 0.0)
    return None if seconds is None else min(seconds, _MAX_RETRY_AFTER)


def error_from_response(status: int, headers: Mapping[str, str], raw: bytes, host: str, now: float) -> ApiError:
    """Return the error for a response with an error status, for any kind of body."""
    try:
        refusal = msgspec.json.decode(raw, type=_Refusal)
    except DECODE_ERRORS:
        refusal = _Refusal(_ErrorDetail())
    detail = _ErrorDetail(message=refusal.error) if isinstance(refusal.error, str) else refusal.error
    kind, message = detail.type, detail.message
    if status in _REDIRECTS:
        location = headers.get("location", "") or "nowhere"
        kind, message = "redirect", f"{host} redirects to {location}; not followed, to protect the API key"
    elif not message:
        content = "an HTML page" if raw.lstrip().startswith(b"<") else "no error message"
        message = f"{host} returned status {status} with {content}"
    kinds = (name for name, number in ERROR_STATUSES.items() if number == status)
    error = ApiError(
        message,
        status=status,
        kind=kind or next(kinds, "bad_answer"),
        request_id=headers.get("request-id", "") or refusal.request_id or "",
        retry_after=parse_retry_after(headers, now),
    )
    error.hint = _HINTS.get(status, "")
    return error


def _parse_number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _parse_date(text: str) -> float | None:
    if not text:
        return None
    from datetime import UTC
    from email.utils import parsedate_to_datetime

    try:
        date = parsedate_to_datetime(text)
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, TypeError, IndexError):
        return None
