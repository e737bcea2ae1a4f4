"""Hooks as settings name them: events, groups with a matcher, and in each the programs to run."""

from typing import Any, Final

import msgspec

from steno.agent.around_files import Note, strings, text_in
from steno.agent.settings_layers import Layer, Source
from steno.format.values import as_list, as_object

__all__ = ["Hook", "hooks_of"]

_DEFAULT_TIMEOUT: Final = 60.0


class Hook(msgspec.Struct, frozen=True, kw_only=True):
    """One program that runs at an event."""

    event: str
    command: str
    matcher: str = ""
    args: tuple[str, ...] | None = None
    """Where given, the command is run with these and without a shell."""
    timeout: float = _DEFAULT_TIMEOUT
    layer: Layer = "user"
    condition: str = ""
    """A permission rule (`if`) that the tool call must fit."""
    background: bool = False
    """Whether nobody waits for it (`async`)."""


def hooks_of(source: Source, events: dict[str, Any], notes: list[Note]) -> list[Hook]:
    """Return the hooks of a layer, in order; what cannot be run is noted."""
    hooks: list[Hook] = []
    for event, groups in events.items():
        for group in _objects(groups):
            for entry in _objects(group.get("hooks")):
                hook = _hook(source, event, group, entry)
                if hook is None:
                    kind = entry.get("type", "command")
                    words = f"a hook of `{event}` is left out: nothing to run of type `{kind}`"
                    notes.append(Note(source.path, words))
                else:
                    hooks.append(hook)
    return hooks


def _hook(source: Source, event: str, group: dict[str, Any], entry: dict[str, Any]) -> Hook | None:
    command = text_in(entry, "command")
    if entry.get("type", "command") != "command" or not command:
        return None
    timeout: Any = entry.get("timeout")
    args = entry.get("args")
    good = isinstance(timeout, int | float) and not isinstance(timeout, bool) and timeout > 0
    return Hook(
        event=event,
        command=command,
        matcher=text_in(group, "matcher"),
        args=None if args is None else strings(args),
        timeout=float(timeout) if good else _DEFAULT_TIMEOUT,
        layer=source.layer,
        condition=text_in(entry, "if"),
        background=entry.get("async") is True,
    )


def _objects(value: Any) -> list[dict[str, Any]]:
    return [as_object(item) or {} for item in as_list(value) or ()]
