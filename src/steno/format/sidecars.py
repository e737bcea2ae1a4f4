"""What the small files around a session hold: bytes → typed values.

Every reader returns the value and the damage it met. A field of the wrong type is left at its
default and noted (`sidecar.shape`); bytes that are no JSON give None or nothing (`sidecar.not-json`,
`sidecar.not-object`). Nothing raises.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, TypeVar, cast

import msgspec

from steno.format.loose import loose
from steno.format.paths import file_history_name
from steno.format.spans import Damage, Span

__all__ = [
    "AgentMeta",
    "CustomTitle",
    "FileBackup",
    "HistoryEntry",
    "IndexEntry",
    "LiveProcess",
    "Paste",
    "Read",
    "SessionsIndex",
    "TaskItem",
    "TodoItem",
    "agent_meta",
    "custom_title",
    "decoded",
    "file_backup",
    "history",
    "live_process",
    "sessions_index",
    "task",
    "text",
    "todos",
]

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)
Read: TypeAlias = tuple[T, tuple[Damage, ...]]
"""A value, and what was wrong with the bytes it was read from."""


class AgentMeta(msgspec.Struct, frozen=True, rename="camel"):
    """A sub-agent's `.meta.json` (from 2.1.200); `label` and `phase` are those of a workflow."""

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
    """One paste of a prompt: its text, or the name of the file in `paste-cache/` that has it."""

    id: int = 0
    type: str = ""
    content: str = ""
    content_hash: str = ""


class HistoryEntry(msgspec.Struct, frozen=True, rename="camel"):
    """One line of `history.jsonl`: a prompt or slash command as it was typed.

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
    """A project's `sessions-index.json` (2.1.29): a cache, often stale, never the truth."""

    version: int = 0
    original_path: str = ""
    entries: tuple[IndexEntry, ...] = ()


class CustomTitle(msgspec.Struct, frozen=True, rename="camel"):
    """A session's `custom-title.json`."""

    custom_title: str = ""


class LiveProcess(msgspec.Struct, frozen=True, rename="camel"):
    """A `sessions/<pid>.json`: a client at work, or the remains of one that crashed.

    `proc_start` guards against a pid that is used again; times are milliseconds since 1970.
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
    """What the name of a backup in `file-history/<session>/` says."""

    digest: str
    version: int

    def is_of(self, path: str) -> bool:
        """Say whether this is a backup of the file at that absolute path."""
        return file_history_name(path, self.version) == f"{self.digest}@v{self.version}"


_BACKUP: Final = re.compile(r"([0-9a-f]{16})@v([0-9]{1,9})")
_SHAPE: Final = "sidecar.shape"


def agent_meta(raw: bytes) -> Read[AgentMeta | None]:
    """Read a sub-agent's `.meta.json`."""
    return _one(raw, AgentMeta)


def custom_title(raw: bytes) -> Read[CustomTitle | None]:
    """Read a session's `custom-title.json`."""
    return _one(raw, CustomTitle)


def task(raw: bytes) -> Read[TaskItem | None]:
    """Read one `tasks/<session>/<n>.json`."""
    return _one(raw, TaskItem)


def live_process(raw: bytes) -> Read[LiveProcess | None]:
    """Read one `sessions/<pid>.json`; the older files that say `session_id` too."""
    value, damage = _one(raw, LiveProcess)
    if value is not None and not value.session_id:
        older = _string(_object(decoded(raw)).get("session_id"))
        value = msgspec.structs.replace(value, session_id=older or "")
    return value, damage


def sessions_index(raw: bytes) -> Read[SessionsIndex | None]:
    """Read a project's `sessions-index.json`."""
    return _one(raw, SessionsIndex)


def todos(raw: bytes) -> Read[tuple[TodoItem, ...]]:
    """Read a to-do list."""
    value = decoded(raw)
    if not isinstance(value, list):
        return (), (_bad(raw, value, "a list"),)
    notes = _Notes(Span(0, len(raw)))
    return _structs(cast("object", value), TodoItem, notes, "todo"), notes.damage()


def history(raw: bytes) -> Read[tuple[HistoryEntry, ...]]:
    """Read a whole `history.jsonl`; a bad line is noted and left out."""
    entries: list[HistoryEntry] = []
    damage: list[Damage] = []
    offset = 0
    for line in raw.split(b"\n"):
        if line.strip():
            entry, found = _one(line, HistoryEntry, offset)
            damage += found
            entries += [] if entry is None else [entry]
        offset += len(line) + 1
    return tuple(entries), tuple(damage)


def text(raw: bytes) -> Read[str]:
    """Read a memory, plan, CLAUDE.md or tool result; bytes that are not UTF-8 become U+FFFD."""
    try:
        return raw.decode("utf-8"), ()
    except UnicodeDecodeError as error:
        span = Span(error.start, error.end - error.start)
        return raw.decode("utf-8", "replace"), (Damage("line.utf8", span, error.reason),)


def file_backup(name: str) -> FileBackup | None:
    """Read the name of a backup, `<16 hex>@v<N>`."""
    found = _BACKUP.fullmatch(name)
    return FileBackup(found[1], int(found[2])) if found else None


# One field at a time: a field of the wrong type must not cost the others.


class _Notes:
    """Gathers the names of the fields that were not as they should be."""

    def __init__(self, span: Span) -> None:
        self._span = span
        self._fields: list[str] = []

    def add(self, field: str) -> None:
        if field not in self._fields:
            self._fields.append(field)

    def damage(self) -> tuple[Damage, ...]:
        return tuple(Damage(_SHAPE, self._span, f"unexpected {field}") for field in self._fields)


def decoded(raw: bytes) -> object:
    """Return the JSON value in `raw`; None when there is none, or none of a sane depth."""
    try:
        return cast("object", loose(raw))
    except RecursionError:
        return None


def _one(raw: bytes, kind: type[S], offset: int = 0) -> Read[S | None]:
    value = decoded(raw)
    if not isinstance(value, dict):
        return None, (_bad(raw, value, "an object", offset),)
    notes = _Notes(Span(offset, len(raw)))
    return _struct(cast("dict[str, Any]", value), kind, notes), notes.damage()


def _bad(raw: bytes, value: object, wanted: str, offset: int = 0) -> Damage:
    span = Span(offset, len(raw))
    if value is None:
        return Damage("sidecar.not-json", span, "not JSON")
    return Damage("sidecar.not-object", span, f"JSON, but not {wanted}")


def _struct(source: Mapping[str, Any], kind: type[S], notes: _Notes) -> S:
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


def _structs(source: object, kind: type[S], notes: _Notes, name: str) -> tuple[S, ...]:
    items = cast("list[object]", source) if isinstance(source, list) else [None]
    objects = [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]
    if len(objects) != len(items):
        notes.add(name)
    return tuple(_struct(item, kind, notes) for item in objects)


def _pastes(source: object, notes: _Notes, name: str) -> tuple[Paste, ...]:
    named = cast("dict[str, object]", source) if isinstance(source, dict) else None
    pastes = None if named is None else list(named.values())
    return _structs(pastes, Paste, notes, name)


def _object(value: object) -> Mapping[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _string(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _whole(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if abs(value) < 1 << 63 else None


def _strings(value: object) -> tuple[str, ...] | None:
    items = cast("list[object]", value) if isinstance(value, list) else [None]
    found = tuple(item for item in items if isinstance(item, str))
    return found if len(found) == len(items) else None


_FIELD_READERS: Final[dict[Any, Callable[[Any, _Notes, str], Any]]] = {
    str: lambda value, _notes, _name: _string(value),
    bool: lambda value, _notes, _name: _flag(value),
    int: lambda value, _notes, _name: _whole(value),
    tuple[str, ...]: lambda value, _notes, _name: _strings(value),
    tuple[Paste, ...]: _pastes,
    tuple[IndexEntry, ...]: lambda value, notes, name: _structs(value, IndexEntry, notes, name),
}
