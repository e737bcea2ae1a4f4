"""Lines that a decoder and an encoder take for what they are: nearly all, and cheap to judge."""

from functools import cache, lru_cache
from typing import Annotated, Any, Final, TypeAlias, get_args

import msgspec

from steno.format.envelope import Envelope
from steno.format.loose import REFUSED
from steno.format.records import Record

__all__ = ["PlainDecoder", "Shape", "decode_any", "shape_of"]

# Each level doubles what the decoder has to know, and few records nest deeper.
_LEVELS: Final = 8
_EXACT: Final = 2**53
_SHAPES_KEPT: Final = 4_096
_Scalar: TypeAlias = str | Annotated[int, msgspec.Meta(ge=-_EXACT, le=_EXACT)] | float | bool | None
_DECODE: Final = msgspec.json.Decoder().decode


@cache
def _decoder() -> msgspec.json.Decoder[dict[str, Any]]:
    """Return a decoder that refuses deep nesting, and integers JavaScript cannot hold exactly."""
    value: Any = _Scalar
    for _ in range(_LEVELS):
        value = _either(_either(_Scalar, dict[str, value]), list[value])
    return msgspec.json.Decoder(dict[str, value])


def _either(one: Any, other: Any) -> Any:
    return one | other


class PlainDecoder:
    """Decodes lines that certainly have no flaw, and tells them from those that need a look."""

    def __init__(self) -> None:
        self._decode = _decoder().decode
        self._encode = msgspec.json.Encoder().encode

    def decode(self, line: bytes) -> dict[str, Any] | None:
        """Return the fields of a line, None where it takes a closer look.

        Its nesting and integers are as usual. It is the same when it is written again, so it has
        no key twice, no odd escape, and nothing before or behind the object.
        """
        try:
            fields = self._decode(line)
        except REFUSED:
            return None
        return fields if self._encode(fields) == line else None


def decode_any(record: Record) -> dict[str, Any]:
    """Return the fields of any record, what is not JSON made harmless."""
    try:
        return _DECODE(record.line)
    except REFUSED:
        return record.fields


class Shape:
    """The names of a record's fields and the types of their values, known by identity."""

    __slots__ = ("fits", "has_message", "names", "types")

    def __init__(self, names: tuple[str, ...], types: tuple[type, ...]) -> None:
        self.names = names
        self.types = types
        known = _known_types()
        pairs = zip(names, types, strict=True)
        self.fits = all(kind in known.get(name, (kind,)) for name, kind in pairs)
        """Whether every field is of the type that the envelope has it in."""
        self.has_message = ("message", dict) in zip(names, types, strict=True)
        """Whether there is a message, and it is an object."""


def shape_of(fields: dict[str, Any]) -> Shape:
    """Return the shape of a record: nearly always one that an earlier record had."""
    return _shape(tuple(fields), tuple(map(type, fields.values())))


@lru_cache(maxsize=_SHAPES_KEPT)
def _shape(names: tuple[str, ...], types: tuple[type, ...]) -> Shape:
    return Shape(names, types)


@cache
def _known_types() -> dict[str, tuple[type, ...]]:
    fields = msgspec.structs.fields(Envelope)
    return {field.encode_name: types for field in fields if (types := get_args(field.type))}
