"""A whole config folder, part by part: what it holds besides transcripts, as typed lists.

Names that come from session text (a session id, a backup's name, the path of a saved tool result)
are only ever looked up inside the folder they belong to.
"""

import os
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

import msgspec

from steno.format import sidecars
from steno.format.paths import Role, meta_path
from steno.format.settings import Settings, settings
from steno.format.sidecars import (
    AgentMeta,
    FileBackup,
    HistoryEntry,
    LiveProcess,
    Read,
    SessionsIndex,
    TaskItem,
    TodoItem,
)
from steno.format.spans import Damage
from steno.store.discover import config_of, discover, files_below
from steno.store.found import Found, Problem, is_folder, listed, peek

__all__ = ["Backup", "ConfigFolder", "FileDamage", "TodoList", "tool_result_path"]

T = TypeVar("T")
MAX_SIDECAR: Final = 64 << 20
# On Windows a colon opens a stream of a file, a drive or a device.
_LEADING_OUT: Final = frozenset("/\\\0:" if os.name == "nt" else "/\0")


class FileDamage(msgspec.Struct, frozen=True):
    """Damage met in one of the small files."""

    path: str
    damage: Damage


class TodoList(msgspec.Struct, frozen=True):
    """One to-do list: the session's own, or that of a sub-agent."""

    found: Found
    items: tuple[TodoItem, ...]


class Backup(msgspec.Struct, frozen=True):
    """A file as it was before a turn changed it."""

    found: Found
    name: FileBackup


def tool_result_path(session: str, recorded: str) -> str | None:
    r"""Return the saved tool result that a session speaks of, or None if it is not there.

    `recorded` is the path in the record, from whatever machine wrote it (with `/` or `\`); only
    its last part is used, and only inside the session's own folder.
    """
    name = recorded.replace("\\", "/").rpartition("/")[2]
    base = session.removesuffix(".jsonl")
    if not _plain(name) or base == session:
        return None
    path = os.path.join(base, "tool-results", name)
    return path if os.path.isfile(path) else None


def _plain(name: str) -> bool:
    """Say whether a name stays in the folder it is looked up in."""
    return name not in {"", ".", ".."} and _LEADING_OUT.isdisjoint(name)


class ConfigFolder:
    """A client's config folder. `problems` and `damage` fill up as parts are read."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.problems: list[Problem] = []
        self.damage: list[FileDamage] = []

    @classmethod
    def around(cls, transcript: str) -> "ConfigFolder | None":
        """Return the config folder that a transcript lies in."""
        config = config_of(transcript)
        return cls(config) if config else None

    def projects(self) -> list[str]:
        """Return the names of the project folders."""
        folder = self._at("projects")
        if not os.path.isdir(folder):
            return []
        return [
            entry.name for entry in listed(folder, self.problems) if is_folder(entry, links=True)
        ]

    def sessions(self) -> Iterator[Found]:
        """Yield every session."""
        return discover(self.path, self.problems)

    def history(self) -> tuple[HistoryEntry, ...]:
        """Return every prompt that was typed, in the order of the file."""
        return self._parsed(self._at("history.jsonl"), sidecars.history, ())

    def todos(self, session_id: str = "") -> list[TodoList]:
        """Return the to-do lists, of one session or of all."""
        found = files_below(self._at("todos"), self.problems, prefix="todos", starting=session_id)
        return [
            TodoList(f, self._parsed(f.path, sidecars.todos, ()))
            for f in found
            if f.place.role == "todo"
        ]

    def tasks(self, session_id: str) -> list[TaskItem]:
        """Return the tasks of a session, by number."""
        found = [f for f in self._files("tasks", session_id) if f.place.role == "task"]
        found.sort(key=lambda f: (len(f.place.name), f.place.name))
        read = [self._parsed(f.path, sidecars.task, None) for f in found]
        return [item for item in read if item is not None]

    def backups(self, session_id: str) -> list[Backup]:
        """Return the file backups of a session."""
        named = [
            (f, sidecars.file_backup(f.place.name)) for f in self._files("file-history", session_id)
        ]
        return [Backup(found, name) for found, name in named if name is not None]

    def file_history_dir(self, session_id: str) -> str | None:
        """Return the folder with a session's backups, if there is one."""
        path = self._at("file-history", session_id) if _plain(session_id) else ""
        return path if os.path.isdir(path) else None

    def backup_path(self, session_id: str, name: str) -> str | None:
        """Return the backup that a snapshot names (`backupFileName`), if it is there."""
        folder = self.file_history_dir(session_id)
        if folder is None or sidecars.file_backup(name) is None:
            return None
        path = os.path.join(folder, name)
        return path if os.path.isfile(path) else None

    def live(self) -> list[LiveProcess]:
        """Return the clients that say they are at work; whether they are is not checked."""
        found = [f for f in self._files("sessions") if f.place.role == "live"]
        read = [self._parsed(f.path, sidecars.live_process, None) for f in found]
        return [process for process in read if process is not None]

    def memory(self, project: str) -> list[Found]:
        """Return the memory files of a project folder."""
        return self._files("projects", project, "memory")

    def sessions_index(self, project: str) -> SessionsIndex | None:
        """Return a project's cached list of sessions: often stale, never the truth."""
        if not _plain(project):
            return None
        path = self._at("projects", project, "sessions-index.json")
        return self._parsed(path, sidecars.sessions_index, None)

    def agent_meta(self, agent: Found) -> AgentMeta | None:
        """Return what the `.meta.json` beside a sub-agent's transcript says."""
        return self._parsed(meta_path(agent.path), sidecars.agent_meta, None)

    def custom_title(self, session: Found) -> str:
        """Return the title in a session's `custom-title.json`, or nothing."""
        path = os.path.join(session.path.removesuffix(".jsonl"), "custom-title.json")
        title = self._parsed(path, sidecars.custom_title, None)
        return "" if title is None else title.custom_title

    def settings(self, *, local: bool = False) -> Settings | None:
        """Return the settings, their secrets masked."""
        name = "settings.local.json" if local else "settings.json"
        return self._parsed(self._at(name), settings, None)

    def instructions(self) -> str:
        """Return the user's own `CLAUDE.md`, or nothing."""
        return self.text(self._at("CLAUDE.md"))

    def plans(self) -> list[Found]:
        """Return the plans."""
        return self._of_role("plan", "plans")

    def agent_defs(self) -> list[Found]:
        """Return the user's own definitions of sub-agents."""
        return self._of_role("agent-def", "agents")

    def commands(self) -> list[Found]:
        """Return the user's own slash commands."""
        return self._of_role("command", "commands")

    def skills(self) -> list[Found]:
        """Return the `SKILL.md` of each skill; skills that are linked in too."""
        folder = self._at("skills")
        entries = listed(folder, self.problems) if os.path.isdir(folder) else []
        return [
            found
            for entry in entries
            if is_folder(entry, links=True)
            for found in files_below(entry.path, self.problems, prefix=f"skills/{entry.name}")
            if os.path.basename(found.path) == "SKILL.md"
        ]

    def hooks(self) -> list[Found]:
        """Return the scripts in `hooks/`."""
        return self._files("hooks")

    def jobs(self) -> list[Found]:
        """Return what background jobs left."""
        return self._files("jobs")

    def pastes(self) -> list[Found]:
        """Return the pasted texts that `history.jsonl` names by their hash."""
        return self._of_role("paste", "paste-cache")

    def shell_snapshots(self) -> list[Found]:
        """Return the shell snapshots."""
        return self._files("shell-snapshots")

    def text(self, path: str) -> str:
        """Return the text of one of these files; nothing if it is not there."""
        return self._parsed(path, sidecars.text, "")

    def _at(self, *names: str) -> str:
        return os.path.join(self.path, *names)

    def _files(self, *names: str) -> list[Found]:
        if not all(map(_plain, names)):
            return []
        return list(files_below(self._at(*names), self.problems, prefix="/".join(names)))

    def _of_role(self, role: Role, folder: str) -> list[Found]:
        return [found for found in self._files(folder) if found.place.role == role]

    def _parsed(self, path: str, parse: Callable[[bytes], Read[T]], empty: T) -> T:
        problems: list[Problem] = []
        raw = peek(path, MAX_SIDECAR, problems)
        # Not to have one is the usual case.
        self.problems += [problem for problem in problems if problem.kind != "missing"]
        if raw is None:
            return empty
        value, damage = parse(raw)
        self.damage += [FileDamage(path, note) for note in damage]
        return value
