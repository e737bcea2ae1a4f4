"""What every view is, and how one is filled from JSON that may not fit it."""

from types import UnionType
from typing import Any, Final, TypeVar, Union, cast, get_args, get_origin

import msgspec

_BAD: Final = (msgspec.MsgspecError, UnicodeError, RecursionError)
_T = TypeVar("_T", bound="View")


class View(msgspec.Struct, frozen=True):
    """The fields particular to one kind, typed. A field that is missing or odd is None."""


class GenericView(View, frozen=True):
    """A kind that is not in the catalogue: every field as it came."""

    fields: dict[str, Any] = {}


def read(shape: type[_T], fields: dict[str, Any]) -> _T:
    """Return a view of decoded fields; one that does not fit its type is left out, no other."""
    try:
        return msgspec.convert(fields, shape)
    except _BAD:
        pass
    good: dict[str, Any] = {}
    for field in msgspec.structs.fields(shape):
        value = fields.get(field.encode_name)
        if value is not None:
            good[field.name] = _fitting(field.type, value)
    return shape(**good)


def _fitting(wanted: object, value: object) -> object:
    """Return `value` as the type wanted, mended inside where that is a view, else None."""
    try:
        return msgspec.convert(value, wanted)
    except _BAD:
        pass
    for choice in _choices(wanted):
        mended = _mended(choice, value)
        if mended is not None:
            return mended
    return None


def _mended(wanted: object, value: object) -> object:
    """Return a view, a list or a map of views made of `value`, None when it is none of them."""
    shape = _view_in(wanted)
    if shape is None:
        return None
    match get_origin(wanted), value:
        case None, dict():
            return read(shape, cast("dict[str, Any]", value))
        case kind, list() if kind is list:
            parts = [_mended(shape, part) for part in cast("list[Any]", value)]
            return None if None in parts else parts
        case kind, dict() if kind is dict:
            named = cast("dict[str, Any]", value)
            pairs = {name: _mended(shape, part) for name, part in named.items()}
            return None if None in pairs.values() else pairs
        case _:
            return None


def _choices(wanted: object) -> tuple[object, ...]:
    return get_args(wanted) if get_origin(wanted) in (Union, UnionType) else (wanted,)


def _view_in(wanted: object) -> type[View] | None:
    """Return the view a type is, or is a list or a map of."""
    last = (wanted, *get_args(wanted))[-1]
    return last if isinstance(last, type) and issubclass(last, View) else None
