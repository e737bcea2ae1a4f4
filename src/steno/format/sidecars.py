"""The small files of a session, and its file backups: bytes → typed values.

Every reader returns the value and the damage found. A field of the wrong type keeps its default and is noted
(`sidecar.shape`); bytes that are not JSON give None or an empty value (`sidecar.not-json`, `sidecar.not-object`).
Readers never raise.

`file-history-snapshot` and `file-history-delta` records name the backups of files: a name, a version and a time for
each. In two published descriptions they contain the original text of the file instead.

>>> fields = {"snapshot": {"trackedFileBackups": {"a.py": "x = 1"}}}
>>> [(entry.path, entry.content) for entry in read_backups(fields)]
[('a.py', 'x = 1')]
"""

import ntpath
import posixpath
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, TypeVar, cast

import msgspec

from steno.format.lenient_json import as_object, decode_lenient
from steno.format.paths import file_history_name
from steno.format.source import Damage, Span

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)
ReadResult: TypeAlias = tuple[T, tuple[Damage, ...]]
"""A value, and the damage found while reading it."""


class AgentMeta(msgspec.Struct, frozen=True, rename="camel"):
    """A sub-agent's `.meta.json` (from 2.1.200); `label` and `phase` are used by workflows."""

    agent_type: str = ""
    is_built_in: bool = False
    launched_with_defaults: bool = False
    description: str = ""
    tool_use_id: str = ""
    spawn_depth: int = 0
    request_shape: str = ""
    request_non_interactive: bool = False
    picked_effort_model: str = ""
    finished: bool = False
    model: str = ""
    label: str = ""
    phase: str = ""


class Paste(msgspec.Struct, frozen=True, rename="camel"):
    """One paste in a prompt: its text, or the name of its file in `paste-cache/`."""

    id: int = 0
    type: str = ""
    content: str = ""
    content_hash: str = ""


class HistoryEntry(msgspec.Struct, frozen=True, rename="camel"):
    """One line of `history.jsonl`: a prompt or slash command as typed.

    `timestamp` is in milliseconds since 1970.
    """

    display: str = ""
    timestamp: int = 0
    project: str = ""
    session_id: str = ""
    pasted_contents: tuple[Paste, ...] = ()


class TodoItem(msgspec.Struct, frozen=True, rename="camel"):
    """One entry of a to-do list (up to 2.1.42)."""

    content: str = ""
    status: str = ""
    active_form: str = ""
    id: str = ""
    priority: str = ""


class TaskItem(msgspec.Struct, frozen=True, rename="camel"):
    """One task of a session (from 2.1.200)."""

    id: str = ""
    subject: str = ""
    description: str = ""
    active_form: str = ""
    status: str = ""
    owner: str = ""
    blocks: tuple[str, ...] = ()
    blocked_by: tuple[str, ...] = ()


class IndexEntry(msgspec.Struct, frozen=True, rename="camel"):
    """One session in a `sessions-index.json`; `file_mtime` is in milliseconds since 1970."""

    session_id: str = ""
    full_path: str = ""
    file_mtime: int = 0
    first_prompt: str = ""
    summary: str = ""
    custom_title: str = ""
    message_count: int = 0
    created: str = ""
    modified: str = ""
    git_branch: str = ""
    project_path: str = ""
    is_sidechain: bool = False


class SessionsIndex(msgspec.Struct, frozen=True, rename="camel"):
    """A project's `sessions-index.json` (2.1.29), a cache that is often outdated."""

    version: int = 0
    original_path: str = ""
    entries: tuple[IndexEntry, ...] = ()


class CustomTitle(msgspec.Struct, frozen=True, rename="camel"):
    """A session's `custom-title.json`."""

    custom_title: str = ""


class LiveProcess(msgspec.Struct, frozen=True, rename="camel"):
    """A `sessions/<pid>.json`: a running Claude Code process, or the leftover of a crashed one.

    `proc_start` detects a reused PID; times are milliseconds since 1970.
    """

    pid: int = 0
    session_id: str = ""
    cwd: str = ""
    started_at: int = 0
    updated_at: int = 0
    proc_start: str = ""
    version: str = ""
    kind: str = ""
    entrypoint: str = ""
    status: str = ""
    name: str = ""


class FileBackup(msgspec.Struct, frozen=True):
    """The parsed name of a backup in `file-history/<session>/`."""

    digest: str
    version: int

    def is_of(self, path: str) -> bool:
        """Return whether this is a backup of the file at an absolute path."""
        return file_history_name(path, self.version) == f"{self.digest}@v{self.version}"


_BACKUP: Final = re.compile(r"([0-9a-f]{16})@v([0-9]{1,9})")
_SHAPE: Final = "sidecar.shape"


def read_agent_meta(raw: bytes) -> ReadResult[AgentMeta | None]:
    """Read a sub-agent's `.meta.json`."""
    return _read_object(raw, AgentMeta)


def read_custom_title(raw: bytes) -> ReadResult[CustomTitle | None]:
    """Read a session's `custom-title.json`."""
    return _read_object(raw, CustomTitle)


def read_task(raw: bytes) -> ReadResult[TaskItem | None]:
    """Read one `tasks/<session>/<n>.json`."""
    return _read_object(raw, TaskItem)


def read_live_process(raw: bytes) -> ReadResult[LiveProcess | None]:
    """Read one `sessions/<pid>.json`, including older files with `session_id`."""
    value, damage = _read_object(raw, LiveProcess)
    if value is not None and not value.session_id:
        older = _string(_object(decode_json(raw)).get("session_id"))
        value = msgspec.structs.replace(value, session_id=older or "")
    return value, damage


def read_sessions_index(raw: bytes) -> ReadResult[SessionsIndex | None]:
    """Read a project's `sessions-index.json`."""
    return _read_object(raw, SessionsIndex)


def read_todos(raw: bytes) -> ReadResult[tuple[TodoItem, ...]]:
    """Read a to-do list."""
    value = decode_json(raw)
    if not isinstance(value, list):
        return (), (_not_json_damage(raw, value, "a list"),)
    notes = _FieldNotes(Span(0, len(raw)))
    return _build_structs(cast("object", value), TodoItem, notes, "todo"), notes.damage()


def read_history(raw: bytes) -> ReadResult[tuple[HistoryEntry, ...]]:
    """Read a whole `history.jsonl`; invalid lines are noted and skipped."""
    entries: list[HistoryEntry] = []
    damage: list[Damage] = []
    offset = 0
    for line in raw.split(b"\n"):
        if line.strip():
            entry, line_damage = _read_object(line, HistoryEntry, offset)
            damage += line_damage
            entries += [] if entry is None else [entry]
        offset += len(line) + 1
    return tuple(entries), tuple(damage)


def read_text(raw: bytes) -> ReadResult[str]:
    """Read a memory, plan, CLAUDE.md or tool result; invalid UTF-8 becomes U+FFFD."""
    try:
        return raw.decode("utf-8"), ()
    except UnicodeDecodeError as error:
        span = Span(error.start, error.end - error.start)
        return raw.decode("utf-8", "replace"), (Damage("line.utf8", span, error.reason),)


def parse_backup_name(name: str) -> FileBackup | None:
    """Parse the name of a backup, `<16 hex>@v<N>`."""
    match = _BACKUP.fullmatch(name)
    return FileBackup(match[1], int(match[2])) if match else None


# Fields are read one by one, so that a field of the wrong type does not affect the others.


class _FieldNotes:
    def __init__(self, span: Span) -> None:
        self._span = span
        self._fields: list[str] = []

    def add(self, field: str) -> None:
        if field not in self._fields:
            self._fields.append(field)

    def damage(self) -> tuple[Damage, ...]:
        return tuple(Damage(_SHAPE, self._span, f"unexpected {field}") for field in self._fields)


def decode_json(raw: bytes) -> object:
    """Return the JSON value in `raw`; None if it is invalid or nested too deeply."""
    try:
        return cast("object", decode_lenient(raw))
    except RecursionError:
        return None


def _read_object(raw: bytes, kind: type[S], offset: int = 0) -> ReadResult[S | None]:
    value = decode_json(raw)
    if not isinstance(value, dict):
        return None, (_not_json_damage(raw, value, "an object", offset),)
    notes = _FieldNotes(Span(offset, len(raw)))
    return _build_struct(cast("dict[str, Any]", value), kind, notes), notes.damage()


def _not_json_damage(raw: bytes, value: object, expected: str, offset: int = 0) -> Damage:
    span = Span(offset, len(raw))
    if value is None:
        return Damage("sidecar.not-json", span, "not JSON")
    return Damage("sidecar.not-object", span, f"JSON, but not {expected}")


def _build_struct(source: Mapping[str, Any], kind: type[S], notes: _FieldNotes) -> S:
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        if source.get(field.encode_name) is None:
            continue
        value = _FIELD_READERS[field.type](source[field.encode_name], notes, field.encode_name)
        if value is None:
            notes.add(field.encode_name)
        else:
            values[field.name] = value
    return kind(**values)


def _build_structs(source: object, kind: type[S], notes: _FieldNotes, name: str) -> tuple[S, ...]:
    items = cast("list[object]", source) if isinstance(source, list) else [None]
    objects = [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]
    if len(objects) != len(items):
        notes.add(name)
    return tuple(_build_struct(item, kind, notes) for item in objects)


def _pastes(source: object, notes: _FieldNotes, name: str) -> tuple[Paste, ...]:
    pastes_by_name = cast("dict[str, object]", source) if isinstance(source, dict) else None
    pastes = None if pastes_by_name is None else list(pastes_by_name.values())
    return _build_structs(pastes, Paste, notes, name)


def _object(value: object) -> Mapping[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _string(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _integer(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if abs(value) < 1 << 63 else None


def _strings(value: object) -> tuple[str, ...] | None:
    items = cast("list[object]", value) if isinstance(value, list) else [None]
    strings = tuple(item for item in items if isinstance(item, str))
    return strings if len(strings) == len(items) else None


_FIELD_READERS: Final[dict[Any, Callable[[Any, _FieldNotes, str], Any]]] = {
    str: lambda value, _notes, _name: _string(value),
    bool: lambda value, _notes, _name: _flag(value),
    int: lambda value, _notes, _name: _integer(value),
    tuple[str, ...]: lambda value, _notes, _name: _strings(value),
    tuple[Paste, ...]: _pastes,
    tuple[IndexEntry, ...]: lambda value, notes, name: _build_structs(value, IndexEntry, notes, name),
}


BACKUP_TYPES: Final = frozenset(("file-history-snapshot", "file-history-delta"))
"""Types of records that name backups."""
_DRIVE_LENGTH: Final = 2
_MAX_INTEGER: Final = 1 << 53


class BackupEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One file in a backup record."""

    path: str
    """Path as recorded: relative to the working directory for files inside it."""
    file_name: str = ""
    """File name of the backup; empty if the file was not backed up."""
    version: int | None = None
    time: str | int | float | None = None
    content: str | None = None
    """The original content, if it is in the record."""
    missing: bool = False
    """Whether the file did not exist at the time of the backup."""
    folder: str = ""
    """Directory of the file, if it is in the record."""

    @property
    def is_placed(self) -> bool:
        """Whether the record contains an absolute location."""
        path = self.path
        return bool(self.folder) or path.startswith(("/", "\\", "~")) or path[1:_DRIVE_LENGTH] == ":"


def read_backups(fields: dict[str, Any]) -> list[BackupEntry]:
    """Return the files in a backup record, in order; malformed entries are skipped."""
    path = fields.get("trackingPath")
    if isinstance(path, str):
        backup_fields = {path: fields.get("backup")}
    else:
        snapshot = as_object(fields.get("snapshot")) or {}
        backup_fields = as_object(snapshot.get("trackedFileBackups")) or {}
    entries = (_backup_entry(path, value) for path, value in backup_fields.items())
    return [entry for entry in entries if entry is not None]


def _backup_entry(path: str, value: Any) -> BackupEntry | None:
    if value is None:
        return BackupEntry(path=path, missing=True)
    if isinstance(value, str):
        return BackupEntry(path=path, content=value)
    backup = as_object(value)
    if backup is None:
        return None
    name, version, time = (backup.get(key) for key in ("backupFileName", "version", "backupTime"))
    folder = backup.get("realParentDir")
    return BackupEntry(
        path=path,
        file_name=name if isinstance(name, str) else "",
        version=version if _is_number(version) else None,
        time=time if isinstance(time, str | int | float) else None,
        missing=name is None and "backupFileName" in backup,
        folder=folder if isinstance(folder, str) else "",
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < _MAX_INTEGER


def backup_fingerprint(entry: BackupEntry) -> str:
    """Return a value that changes when the file is backed up again."""
    if entry.content is not None:
        # Imported here because it is rarely needed and slow to import.
        from hashlib import blake2b

        data = entry.content.encode("utf-8", "surrogatepass")
        return blake2b(data, digest_size=8).hexdigest()
    return f"{entry.version} {entry.file_name}"


def message_id_of(fields: dict[str, Any]) -> str:
    """Return the ID of the message that a backup record belongs to."""
    name = fields.get("messageId")
    return name if isinstance(name, str) else ""


def is_snapshot_update(fields: dict[str, Any]) -> bool:
    """Return whether the record adds files to a snapshot before their first change."""
    return "trackingPath" in fields or fields.get("isSnapshotUpdate") is True


def snapshot_time(fields: dict[str, Any]) -> str | int | float | None:
    """Return the time of the snapshot in a record."""
    snapshot = as_object(fields.get("snapshot")) or {}
    time = snapshot.get("timestamp", fields.get("timestamp"))
    return time if isinstance(time, str | int | float) else None


def absolute_path(entry: BackupEntry, cwd: str) -> str:
    """Return the absolute path of a file; `cwd` is the session's initial working directory.

    >>> absolute_path(BackupEntry(path="src/a.py"), "/home/ada/work")
    '/home/ada/work/src/a.py'
    """
    path = entry.path
    if entry.is_placed and not entry.folder:
        return path
    if path.startswith("/") or path[1:_DRIVE_LENGTH] == ":":
        return path
    windows = cwd[1:_DRIVE_LENGTH] == ":" or cwd.startswith("\\\\")
    flavour = ntpath if windows else posixpath
    if entry.folder:
        return flavour.join(entry.folder, flavour.basename(path))
    return flavour.normpath(flavour.join(cwd, path)) if cwd else path
