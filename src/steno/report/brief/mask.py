"""A brief without its secrets."""

import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, TypeVar, cast

import msgspec

from steno.report.brief.values import Brief
from steno.safe.secrets import hide_known_secrets, hide_secrets

__all__ = ["masked"]

_NAMES: Final = frozenset(("hash", "state", "standing", "origin"))
"""Fields that hold no words of a session, or names that would only be taken for a secret."""
_IDS: Final = frozenset(("id", "uuid", "agent_id", "call_id", "parent_id", "compacted_tool_ids"))
"""Fields that hold ids, long enough to be taken for a secret."""
_ID: Final = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?:srv)?toolu_\w{1,40}|a?[0-9a-f]{1,32}",
    re.ASCII | re.IGNORECASE,
)
"""What ids look like; anything else in their place is masked as text."""
T = TypeVar("T", bound=msgspec.Struct)


def masked(brief: Brief) -> Brief:
    """Return a brief in which everything that is a secret, or looks like one, is masked.

    Homes and addresses stay: whoever is briefed works there.
    """
    return _struct(brief, lru_cache(maxsize=None)(hide_secrets))


def _struct(value: T, mask: Callable[[str], str]) -> T:
    changes: dict[str, Any] = {}
    for name in value.__struct_fields__:
        if name in _NAMES:
            continue
        before = getattr(value, name)
        if name == "input":
            after = _input(before, mask)
        else:
            after = _value(before, _only_ids(mask) if name in _IDS else mask)
        if after is not before:
            changes[name] = after
    return msgspec.structs.replace(value, **changes) if changes else value


def _only_ids(mask: Callable[[str], str]) -> Callable[[str], str]:
    """Return what leaves ids as they are, and masks everything else."""
    return lambda text: text if _ID.fullmatch(text) else mask(text)


def _input(given: dict[str, Any], mask: Callable[[str], str]) -> dict[str, Any]:
    """Return the parameters of a call: a name such as `password` says that its value is a secret."""
    text = json.dumps(given, ensure_ascii=False)
    hidden = hide_known_secrets(text)
    found: Any = given if hidden == text else json.loads(hidden)
    return _value(found, mask)


def _value(value: Any, mask: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return mask(value) if value else value
    if isinstance(value, msgspec.Struct):
        return _struct(value, mask)
    if isinstance(value, tuple):
        return tuple(_value(each, mask) for each in cast("tuple[Any, ...]", value))
    if isinstance(value, list):
        return [_value(each, mask) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return {mask(name): _value(each, mask) for name, each in pairs}
    return value
