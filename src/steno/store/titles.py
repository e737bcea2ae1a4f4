"""The title that lies beside a session, in a small file of its own."""

import os
from typing import Final

import msgspec

from steno.store.archive.opened import Archived
from steno.store.found import Found, peek

__all__ = ["given_title"]

_MOST: Final = 1 << 16


class _Given(msgspec.Struct, rename="camel"):
    custom_title: str | None = None


def given_title(found: Found) -> str:
    """Return the title that the newest clients keep beside the session."""
    path = os.path.join(found.path.removesuffix(".jsonl"), "custom-title.json")
    if isinstance(found, Archived):
        from steno.store.archive.gone import beside

        raw = beside(found, path, _MOST)
    else:
        raw = peek(path, _MOST, [])
    try:
        return (msgspec.json.decode(raw, type=_Given).custom_title or "") if raw else ""
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""
