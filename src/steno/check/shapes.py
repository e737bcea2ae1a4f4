"""The catalogue laid out for judging: which names an object may have, and which types they may be.

A shape belongs to one place of the catalogue. Objects with the same names in the same order share
a plan, made once, so that judging the next one is a look at the type of each value.
"""

from types import NoneType
from typing import Any, Final, TypeAlias

from steno.format.catalogue import (
    Catalogue,
    Field,
    Fields,
    JsonType,
    KindEntry,
    ToolEntry,
    version_key,
)

__all__ = ["Place", "Plan", "Shape", "Shapes", "Slot"]

Place: TypeAlias = tuple[str, ...]
"""Where something stands in `catalogue.json`, key by key."""

_MCP: Final = "mcp__"
_ANY_MCP: Final = "mcp__*"
_MOST_PLANS: Final = 512
_PYTHON: Final[dict[JsonType, tuple[type, ...]]] = {
    "str": (str,),
    "num": (int, float),
    "bool": (bool,),
    "obj": (dict,),
    "arr": (list,),
    "null": (NoneType,),
}
_EVERY: Final = frozenset(kind for kinds in _PYTHON.values() for kind in kinds)


class Slot:
    """One field of a shape; `field` is None for a name that the catalogue does not have."""

    __slots__ = (
        "elements",
        "enum",
        "field",
        "inner",
        "items",
        "name",
        "owner",
        "path",
        "place",
        "plain",
        "types",
        "values",
        "words",
    )

    def __init__(self, owner: str, path: str, name: str, place: Place) -> None:
        self.owner = owner
        self.path = f"{path}.{name}" if path else name
        self.name = name
        self.place = place
        self.field: Field | None = None
        self.plain: frozenset[type] = frozenset()
        self.types: frozenset[type] = frozenset()
        self.inner: Shape | None = None
        self.items: Shape | None = None
        self.values: Shape | None = None
        self.elements: frozenset[type] = frozenset()
        self.enum = ""
        self.words: frozenset[str] = frozenset()


class Plan:
    """What is to be looked at in objects with the same names in the same order."""

    __slots__ = ("missing", "slots")

    def __init__(self, slots: tuple[Slot, ...]) -> None:
        self.slots = slots
        self.missing: dict[str, tuple[Slot, ...]] = {}


class Shape:
    """The fields that an object at one place of the catalogue has."""

    __slots__ = ("_newest", "owner", "path", "place", "plans", "slots")

    def __init__(self, owner: str, path: str, place: Place, newest: str) -> None:
        self.owner = owner
        self.path = path
        self.place = place
        self.slots: dict[str, Slot] = {}
        self.plans: dict[tuple[str, ...], Plan] = {}
        self._newest = version_key(newest)

    def plan(self, names: tuple[str, ...]) -> Plan:
        """Return the plan for objects with these names."""
        found = self.plans.get(names)
        if found is None:
            found = Plan(tuple(self.slots.get(name) or self._unknown(name) for name in names))
            if len(self.plans) < _MOST_PLANS:
                self.plans[names] = found
        return found

    def _unknown(self, name: str) -> Slot:
        return Slot(self.owner, self.path, name, (*self.place, name))

    def missing(self, plan: Plan, version: str) -> tuple[Slot, ...]:
        """Return what a client of that version always wrote and these objects lack."""
        names = {slot.name for slot in plan.slots}
        key = version_key(version)
        lacking = tuple(
            slot
            for slot in self.slots.values()
            if slot.name not in names and slot.field and self._due(slot.field, key)
        )
        plan.missing[version] = lacking
        return lacking

    def _due(self, field: Field, version: tuple[int, ...]) -> bool:
        """Say whether a field is always there; one seen up to the newest client is there since."""
        if field.optional or not field.versions or not version:
            return False
        first, last = version_key(field.versions[0]), version_key(field.versions[-1])
        return first <= version and (version <= last or last >= self._newest)


class Shapes:
    """Every shape of a catalogue, each made when it is first wanted."""

    def __init__(self, facts: Catalogue) -> None:
        self.facts = facts
        self._newest = facts.newest
        self._kinds: dict[tuple[str, str], Shape | None] = {}
        self._parts: dict[Place, Shape | None] = {}
        self.usage = self._shape("usage", "", ("usage",), facts.usage, "usage.")

    def made(self) -> list[Shape]:
        """Return every shape that was wanted so far, those inside others included."""
        found = [self.usage, *self._kinds.values(), *self._parts.values()]
        waiting = [shape for shape in found if shape is not None]
        every: list[Shape] = []
        while waiting:
            shape = waiting.pop()
            every.append(shape)
            waiting += [
                inner
                for slot in shape.slots.values()
                for inner in (slot.inner, slot.items, slot.values)
                if inner is not None and inner is not self.usage
            ]
        return every

    def kind(self, name: str, dialect: Any) -> Shape | None:
        """Return the shape of a kind of record, its envelope included."""
        key = (name, dialect)
        if key not in self._kinds:
            entry = self.facts.kind(name, dialect)
            self._kinds[key] = None if entry is None else self._record(entry)
        return self._kinds[key]

    def block(self, name: str) -> Shape | None:
        """Return the shape of a kind of content block."""
        place = ("blocks", name, "fields")
        if place not in self._parts:
            entry = self.facts.block(name)
            made = None if entry is None else self._shape(f"block {name}", "", place, entry.fields)
            self._parts[place] = made
        return self._parts[place]

    def tool(self, name: str, entry: ToolEntry, part: str) -> Shape | None:
        """Return the shape of a tool's `input` or `result`; None when nobody recorded any."""
        place = ("tools", _ANY_MCP if name.startswith(_MCP) else name, part)
        if place not in self._parts:
            name = place[1]
            fields = entry.input if part == "input" else entry.result
            made = self._shape(f"tool {name}", part, place, fields, f"{name}.") if fields else None
            self._parts[place] = made
        return self._parts[place]

    def _record(self, kind: KindEntry) -> Shape:
        own = kind.dialect == "claude"
        base: Place = () if own else ("dialects", kind.dialect)
        owner = kind.name if own else f"{kind.name} ({kind.dialect})"
        kind_type = kind.name.partition("/")[0]
        prefix = f"{kind_type}." if own else f"{kind.dialect}.{kind_type}."
        place = (*base, "records", kind.name, "fields")
        shape = self._shape(owner, "", place, kind.fields, prefix, shorter=True)
        if kind.family == "graph":
            around = (*base, "envelope")
            for name, field in self.facts.envelopes[kind.dialect].items():
                if name not in shape.slots:
                    slot = Slot(owner, "", name, (*around, name))
                    shape.slots[name] = self._filled(slot, field, prefix, shorter=True)
        return shape

    def _shape(
        self,
        owner: str,
        path: str,
        place: Place,
        fields: Fields,
        prefix: str = "",
        *,
        shorter: bool = False,
    ) -> Shape:
        shape = Shape(owner, path, place, self._newest)
        for name, field in fields.items():
            slot = Slot(owner, path, name, (*place, name))
            shape.slots[name] = self._filled(slot, field, prefix, shorter=shorter)
        return shape

    def _filled(self, slot: Slot, field: Field, prefix: str, *, shorter: bool) -> Slot:
        slot.field = field
        slot.types = frozenset(kind for name in field.types for kind in _PYTHON[name]) or _EVERY
        looked_into: set[type] = set()
        if str in slot.types:
            self._list_words(slot, prefix, shorter=shorter)
            looked_into |= {str} if slot.enum else set()
        for part, marks in (("sub", ""), ("items", "[]"), ("values", "{}")):
            fields: Fields = getattr(field, part)
            if fields:
                inner = self._shape(
                    slot.owner,
                    slot.path + marks,
                    (*slot.place, part),
                    fields,
                    prefix,
                    shorter=shorter,
                )
                setattr(slot, "inner" if part == "sub" else part, inner)
                looked_into.add(list if part == "items" else dict)
        if field.ref == "usage":
            slot.inner = self.usage
        of: tuple[JsonType, ...] = field.of or (("obj",) if field.items else ())
        slot.elements = frozenset(kind for name in of for kind in _PYTHON[name])
        looked_into |= {list} if slot.elements else set()
        looked_into |= {dict, list, str} if field.ref else set()
        slot.plain = slot.types - looked_into
        return slot

    def _list_words(self, slot: Slot, prefix: str, *, shorter: bool) -> None:
        """Find the listed values of a field: its whole path, or in a record also the end of it."""
        plain = slot.path.replace("[]", "").replace("{}", "")
        names = [prefix + plain] if prefix else []
        while shorter and plain:
            names.append(plain)
            plain = plain.partition(".")[2]
        for name in names:
            if name in self.facts.enums:
                slot.enum, slot.words = name, frozenset(self.facts.enums[name])
                return
