"""A brief as JSON values, with control characters made visible.

The form is `BriefDocument`; its schema is `docs/reference/brief.schema.json`.
"""

from collections.abc import Sequence
from typing import Any, Final, cast

import msgspec

from steno.errors import BadRequest
from steno.report import clock
from steno.report.brief.brief_document import Brief, BriefDocument
from steno.report.brief.brief_reduction import fit_to_budget, mask_brief, shorten_inputs
from steno.sanitize.markdown import QUOTE_NOTICE, estimate_tokens
from steno.sanitize.terminal import clean

MIN_JSON_BUDGET: Final = 150
_TIME_FIELDS: Final = frozenset(("started", "ended", "time"))
"""Struct fields that contain a time."""
_MAX_INTEGER_BITS: Final = 64
"""Longer integers become text, as few JSON readers preserve them."""


def as_json(
    brief: Brief | Sequence[Brief],
    budget: int | None = None,
    *,
    redact: bool = True,
    unread_sessions: int = 0,
    full: bool = False,
) -> dict[str, Any]:
    """Return one or several briefs, newest first, as JSON values; see `as_markdown`.

    The budget applies to the value as encoded by `encode_brief`. `full` keeps call parameters of any length.

    Raises:
        BadRequest: The budget is too small.
    """
    briefs = [brief] if isinstance(brief, Brief) else list(brief)
    if redact:
        briefs = [mask_brief(single) for single in briefs]
    if not full:
        briefs = [shorten_inputs(each) for each in briefs]
    if budget is None:
        return _document_json(briefs, unread_sessions)
    if budget < MIN_JSON_BUDGET:
        raise BadRequest(f"a brief as JSON needs a budget of at least {MIN_JSON_BUDGET} tokens")
    total = unread_sessions + len(briefs)

    def fits_budget(candidates: list[Brief]) -> bool:
        return estimate_tokens(encode_brief(_document_json(candidates, total - len(candidates))).decode()) <= budget

    selected = fit_to_budget(briefs, fits_budget, budget)
    return _document_json(selected, total - len(selected))


def encode_brief(value: dict[str, Any]) -> bytes:
    """Encode the JSON of a brief."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def _document_json(briefs: Sequence[Brief], unread_sessions: int) -> dict[str, Any]:
    return _struct_json(BriefDocument(notice=QUOTE_NOTICE, briefs=tuple(briefs), sessions_left_out=unread_sessions))


def _struct_json(struct: msgspec.Struct) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name in struct.__struct_fields__:
        value = getattr(struct, name)
        fields[name] = clock.iso_time(value) if name in _TIME_FIELDS else _clean_value(value)
    return fields


def _clean_value(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value, newlines=True)
    if isinstance(value, msgspec.Struct):
        return _struct_json(value)
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return {clean(key): _clean_value(item) for key, item in pairs}
    if isinstance(value, list | tuple):
        return [_clean_value(each) for each in cast("list[Any]", value)]
    if isinstance(value, int) and value.bit_length() >= _MAX_INTEGER_BITS:
        return str(value)
    return value
