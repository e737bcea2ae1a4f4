"""Values with what they say taken out: what shape a thing has, never what stands in it."""

import re
from collections.abc import Callable
from typing import Any, Final, cast

__all__ = ["is_plain_name", "plain_name", "shape_of"]

_LONGEST: Final = 24
_MOST: Final = 4
_DEEPEST: Final = 3
_NAME: Final = re.compile(r"[A-Za-z_$-][A-Za-z0-9_$-]{0,63}")
_DIGIT: Final = re.compile(r"[0-9]")
_WORD: Final = re.compile(r"[^\W\d_]")
_ODD: Final = re.compile(r"[^x0\s!-/:-@\[-`{-~]")


def is_plain_name(name: str) -> bool:
    """Say whether a name looks like one that a programmer gave."""
    return _NAME.fullmatch(name) is not None


def plain_name(name: str) -> str:
    """Return a name as it is if a programmer may have given it; else only its shape.

    >>> plain_name("stopReason"), plain_name("Which port?")
    ('stopReason', '"xxxxx xxxx?"')
    """
    return name if is_plain_name(name) else f'"{_masked(name)}"'


def shape_of(value: Any, known: Callable[[str], bool] | None = None, depth: int = 0) -> str:
    r"""Return what a value looks like: letters as x, digits as 0, long things cut.

    The keys of an object stay if `known` says that they are names of the format.

    >>> shape_of({"port": 8080, "note": "ada's 2nd"}, known="port".__eq__)
    '{port: 0000, xxxx: "xxx\'x 0xx"}'
    """
    match value:
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case int() | float():
            return _digits(value)
        case str():
            return f'"{_masked(value)}"'
        case dict():
            fields = cast("dict[str, Any]", value)
            if depth == _DEEPEST:
                return "{…}" if fields else "{}"
            parts = [
                f"{_key(name, known)}: {shape_of(fields[name], known, depth + 1)}"
                for name in list(fields)[:_MOST]
            ]
            return "{" + ", ".join([*parts, *_more(fields)]) + "}"
        case _:
            items = cast("list[Any]", value)
            if depth == _DEEPEST:
                return "[…]" if items else "[]"
            parts = [shape_of(item, known, depth + 1) for item in items[:1]]
            return "[" + ", ".join([*parts, *(["…"] if len(items) > 1 else [])]) + "]"


def _more(fields: dict[str, Any]) -> list[str]:
    return ["…"] if len(fields) > _MOST else []


def _key(name: str, known: Callable[[str], bool] | None) -> str:
    return name if known is not None and known(name) and is_plain_name(name) else _masked(name)


def _digits(value: float) -> str:
    if isinstance(value, float):
        return _DIGIT.sub("0", f"{value:.6g}")[:_LONGEST]
    # The sign and how many digits; a number without end is not written out.
    bits = value.bit_length()
    return "-" * (value < 0) + "0" * max(1, min(_LONGEST, bits * 3 // 10 + 1))


def _masked(text: str) -> str:
    shown = _WORD.sub("x", _DIGIT.sub("0", text[:_LONGEST]))
    shown = " ".join(_ODD.sub("?", shown).split())
    return f"{shown}…" if len(text) > _LONGEST else shown
