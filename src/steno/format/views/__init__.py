"""Typed views on a record's own fields, one struct per kind, generated from the catalogue.

    view_of("system/turn_duration", line).duration_ms
    view_of("attachment/hook_success", line).exit_code      the attachment's fields, not wrapped
    result_view("Bash", raw_tool_use_result).stdout
    input_view("Edit", raw_input).old_string

The envelope (ids, times, the message) is the record's business and is left out here. Nothing
raises on a JSON object: a field that does not fit its type is None, and a kind or tool that is not
in the catalogue gives a `GenericView` with all its `fields`.

Modules are imported when the first kind in them is asked for; `VIEWS` lists all kinds.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, Final, cast

import msgspec

from steno.format.lenient_json import decode_lenient
from steno.format.views.base import GenericView, View, read
from steno.format.views.index import ENVELOPE, INPUTS, KINDS, RESULTS

__all__ = ["VIEWS", "GenericView", "View", "input_view", "result_view", "view_of"]

_BAD: Final = (msgspec.MsgspecError, UnicodeError, RecursionError)
_BODIES: Final = {"attachment": "attachment", "progress": "data"}


class _Lazy(Mapping[str, type[View]]):
    """Names of views by kind or tool; a class is imported when it is looked up."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = places
        self._loaded: dict[str, type[View]] = {}

    def __getitem__(self, name: str) -> type[View]:
        if name not in self._loaded:
            module, _, shape = self._places[name].partition(".")
            self._loaded[name] = getattr(import_module(f"{__name__}.{module}"), shape)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


VIEWS: Final[Mapping[str, type[View]]] = _Lazy(KINDS)
_RESULTS: Final = _Lazy(RESULTS)
_INPUTS: Final = _Lazy(INPUTS)


def view_of(kind: str, line: bytes) -> View:
    """Return the fields particular to a record of `kind`, typed.

    What an attachment or a progress record carries is lifted out of its `attachment` or `data`.
    """
    shape = VIEWS.get(kind)
    body = _BODIES.get(kind.partition("/")[0])
    if shape is None:
        return GenericView(_lifted(_fields(decode_lenient(line)), body))
    if body is None:
        return _decoded(shape, line)
    return read(shape, _lifted(_fields(decode_lenient(line)), body))


def result_view(tool: str, raw: bytes) -> View | str | list[Any] | None:
    """Return a record's `toolUseResult`: a view, the text of an error, or a list (MCP)."""
    if raw.lstrip()[:1] == b"{":
        return _object_view(_RESULTS.get(tool), raw)
    value = decode_lenient(raw)
    return cast("str | list[Any]", value) if isinstance(value, str | list) else None


def input_view(tool: str, raw: bytes) -> View:
    """Return the arguments of a tool call."""
    return _object_view(_INPUTS.get(tool), raw)


def _object_view(shape: type[View] | None, raw: bytes) -> View:
    return GenericView(_fields(decode_lenient(raw))) if shape is None else _decoded(shape, raw)


def _decoded(shape: type[View], raw: bytes) -> View:
    """Decode straight into the view; a value that is refused is read again, field by field."""
    try:
        return msgspec.json.decode(raw, type=shape)
    except _BAD:
        return read(shape, _fields(decode_lenient(raw)))


def _lifted(fields: dict[str, Any], body: str | None) -> dict[str, Any]:
    own = {name: value for name, value in fields.items() if name not in ENVELOPE}
    inner = own.pop(body, None) if body else None
    if not isinstance(inner, dict):
        return own
    return {**own, **cast("dict[str, Any]", inner)}


def _fields(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
