r"""Adds to a JSON text without touching any other byte of it.

>>> print(with_item('{\n  "model": "x"\n}\n', ("permissions", "allow"), "Bash(ls:*)"), end="")
{
  "model": "x",
  "permissions": {
    "allow": [
      "Bash(ls:*)"
    ]
  }
}
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from steno.format.values import as_list, as_object

__all__ = ["with_item"]

_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_PLAIN: Final = re.compile(r"[^\s,\]}\[{:\"]+")
_BLANK: Final = re.compile(r"\s*")
_NEXT: Final = re.compile(r'[\[\]{}"]')
_UNIT: Final = re.compile(r"\{[ \t]*\r?\n([ \t]+)\"")


class _Child(msgspec.Struct, frozen=True):
    """A value in a container: where it begins (with its key, if it has one) and where it ends."""

    key: str
    begin: int
    start: int
    end: int


def with_item(text: str, keys: tuple[str, ...], item: str) -> str:
    """Return an object's text with a string added to the list under some keys, made if need be.

    A list that has it already is left alone.

    Raises:
        ValueError: the text is no JSON object, or something else stands under the keys.
    """
    text = text if text.strip() else "{}\n"
    before = _object(text)
    wanted = _added(before, keys, item)
    if wanted == before:
        return text
    made = _spliced(text, keys, item)
    # Nobody's settings are at stake for a mistake of ours.
    if _object(made) != wanted:
        raise ValueError("it is written in a way that cannot be added to")
    return made


def _object(text: str) -> dict[str, Any]:
    try:
        value = as_object(msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise ValueError("it is not JSON") from error
    if value is None:
        raise ValueError("it is JSON, but not an object")
    return value


def _added(value: dict[str, Any], keys: tuple[str, ...], item: str) -> dict[str, Any]:
    """Return the object as it is to become, as a value."""
    first, *rest = keys
    if not rest:
        items = as_list(value.get(first, []))
        if items is None:
            raise ValueError(f"`{first}` is not a list")
        return value if item in items else {**value, first: [*items, item]}
    below = as_object(value.get(first, {}))
    if below is None:
        raise ValueError(f"`{first}` is not an object")
    return {**value, first: _added(below, tuple(rest), item)}


def _spliced(text: str, keys: tuple[str, ...], item: str) -> str:
    at = _skip(text, 0)
    for depth, key in enumerate(keys):
        # The last of several counts, as it does for whoever reads them.
        found = [child for child in _children(text, at) if child.key == key]
        if not found:
            value: Any = [item]
            for name in reversed(keys[depth + 1 :]):
                value = {name: value}
            return _inserted(text, at, key, value)
        at = found[-1].start
    return _inserted(text, at, None, item)


def _skip(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return blank.end() if blank else at


def _children(text: str, at: int) -> Iterator[_Child]:
    """Yield what is in the container that begins there."""
    keyed = text[at] == "{"
    at = _skip(text, at + 1)
    while text[at] not in "]}":
        begin, key = at, ""
        if keyed:
            end = _end(text, at)
            key = msgspec.json.decode(text[at:end], type=str)
            at = _skip(text, _skip(text, end) + 1)
        end = _end(text, at)
        yield _Child(key, begin, at, end)
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at] == "," else at


def _end(text: str, at: int) -> int:
    """Return where the value ends that begins there."""
    if text[at] not in "[{":
        match = (_STRING if text[at] == '"' else _PLAIN).match(text, at)
        return match.end() if match else at + 1
    depth = 0
    while True:
        sign = _NEXT.search(text, at)
        if sign is None:
            return len(text)
        at = _end(text, sign.start()) if sign[0] == '"' else sign.end()
        depth += (sign[0] in "[{") - (sign[0] in "]}")
        if not depth:
            return at


def _inserted(text: str, at: int, key: str | None, value: Any) -> str:
    """Return the text with one more value at the end of the container that begins at a place."""
    line_end = "\r\n" if "\r\n" in text else "\n"
    found = _UNIT.search(text)
    unit = found[1] if found else "  "
    outside = _indent(text, at)
    children = list(_children(text, at))
    if not children:
        inside = outside + unit
        body = line_end + inside + _shown(key, value, unit, line_end + inside) + line_end + outside
        return text[: at + 1] + body + text[_end(text, at) - 1 :]
    last = children[-1]
    between = text[at + 1 : children[0].begin]
    if "\n" not in between:
        return f"{text[: last.end]}, {_shown(key, value, '', '')}{text[last.end :]}"
    inside = _indent(text, last.begin)
    added = _shown(key, value, unit, line_end + inside)
    return f"{text[: last.end]},{line_end}{inside}{added}{text[last.end :]}"


def _indent(text: str, at: int) -> str:
    """Return the blanks that the line of a place begins with."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _shown(key: str | None, value: Any, unit: str, line: str) -> str:
    import json

    words = json.dumps(value, ensure_ascii=False, indent=unit or None)
    words = words.replace("\n", line) if unit else words
    return words if key is None else f"{json.dumps(key, ensure_ascii=False)}: {words}"
