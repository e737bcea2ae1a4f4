"""Typed views of the fields of each record kind: structs generated from the catalogue on demand.

    view_of("system/turn_duration", line).duration_ms
    view_of("attachment/hook_success", line).exit_code      the attachment's fields, not wrapped
    result_view("Bash", raw_tool_use_result).stdout
    input_view("Edit", raw_input).old_string

The envelope (IDs, times, the message) belongs to the record and is omitted. A JSON object never raises: a field that is
missing or has the wrong type is None, and a kind or tool that is not in the catalogue gives a `GenericView` with all
its `fields`.
"""

import keyword
import re
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, Union, cast, get_args, get_origin

import msgspec

from steno.format.catalogue import Field, Fields, JsonType, KindEntry, catalogue
from steno.format.lenient_json import decode_lenient

_BAD: Final = (msgspec.MsgspecError, UnicodeError, RecursionError)
_BODIES: Final = {"attachment": "attachment", "progress": "data"}
# The message and the tool result have separate readers; `requestId` is on the record.
_READ_ELSEWHERE: Final = frozenset(("message", "requestId", "toolUseResult"))
_ATTRIBUTES: Final = {
    "-A": "after",
    "-B": "before",
    "-C": "around",
    "-i": "ignore_case",
    "-n": "line_numbers",
    "-o": "only_matching",
}
_TYPES: Final[dict[JsonType, Any]] = {
    "str": str,
    "num": int | float,
    "bool": bool,
    "obj": dict[str, Any],
    "arr": list[Any],
}
_T = TypeVar("_T", bound="View")


class View(msgspec.Struct, frozen=True):
    """The typed fields of one kind. Missing or malformed fields are None."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


class GenericView(View, frozen=True):
    """A kind that is not in the catalogue, with all its fields."""

    fields: dict[str, Any] = {}


def view_of(kind: str, line: bytes) -> View:
    """Return the typed fields of a record of `kind`.

    For attachments and progress records, these are the fields of `attachment` or `data`.
    """
    struct_type = view_type(kind)
    body = _BODIES.get(kind.partition("/")[0])
    if struct_type is not None and body is None:
        return _decode(struct_type, line)
    fields = _lift_body(_as_fields(decode_lenient(line)), body)
    return GenericView(fields) if struct_type is None else _read_fields(struct_type, fields)


def result_view(tool: str, raw: bytes) -> View | str | list[Any] | None:
    """Return a record's `toolUseResult`: a view, the text of an error, or a list (MCP)."""
    if raw.lstrip()[:1] == b"{":
        return _decode(result_type(tool), raw)
    value = decode_lenient(raw)
    return cast("str | list[Any]", value) if isinstance(value, str | list) else None


def input_view(tool: str, raw: bytes) -> View:
    """Return the input of a tool call."""
    return _decode(input_type(tool), raw)


# Structs of kinds and tools


def view_type(kind: str) -> type[View] | None:
    """Return the struct for the records of a kind; None if no field of it is known."""
    # Only names in the catalogue are cached, because a file can contain any number of others.
    return _kind_type(kind) if catalogue().kind(kind) else None


def input_type(tool: str) -> type[View] | None:
    """Return the struct for the input of a tool; None if no field of it is known."""
    return _tool_type(tool, "input") if tool in catalogue().tools else None


def result_type(tool: str) -> type[View] | None:
    """Return the struct for the result of a tool; None if no field of it is known."""
    return _tool_type(tool, "result") if tool in catalogue().tools else None


@cache
def _kind_type(kind: str) -> type[View] | None:
    fields: Fields = {}
    for dialect in catalogue().records:
        entry = catalogue().kind(kind, dialect)
        if entry is not None:
            fields = {**_own_fields(entry), **fields}
    outer, _, last = kind.partition("/")
    name = last if last and outer not in ("user", "assistant") else kind
    return _struct_type(_class_name(name), fields) if fields else None


@cache
def _tool_type(tool: str, part: Literal["input", "result"]) -> type[View] | None:
    entry = catalogue().tools[tool]
    fields = entry.input if part == "input" else entry.result
    return _struct_type(f"{tool}{part.title()}", fields) if fields else None


def _own_fields(entry: KindEntry) -> Fields:
    hidden = {*catalogue().envelopes["claude"]}
    if entry.family == "graph":
        hidden |= _READ_ELSEWHERE
    fields = {name: field for name, field in catalogue().fields(entry).items() if name not in hidden}
    body = fields.pop(_BODIES.get(entry.name.partition("/")[0], ""), None)
    if body:
        fields |= {name: field for name, field in body.sub.items() if name != "type"}
    return fields


def _struct_type(name: str, fields: Fields) -> type[View]:
    attributes: dict[str, tuple[str, Any]] = {}
    # If both `agentId` and `agent_id` exist, the latter gets a suffix.
    for field_name in sorted(fields, key=str.islower):
        attribute = _attribute(field_name)
        attribute = f"{attribute}_snake" if attribute in attributes else attribute
        attributes[attribute] = (field_name, _field_type(field_name, fields[field_name]))
    return _define(name, tuple((key, *attributes[key]) for key in sorted(attributes)))


@cache
def _define(name: str, attributes: tuple[tuple[str, str, Any], ...]) -> type[View]:
    """Return a struct with this name and these attributes, cached by arguments."""
    fields = [
        (attribute, field_type, msgspec.field(default=None, name=field_name))
        for attribute, field_name, field_type in attributes
    ]
    struct_type = msgspec.defstruct(name, fields, bases=(View,), module=__name__, frozen=True)
    return cast("type[View]", struct_type)


def _field_type(name: str, field: Field) -> Any:
    types = [_json_type(kind, name, field) for kind in field.types if kind != "null"]
    if not types:
        return Any
    union = types[0]
    for other in (*types[1:], None):
        union = union | other
    return union


def _json_type(kind: JsonType, name: str, field: Field) -> Any:
    members = catalogue().usage if field.ref == "usage" else field.sub
    if kind == "obj" and members:
        return _struct_type(_class_name(name), members)
    if kind == "obj" and field.values:
        return dict[str, _struct_type(_class_name(_singular(name)), field.values)]
    if kind == "arr" and field.items and not field.of:
        return list[_struct_type(_class_name(_singular(name)), field.items)]
    if kind == "arr" and len(field.of) == 1 and field.of[0] in ("str", "num", "bool"):
        return list[_TYPES[field.of[0]]]
    return _TYPES[kind]


def _attribute(name: str) -> str:
    """Return the attribute name of a field: `toolUseID` becomes `tool_use_id`."""
    if name in _ATTRIBUTES:
        return _ATTRIBUTES[name]
    plain = name.replace("UUIDs", "Uuids").replace("IDs", "Ids").strip("_")
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", plain).lower()
    return f"{spaced}_" if keyword.iskeyword(spaced) else spaced


def _class_name(name: str) -> str:
    return "".join(word.title() for word in re.split(r"[-_/]", _attribute(name)))


def _singular(name: str) -> str:
    if name.endswith("ies"):
        return f"{name[:-3]}y"
    return name[:-1] if name.endswith("s") else f"{name}Item"


# Filling a struct


def _decode(struct_type: type[View] | None, raw: bytes) -> View:
    """Decode directly into the struct; if that fails, field by field."""
    if struct_type is None:
        return GenericView(_as_fields(decode_lenient(raw)))
    try:
        return msgspec.json.decode(raw, type=struct_type)
    except _BAD:
        return _read_fields(struct_type, _as_fields(decode_lenient(raw)))


def _read_fields(struct_type: type[_T], fields: dict[str, Any]) -> _T:
    """Return a view of decoded fields, omitting those of the wrong type."""
    try:
        return msgspec.convert(fields, struct_type)
    except _BAD:
        pass
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(struct_type):
        value = fields.get(field.encode_name)
        if value is not None:
            values[field.name] = _fit(field.type, value)
    return struct_type(**values)


def _fit(field_type: object, value: object) -> object:
    """Convert `value` to `field_type`, repairing nested views; None if impossible."""
    try:
        return msgspec.convert(value, field_type)
    except _BAD:
        pass
    is_union = get_origin(field_type) in (Union, UnionType)
    for choice in get_args(field_type) if is_union else (field_type,):
        repaired = _repair(choice, value)
        if repaired is not None:
            return repaired
    return None


def _repair(field_type: object, value: object) -> object:
    """Convert `value` to a view, or a list or map of views; None if impossible."""
    # A view, or the last type argument of a list or map of views.
    struct_type = (field_type, *get_args(field_type))[-1]
    if not (isinstance(struct_type, type) and issubclass(struct_type, View)):
        return None
    match get_origin(field_type), value:
        case None, dict():
            return _read_fields(struct_type, cast("dict[str, Any]", value))
        case kind, list() if kind is list:
            items = [_repair(struct_type, item) for item in cast("list[Any]", value)]
            return None if None in items else items
        case kind, dict() if kind is dict:
            named = cast("dict[str, Any]", value)
            values = {name: _repair(struct_type, item) for name, item in named.items()}
            return None if None in values.values() else values
        case _:
            return None


def _lift_body(fields: dict[str, Any], body: str | None) -> dict[str, Any]:
    envelope = catalogue().envelopes["claude"]
    own = {name: value for name, value in fields.items() if name not in envelope}
    inner = own.pop(body, None) if body else None
    return {**own, **_as_fields(inner)}


def _as_fields(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
