"""The touches of one file: rows of the index, and the records behind them, read again.

The index knows every call that names the file. What else there is to know (commands that name it,
files that were attached, notices that it changed, backups) is found by looking for its name in the
bytes of the sessions that touched it.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from typing import Any, Final, Self, TypeAlias

import msgspec

from steno.errors import StenoError, Unreadable
from steno.format.lines import read_bytes
from steno.format.paths import file_history_name
from steno.format.records import Record
from steno.format.source import OpenSource
from steno.format.tool_catalogue import FILE_TOOLS, SHELL
from steno.format.values import as_object
from steno.index.moments import millis
from steno.index.scan import path_from
from steno.index.sources import open_file
from steno.index.state import SHIFT
from steno.report.files.commands import may_change
from steno.report.files.kept import Backups
from steno.report.files.recorded import touch_from
from steno.report.files.values import Touch
from steno.session.session import Session
from steno.session.story.outcomes import outcome_of
from steno.session.story.prompts import words_of

__all__ = ["Finder", "Opener", "Owner"]

Opener: TypeAlias = Callable[[str], AbstractContextManager[Session]]
"""Gives the session at a path."""
_OFFSET: Final = (1 << SHIFT) - 1
_MARKS: Final = ", ".join("?" * len(FILE_TOOLS))
_CALLS: Final = f"""
SELECT t.message, t.place, t.turn, t.call, t.name, t.time, t.result, t.ended, m.length, r.length,
       EXISTS (SELECT 1 FROM links l WHERE l.file = t.message >> {SHIFT} AND l.message = t.message
               AND l.kind = 'fork')
FROM tool_calls t JOIN messages m ON m.id = t.message JOIN messages r ON r.id = t.result
WHERE t.path = ? AND t.failed = 0 AND t.name IN ({_MARKS})
"""
_BACKED_UP: Final = f"SELECT DISTINCT message >> {SHIFT} FROM file_backups WHERE path = ?"
_OWNER: Final = """
SELECT s.file, s.id, s.agent, s.project, s.title, s.rewound, f.path
FROM sessions s JOIN files f ON f.id = s.file
"""
_WINDOW: Final = 8 << 20
_PROMPT: Final = 4_000
_KINDS: Final = (f'"{SHELL}"'.encode(), b'"edited_text_file"', b'"attachment"', b'"file-history-')


class Owner(msgspec.Struct, frozen=True):
    """The session, or sub-agent, that a touch is of."""

    file: int
    id: str
    agent: str
    project: str
    title: str
    rewound: bool
    path: str


class Finder:
    """Finds the touches of one file. Use it in a `with`: it holds sessions open."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: str,
        opened: Opener | None = None,
        counts: Callable[[str], bool] | None = None,
    ) -> None:
        self.lost = 0
        """How many touches could not be read."""
        self.owners: dict[int, Owner] = {}
        self._connection = connection
        self._path = path
        self._name = path.replace("\\", "/").rpartition("/")[2]
        self._opened = opened
        self._counts = counts
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

    def touches(self) -> list[Touch]:
        """Return all touches in the order they happened."""
        found = list(self._calls())
        rows = self._connection.execute(_BACKED_UP, (self._path,)).fetchall()
        for (file,) in rows:
            self._takes(file)
        for file in list(self.owners):
            found += self._besides(file)
        return sorted(found, key=_order)

    # What the index knows

    def _calls(self) -> Iterator[Touch]:
        rows = self._connection.execute(_CALLS, (self._path, *FILE_TOOLS)).fetchall()
        copies: dict[str, list[tuple[Any, ...]]] = {}
        for row in rows:
            if not self._takes(row[0] >> SHIFT):
                continue
            copies.setdefault(row[3] or f"@{row[0]}.{row[1]}", []).append(row)
        for same in copies.values():
            # Forks and resumed sessions hold copies of it; the first that can be read counts.
            same.sort(key=lambda row: (row[10], row[0]))
            made = (self._call(row, len(same) - 1) for row in same)
            touch = next((each for each in made if each is not None), None)
            if touch is None:
                self.lost += 1
            elif touch.tool:
                yield touch

    def _call(self, row: tuple[Any, ...], copies: int) -> Touch | None:
        message, place, turn, call, _, time, result, ended, length, answer, _ = row
        asking, answering = self._record(message, length), self._record(result, answer)
        if asking is None or answering is None:
            return None
        use = next((each for each in asking.tool_uses if each.id == call), None)
        block = next((each for each in answering.tool_results if each.tool_use_id == call), None)
        if use is None or block is None:
            return None
        made = touch_from(use, block, answering)
        if made is None:
            return Touch(tool="")
        touch = msgspec.structs.replace(
            made,
            place=place,
            time=time if ended is None else ended,
            order=result & _OFFSET,
            copies=copies,
        )
        return self._placed(touch, message >> SHIFT, message & _OFFSET, turn)

    def _placed(self, touch: Touch, file: int, offset: int, turn: int) -> Touch:
        """Say whose touch it is."""
        owner = self.owners[file]
        away, numbers = self._branches(owner)
        return msgspec.structs.replace(
            touch,
            file=file,
            session=owner.id,
            agent=owner.agent,
            offset=offset,
            turn=numbers.get(offset, turn),
            abandoned=offset in away,
        )

    def _takes(self, file: int) -> bool:
        """Whether a session is of a project that counts."""
        self._owner(file)
        owner = self.owners.get(file)
        if owner is None or self._counts is None or self._counts(owner.project):
            return True
        del self.owners[file]
        return False

    def _owner(self, file: int) -> None:
        if file not in self.owners:
            row = self._connection.execute(f"{_OWNER} WHERE s.file = ?", (file,)).fetchone()
            if row is not None:
                _, name, agent, project, title, rewound, path = row
                self.owners[file] = Owner(
                    file, name, agent, project, title, bool(rewound), path_from(path)
                )

    def _branches(self, owner: Owner) -> tuple[frozenset[int], dict[int, int]]:
        """Return which records of a session are abandoned, and the turns of all others."""
        if owner.file not in self._abandoned:
            found: tuple[frozenset[int], dict[int, int]] = frozenset(), {}
            if owner.rewound and not owner.agent and self._opened is not None:
                with suppress(StenoError), self._opened(owner.path) as session:
                    found = _branches_of(session)
            self._abandoned[owner.file] = found
        return self._abandoned[owner.file]

    # What else there is

    def _besides(self, file: int) -> Iterator[Touch]:
        """Yield what a session says of the file without a call of its own for it."""
        owner = self.owners[file]
        source = self._source(file)
        if source is None or not self._name:
            return
        backups = Backups(owner.path, owner.id, self._path, owner.project)
        mark = file_history_name(self._path, 1).partition("@")[0]
        needles = [_quoted(self._name), mark.encode()]
        for offset, line in _lines_with(source, needles):
            if not any(kind in line for kind in _KINDS):
                continue
            record = next(iter(read_bytes(line, cap=len(line) + 1)), None)
            if not isinstance(record, Record):
                continue
            for touch in self._noted(record, (file << SHIFT) + offset, backups):
                time = millis(record.timestamp) if touch.time is None else touch.time
                turn = self._turn(file, offset)
                placed = self._placed(touch, file, offset, turn)
                yield msgspec.structs.replace(
                    placed, time=time, order=offset, agent=owner.agent or _agent(record)
                )

    def _noted(self, record: Record, message: int, backups: Backups) -> Iterator[Touch]:
        if record.type == "assistant":
            for place, block in enumerate(record.tool_uses):
                command = block.input.get("command")
                if block.name != SHELL or not isinstance(command, str):
                    continue
                if may_change(command, self._name) and self._ran(message, block.id):
                    yield Touch(tool=SHELL, asked=block.input, place=place)
        elif record.type == "attachment":
            fields = as_object(record.fields.get("attachment")) or {}
            if fields.get("filename") != self._path:
                return
            if fields.get("type") == "edited_text_file":
                snippet = fields.get("snippet")
                yield Touch(tool="noticed", words=snippet if isinstance(snippet, str) else "")
            elif fields.get("type") == "file":
                yield Touch(tool="attached", result=fields)
        else:
            yield from backups.in_record(record)

    def _ran(self, message: int, call: str) -> bool:
        """Whether a command was let run."""
        row = self._connection.execute(
            "SELECT t.result, r.length, t.failed FROM tool_calls t "
            "JOIN messages r ON r.id = t.result WHERE t.message = ? AND t.call = ?",
            (message, call),
        ).fetchone()
        if row is None or not row[2]:
            return row is not None
        record = self._record(row[0], row[1])
        blocks = record.tool_results if record is not None else ()
        block = next((each for each in blocks if each.tool_use_id == call), None)
        return record is None or block is None or outcome_of(SHELL, block, record).state != "denied"

    def _turn(self, file: int, offset: int) -> int:
        row = self._connection.execute(
            "SELECT max(number) FROM turns WHERE file = ? AND message <= ?",
            (file, (file << SHIFT) + offset),
        ).fetchone()
        return row[0] or 0

    # Prompts

    def prompt(self, touch_file: int, turn: int, offset: int) -> str:
        """Return what somebody asked that led to a touch."""
        owner = self.owners[touch_file]
        if owner.agent:
            above = self._asked_above(owner)
            if above:
                return above
        # By place, since the numbers of turns may have been told anew.
        number = self._turn(touch_file, offset)
        return self._words(touch_file, number or turn)

    def turn(self, touch_file: int, turn: int) -> int:
        """Return the turn of the session that a touch belongs to; sub-agents count their own."""
        owner = self.owners[touch_file]
        above = self._above(owner) if owner.agent else None
        return turn if above is None else above[1]

    def _asked_above(self, owner: Owner) -> str:
        """Return what was asked of the session that a sub-agent worked for."""
        above = self._above(owner)
        return "" if above is None else self._words(*above)

    def _above(self, owner: Owner) -> tuple[int, int] | None:
        """Return the file and the turn in which a sub-agent was called."""
        if owner.file not in self._callers:
            row = self._connection.execute(
                "SELECT m.turn, m.id FROM links l JOIN sessions s ON s.file = l.file "
                "JOIN messages m ON m.id = l.message "
                "WHERE l.kind = 'agent' AND l.target = ? AND s.id = ?",
                (owner.agent, owner.id),
            ).fetchone()
            self._callers[owner.file] = None if row is None else (row[1] >> SHIFT, row[0])
        return self._callers[owner.file]

    def _words(self, file: int, turn: int) -> str:
        key = (file, turn)
        if key not in self._prompts:
            row = self._connection.execute(
                "SELECT t.message, m.length FROM turns t JOIN messages m ON m.id = t.message "
                "WHERE t.file = ? AND t.number = ?",
                key,
            ).fetchone()
            record = self._record(*row) if row is not None else None
            self._prompts[key] = words_of(record).strip()[:_PROMPT] if record is not None else ""
        return self._prompts[key]

    # Records

    def _record(self, message: int, length: int) -> Record | None:
        source = self._source(message >> SHIFT)
        if source is None:
            return None
        try:
            raw = source.read(message & _OFFSET, length)
        except Unreadable:
            return None
        found = next(iter(read_bytes(raw, cap=len(raw) + 1)), None)
        return found if isinstance(found, Record) else None

    def _source(self, file: int) -> OpenSource | None:
        if file not in self._sources:
            self._owner(file)
            owner = self.owners.get(file)
            try:
                self._sources[file] = open_file(self._connection, file) if owner else None
            except Unreadable:
                self._sources[file] = None
        return self._sources[file]


def _order(touch: Touch) -> tuple[bool, int, int, int, int]:
    return touch.time is None, touch.time or 0, touch.file, touch.order, touch.place


def _branches_of(session: Session) -> tuple[frozenset[int], dict[int, int]]:
    away = frozenset(node.offset for branch in session.branches for node in branch.nodes)
    turns = {node.offset: turn.number for turn in session.turns() for node in turn.nodes}
    return away, turns


def _agent(record: Record) -> str:
    return (record.envelope.agent_id or "") if record.is_sidechain else ""


def _quoted(name: str) -> bytes:
    """Return a name as it stands inside a JSON string."""
    return msgspec.json.encode(name)[1:-1]


def _lines_with(source: OpenSource, needles: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that hold one of some words, and where they begin."""
    sought = list(needles)
    start, rest = 0, b""
    while True:
        try:
            fresh = source.read(start + len(rest), _WINDOW)
        except Unreadable:
            return
        data = rest + fresh
        end = data.rfind(b"\n") + 1 if fresh else len(data)
        places: set[int] = set()
        for needle in sought:
            at = data.find(needle, 0, end)
            while at >= 0:
                begin = data.rfind(b"\n", 0, at) + 1
                places.add(begin)
                stop = data.find(b"\n", at, end)
                at = data.find(needle, stop, end) if stop >= 0 else -1
        for begin in sorted(places):
            stop = data.find(b"\n", begin, end)
            yield start + begin, data[begin : end if stop < 0 else stop]
        start, rest = start + end, data[end:]
        if not fresh:
            return
