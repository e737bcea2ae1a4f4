"""What session files contain beside what the catalogue knows, counted per client version.

    observer = Observer(catalogue())
    for file in files:
        for record in file: observer.feed(record)
        observer.end_file()
    observer.drifts()

Nothing is kept of what a session says: names of the format, types, counts and masked samples. Names
that are not plain names are masked as well. Memory is bounded: from `MOST` different observations
on, new ones are only counted, in `left_out`.
"""

import re
from typing import Any, Final, cast

import msgspec

from steno.check.observed import Code, Drift, Key, Tally, report
from steno.check.published import FORMS
from steno.check.shapes import Place, Shape, Shapes, Slot
from steno.format.catalogue import Catalogue, JsonType, ToolEntry, json_type, version_key
from steno.format.dialects.names import OPERATIONS, Dialect
from steno.format.loose import REFUSED, loose
from steno.format.records import Record
from steno.format.values import as_list, as_object
from steno.safe.redact import is_plain_value, masked, plain_name, shape_of

__all__ = ["MOST", "Observer"]

MOST: Final = 4096
_MOST_NAMES: Final = 64
_MOST_VERSIONS: Final = 64
_MOST_CALLS: Final = 65_536
_MOST_DOUBTS: Final = 256
_MOST_HELD: Final = 64
_MOST_HELD_BYTES: Final = 1 << 20
_MOST_SAMPLE: Final = 120
_MCP: Final = "mcp__"
_FREE: Final = "*"
_UNNAMED: Final = "untyped"
_UNKNOWN: Final = "unknown"
_NAMED: Final = frozenset(("UNKNOWN_TYPE", "NEW_BLOCK"))
_VERSION: Final = re.compile(
    r"[0-9]{1,6}(?:\.[0-9]{1,6}){0,4}(?:-[a-z]{1,8}(?:\.[0-9]{1,8}){0,2})?"
)
_STRICT: Final = msgspec.json.Decoder()


class _Noted(msgspec.Struct):
    """What was odd about a call that is not answered yet."""

    code: Code
    where: tuple[str, str]
    place: Place
    value: Any
    known: tuple[JsonType, ...]
    version: str
    name: str
    enum: str


class Observer:
    """Judges records by a catalogue, file after file."""

    def __init__(self, facts: Catalogue, since: str = "") -> None:
        self.facts = facts
        self.shapes = Shapes(facts)
        self.tallies: dict[Key, Tally] = {}
        self.left_out = 0
        self.records = 0
        self.versions: set[str] = set()
        self._since = version_key(since)
        self._names: dict[str, set[str]] = {}
        self._said: str | None = None
        self._version = ""
        self._held: list[Record] = []
        self._held_bytes = 0
        self._calls: dict[str, str] = {}
        self._call = ""
        self._doubtful: dict[str, list[_Noted]] = {}
        self._fields: dict[str, Any] = {}
        self._known_names: frozenset[str] | None = None

    def feed(self, record: Record) -> None:
        """Take in the next record of a file.

        Records without a version of their own count for the one before them; those at the head
        of a file wait for the first that has one.
        """
        version = record.envelope.version
        if version and version != self._said:
            self._said = version
            self._version = _plain_version(version)
            self._release()
        if self._said is None and len(self._held) < _MOST_HELD:
            self._held_bytes += record.length
            if self._held_bytes < _MOST_HELD_BYTES:
                self._held.append(record)
                return
        if self._held:
            self._release()
        self._judge(record)

    def end_file(self) -> None:
        """Say that the next record is of another file."""
        self._release()
        for waiting in self._doubtful.values():
            self._count(waiting)
        self._doubtful.clear()
        self._calls.clear()
        self._said, self._version = None, ""

    def drifts(self) -> list[Drift]:
        """Return what was observed: by code, then the most frequent first."""
        return report(self.tallies)

    def _release(self) -> None:
        held, self._held, self._held_bytes = self._held, [], 0
        for record in held:
            self._judge(record)

    def _judge(self, record: Record) -> None:
        if self._since and version_key(self._version) < self._since:
            return
        self.records += 1
        if self._version and len(self.versions) < MOST:
            self.versions.add(self._version)
        try:
            fields = _STRICT.decode(record.line)
        except REFUSED:
            fields = loose(record.line)
        if not isinstance(fields, dict):
            return
        self._fields = cast("dict[str, Any]", fields)
        if self._doubtful:
            self._settle()
        name, dialect = record.kind, record.dialect
        if dialect != "claude" and record.envelope.cwd is not None:
            # No published dialect has a folder: this is the client's own record, changed.
            dialect = "claude"
        shape = self.shapes.kind(name, dialect)
        operation = self._fields.get("message") if name == "compact_system" else None
        if isinstance(operation, str) and operation not in OPERATIONS:
            self._unknown(f"{name}/{operation}", dialect)
        elif shape is not None:
            if name == "compact_system" and operation is None:
                # The document's own rule, which no file changes: nothing is learned of it.
                self._note("MISSING_FIELD", (name, "message"), (*shape.place, _FREE), None)
            self._object(shape, self._fields)
        else:
            self._unknown(name, dialect)

    def _unknown(self, name: str, dialect: Dialect) -> None:
        if name == _UNNAMED:
            self._note("MISSING_FIELD", (_UNNAMED, "type"), ("envelope", "type"), None)
            return
        if dialect == "claude" and name in FORMS:
            self._note("PUBLISHED_FORM", (name, ""), ("records", name), name)
            return
        shown = "/".join(plain_name(part) for part in name.split("/", 1))
        base = () if dialect == "claude" else ("dialects", dialect)
        self._note("UNKNOWN_TYPE", (shown, ""), (*base, "records", shown), self._fields)

    def _object(self, shape: Shape, value: dict[str, Any]) -> None:
        names = tuple(value)
        plan = shape.plans.get(names) or shape.plan(names)
        version = self._version
        lacking = plan.missing.get(version)
        if lacking is None:
            lacking = shape.missing(plan, version)
        for slot in lacking:
            self._note("MISSING_FIELD", (slot.owner, slot.path), slot.place, None)
        for slot, item in zip(plan.slots, value.values(), strict=False):
            if type(item) not in slot.plain:
                self._look(shape, slot, item)

    def _look(self, shape: Shape, slot: Slot, value: Any) -> None:
        if slot.field is None:
            self._new_field(shape, slot, value)
        elif type(value) not in slot.types:
            self._mismatch(slot, value)
        elif slot.field.ref == "tools":
            self._tool_result(value)
        elif isinstance(value, str):
            if slot.enum and value not in slot.words:
                self._new_value(slot, value)
        elif isinstance(value, dict):
            self._inside(slot, cast("dict[str, Any]", value))
        elif slot.field.ref == "blocks":
            self._blocks(slot, value)
        else:
            self._list(slot, value)

    def _inside(self, slot: Slot, value: dict[str, Any]) -> None:
        if slot.inner is not None:
            self._object(slot.inner, value)
        elif slot.values is not None:
            for item in value.values():
                if isinstance(item, dict):
                    self._object(slot.values, cast("dict[str, Any]", item))
                else:
                    # The names of such values are anybody's words: nothing is learned of them.
                    key, place = (slot.owner, f"{slot.path}.{_FREE}"), (*slot.place, _FREE)
                    self._note("TYPE_MISMATCH", key, place, item, known=("obj",))

    def _list(self, slot: Slot, value: list[Any]) -> None:
        if slot.elements and not slot.elements.issuperset(map(type, value)):
            self._mismatch_inside(slot, value)
        if slot.items is not None:
            for item in value:
                if type(item) is dict:
                    self._object(slot.items, cast("dict[str, Any]", item))

    def _blocks(self, slot: Slot, value: list[Any]) -> None:
        for block in value:
            if type(block) is not dict:
                self._mismatch_inside(slot, [block])
                continue
            fields = cast("dict[str, Any]", block)
            name = fields.get("type")
            shape = self.shapes.block(name) if isinstance(name, str) else None
            if shape is not None:
                self._object(shape, fields)
                if name == "tool_use":
                    self._tool_use(fields)
            else:
                shown = plain_name(name) if isinstance(name, str) else _UNNAMED
                self._note("NEW_BLOCK", (f"block {shown}", ""), ("blocks", shown), fields)

    def _tool_use(self, block: dict[str, Any]) -> None:
        name, call, given = block.get("name"), block.get("id"), block.get("input")
        if not isinstance(name, str):
            return
        if isinstance(call, str) and len(self._calls) < _MOST_CALLS:
            self._calls[call] = name
            self._call = call
        entry = self.facts.tool(name)
        if entry is None:
            shown = _tool_name(name)
            self._note("NEW_TOOL", (f"tool {shown}", ""), ("tools", shown), given)
        elif isinstance(given, dict):
            shape = self.shapes.tool(name, entry, "input")
            if shape is not None:
                self._object(shape, cast("dict[str, Any]", given))
        self._call = ""

    def _settle(self) -> None:
        """Count what was odd about calls that are now answered, unless they failed.

        Names and arguments of calls are the model's. A call to a tool that is not there, or with
        arguments that it does not take, says nothing about the client: it is answered by an error.
        """
        for block in _content(self._fields):
            call = block.get("tool_use_id")
            waiting = self._doubtful.pop(call, None) if isinstance(call, str) else None
            if waiting and block.get("is_error") is not True:
                self._count(waiting)

    def _count(self, waiting: "list[_Noted]") -> None:
        now = self._version
        for noted in waiting:
            self._version = noted.version
            self._note(
                noted.code,
                noted.where,
                noted.place,
                noted.value,
                known=noted.known,
                name=noted.name,
                enum=noted.enum,
            )
        self._version = now

    def _tool_result(self, value: Any) -> None:
        name = self._calls.get(_answered(self._fields))
        if name is None:
            return
        entry = self.facts.tool(name)
        if entry is None:
            tally = self.tallies.get(("NEW_TOOL", f"tool {_tool_name(name)}", "", ""))
            if tally is not None:
                tally.result.add(value, self._version)
        elif entry.result_types:
            self._known_result(name, entry, value)

    def _known_result(self, name: str, entry: ToolEntry, value: Any) -> None:
        if json_type(value) not in entry.result_types:
            if isinstance(value, str) and any(b.get("is_error") for b in _content(self._fields)):
                # Whatever the tool, the result of a call that failed is what went wrong.
                return
            shown = _tool_name(name)
            place = ("tools", shown, "result_types")
            key = (f"tool {shown}", "result")
            self._note("TYPE_MISMATCH", key, place, value, known=entry.result_types)
        elif isinstance(value, dict):
            shape = self.shapes.tool(name, entry, "result")
            if shape is not None:
                self._object(shape, cast("dict[str, Any]", value))

    def _new_field(self, shape: Shape, slot: Slot, value: Any) -> None:
        name = plain_name(slot.name)
        met = self._names.setdefault(f"{shape.owner} {shape.path}", set())
        if name not in met and (len(met) >= _MOST_NAMES or len(self._names) > MOST):
            name = _FREE
        met.add(name)
        path = f"{shape.path}.{name}" if shape.path else name
        self._note("NEW_FIELD", (slot.owner, path), (*shape.place, name), value)

    def _mismatch(self, slot: Slot, value: Any) -> None:
        known = slot.field.types if slot.field else ()
        self._note("TYPE_MISMATCH", (slot.owner, slot.path), slot.place, value, known=known)

    def _mismatch_inside(self, slot: Slot, value: list[Any]) -> None:
        field = slot.field
        known: tuple[JsonType, ...] = field.of if field and field.of else ("obj",)
        place = (*slot.place, "of")
        for item in value:
            if json_type(item) not in known:
                key = (slot.owner, f"{slot.path}[]")
                self._note("TYPE_MISMATCH", key, place, item, known=known)

    def _new_value(self, slot: Slot, value: str) -> None:
        key = (slot.owner, slot.path)
        capital = any(word[:1].isupper() for word in slot.words)
        name = value if is_plain_value(value, capital=capital) else masked(value)
        self._note("NEW_VALUE", key, slot.place, value, name=name, enum=slot.enum)

    def _note(
        self,
        code: Code,
        where: tuple[str, str],
        place: Place,
        value: Any,
        *,
        known: tuple[JsonType, ...] = (),
        name: str = "",
        enum: str = "",
    ) -> None:
        if self._call and len(self._doubtful) < _MOST_DOUBTS:
            noted = _Noted(code, where, place, value, known, self._version, name, enum)
            waiting = self._doubtful.setdefault(self._call, [])
            if len(waiting) < _MOST_NAMES:
                waiting.append(noted)
            return
        key = (code, *where, name)
        tally = self.tallies.get(key)
        if tally is None:
            if len(self.tallies) >= MOST:
                self.left_out += 1
                return
            tally = self.tallies[key] = Tally(place, known, self._sample(code, value))
            tally.enum = enum
            tally.sketch.named = code in _NAMED
        tally.count += 1
        version = self._version or _UNKNOWN
        if version in tally.versions or len(tally.versions) < _MOST_VERSIONS:
            tally.versions[version] = tally.versions.get(version, 0) + 1
        if code != "MISSING_FIELD":
            tally.sketch.add(value, self._version)

    def _sample(self, code: Code, value: Any) -> str:
        if code == "MISSING_FIELD":
            return ""
        if code == "PUBLISHED_FORM":
            return FORMS[str(value)]
        if self._known_names is None:
            self._known_names = frozenset(_names_of(self.facts))
        names = self._known_names
        if code in _NAMED and isinstance(value, dict):
            # The names of a record's own fields belong to the format, not to what it says.
            fields = cast("dict[str, Any]", value)
            names = names.union(fields)
            around = self.facts.envelopes["claude"]
            value = {name: item for name, item in fields.items() if name not in around}
        sample = shape_of(value, names.__contains__)
        return sample if len(sample) <= _MOST_SAMPLE else f"{sample[:_MOST_SAMPLE]}…"


def _names_of(facts: Catalogue) -> set[str]:
    """Return every name of a field in the catalogue."""
    waiting = [facts.fields(kind) for kind in facts.kinds()]
    waiting += [entry.fields for entry in facts.blocks.values()]
    waiting += [part for tool in facts.tools.values() for part in (tool.input, tool.result)]
    waiting.append(facts.usage)
    names: set[str] = set()
    while waiting:
        fields = waiting.pop()
        names.update(fields)
        waiting += [
            part for field in fields.values() for part in (field.sub, field.items, field.values)
        ]
    return names


def _content(fields: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the blocks of a record's message that are objects."""
    message = as_object(fields.get("message")) or {}
    found = map(as_object, as_list(message.get("content")) or ())
    return [block for block in found if block is not None]


def _answered(fields: dict[str, Any]) -> str:
    """Return the id of the call that a record's first result answers."""
    calls = (block.get("tool_use_id") for block in _content(fields))
    return next((call for call in calls if isinstance(call, str)), "")


def _tool_name(name: str) -> str:
    return f"{_MCP}*" if name.startswith(_MCP) else plain_name(name)


def _plain_version(version: str) -> str:
    """Return a version if it is one; what else stands there is nobody's version."""
    return version if _VERSION.fullmatch(version) else ""
