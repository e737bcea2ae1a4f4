"""Opaque cursors of paged lists: where the next page begins, and for which parameters."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import blake2b
from typing import Any, Final

import msgspec

from steno.errors import BadRequest
from steno.web.api.parameters import Paged

_PAGING: Final = ("cursor", "limit")
FIRST_PAGE: Final = "Leave it out to begin with the first page."
_WORD: Final = 1 << 63


class _Cursor(msgspec.Struct, frozen=True, array_like=True):
    digest: str
    place: list[int | str]


def make_cursor(path: str, parameters: Paged, *place: int | str) -> str:
    """Return the cursor of the page that begins behind a place in the list."""
    packed = msgspec.json.encode(_Cursor(_digest(path, parameters), list(place)))
    return urlsafe_b64encode(packed).decode().rstrip("=")


def read_cursor(path: str, parameters: Paged, length: int) -> list[Any] | None:
    """Return the place of a cursor, which has so many parts; None without a cursor.

    Raises:
        BadRequest: the cursor is not one, or belongs to other parameters.
    """
    text = parameters.cursor
    if not isinstance(text, str):
        return None
    try:
        packed = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        cursor = msgspec.json.decode(packed, type=_Cursor)
    except (ValueError, msgspec.MsgspecError) as error:
        raise not_a_cursor() from error
    if cursor.digest != _digest(path, parameters):
        raise BadRequest("cursor: belongs to other parameters", hint=FIRST_PAGE)
    if len(cursor.place) != length or not all(map(_is_sound, cursor.place)):
        raise not_a_cursor()
    return cursor.place


def not_a_cursor() -> BadRequest:
    """Return the error for a cursor that no list returned."""
    return BadRequest("cursor: not a cursor of this API", hint=FIRST_PAGE)


def integers(place: list[Any]) -> list[int]:
    """Return the parts of a place that must all be integers.

    Raises:
        BadRequest: one is not.
    """
    if not all(isinstance(each, int) for each in place):
        raise not_a_cursor()
    return place


def _is_sound(part: int | str) -> bool:
    return isinstance(part, str) or -_WORD <= part < _WORD


def _digest(path: str, parameters: Paged) -> str:
    """Return what stands for the list that a cursor is for."""
    values = msgspec.to_builtins(parameters)
    kept = [(name, value) for name, value in sorted(values.items()) if name not in _PAGING]
    return blake2b(msgspec.json.encode([path, kept]), digest_size=8).hexdigest()
