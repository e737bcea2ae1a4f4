r"""The tolerant decoder behind the fast one: reads what msgspec refuses.

msgspec is strict, and rightly: bad UTF-8, half surrogate pairs, raw control characters, `NaN` and
integers without end are not JSON. A reader of other people's files still wants the rest of such a
line. `loose` gives the value with the offending parts made harmless (U+FFFD, null, float), so that
whatever comes behind it (a view, a page, SQLite) can hold it. The raw bytes stay what they are.
"""

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import msgspec

from steno.format.depth import depth_of

if TYPE_CHECKING:
    from json import JSONDecoder

__all__ = ["REFUSED", "fill", "loose"]

REFUSED: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What a decoder raises on bytes that are not the JSON it wants."""

_DEEPEST: Final = 512
# Each level doubles what the decoder has to know.
_LEVELS: Final = 6
_MAX_DIGITS: Final = 4_000
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
_STRICT: Final = msgspec.json.Decoder()


def loose(raw: bytes | msgspec.Raw) -> Any:
    """Return the JSON value in `raw`, or None when there is none, or none of a sane depth.

    How deep a decoder can go depends on the Python it runs on, so the limit is our own.
    """
    try:
        return _shallow().decode(raw)
    except REFUSED:
        return _deep(raw)


@cache
def _shallow() -> msgspec.json.Decoder[Any]:
    """Return a decoder for what nests no deeper than nearly all does: it need not be measured."""
    scalar: Any = str | int | float | bool | None
    value: Any = scalar
    for _ in range(_LEVELS):
        value = scalar | dict[str, value] | list[value]
    return msgspec.json.Decoder(value)


def _deep(raw: bytes | msgspec.Raw) -> Any:
    # What is shorter cannot be as deep.
    if len(raw) > _DEEPEST and depth_of(bytes(raw)) > _DEEPEST:
        return None
    try:
        return _STRICT.decode(raw)
    except REFUSED:
        return _forgiving(bytes(raw))


def _forgiving(raw: bytes) -> Any:
    """Decode with the standard library's forgiving decoder and mend what it lets through."""
    text = raw.decode("utf-8", "replace")
    try:
        value = _decoder().decode(text.strip(" \t\r\n\0\N{ZERO WIDTH NO-BREAK SPACE}"))
        return _mended(value) if "\\u" in text else value
    except (ValueError, RecursionError):
        return None


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) < _MAX_DIGITS else float(digits)


def _no_constant(_name: str) -> None:
    return None


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub(_REPLACEMENT, value)
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {_SURROGATE.sub(_REPLACEMENT, key): _mended(item) for key, item in items}
    if isinstance(value, list):
        return [_mended(item) for item in cast("list[Any]", value)]
    return value


@cache
def _decoder() -> "JSONDecoder":
    from json import JSONDecoder

    return JSONDecoder(strict=False, parse_int=_integer, parse_constant=_no_constant)


_T = TypeVar("_T", bound=msgspec.Struct)


def fill(shape: type[_T], fields: dict[str, Any]) -> _T:
    """Build `shape` field by field from decoded JSON; a field that does not fit is left out."""
    good: dict[str, Any] = {}
    for field in msgspec.structs.fields(shape):
        if field.encode_name not in fields:
            continue
        value = fields[field.encode_name]
        try:
            if field.type is msgspec.Raw:
                good[field.name] = msgspec.Raw(msgspec.json.encode(value))
            else:
                good[field.name] = msgspec.convert(value, field.type)
        except (msgspec.MsgspecError, UnicodeError, RecursionError, OverflowError):
            continue
    return shape(**good)
