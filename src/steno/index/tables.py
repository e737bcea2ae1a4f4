"""Rows into tables: what a harvest gave, what no longer is, and the sums that follow from both."""

import sqlite3
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

from steno.format.paths import Place
from steno.index.scan import Task, path_to
from steno.index.state import SHIFT, Doc, Harvest, State, encode_state
from steno.index.sums import LOCAL_DAY
from steno.index.texts import FAILED, SPLIT, Texts
from steno.session.story.threads import WARMUP
from steno.session.story.titles import Title

__all__ = ["Tables"]

_BY_MESSAGE: Final = (
    ("messages", "id"),
    ("tool_calls", "message"),
    ("file_edits", "message"),
    ("file_backups", "message"),
)
_BY_FILE: Final = ("turns", "links", "usage")
_USAGE: Final = (
    "file",
    "key",
    "message",
    "lines",
    "turn",
    "time",
    "model",
    "branch",
    "agent",
    "input",
    "output",
    "cache_5m",
    "cache_1h",
    "cache_read",
    "searches",
    "fast",
    "estimated",
    "copied",
)
_KEPT_APART: Final = ("file", "key", "lines", "turn", "time")
_FIRST_NAME: Final = FAILED + 1


def _insert(table: str, columns: int, *, verb: str = "INSERT") -> str:
    return f"{verb} INTO {table} VALUES ({', '.join('?' * columns)})"


_UPSERT: Final = (
    f"INSERT INTO usage ({', '.join(_USAGE)}) VALUES ({', '.join('?' * len(_USAGE))}) "
    "ON CONFLICT (file, key) DO UPDATE SET lines = lines + excluded.lines, "
    + ", ".join(
        f"{name} = iif(excluded.output >= output, excluded.{name}, {name})"
        for name in _USAGE
        if name not in _KEPT_APART
    )
)


class Tables:
    """Writes to the tables inside a transaction, and to the words beside them."""

    def __init__(self, connection: sqlite3.Connection, texts: Texts, batch: int) -> None:
        self._connection = connection
        self._texts = texts
        self._batch = batch
        self._names: dict[tuple[str, str], int] = {}
        self._tags: dict[tuple[str | bool, ...], tuple[int, ...]] = {}
        self.keys: set[str] = set()
        """The responses whose figures may have changed."""
        self.days: set[str] = set()
        """Days on which there was something that is gone, or belongs elsewhere now."""
        self.unlent: set[str] = set()
        """Last records of sessions whose title stood in a file that was forgotten."""

    # Files

    def forget(self, file: int) -> None:
        """Take out everything that was read from a file."""
        execute = self._connection.execute
        self._recall(file)
        lent = execute("SELECT target FROM links WHERE file = ? AND kind = 'summary'", (file,))
        self.unlent.update(target for (target,) in lent)
        first, last = file << SHIFT, (file + 1) << SHIFT
        for table, column in _BY_MESSAGE:
            execute(f"DELETE FROM {table} WHERE {column} >= ? AND {column} < ?", (first, last))
        for table in _BY_FILE:
            execute(f"DELETE FROM {table} WHERE file = ?", (file,))
        self._texts.drop_file(file)

    def _recall(self, file: int) -> None:
        """Remember what the figures of a file are part of."""
        rows = self._connection.execute(
            f"SELECT key, {LOCAL_DAY} FROM usage u WHERE file = ?",
            (file,),
        )
        for key, day in rows:
            self.keys.add(key)
            self.days.add(day)

    def take(self, harvest: Harvest) -> None:
        """Take in what was read from a file."""
        many = self._connection.executemany
        many(_insert("messages", 5), harvest.messages)
        many(_insert("tool_calls", 11), harvest.calls)
        many(_insert("file_edits", 8), harvest.edits)
        many(_insert("links", 5, verb="INSERT OR IGNORE"), harvest.links)
        many(_insert("file_backups", 5), harvest.backups)
        many(_insert("turns", 8, verb="INSERT OR REPLACE"), harvest.turns)
        many(_UPSERT, harvest.usage)
        many(
            "UPDATE tool_calls SET result = ?, ended = ?, failed = ? "
            "WHERE message = ? AND place = ?",
            harvest.answers,
        )
        many(
            "UPDATE file_edits SET added = ?, removed = ? WHERE message = ? AND place = ?",
            harvest.sizes,
        )
        self.keys.update(row[1] for row in harvest.usage)
        self._index(harvest.file, harvest.docs)

    def settle(self, task: Task, done: int, mark: bytes, state: State, title: Title) -> None:
        """Note how far a file was read, and what its session is about."""
        row = _session_row(task.file, task.place, state, title)
        gone = round(time.time()) if task.gone else None
        row = (*row, state.ending, self._grown(task, done), task.size, gone)
        row = (*row, state.step_counts.records, int(state.step_counts.answered), state.dialect)
        before = self._connection.execute(
            "SELECT s.id, s.agent, s.project, s.started, f.path "
            "FROM sessions s JOIN files f ON f.id = s.file WHERE s.file = ?",
            (task.file,),
        ).fetchone()
        if before is not None and before != (*row[1:4], row[9], path_to(task.path)):
            self._recall(task.file)
        self._connection.execute(
            "UPDATE files SET root = ?, path = ?, size = ?, mtime = ?, device = ?, inode = ?, "
            "done = ?, mark = ?, state = ?, gone = ? WHERE id = ?",
            (
                path_to(task.root),
                path_to(task.path),
                task.size,
                task.mtime,
                task.device,
                task.inode,
                done,
                mark,
                encode_state(state),
                gone,
                task.file,
            ),
        )
        self._connection.execute(_insert("sessions", 30, verb="INSERT OR REPLACE"), row)

    def _grown(self, task: Task, done: int) -> int | None:
        """Return when a file was last seen growing: longer than at the sync before, and the same."""
        if 0 < task.start < done and not task.gone:
            return task.mtime // 1_000_000
        before = self._connection.execute(
            "SELECT grown FROM sessions WHERE file = ?", (task.file,)
        ).fetchone()
        return before[0] if before is not None and not task.anew else None

    # Words

    def _index(self, file: int, docs: Sequence[Doc]) -> None:
        split = {one.message for one, next_ in pairwise(docs) if one.message == next_.message}
        known, batch, add = self._tags, self._batch, self._texts.add
        for doc in docs:
            traits = (doc.kind, doc.project, doc.branch, doc.model, doc.tool, doc.failed)
            tags = known.get(traits)
            if tags is None:
                tags = known[traits] = self._tags_of(doc)
            if doc.message in split:
                tags = (*tags, SPLIT)
            add(batch, file, doc.message, doc.time, tags, doc.text)

    def _tags_of(self, doc: Doc) -> tuple[int, ...]:
        traits = (
            ("kind", doc.kind),
            ("project", doc.project),
            ("branch", doc.branch),
            ("model", doc.model),
            ("tool", doc.tool),
        )
        tags = tuple(self._name(kind, name) for kind, name in traits if name)
        return (*tags, FAILED) if doc.failed else tags

    def _name(self, kind: str, name: str) -> int:
        key = (kind, name)
        known = self._names.get(key)
        if known is None:
            execute = self._connection.execute
            row = execute("SELECT id FROM names WHERE kind = ? AND name = ?", key).fetchone()
            if row is None:
                (highest,) = execute("SELECT max(id) FROM names").fetchone()
                row = (max(_FIRST_NAME, (highest or 0) + 1),)
                execute("INSERT INTO names VALUES (?, ?, ?)", (*row, *key))
            known = self._names[key] = row[0]
        return known


def _session_row(file: int, place: Place, state: State, title: Title) -> tuple[Any, ...]:
    is_agent = place.role == "agent"
    figures = state.course.figures()
    agents = int(state.first_prompt != WARMUP) if is_agent else figures.agents
    return (
        file,
        place.session_id or state.session,
        (place.agent_id or state.agent) if is_agent else "",
        state.project,
        "" if state.branch == "HEAD" else state.branch,
        title.text,
        int(title.is_given),
        state.version,
        figures.model or state.model,
        state.started,
        state.ended,
        figures.turns,
        state.messages,
        state.calls,
        figures.failed,
        int(is_agent or not state.main or not state.prompted),
        figures.branches,
        state.last_uuid,
        figures.steps,
        figures.worked,
        figures.compactions,
        agents,
        file,
    )
