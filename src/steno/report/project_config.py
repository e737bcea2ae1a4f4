"""Configuration of a project: memory, plans, to-dos, agents, settings, MCP servers.

Read from Claude Code's config directory and from the project directory.
"""

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

import msgspec

from steno.errors import Unreadable
from steno.format.client_settings import (
    PROJECT_SERVERS_FILE,
    PROJECT_SETTINGS_FILES,
    STATE_FILE,
    Hook,
    Settings,
    project_state,
    read_servers,
    read_settings,
)
from steno.format.lenient_json import as_object
from steno.format.sidecars import TaskItem, TodoItem, decode_json
from steno.report.session_list import SessionRow
from steno.sanitize.display_masking import hide_secrets
from steno.store.archive.file_access import open_transcript
from steno.store.client_folders import ConfigFolder, ProjectFolder
from steno.store.discovery import HEAD_SIZE, DiscoveredFile, peek

_MAX_NOTES: Final = 24
_MAX_NOTE_LENGTH: Final = 60_000
"""Maximum number of characters shown of a note."""
_MAX_PROMPT_LENGTH: Final = 400
_MAX_SIDECAR_SIZE: Final = 8 << 20
_MAX_DEFINITIONS: Final = 120
_SLUG: Final = re.compile(rb'"slug"\s*:\s*"([A-Za-z0-9][A-Za-z0-9_-]{0,99})"')
_DESCRIPTION: Final = re.compile(r"^description\s*:\s*(.+)$", re.MULTILINE)
_HOST: Final = re.compile(r"^[a-z]+://(?:[^/@]*@)?([^/?#]+)", re.IGNORECASE)


class ProjectNote(msgspec.Struct, frozen=True):
    """A memory file, instruction file or plan."""

    name: str
    source: str
    """Path of the file."""
    text: str
    more: int = 0
    """Number of characters omitted."""


class TypedPrompt(msgspec.Struct, frozen=True):
    """A prompt from the prompt history; `time` is in milliseconds."""

    text: str
    more: int
    time: int
    session: str


class SessionTodos(msgspec.Struct, frozen=True):
    """To-dos and tasks of a session."""

    session: str
    todos: tuple[TodoItem, ...]
    tasks: tuple[TaskItem, ...]

    @property
    def done(self) -> int:
        """Number of completed items."""
        return sum(item.status == "completed" for item in (*self.todos, *self.tasks))

    @property
    def total(self) -> int:
        """Number of items."""
        return len(self.todos) + len(self.tasks)


class CustomDefinition(msgspec.Struct, frozen=True):
    """A user-defined agent, skill or slash command."""

    kind: str
    name: str
    about: str
    source: str


class SettingsFile(msgspec.Struct, frozen=True):
    """A settings file, with secrets masked."""

    source: str
    settings: Settings


class McpServer(msgspec.Struct, frozen=True):
    """An MCP server: its name and its program or host, without arguments."""

    name: str
    kind: str
    what: str
    source: str


def is_config_folder(path: str) -> bool:
    """Return whether a path is an existing directory."""
    return bool(path) and os.path.isdir(path)


# Texts


def memory_notes(folder: ConfigFolder, slugs: Iterable[str]) -> list[ProjectNote]:
    """Return the memory notes of a project, `MEMORY.md` first."""
    files = [file for slug in slugs for file in folder.memory(slug)]
    files.sort(key=lambda each: (not each.path.endswith("MEMORY.md"), each.path))
    return [_note_from_file(folder, each, each.place.name) for each in files[:_MAX_NOTES]]


def plan_notes(folder: ConfigFolder, names: Iterable[str]) -> list[ProjectNote]:
    """Return the plans of sessions, by their slugs."""
    session_slugs_ = set(names)
    if not session_slugs_:
        return []
    files = [file for file in folder.plans() if file.place.name.partition("-agent-")[0] in session_slugs_]
    return [_note_from_file(folder, each, each.place.name) for each in files[:_MAX_NOTES]]


def _note_from_file(folder: ConfigFolder, note_file: DiscoveredFile, name: str) -> ProjectNote:
    return make_note(name, note_file.path, folder.text(note_file.path))


def make_note(name: str, source: str, text: str) -> ProjectNote:
    """Return a note, its text truncated to the maximum length."""
    return ProjectNote(name, source, text[:_MAX_NOTE_LENGTH], max(0, len(text) - _MAX_NOTE_LENGTH))


def session_slugs(rows: Iterable[SessionRow]) -> list[str]:
    """Return the slugs of sessions, from the head and tail of their files.

    A session gets its slug when it first needs one; only later records contain it.
    """
    slugs: dict[str, None] = {}
    for row in rows:
        try:
            source = open_transcript(row.path)
        except Unreadable:
            continue
        with source, suppress(Unreadable):
            for start in {0, max(0, row.size - HEAD_SIZE)}:
                for slug in _SLUG.findall(source.read(start, min(HEAD_SIZE, row.size - start))):
                    slugs[slug.decode()] = None
    return list(slugs)


# Prompts and to-dos


def typed_prompts(folder: ConfigFolder, project: str, limit: int) -> tuple[list[TypedPrompt], int]:
    """Return the latest prompts typed in a project, newest first, and the total number."""
    project_prompts = [prompt for prompt in folder.history() if prompt.project == project]
    newest = sorted(project_prompts, key=lambda each: each.timestamp, reverse=True)[:limit]
    return [
        TypedPrompt(
            each.display[:_MAX_PROMPT_LENGTH],
            max(0, len(each.display) - _MAX_PROMPT_LENGTH),
            each.timestamp,
            each.session_id,
        )
        for each in newest
    ], len(project_prompts)


def session_todos(folder: ConfigFolder, sessions: Iterable[str]) -> list[SessionTodos]:
    """Return the to-do lists and tasks of sessions; sessions without any are omitted."""
    todo_lists: list[SessionTodos] = []
    for name in sessions:
        todos = tuple(item for todo_list in folder.todos(name) for item in todo_list.items)
        tasks = tuple(folder.tasks(name))
        if todos or tasks:
            todo_lists.append(SessionTodos(name, todos, tasks))
    return todo_lists


# Agents, skills, commands


def user_definitions(folder: ConfigFolder) -> list[CustomDefinition]:
    """Return the agents, skills and commands of the user."""
    rows = (
        *(("agent", definition_file) for definition_file in folder.agent_defs()),
        *(("skill", each) for each in folder.skills()),
        *(("command", each) for each in folder.commands()),
    )
    return [
        parse_definition(kind, each.place.name, folder.text(each.path), "yours")
        for kind, each in rows[:_MAX_DEFINITIONS]
    ]


def parse_definition(kind: str, name: str, text: str, source: str) -> CustomDefinition:
    """Return an agent, skill or command from the front matter of its file."""
    front_matter = text[:4000].partition("---")[2].partition("\n---")[0] if text.startswith("---") else ""
    description = _DESCRIPTION.search(front_matter)
    shown_name = f"/{name.replace('/', ':')}" if kind == "command" else name
    return CustomDefinition(kind, shown_name, description[1].strip().strip("\"'")[:240] if description else "", source)


# Settings


def user_settings(folder: ConfigFolder) -> list[SettingsFile]:
    """Return the settings of the user."""
    files: list[SettingsFile] = []
    for local in (False, True):
        name = "settings.local.json" if local else "settings.json"
        parsed = folder.settings(local=local)
        if parsed is not None:
            files.append(SettingsFile(os.path.join(folder.path, name), _mask_settings(parsed)))
    return files


def parse_settings(raw: bytes, source: str) -> SettingsFile | None:
    """Parse the content of a settings file; None if it is not valid."""
    parsed = read_settings(raw)[0]
    return None if parsed is None else SettingsFile(source, _mask_settings(parsed))


def _mask_settings(parsed: Settings) -> Settings:
    """Also mask texts that look like secrets: commands and rules may contain secrets."""
    return Settings(
        model=parsed.model,
        allow=tuple(map(hide_secrets, parsed.allow)),
        ask=tuple(map(hide_secrets, parsed.ask)),
        deny=tuple(map(hide_secrets, parsed.deny)),
        hooks=tuple(Hook(hook.event, hook.matcher, hide_secrets(hook.command)) for hook in parsed.hooks),
        env_names=parsed.env_names,
        masked=hide_secrets(parsed.masked),
    )


def hooks_of_settings(settings_files: Iterable[SettingsFile]) -> list[tuple[Hook, str]]:
    """Return the hooks of settings files, each with the path of its file."""
    return [(hook, settings_file.source) for settings_file in settings_files for hook in settings_file.settings.hooks]


# MCP servers


def user_servers(folder: ConfigFolder, project: str) -> list[McpServer]:
    """Return the MCP servers in Claude Code's state file: for all projects, and for this project."""
    servers: list[McpServer] = []
    config_folder = os.path.abspath(folder.path)
    state_paths = [os.path.join(folder.path, STATE_FILE)]
    if os.path.basename(config_folder) == ".claude":
        state_paths.append(os.path.join(os.path.dirname(config_folder), STATE_FILE))
    for path in state_paths:
        raw = peek(path, _MAX_SIDECAR_SIZE, [])
        if raw is not None:
            state = as_object(decode_json(raw)) or {}
            servers += describe_servers(state, path)
            servers += describe_servers(project_state(state, project), f"{path}, this project")
    return servers


def describe_servers(config: dict[str, Any], source: str) -> list[McpServer]:
    """Return the MCP servers of a configuration, without their arguments."""
    servers: list[McpServer] = []
    for entry in read_servers(config)[:_MAX_DEFINITIONS]:
        transport = entry.declared_type
        if not isinstance(transport, str):
            transport = "http" if entry.has_url else "stdio"
        target = ""
        if entry.command:
            target = os.path.basename(entry.command.split(" ")[0])
        elif host := _HOST.match(entry.url):
            target = host[1]
        servers.append(McpServer(hide_secrets(entry.name), transport[:24], hide_secrets(target)[:120], source))
    return servers


_INSTRUCTION_FILES: Final = ("CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md", "AGENTS.md")
_DEFINITION_FOLDERS: Final = (
    ("agent", ".claude/agents", ".md"),
    ("skill", ".claude/skills", "/SKILL.md"),
    ("command", ".claude/commands", ".md"),
)
_MAX_FOLDER_DEFINITIONS: Final = 120


class ProjectFolderContent(msgspec.Struct, frozen=True):
    """Configuration found in a project directory."""

    there: bool
    notes: list[ProjectNote] = []
    settings: list[SettingsFile] = []
    servers: list[McpServer] = []
    defined: list[CustomDefinition] = []
    refused: list[str] = []
    """Names that resolve to a path outside the directory and were not read."""


def read_project_folder(path: str) -> ProjectFolderContent:
    """Read the configuration in a project directory; only files with known names are opened."""
    folder = ProjectFolder(path)
    if not folder.exists:
        return ProjectFolderContent(there=False)
    # An instruction file is often a link to or a copy of another: show it once, with all its names.
    texts: dict[str, list[str]] = {}
    for instruction_file in map(folder.text, _INSTRUCTION_FILES):
        if instruction_file is not None:
            texts.setdefault(instruction_file.text, []).append(instruction_file.name)
    notes = [make_note(", ".join(names), names[0], text) for text, names in texts.items()]
    settings_files: list[SettingsFile] = []
    for name in PROJECT_SETTINGS_FILES.values():
        raw_settings = folder.read(name)
        instruction_file = parse_settings(raw_settings[0], name) if raw_settings is not None else None
        if instruction_file is not None:
            settings_files.append(instruction_file)
    servers_file = folder.read(PROJECT_SERVERS_FILE)
    servers_config = as_object(decode_json(servers_file[0])) if servers_file is not None else None
    return ProjectFolderContent(
        there=True,
        notes=notes,
        settings=settings_files,
        servers=describe_servers(servers_config or {}, PROJECT_SERVERS_FILE),
        defined=_folder_definitions(folder)[:_MAX_FOLDER_DEFINITIONS],
        refused=folder.refused_names,
    )


def _folder_definitions(folder: ProjectFolder) -> list[CustomDefinition]:
    definitions: list[CustomDefinition] = []
    for kind, folder_name, ending in _DEFINITION_FOLDERS:
        for name in folder.list_names(folder_name, ending.lstrip("/")):
            if not name.endswith(ending):
                continue
            text = folder.text(name)
            definition_name = name.removeprefix(f"{folder_name}/").removesuffix(ending)
            if text is not None:
                definitions.append(parse_definition(kind, definition_name, text.text, "project"))
    return definitions
