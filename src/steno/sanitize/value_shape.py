"""Shapes of values without their content: letters as x, digits as 0."""

import re
from collections.abc import Callable
from typing import Any, Final, cast

_MAX_LENGTH: Final = 24
_MAX_KEYS: Final = 4
_MAX_DEPTH: Final = 3
_NAME: Final = re.compile(r"[A-Za-z_$-][A-Za-z0-9_$-]{0,63}")
_ENUM_VALUE: Final = re.compile(r"[a-z][a-z0-9]*(?:[A-Z][a-z0-9]+|[_-][a-z0-9]+)*")
_MAX_VALUE_LENGTH: Final = 40
# Prefixes of keys and tokens of well-known services, and of API IDs.
_KEY_PREFIX: Final = re.compile(
    r"(?:sk|pk|rk|xox[a-z]|glpat|pypi|dop)[-_]|(?:gh[a-z]|github_pat|npm|hf|toolu|msg|req)_"
    r"|(?:AKIA|ASIA|AIza|eyJ|ya29)"
)
_DATE: Final = re.compile(r"(?<![0-9])20[0-9]{6}(?![0-9])")
_PART: Final = re.compile(r"[A-Za-z0-9]+")
_NUMBER: Final = re.compile(r"[0-9]+")
_MAX_DIGITS: Final = 5
_LONG_PART_LENGTH: Final = 12
_MAX_PART_LENGTH: Final = 32
_HEX: Final = re.compile(r"(?=(?:[a-f]*[0-9]){2})[0-9a-f]{8,}", re.IGNORECASE)
_DIGIT: Final = re.compile(r"[0-9]")
_WORD: Final = re.compile(r"[^\W\d_]")
_OTHER_CHARACTERS: Final = re.compile(r"[^x0\s!-/:-@\[-`{-~]")


def is_plain_name(name: str) -> bool:
    """Return whether a name looks like an identifier in code, and not like a key or token.

    >>> is_plain_name("ephemeral_5m_input_tokens"), is_plain_name("sk-ant-api03-x7Fq")
    (True, False)
    """
    return _NAME.fullmatch(name) is not None and not _looks_like_secret(name)


def is_plain_value(value: str, *, capital: bool = False) -> bool:
    """Return whether a value looks like an enum value in code.

    With `capital`, its first letter may be upper case.

    >>> is_plain_value("end_turn"), is_plain_value("acceptEdits"), is_plain_value("Ada")
    (True, True, False)
    """
    lowered = value[:1].lower() + value[1:] if capital else value
    short = len(value) <= _MAX_VALUE_LENGTH
    return short and _ENUM_VALUE.fullmatch(lowered) is not None and is_plain_name(value)


def _looks_like_secret(name: str) -> bool:
    """Return whether a name is more likely a key, a token or an ID."""
    if _KEY_PREFIX.match(name):
        return True
    undated = _DATE.sub("", name)
    if sum(map(len, _NUMBER.findall(undated))) > _MAX_DIGITS or _HEX.search(undated):
        return True
    return any(
        len(part) > _MAX_PART_LENGTH or (len(part) >= _LONG_PART_LENGTH and len(_NUMBER.findall(part)) > 1)
        for part in _PART.findall(undated)
    )


def plain_name(name: str) -> str:
    """Return a plain name unchanged, and only the shape of any other.

    >>> plain_name("stopReason"), plain_name("Which port?")
    ('stopReason', '"xxxxx xxxx?"')
    """
    return name if is_plain_name(name) else mask_content(name)


def mask_content(text: str) -> str:
    """Return the shape of a text in quotes."""
    return f'"{_mask_letters(text)}"'


def shape_of(value: Any, is_known: Callable[[str], bool] | None = None, depth: int = 0) -> str:
    r"""Return the shape of a value: letters as x, digits as 0, long values truncated.

    Object keys are kept if `is_known` identifies them as names of the format.

    >>> shape_of({"port": 8080, "note": "ada's 2nd"}, is_known="port".__eq__)
    '{port: 0000, xxxx: "xxx\'x 0xx"}'
    """
    match value:
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case int() | float():
            return _digits_shape(value)
        case str():
            return f'"{_mask_letters(value)}"'
        case dict():
            fields = cast("dict[str, Any]", value)
            if depth == _MAX_DEPTH:
                return "{…}" if fields else "{}"
            parts = [
                f"{_key_shape(name, is_known)}: {shape_of(fields[name], is_known, depth + 1)}"
                for name in list(fields)[:_MAX_KEYS]
            ]
            return "{" + ", ".join([*parts, *_ellipsis(fields)]) + "}"
        case _:
            items = cast("list[Any]", value)
            if depth == _MAX_DEPTH:
                return "[…]" if items else "[]"
            parts = [shape_of(item, is_known, depth + 1) for item in items[:1]]
            return "[" + ", ".join([*parts, *(["…"] if len(items) > 1 else [])]) + "]"


def _ellipsis(fields: dict[str, Any]) -> list[str]:
    return ["…"] if len(fields) > _MAX_KEYS else []


def _key_shape(name: str, is_known: Callable[[str], bool] | None) -> str:
    return name if is_known is not None and is_known(name) and is_plain_name(name) else _mask_letters(name)


def _digits_shape(value: float) -> str:
    if isinstance(value, float):
        return _DIGIT.sub("0", f"{value:.6g}")[:_MAX_LENGTH]
    # Sign and approximate number of digits; converting a huge integer to text would be slow.
    bits = value.bit_length()
    return "-" * (value < 0) + "0" * max(1, min(_MAX_LENGTH, bits * 3 // 10 + 1))


def _mask_letters(text: str) -> str:
    shape = _WORD.sub("x", _DIGIT.sub("0", text[:_MAX_LENGTH]))
    shape = " ".join(_OTHER_CHARACTERS.sub("?", shape).split())
    return f"{shape}…" if len(text) > _MAX_LENGTH else shape
