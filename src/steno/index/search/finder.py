"""Finds the messages that match a query, counts them by file and groups them by session.

All words must occur in one message, which is one record of a file, possibly in several of its parts. Filters select the
parts that are searched. A word matches as typed; if no message contains all words, longer words that contain them match
too. Counts come from the search engine where possible, so that a common word does not require a list of all hits.
"""

import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import cached_property
from heapq import nsmallest
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec

from steno.errors import BadRequest
from steno.index.database import ARRAY_SQL, SessionIndex, json_array
from steno.index.search.query_parser import Query, QueryTooComplex, Word
from steno.index.search.scope import SearchScope, TimeRangeParser, build_scope
from steno.index.search.terms import (
    TermForm,
    form_query,
    infix_strings,
    is_slow_form,
    make_tokenizer,
    shortest_length,
    term_forms,
)
from steno.index.session_stats import FILE_ID_SHIFT
from steno.index.sync.scan import path_from_column
from steno.index.text_index import DAMAGE_MESSAGES, SPLIT_TAG, TEXT_FOLDER, TextIndex, TextIndexDamaged

if TYPE_CHECKING:
    import tantivy

    Clause: TypeAlias = tuple[tantivy.Occur, tantivy.Query]


SearchOrder = Literal["newest", "oldest", "rank"]
_TermForms = tuple[TermForm, ...]
_MAX_FORMS: Final = 64
_MAX_QUOTED_LENGTH: Final = 20
_DOCUMENTS_PER_MESSAGE: Final = 4


class QueryForms(msgspec.Struct):
    """The words of a query in all their forms."""

    groups: list[_TermForms]
    """At least one form of each group must match."""
    excluded: list[_TermForms]
    ignored: list[str]
    """Words that the index cannot contain; see `ignored_reason`."""


class SearchResult(msgspec.Struct):
    """The matching messages in the requested order."""

    messages: list[int]
    query_forms: QueryForms
    scope: SearchScope
    is_widened: bool = False
    """Whether longer words were matched because the words did not match as typed."""


def open_finder(
    index: SessionIndex, parse_time: TimeRangeParser, absent_substrings: set[str] | None = None
) -> "Finder":
    """Return a finder for an index.

    `absent_substrings` caches substrings that occur in no word, until the index changes.

    Raises:
        TextIndexDamaged: the full-text index is damaged or missing.
    """
    text_folder = os.path.join(index.location.folder, TEXT_FOLDER)
    hint = f"Remove {text_folder}, then run `steno sync --rebuild`."
    try:
        finder = Finder(index.connection, index.texts, parse_time, absent_substrings)
    except ValueError as error:
        raise TextIndexDamaged(f"the full-text index in {text_folder} is damaged", hint=hint) from error
    if finder.is_text_missing:
        raise TextIndexDamaged(f"the full-text index in {text_folder} is missing", hint=hint)
    return finder


class Finder:
    """Search in one index."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        texts: TextIndex,
        parse_time: TimeRangeParser,
        absent_substrings: set[str] | None = None,
    ) -> None:
        self._connection = connection
        self._absent_substrings = set[str]() if absent_substrings is None else absent_substrings
        self._parse_time = parse_time
        self.schema = texts.schema
        texts.index.reload()
        self._searcher = texts.index.searcher()
        self.tokenize = make_tokenizer()

    @property
    def has_split_messages(self) -> bool:
        """Whether any message consists of several documents."""
        return self._searcher.doc_freq("tag", SPLIT_TAG) > 0

    @property
    def is_text_missing(self) -> bool:
        """Whether the full-text index is empty although the database has messages."""
        statement = "SELECT EXISTS (SELECT 1 FROM names) AND EXISTS (SELECT 1 FROM messages)"
        has_messages = self._connection.execute(statement).fetchone()[0]
        return bool(has_messages) and not self._searcher.num_docs

    def find(
        self, query: Query, order: SearchOrder = "newest", *, require_terms: bool = True, limit: int | None = None
    ) -> SearchResult:
        """Return the messages that match a query, at most `limit`.

        With `require_terms` the query must contain search words or filters.

        Raises:
            BadRequest: the query is empty or cannot be searched.
        """
        scope = build_scope(self._connection, query.filters, self._parse_time)
        query_forms = self._query_forms(query, widen_terms=False)
        self._refuse_empty(query, query_forms, require_terms=require_terms)
        if scope.empty_reason:
            return SearchResult([], query_forms, scope)
        messages = self._search_together(query_forms, scope, order, limit)
        if messages or not query_forms.groups:
            return SearchResult(messages, query_forms, scope)
        widened_forms = self._query_forms(query, widen_terms=True)
        if widened_forms.groups == query_forms.groups:
            return SearchResult([], query_forms, scope)
        try:
            messages = self._search_by_word(widened_forms, scope, order)[:limit]
        except QueryTooComplex:
            # Too many words contain it to be meaningful.
            messages = []
        return SearchResult(messages, widened_forms if messages else query_forms, scope, is_widened=bool(messages))

    # For counting hits

    def engine_clauses(self, query: Query) -> "tuple[SearchResult, list[Clause]] | None":
        """Return the query as engine conditions; None if the engine cannot answer it, or only slowly.

        Raises:
            BadRequest: the query is empty or cannot be searched.
        """
        from tantivy import Occur, Query

        scope = build_scope(self._connection, query.filters, self._parse_time)
        query_forms = self._query_forms(query, widen_terms=False)
        self._refuse_empty(query, query_forms, require_terms=True)
        needs_join = len(query_forms.groups) > 1 or bool(query_forms.excluded)
        forms = [form for term_forms in (*query_forms.groups, *query_forms.excluded) for form in term_forms]
        if (
            scope.empty_reason
            or scope.selects_messages
            or (needs_join and self.has_split_messages)
            or any(map(is_slow_form, forms))
        ):
            return None
        groups = [self._any_form_query(term_forms) for term_forms in query_forms.groups] or [Query.all_query()]
        clauses = [(Occur.Must, group) for group in groups]
        clauses += [(Occur.MustNot, self._any_form_query(term_forms)) for term_forms in query_forms.excluded]
        return SearchResult([], query_forms, scope), [*clauses, *self._limit_clauses(scope)]

    def count_by_file(self, clauses: "Sequence[Clause]") -> dict[int, int]:
        """Return the number of matching documents for each file."""
        from tantivy import Query

        histogram = {"field": "message", "interval": float(1 << FILE_ID_SHIFT), "min_doc_count": 1}
        query = Query.boolean_query(list(clauses))
        searcher: Any = self._searcher
        with _convert_engine_errors():
            aggregation = searcher.aggregate(query, {"files": {"histogram": histogram}})
        buckets: list[dict[str, float]] = aggregation["files"]["buckets"]
        return {int(bucket["key"]) >> FILE_ID_SHIFT: int(bucket["doc_count"]) for bucket in buckets}

    def find_messages(self, clauses: "Sequence[Clause]", order: SearchOrder, limit: int | None = None) -> list[int]:
        """Return the matching messages in order, at most `limit`."""
        return list(self._first_messages(clauses, order, limit))[:limit]

    def files_clause(self, files: Iterable[int]) -> "Clause":
        """Return the condition that a document belongs to one of some files."""
        from tantivy import Occur, Query

        return Occur.Must, Query.term_set_query(self.schema, "file", sorted(files))

    def _query_forms(self, query: Query, *, widen_terms: bool) -> QueryForms:
        ignored: list[str] = []

        def forms(terms: Sequence[Word], *, widen: bool) -> _TermForms:
            collected: list[TermForm] = []
            for word in terms:
                word_forms = term_forms(word, self.tokenize, widen=widen)
                if not word_forms:
                    ignored.append(word.text)
                collected += word_forms
            return tuple(collected)

        groups = [forms(group, widen=widen_terms) for group in query.required]
        excluded = [forms((word,), widen=False) for word in query.excluded]
        return QueryForms([g for g in groups if g], [e for e in excluded if e], ignored)

    @staticmethod
    def _refuse_empty(query: Query, query_forms: QueryForms, *, require_terms: bool) -> None:
        if sum(len(forms) for forms in (*query_forms.groups, *query_forms.excluded)) > _MAX_FORMS:
            raise BadRequest(f"more than {_MAX_FORMS} words", hint="Use fewer words.")
        if query_forms.groups or not require_terms:
            return
        if query_forms.ignored:
            hint = "Use `steno search --regex` to search for any text."
            raise BadRequest(ignored_reason(query_forms.ignored[0]), hint=hint)
        if query.excluded and not query.filters:
            raise BadRequest("only excluded words", hint="A dash excludes a word; quote it to search for it: '\"-x\"'")
        if not query.filters:
            raise BadRequest("empty query", hint="Run `steno search WORDS…`.")

    def _search_together(
        self, query_forms: QueryForms, scope: SearchScope, order: SearchOrder, limit: int | None = None
    ) -> list[int]:
        from tantivy import Occur, Query

        limits = self._limit_clauses(scope)
        groups = [self._any_form_query(forms) for forms in query_forms.groups]
        excluded = [self._any_form_query(forms) for forms in query_forms.excluded]
        clauses = [(Occur.Must, term_query) for term_query in groups or [Query.all_query()]]
        clauses += [(Occur.MustNot, term_query) for term_query in excluded]
        needs_join = (len(groups) > 1 or bool(excluded)) and self.has_split_messages
        # If messages are removed or inserted below, the first ones are known only at the end.
        early_limit = None if needs_join or scope.selects_messages else limit
        messages = self._first_messages([*clauses, *limits], order, early_limit)
        if needs_join:
            self._join_split_messages(messages, groups, excluded, limits, order)
        return [message for message in messages if not scope.selects_messages or scope.includes_message(message)][
            :limit
        ]

    def _search_by_word(self, query_forms: QueryForms, scope: SearchScope, order: SearchOrder) -> list[int]:
        """Query each word once, because searching inside words is slow.

        Starts with the longest word, which is the least frequent: if it does not occur, the others need no query.
        """
        from tantivy import Occur

        limits = self._limit_clauses(scope)
        messages: dict[int, float] = {}
        for number, forms in enumerate(sorted(query_forms.groups, key=shortest_length, reverse=True)):
            if self._is_absent(forms):
                return []
            word_messages = self._search_messages([(Occur.Must, self._any_form_query(forms)), *limits], order)
            if not (word_messages or limits):
                self._absent_substrings.update(infix_strings(forms))
            if number:
                adds_rank = order == "rank"
                word_messages = {
                    at: word_messages[at] + messages[at] * adds_rank for at in messages if at in word_messages
                }
            messages = word_messages
            if not messages:
                return []
        for forms in query_forms.excluded:
            for message in self._search_messages([(Occur.Must, self._any_form_query(forms)), *limits], order):
                messages.pop(message, None)
        needs_sorting = order == "rank" and len(query_forms.groups) > 1
        ordered = sorted(messages, key=messages.__getitem__, reverse=True) if needs_sorting else messages
        return [message for message in ordered if not scope.selects_messages or scope.includes_message(message)]

    def _is_absent(self, forms: _TermForms) -> bool:
        """Return whether each form contains a substring known to occur in no word, as when typing continues."""
        substrings = tuple(self._absent_substrings)
        return bool(substrings) and all(
            any(substring in part for _, piece in form.tokens for part in piece for substring in substrings)
            for form in forms
        )

    def _limit_clauses(self, scope: SearchScope) -> "list[Clause]":
        return [*scope.clauses(self.schema), *self._unfinished_batch_clauses()]

    def _unfinished_batch_clauses(self) -> "list[Clause]":
        """Exclude documents of a sync that is running or was interrupted."""
        from tantivy import Occur, Query

        rows = self._connection.execute("SELECT id FROM batches WHERE open")
        return [(Occur.MustNot, Query.term_query(self.schema, "batch", n)) for (n,) in rows]

    def _any_form_query(self, forms: _TermForms) -> "tantivy.Query":
        from tantivy import Occur, Query

        with _convert_engine_errors():
            queries = [form_query(form, self.schema) for form in forms]
        if len(queries) == 1:
            return queries[0]
        return Query.boolean_query([(Occur.Should, query) for query in queries])

    def _first_messages(self, clauses: "Sequence[Clause]", order: SearchOrder, limit: int | None) -> dict[int, float]:
        """Return at least the first `limit` matching messages with their sort values."""
        # A message may consist of several documents, each of which is a hit.
        document_limit = limit * _DOCUMENTS_PER_MESSAGE if limit and self.has_split_messages else limit
        messages = self._search_messages(clauses, order, document_limit)
        if limit and 0 < len(messages) < limit:
            return self._search_messages(clauses, order)
        return messages

    def _search_messages(
        self, clauses: "Sequence[Clause]", order: SearchOrder, limit: int | None = None
    ) -> dict[int, float]:
        """Return the messages of the first matching documents with their sort values."""
        limit = max(1, self._searcher.num_docs) if limit is None else limit
        if limit < 1:
            return {}  # the engine does not accept a limit of 0
        if order == "oldest":
            dated, undated = self._date_clauses()
            hits = self._search_documents([*clauses, dated], order, limit)
            if len(hits) < limit:
                hits += self._search_documents([*clauses, undated], order, limit - len(hits))
        else:
            hits = self._search_documents([*clauses], order, limit)
        addresses = [address for _, address in hits]
        messages = [int(message_id or 0) for message_id in self._searcher.fast_field_values("message", addresses)]
        values = [value or 0 for value, _ in hits]
        value_by_message: dict[int, float] = dict(zip(messages, values, strict=True))
        if len(value_by_message) < len(values):
            # The first document of a message determines its position.
            value_by_message.clear()
            for message, value in zip(messages, values, strict=True):
                value_by_message.setdefault(message, value)
        return value_by_message

    def _date_clauses(self) -> "tuple[Clause, Clause]":
        """Return conditions for documents with and without a time; a missing time is stored as 0."""
        from tantivy import FieldType, Occur, Query

        time_field = self.schema, "time", FieldType.Integer
        return (
            (Occur.Must, Query.range_query(*time_field, lower_bound=1)),
            (Occur.Must, Query.range_query(*time_field, upper_bound=0)),
        )

    def _search_documents(
        self, clauses: "list[Clause]", order: SearchOrder, limit: int
    ) -> "list[tuple[Any, tantivy.DocAddress]]":
        import tantivy

        query = tantivy.Query.boolean_query(clauses)
        with _convert_engine_errors():
            if order == "rank":
                return self._searcher.search(query, limit, count=False).hits
            sort_order = tantivy.Order.Asc if order == "oldest" else tantivy.Order.Desc
            return self._searcher.search(query, limit, count=False, order_by_field="time", order=sort_order).hits

    def _join_split_messages(
        self,
        messages: dict[int, float],
        groups: "list[tantivy.Query]",
        excluded: "list[tantivy.Query]",
        limits: "list[tuple[tantivy.Occur, tantivy.Query]]",
        order: SearchOrder,
    ) -> None:
        from tantivy import Occur, Query

        split = (Occur.Must, Query.term_query(self.schema, "tag", SPLIT_TAG))
        joined: dict[int, float] = {}
        for number, group_query in enumerate(groups):
            group_messages = self._search_messages([(Occur.Must, group_query), split, *limits], order)
            joined = {at: joined[at] for at in joined if at in group_messages} if number else group_messages
            if not joined:
                break
        excluded_messages: set[int] = set()
        for group_query in excluded:
            excluded_messages.update(self._search_messages([(Occur.Must, group_query), split, *limits], order))
        for message in excluded_messages.intersection(messages):
            del messages[message]
        added = {
            message: at
            for message, at in joined.items()
            if message not in messages and message not in excluded_messages
        }
        if added:
            key, back = (_oldest_first_key, False) if order == "oldest" else (itemgetter(1), True)
            ordered = sorted([*messages.items(), *added.items()], key=key, reverse=back)
            messages.clear()
            messages.update(ordered)


def ignored_reason(word: str) -> str:
    """Return why a word cannot be searched."""
    if any(character.isalnum() for character in word):
        return f"{word[:_MAX_QUOTED_LENGTH]!r}… is longer than any word in the index"
    return f"no letter or digit in {word[:_MAX_QUOTED_LENGTH]!r}"


def _oldest_first_key(item: tuple[int, float]) -> tuple[bool, float]:
    return item[1] <= 0, item[1]


@contextmanager
def _convert_engine_errors() -> Generator[None]:
    try:
        yield
    except ValueError as error:
        if any(message in str(error).lower() for message in DAMAGE_MESSAGES):
            raise TextIndexDamaged(f"the full-text index is damaged: {error}") from error
        if "expansions" in str(error):
            raise QueryTooComplex("too many words match part of this phrase", hint="Use longer words.") from error
        raise QueryTooComplex(
            "the query is too complex", hint="Use fewer or shorter words, or fewer wildcards."
        ) from error


FIRST_FETCH: Final = 256
FETCH_GROWTH: Final = 8
"""Number of messages fetched first, and growth factor if they do not fill a page."""
_FirstMessages: TypeAlias = Callable[[int, Collection[int] | None], list[int]]


class HitCounts:
    """The hits of a query, counted by file."""

    def __init__(self, result: SearchResult, counts_by_file: dict[int, int], get_first: _FirstMessages) -> None:
        self.query_forms = result.query_forms
        self.scope = result.scope
        self.is_widened = result.is_widened
        """Whether longer words were matched because the words did not match as typed."""
        self.counts_by_file = counts_by_file
        """Number of matching messages for each file."""
        self._get_first = get_first

    def first_messages(self, limit: int, files: Collection[int] | None = None) -> list[int]:
        """Return the first messages in the requested order, optionally of some files only."""
        return self._get_first(limit, files)


def count_hits(finder: Finder, query: Query, order: SearchOrder = "newest") -> HitCounts:
    """Run a query and count the hits; see `Finder.find`.

    Raises:
        BadRequest: the query is empty or cannot be searched.
    """
    engine_result = finder.engine_clauses(query)
    if engine_result is not None:
        result, clauses = engine_result
        counts_by_file = _count_messages(finder, clauses)
        if counts_by_file:
            return HitCounts(result, counts_by_file, _EngineMessages(finder, clauses, order))
    result = finder.find(query, order)
    counts = Counter(message >> FILE_ID_SHIFT for message in result.messages)
    return HitCounts(result, dict(counts), _ListedMessages(result.messages))


def _count_messages(finder: Finder, clauses: "Sequence[Clause]") -> dict[int, int]:
    """Count the matching messages; those with several documents are listed, to count them once."""
    from tantivy import Occur, Query

    if not finder.has_split_messages:
        return finder.count_by_file(clauses)
    split = Query.term_query(finder.schema, "tag", SPLIT_TAG)
    counts = Counter(finder.count_by_file([*clauses, (Occur.MustNot, split)]))
    split_messages = finder.find_messages([*clauses, (Occur.Must, split)], "newest")
    counts.update(message >> FILE_ID_SHIFT for message in split_messages)
    return dict(counts)


class _EngineMessages:
    def __init__(self, finder: Finder, clauses: "Sequence[Clause]", order: SearchOrder) -> None:
        self._finder = finder
        self._clauses = clauses
        self._order: SearchOrder = order

    def __call__(self, number: int, files: Collection[int] | None = None) -> list[int]:
        clauses = [*self._clauses]
        if files is not None:
            clauses.append(self._finder.files_clause(files))
        return self._finder.find_messages(clauses, self._order, number)


class _ListedMessages:
    def __init__(self, messages: list[int]) -> None:
        self._messages = messages

    def __call__(self, number: int, files: Collection[int] | None = None) -> list[int]:
        if files is None:
            return self._messages[:number]
        positions = chain.from_iterable(self._positions_by_file.get(file, ()) for file in files)
        return [self._messages[position] for position in nsmallest(number, positions)]

    @cached_property
    def _positions_by_file(self) -> dict[int, list[int]]:
        positions_by_file: dict[int, list[int]] = {}
        for position, message in enumerate(self._messages):
            positions_by_file.setdefault(message >> FILE_ID_SHIFT, []).append(position)
        return positions_by_file


class HitGroup(msgspec.Struct):
    """A session with the hits in it and in its sub-agents."""

    id: str
    title: str = ""
    project: str = ""
    branch: str = ""
    path: str = ""
    """Original path of its file, or of a sub-agent's file if its own is not indexed."""
    ended: int | None = None
    gone: bool = False
    has_session_file: bool = True
    """Whether the session's own file is indexed, not only those of its sub-agents."""
    has_rewound_turns: bool = False
    """Whether turns were rewound, so that turn numbers in the conversation differ from the file."""
    messages: list[int] = []
    agents: dict[int, str] = {}
    """Sub-agent files with hits, and the IDs of the sub-agents."""
    files: dict[int, str] = {}
    """All files with hits, and their paths."""


def group_hits(connection: sqlite3.Connection, messages: Iterable[int]) -> list[HitGroup]:
    """Return the sessions of some messages; two files with the same ID are two sessions."""
    messages = list(messages)
    rows = _session_rows(connection, {message >> FILE_ID_SHIFT for message in messages})
    groups: dict[str, HitGroup] = {}
    by_file: dict[int, HitGroup] = {}
    for message in messages:
        file = message >> FILE_ID_SHIFT
        group = by_file.get(file)
        if group is None:
            row = rows.get(file, _UNKNOWN_SESSION)
            session_id = row[0] or f"@{file}"
            key = group_key(file, session_id, row[1], row[9])
            if key not in groups:
                groups[key] = _make_group(connection, session_id, row)
            group = by_file[file] = groups[key]
            group.files[file] = path_from_column(row[5])
            if row[1]:
                group.agents[file] = row[1]
        group.messages.append(message)
    return list(groups.values())


def group_key(file: int, session_id: str, agent: str, owner: int) -> str:
    """Return a key shared by the files of one session: its own file, or the ID if that is missing.

    Sub-agents whose session is not indexed are grouped by the session ID in their records.
    """
    return session_id if agent and owner in (0, file) else f"#{owner or file}"


_HAS_REWOUND_TURNS_SQL = (
    "(s.rewound OR s.turns <> coalesce((SELECT max(number) FROM turns WHERE file = s.file), s.turns))"
)
_SESSION_COLUMNS = (
    f"s.id, s.agent, s.title, s.project, s.branch, f.path, s.ended, f.gone, {_HAS_REWOUND_TURNS_SQL}, s.owner"
)
_SessionRow: TypeAlias = tuple[str, str, str, str, str, str | bytes, int | None, int | None, int, int]
_UNKNOWN_SESSION: _SessionRow = ("", "", "", "", "", "", None, None, 0, 0)
_SELECT_SESSION = f"SELECT {_SESSION_COLUMNS} FROM sessions s JOIN files f ON f.id = s.file "


def _session_rows(connection: sqlite3.Connection, files: set[int]) -> dict[int, _SessionRow]:
    rows = connection.execute(
        f"SELECT s.file, {_SESSION_COLUMNS} FROM sessions s JOIN files f ON f.id = s.file WHERE s.file IN {ARRAY_SQL}",
        (json_array(sorted(files)),),
    )
    return {row[0]: row[1:] for row in rows}


def _make_group(connection: sqlite3.Connection, session_id: str, row: _SessionRow) -> HitGroup:
    """Return the group of a session, also if the first hit is in a sub-agent."""
    if row[1]:
        statement = (
            f"{_SELECT_SESSION}WHERE (s.id = ? OR s.file = ?) AND s.agent = '' ORDER BY s.file <> ?, f.gone IS NOT NULL"
        )
        row = connection.execute(statement, (session_id, row[9], row[9])).fetchone() or row
    _, agent, title, project, branch, path, ended, gone, rewound, _ = row
    return HitGroup(
        session_id,
        title,
        project,
        branch,
        path_from_column(path),
        ended,
        gone=gone is not None,
        has_session_file=bool(path) and not agent,
        has_rewound_turns=bool(rewound),
    )
