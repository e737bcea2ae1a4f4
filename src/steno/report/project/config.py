"""What the client's config folder keeps of a project."""

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final, cast

import msgspec

from steno.errors import Unreadable
from steno.format.settings import Hook, Settings, settings
from steno.format.sidecars import TaskItem, TodoItem, decoded
from steno.report.listing import Listed
from steno.safe.secrets import hide_secrets
from steno.store.archive.opened import open_anywhere
from steno.store.folder import ConfigFolder
from steno.store.found import HEAD, Found, peek

__all__ = [
    "Defined",
    "Note",
    "Server",
    "Shown",
    "Todo",
    "Typed",
    "defined",
    "hooks_in",
    "is_config",
    "lists_of",
    "memory_of",
    "named_in",
    "note_of",
    "plans_of",
    "prompts_of",
    "servers_in",
    "settings_of",
    "shown_settings",
    "slugs_of",
    "user_defined",
    "user_servers",
]

_NOTES: Final = 24
_LETTERS: Final = 60_000
"""How much of a note is shown."""
_PROMPT: Final = 400
_SIDECAR: Final = 8 << 20
_DEFINED: Final = 120
_SLUG: Final = re.compile(rb'"slug"\s*:\s*"([A-Za-z0-9][A-Za-z0-9_-]{0,99})"')
_ABOUT: Final = re.compile(r"^description\s*:\s*(.+)$", re.MULTILINE)
_HOST: Final = re.compile(r"^[a-z]+://(?:[^/@]*@)?([^/?#]+)", re.IGNORECASE)


class Note(msgspec.Struct, frozen=True):
    """A text that somebody keeps: memory, instructions, a plan."""

    name: str
    source: str
    """Where it lies."""
    text: str
    more: int = 0
    """How many letters were left out."""


class Typed(msgspec.Struct, frozen=True):
    """A prompt as it was typed; `time` is in milliseconds."""

    text: str
    more: int
    time: int
    session: str


class Todo(msgspec.Struct, frozen=True):
    """What a session had set out to do."""

    session: str
    todos: tuple[TodoItem, ...]
    tasks: tuple[TaskItem, ...]

    @property
    def done(self) -> int:
        """How much of it is done."""
        return sum(each.status == "completed" for each in (*self.todos, *self.tasks))

    @property
    def total(self) -> int:
        """How much there is."""
        return len(self.todos) + len(self.tasks)


class Defined(msgspec.Struct, frozen=True):
    """An agent, skill or slash command that somebody wrote."""

    kind: str
    name: str
    about: str
    source: str


class Shown(msgspec.Struct, frozen=True):
    """A settings file, its secrets masked."""

    source: str
    settings: Settings


class Server(msgspec.Struct, frozen=True):
    """An MCP server: only its name, and what runs or answers; never its arguments."""

    name: str
    kind: str
    what: str
    source: str


def is_config(path: str) -> bool:
    """Whether a folder is a client's config folder."""
    return bool(path) and os.path.isdir(path)


# Texts


def memory_of(folder: ConfigFolder, slugs: Iterable[str]) -> list[Note]:
    """Return the memory notes of a project, `MEMORY.md` first."""
    found = [each for slug in slugs for each in folder.memory(slug)]
    found.sort(key=lambda each: (not each.path.endswith("MEMORY.md"), each.path))
    return [_note(folder, each, each.place.name) for each in found[:_NOTES]]


def plans_of(folder: ConfigFolder, names: Iterable[str]) -> list[Note]:
    """Return the plans that sessions of some names made."""
    wanted = set(names)
    if not wanted:
        return []
    found = [each for each in folder.plans() if each.place.name.partition("-agent-")[0] in wanted]
    return [_note(folder, each, each.place.name) for each in found[:_NOTES]]


def _note(folder: ConfigFolder, found: Found, name: str) -> Note:
    return note_of(name, found.path, folder.text(found.path))


def note_of(name: str, source: str, text: str) -> Note:
    """Return a text as it is shown, its end left out if it is long."""
    return Note(name, source, text[:_LETTERS], max(0, len(text) - _LETTERS))


def slugs_of(rows: Iterable[Listed]) -> list[str]:
    """Return the names in words that sessions go by, from both ends of their files.

    A session gets its name when it first needs one, and its records bear it from then on.
    """
    found: dict[str, None] = {}
    for row in rows:
        try:
            source = open_anywhere(row.path)
        except Unreadable:
            continue
        with source, suppress(Unreadable):
            for start in {0, max(0, row.size - HEAD)}:
                for name in _SLUG.findall(source.read(start, min(HEAD, row.size - start))):
                    found[name.decode()] = None
    return list(found)


# What was typed, and what was to be done


def prompts_of(folder: ConfigFolder, project: str, limit: int) -> tuple[list[Typed], int]:
    """Return the last prompts that were typed in a project, the newest first, and their number."""
    mine = [each for each in folder.history() if each.project == project]
    newest = sorted(mine, key=lambda each: each.timestamp, reverse=True)[:limit]
    return [
        Typed(
            each.display[:_PROMPT],
            max(0, len(each.display) - _PROMPT),
            each.timestamp,
            each.session_id,
        )
        for each in newest
    ], len(mine)


def lists_of(folder: ConfigFolder, sessions: Iterable[str]) -> list[Todo]:
    """Return the to-do lists and tasks of some sessions; those with nothing on them are left out."""
    made: list[Todo] = []
    for name in sessions:
        todos = tuple(item for each in folder.todos(name) for item in each.items)
        tasks = tuple(folder.tasks(name))
        if todos or tasks:
            made.append(Todo(name, todos, tasks))
    return made


# Agents, skills, commands


def user_defined(folder: ConfigFolder) -> list[Defined]:
    """Return what the user wrote for all projects."""
    rows = (
        *(("agent", each) for each in folder.agent_defs()),
        *(("skill", each) for each in folder.skills()),
        *(("command", each) for each in folder.commands()),
    )
    return [
        defined(kind, each.place.name, folder.text(each.path), "yours")
        for kind, each in rows[:_DEFINED]
    ]


def defined(kind: str, name: str, text: str, source: str) -> Defined:
    """Return an agent, skill or command by what stands at the head of its file."""
    head = text[:4000].partition("---")[2].partition("\n---")[0] if text.startswith("---") else ""
    about = _ABOUT.search(head)
    shown = f"/{name.replace('/', ':')}" if kind == "command" else name
    return Defined(kind, shown, about[1].strip().strip("\"'")[:240] if about else "", source)


# Settings


def settings_of(folder: ConfigFolder) -> list[Shown]:
    """Return the user's settings."""
    made: list[Shown] = []
    for local in (False, True):
        name = "settings.local.json" if local else "settings.json"
        found = folder.settings(local=local)
        if found is not None:
            made.append(Shown(os.path.join(folder.path, name), _hidden(found)))
    return made


def shown_settings(raw: bytes, source: str) -> Shown | None:
    """Return settings that were read elsewhere."""
    found = settings(raw)[0]
    return None if found is None else Shown(source, _hidden(found))


def _hidden(found: Settings) -> Settings:
    """Mask also what only looks like a secret: nobody meant it to be in a command."""
    return Settings(
        model=found.model,
        allow=tuple(map(hide_secrets, found.allow)),
        ask=tuple(map(hide_secrets, found.ask)),
        deny=tuple(map(hide_secrets, found.deny)),
        hooks=tuple(
            Hook(hook.event, hook.matcher, hide_secrets(hook.command)) for hook in found.hooks
        ),
        env_names=found.env_names,
        masked=hide_secrets(found.masked),
    )


def hooks_in(shown: Iterable[Shown]) -> list[tuple[Hook, str]]:
    """Return the hooks of some settings, each with where it stands."""
    return [(hook, each.source) for each in shown for hook in each.settings.hooks]


# MCP servers


def user_servers(folder: ConfigFolder, project: str) -> list[Server]:
    """Return the servers in the client's own state file: for all projects, and for this one."""
    made: list[Server] = []
    beside = os.path.dirname(os.path.abspath(folder.path))
    places = [os.path.join(folder.path, ".claude.json")]
    if os.path.basename(os.path.abspath(folder.path)) == ".claude":
        places.append(os.path.join(beside, ".claude.json"))
    for path in places:
        raw = peek(path, _SIDECAR, [])
        if raw is None:
            continue
        top = _object(decoded(raw))
        made += named_in(top, path)
        made += named_in(
            _object(_object(top.get("projects")).get(project)), f"{path}, this project"
        )
    return made


def servers_in(raw: bytes, source: str) -> list[Server]:
    """Return the servers of a `.mcp.json`."""
    return named_in(_object(decoded(raw)), source)


def named_in(top: dict[str, Any], source: str) -> list[Server]:
    """Return the servers that an object names."""
    made: list[Server] = []
    for name, value in _object(top.get("mcpServers")).items():
        fields = _object(value)
        command, url = fields.get("command"), fields.get("url")
        kind = fields.get("type")
        said = kind if isinstance(kind, str) else "http" if url else "stdio"
        what = ""
        if isinstance(command, str):
            what = os.path.basename(command.split(" ")[0])
        elif isinstance(url, str) and (host := _HOST.match(url)):
            what = host[1]
        made.append(Server(hide_secrets(name), said[:24], hide_secrets(what)[:120], source))
    return made[:_DEFINED]


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
