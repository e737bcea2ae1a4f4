"""Values of a record that may be anything: what can be used of them, or nothing."""

from typing import Any, Final

__all__ = ["Fields", "as_fields", "as_items", "as_number", "as_text", "first_text"]

Fields = dict[str, Any]
_EXACT: Final = 1 << 53
_NUMBERS: Final = (int, float)


def as_text(value: Any) -> str:
    """Return a text, or a number as one.

    >>> as_text("a"), as_text(3), as_text(True), as_text(None)
    ('a', '3', '', '')
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return str(value) if isinstance(value, _NUMBERS) and not isinstance(value, bool) else ""


def as_number(value: Any) -> int | None:
    """Return a whole number of a sane size."""
    if isinstance(value, bool) or not isinstance(value, _NUMBERS):
        return None
    return int(value) if abs(value) < _EXACT else None


def as_fields(value: Any) -> Fields:
    """Return an object, or an empty one."""
    return value if value.__class__ is dict else {}


def as_items(value: Any) -> list[Any]:
    """Return a list, or an empty one."""
    return value if value.__class__ is list else []


def first_text(fields: Fields, *names: str) -> str:
    """Return the first of some fields that has words in it."""
    for name in names:
        found = as_text(fields.get(name))
        if found:
            return found
    return ""
