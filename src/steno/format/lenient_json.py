"""Decodes JSON that msgspec refuses, measures its nesting, and checks the types of decoded values.

msgspec is strict, and rightly: bad UTF-8, lone surrogates, raw control characters, `NaN` and
integers of any length are not JSON. A reader of other people's files still needs the rest of such a
line, so the offending parts are replaced (U+FFFD, null, float) by values that every later stage can
hold. The raw bytes are not changed.
"""

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import msgspec

if TYPE_CHECKING:
    from json import JSONDecoder


MAX_DEPTH: Final = 256
"""Deeper than any client writes."""

# Possessive throughout: nothing is remembered to go back to, so memory does not grow with a string.
# A string that never ends runs up to the end: looking for its end again from inside would not end.
_TOKENS: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?+|[\[{]|[\]}]', re.DOTALL)


def nesting_depth(line: bytes) -> int:
    """Return how deep the brackets of a line nest, without recursion."""
    if line.count(b"{") + line.count(b"[") <= MAX_DEPTH:
        return 0
    depth = deepest = 0
    for match in _TOKENS.finditer(line):
        first = line[match.start()]
        if first in b"{[":
            depth += 1
            deepest = max(deepest, depth)
        elif first in b"}]":
            depth -= 1
    return deepest


DECODE_ERRORS: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What a decoder raises on bytes that are not the JSON it wants."""

ShapeT = TypeVar("ShapeT")


def decode_or_default(raw: bytes | msgspec.Raw, shape: type[ShapeT]) -> ShapeT:
    """Return JSON as a struct; one with its defaults where there is none or it does not fit."""
    try:
        return msgspec.json.decode(raw, type=shape) if raw else shape()
    except DECODE_ERRORS:
        return shape()


_MAX_LEVELS: Final = 512
# Each level doubles what the decoder has to know.
_SHALLOW_LEVELS: Final = 6
_MAX_DIGITS: Final = 4_000
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
_STRICT: Final = msgspec.json.Decoder()


def decode_lenient(raw: bytes | msgspec.Raw) -> Any:
    """Return the JSON value in `raw`, or None when there is none, or none of a sane depth.

    How deep a decoder can go depends on the Python it runs on, so the limit is our own.
    """
    try:
        return _shallow_decoder().decode(raw)
    except DECODE_ERRORS:
        return _decode_deep(raw)


@cache
def _shallow_decoder() -> msgspec.json.Decoder[Any]:
    """Return a decoder for what nests no deeper than nearly all does: it need not be measured."""
    scalar: Any = str | int | float | bool | None
    value: Any = scalar
    for _ in range(_SHALLOW_LEVELS):
        value = scalar | dict[str, value] | list[value]
    return msgspec.json.Decoder(value)


def _decode_deep(raw: bytes | msgspec.Raw) -> Any:
    # What is shorter cannot be as deep.
    if len(raw) > _MAX_LEVELS and nesting_depth(bytes(raw)) > _MAX_LEVELS:
        return None
    try:
        return _STRICT.decode(raw)
    except DECODE_ERRORS:
        return _decode_forgiving(bytes(raw))


def _decode_forgiving(raw: bytes) -> Any:
    """Decode with the standard library's forgiving decoder and mend what it lets through."""
    text = raw.decode("utf-8", "replace")
    try:
        value = _forgiving_decoder().decode(text.strip(" \t\r\n\0\N{ZERO WIDTH NO-BREAK SPACE}"))
        return _replace_surrogates(value) if "\\u" in text else value
    except (ValueError, RecursionError):
        return None


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) < _MAX_DIGITS else float(digits)


def _ignore_constant(_name: str) -> None:
    return None


def _replace_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub(_REPLACEMENT, value)
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {_SURROGATE.sub(_REPLACEMENT, key): _replace_surrogates(item) for key, item in items}
    if isinstance(value, list):
        return [_replace_surrogates(item) for item in cast("list[Any]", value)]
    return value


@cache
def _forgiving_decoder() -> "JSONDecoder":
    from json import JSONDecoder

    return JSONDecoder(strict=False, parse_int=_integer, parse_constant=_ignore_constant)


_T = TypeVar("_T", bound=msgspec.Struct)


def fill_struct(struct_type: type[_T], fields: dict[str, Any]) -> _T:
    """Build `struct_type` field by field from decoded JSON; a field that does not fit is left out."""
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(struct_type):
        if field.encode_name not in fields:
            continue
        value = fields[field.encode_name]
        try:
            if field.type is msgspec.Raw:
                values[field.name] = msgspec.Raw(msgspec.json.encode(value))
            else:
                values[field.name] = msgspec.convert(value, field.type)
        except (msgspec.MsgspecError, UnicodeError, RecursionError, OverflowError):
            continue
    return struct_type(**values)


_MAX_DESCRIPTION: Final = 60
_MAX_MILLISECONDS: Final = 1e13
"""Milliseconds that no session takes: about 300 years."""


def as_object(value: Any) -> dict[str, Any] | None:
    """Return an object as it is, None for any other value."""
    # Asked for every record: the decoder makes no subclasses, and this costs no further call.
    return value if value.__class__ is dict else None


def as_list(value: Any) -> list[Any] | None:
    """Return a list as it is, None for any other value."""
    return value if value.__class__ is list else None


def get_object(data: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the object under a key; an empty one for any other value."""
    return as_object(data.get(key)) or {}


def get_text(data: dict[str, Any], key: str) -> str:
    """Return the text under a key; empty for any other value."""
    value = data.get(key)
    return value if isinstance(value, str) else ""


def object_items(value: Any) -> list[dict[str, Any]]:
    """Return the items of a list, with an empty object for any that is not one."""
    return [as_object(item) or {} for item in as_list(value) or ()]


def string_items(value: Any) -> tuple[str, ...]:
    """Return the strings of a list."""
    return tuple(item for item in as_list(value) or () if isinstance(item, str))


def valid_duration(milliseconds: float | None) -> float | None:
    """Return how long something took; None for what no client measures, such as `1e400`.

    >>> valid_duration(1500), valid_duration(-3), valid_duration(float("inf"))
    (1500, 0, None)
    """
    if milliseconds is None or milliseconds >= _MAX_MILLISECONDS:
        return None
    return max(0, milliseconds)


def describe_value(value: Any) -> str:
    """Return a value for a message: the beginning of a text, of anything else only its type.

    >>> describe_value("zzz"), describe_value([[]])
    ("'zzz'", 'arr')
    """
    if isinstance(value, str):
        return repr(value[:_MAX_DESCRIPTION])
    from steno.format.catalogue import json_type

    return json_type(value)
