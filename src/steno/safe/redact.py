"""Values with what they say taken out: what shape a thing has, never what stands in it."""

import re
from collections.abc import Callable
from typing import Any, Final, cast

__all__ = ["is_plain_name", "is_plain_value", "masked", "plain_name", "shape_of"]

_LONGEST: Final = 24
_MOST: Final = 4
_DEEPEST: Final = 3
_NAME: Final = re.compile(r"[A-Za-z_$-][A-Za-z0-9_$-]{0,63}")
_ENUM: Final = re.compile(r"[a-z][a-z0-9]*(?:[A-Z][a-z0-9]+|[_-][a-z0-9]+)*")
_LONGEST_VALUE: Final = 40
# What keys and tokens of well-known services begin with, and the ids that the API gives.
_KEY: Final = re.compile(
    r"(?:sk|pk|rk|xox[a-z]|glpat|pypi|dop)[-_]|(?:gh[a-z]|github_pat|npm|hf|toolu|msg|req)_"
    r"|(?:AKIA|ASIA|AIza|eyJ|ya29)"
)
_DATE: Final = re.compile(r"(?<![0-9])20[0-9]{6}(?![0-9])")
_PART: Final = re.compile(r"[A-Za-z0-9]+")
_NUMBER: Final = re.compile(r"[0-9]+")
_MOST_DIGITS: Final = 5
_LONG_PART: Final = 12
_LONGEST_PART: Final = 32
_HEX: Final = re.compile(r"(?=(?:[a-f]*[0-9]){2})[0-9a-f]{8,}", re.IGNORECASE)
_DIGIT: Final = re.compile(r"[0-9]")
_WORD: Final = re.compile(r"[^\W\d_]")
_ODD: Final = re.compile(r"[^x0\s!-/:-@\[-`{-~]")


def is_plain_name(name: str) -> bool:
    """Say whether a name looks like one that a programmer gave, and like no key or token.

    >>> is_plain_name("ephemeral_5m_input_tokens"), is_plain_name("sk-ant-api03-x7Fq")
    (True, False)
    """
    return _NAME.fullmatch(name) is not None and not _is_secret(name)


def is_plain_value(value: str, *, capital: bool = False) -> bool:
    """Say whether a value looks like one of a list that a programmer wrote.

    With `capital` its first letter may be one.

    >>> is_plain_value("end_turn"), is_plain_value("acceptEdits"), is_plain_value("Ada")
    (True, True, False)
    """
    lowered = value[:1].lower() + value[1:] if capital else value
    short = len(value) <= _LONGEST_VALUE
    return short and _ENUM.fullmatch(lowered) is not None and is_plain_name(value)


def _is_secret(name: str) -> bool:
    """Say whether a name is more likely a key, a token or the id of something."""
    if _KEY.match(name):
        return True
    told = _DATE.sub("", name)
    if sum(map(len, _NUMBER.findall(told))) > _MOST_DIGITS or _HEX.search(told):
        return True
    return any(
        len(part) > _LONGEST_PART or (len(part) >= _LONG_PART and len(_NUMBER.findall(part)) > 1)
        for part in _PART.findall(told)
    )


def plain_name(name: str) -> str:
    """Return a name as it is if a programmer may have given it; else only its shape.

    >>> plain_name("stopReason"), plain_name("Which port?")
    ('stopReason', '"xxxxx xxxx?"')
    """
    return name if is_plain_name(name) else masked(name)


def masked(text: str) -> str:
    """Return the shape of a text alone, in quotes."""
    return f'"{_masked(text)}"'


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
