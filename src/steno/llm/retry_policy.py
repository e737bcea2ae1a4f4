"""Parses API errors, and decides whether and after what pause a request is made again.

Nothing here waits.
"""

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
"""The status each kind of error comes with; in a stream, which is 200 by then, it comes without."""

# These come without a status but are the same the next time: nothing has to wait for them.
_NEVER_RETRIED: Final = frozenset({"bad_url", "cancelled", "certificate_error"})
_HINTS: Final = {
    401: "is ANTHROPIC_API_KEY (or ANTHROPIC_AUTH_TOKEN) the right one for this address?",
    403: "the key is known, but it is not allowed to do this",
    404: "is the model's name right, and ANTHROPIC_BASE_URL without /v1?",
    413: "the request is too large: compact the conversation",
}
_REDIRECTS: Final = range(300, 400)
_MAX_RETRY_AFTER: Final = 366 * 86_400.0
_MAX_DOUBLINGS: Final = 64


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How long one goes on asking. Times are in seconds."""

    retries: int = 10
    """How often a request is made again."""
    unheard: int = 3
    """How often where nobody listens at all."""
    base: float = 0.5
    """The first pause is at most this long; each further one at most twice the one before."""
    cap: float = 32.0
    """No pause is longer, unless the server asks for it."""
    asked_cap: float = 120.0
    """The longest pause that a server gets by asking."""
    total: float = 900.0
    """No new try begins when this much time has passed since the first."""


DEFAULT_RETRY_POLICY: Final = RetryPolicy()


class _ErrorDetail(msgspec.Struct):
    type: str | None = None
    message: str | None = None


class _Refusal(msgspec.Struct):
    """What the API says when it refuses; some gateways say it in one text."""

    error: _ErrorDetail | str
    request_id: str | None = None


def status_for_kind(kind: str) -> int:
    """Return the status that goes with a kind of error; 0 for a kind nobody knows.

    >>> status_for_kind("overloaded_error")
    529
    """
    return ERROR_STATUSES.get(kind, 0)


def is_retryable(error: ApiError) -> bool:
    """Say whether the same request is worth another try after this."""
    return error.is_transient and error.kind not in _NEVER_RETRIED


def max_retries(error: ApiError, policy: RetryPolicy = DEFAULT_RETRY_POLICY) -> int:
    """Return how often a request that ended in an error is made again."""
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
    """Return how long to wait before a request is made again, or None when it is not.

    `attempt` counts the tries that are still to come from 1; `elapsed` is the time since the first
    one began; `random` gives numbers from 0 to 1. What the server asks for goes before what chance
    says, so that clients that were refused together do not come back together.
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
    """Return the seconds a server asks to wait, told as a number or as a date; None if it does not.

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
    """Return the error that an answer other than a good one is, whatever its body looks like."""
    try:
        refusal = msgspec.json.decode(raw, type=_Refusal)
    except DECODE_ERRORS:
        refusal = _Refusal(_ErrorDetail())
    detail = _ErrorDetail(message=refusal.error) if isinstance(refusal.error, str) else refusal.error
    kind, message = detail.type, detail.message
    if status in _REDIRECTS:
        location = headers.get("location", "") or "nowhere"
        kind, message = "redirect", f"{host} sends on to {location}, and a key does not follow"
    elif not message:
        content = "a page" if raw.lstrip().startswith(b"<") else "no reason"
        message = f"{host} answered {status} and gave {content}"
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
