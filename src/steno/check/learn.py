"""What the catalogue would have to say so that nothing drifts: a JSON merge patch (RFC 7386).

The patch holds names, types and versions, never what a session says. Whatever it adds is optional:
that a field is always there can be said once many sessions were seen, by taking the mark away.
What has no plain name is not learned, for it may be a map with free keys.
"""

from typing import Any, Final, cast

from steno.check.drift import Observer
from steno.check.observed import Code, Key, Tally
from steno.check.shapes import Place, Slot
from steno.check.sketch import Entry, Sketch, fields_of, ordered
from steno.format.catalogue import JsonType, version_key
from steno.safe.redact import is_plain_name

__all__ = ["merged", "propose"]

_TOP: Final = 4  # records, kind, fields, name
_ANY_MCP: Final = "mcp__*"


def merged(document: Any, patch: Any) -> Any:
    """Return a document with a merge patch applied; neither of the two is changed.

    >>> merged({"a": 1, "b": {"c": 2}}, {"a": None, "b": {"d": [3]}})
    {'b': {'c': 2, 'd': [3]}}
    """
    if not isinstance(patch, dict):
        return patch
    made = dict(cast("dict[str, Any]", document)) if isinstance(document, dict) else {}
    for name, value in cast("dict[str, Any]", patch).items():
        if value is None:
            made.pop(name, None)
        else:
            made[name] = merged(made.get(name), value)
    return made


def propose(observer: Observer) -> Entry:
    """Return the merge patch on the observer's catalogue that makes it silent on what can be learned."""
    return _Learner(observer).patch


class _Learner:
    def __init__(self, observer: Observer) -> None:
        self.patch: Entry = {}
        self._observer = observer
        self._facts = observer.facts
        self._newest = version_key(self._facts.newest)
        self._around: dict[str, Sketch] = {}
        known = self._facts.client_versions.known
        self._new = sorted(observer.versions.difference(known), key=version_key)
        if self._new:
            every = sorted({*known, *self._new}, key=version_key)
            self._at(("client_versions",))["known"] = every
            self._stretch()
        self._learn_envelope()
        for key, tally in observer.tallies.items():
            if all(is_plain_name(part) or part == _ANY_MCP for part in _parts(tally.place)):
                self._learn(key, tally)

    def _at(self, place: Place) -> Entry:
        here = self.patch
        for name in place:
            here = here.setdefault(name, {})
        return here

    def _learn(self, key: Key, tally: Tally) -> None:
        code: Code = key[0]
        match code:
            case "UNKNOWN_TYPE":
                self._at(tally.place).update(self._kind(tally))
            case "NEW_BLOCK":
                fields = fields_of(tally.sketch.sub)
                self._at(tally.place).update(seen=_seen(tally), fields=fields)
            case "NEW_TOOL":
                self._at(tally.place).update(_tool(tally))
            case "NEW_FIELD":
                if not self._is_around(tally):
                    self._at(tally.place).update(tally.sketch.entry())
            case "TYPE_MISMATCH":
                self._mismatch(tally)
            case "MISSING_FIELD" if tally.place != ("envelope", "type"):
                self._at(tally.place)["optional"] = True
            case "NEW_VALUE":
                self._value(tally.enum, key[3])
            case "MISSING_FIELD" | "PUBLISHED_FORM":
                # No client writes such a form of a description.
                pass

    def _value(self, enum: str, value: str) -> None:
        if not is_plain_name(value):
            return
        lists = self._at(("enums",))
        values: list[str] = lists.get(enum) or list(self._facts.enums[enum])
        lists[enum] = [*values, value] if value not in values else values

    def _learn_envelope(self) -> None:
        """Gather new fields that stand on records of several types: those belong to all."""
        types: dict[str, set[str]] = {}
        for (code, kind, _, _), tally in self._observer.tallies.items():
            if code == "NEW_FIELD" and _is_top(tally.place) and self._is_graph(kind):
                name = tally.place[-1]
                types.setdefault(name, set()).add(kind.partition("/")[0])
                self._around.setdefault(name, Sketch()).merge(tally.sketch)
        self._around = {
            name: sketch
            for name, sketch in self._around.items()
            if len(types[name]) > 1 and is_plain_name(name)
        }
        for name, sketch in sorted(self._around.items()):
            self._at(("envelope",))[name] = sketch.entry()

    def _is_graph(self, kind: str) -> bool:
        entry = self._facts.kind(kind, "claude")
        return entry is not None and entry.family == "graph"

    def _is_around(self, tally: Tally) -> bool:
        place = tally.place
        return _is_top(place) and place[-1] in self._around and self._is_graph(place[1])

    def _kind(self, tally: Tally) -> Entry:
        fields = dict(tally.sketch.sub)
        graph = "uuid" in fields and "parentUuid" in fields
        if graph and tally.place[0] == "records":
            around = self._facts.envelopes["claude"]
            types: dict[str, set[JsonType]] = {name: set(around[name].types) for name in around}
            types.update({name: sketch.types for name, sketch in self._around.items()})
            fields = {
                name: sketch
                for name, sketch in fields.items()
                if name not in types or not sketch.types <= types[name]
            }
        return {
            "family": "graph" if graph else "side",
            "seen": _seen(tally),
            "fields": fields_of(fields),
        }

    def _mismatch(self, tally: Tally) -> None:
        *above, last = tally.place
        if last in ("of", "result_types"):
            here, name = self._at(tuple(above)), last
        else:
            here, name = self._at(tally.place), "types"
            made = tally.sketch.entry()
            here.update({part: made[part] for part in ("sub", "items") if part in made})
        met: list[JsonType] = here.get(name, [])
        here[name] = ordered({*met, *tally.known, *tally.sketch.types})

    def _stretch(self) -> None:
        """Say of everything that clients newer than the catalogue wrote that it is still there."""
        for shape in self._observer.shapes.made():
            top: set[str] = set()
            for plan in shape.plans.values():
                newer = [v for v in plan.missing if version_key(v) > self._newest]
                top.update(newer)
                last = max(newer, key=version_key, default="")
                for slot in plan.slots if last else ():
                    self._stretch_field(slot, last)
            if top and shape.place[-1:] == ("fields",) and shape.place[0] != "dialects":
                self._stretch_seen(shape.place[:2], top)

    def _stretch_field(self, slot: Slot, last: str) -> None:
        field = slot.field
        if field is None or not field.versions:
            return
        here = self._at(slot.place)
        before = here.get("versions", field.versions)
        if version_key(last) > version_key(before[-1]):
            here["versions"] = [field.versions[0], last]
        if not field.optional and version_key(field.versions[-1]) < self._newest:
            # It was gone for a while, so it is not always there.
            here["optional"] = True

    def _stretch_seen(self, place: Place, versions: set[str]) -> None:
        section, name = place
        entry = self._facts.kind(name, "claude") if section == "records" else None
        entry = entry or self._facts.block(name)
        if entry is not None:
            self._at(place)["seen"] = sorted({*entry.seen, *versions}, key=version_key)


def _is_top(place: Place) -> bool:
    return len(place) == _TOP and place[0] == "records"


def _parts(place: Place) -> list[str]:
    return [part for name in place for part in name.split("/", 1)]


def _seen(tally: Tally) -> list[str]:
    return sorted((v for v in tally.versions if version_key(v)), key=version_key)


def _tool(tally: Tally) -> Entry:
    made: Entry = {
        "seen": _seen(tally),
        "input": fields_of(tally.sketch.sub),
        "result": fields_of(tally.result.sub),
    }
    if tally.result.types:
        made["result_types"] = ordered(tally.result.types)
    return made
