"""What a JSON value must look like, and in the API's words how it does not.

A check is called with a value and its path and yields what is wrong, one line each.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from steno.format.values import as_list, as_object

__all__ = [
    "Check",
    "anything",
    "each",
    "either",
    "flag",
    "integer",
    "maybe",
    "number",
    "objects",
    "one_of",
    "shaped",
    "string",
    "tagged",
]

Check: TypeAlias = Callable[[Any, str], Iterator[str]]
_NO_OBJECT: Final = "Input should be a valid dictionary"
_NO_LIST: Final = "Input should be a valid list"


def anything(value: Any, path: str) -> Iterator[str]:
    """Take whatever comes."""
    _ = value, path
    yield from ()


def string(pattern: str = "", *, shortest: int = 0) -> Check:
    """Return a check for text, of that form."""
    form = re.compile(pattern)

    def check(value: Any, path: str) -> Iterator[str]:
        if not isinstance(value, str):
            yield f"{path}: Input should be a valid string"
        elif len(value) < shortest:
            characters = "character" if shortest == 1 else "characters"
            yield f"{path}: String should have at least {shortest} {characters}"
        elif pattern and not form.fullmatch(value):
            yield f"{path}: String should match pattern '^{pattern}$'"

    return check


def integer(least: int) -> Check:
    """Return a check for a whole number that is not below `least`."""

    def check(value: Any, path: str) -> Iterator[str]:
        whole = isinstance(value, float) and value.is_integer()
        if isinstance(value, bool) or not (isinstance(value, int) or whole):
            yield f"{path}: Input should be a valid integer"
        elif value < least:
            yield f"{path}: Input should be greater than or equal to {least}"

    return check


def number(least: float, most: float) -> Check:
    """Return a check for a number between two others."""

    def check(value: Any, path: str) -> Iterator[str]:
        if isinstance(value, bool) or not isinstance(value, int | float):
            yield f"{path}: Input should be a valid number"
        elif not least <= value <= most:
            yield f"{path}: range: {least:g}..{most:g}"

    return check


def flag(value: Any, path: str) -> Iterator[str]:
    """Yield what is wrong with a truth value."""
    if not isinstance(value, bool):
        yield f"{path}: Input should be a valid boolean"


def one_of(*values: str) -> Check:
    """Return a check for one of some words."""
    named = [f"'{value}'" for value in values]
    listed = " or ".join((", ".join(named[:-1]), named[-1]) if named[1:] else named)

    def check(value: Any, path: str) -> Iterator[str]:
        if value not in values:
            yield f"{path}: Input should be {listed}"

    return check


def maybe(check: Check) -> Check:
    """Return the same check, which takes null as well."""

    def checked(value: Any, path: str) -> Iterator[str]:
        if value is not None:
            yield from check(value, path)

    return checked


def each(check: Check) -> Check:
    """Return a check for a list of such values."""

    def checked(value: Any, path: str) -> Iterator[str]:
        items = as_list(value)
        if items is None:
            yield f"{path}: {_NO_LIST}"
        for place, item in enumerate(items or ()):
            yield from check(item, f"{path}.{place}")

    return checked


def either(plain: type[str], other: Check) -> Check:
    """Return a check for plain text or something else."""

    def checked(value: Any, path: str) -> Iterator[str]:
        if not isinstance(value, plain):
            yield from other(value, path)

    return checked


def objects(value: Any, path: str) -> Iterator[str]:
    """Yield what is wrong with an object of any keys."""
    if as_object(value) is None:
        yield f"{path}: {_NO_OBJECT}"


def shaped(
    needs: Mapping[str, Check], may: Mapping[str, Check] | None = None, *, loose: bool = False
) -> Check:
    """Return a check for an object with these keys; others are refused unless it is loose."""
    known = {**needs, **(may or {})}

    def check(value: Any, path: str) -> Iterator[str]:
        fields = as_object(value)
        if fields is None:
            yield f"{path}: {_NO_OBJECT}" if path else _NO_OBJECT
            return
        front = f"{path}." if path else ""
        for key, inner in known.items():
            if key in fields:
                yield from inner(fields[key], f"{front}{key}")
            elif key in needs:
                yield f"{front}{key}: Field required"
        for key in fields:
            if key not in known and not loose:
                yield f"{front}{key}: Extra inputs are not permitted"

    return check


def tagged(shapes: Mapping[str, Check], *, default: str = "") -> Check:
    """Return a check for an object whose `type` says which of the shapes it has."""
    expected = ", ".join(f"'{name}'" for name in shapes)

    def check(value: Any, path: str) -> Iterator[str]:
        fields = as_object(value)
        if fields is None:
            yield f"{path}: {_NO_OBJECT}"
            return
        kind = fields.get("type", default or None)
        shape = shapes.get(kind) if isinstance(kind, str) else None
        if kind is None:
            yield f"{path}.type: Field required"
        elif shape is None:
            found = f"Input tag '{kind}' found using 'type'"
            yield f"{path}: {found} does not match any of the expected tags: {expected}"
        else:
            yield from shape(value, f"{path}.{kind}")

    return check
