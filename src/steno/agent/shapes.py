"""Whether a value has the shape that a JSON schema asks for, in words for a model.

The common keywords are held to. What is not known here is not checked, as schemas have it.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from steno.format.values import as_list, as_object

__all__ = ["shape_flaw"]

_DEEPEST: Final = 64
_LOOKS: Final = 100_000


def shape_flaw(schema: dict[str, Any], value: Any) -> str:
    """Return the first thing in a value that is not as the schema wants it; nothing if all is.

    >>> shape_flaw({"properties": {"n": {"type": "integer"}}}, {"n": "1"})
    'n must be an integer'
    """
    return next(_Check(schema).flaws(schema, value, "", 0), "")


class _Check:
    """One check of one value."""

    def __init__(self, whole: dict[str, Any]) -> None:
        self._whole = whole
        self._looks = 0

    def flaws(self, schema: object, value: Any, path: str, depth: int) -> Iterator[str]:
        """Yield what is wrong with a value, said by where it is."""
        name = path or "the answer"
        if schema is False:
            yield f"{name} must not be there"
        asked = as_object(schema)
        self._looks += 1
        # A shape may be made of itself, twice over.
        if asked is None or depth > _DEEPEST or self._looks > _LOOKS:
            return
        if isinstance(reference := asked.get("$ref"), str):
            yield from self.flaws(self._referred(reference), value, path, depth + 1)
        yield from (f"{name} must {words}" for words in _plain(asked, value))
        if isinstance(value, dict):
            yield from self._in_object(asked, as_object(value) or {}, path, depth)
        elif isinstance(value, list):
            yield from self._in_list(asked, as_list(value) or [], path, depth)
        yield from self._together(asked, value, path, depth)

    def _in_object(
        self, asked: dict[str, Any], value: dict[str, Any], path: str, depth: int
    ) -> Iterator[str]:
        known = as_object(asked.get("properties")) or {}
        for name in as_list(asked.get("required")) or ():
            if name not in value:
                yield f"{_under(path, str(name))} is missing"
        more: object = asked.get("additionalProperties", True)
        for name, item in value.items():
            schema: object = known.get(name, more)
            if schema is False and name not in known:
                yield f"{_under(path, name)} is not known"
            else:
                yield from self.flaws(schema, item, _under(path, name), depth + 1)

    def _in_list(
        self, asked: dict[str, Any], value: list[Any], path: str, depth: int
    ) -> Iterator[str]:
        first = as_list(asked.get("prefixItems")) or []
        for place, item in enumerate(value):
            schema: object = first[place] if place < len(first) else asked.get("items", True)
            yield from self.flaws(schema, item, f"{path}[{place}]", depth + 1)

    def _together(self, asked: dict[str, Any], value: Any, path: str, depth: int) -> Iterator[str]:
        for schema in as_list(asked.get("allOf")) or ():
            yield from self.flaws(schema, value, path, depth + 1)
        for word in ("anyOf", "oneOf"):
            some = as_list(asked.get(word))
            if not some:
                continue
            wrong = [next(self.flaws(each, value, path, depth + 1), "") for each in some]
            if all(wrong):
                yield wrong[0]
            elif word == "oneOf" and wrong.count("") > 1:
                yield f"{path or 'the answer'} must fit only one of the shapes for it"

    def _referred(self, reference: str) -> object:
        found: Any = self._whole
        for part in reference.removeprefix("#").split("/")[1:]:
            found = (as_object(found) or {}).get(part.replace("~1", "/").replace("~0", "~"))
        return found


def _under(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_KINDS: Final[dict[str, tuple[str, Callable[[Any], bool]]]] = {
    "object": ("an object", lambda value: isinstance(value, dict)),
    "array": ("an array", lambda value: isinstance(value, list)),
    "string": ("a string", lambda value: isinstance(value, str)),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "null": ("null", lambda value: value is None),
    "number": ("a number", _is_number),
    "integer": ("an integer", lambda value: _is_number(value) and value == int(value)),
}


def _plain(asked: dict[str, Any], value: Any) -> Iterator[str]:
    """Yield what a value must be by what is said of itself, and is not."""
    kinds = asked.get("type")
    named = [kinds] if isinstance(kinds, str) else as_list(kinds) or []
    known = [_KINDS[kind] for kind in named if kind in _KINDS]
    if known and len(known) == len(named) and not any(fits(value) for _, fits in known):
        yield f"be {' or '.join(words for words, _ in known)}"
        return
    choices = as_list(asked.get("enum"))
    if choices is not None and not any(_same(value, each) for each in choices):
        yield f"be one of {', '.join(map(repr, choices))}"
    if "const" in asked and not _same(value, asked["const"]):
        yield f"be {asked['const']!r}"
    yield from _within(asked, value)


def _within(asked: dict[str, Any], value: Any) -> Iterator[str]:
    """Yield the bounds that a value leaves."""
    if _is_number(value):
        yield from _bounds(asked, value, ("minimum", "maximum"), "")
    elif isinstance(value, str):
        yield from _bounds(asked, len(value), ("minLength", "maxLength"), " letters long")
        pattern = asked.get("pattern")
        if isinstance(pattern, str) and not _matches(pattern, value):
            yield f"match {pattern}"
    elif isinstance(value, list):
        size = len(as_list(value) or [])
        yield from _bounds(asked, size, ("minItems", "maxItems"), " items long")


def _bounds(
    asked: dict[str, Any], size: float, names: tuple[str, str], words: str
) -> Iterator[str]:
    least, most = (asked.get(name) for name in names)
    if isinstance(least, int | float) and size < least:
        yield f"be at least {least}{words}"
    if isinstance(most, int | float) and size > most:
        yield f"be at most {most}{words}"


def _matches(pattern: str, value: str) -> bool:
    try:
        return re.search(pattern, value) is not None
    except re.error:
        # Of another dialect: what is not understood is not held to.
        return True


def _same(one: object, other: object) -> bool:
    """Whether two values are the same in JSON, where true is no number."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)
