"""Finds the messages that match a query, counts them by file and groups them by session.

All words must occur in one message, which is one record of a file, possibly in several parts of it.
Filters select the parts that are searched. A word matches as typed; when no message has all of them,
words that contain them match too. Counts come from the search engine where it can answer, so that a
common word does not need a list of all hits.
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
    """What is looked for, in the forms it may have."""

    groups: list[_TermForms]
    """One form of each must be there."""
    excluded: list[_TermForms]
    ignored: list[str]
    """Words that the index cannot know; `why_ignored` says why."""


class SearchResult(msgspec.Struct):
    """The messages that have it, in the order asked for."""

    messages: list[int]
    query_forms: QueryForms
    scope: SearchScope
    is_widened: bool = False
    """Whether words were taken inside longer words, because they were not found as typed."""


def open_finder(
    index: SessionIndex, parse_time: TimeRangeParser, absent_substrings: set[str] | None = None
) -> "Finder":
    """Return what looks for words in an index.

    `absent` keeps which letters stand in no word, for as long as the index does not change.

    Raises:
        WordsDamaged: the words are damaged, or gone.
    """
    text_folder = os.path.join(index.location.folder, TEXT_FOLDER)
    hint = f"remove {text_folder}, then `steno sync --rebuild`"
    try:
        finder = Finder(index.connection, index.texts, parse_time, absent_substrings)
    except ValueError as error:
        raise TextIndexDamaged(f"the words of the index in {text_folder} are damaged", hint=hint) from error
    if finder.is_text_missing:
        raise TextIndexDamaged(f"the words of the index are not in {text_folder} any more", hint=hint)
    return finder


class Finder:
    """Looks for words in an index."""

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
        """Whether any message has several documents."""
        return self._searcher.doc_freq("tag", SPLIT_TAG) > 0

    @property
    def is_text_missing(self) -> bool:
        """Whether there are no words at all, although the tables know of some."""
        statement = "SELECT EXISTS (SELECT 1 FROM names) AND EXISTS (SELECT 1 FROM messages)"
        has_messages = self._connection.execute(statement).fetchone()[0]
        return bool(has_messages) and not self._searcher.num_docs

    def find(
        self, query: Query, order: SearchOrder = "newest", *, require_terms: bool = True, limit: int | None = None
    ) -> SearchResult:
        """Return the messages that have what a query asks for, or the `first` so many of them.

        `alone`: nothing else is asked for, so a query must want something.

        Raises:
            BadRequest: it asks for nothing, or for what cannot be looked for.
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
            # So many words have it inside that it says nothing.
            messages = []
        return SearchResult(messages, widened_forms if messages else query_forms, scope, is_widened=bool(messages))

    # What a survey asks for

    def engine_clauses(self, query: Query) -> "tuple[SearchResult, list[Clause]] | None":
        """Return a query as the engine alone can answer it; None where it cannot, or only slowly.

        Raises:
            BadRequest: it asks for nothing, or for what cannot be looked for.
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
        groups = [self._any_form_query(some) for some in query_forms.groups] or [Query.all_query()]
        clauses = [(Occur.Must, group) for group in groups]
        clauses += [(Occur.MustNot, self._any_form_query(some)) for some in query_forms.excluded]
        return SearchResult([], query_forms, scope), [*clauses, *self._limit_clauses(scope)]

    def count_by_file(self, clauses: "Sequence[Clause]") -> dict[int, int]:
        """Return how many documents fit, for each file."""
        from tantivy import Query

        histogram = {"field": "message", "interval": float(1 << FILE_ID_SHIFT), "min_doc_count": 1}
        query = Query.boolean_query(list(clauses))
        searcher: Any = self._searcher
        with _convert_engine_errors():
            aggregation = searcher.aggregate(query, {"files": {"histogram": histogram}})
        buckets: list[dict[str, float]] = aggregation["files"]["buckets"]
        return {int(bucket["key"]) >> FILE_ID_SHIFT: int(bucket["doc_count"]) for bucket in buckets}

    def find_messages(self, clauses: "Sequence[Clause]", order: SearchOrder, limit: int | None = None) -> list[int]:
        """Return the messages that fit, or the `first` so many of them, in order."""
        return list(self._first_messages(clauses, order, limit))[:limit]

    def files_clause(self, files: Iterable[int]) -> "Clause":
        """Return the condition that something stands in one of some files."""
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
        unwanted = [forms((word,), widen=False) for word in query.excluded]
        return QueryForms([g for g in groups if g], [u for u in unwanted if u], ignored)

    @staticmethod
    def _refuse_empty(query: Query, query_forms: QueryForms, *, require_terms: bool) -> None:
        if sum(len(forms) for forms in (*query_forms.groups, *query_forms.excluded)) > _MAX_FORMS:
            raise BadRequest(f"more than {_MAX_FORMS} words", hint="fewer find the same")
        if query_forms.groups or not require_terms:
            return
        if query_forms.ignored:
            hint = "`steno search --regex` looks for anything"
            raise BadRequest(ignored_reason(query_forms.ignored[0]), hint=hint)
        if query.excluded and not query.filters:
            raise BadRequest("only words to leave out", hint="a dash means `not`; in quotes it is a word: '\"-x\"'")
        if not query.filters:
            raise BadRequest("nothing to look for", hint="steno search WORDS…")

    def _search_together(
        self, query_forms: QueryForms, scope: SearchScope, order: SearchOrder, limit: int | None = None
    ) -> list[int]:
        from tantivy import Occur, Query

        limits = self._limit_clauses(scope)
        groups = [self._any_form_query(forms) for forms in query_forms.groups]
        unwanted = [self._any_form_query(forms) for forms in query_forms.excluded]
        clauses = [(Occur.Must, term_query) for term_query in groups or [Query.all_query()]]
        clauses += [(Occur.MustNot, each) for each in unwanted]
        needs_join = (len(groups) > 1 or bool(unwanted)) and self.has_split_messages
        # Where some fall away or are put in between, the first ones are known only at the end.
        early_limit = None if needs_join or scope.selects_messages else limit
        messages = self._first_messages([*clauses, *limits], order, early_limit)
        if needs_join:
            self._join_split_messages(messages, groups, unwanted, limits, order)
        return [message for message in messages if not scope.selects_messages or scope.includes_message(message)][
            :limit
        ]

    def _search_by_word(self, query_forms: QueryForms, scope: SearchScope, order: SearchOrder) -> list[int]:
        """Ask for one word after the other, each once: what is inside others takes long to find.

        The longest is the least likely, and where there is none the others need not be asked for.
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
        """Whether each form has letters in it that stand in no word: who types on need not wait."""
        substrings = tuple(self._absent_substrings)
        return bool(substrings) and all(
            any(letters in part for _, piece in form.tokens for part in piece for letters in substrings)
            for form in forms
        )

    def _limit_clauses(self, scope: SearchScope) -> "list[Clause]":
        return [*scope.clauses(self.schema), *self._unfinished_batch_clauses()]

    def _unfinished_batch_clauses(self) -> "list[Clause]":
        """Leave out what a sync is just adding, or had added when it was cut off."""
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
        """Return at least the first so many messages that fit, and what they are ordered by."""
        # A message may have several documents, each of which is found.
        document_limit = limit * _DOCUMENTS_PER_MESSAGE if limit and self.has_split_messages else limit
        messages = self._search_messages(clauses, order, document_limit)
        if limit and 0 < len(messages) < limit:
            return self._search_messages(clauses, order)
        return messages

    def _search_messages(
        self, clauses: "Sequence[Clause]", order: SearchOrder, limit: int | None = None
    ) -> dict[int, float]:
        """Return the messages of the first documents that fit, and what they are ordered by."""
        limit = max(1, self._searcher.num_docs) if limit is None else limit
        if limit < 1:
            return {}  # the engine cannot be asked for none
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
            # The first document of a message says where it stands.
            value_by_message.clear()
            for message, value in zip(messages, values, strict=True):
                value_by_message.setdefault(message, value)
        return value_by_message

    def _date_clauses(self) -> "tuple[Clause, Clause]":
        """Return what has a time, and what has none: it bears a zero, which is not early."""
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
        unwanted: "list[tantivy.Query]",
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
        excluded: set[int] = set()
        for group_query in unwanted:
            excluded.update(self._search_messages([(Occur.Must, group_query), split, *limits], order))
        for message in excluded.intersection(messages):
            del messages[message]
        added = {each: at for each, at in joined.items() if each not in messages and each not in excluded}
        if added:
            key, back = (_oldest_first_key, False) if order == "oldest" else (itemgetter(1), True)
            ordered = sorted([*messages.items(), *added.items()], key=key, reverse=back)
            messages.clear()
            messages.update(ordered)


def ignored_reason(word: str) -> str:
    """Say why a word cannot be looked for."""
    if any(letter.isalnum() for letter in word):
        return f"{word[:_MAX_QUOTED_LENGTH]!r}… is longer than any word in the index"
    return f"no letter or digit in {word[:_MAX_QUOTED_LENGTH]!r}"


def _oldest_first_key(item: tuple[int, float]) -> tuple[bool, float]:
    return item[1] <= 0, item[1]


@contextmanager
def _convert_engine_errors() -> Generator[None]:
    try:
        yield
    except ValueError as error:
        if any(sign in str(error).lower() for sign in DAMAGE_MESSAGES):
            raise TextIndexDamaged(f"the words of the index are damaged: {error}") from error
        if "expansions" in str(error):
            raise QueryTooComplex(
                "too many words fit a part of this phrase", hint="write more letters of them"
            ) from error
        raise QueryTooComplex(
            "The query is too complex", hint="Use fewer or shorter words, or fewer wildcards."
        ) from error


FIRST_FETCH: Final = 256
FETCH_GROWTH: Final = 8
"""How many first messages are asked for, and how many times as many when they do not fill a page."""
_FirstMessages: TypeAlias = Callable[[int, Collection[int] | None], list[int]]


class HitCounts:
    """What was found."""

    def __init__(self, result: SearchResult, counts_by_file: dict[int, int], get_first: _FirstMessages) -> None:
        self.query_forms = result.query_forms
        self.scope = result.scope
        self.is_widened = result.is_widened
        """Whether words were taken inside longer words, because they were not found as typed."""
        self.counts_by_file = counts_by_file
        """How many messages have it, for each file."""
        self._get_first = get_first

    def first_messages(self, limit: int, files: Collection[int] | None = None) -> list[int]:
        """Return the first so many messages in the order asked for, of some files if any are given."""
        return self._get_first(limit, files)


def count_hits(finder: Finder, query: Query, order: SearchOrder = "newest") -> HitCounts:
    """Look for what a query asks for, as `Finder.find` does.

    Raises:
        BadRequest: it asks for nothing, or for what cannot be looked for.
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
    """Count the messages that fit; those of several documents are listed, and count once."""
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
    """A session, and what was found in it and in the sub-agents that worked for it."""

    id: str
    title: str = ""
    project: str = ""
    branch: str = ""
    path: str = ""
    """Where its file lies or lay; a sub-agent's when its own is not in the index."""
    ended: int | None = None
    gone: bool = False
    has_session_file: bool = True
    """Whether its own file is in the index, and not only those of its sub-agents."""
    has_rewound_turns: bool = False
    """Whether turns were taken back, so that they count otherwise in the story than in the file."""
    messages: list[int] = []
    agents: dict[int, str] = {}
    """The files of sub-agents in which something was found, and their ids."""
    files: dict[int, str] = {}
    """Every file in which something was found, and its path."""


def group_hits(connection: sqlite3.Connection, messages: Iterable[int]) -> list[HitGroup]:
    """Return the sessions that some messages are in; two files with one id are two sessions."""
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
    """Return what the files of one session share: its own file, or the id where that is missing.

    Sub-agents whose session is not in the index belong together by the id that they name.
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
    """Return the session itself, where only a sub-agent of it was found so far."""
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
