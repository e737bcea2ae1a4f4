"""Filters → the messages, and parts of messages, to search.

Names are looked up as numbers; values reach SQLite only as parameters, and query words never do. A filter that matches
nothing is not an error: `empty_reason` explains it.
"""

import os
import re
import sqlite3
from collections.abc import Callable, Iterable
from fnmatch import translate
from operator import itemgetter
from typing import TYPE_CHECKING, Final

import msgspec

from steno.errors import BadRequest
from steno.index.database import ARRAY_SQL, json_array
from steno.index.search.query_parser import FILTERS, Filter
from steno.index.searchable_text import TEXT_KINDS, TextPart
from steno.index.session_stats import FILE_ID_SHIFT
from steno.index.text_index import FAILED_TAG

if TYPE_CHECKING:
    import tantivy


TimeRangeParser = Callable[[str], tuple[float, float]]
"""Converts a time expression to its first moment and the first moment after it; raises BadRequest."""

ROLES: Final = {
    "user": ("prompt",),
    "assistant": ("answer", "thinking", "input"),
    "tool": ("output",),
    "client": ("note", "title", "summary"),
}
"""The kinds of text of each role."""
_ROLE_ALIASES: Final = {"system": "client", "human": "user", "model": "assistant", "tools": "tool"}
_NAME_FILTERS: Final = ("project", "branch", "model", "tool")
_MS_PER_SECOND: Final = 1000
_MAX_QUOTED_LENGTH: Final = 60
"""Maximum length of a value quoted in a message."""
_MAX_LISTED_NAMES: Final = 8
_EARLIEST, _LATEST = -(1 << 62), 1 << 62


class SearchScope(msgspec.Struct):
    """The messages and parts to search."""

    kinds: frozenset[str] = frozenset(TEXT_KINDS)
    """Kinds of text to search."""
    tools: frozenset[str] | None = None
    excluded_tools: frozenset[str] = frozenset()
    failed: bool | None = None
    tags: list[frozenset[int]] = []
    """A document must have at least one tag of each set."""
    excluded_tags: frozenset[int] = frozenset()
    files: frozenset[int] | None = None
    excluded_files: frozenset[int] = frozenset()
    messages: frozenset[int] | None = None
    excluded_messages: frozenset[int] = frozenset()
    since: int | None = None
    until: int | None = None
    empty_reason: str = ""
    """Why no message can match."""

    def includes_part(self, part: TextPart) -> bool:
        """Return whether a part of a matching message is searched."""
        return (
            part.kind in self.kinds
            and (self.tools is None or part.tool in self.tools)
            and part.tool not in self.excluded_tools
            and self.failed in (None, part.failed)
        )

    @property
    def selects_messages(self) -> bool:
        """Whether messages are selected by a filter that only the database can evaluate."""
        return self.messages is not None or bool(self.excluded_messages)

    def includes_message(self, message: int) -> bool:
        """Return whether a message passes the filters that only the database can evaluate."""
        return message not in self.excluded_messages and (self.messages is None or message in self.messages)

    def clauses(self, schema: "tantivy.Schema") -> "list[tuple[tantivy.Occur, tantivy.Query]]":
        """Return the scope as query conditions."""
        from tantivy import FieldType, Occur, Query

        def any_of(field: str, numbers: Iterable[int]) -> "tantivy.Query":
            return Query.term_set_query(schema, field, sorted(numbers))

        conditions = [(Occur.Must, any_of("tag", tags)) for tags in self.tags]
        if self.excluded_tags:
            conditions.append((Occur.MustNot, any_of("tag", self.excluded_tags)))
        if self.files is not None:
            conditions.append((Occur.Must, any_of("file", self.files)))
        if self.excluded_files:
            conditions.append((Occur.MustNot, any_of("file", self.excluded_files)))
        if self.since is not None or self.until is not None:
            # Messages without a time are stored with time 0 and match no time filter.
            since = max(1, self.since) if self.since is not None else 1
            until = self.until if self.until is not None else _LATEST
            time = Query.range_query(schema, "time", FieldType.Integer, since, until, include_upper=False)
            conditions.append((Occur.Must, time))
        return conditions


def build_scope(connection: sqlite3.Connection, filters: Iterable[Filter], parse_time: TimeRangeParser) -> SearchScope:
    """Return the scope of some filters.

    Raises:
        BadRequest: a filter has an invalid value.
    """
    scope = SearchScope()
    grouped: dict[tuple[str, bool], list[str]] = {}
    for search_filter in filters:
        if not search_filter.value.strip():
            raise BadRequest(f"{search_filter.name}: needs a value", hint=FILTERS[search_filter.name])
        grouped.setdefault((search_filter.name, search_filter.negated), []).append(search_filter.value)
    builder = _ScopeBuilder(connection, scope, parse_time)
    for (name, negated), values in grouped.items():
        builder.add_filter(name, values, negated=negated)
    return scope


class _ScopeBuilder:
    def __init__(self, connection: sqlite3.Connection, scope: SearchScope, parse_time: TimeRangeParser) -> None:
        self._connection = connection
        self._scope = scope
        self._parse_time = parse_time

    def add_filter(self, name: str, values: list[str], *, negated: bool) -> None:
        """Apply one filter with all its values."""
        if name in _NAME_FILTERS:
            self._add_name_filter(name, values, negated=negated)
        elif name in ("role", "in"):
            self._add_kinds(name, values, negated=negated)
        elif name == "file":
            self._add_file(values, negated=negated)
        elif name == "session":
            self._add_session(values, negated=negated)
        elif name == "has":
            self._add_has(values, negated=negated)
        else:
            self._add_time(name, values, negated=negated)

    def _add_name_filter(self, kind: str, values: list[str], *, negated: bool) -> None:
        rows = self._connection.execute("SELECT id, name FROM names WHERE kind = ?", (kind,))
        names = {str(name): int(number) for number, name in rows}
        matching = {name for value in values for name in _matching_names(kind, value, names)}
        self._add_tags({names[name] for name in matching}, negated=negated)
        if not negated and not matching:
            known_names = _list_names(sorted(names)) if kind in ("tool", "model") else ""
            suffix = f"; known: {known_names}" if known_names else ""
            self._scope.empty_reason = f"no {kind} matches {_quote_values(values)}{suffix}"
        if kind == "tool":
            if negated:
                self._scope.excluded_tools = frozenset(matching)
            else:
                self._scope.tools = frozenset(matching)

    def _add_tags(self, tags: set[int], *, negated: bool) -> None:
        if negated:
            self._scope.excluded_tags |= tags
        else:
            self._scope.tags = [*self._scope.tags, frozenset(tags)]

    def _add_kinds(self, name: str, values: list[str], *, negated: bool) -> None:
        kinds = {kind for value in values for kind in _parse_kinds(name, value)}
        scope = self._scope
        scope.kinds = scope.kinds - kinds if negated else scope.kinds & kinds
        rows = self._connection.execute("SELECT id, name FROM names WHERE kind = 'kind'")
        self._add_tags({int(number) for number, kind in rows if kind in kinds}, negated=negated)

    def _add_has(self, values: list[str], *, negated: bool) -> None:
        for value in values:
            if value.lower() not in ("error", "errors"):
                raise _unknown_value_error("has", value, ("error",))
        self._scope.failed = not negated
        self._add_tags({FAILED_TAG}, negated=negated)

    def _add_time(self, name: str, values: list[str], *, negated: bool) -> None:
        if negated:
            other = "until" if name == "since" else "since"
            raise BadRequest(f"-{name}: is not supported", hint=f"Use {other}: instead.")
        ranges = [self._parse_time(value) for value in values]
        if name == "since":
            self._scope.since = _to_millis(max(start for start, _ in ranges))
        else:
            self._scope.until = _to_millis(min(end for _, end in ranges))

    def _add_session(self, values: list[str], *, negated: bool) -> None:
        files = {file for value in values for file in self._files_of_session(value)}
        if negated:
            self._scope.excluded_files |= files
        else:
            self._limit_files(files)
            if not files:
                self._scope.empty_reason = f"no session matches {_quote_values(values)}"

    def _files_of_session(self, value: str) -> set[int]:
        """Return the files of the matching sessions, including those of their sub-agents."""
        rows = self._connection.execute(
            "SELECT s.file, s.id, s.agent, s.title, s.hidden, f.mtime FROM sessions s JOIN files f ON f.id = s.file"
        ).fetchall()
        folded_value = value.casefold()
        if folded_value == "last":
            visible = [row for row in rows if not row[4]]
            ids = {max(visible, key=itemgetter(5))[1]} if visible else set[str]()
            return {row[0] for row in rows if row[1] in ids}
        if agents := {row[0] for row in rows if row[2].startswith(folded_value)}:
            return agents
        ids = {row[1] for row in rows if row[1].casefold().startswith(folded_value)}
        titles = [(row[1], row[3].casefold()) for row in rows if not row[2]]
        ids = ids or {name for name, title in titles if title == folded_value}
        ids = ids or {name for name, title in titles if folded_value in title}
        return {row[0] for row in rows if row[1] in ids}

    def _add_file(self, values: list[str], *, negated: bool) -> None:
        rows = self._connection.execute("SELECT DISTINCT path FROM tool_calls WHERE path <> ''")
        path_tests = [_make_path_test(value) for value in values]
        paths = [path for (path,) in rows if any(path_test(_normalize_path(path)) for path_test in path_tests)]
        rows = self._connection.execute(
            f"SELECT message, result FROM tool_calls WHERE path IN {ARRAY_SQL}", (json_array(paths),)
        )
        messages = {message for row in rows for message in row if message is not None}
        if negated:
            self._scope.excluded_messages = frozenset(messages)
            return
        self._scope.messages = frozenset(messages)
        self._limit_files({message >> FILE_ID_SHIFT for message in messages})
        if not messages:
            self._scope.empty_reason = f"no tool call refers to a file matching {_quote_values(values)}"

    def _limit_files(self, files: set[int]) -> None:
        current = self._scope.files
        self._scope.files = frozenset(files if current is None else current & files)


def _matching_names(kind: str, value: str, names: Iterable[str]) -> list[str]:
    """Return the matching names: tools and branches exactly if possible, otherwise by substring."""
    if kind == "project" and value == ".":
        working_dir = os.getcwd()
        return [name for name in names if name == working_dir or name.startswith(working_dir + os.sep)]
    folded_value = value.casefold()
    if kind in ("tool", "branch"):
        exact = [name for name in names if name.casefold() == folded_value]
        if exact:
            return exact
    return [name for name in names if folded_value in name.casefold()]


def _parse_kinds(name: str, value: str) -> tuple[str, ...]:
    word = value.lower()
    if name == "role":
        word = _ROLE_ALIASES.get(word, word)
        if word in ROLES:
            return ROLES[word]
        raise _unknown_value_error(name, value, ROLES)
    for form in (word, word.removesuffix("s"), word.removesuffix("ies") + "y"):
        if form in TEXT_KINDS:
            return (form,)
    raise _unknown_value_error(name, value, TEXT_KINDS)


def _unknown_value_error(name: str, value: str, choices: Iterable[str]) -> BadRequest:
    return BadRequest(f"{name}: unknown value {value[:_MAX_QUOTED_LENGTH]!r}", hint=f"Use one of: {', '.join(choices)}")


def _make_path_test(value: str) -> Callable[[str], object]:
    """Return a predicate that tests whether a path equals a value, ends with it, or is below it.

    With a leading slash only the whole path matches.
    """
    target = _normalize_path(value).removeprefix("./")
    tail = "/" + target
    is_folder, is_whole = target.endswith("/"), target.startswith("/")
    if "*" in target or "?" in target:
        matches = re.compile(translate(target)).fullmatch
        inside = re.compile(translate("*" + tail)).fullmatch
        return lambda path: matches(path) or inside(path)
    if is_folder:
        return lambda path: path.startswith(target) or (not is_whole and tail in path)
    return lambda path: path == target or (not is_whole and path.endswith(tail))


def _normalize_path(path: str) -> str:
    return path.replace("\\", "/").casefold()


def _to_millis(seconds: float) -> int:
    return int(min(max(seconds * _MS_PER_SECOND, _EARLIEST), _LATEST))


def _list_names(names: list[str]) -> str:
    more = len(names) - _MAX_LISTED_NAMES
    return ", ".join(names[:_MAX_LISTED_NAMES]) + (f" … and {more:,} more" if more > 0 else "")


def _quote_values(values: list[str]) -> str:
    return " or ".join(repr(value[:_MAX_QUOTED_LENGTH]) for value in values)
