"""Data of drift detection: catalogue shapes, sketches of unknown values, tallies and drifts.

A shape describes one path of the catalogue. Objects with the same names in the same order share a cached plan, so that
checking another object only compares types. A sketch describes an unknown field as the catalogue would: its types,
inner fields and versions. Sketches keep names and types but no values, and their size is bounded: an object with too
many names, or with names that are not plain identifiers, counts as a map with free-form keys.
"""

from collections.abc import Iterable
from types import NoneType
from typing import Any, Final, Literal, TypeAlias, cast

import msgspec

from steno.format.catalogue import (
    ANY_MCP,
    MCP_PREFIX,
    Catalogue,
    Field,
    Fields,
    JsonType,
    KindEntry,
    ToolEntry,
    json_type,
    version_key,
)
from steno.format.records import PUBLISHED_DESCRIPTIONS_PAGE
from steno.sanitize.value_shape import is_plain_name

CataloguePath: TypeAlias = tuple[str, ...]
"""Path in `catalogue.json`, key by key."""

_MAX_PLANS: Final = 512
_PYTHON_TYPES: Final[dict[JsonType, tuple[type, ...]]] = {
    "str": (str,),
    "num": (int, float),
    "bool": (bool,),
    "obj": (dict,),
    "arr": (list,),
    "null": (NoneType,),
}
_ALL_TYPES: Final = frozenset(kind for kinds in _PYTHON_TYPES.values() for kind in kinds)


class Slot:
    """One field of a shape; `field` is None for a name that is not in the catalogue."""

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

    def __init__(self, owner: str, path: str, name: str, catalogue_path: CataloguePath) -> None:
        self.owner = owner
        self.path = f"{path}.{name}" if path else name
        self.name = name
        self.place = catalogue_path
        self.field: Field | None = None
        self.plain: frozenset[type] = frozenset()
        self.types: frozenset[type] = frozenset()
        self.inner: CatalogueShape | None = None
        self.items: CatalogueShape | None = None
        self.values: CatalogueShape | None = None
        self.elements: frozenset[type] = frozenset()
        self.enum = ""
        self.words: frozenset[str] = frozenset()


class ShapePlan:
    """Slots to compare for objects with the same field names in the same order."""

    __slots__ = ("missing", "slots")

    def __init__(self, slots: tuple[Slot, ...]) -> None:
        self.slots = slots
        self.missing: dict[str, tuple[Slot, ...]] = {}


class CatalogueShape:
    """Fields of an object at one catalogue path."""

    __slots__ = ("_newest", "owner", "path", "place", "plans", "slots")

    def __init__(self, owner: str, path: str, catalogue_path: CataloguePath, newest: str) -> None:
        self.owner = owner
        self.path = path
        self.place = catalogue_path
        self.slots: dict[str, Slot] = {}
        self.plans: dict[tuple[str, ...], ShapePlan] = {}
        self._newest = version_key(newest)

    def plan(self, names: tuple[str, ...]) -> ShapePlan:
        """Return the plan for objects with these field names."""
        plan = self.plans.get(names)
        if plan is None:
            plan = ShapePlan(tuple(self.slots.get(name) or self._unknown(name) for name in names))
            if len(self.plans) < _MAX_PLANS:
                self.plans[names] = plan
        return plan

    def _unknown(self, name: str) -> Slot:
        return Slot(self.owner, self.path, name, (*self.place, name))

    def missing(self, plan: ShapePlan, version: str) -> tuple[Slot, ...]:
        """Return the required fields of a client version that these objects lack."""
        names = {slot.name for slot in plan.slots}
        key = version_key(version)
        lacking = tuple(
            slot
            for slot in self.slots.values()
            if slot.name not in names and slot.field and self._is_required(slot.field, key)
        )
        plan.missing[version] = lacking
        return lacking

    def _is_required(self, field: Field, version: tuple[int, ...]) -> bool:
        """Return whether a field is required in a version; a field seen in the newest one stays required."""
        if field.optional or not field.versions or not version:
            return False
        first, last = version_key(field.versions[0]), version_key(field.versions[-1])
        return first <= version and (version <= last or last >= self._newest)


class CatalogueShapes:
    """All shapes of a catalogue, created on demand."""

    def __init__(self, facts: Catalogue) -> None:
        self.facts = facts
        self._newest = facts.newest
        self._kinds: dict[tuple[str, str], CatalogueShape | None] = {}
        self._parts: dict[CataloguePath, CatalogueShape | None] = {}
        self.usage = self._shape("usage", "", ("usage",), facts.usage, "usage.")

    def created(self) -> list[CatalogueShape]:
        """Return all shapes created so far, including nested ones."""
        shapes = [self.usage, *self._kinds.values(), *self._parts.values()]
        queue = [shape for shape in shapes if shape is not None]
        all_shapes: list[CatalogueShape] = []
        while queue:
            shape = queue.pop()
            all_shapes.append(shape)
            queue += [
                inner
                for slot in shape.slots.values()
                for inner in (slot.inner, slot.items, slot.values)
                if inner is not None and inner is not self.usage
            ]
        return all_shapes

    def kind(self, name: str, dialect: Any) -> CatalogueShape | None:
        """Return the shape of a record kind, including its envelope."""
        key = (name, dialect)
        if key not in self._kinds:
            entry = self.facts.kind(name, dialect)
            self._kinds[key] = None if entry is None else self._record(entry)
        return self._kinds[key]

    def block(self, name: str) -> CatalogueShape | None:
        """Return the shape of a content block type."""
        path = ("blocks", name, "fields")
        if path not in self._parts:
            entry = self.facts.block(name)
            shape = None if entry is None else self._shape(f"block {name}", "", path, entry.fields)
            self._parts[path] = shape
        return self._parts[path]

    def tool(self, name: str, entry: ToolEntry, part: str) -> CatalogueShape | None:
        """Return the shape of a tool's `input` or `result`, or None if the catalogue has none."""
        path = ("tools", ANY_MCP if name.startswith(MCP_PREFIX) else name, part)
        if path not in self._parts:
            name = path[1]
            fields = entry.input if part == "input" else entry.result
            shape = self._shape(f"tool {name}", part, path, fields, f"{name}.") if fields else None
            self._parts[path] = shape
        return self._parts[path]

    def _record(self, kind: KindEntry) -> CatalogueShape:
        is_client = kind.dialect == "claude"
        base: CataloguePath = () if is_client else ("dialects", kind.dialect)
        owner = kind.name if is_client else f"{kind.name} ({kind.dialect})"
        kind_type = kind.name.partition("/")[0]
        prefix = f"{kind_type}." if is_client else f"{kind.dialect}.{kind_type}."
        path = (*base, "records", kind.name, "fields")
        shape = self._shape(owner, "", path, kind.fields, prefix, shorter=True)
        if kind.family == "graph":
            envelope_path = (*base, "envelope")
            for name, field in self.facts.envelopes[kind.dialect].items():
                if name not in shape.slots:
                    slot = Slot(owner, "", name, (*envelope_path, name))
                    shape.slots[name] = self._fill_slot(slot, field, prefix, shorter=True)
        return shape

    def _shape(
        self,
        owner: str,
        path: str,
        catalogue_path: CataloguePath,
        fields: Fields,
        prefix: str = "",
        *,
        shorter: bool = False,
    ) -> CatalogueShape:
        shape = CatalogueShape(owner, path, catalogue_path, self._newest)
        for name, field in fields.items():
            slot = Slot(owner, path, name, (*catalogue_path, name))
            shape.slots[name] = self._fill_slot(slot, field, prefix, shorter=shorter)
        return shape

    def _fill_slot(self, slot: Slot, field: Field, prefix: str, *, shorter: bool) -> Slot:
        slot.field = field
        slot.types = frozenset(kind for name in field.types for kind in _PYTHON_TYPES[name]) or _ALL_TYPES
        looked_into: set[type] = set()
        if str in slot.types:
            self._set_enum_values(slot, prefix, shorter=shorter)
            looked_into |= {str} if slot.enum else set()
        for part, marks in (("sub", ""), ("items", "[]"), ("values", "{}")):
            fields: Fields = getattr(field, part)
            if fields:
                inner = self._shape(slot.owner, slot.path + marks, (*slot.place, part), fields, prefix, shorter=shorter)
                setattr(slot, "inner" if part == "sub" else part, inner)
                looked_into.add(list if part == "items" else dict)
        if field.ref == "usage":
            slot.inner = self.usage
        of: tuple[JsonType, ...] = field.of or (("obj",) if field.items else ())
        slot.elements = frozenset(kind for name in of for kind in _PYTHON_TYPES[name])
        looked_into |= {list} if slot.elements else set()
        looked_into |= {dict, list, str} if field.ref else set()
        slot.plain = slot.types - looked_into
        return slot

    def _set_enum_values(self, slot: Slot, prefix: str, *, shorter: bool) -> None:
        """Find the enum of a field by its full path or, in records, by a suffix of the path."""
        plain = slot.path.replace("[]", "").replace("{}", "")
        names = [prefix + plain] if prefix else []
        while shorter and plain:
            names.append(plain)
            plain = plain.partition(".")[2]
        for name in names:
            if name in self.facts.enums:
                slot.enum, slot.words = name, frozenset(self.facts.enums[name])
                return


CatalogueEntry: TypeAlias = dict[str, Any]
"""A catalogue entry as in `catalogue.json`."""

_MAX_DEPTH: Final = 6
_MAX_NAMES: Final = 48
_TYPE_ORDER: Final[tuple[JsonType, ...]] = ("str", "num", "bool", "obj", "arr", "null")


class Sketch:
    """Description of a value from one or more observations."""

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
        """Whether names always belong to the format, so that the object is never a map with free-form keys."""

    def add(self, value: Any, version: str, depth: int = 0) -> None:
        """Add one observed value."""
        kind = json_type(value)
        self.types.add(kind)
        self._extend_versions(version)
        if depth >= _MAX_DEPTH:
            return
        if kind == "obj":
            self._add_object(self.sub, cast("dict[str, Any]", value), version, depth)
        elif kind == "arr":
            for item in cast("list[Any]", value):
                self.of.add(json_type(item))
                if isinstance(item, dict):
                    self._add_object(self.items, cast("dict[str, Any]", item), version, depth)

    def _extend_versions(self, version: str) -> None:
        if version and (not self.first or version_key(version) < version_key(self.first)):
            self.first = version
        if version and (not self.last or version_key(version) > version_key(self.last)):
            self.last = version

    def _add_object(self, into: dict[str, "Sketch"], value: dict[str, Any], version: str, depth: int) -> None:
        if self.free:
            return
        for name, item in value.items():
            sketch = into.get(name)
            if sketch is None:
                is_field = len(into) < _MAX_NAMES and is_plain_name(name)
                if self.named and not is_field:
                    continue
                if not is_field:
                    self.free = True
                    self.sub, self.items = {}, {}
                    return
                sketch = into[name] = Sketch()
            sketch.add(item, version, depth + 1)

    def merge(self, other: "Sketch") -> None:
        """Merge another sketch into this one."""
        self.types |= other.types
        self.of |= other.of
        self._extend_versions(other.first)
        self._extend_versions(other.last)
        self.free = self.free or other.free
        for own, added in ((self.sub, other.sub), (self.items, other.items)):
            for name, sketch in added.items():
                own.setdefault(name, Sketch()).merge(sketch)
        if self.free:
            self.sub, self.items = {}, {}

    def entry(self, known: tuple[JsonType, ...] = ()) -> CatalogueEntry:
        """Return the catalogue entry, marked optional because other records may lack the field."""
        entry: CatalogueEntry = {"types": sort_types({*self.types, *known}), "optional": True}
        if self.first:
            entry["versions"] = [self.first, self.last]
        if self.of:
            entry["of"] = sort_types(self.of)
        for part, fields in (("sub", self.sub), ("items", self.items)):
            if fields:
                entry[part] = sketch_fields(fields)
        return entry


def sketch_fields(sketches: dict[str, Sketch]) -> CatalogueEntry:
    """Return the entries of several fields, sorted as in the catalogue."""
    return {name: sketches[name].entry() for name in sorted(sketches)}


def sort_types(types: set[JsonType]) -> list[JsonType]:
    """Return types in catalogue order."""
    return [kind for kind in _TYPE_ORDER if kind in types]


Code: TypeAlias = Literal[
    "UNKNOWN_TYPE",
    "PUBLISHED_FORM",
    "NEW_FIELD",
    "TYPE_MISMATCH",
    "MISSING_FIELD",
    "NEW_BLOCK",
    "NEW_TOOL",
    "NEW_VALUE",
]
CODES: Final[tuple[Code, ...]] = (
    "UNKNOWN_TYPE",
    "PUBLISHED_FORM",
    "NEW_BLOCK",
    "NEW_TOOL",
    "NEW_FIELD",
    "NEW_VALUE",
    "TYPE_MISMATCH",
    "MISSING_FIELD",
)
"""Drift codes, in the order of reports."""

Key: TypeAlias = tuple[Code, str, str, str]
"""Code, kind, path and name of an observation."""


class Tally:
    """One kind of observation: count, versions and the first sample."""

    __slots__ = ("count", "enum", "known", "place", "result", "sample", "sketch", "versions")

    def __init__(self, path: CataloguePath, known: tuple[JsonType, ...], sample: str) -> None:
        self.place = path
        self.known = known
        self.sample = sample
        self.count = 0
        self.versions: dict[str, int] = {}
        self.sketch = Sketch()
        self.result = Sketch()
        """Sketch of the results of an unknown tool."""
        self.enum = ""
        """Enum that lacks a new value."""


class Drift(msgspec.Struct, frozen=True):
    """One difference between the files and the catalogue.

    `kind` is a record kind, `block …`, `tool …` or `usage`; `path` is the field in it; `name` is the new value. `types`
    are the observed JSON types, `known` the types in the catalogue.
    """

    code: Code
    kind: str
    path: str
    name: str
    count: int
    versions: dict[str, int]
    types: tuple[str, ...]
    known: tuple[str, ...]
    sample: str
    docs: str | None = None
    """URL of the documentation page, if any."""


def sort_drifts(drifts: Iterable[Drift]) -> list[Drift]:
    """Sort drifts by code, then by descending count."""
    return sorted(drifts, key=lambda drift: (CODES.index(drift.code), -drift.count, drift.kind, drift.path, drift.name))


def make_drift(key: Key, tally: Tally) -> Drift:
    """Return the drift for a tally."""
    code, kind, path, name = key
    return Drift(
        code=code,
        kind=kind,
        path=path,
        name=name,
        count=tally.count,
        versions={v: tally.versions[v] for v in sorted(tally.versions, key=version_key)},
        types=tuple(tally.sketch.entry()["types"]) if code != "MISSING_FIELD" else (),
        known=tally.known,
        sample=tally.sample,
        docs=PUBLISHED_DESCRIPTIONS_PAGE if code == "PUBLISHED_FORM" else None,
    )
