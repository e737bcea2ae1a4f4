"""Read access to the config directory and to project directories, and the files that cleanup leaves behind.

Names from session text (a session ID, the name of a backup, the path of a saved tool result) are only looked up inside
the directory they belong to. The path of a project directory comes from a session, so only files with known names are
opened and links that lead outside are not followed.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

import msgspec

from steno.errors import Unreadable
from steno.format import sidecars
from steno.format.client_settings import Settings, read_settings
from steno.format.lenient_json import DECODE_ERRORS
from steno.format.paths import JSONL_SUFFIX, Role, is_uuid, meta_path
from steno.format.sidecars import (
    AgentMeta,
    FileBackup,
    HistoryEntry,
    LiveProcess,
    ReadResult,
    SessionsIndex,
    TaskItem,
    TodoItem,
)
from steno.format.source import Damage
from steno.store.discovery import (
    DiscoveredFile,
    Problem,
    config_folder_of,
    discover,
    files_below,
    is_folder,
    list_folder,
    peek,
)
from steno.store.file_source import FileSource

T = TypeVar("T")
MAX_SIDECAR: Final = 64 << 20
# On Windows a colon selects a stream of a file, a drive or a device.
_ESCAPING_CHARACTERS: Final = frozenset("/\\\0:" if os.name == "nt" else "/\0")


class SidecarDamage(msgspec.Struct, frozen=True):
    """Damage found in a sidecar file."""

    path: str
    damage: Damage


class TodoList(msgspec.Struct, frozen=True):
    """One to-do list, of the session itself or of a sub-agent."""

    file: DiscoveredFile
    items: tuple[TodoItem, ...]


class FileBackupFile(msgspec.Struct, frozen=True):
    """A backup of a file from before a turn changed it."""

    file: DiscoveredFile
    name: FileBackup


def tool_result_path(session: str, recorded_path: str) -> str | None:
    r"""Return the path of a saved tool result that a session refers to; None if it does not exist.

    `recorded_path` is the path in the record, from any machine (with `/` or `\`); only its last component is used, and
    only inside the session's directory.
    """
    name = recorded_path.replace("\\", "/").rpartition("/")[2]
    base = session.removesuffix(".jsonl")
    if not _is_plain_name(name) or base == session:
        return None
    path = os.path.join(base, "tool-results", name)
    return path if os.path.isfile(path) else None


def _is_plain_name(name: str) -> bool:
    """Return whether a name cannot refer to a path outside its directory."""
    return name not in {"", ".", ".."} and _ESCAPING_CHARACTERS.isdisjoint(name)


class ConfigFolder:
    """A config directory of Claude Code. `problems` and `damage` are filled as files are read."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.problems: list[Problem] = []
        self.damage: list[SidecarDamage] = []

    @classmethod
    def containing(cls, transcript: str) -> "ConfigFolder | None":
        """Return the config directory that contains a transcript."""
        config = config_folder_of(transcript)
        return cls(config) if config else None

    def projects(self) -> list[str]:
        """Return the names of the project directories."""
        folder = self._path("projects")
        if not os.path.isdir(folder):
            return []
        return [entry.name for entry in list_folder(folder, self.problems) if is_folder(entry, links=True)]

    def sessions(self) -> Iterator[DiscoveredFile]:
        """Yield every session."""
        return discover(self.path, self.problems)

    def history(self) -> tuple[HistoryEntry, ...]:
        """Return every typed prompt, in file order."""
        return self._read_parsed(self._path("history.jsonl"), sidecars.read_history, ())

    def todos(self, session_id: str = "") -> list[TodoList]:
        """Return the to-do lists, of one session or of all."""
        files = files_below(self._path("todos"), self.problems, prefix="todos", name_prefix=session_id)
        return [
            TodoList(f, self._read_parsed(f.path, sidecars.read_todos, ())) for f in files if f.place.role == "todo"
        ]

    def tasks(self, session_id: str) -> list[TaskItem]:
        """Return the tasks of a session, ordered by number."""
        files = [f for f in self._files_in("tasks", session_id) if f.place.role == "task"]
        files.sort(key=lambda f: (len(f.place.name), f.place.name))
        items = [self._read_parsed(f.path, sidecars.read_task, None) for f in files]
        return [item for item in items if item is not None]

    def backups(self, session_id: str) -> list[FileBackupFile]:
        """Return the file backups of a session."""
        named_files = [
            (f, sidecars.parse_backup_name(f.place.name)) for f in self._files_in("file-history", session_id)
        ]
        return [FileBackupFile(file, name) for file, name in named_files if name is not None]

    def file_history_dir(self, session_id: str) -> str | None:
        """Return the directory with a session's backups, if it exists."""
        path = self._path("file-history", session_id) if _is_plain_name(session_id) else ""
        return path if os.path.isdir(path) else None

    def backup_path(self, session_id: str, name: str) -> str | None:
        """Return the path of a backup named in a snapshot (`backupFileName`), if it exists."""
        folder = self.file_history_dir(session_id)
        if folder is None or sidecars.parse_backup_name(name) is None:
            return None
        path = os.path.join(folder, name)
        return path if os.path.isfile(path) else None

    def live_processes(self) -> list[LiveProcess]:
        """Return the Claude Code processes listed in `sessions/`; they may no longer be running."""
        files = [f for f in self._files_in("sessions") if f.place.role == "live"]
        processes = [self._read_parsed(f.path, sidecars.read_live_process, None) for f in files]
        return [process for process in processes if process is not None]

    def memory(self, project: str) -> list[DiscoveredFile]:
        """Return the memory files of a project."""
        return self._files_in("projects", project, "memory")

    def sessions_index(self, project: str) -> SessionsIndex | None:
        """Return the cached list of sessions of a project, which is often outdated."""
        if not _is_plain_name(project):
            return None
        path = self._path("projects", project, "sessions-index.json")
        return self._read_parsed(path, sidecars.read_sessions_index, None)

    def agent_meta(self, agent: DiscoveredFile) -> AgentMeta | None:
        """Return the content of the `.meta.json` file of a sub-agent's transcript."""
        return self._read_parsed(meta_path(agent.path), sidecars.read_agent_meta, None)

    def custom_title(self, session: DiscoveredFile) -> str:
        """Return the title in a session's `custom-title.json`, or an empty string."""
        path = os.path.join(session.path.removesuffix(".jsonl"), "custom-title.json")
        title = self._read_parsed(path, sidecars.read_custom_title, None)
        return "" if title is None else title.custom_title

    def settings(self, *, local: bool = False) -> Settings | None:
        """Return the settings with masked secrets."""
        name = "settings.local.json" if local else "settings.json"
        return self._read_parsed(self._path(name), read_settings, None)

    def instructions(self) -> str:
        """Return the user's `CLAUDE.md`, or an empty string."""
        return self.text(self._path("CLAUDE.md"))

    def plans(self) -> list[DiscoveredFile]:
        """Return the plan files."""
        return self._files_of_role("plan", "plans")

    def agent_defs(self) -> list[DiscoveredFile]:
        """Return the user's sub-agent definitions."""
        return self._files_of_role("agent-def", "agents")

    def commands(self) -> list[DiscoveredFile]:
        """Return the user's slash commands."""
        return self._files_of_role("command", "commands")

    def skills(self) -> list[DiscoveredFile]:
        """Return the `SKILL.md` of each skill, including linked skills."""
        folder = self._path("skills")
        entries = list_folder(folder, self.problems) if os.path.isdir(folder) else []
        return [
            file
            for entry in entries
            if is_folder(entry, links=True)
            for file in files_below(entry.path, self.problems, prefix=f"skills/{entry.name}")
            if os.path.basename(file.path) == "SKILL.md"
        ]

    def hooks(self) -> list[DiscoveredFile]:
        """Return the scripts in `hooks/`."""
        return self._files_in("hooks")

    def jobs(self) -> list[DiscoveredFile]:
        """Return the files of background jobs."""
        return self._files_in("jobs")

    def pastes(self) -> list[DiscoveredFile]:
        """Return the pasted texts, which `history.jsonl` refers to by hash."""
        return self._files_of_role("paste", "paste-cache")

    def text(self, path: str) -> str:
        """Return the text of a file; empty if it does not exist."""
        return self._read_parsed(path, sidecars.read_text, "")

    def _path(self, *names: str) -> str:
        return os.path.join(self.path, *names)

    def _files_in(self, *names: str) -> list[DiscoveredFile]:
        if not all(map(_is_plain_name, names)):
            return []
        return list(files_below(self._path(*names), self.problems, prefix="/".join(names)))

    def _files_of_role(self, role: Role, folder: str) -> list[DiscoveredFile]:
        return [file for file in self._files_in(folder) if file.place.role == role]

    def _read_parsed(self, path: str, parse: Callable[[bytes], ReadResult[T]], default: T) -> T:
        problems: list[Problem] = []
        raw = peek(path, MAX_SIDECAR, problems)
        # A missing file is the usual case.
        self.problems += [problem for problem in problems if problem.kind != "missing"]
        if raw is None:
            return default
        value, damage = parse(raw)
        self.damage += [SidecarDamage(path, note) for note in damage]
        return value


_READ_FLAGS: Final = (
    os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)
_MAX_TEXT_SIZE: Final = 256 << 10
_MAX_FILES: Final = 200
_MAX_FOLDER_DEPTH: Final = 3


class ProjectTextFile(msgspec.Struct, frozen=True):
    """A text file of a project."""

    name: str
    """Path relative to the project directory."""
    text: str
    size: int

    @property
    def is_cut(self) -> bool:
        """Whether only the beginning of the file was read."""
        return self.size > _MAX_TEXT_SIZE


class ProjectFolder:
    """The working directory of sessions, if it exists. `refused_names` lists names that lead outside it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.refused_names: list[str] = []
        self._real_path = _resolve_folder(path)

    @property
    def exists(self) -> bool:
        """Whether the directory exists and can be read."""
        return bool(self._real_path)

    def text(self, name: str) -> ProjectTextFile | None:
        """Return a text file, truncated if it is huge; None if it does not exist."""
        read = self.read(name)
        if read is None:
            return None
        data, size = read
        return ProjectTextFile(name, data.decode("utf-8", "replace"), size)

    def read(self, name: str) -> tuple[bytes, int] | None:
        """Return the first bytes of a file and its size."""
        path = self._resolve_inside(name)
        if path is None:
            return None
        try:
            handle = os.open(path, _READ_FLAGS)
        except (OSError, ValueError):
            return None
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                return None
            return os.read(handle, _MAX_TEXT_SIZE), status.st_size
        except OSError:
            return None
        finally:
            os.close(handle)

    def list_names(self, folder: str, suffix: str) -> list[str]:
        """Return the files below a directory of the project with a name suffix, at most 200."""
        names: list[str] = []
        stack = [(folder, 0)]
        while stack and len(names) < _MAX_FILES:
            name, depth = stack.pop()
            path = self._resolve_inside(name)
            if path is None or not os.path.isdir(path):
                continue
            for entry in list_folder(path, []):
                below = f"{name}/{entry.name}"
                if entry.name.endswith(suffix):
                    names.append(below)
                elif depth < _MAX_FOLDER_DEPTH and entry.is_dir(follow_symlinks=False):
                    stack.append((below, depth + 1))
        return sorted(names)[:_MAX_FILES]

    def _resolve_inside(self, name: str) -> str | None:
        """Return the real path of a name in the project; None if it is outside, with a note in `refused_names`."""
        if not self._real_path:
            return None
        try:
            real = os.path.realpath(os.path.join(self._real_path, *name.split("/")))
        except (OSError, ValueError):
            return None
        if real.startswith(self._real_path + os.sep):
            return real
        if name not in self.refused_names:
            self.refused_names.append(name)
        return None


def _resolve_folder(path: str) -> str:
    """Return the real path of a directory; empty if it is missing, a root directory, or remote."""
    if not os.path.isabs(path) or path.startswith(("\\\\", "//")) or "\0" in path:
        return ""
    try:
        real = os.path.realpath(path)
        if not os.path.isdir(real) or os.path.dirname(real) == real:
            return ""
    except (OSError, ValueError):
        return ""
    return real if os.access(real, os.R_OK | os.X_OK) else ""


DEFAULT_CLEANUP_DAYS: Final = 30
"""Days without modification after which Claude Code deletes sessions by default."""
CLEANUP_WARNING_DAYS: Final = 7
"""Days before the automatic cleanup at which a warning is shown."""
_MAX_SETTINGS_SIZE: Final = 1 << 20
_COMPARED_END_SIZE: Final = 1 << 16
_EMPTY_LIST_SIZE: Final = len("[]")
"""Size of an empty list, which Claude Code writes for every session."""
_FOLDERS_BY_SESSION: Final = ("file-history", "tasks", "session-env")
_FILES_BY_SESSION: Final[dict[str, Role]] = {"todos": "todo", "debug": "debug"}


class Leftover(msgspec.Struct, frozen=True):
    """A file or directory of a session that no longer exists."""

    path: str
    kind: str
    """The directory that contains it, such as `todos`; `session` for a session's own directory."""
    session_id: str
    files: int
    size: int


class _CleanupSettings(msgspec.Struct, rename="camel"):
    cleanup_period_days: msgspec.Raw = msgspec.Raw()


def is_config_folder(folder: str) -> bool:
    """Return whether a directory is a config directory of Claude Code."""
    return os.path.isdir(os.path.join(folder, "projects"))


def cleanup_days(config: str) -> float:
    """Return the number of days Claude Code keeps files, from the settings of a config directory."""
    raw = peek(os.path.join(config, "settings.json"), _MAX_SETTINGS_SIZE, [])
    try:
        setting = msgspec.json.decode(raw or b"{}", type=_CleanupSettings).cleanup_period_days
        days = msgspec.json.decode(setting or b"null", type=float)
    except DECODE_ERRORS:
        return DEFAULT_CLEANUP_DAYS
    return days if days >= 0 else DEFAULT_CLEANUP_DAYS


def find_leftovers(config: str, sessions: Iterable[str], problems: list[Problem]) -> list[Leftover]:
    """Return the files in a config directory that belong to none of the given sessions."""
    session_ids = {name.lower() for name in sessions}
    result = [
        leftover
        for leftover in (*_orphaned_session_folders(config, problems), *_other_leftovers(config, problems))
        if leftover.session_id.lower() not in session_ids
    ]
    return sorted(result, key=_largest_first_key)


def _largest_first_key(leftover: Leftover) -> tuple[int, str]:
    return -leftover.size, leftover.path


def _orphaned_session_folders(config: str, problems: list[Problem]) -> Iterator[Leftover]:
    """Yield session directories whose session file no longer exists."""
    for project in _subfolders(os.path.join(config, "projects"), problems):
        for entry in _subfolders(project.path, problems):
            if is_uuid(entry.name) and not os.path.lexists(entry.path + JSONL_SUFFIX):
                prefix = f"projects/{project.name}/{entry.name}"
                yield _folder_leftover(entry, "session", prefix, problems)


def _other_leftovers(config: str, problems: list[Problem]) -> Iterator[Leftover]:
    for folder_name in _FOLDERS_BY_SESSION:
        for entry in _subfolders(os.path.join(config, folder_name), problems):
            if is_uuid(entry.name):
                yield _folder_leftover(entry, folder_name, f"{folder_name}/{entry.name}", problems)
    for folder_name, role in _FILES_BY_SESSION.items():
        for file in files_below(os.path.join(config, folder_name), problems, prefix=folder_name):
            if file.place.role == role and file.place.session_id and file.size > _EMPTY_LIST_SIZE:
                yield Leftover(file.path, folder_name, file.place.session_id, 1, file.size)


def _subfolders(folder: str, problems: list[Problem]) -> list[os.DirEntry[str]]:
    if not os.path.isdir(folder):
        return []
    return [entry for entry in list_folder(folder, problems) if is_folder(entry, links=False)]


def _folder_leftover(entry: os.DirEntry[str], kind: str, prefix: str, problems: list[Problem]) -> Leftover:
    files = list(files_below(entry.path, problems, prefix=prefix))
    return Leftover(entry.path, kind, entry.name, len(files), sum(file.size for file in files))


def find_copies(
    files: Iterable[DiscoveredFile], problems: list[Problem], on_progress: Callable[[int], None] | None = None
) -> list[tuple[DiscoveredFile, ...]]:
    """Return groups of files with equal content; hard links to one file are not copies.

    Only files of equal size are opened, and only files with equal ends are read completely.
    """
    groups: list[list[DiscoveredFile]] = []
    for same_size in _group_by(files, _size_key):
        if same_size[0].size and len(same_size) > 1:
            groups += _group_by(_unique_files(same_size, problems), lambda f: _digest(f, problems, _ends))
    duplicates: list[tuple[DiscoveredFile, ...]] = []
    for group in groups:
        if len(group) > 1:
            same = _group_by(group, lambda f: _digest(f, problems, FileSource.chunks, on_progress))
            duplicates += [tuple(equal_files) for equal_files in same if len(equal_files) > 1]
    return sorted(duplicates, key=lambda group: (-group[0].size, group[0].path))


def _size_key(file: DiscoveredFile) -> bytes:
    return str(file.size).encode()


def _group_by(
    files: Iterable[DiscoveredFile], key_of: Callable[[DiscoveredFile], bytes | None]
) -> list[list[DiscoveredFile]]:
    groups: dict[bytes, list[DiscoveredFile]] = {}
    for file in files:
        key = key_of(file)
        if key is not None:
            groups.setdefault(key, []).append(file)
    return list(groups.values())


def _unique_files(files: list[DiscoveredFile], problems: list[Problem]) -> list[DiscoveredFile]:
    """Return one path per file, without additional hard links."""
    by_identity: dict[tuple[int, int], DiscoveredFile] = {}
    for file in files:
        try:
            with FileSource(file.path) as source:
                by_identity.setdefault(source.identity, file)
        except Unreadable as error:
            problems.append(Problem("unreadable", file.path, str(error)))
    return list(by_identity.values())


def _ends(source: FileSource) -> Iterator[bytes]:
    yield source.read(0, _COMPARED_END_SIZE)
    yield source.read(max(0, source.size - _COMPARED_END_SIZE), _COMPARED_END_SIZE)


def _digest(
    file: DiscoveredFile,
    problems: list[Problem],
    parts: Callable[[FileSource], Iterable[bytes]],
    on_progress: Callable[[int], None] | None = None,
) -> bytes | None:
    from hashlib import blake2b

    digest = blake2b()
    try:
        with FileSource(file.path) as source:
            for part in parts(source):
                digest.update(part)
                if on_progress is not None:
                    on_progress(len(part))
    except Unreadable as error:
        problems.append(Problem("unreadable", file.path, str(error)))
        return None
    return digest.digest()
