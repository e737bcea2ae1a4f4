"""Decodes JSON that msgspec rejects, measures its nesting depth, and checks the types of decoded values.

msgspec is strict: bad UTF-8, lone surrogates, raw control characters, `NaN` and integers of any length are invalid
JSON. To read the rest of such a line, the invalid parts are replaced (U+FFFD, null, float) by values that all later
stages can handle. The raw bytes are not changed.
"""

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import msgspec

if TYPE_CHECKING:
    from json import JSONDecoder


MAX_DEPTH: Final = 256
"""Nesting depth that Claude Code never exceeds."""

# Possessive quantifiers throughout, so that memory does not grow with the length of a string. An unterminated string
# extends to the end; searching from inside it again would take quadratic time.
_TOKENS: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?+|[\[{]|[\]}]', re.DOTALL)


def nesting_depth(line: bytes) -> int:
    """Return the nesting depth of a line, without recursion."""
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
"""Errors that decoders raise on invalid or unexpected JSON."""

ShapeT = TypeVar("ShapeT")


def decode_or_default(raw: bytes | msgspec.Raw, shape: type[ShapeT]) -> ShapeT:
    """Decode JSON to a struct; return its defaults if the JSON is empty or does not fit."""
    try:
        return msgspec.json.decode(raw, type=shape) if raw else shape()
    except DECODE_ERRORS:
        return shape()


_MAX_LEVELS: Final = 512
# Each level doubles the size of the decoder.
_SHALLOW_LEVELS: Final = 6
_MAX_DIGITS: Final = 4_000
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
_STRICT: Final = msgspec.json.Decoder()


def decode_lenient(raw: bytes | msgspec.Raw) -> Any:
    """Return the JSON value in `raw`, or None if it is invalid or nested too deeply.

    The depth that decoders support depends on the Python version, so a fixed limit is used.
    """
    try:
        return _shallow_decoder().decode(raw)
    except DECODE_ERRORS:
        return _decode_deep(raw)


@cache
def _shallow_decoder() -> msgspec.json.Decoder[Any]:
    """Return a decoder for shallow values, which need no depth check."""
    scalar: Any = str | int | float | bool | None
    value: Any = scalar
    for _ in range(_SHALLOW_LEVELS):
        value = scalar | dict[str, value] | list[value]
    return msgspec.json.Decoder(value)


def _decode_deep(raw: bytes | msgspec.Raw) -> Any:
    # Shorter data cannot be nested that deeply.
    if len(raw) > _MAX_LEVELS and nesting_depth(bytes(raw)) > _MAX_LEVELS:
        return None
    try:
        return _STRICT.decode(raw)
    except DECODE_ERRORS:
        return _decode_forgiving(bytes(raw))


def _decode_forgiving(raw: bytes) -> Any:
    """Decode with the lenient standard-library decoder and replace lone surrogates."""
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
    """Build `struct_type` field by field from decoded JSON; fields that do not fit keep their defaults."""
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
"""Milliseconds above which a duration is invalid: about 300 years."""


def as_object(value: Any) -> dict[str, Any] | None:
    """Return the value if it is an object, otherwise None."""
    # Called for every record: the decoder creates no subclasses, and this check needs no call.
    return value if value.__class__ is dict else None


def as_list(value: Any) -> list[Any] | None:
    """Return the value if it is a list, otherwise None."""
    return value if value.__class__ is list else None


def get_object(data: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the object under a key; empty for any other value."""
    return as_object(data.get(key)) or {}


def get_text(data: dict[str, Any], key: str) -> str:
    """Return the text under a key; empty for any other value."""
    value = data.get(key)
    return value if isinstance(value, str) else ""


def object_items(value: Any) -> list[dict[str, Any]]:
    """Return the items of a list, replacing items that are not objects by empty objects."""
    return [as_object(item) or {} for item in as_list(value) or ()]


def string_items(value: Any) -> tuple[str, ...]:
    """Return the strings of a list."""
    return tuple(item for item in as_list(value) or () if isinstance(item, str))


def valid_duration(milliseconds: float | None) -> float | None:
    """Return a duration; None for values that are too large, such as `1e400`.

    >>> valid_duration(1500), valid_duration(-3), valid_duration(float("inf"))
    (1500, 0, None)
    """
    if milliseconds is None or milliseconds >= _MAX_MILLISECONDS:
        return None
    return max(0, milliseconds)


def describe_value(value: Any) -> str:
    """Return a value for a message: the beginning of a text, or the type of any other value.

    >>> describe_value("zzz"), describe_value([[]])
    ("'zzz'", 'arr')
    """
    if isinstance(value, str):
        return repr(value[:_MAX_DESCRIPTION])
    from steno.format.catalogue import json_type

    return json_type(value)
