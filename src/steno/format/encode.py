"""Values → the bytes the real client writes: compact, UTF-8 as it is, keys in the order given.

The real client is a JavaScript program, so numbers are written as `JSON.stringify` writes them
(`0.00001`, not `1e-05`; `2`, not `2.0`) and half a surrogate pair is escaped.
"""

import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final, cast

__all__ = ["encode", "encode_line"]

_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_MARK: Final = "\x00number:"
_EXACT: Final = 2**53
_PLAIN_FROM: Final = 1e-6
_PLAIN_BELOW: Final = 1e21


def encode(value: Any) -> bytes:
    """Return `value` as one line of JSON, without the newline.

    >>> encode({"type": "tag", "tag": "größe", "cost": 0.00001}).decode()
    '{"type":"tag","tag":"größe","cost":0.00001}'
    """
    if not _mark_floats(value, _MARK)[1]:
        return _bytes(value)
    mark = _MARK
    while _quoted(mark) in _bytes(value):  # somebody's text looks like the mark
        mark = f"\x00{mark}"
    marked, _ = _mark_floats(value, mark)
    return re.sub(b'"' + re.escape(_quoted(mark)) + b'([^"]*)"', rb"\1", _bytes(marked))


def encode_line(value: Any) -> bytes:
    """Return `value` as one line of JSON, newline included."""
    return encode(value) + b"\n"


def _bytes(value: Any) -> bytes:
    return _ENCODER.encode(value).encode("utf-8", "backslashreplace")


def _quoted(mark: str) -> bytes:
    return _bytes(mark)[1:-1]


def _mark_floats(value: Any, mark: str) -> tuple[Any, bool]:
    """Replace floats that Python and JavaScript write differently by marked strings."""
    if isinstance(value, float):
        text = _js_number(value)
        return (value, False) if text == repr(value) else (mark + text, True)
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        pairs = [(key, *_mark_floats(item, mark)) for key, item in fields.items()]
        changed = any(pair[2] for pair in pairs)
        return ({key: item for key, item, _ in pairs}, True) if changed else (fields, False)
    if isinstance(value, list | tuple):
        sequence = cast("list[Any]", value)
        items = [_mark_floats(item, mark) for item in sequence]
        changed = any(item[1] for item in items)
        return ([item for item, _ in items], True) if changed else (sequence, False)
    return value, False


def _js_number(value: float) -> str:
    """Write a number as JavaScript does."""
    if not math.isfinite(value):
        return "null"
    if value == int(value) and abs(value) < _EXACT:
        return str(int(value))
    text = repr(value).removesuffix(".0")
    if "e" not in text:
        return text
    if _PLAIN_FROM <= abs(value) < _PLAIN_BELOW:
        from decimal import Decimal

        return format(Decimal(text), "f")
    mantissa, _, exponent = text.partition("e")
    power = int(exponent)
    return f"{mantissa.removesuffix('.0')}e{'+' if power > 0 else '-'}{abs(power)}"
