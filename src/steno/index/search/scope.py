"""Filters → which messages, and which parts of them, are looked at.

Names become numbers by looking them up; values reach SQLite only as parameters, and the words not
at all. What fits nothing is no error: it is said why nothing can be found.
"""

import os
import re
import sqlite3
from collections.abc import Callable, Iterable
from fnmatch import translate
from typing import TYPE_CHECKING, Final

import msgspec

from steno.errors import BadRequest
from steno.index.search.language import FILTERS, Filter
from steno.index.state import SHIFT
from steno.index.texts import FAILED
from steno.index.words import KINDS, Part

if TYPE_CHECKING:
    import tantivy

__all__ = ["ROLES", "Scope", "When", "scope_of"]

When = Callable[[str], tuple[float, float]]
"""The first moment of what a word means, and the first one behind it; raises BadRequest."""

ROLES: Final = {
    "user": ("prompt",),
    "assistant": ("answer", "thinking", "input"),
    "tool": ("output",),
    "client": ("note", "title", "summary"),
}
"""Who speaks in which kinds of text."""
_ALSO: Final = {"system": "client", "human": "user", "model": "assistant", "tools": "tool"}
_SINGLE: Final = ("project", "branch", "model", "tool")
_SECOND: Final = 1000
_SAID: Final = 60
"""So much of a value is said again."""
_NAMED: Final = 8
_EARLIEST, _LATEST = -(1 << 62), 1 << 62


class Scope(msgspec.Struct):
    """What is looked at."""

    kinds: frozenset[str] = frozenset(KINDS)
    """Whose words."""
    tools: frozenset[str] | None = None
    no_tools: frozenset[str] = frozenset()
    failed: bool | None = None
    tags: list[frozenset[int]] = []
    """Of each of these sets a document bears one."""
    no_tags: frozenset[int] = frozenset()
    files: frozenset[int] | None = None
    no_files: frozenset[int] = frozenset()
    messages: frozenset[int] | None = None
    no_messages: frozenset[int] = frozenset()
    since: int | None = None
    until: int | None = None
    empty: str = ""
    """Why nothing can be found."""

    def fits(self, part: Part) -> bool:
        """Whether a part of a message that is looked at is looked at itself."""
        return (
            part.kind in self.kinds
            and (self.tools is None or part.tool in self.tools)
            and part.tool not in self.no_tools
            and self.failed in (None, part.failed)
        )

    @property
    def picks(self) -> bool:
        """Whether some messages are chosen, or left out, that only the tables know."""
        return self.messages is not None or bool(self.no_messages)

    def takes(self, message: int) -> bool:
        """Whether a message is one of those that only the tables know."""
        return message not in self.no_messages and (
            self.messages is None or message in self.messages
        )

    def clauses(self, schema: "tantivy.Schema") -> "list[tuple[tantivy.Occur, tantivy.Query]]":
        """Return the scope as conditions of a query."""
        from tantivy import FieldType, Occur, Query

        def among(field: str, numbers: Iterable[int]) -> "tantivy.Query":
            return Query.term_set_query(schema, field, sorted(numbers))

        found = [(Occur.Must, among("tag", tags)) for tags in self.tags]
        if self.no_tags:
            found.append((Occur.MustNot, among("tag", self.no_tags)))
        if self.files is not None:
            found.append((Occur.Must, among("file", self.files)))
        if self.no_files:
            found.append((Occur.MustNot, among("file", self.no_files)))
        if self.since is not None or self.until is not None:
            # Whatever has no time bears a zero, and is not known to be in any time.
            since = max(1, self.since) if self.since is not None else 1
            until = self.until if self.until is not None else _LATEST
            time = Query.range_query(
                schema, "time", FieldType.Integer, since, until, include_upper=False
            )
            found.append((Occur.Must, time))
        return found


def scope_of(connection: sqlite3.Connection, filters: Iterable[Filter], when: When) -> Scope:
    """Return what some filters leave.

    Raises:
        BadRequest: a filter asks for what cannot be.
    """
    scope = Scope()
    grouped: dict[tuple[str, bool], list[str]] = {}
    for each in filters:
        if not each.value.strip():
            raise BadRequest(f"{each.name}: says nothing", hint=FILTERS[each.name])
        grouped.setdefault((each.name, each.negated), []).append(each.value)
    maker = _Maker(connection, scope, when)
    for (name, negated), values in grouped.items():
        maker.take(name, values, negated=negated)
    return scope


class _Maker:
    def __init__(self, connection: sqlite3.Connection, scope: Scope, when: When) -> None:
        self._connection = connection
        self._scope = scope
        self._when = when

    def take(self, name: str, values: list[str], *, negated: bool) -> None:
        """Take in one filter, with all that was asked of it."""
        if name in _SINGLE:
            self._named(name, values, negated=negated)
        elif name in ("role", "in"):
            self._kinds(name, values, negated=negated)
        elif name == "file":
            self._file(values, negated=negated)
        elif name == "session":
            self._session(values, negated=negated)
        elif name == "has":
            self._has(values, negated=negated)
        else:
            self._time(name, values, negated=negated)

    def _named(self, kind: str, values: list[str], *, negated: bool) -> None:
        rows = self._connection.execute("SELECT id, name FROM names WHERE kind = ?", (kind,))
        names = {str(name): int(number) for number, name in rows}
        fitting = {name for value in values for name in _fitting(kind, value, names)}
        self._tag({names[name] for name in fitting}, negated=negated)
        if not negated and not fitting:
            known = _some(sorted(names)) if kind in ("tool", "model") else ""
            there = f"; there are {known}" if known else ""
            self._scope.empty = f"no {kind} fits {_said(values)}{there}"
        if kind == "tool":
            if negated:
                self._scope.no_tools = frozenset(fitting)
            else:
                self._scope.tools = frozenset(fitting)

    def _tag(self, tags: set[int], *, negated: bool) -> None:
        if negated:
            self._scope.no_tags |= tags
        else:
            self._scope.tags = [*self._scope.tags, frozenset(tags)]

    def _kinds(self, name: str, values: list[str], *, negated: bool) -> None:
        kinds = {kind for value in values for kind in _kinds_of(name, value)}
        scope = self._scope
        scope.kinds = scope.kinds - kinds if negated else scope.kinds & kinds
        rows = self._connection.execute("SELECT id, name FROM names WHERE kind = 'kind'")
        self._tag({int(number) for number, kind in rows if kind in kinds}, negated=negated)

    def _has(self, values: list[str], *, negated: bool) -> None:
        for value in values:
            if value.lower() not in ("error", "errors"):
                raise _unknown("has", value, ("error",))
        self._scope.failed = not negated
        self._tag({FAILED}, negated=negated)

    def _time(self, name: str, values: list[str], *, negated: bool) -> None:
        if negated:
            other = "until" if name == "since" else "since"
            raise BadRequest(f"-{name}: makes no sense", hint=f"use {other}:")
        moments = [self._when(value) for value in values]
        if name == "since":
            self._scope.since = _millis(max(start for start, _ in moments))
        else:
            self._scope.until = _millis(min(end for _, end in moments))

    def _session(self, values: list[str], *, negated: bool) -> None:
        files = {file for value in values for file in self._files_of(value)}
        if negated:
            self._scope.no_files |= files
        else:
            self._limit_files(files)
            if not files:
                self._scope.empty = f"no session goes by {_said(values)}"

    def _files_of(self, value: str) -> set[int]:
        """Return the files of the sessions that go by a name, those of their sub-agents too."""
        rows = self._connection.execute(
            "SELECT s.file, s.id, s.agent, s.title, s.hidden, f.mtime FROM sessions s "
            "JOIN files f ON f.id = s.file"
        ).fetchall()
        wanted = value.casefold()
        if wanted == "last":
            shown = [row for row in rows if not row[4]]
            ids = {max(shown, key=_written)[1]} if shown else set[str]()
            return {row[0] for row in rows if row[1] in ids}
        if agents := {row[0] for row in rows if row[2].startswith(wanted)}:
            return agents
        ids = {row[1] for row in rows if row[1].casefold().startswith(wanted)}
        titles = [(row[1], row[3].casefold()) for row in rows if not row[2]]
        ids = ids or {name for name, title in titles if title == wanted}
        ids = ids or {name for name, title in titles if wanted in title}
        return {row[0] for row in rows if row[1] in ids}

    def _file(self, values: list[str], *, negated: bool) -> None:
        rows = self._connection.execute("SELECT DISTINCT path FROM tool_calls WHERE path <> ''")
        fits = [_path_test(value) for value in values]
        paths = [path for (path,) in rows if any(fit(_plain(path)) for fit in fits)]
        rows = self._connection.execute(
            "SELECT message, result FROM tool_calls WHERE path IN (SELECT value FROM json_each(?))",
            (msgspec.json.encode(paths).decode(),),
        )
        messages = {message for row in rows for message in row if message is not None}
        if negated:
            self._scope.no_messages = frozenset(messages)
            return
        self._scope.messages = frozenset(messages)
        self._limit_files({message >> SHIFT for message in messages})
        if not messages:
            self._scope.empty = f"no tool was used on a file {_said(values)}"

    def _limit_files(self, files: set[int]) -> None:
        before = self._scope.files
        self._scope.files = frozenset(files if before is None else before & files)


def _fitting(kind: str, value: str, names: Iterable[str]) -> list[str]:
    """Return which names are meant: of tools and branches the very name, else parts."""
    if kind == "project" and value == ".":
        here = os.getcwd()
        return [name for name in names if name == here or name.startswith(here + os.sep)]
    wanted = value.casefold()
    if kind in ("tool", "branch"):
        exact = [name for name in names if name.casefold() == wanted]
        if exact:
            return exact
    return [name for name in names if wanted in name.casefold()]


def _kinds_of(name: str, value: str) -> tuple[str, ...]:
    word = value.lower()
    if name == "role":
        word = _ALSO.get(word, word)
        if word in ROLES:
            return ROLES[word]
        raise _unknown(name, value, ROLES)
    for form in (word, word.removesuffix("s"), word.removesuffix("ies") + "y"):
        if form in KINDS:
            return (form,)
    raise _unknown(name, value, KINDS)


def _unknown(name: str, value: str, known: Iterable[str]) -> BadRequest:
    return BadRequest(f"{name}: knows no {value[:_SAID]!r}", hint=f"there is {', '.join(known)}")


def _path_test(value: str) -> Callable[[str], object]:
    """Return what says whether a path is the one meant, or ends so, or lies below.

    With a slash in front it is the whole path that is meant.
    """
    wanted = _plain(value).removeprefix("./")
    tail = "/" + wanted
    is_folder, is_whole = wanted.endswith("/"), wanted.startswith("/")
    if "*" in wanted or "?" in wanted:
        fit = re.compile(translate(wanted)).fullmatch
        inside = re.compile(translate("*" + tail)).fullmatch
        return lambda path: fit(path) or inside(path)
    if is_folder:
        return lambda path: path.startswith(wanted) or (not is_whole and tail in path)
    return lambda path: path == wanted or (not is_whole and path.endswith(tail))


def _plain(path: str) -> str:
    return path.replace("\\", "/").casefold()


def _written(row: tuple[int, str, str, str, int, int]) -> int:
    return row[5]


def _millis(seconds: float) -> int:
    return int(min(max(seconds * _SECOND, _EARLIEST), _LATEST))


def _some(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" … and {more:,} more" if more > 0 else "")


def _said(values: list[str]) -> str:
    return " or ".join(repr(value[:_SAID]) for value in values)
