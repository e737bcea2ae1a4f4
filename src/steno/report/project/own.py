"""What lies in a project's own folder, where that is still there."""

from typing import Final

import msgspec

from steno.report.project.config import (
    Defined,
    Note,
    Server,
    Shown,
    defined,
    note_of,
    servers_in,
    shown_settings,
)
from steno.store.project import ProjectFolder

__all__ = ["Own", "own_of"]

_TOLD: Final = ("CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md", "AGENTS.md")
_SETTINGS: Final = (".claude/settings.json", ".claude/settings.local.json")
_DEFINED: Final = (
    ("agent", ".claude/agents", ".md"),
    ("skill", ".claude/skills", "/SKILL.md"),
    ("command", ".claude/commands", ".md"),
)
_MOST: Final = 120


class Own(msgspec.Struct, frozen=True):
    """What a project says of itself."""

    there: bool
    notes: list[Note] = []
    settings: list[Shown] = []
    servers: list[Server] = []
    defined: list[Defined] = []
    refused: list[str] = []
    """Names that lead out of the folder, and were not followed."""


def own_of(path: str) -> Own:
    """Look into the folder; nothing but files of known names is opened."""
    folder = ProjectFolder(path)
    if not folder.is_there:
        return Own(there=False)
    # One is often a link to, or a copy of, another: that is shown once, by all its names.
    texts: dict[str, list[str]] = {}
    for found in map(folder.text, _TOLD):
        if found is not None:
            texts.setdefault(found.text, []).append(found.name)
    notes = [note_of(", ".join(names), names[0], text) for text, names in texts.items()]
    shown: list[Shown] = []
    for name in _SETTINGS:
        read = folder.read(name)
        found = shown_settings(read[0], name) if read is not None else None
        if found is not None:
            shown.append(found)
    servers = folder.read(".mcp.json")
    return Own(
        there=True,
        notes=notes,
        settings=shown,
        servers=servers_in(servers[0], ".mcp.json") if servers is not None else [],
        defined=_defined(folder)[:_MOST],
        refused=folder.refused,
    )


def _defined(folder: ProjectFolder) -> list[Defined]:
    made: list[Defined] = []
    for kind, below, ending in _DEFINED:
        for name in folder.names(below, ending.lstrip("/")):
            if not name.endswith(ending):
                continue
            text = folder.text(name)
            short = name.removeprefix(f"{below}/").removesuffix(ending)
            if text is not None:
                made.append(defined(kind, short, text.text, "project"))
    return made
