"""Decoded JSON values, asked for by the type they should have."""

from typing import Any, Final

__all__ = ["as_list", "as_object", "measured_time", "shown"]

_SHOWN: Final = 60
_LONGEST_TIME: Final = 1e13
"""Milliseconds that no session takes: about 300 years."""


def as_object(value: Any) -> dict[str, Any] | None:
    """Return an object as it is, None for any other value."""
    # Asked for every record: the decoder makes no subclasses, and this costs no further call.
    return value if value.__class__ is dict else None


def as_list(value: Any) -> list[Any] | None:
    """Return a list as it is, None for any other value."""
    return value if value.__class__ is list else None


def measured_time(milliseconds: float | None) -> float | None:
    """Return how long something took; None for what no client measures, such as `1e400`.

    >>> measured_time(1500), measured_time(-3), measured_time(float("inf"))
    (1500, 0, None)
    """
    if milliseconds is None or milliseconds >= _LONGEST_TIME:
        return None
    return max(0, milliseconds)


def shown(value: Any) -> str:
    """Return a value for a message: the beginning of a text, of anything else only its type.

    >>> shown("zzz"), shown([[]])
    ("'zzz'", 'arr')
    """
    if isinstance(value, str):
        return repr(value[:_SHOWN])
    from steno.format.catalogue import json_type

    return json_type(value)
