"""Where settings stand: layer over layer, as Claude Code reads them.

managed  /etc/claude-code/managed-settings.json      nothing is above it
flags    what the command line gave, a file or JSON
local    .claude/settings.local.json
project  .claude/settings.json
user     settings.json in the config folder

What of a project's two layers counts, before and after its folder is trusted, says `guard.trust`.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from steno.agent.around_files import Note, read_text
from steno.guard import trust
from steno.store.places import config_dir

__all__ = ["LAYERS", "MANAGED", "OF_PROJECT", "Layer", "Source", "read_sources"]

Layer: TypeAlias = trust.Source
LAYERS: tuple[Layer, ...] = ("managed", "flags", "local", "project", "user")
MANAGED: Final = "/etc/claude-code/managed-settings.json"
OF_PROJECT: Final = trust.FROM_PROJECT
"""The layers that whoever wrote the project has a say in."""


class Source(msgspec.Struct, frozen=True):
    """One layer's text, and where it was read."""

    layer: Layer
    path: str
    text: str


def read_sources(
    project: str,
    notes: list[Note],
    *,
    flags: str = "",
    env: Mapping[str, str] | None = None,
    managed: str = MANAGED,
) -> list[Source]:
    """Return the text of every layer that there is, the highest first."""
    sources: list[Source] = []
    places: dict[Layer, Path] = {
        "managed": Path(managed),
        "local": Path(project, ".claude", "settings.local.json"),
        "project": Path(project, ".claude", "settings.json"),
        "user": Path(config_dir(os.environ if env is None else env), "settings.json"),
    }
    for layer in LAYERS:
        if layer == "flags":
            sources += _of_flags(flags, notes)
            continue
        path = places[layer]
        # A project in the config folder's parent would otherwise count as the user's own.
        if layer == "project" and path == places["user"]:
            continue
        text = read_text(path, notes)
        if text is not None:
            sources.append(Source(layer, str(path), text))
    return sources


def _of_flags(flags: str, notes: list[Note]) -> list[Source]:
    if not flags.strip():
        return []
    if flags.lstrip().startswith("{"):
        return [Source("flags", "--settings", flags)]
    text = read_text(Path(flags), notes)
    if text is None:
        notes.append(Note(flags, "there is no such settings file"))
        return []
    return [Source("flags", flags, text)]
