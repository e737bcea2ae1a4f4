"""A brief without its secrets."""

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar, cast

import msgspec

from steno.report.brief.values import Brief
from steno.safe.masking import applied, edits_of
from steno.safe.secrets import hide_secrets

__all__ = ["masked"]

_NAMES: Final = frozenset(("id", "uuid", "hash", "kind", "state", "standing", "status", "origin"))
"""Fields that hold no words of a session, or names that would only be taken for a secret."""
_PERSONAL: Final = frozenset(("home", "e-mail"))
"""Stay: whoever is briefed works in those folders."""
_BETWEEN: Final = "\0\x1e\0"
T = TypeVar("T", bound=msgspec.Struct)


def masked(brief: Brief) -> Brief:
    """Return a brief in which everything that is a secret, or looks like one, is masked."""
    texts: dict[str, str] = {}
    _struct(brief, lambda text: texts.setdefault(text, text))
    return _struct(brief, _hidden(texts).__getitem__)


def _hidden(texts: Iterable[str]) -> dict[str, str]:
    """Return what each text becomes. They are looked at in one piece, which costs far less."""
    some = list(texts)
    parts = _without_families(_BETWEEN.join(some)).split(_BETWEEN)
    if len(parts) != len(some) or any(_BETWEEN in text for text in some):
        parts = [_without_families(text) for text in some]
    return {text: hide_secrets(part) for text, part in zip(some, parts, strict=True)}


def _without_families(text: str) -> str:
    data = text.encode("utf-8", "surrogatepass")
    edits = [edit for edit in edits_of(data) if edit.family not in _PERSONAL]
    return applied(data, edits).decode("utf-8", "surrogatepass") if edits else text


def _struct(value: T, mask: Callable[[str], str]) -> T:
    changes: dict[str, Any] = {}
    for name in value.__struct_fields__:
        if name in _NAMES:
            continue
        before = getattr(value, name)
        after = _value(before, mask)
        if after is not before:
            changes[name] = after
    return msgspec.structs.replace(value, **changes) if changes else value


def _value(value: Any, mask: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return mask(value) if value else value
    if isinstance(value, msgspec.Struct):
        return _struct(value, mask)
    if isinstance(value, tuple):
        return tuple(_value(each, mask) for each in cast("tuple[Any, ...]", value))
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return {mask(name): _value(each, mask) for name, each in pairs}
    return value
