"""A brief for programs: values for JSON, in which no text acts, hides or turns around."""

from collections.abc import Sequence
from typing import Any, Final, cast

import msgspec

from steno.errors import BadRequest
from steno.report import clock
from steno.report.brief.mask import masked
from steno.report.brief.pack import packed
from steno.report.brief.quote import NOTICE, tokens_in
from steno.report.brief.values import Brief
from steno.safe.terminal import clean

__all__ = ["as_json", "encoded"]

LEAST: Final = 150
_TIMES: Final = ("started", "ended")


def as_json(
    brief: Brief | Sequence[Brief],
    budget: int | None = None,
    *,
    redact: bool = True,
    further: int = 0,
) -> dict[str, Any]:
    """Return one or several briefs, newest first, as values for JSON; see `as_markdown`.

    The budget holds for the value as `encoded` writes it.

    Raises:
        BadRequest: the budget is too small for anything.
    """
    briefs = [brief] if isinstance(brief, Brief) else list(brief)
    if redact:
        briefs = [masked(each) for each in briefs]
    if budget is None:
        return _value(briefs, further)
    if budget < LEAST:
        raise BadRequest(f"a brief as JSON needs a budget of at least {LEAST} tokens")
    total = further + len(briefs)

    def fits(some: list[Brief]) -> bool:
        return tokens_in(encoded(_value(some, total - len(some))).decode()) <= budget

    chosen = packed(briefs, fits)
    return _value(chosen, total - len(chosen))


def encoded(value: dict[str, Any]) -> bytes:
    """Return the value as it is written."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def _value(briefs: Sequence[Brief], further: int) -> dict[str, Any]:
    return {
        "notice": NOTICE,
        "briefs": [_inert(msgspec.to_builtins(each)) for each in briefs],
        "sessions_left_out": further,
    }


def _inert(value: Any, name: str = "") -> Any:
    if isinstance(value, str):
        return clean(value, newlines=True)
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return {clean(key): _inert(each, key) for key, each in pairs}
    if isinstance(value, list | tuple):
        return [_inert(each) for each in cast("list[Any]", value)]
    if name in _TIMES:
        return clock.iso(value)
    return value
