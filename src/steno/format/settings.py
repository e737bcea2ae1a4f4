"""A `settings.json` that can be shown: what it allows and runs, its secrets masked."""

import re
from collections.abc import Mapping
from typing import Final, cast

import msgspec

from steno.format.sidecars import Read, decoded
from steno.format.spans import Damage, Span

__all__ = ["MASK", "Hook", "Settings", "settings"]

MASK: Final = "<masked>"
_SECRET: Final = re.compile(
    r"token|key|secret|passw|passphrase|credential|authorization|cookie", re.IGNORECASE
)
_MAX_DEPTH: Final = 64


class Hook(msgspec.Struct, frozen=True):
    """One command that the client runs at an event."""

    event: str
    matcher: str = ""
    command: str = ""


class Settings(msgspec.Struct, frozen=True):
    """The parts of a settings file that people ask about, and all of it as masked JSON text."""

    model: str = ""
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    hooks: tuple[Hook, ...] = ()
    env_names: tuple[str, ...] = ()
    masked: str = "{}"


def settings(raw: bytes) -> Read[Settings | None]:
    """Read a settings file. Values of `env` and of keys that sound secret never get out of here."""
    value = decoded(raw)
    if not isinstance(value, dict):
        message = "not JSON" if value is None else "JSON, but not an object"
        kind = "sidecar.not-json" if value is None else "sidecar.not-object"
        return None, (Damage(kind, Span(0, len(raw)), message),)
    top = cast("dict[str, object]", value)
    rules = _object(top.get("permissions"))
    shown = msgspec.json.encode(_masked(top, hide=False, depth=0))
    return (
        Settings(
            model=_string(top.get("model")),
            allow=_strings(rules.get("allow")),
            ask=_strings(rules.get("ask")),
            deny=_strings(rules.get("deny")),
            hooks=tuple(_hooks(_object(top.get("hooks")))),
            env_names=tuple(_object(top.get("env"))),
            masked=msgspec.json.format(shown, indent=2).decode(),
        ),
        (),
    )


def _hooks(events: Mapping[str, object]) -> list[Hook]:
    return [
        Hook(event, _string(group.get("matcher")), _string(hook.get("command")))
        for event, groups in events.items()
        for group in map(_object, _list(groups))
        for hook in map(_object, _list(group.get("hooks")))
    ]


def _masked(value: object, *, hide: bool, depth: int) -> object:
    """Copy a JSON value; below a key that sounds secret every string and number is masked."""
    if depth > _MAX_DEPTH:
        return MASK
    if isinstance(value, dict):
        return {
            name: _masked(item, hide=hide or name == "env" or _secret(name), depth=depth + 1)
            for name, item in cast("dict[str, object]", value).items()
        }
    if isinstance(value, list):
        items = cast("list[object]", value)
        return [_masked(item, hide=hide, depth=depth + 1) for item in items]
    return value if not hide or value is None or isinstance(value, bool) else MASK


def _secret(name: str) -> bool:
    return _SECRET.search(name) is not None


def _object(value: object) -> Mapping[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _strings(value: object) -> tuple[str, ...]:
    return tuple(item for item in _list(value) if isinstance(item, str))
