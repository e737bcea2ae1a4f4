"""Decoded JSON values, asked for by the type they should have."""

from typing import Any, Final

__all__ = ["as_list", "as_object", "shown"]

_SHOWN: Final = 60


def as_object(value: Any) -> dict[str, Any] | None:
    """Return an object as it is, None for any other value."""
    # Asked for every record: the decoder makes no subclasses, and this costs no further call.
    return value if value.__class__ is dict else None


def as_list(value: Any) -> list[Any] | None:
    """Return a list as it is, None for any other value."""
    return value if value.__class__ is list else None


def shown(value: Any) -> str:
    """Return a value for a message: the beginning of a text, of anything else only its type.

    >>> shown("zzz"), shown([[]])
    ("'zzz'", 'arr')
    """
    if isinstance(value, str):
        return repr(value[:_SHOWN])
    from steno.format.catalogue import json_type

    return json_type(value)
