"""Compare session files with the catalogue per client version, and propose a catalogue patch.

    observer = Observer(catalogue())
    for file in files:
        for record in file: observer.feed(record)
        observer.end_file()
    observer.drifts()

Session content is not kept, only format names, types, counts and masked samples. Names that are not plain identifiers
are masked as well. Memory is bounded: after `MAX_OBSERVATIONS` distinct observations, new ones are only counted in
`left_out`.

The patch is a JSON merge patch (RFC 7386) with names, types and versions only. Every added field is optional; mark a
field as required by hand once enough sessions confirm it. Names that are not plain identifiers are left out, because
they may be free-form keys.
"""

import re
from typing import Any, Final, TypeAlias, cast

import msgspec

from steno.check.drift_model import (
    CatalogueEntry,
    CataloguePath,
    CatalogueShape,
    CatalogueShapes,
    Code,
    Drift,
    Key,
    Sketch,
    Slot,
    Tally,
    make_drift,
    sketch_fields,
    sort_drifts,
    sort_types,
)
from steno.format.catalogue import ANY_MCP, MCP_PREFIX, Catalogue, JsonType, ToolEntry, json_type, version_key
from steno.format.lenient_json import DECODE_ERRORS, as_list, as_object, decode_lenient
from steno.format.records import COMPACTION_OPERATIONS, PUBLISHED_FORMS, Dialect, Record
from steno.sanitize.value_shape import is_plain_name, is_plain_value, mask_content, plain_name, shape_of

MAX_OBSERVATIONS: Final = 4096
_MAX_NAMES: Final = 64
_MAX_VERSIONS: Final = 64
_MAX_CALLS: Final = 65_536
_MAX_PENDING: Final = 256
_MAX_WAITING: Final = 64
_MAX_WAITING_BYTES: Final = 1 << 20
_MAX_SAMPLE: Final = 120
_ANY_NAME: Final = "*"
_UNNAMED: Final = "untyped"
_UNKNOWN: Final = "unknown"
_NAMED_CODES: Final = frozenset(("UNKNOWN_TYPE", "NEW_BLOCK"))
_VERSION: Final = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6}){0,4}(?:-[a-z]{1,8}(?:\.[0-9]{1,8}){0,2})?")
_STRICT: Final = msgspec.json.Decoder()


_PendingDrift: TypeAlias = tuple[str, Code, tuple[str, str], CataloguePath, Any, tuple[JsonType, ...], str, str]
"""Observation about an unanswered tool call: the version and the arguments of `_add_observation`."""


class Observer:
    """Compares records with a catalogue, file by file."""

    def __init__(self, facts: Catalogue, since: str = "") -> None:
        self.facts = facts
        self.shapes = CatalogueShapes(facts)
        self.tallies: dict[Key, Tally] = {}
        self.left_out = 0
        self.records = 0
        self.versions: set[str] = set()
        self._since = version_key(since)
        self._names: dict[str, set[str]] = {}
        self._recorded_version: str | None = None
        self._version = ""
        self._waiting_records: list[Record] = []
        self._waiting_bytes = 0
        self._calls: dict[str, str] = {}
        self._current_call = ""
        self._pending: dict[str, list[_PendingDrift]] = {}
        self._fields: dict[str, Any] = {}
        self._known_names: frozenset[str] | None = None

    def feed(self, record: Record) -> None:
        """Compare the next record of a file with the catalogue.

        A record without a version is counted for the version of the record before it. Records at the start of a file
        wait for the first record that has a version.
        """
        version = record.envelope.version
        if version and version != self._recorded_version:
            self._recorded_version = version
            self._version = _plain_version(version)
            self._compare_waiting()
        if self._recorded_version is None and len(self._waiting_records) < _MAX_WAITING:
            self._waiting_bytes += record.length
            if self._waiting_bytes < _MAX_WAITING_BYTES:
                self._waiting_records.append(record)
                return
        if self._waiting_records:
            self._compare_waiting()
        self._compare(record)

    def end_file(self) -> None:
        """End the current file."""
        self._compare_waiting()
        for pending in self._pending.values():
            self._count_pending(pending)
        self._pending.clear()
        self._calls.clear()
        self._recorded_version, self._version = None, ""

    def drifts(self) -> list[Drift]:
        """Return the observed drifts by code, then by descending count."""
        return sort_drifts(make_drift(key, tally) for key, tally in self.tallies.items())

    def _compare_waiting(self) -> None:
        records, self._waiting_records, self._waiting_bytes = self._waiting_records, [], 0
        for record in records:
            self._compare(record)

    def _compare(self, record: Record) -> None:
        if self._since and version_key(self._version) < self._since:
            return
        self.records += 1
        if self._version and len(self.versions) < MAX_OBSERVATIONS:
            self.versions.add(self._version)
        try:
            fields = _STRICT.decode(record.line)
        except DECODE_ERRORS:
            fields = decode_lenient(record.line)
        if not isinstance(fields, dict):
            return
        self._fields = cast("dict[str, Any]", fields)
        if self._pending:
            self._settle_calls()
        name, dialect = record.kind, record.dialect
        if dialect != "claude" and record.envelope.cwd is not None:
            # No published dialect has a working directory, so this is a modified Claude Code record.
            dialect = "claude"
        shape = self.shapes.kind(name, dialect)
        operation = self._fields.get("message") if name == "compact_system" else None
        if isinstance(operation, str) and operation not in COMPACTION_OPERATIONS:
            self._unknown(f"{name}/{operation}", dialect)
        elif shape is not None:
            if name == "compact_system" and operation is None:
                # The dialect requires this field, so no catalogue change follows.
                self._add_observation("MISSING_FIELD", (name, "message"), (*shape.place, _ANY_NAME), None)
            self._compare_object(shape, self._fields)
        else:
            self._unknown(name, dialect)

    def _unknown(self, name: str, dialect: Dialect) -> None:
        if name == _UNNAMED:
            self._add_observation("MISSING_FIELD", (_UNNAMED, "type"), ("envelope", "type"), None)
            return
        if dialect == "claude" and name in PUBLISHED_FORMS:
            self._add_observation("PUBLISHED_FORM", (name, ""), ("records", name), name)
            return
        shown = "/".join(plain_name(part) for part in name.split("/", 1))
        base = () if dialect == "claude" else ("dialects", dialect)
        self._add_observation("UNKNOWN_TYPE", (shown, ""), (*base, "records", shown), self._fields)

    def _compare_object(self, shape: CatalogueShape, value: dict[str, Any]) -> None:
        names = tuple(value)
        plan = shape.plans.get(names) or shape.plan(names)
        version = self._version
        missing = plan.missing.get(version)
        if missing is None:
            missing = shape.missing(plan, version)
        for slot in missing:
            self._add_observation("MISSING_FIELD", (slot.owner, slot.path), slot.place, None)
        for slot, item in zip(plan.slots, value.values(), strict=False):
            if type(item) not in slot.plain:
                self._compare_value(shape, slot, item)

    def _compare_value(self, shape: CatalogueShape, slot: Slot, value: Any) -> None:
        if slot.field is None:
            self._new_field(shape, slot, value)
        elif type(value) not in slot.types:
            self._mismatch(slot, value)
        elif slot.field.ref == "tools":
            self._compare_tool_result(value)
        elif isinstance(value, str):
            if slot.enum and value not in slot.words:
                self._new_value(slot, value)
        elif isinstance(value, dict):
            self._compare_inner(slot, cast("dict[str, Any]", value))
        elif slot.field.ref == "blocks":
            self._compare_blocks(slot, value)
        else:
            self._compare_list(slot, value)

    def _compare_inner(self, slot: Slot, value: dict[str, Any]) -> None:
        if slot.inner is not None:
            self._compare_object(slot.inner, value)
        elif slot.values is not None:
            for item in value.values():
                if isinstance(item, dict):
                    self._compare_object(slot.values, cast("dict[str, Any]", item))
                else:
                    # Keys of such values are free-form, so they are not added to the catalogue.
                    key, path = (slot.owner, f"{slot.path}.{_ANY_NAME}"), (*slot.place, _ANY_NAME)
                    self._add_observation("TYPE_MISMATCH", key, path, item, known=("obj",))

    def _compare_list(self, slot: Slot, value: list[Any]) -> None:
        if slot.elements and not slot.elements.issuperset(map(type, value)):
            self._mismatch_inside(slot, value)
        if slot.items is not None:
            for item in value:
                if type(item) is dict:
                    self._compare_object(slot.items, cast("dict[str, Any]", item))

    def _compare_blocks(self, slot: Slot, value: list[Any]) -> None:
        for block in value:
            if type(block) is not dict:
                self._mismatch_inside(slot, [block])
                continue
            fields = cast("dict[str, Any]", block)
            name = fields.get("type")
            shape = self.shapes.block(name) if isinstance(name, str) else None
            if shape is not None:
                self._compare_object(shape, fields)
                if name == "tool_use":
                    self._compare_tool_use(fields)
            else:
                shown = plain_name(name) if isinstance(name, str) else _UNNAMED
                self._add_observation("NEW_BLOCK", (f"block {shown}", ""), ("blocks", shown), fields)

    def _compare_tool_use(self, block: dict[str, Any]) -> None:
        name, call, tool_input = block.get("name"), block.get("id"), block.get("input")
        if not isinstance(name, str):
            return
        if isinstance(call, str) and len(self._calls) < _MAX_CALLS:
            self._calls[call] = name
            self._current_call = call
        entry = self.facts.tool(name)
        if entry is None:
            shown = _tool_name(name)
            self._add_observation("NEW_TOOL", (f"tool {shown}", ""), ("tools", shown), tool_input)
        elif isinstance(tool_input, dict):
            shape = self.shapes.tool(name, entry, "input")
            if shape is not None:
                self._compare_object(shape, cast("dict[str, Any]", tool_input))
        self._current_call = ""

    def _settle_calls(self) -> None:
        """Count the observations about tool calls that are now answered, unless they failed.

        The model chooses names and arguments of calls. A call with an unknown tool or unaccepted arguments is answered
        by an error and is not evidence of format drift.
        """
        for block in _content_blocks(self._fields):
            call = block.get("tool_use_id")
            pending = self._pending.pop(call, None) if isinstance(call, str) else None
            if pending and block.get("is_error") is not True:
                self._count_pending(pending)

    def _count_pending(self, pending: list[_PendingDrift]) -> None:
        version = self._version
        for self._version, code, kind_and_path, path, value, known, name, enum in pending:
            self._add_observation(code, kind_and_path, path, value, known=known, name=name, enum=enum)
        self._version = version

    def _compare_tool_result(self, value: Any) -> None:
        name = self._calls.get(_answered_call(self._fields))
        if name is None:
            return
        entry = self.facts.tool(name)
        if entry is None:
            tally = self.tallies.get(("NEW_TOOL", f"tool {_tool_name(name)}", "", ""))
            if tally is not None:
                tally.result.add(value, self._version)
        elif entry.result_types:
            self._compare_known_result(name, entry, value)

    def _compare_known_result(self, name: str, entry: ToolEntry, value: Any) -> None:
        if json_type(value) not in entry.result_types:
            if isinstance(value, str) and any(b.get("is_error") for b in _content_blocks(self._fields)):
                # The result of a failed call is an error text for every tool.
                return
            shown = _tool_name(name)
            path = ("tools", shown, "result_types")
            key = (f"tool {shown}", "result")
            self._add_observation("TYPE_MISMATCH", key, path, value, known=entry.result_types)
        elif isinstance(value, dict):
            shape = self.shapes.tool(name, entry, "result")
            if shape is not None:
                self._compare_object(shape, cast("dict[str, Any]", value))

    def _new_field(self, shape: CatalogueShape, slot: Slot, value: Any) -> None:
        name = plain_name(slot.name)
        field_names = self._names.setdefault(f"{shape.owner} {shape.path}", set())
        if name not in field_names and (len(field_names) >= _MAX_NAMES or len(self._names) > MAX_OBSERVATIONS):
            name = _ANY_NAME
        field_names.add(name)
        path = f"{shape.path}.{name}" if shape.path else name
        self._add_observation("NEW_FIELD", (slot.owner, path), (*shape.place, name), value)

    def _mismatch(self, slot: Slot, value: Any) -> None:
        known = slot.field.types if slot.field else ()
        self._add_observation("TYPE_MISMATCH", (slot.owner, slot.path), slot.place, value, known=known)

    def _mismatch_inside(self, slot: Slot, value: list[Any]) -> None:
        field = slot.field
        known: tuple[JsonType, ...] = field.of if field and field.of else ("obj",)
        path = (*slot.place, "of")
        for item in value:
            if json_type(item) not in known:
                key = (slot.owner, f"{slot.path}[]")
                self._add_observation("TYPE_MISMATCH", key, path, item, known=known)

    def _new_value(self, slot: Slot, value: str) -> None:
        key = (slot.owner, slot.path)
        capital = any(word[:1].isupper() for word in slot.words)
        name = value if is_plain_value(value, capital=capital) else mask_content(value)
        self._add_observation("NEW_VALUE", key, slot.place, value, name=name, enum=slot.enum)

    def _add_observation(
        self,
        code: Code,
        kind_and_path: tuple[str, str],
        path: CataloguePath,
        value: Any,
        *,
        known: tuple[JsonType, ...] = (),
        name: str = "",
        enum: str = "",
    ) -> None:
        if self._current_call and len(self._pending) < _MAX_PENDING:
            pending = self._pending.setdefault(self._current_call, [])
            if len(pending) < _MAX_NAMES:
                pending.append((self._version, code, kind_and_path, path, value, known, name, enum))
            return
        key = (code, *kind_and_path, name)
        tally = self.tallies.get(key)
        if tally is None:
            if len(self.tallies) >= MAX_OBSERVATIONS:
                self.left_out += 1
                return
            tally = self.tallies[key] = Tally(path, known, self._sample(code, value))
            tally.enum = enum
            tally.sketch.named = code in _NAMED_CODES
        tally.count += 1
        version = self._version or _UNKNOWN
        if version in tally.versions or len(tally.versions) < _MAX_VERSIONS:
            tally.versions[version] = tally.versions.get(version, 0) + 1
        if code != "MISSING_FIELD":
            tally.sketch.add(value, self._version)

    def _sample(self, code: Code, value: Any) -> str:
        if code == "MISSING_FIELD":
            return ""
        if code == "PUBLISHED_FORM":
            return PUBLISHED_FORMS[str(value)]
        if self._known_names is None:
            self._known_names = frozenset(_field_names(self.facts))
        names = self._known_names
        if code in _NAMED_CODES and isinstance(value, dict):
            # Field names of a record belong to the format and are safe to show.
            fields = cast("dict[str, Any]", value)
            names = names.union(fields)
            envelope = self.facts.envelopes["claude"]
            value = {name: item for name, item in fields.items() if name not in envelope}
        sample = shape_of(value, names.__contains__)
        return sample if len(sample) <= _MAX_SAMPLE else f"{sample[:_MAX_SAMPLE]}…"


def _field_names(facts: Catalogue) -> set[str]:
    """Return all field names in the catalogue."""
    queue = [facts.fields(kind) for kind in facts.kinds()]
    queue += [entry.fields for entry in facts.blocks.values()]
    queue += [part for tool in facts.tools.values() for part in (tool.input, tool.result)]
    queue.append(facts.usage)
    names: set[str] = set()
    while queue:
        fields = queue.pop()
        names.update(fields)
        queue += [part for field in fields.values() for part in (field.sub, field.items, field.values)]
    return names


def _content_blocks(fields: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the content blocks of a record's message that are objects."""
    message = as_object(fields.get("message")) or {}
    objects = map(as_object, as_list(message.get("content")) or ())
    return [block for block in objects if block is not None]


def _answered_call(fields: dict[str, Any]) -> str:
    """Return the ID of the call that a record's first tool result answers."""
    calls = (block.get("tool_use_id") for block in _content_blocks(fields))
    return next((call for call in calls if isinstance(call, str)), "")


def _tool_name(name: str) -> str:
    return ANY_MCP if name.startswith(MCP_PREFIX) else plain_name(name)


def _plain_version(version: str) -> str:
    """Return the version if it is well-formed, else an empty string."""
    return version if _VERSION.fullmatch(version) else ""


_FIELD_PATH_LENGTH: Final = 4  # records, kind, fields, name


def apply_merge_patch(document: Any, patch: Any) -> Any:
    """Return a document with a merge patch applied, without modifying either.

    >>> apply_merge_patch({"a": 1, "b": {"c": 2}}, {"a": None, "b": {"d": [3]}})
    {'b': {'c': 2, 'd': [3]}}
    """
    if not isinstance(patch, dict):
        return patch
    document_copy = dict(cast("dict[str, Any]", document)) if isinstance(document, dict) else {}
    for name, value in cast("dict[str, Any]", patch).items():
        if value is None:
            document_copy.pop(name, None)
        else:
            document_copy[name] = apply_merge_patch(document_copy.get(name), value)
    return document_copy


def propose_patch(observer: Observer) -> CatalogueEntry:
    """Return a merge patch that adds the observed drift to the observer's catalogue."""
    return _PatchBuilder(observer).patch


class _PatchBuilder:
    def __init__(self, observer: Observer) -> None:
        self.patch: CatalogueEntry = {}
        self._observer = observer
        self._facts = observer.facts
        self._newest = version_key(self._facts.newest)
        self._envelope_fields: dict[str, Sketch] = {}
        known = self._facts.client_versions.known
        self._new_versions = sorted(observer.versions.difference(known), key=version_key)
        if self._new_versions:
            all_versions = sorted({*known, *self._new_versions}, key=version_key)
            self._entry_at(("client_versions",))["known"] = all_versions
            self._extend_versions()
        self._learn_envelope()
        for key, tally in observer.tallies.items():
            if all(is_plain_name(part) or part == ANY_MCP for part in _path_parts(tally.place)):
                self._learn(key, tally)

    def _entry_at(self, path: CataloguePath) -> CatalogueEntry:
        entry = self.patch
        for name in path:
            entry = entry.setdefault(name, {})
        return entry

    def _learn(self, key: Key, tally: Tally) -> None:
        code: Code = key[0]
        match code:
            case "UNKNOWN_TYPE":
                self._entry_at(tally.place).update(self._kind(tally))
            case "NEW_BLOCK":
                fields = sketch_fields(tally.sketch.sub)
                self._entry_at(tally.place).update(seen=_versions_seen(tally), fields=fields)
            case "NEW_TOOL":
                self._entry_at(tally.place).update(_tool_entry(tally))
            case "NEW_FIELD":
                if not self._is_envelope_field(tally):
                    self._entry_at(tally.place).update(tally.sketch.entry())
            case "TYPE_MISMATCH":
                self._mismatch(tally)
            case "MISSING_FIELD" if tally.place != ("envelope", "type"):
                self._entry_at(tally.place)["optional"] = True
            case "NEW_VALUE":
                self._value(tally.enum, key[3])
            case "MISSING_FIELD" | "PUBLISHED_FORM":
                # Claude Code does not write published forms, so they are not added to the catalogue.
                pass

    def _value(self, enum: str, value: str) -> None:
        if not is_plain_name(value):
            return
        lists = self._entry_at(("enums",))
        values: list[str] = lists.get(enum) or list(self._facts.enums[enum])
        lists[enum] = [*values, value] if value not in values else values

    def _learn_envelope(self) -> None:
        """Collect new fields found on records of several types; they belong to the envelope."""
        types: dict[str, set[str]] = {}
        for (code, kind, _, _), tally in self._observer.tallies.items():
            if code == "NEW_FIELD" and _is_record_field(tally.place) and self._is_graph(kind):
                name = tally.place[-1]
                types.setdefault(name, set()).add(kind.partition("/")[0])
                self._envelope_fields.setdefault(name, Sketch()).merge(tally.sketch)
        self._envelope_fields = {
            name: sketch
            for name, sketch in self._envelope_fields.items()
            if len(types[name]) > 1 and is_plain_name(name)
        }
        for name, sketch in sorted(self._envelope_fields.items()):
            self._entry_at(("envelope",))[name] = sketch.entry()

    def _is_graph(self, kind: str) -> bool:
        entry = self._facts.kind(kind, "claude")
        return entry is not None and entry.family == "graph"

    def _is_envelope_field(self, tally: Tally) -> bool:
        path = tally.place
        return _is_record_field(path) and path[-1] in self._envelope_fields and self._is_graph(path[1])

    def _kind(self, tally: Tally) -> CatalogueEntry:
        fields = dict(tally.sketch.sub)
        graph = "uuid" in fields and "parentUuid" in fields
        if graph and tally.place[0] == "records":
            envelope = self._facts.envelopes["claude"]
            types: dict[str, set[JsonType]] = {name: set(envelope[name].types) for name in envelope}
            types.update({name: sketch.types for name, sketch in self._envelope_fields.items()})
            fields = {
                name: sketch for name, sketch in fields.items() if name not in types or not sketch.types <= types[name]
            }
        return {"family": "graph" if graph else "side", "seen": _versions_seen(tally), "fields": sketch_fields(fields)}

    def _mismatch(self, tally: Tally) -> None:
        *parent, last = tally.place
        if last in ("of", "result_types"):
            entry, name = self._entry_at(tuple(parent)), last
        else:
            entry, name = self._entry_at(tally.place), "types"
            sketch_entry = tally.sketch.entry()
            entry.update({part: sketch_entry[part] for part in ("sub", "items") if part in sketch_entry})
        known_types: list[JsonType] = entry.get(name, [])
        entry[name] = sort_types({*known_types, *tally.known, *tally.sketch.types})

    def _extend_versions(self) -> None:
        """Extend version ranges of known fields and kinds to client versions newer than the catalogue."""
        for shape in self._observer.shapes.created():
            newer_versions: set[str] = set()
            for plan in shape.plans.values():
                newer = [v for v in plan.missing if version_key(v) > self._newest]
                newer_versions.update(newer)
                last = max(newer, key=version_key, default="")
                for slot in plan.slots if last else ():
                    self._extend_field(slot, last)
            if newer_versions and shape.place[-1:] == ("fields",) and shape.place[0] != "dialects":
                self._extend_seen(shape.place[:2], newer_versions)

    def _extend_field(self, slot: Slot, last: str) -> None:
        field = slot.field
        if field is None or not field.versions:
            return
        entry = self._entry_at(slot.place)
        versions = entry.get("versions", field.versions)
        if version_key(last) > version_key(versions[-1]):
            entry["versions"] = [field.versions[0], last]
        if not field.optional and version_key(field.versions[-1]) < self._newest:
            # The field was absent in some versions, so it is optional.
            entry["optional"] = True

    def _extend_seen(self, path: CataloguePath, versions: set[str]) -> None:
        section, name = path
        entry = self._facts.kind(name, "claude") if section == "records" else None
        entry = entry or self._facts.block(name)
        if entry is not None:
            self._entry_at(path)["seen"] = sorted({*entry.seen, *versions}, key=version_key)


def _is_record_field(path: CataloguePath) -> bool:
    return len(path) == _FIELD_PATH_LENGTH and path[0] == "records"


def _path_parts(path: CataloguePath) -> list[str]:
    return [part for name in path for part in name.split("/", 1)]


def _versions_seen(tally: Tally) -> list[str]:
    return sorted((v for v in tally.versions if version_key(v)), key=version_key)


def _tool_entry(tally: Tally) -> CatalogueEntry:
    entry: CatalogueEntry = {
        "seen": _versions_seen(tally),
        "input": sketch_fields(tally.sketch.sub),
        "result": sketch_fields(tally.result.sub),
    }
    if tally.result.types:
        entry["result_types"] = sort_types(tally.result.types)
    return entry
