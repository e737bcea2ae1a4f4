"""Finds the touches of a file in the index, in a transcript, and in backups.

The index contains every call that names the file. Everything else (commands that name it, attachments, change notices,
backups) is found by searching the bytes of the sessions that touched the file for its name.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from typing import Any, Final, Self, TypeAlias

import msgspec

from steno.errors import StenoError, Unreadable
from steno.format.lenient_json import as_object
from steno.format.lines import read_bytes
from steno.format.message import ToolResult, ToolUse
from steno.format.paths import file_history_name
from steno.format.records import Record
from steno.format.sidecars import BackupEntry, absolute_path, backup_fingerprint, read_backups, snapshot_time
from steno.format.source import OpenSource
from steno.format.tool_catalogue import FILE_TOOLS, SHELL, tool_facts
from steno.index.line_decoder import to_millis
from steno.index.session_stats import FILE_ID_SHIFT
from steno.index.sync.extract import open_indexed_file
from steno.index.sync.scan import path_from_column
from steno.report.actions.shell_command import may_change_file
from steno.report.file_history.file_versions import FileTouch
from steno.session.session import Session
from steno.session.transcript import Transcript
from steno.session.turns.prompts import prompt_text
from steno.session.turns.tool_outcomes import call_outcome
from steno.store.client_folders import ConfigFolder

_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"


class FileBackups:
    """Backups of one file in one session; each backup is returned once."""

    def __init__(self, transcript: str, session: str, path: str, project: str = "") -> None:
        self._folder = ConfigFolder.containing(transcript)
        self._session = session
        self._path = path
        self._project = project
        self._backup_prefix = file_history_name(path, 1).partition("@")[0]
        self._seen: set[str] = set()

    def in_record(self, record: Record) -> Iterator[FileTouch]:
        """Yield the backups of the file in a record."""
        fields = record.fields
        for entry in read_backups(fields):
            backup_id = backup_fingerprint(entry)
            if backup_id in self._seen or not self._is_of_file(entry):
                continue
            self._seen.add(backup_id)
            timestamp = snapshot_time(fields) if entry.time is None else entry.time
            yield self._touch(entry, to_millis(timestamp))

    def _is_of_file(self, entry: BackupEntry) -> bool:
        """Return whether a backup belongs to the file; backup names are derived from the path."""
        if entry.file_name.startswith(f"{self._backup_prefix}@"):
            return True
        if absolute_path(entry, self._project) == self._path:
            return True
        return entry.missing and self._path.endswith(f"/{entry.path}")

    def _touch(self, entry: BackupEntry, time: int | None) -> FileTouch:
        if entry.missing:
            return FileTouch(tool="kept", result={"missing": True}, time=time)
        text = entry.content if entry.content is not None else self._text(entry.file_name)
        if text is None:
            return FileTouch(tool="kept", result={"lost": True}, time=time)
        return FileTouch(tool="kept", model_text=text, time=time)

    def _text(self, name: str) -> str | None:
        if self._folder is None:
            return None
        path = self._folder.backup_path(self._session, name)
        text = self._folder.text(path) if path is not None else None
        return None if text is None or _REPLACEMENT in text else text


def touches_in(transcript: Transcript) -> dict[str, list[FileTouch]]:
    """Return the successful calls by file, in the order of the transcript."""
    open_calls: dict[str, tuple[ToolUse, Record]] = {}
    touches_by_path: dict[str, list[FileTouch]] = {}
    for node in transcript.nodes:
        if not node.uses and not node.results:
            continue
        record = transcript.record(node)
        for use in record.tool_uses:
            if use.name in FILE_TOOLS:
                open_calls[use.id] = (use, record)
        for block in record.tool_results:
            use, call_record = open_calls.pop(block.tool_use_id, (None, record))
            path = path_of_call(use) if use is not None else ""
            touch = touch_of_call(use, block, record) if use is not None and path else None
            if touch is not None:
                path_touches = touches_by_path.setdefault(path, [])
                path_touches.append(_with_position(touch, call_record, record))
    return touches_by_path


def _with_position(touch: FileTouch, call_record: Record, result_record: Record) -> FileTouch:
    return FileTouch(
        tool=touch.tool,
        tool_input=touch.tool_input,
        result=touch.result,
        model_text=touch.model_text,
        session=call_record.session_id or "",
        agent=(call_record.envelope.agent_id or "") if call_record.is_sidechain else "",
        offset=call_record.offset,
        order=result_record.offset,
        time=to_millis(result_record.timestamp),
    )


def path_of_call(use: ToolUse) -> str:
    """Return the path of the file in a call."""
    path = use.input.get(tool_facts(use.name).path_field)
    return path if isinstance(path, str) else ""


def touch_of_call(use: ToolUse, block: ToolResult, record: Record) -> FileTouch | None:
    """Return the touch of a call and its result; None if the call failed or was denied."""
    if call_outcome(use.name, block, record).state != "ok":
        return None
    # If a record has several tool results, its `toolUseResult` cannot be assigned to one.
    is_only_result = len(record.tool_results) == 1
    client_result = as_object(record.tool_use_result) if is_only_result else None
    return FileTouch(tool=use.name, tool_input=use.input, result=client_result or {}, model_text=block.text)


SessionOpener: TypeAlias = Callable[[str], AbstractContextManager[Session]]
"""Opens the session at a path."""
_OFFSET_MASK: Final = (1 << FILE_ID_SHIFT) - 1
_TOOL_PLACEHOLDERS: Final = ", ".join("?" * len(FILE_TOOLS))
_CALLS_QUERY: Final = f"""
SELECT t.message, t.place, t.turn, t.call, t.name, t.time, t.result, t.ended, m.length, r.length,
       EXISTS (SELECT 1 FROM links l WHERE l.file = t.message >> {FILE_ID_SHIFT} AND l.message = t.message
               AND l.kind = 'fork')
FROM tool_calls t JOIN messages m ON m.id = t.message JOIN messages r ON r.id = t.result
WHERE t.path = ? AND t.failed = 0 AND t.name IN ({_TOOL_PLACEHOLDERS})
"""
_BACKUPS_QUERY: Final = f"SELECT DISTINCT message >> {FILE_ID_SHIFT} FROM file_backups WHERE path = ?"
_OWNER_QUERY: Final = """
SELECT s.file, s.id, s.agent, s.project, s.title, s.rewound, f.path
FROM sessions s JOIN files f ON f.id = s.file
"""
_READ_WINDOW: Final = 8 << 20
_MAX_PROMPT_LENGTH: Final = 4_000
_RELEVANT_MARKS: Final = (f'"{SHELL}"'.encode(), b'"edited_text_file"', b'"attachment"', b'"file-history-')


class TouchOwner(msgspec.Struct, frozen=True):
    """Session or sub-agent of a touch."""

    file: int
    id: str
    agent: str
    project: str
    title: str
    rewound: bool
    path: str


class TouchFinder:
    """Finds the touches of one file. A context manager, as it keeps sources open."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: str,
        open_session: SessionOpener | None = None,
        includes_project: Callable[[str], bool] | None = None,
    ) -> None:
        self.unreadable = 0
        """Number of touches that cannot be read."""
        self.owners: dict[int, TouchOwner] = {}
        self._connection = connection
        self._path = path
        self._name = path.replace("\\", "/").rpartition("/")[2]
        self._open_session = open_session
        self._includes_project = includes_project
        self._sources: dict[int, OpenSource | None] = {}
        self._abandoned: dict[int, tuple[frozenset[int], dict[int, int]]] = {}
        self._prompts: dict[tuple[int, int], str] = {}
        self._callers: dict[int, tuple[int, int] | None] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for source in self._sources.values():
            if source is not None:
                source.close()

    def touches(self) -> list[FileTouch]:
        """Return all touches in chronological order."""
        all_touches = list(self._touches_of_calls())
        rows = self._connection.execute(_BACKUPS_QUERY, (self._path,)).fetchall()
        for (file,) in rows:
            self._is_included(file)
        for file in list(self.owners):
            all_touches += self._other_touches(file)
        return sorted(all_touches, key=_sort_key)

    # Calls in the index

    def _touches_of_calls(self) -> Iterator[FileTouch]:
        rows = self._connection.execute(_CALLS_QUERY, (self._path, *FILE_TOOLS)).fetchall()
        copies: dict[str, list[tuple[Any, ...]]] = {}
        for row in rows:
            if not self._is_included(row[0] >> FILE_ID_SHIFT):
                continue
            copies.setdefault(row[3] or f"@{row[0]}.{row[1]}", []).append(row)
        for copies_of_call in copies.values():
            # Forks and resumed sessions contain copies; use the first readable one.
            copies_of_call.sort(key=lambda row: (row[10], row[0]))
            read_touches = (self._touch_of_call(row, len(copies_of_call) - 1) for row in copies_of_call)
            touch = next((candidate for candidate in read_touches if candidate is not None), None)
            if touch is None:
                self.unreadable += 1
            elif touch.tool:
                yield touch

    def _touch_of_call(self, row: tuple[Any, ...], copies: int) -> FileTouch | None:
        message, place, turn, call, _, time, result, ended, length, result_length, _ = row
        call_record, result_record = (self._record(message, length), self._record(result, result_length))
        if call_record is None or result_record is None:
            return None
        use = next((item for item in call_record.tool_uses if item.id == call), None)
        block = next((each for each in result_record.tool_results if each.tool_use_id == call), None)
        if use is None or block is None:
            return None
        base_touch = touch_of_call(use, block, result_record)
        if base_touch is None:
            return FileTouch(tool="")
        touch = msgspec.structs.replace(
            base_touch, place=place, time=time if ended is None else ended, order=result & _OFFSET_MASK, copies=copies
        )
        return self._with_owner(touch, message >> FILE_ID_SHIFT, message & _OFFSET_MASK, turn)

    def _with_owner(self, touch: FileTouch, file: int, offset: int, turn: int) -> FileTouch:
        owner = self.owners[file]
        abandoned, numbers = self._abandoned_and_turns(owner)
        return msgspec.structs.replace(
            touch,
            file=file,
            session=owner.id,
            agent=owner.agent,
            offset=offset,
            turn=numbers.get(offset, turn),
            abandoned=offset in abandoned,
        )

    def _is_included(self, file: int) -> bool:
        self._load_owner(file)
        owner = self.owners.get(file)
        if owner is None or self._includes_project is None or self._includes_project(owner.project):
            return True
        del self.owners[file]
        return False

    def _load_owner(self, file: int) -> None:
        if file not in self.owners:
            row = self._connection.execute(f"{_OWNER_QUERY} WHERE s.file = ?", (file,)).fetchone()
            if row is not None:
                _, session_id, agent, project, title, rewound, path = row
                self.owners[file] = TouchOwner(
                    file, session_id, agent, project, title, bool(rewound), path_from_column(path)
                )

    def _abandoned_and_turns(self, owner: TouchOwner) -> tuple[frozenset[int], dict[int, int]]:
        """Return the offsets of abandoned records, and the turns of all other records."""
        if owner.file not in self._abandoned:
            branch_info: tuple[frozenset[int], dict[int, int]] = frozenset(), {}
            if owner.rewound and not owner.agent and self._open_session is not None:
                with suppress(StenoError), self._open_session(owner.path) as session:
                    branch_info = _branch_offsets(session)
            self._abandoned[owner.file] = branch_info
        return self._abandoned[owner.file]

    # Touches without a file tool call

    def _other_touches(self, file: int) -> Iterator[FileTouch]:
        """Yield the touches that a session records without a file tool call."""
        owner = self.owners[file]
        source = self._source(file)
        if source is None or not self._name:
            return
        backups = FileBackups(owner.path, owner.id, self._path, owner.project)
        backup_prefix = file_history_name(self._path, 1).partition("@")[0]
        needles = [msgspec.json.encode(self._name)[1:-1], backup_prefix.encode()]
        for offset, line in _lines_containing(source, needles):
            if not any(relevant_mark in line for relevant_mark in _RELEVANT_MARKS):
                continue
            record = next(iter(read_bytes(line, cap=len(line) + 1)), None)
            if not isinstance(record, Record):
                continue
            for touch in self._touches_in_record(record, (file << FILE_ID_SHIFT) + offset, backups):
                time = to_millis(record.timestamp) if touch.time is None else touch.time
                turn = self._turn_at(file, offset)
                placed = self._with_owner(touch, file, offset, turn)
                yield msgspec.structs.replace(
                    placed,
                    time=time,
                    order=offset,
                    agent=owner.agent or ((record.envelope.agent_id or "") if record.is_sidechain else ""),
                )

    def _touches_in_record(self, record: Record, message: int, backups: FileBackups) -> Iterator[FileTouch]:
        if record.type == "assistant":
            for place, block in enumerate(record.tool_uses):
                command = block.input.get("command")
                if block.name != SHELL or not isinstance(command, str):
                    continue
                if may_change_file(command, self._name) and self._was_run(message, block.id):
                    yield FileTouch(tool=SHELL, tool_input=block.input, place=place)
        elif record.type == "attachment":
            fields = as_object(record.fields.get("attachment")) or {}
            if fields.get("filename") != self._path:
                return
            if fields.get("type") == "edited_text_file":
                snippet = fields.get("snippet")
                yield FileTouch(tool="noticed", model_text=snippet if isinstance(snippet, str) else "")
            elif fields.get("type") == "file":
                yield FileTouch(tool="attached", result=fields)
        else:
            yield from backups.in_record(record)

    def _was_run(self, message: int, call: str) -> bool:
        row = self._connection.execute(
            "SELECT t.result, r.length, t.failed FROM tool_calls t "
            "JOIN messages r ON r.id = t.result WHERE t.message = ? AND t.call = ?",
            (message, call),
        ).fetchone()
        if row is None or not row[2]:
            return row is not None
        record = self._record(row[0], row[1])
        blocks = record.tool_results if record is not None else ()
        block = next((result for result in blocks if result.tool_use_id == call), None)
        return record is None or block is None or call_outcome(SHELL, block, record).state != "denied"

    def _turn_at(self, file: int, offset: int) -> int:
        row = self._connection.execute(
            "SELECT max(number) FROM turns WHERE file = ? AND message <= ?", (file, (file << FILE_ID_SHIFT) + offset)
        ).fetchone()
        return row[0] or 0

    # Prompts

    def prompt(self, touch_file: int, turn: int, offset: int) -> str:
        """Return the prompt that led to a touch."""
        owner = self.owners[touch_file]
        if owner.agent:
            parent_prompt = self._parent_prompt(owner)
            if parent_prompt:
                return parent_prompt
        # By offset, as turn numbers may have been corrected.
        number = self._turn_at(touch_file, offset)
        return self._prompt_text(touch_file, number or turn)

    def turn(self, touch_file: int, turn: int) -> int:
        """Return the turn in the main session; a sub-agent numbers its own turns."""
        owner = self.owners[touch_file]
        parent = self._parent_turn(owner) if owner.agent else None
        return turn if parent is None else parent[1]

    def _parent_prompt(self, owner: TouchOwner) -> str:
        """Return the prompt of the turn that started a sub-agent."""
        parent = self._parent_turn(owner)
        return "" if parent is None else self._prompt_text(*parent)

    def _parent_turn(self, owner: TouchOwner) -> tuple[int, int] | None:
        """Return the file and turn that started a sub-agent."""
        if owner.file not in self._callers:
            caller = self._connection.execute(
                "SELECT m.turn, m.id FROM links l JOIN sessions s ON s.file = l.file "
                "JOIN messages m ON m.id = l.message "
                "WHERE l.kind = 'agent' AND l.target = ? AND s.id = ?",
                (owner.agent, owner.id),
            ).fetchone()
            self._callers[owner.file] = None if caller is None else (caller[1] >> FILE_ID_SHIFT, caller[0])
        return self._callers[owner.file]

    def _prompt_text(self, file: int, turn: int) -> str:
        key = (file, turn)
        if key not in self._prompts:
            row = self._connection.execute(
                "SELECT t.message, m.length FROM turns t JOIN messages m ON m.id = t.message "
                "WHERE t.file = ? AND t.number = ?",
                key,
            ).fetchone()
            record = self._record(*row) if row is not None else None
            self._prompts[key] = prompt_text(record).strip()[:_MAX_PROMPT_LENGTH] if record is not None else ""
        return self._prompts[key]

    # Records

    def _record(self, message: int, length: int) -> Record | None:
        source = self._source(message >> FILE_ID_SHIFT)
        if source is None:
            return None
        try:
            raw = source.read(message & _OFFSET_MASK, length)
        except Unreadable:
            return None
        record = next(iter(read_bytes(raw, cap=len(raw) + 1)), None)
        return record if isinstance(record, Record) else None

    def _source(self, file: int) -> OpenSource | None:
        if file not in self._sources:
            self._load_owner(file)
            owner = self.owners.get(file)
            try:
                self._sources[file] = open_indexed_file(self._connection, file) if owner else None
            except Unreadable:
                self._sources[file] = None
        return self._sources[file]


def _sort_key(touch: FileTouch) -> tuple[bool, int, int, int, int]:
    return touch.time is None, touch.time or 0, touch.file, touch.order, touch.place


def _branch_offsets(session: Session) -> tuple[frozenset[int], dict[int, int]]:
    abandoned = frozenset(node.offset for branch in session.branches for node in branch.nodes)
    turns = {node.offset: turn.number for turn in session.turns() for node in turn.nodes}
    return abandoned, turns


def _lines_containing(source: OpenSource, needles: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that contain one of the needles, with their offsets."""
    needle_list = list(needles)
    start, unfinished = 0, b""
    while True:
        try:
            chunk = source.read(start + len(unfinished), _READ_WINDOW)
        except Unreadable:
            return
        data = unfinished + chunk
        end = data.rfind(b"\n") + 1 if chunk else len(data)
        line_starts: set[int] = set()
        for needle in needle_list:
            at = data.find(needle, 0, end)
            while at >= 0:
                begin = data.rfind(b"\n", 0, at) + 1
                line_starts.add(begin)
                stop = data.find(b"\n", at, end)
                at = data.find(needle, stop, end) if stop >= 0 else -1
        for begin in sorted(line_starts):
            stop = data.find(b"\n", begin, end)
            yield start + begin, data[begin : end if stop < 0 else stop]
        start, unfinished = start + end, data[end:]
        if not chunk:
            return
