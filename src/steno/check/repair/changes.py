"""What an edit changes, cut to what a person can read: a field, or the blocks of a message."""

from collections.abc import Iterator
from typing import Any, Final, cast

import msgspec

from steno.format.encode import encode

__all__ = ["LONGEST", "Change", "changes_of"]

LONGEST: Final = 2000
"""As many characters of a value are kept; a longer one becomes the beginning of its JSON."""


class Change(msgspec.Struct, frozen=True):
    """One field, before and after."""

    field: str
    before: Any
    after: Any


def changes_of(before: dict[str, Any], after: dict[str, Any], under: str = "") -> Iterator[Change]:
    """Yield the fields that differ; of objects the fields in them, of lists the items."""
    for key in {**before, **after}:
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        name = f"{under}{key}"
        if isinstance(old, dict) and isinstance(new, dict):
            inner = cast("dict[str, Any]", old), cast("dict[str, Any]", new)
            yield from changes_of(*inner, f"{name}.")
        elif isinstance(old, list) and isinstance(new, list):
            removed, added = cast("list[Any]", old), cast("list[Any]", new)
            yield Change(name, _short(_without(removed, added)), _short(_without(added, removed)))
        else:
            yield Change(name, _short(old), _short(new))


def _without(items: list[Any], others: list[Any]) -> list[Any]:
    """Return the items that are not among the others."""
    known = {encode(item) for item in others}
    return [item for item in items if encode(item) not in known]


def _short(value: Any) -> Any:
    """Return a value, or the beginning of how it is written."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else encode(value).decode("utf-8", "replace")
    return f"{text[:LONGEST]}…" if len(text) > LONGEST else value
