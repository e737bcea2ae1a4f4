"""What a value not met before is made of, gathered over every time it is met.

A sketch says of a new field what the catalogue would say: its types, the fields inside it, the
versions. It keeps names and types and never a value, and it does not grow without end: an object
with too many names, or with names that are no names, is a map with free keys.
"""

from typing import Any, Final, TypeAlias, cast

from steno.format.catalogue import JsonType, json_type, version_key
from steno.safe.redact import is_plain_name

__all__ = ["Entry", "Sketch", "fields_of", "ordered"]

Entry: TypeAlias = dict[str, Any]
"""A field as it stands in `catalogue.json`."""

_DEEPEST: Final = 6
_MOST_NAMES: Final = 48
_ORDER: Final[tuple[JsonType, ...]] = ("str", "num", "bool", "obj", "arr", "null")


class Sketch:
    """One value, as it was met in one or many places."""

    __slots__ = ("first", "free", "items", "last", "named", "of", "sub", "types")

    def __init__(self) -> None:
        self.types: set[JsonType] = set()
        self.of: set[JsonType] = set()
        self.sub: dict[str, Sketch] = {}
        self.items: dict[str, Sketch] = {}
        self.first = ""
        self.last = ""
        self.free = False
        self.named = False
        """Whether its names are the format's own, whatever they look like, and it is no map."""

    def add(self, value: Any, version: str, depth: int = 0) -> None:
        """Take in one more value."""
        kind = json_type(value)
        self.types.add(kind)
        self._seen(version)
        if depth >= _DEEPEST:
            return
        if kind == "obj":
            self._object(self.sub, cast("dict[str, Any]", value), version, depth)
        elif kind == "arr":
            for item in cast("list[Any]", value):
                self.of.add(json_type(item))
                if isinstance(item, dict):
                    self._object(self.items, cast("dict[str, Any]", item), version, depth)

    def _seen(self, version: str) -> None:
        if version and (not self.first or version_key(version) < version_key(self.first)):
            self.first = version
        if version and (not self.last or version_key(version) > version_key(self.last)):
            self.last = version

    def _object(
        self, into: dict[str, "Sketch"], value: dict[str, Any], version: str, depth: int
    ) -> None:
        if self.free:
            return
        for name, item in value.items():
            sketch = into.get(name)
            if sketch is None:
                fits = len(into) < _MOST_NAMES and is_plain_name(name)
                if self.named and not fits:
                    continue
                if not fits:
                    self.free = True
                    self.sub, self.items = {}, {}
                    return
                sketch = into[name] = Sketch()
            sketch.add(item, version, depth + 1)

    def merge(self, other: "Sketch") -> None:
        """Take in all that another sketch has met."""
        self.types |= other.types
        self.of |= other.of
        self._seen(other.first)
        self._seen(other.last)
        self.free = self.free or other.free
        for mine, others in ((self.sub, other.sub), (self.items, other.items)):
            for name, sketch in others.items():
                mine.setdefault(name, Sketch()).merge(sketch)
        if self.free:
            self.sub, self.items = {}, {}

    def entry(self, known: tuple[JsonType, ...] = ()) -> Entry:
        """Return it as the catalogue would have it; optional, for it may be missing elsewhere."""
        made: Entry = {"types": ordered({*self.types, *known}), "optional": True}
        if self.first:
            made["versions"] = [self.first, self.last]
        if self.of:
            made["of"] = ordered(self.of)
        for part, fields in (("sub", self.sub), ("items", self.items)):
            if fields:
                made[part] = fields_of(fields)
        return made


def fields_of(sketches: dict[str, Sketch]) -> Entry:
    """Return several fields, sorted as the catalogue is."""
    return {name: sketches[name].entry() for name in sorted(sketches)}


def ordered(types: set[JsonType]) -> list[JsonType]:
    """Return types in the catalogue's order."""
    return [kind for kind in _ORDER if kind in types]
