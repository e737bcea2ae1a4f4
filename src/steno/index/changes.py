"""How many lines a change puts in and takes out."""

from collections.abc import Sequence
from typing import Any, cast

import msgspec

from steno.format.loose import REFUSED

__all__ = ["lines_changed", "lines_in_patch", "shared_ends"]


class _Hunk(msgspec.Struct, gc=False):
    lines: list[str] = []


class _Patch(msgspec.Struct, rename="camel", gc=False):
    type: str | None = None
    structured_patch: list[_Hunk] | None = None


def lines_in_patch(result: msgspec.Raw) -> tuple[int, int] | None:
    """Return the lines of the patch that the client kept with a result; None where it kept none.

    >>> lines_in_patch(msgspec.Raw(b'{"structuredPatch":[{"lines":[" a","-b","+c","+d"]}]}'))
    (2, 1)
    """
    try:
        kept = msgspec.json.decode(result, type=_Patch)
    except REFUSED:
        return None
    patch = kept.structured_patch
    if patch is None or (not patch and kept.type == "create"):
        return None
    first = [line[:1] for hunk in patch for line in hunk.lines]
    return first.count("+"), first.count("-")


def lines_changed(given: dict[str, Any]) -> tuple[int, int]:
    r"""Return how many lines a call asks to put in and to take out.

    >>> lines_changed({"old_string": "a\nb\nc", "new_string": "a\nx\ny\nc"})
    (2, 1)
    """
    edits = given.get("edits")
    changes = cast("list[Any]", edits) if isinstance(edits, list) else [given]
    added = removed = 0
    for change in changes:
        if isinstance(change, dict):
            texts = cast("dict[str, Any]", change)
            new = texts.get("new_string", texts.get("content", texts.get("new_source")))
            came, went = _changed(_lines(texts.get("old_string")), _lines(new))
            added += came
            removed += went
    return added, removed


def _changed(old: list[str], new: list[str]) -> tuple[int, int]:
    """Return how many lines come and go; those that stay around the change are not counted."""
    head, tail = shared_ends(old, new)
    return len(new) - head - tail, len(old) - head - tail


def shared_ends(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """Return how many lines two texts have in common at their beginning, and at their end."""
    most = min(len(old), len(new))
    head = tail = 0
    while head < most and old[head] == new[head]:
        head += 1
    while tail < most - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return head, tail


def _lines(text: Any) -> list[str]:
    if not isinstance(text, str) or not text:
        return []
    return text.removesuffix("\n").split("\n")
