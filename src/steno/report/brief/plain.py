"""A brief for programs: values for JSON, in which no text acts, hides or turns around.

The form is that of `BriefDocument`; its schema is in `docs/reference/brief.schema.json`.
"""

from collections.abc import Sequence
from typing import Any, Final, cast

import msgspec

from steno.errors import BadRequest
from steno.report import clock
from steno.report.brief.mask import masked
from steno.report.brief.pack import packed
from steno.report.brief.quote import NOTICE, tokens_in
from steno.report.brief.tool_inputs import with_short_inputs
from steno.report.brief.values import Brief, BriefDocument
from steno.safe.terminal import clean

__all__ = ["as_json", "encoded"]

LEAST: Final = 150
_TIMES: Final = frozenset(("started", "ended", "time"))
"""Fields of structs that hold a time."""
_BITS: Final = 64
"""Integers of a parameter that are longer become text: few readers of JSON keep them."""


def as_json(
    brief: Brief | Sequence[Brief],
    budget: int | None = None,
    *,
    redact: bool = True,
    further: int = 0,
    full: bool = False,
) -> dict[str, Any]:
    """Return one or several briefs, newest first, as values for JSON; see `as_markdown`.

    The budget holds for the value as `encoded` writes it. `full` leaves the parameters of calls as
    long as the briefs have them.

    Raises:
        BadRequest: the budget is too small for anything.
    """
    briefs = [brief] if isinstance(brief, Brief) else list(brief)
    if redact:
        briefs = [masked(each) for each in briefs]
    if not full:
        briefs = [with_short_inputs(each) for each in briefs]
    if budget is None:
        return _value(briefs, further)
    if budget < LEAST:
        raise BadRequest(f"a brief as JSON needs a budget of at least {LEAST} tokens")
    total = further + len(briefs)

    def fits(some: list[Brief]) -> bool:
        return tokens_in(encoded(_value(some, total - len(some))).decode()) <= budget

    chosen = packed(briefs, fits, budget)
    return _value(chosen, total - len(chosen))


def encoded(value: dict[str, Any]) -> bytes:
    """Return the value as it is written."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def _value(briefs: Sequence[Brief], further: int) -> dict[str, Any]:
    return _fields(BriefDocument(notice=NOTICE, briefs=tuple(briefs), sessions_left_out=further))


def _fields(struct: msgspec.Struct) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name in struct.__struct_fields__:
        value = getattr(struct, name)
        made[name] = clock.iso(value) if name in _TIMES else _inert(value)
    return made


def _inert(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value, newlines=True)
    if isinstance(value, msgspec.Struct):
        return _fields(value)
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return {clean(key): _inert(each) for key, each in pairs}
    if isinstance(value, list | tuple):
        return [_inert(each) for each in cast("list[Any]", value)]
    if isinstance(value, int) and value.bit_length() >= _BITS:
        return str(value)
    return value
