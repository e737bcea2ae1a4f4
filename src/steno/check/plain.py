"""Lines that a decoder and an encoder take for what they are: nearly all, and cheap to judge."""

from collections.abc import Iterator
from functools import cache
from sys import intern
from typing import Annotated, Any, Final, TypeAlias, get_args

import msgspec

from steno.format.dialects.names import OWN_TYPES, SYSTEM_SUBTYPES
from steno.format.envelope import Envelope
from steno.format.lines import LINE_CAP, Stretch, read_line, read_stretches
from steno.format.loose import REFUSED
from steno.format.records import Gap, Piece, Record
from steno.format.source import Source
from steno.session.nodes import ROLES

__all__ = ["Batch", "Shape", "decode_any", "read_plain", "shape_of"]

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


class Batch:
    """Lines that certainly have no flaw, and the fields of each."""

    __slots__ = ("fields", "stretch")

    def __init__(self, stretch: Stretch, fields: list[dict[str, Any]]) -> None:
        self.stretch = stretch
        self.fields = fields


def read_plain(source: Source, *, cap: int = LINE_CAP) -> Iterator[Batch | Piece]:
    """Yield a file as batches of plain lines, and the pieces of all others.

    Many lines are decoded at once. Where one of them takes a closer look, each gets its own.
    """
    decode = PlainDecoder().decode
    for stretch in read_stretches(source, cap=cap):
        if isinstance(stretch, Gap):
            yield stretch
            continue
        fields = decode(stretch)
        if fields is not None:
            yield Batch(stretch, fields)
            continue
        for line in stretch.lines():
            fields = decode(line)
            if fields is not None:
                yield Batch(line, fields)
            else:
                yield from read_line(line)


class PlainDecoder:
    """Decodes lines that certainly have no flaw, and tells them from those that need a look."""

    def __init__(self) -> None:
        self._decode = _decoder().decode_lines
        self._encode = msgspec.json.Encoder().encode_lines

    def decode(self, stretch: Stretch) -> list[dict[str, Any]] | None:
        """Return the fields of each line, None where one of them takes a closer look.

        Their nesting and integers are as usual. They are the same when they are written again, so
        there is no key twice, no odd escape, and nothing before or behind an object.
        """
        if stretch.after_zeros:
            return None
        data = stretch.data
        try:
            fields = self._decode(data)
        except REFUSED:
            return None
        again = self._encode(fields)
        # The newline of the last line is not part of a stretch.
        return fields if len(again) == len(data) + 1 and again.startswith(data) else None


def decode_any(record: Record) -> dict[str, Any]:
    """Return the fields of any record, what is not JSON made harmless."""
    try:
        return _DECODE(record.line)
    except REFUSED:
        return record.fields


class Shape:
    """A record's type and subtype, the names of its fields and the types of their values.

    Shapes are known by identity.
    """

    __slots__ = ("fits", "is_linked", "kind", "names", "subtype", "types")

    def __init__(
        self, kind: str, subtype: str, names: tuple[str, ...], types: tuple[type, ...]
    ) -> None:
        self.kind = intern(kind)
        self.subtype = intern(subtype)
        self.names = names
        self.types = types
        self.fits = self._is_typed() and self._is_usual()
        """Whether all that the envelope says, and who speaks, can be read off the fields."""
        self.is_linked = "parentUuid" in names and "message" in names
        """Whether it has what messages need, of whatever type."""

    def _is_typed(self) -> bool:
        known = _known_types()
        pairs = zip(self.names, self.types, strict=True)
        return all(kind in known.get(name, (kind,)) for name, kind in pairs)

    def _is_usual(self) -> bool:
        """Whether a message is an object, and any other record of no dialect."""
        if self.kind in ROLES:
            in_millis = self.has("timestamp", int) or self.has("timestamp", float)
            return self.has("message", dict) and not in_millis
        if self.kind == "system":
            return self.subtype not in SYSTEM_SUBTYPES or "message" not in self.names
        return self.kind not in OWN_TYPES

    def has(self, name: str, kind: type) -> bool:
        """Whether there is a field of that name and type."""
        return (name, kind) in zip(self.names, self.types, strict=True)


def shape_of(fields: dict[str, Any]) -> Shape:
    """Return the shape of a record: nearly always one that an earlier record had."""
    kind, subtype = fields.get("type"), fields.get("subtype")
    return _SHAPES[
        kind if kind.__class__ is str else "",
        subtype if subtype.__class__ is str else "",
        *fields,
        *map(type, fields.values()),
    ]


class _Shapes(dict[tuple[Any, ...], Shape]):
    """The shapes that were met, by everything that tells them apart."""

    def __missing__(self, key: tuple[Any, ...]) -> Shape:
        # Names and types are anybody's words: there may be any number of shapes.
        if len(self) >= _SHAPES_KEPT:
            self.clear()
        kind, subtype, *rest = key
        half = len(rest) // 2
        shape = self[key] = Shape(kind, subtype, tuple(rest[:half]), tuple(rest[half:]))
        return shape


_SHAPES: Final = _Shapes()


@cache
def _known_types() -> dict[str, tuple[type, ...]]:
    fields = msgspec.structs.fields(Envelope)
    return {field.encode_name: types for field in fields if (types := get_args(field.type))}
