"""The door: what was asked for → which messages have it.

Words must all stand in one message: one record of a file, be it in several parts of it. Filters
choose which parts are looked at. A word is found as it is typed; when no message has all of them
so, those inside longer words are taken.
"""

import os
import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec

from steno.errors import BadRequest, Unreadable
from steno.index.opened import Index
from steno.index.search.language import Query, Word
from steno.index.search.scope import Scope, When, scope_of
from steno.index.search.terms import Form, cutter, forms_of, query_of
from steno.index.texts import FOLDER, SPLIT, Texts

if TYPE_CHECKING:
    import tantivy

    _Clause: TypeAlias = tuple[tantivy.Occur, tantivy.Query]

__all__ = ["Finder", "Found", "Order", "Wanted", "open_finder", "why_ignored"]

Order = Literal["newest", "oldest", "rank"]
_Forms = tuple[Form, ...]
_MOST_WORDS: Final = 64
_SAID: Final = 20
_PARTS: Final = 4


class Wanted(msgspec.Struct):
    """What is looked for, in the forms it may have."""

    groups: list[_Forms]
    """One form of each must be there."""
    unwanted: list[_Forms]
    ignored: list[str]
    """Words that the index cannot know; `why_ignored` says why."""


class Found(msgspec.Struct):
    """The messages that have it, in the order asked for."""

    messages: list[int]
    wanted: Wanted
    scope: Scope
    wide: bool = False
    """Whether words were taken inside longer words, because they were not found as typed."""


def open_finder(index: Index, when: When) -> "Finder":
    """Return what looks for words in an index.

    Raises:
        Unreadable: the words are damaged, or gone.
    """
    words = os.path.join(index.home.folder, FOLDER)
    hint = f"remove {words}, then `steno sync --rebuild`"
    try:
        finder = Finder(index.connection, index.texts, when)
    except ValueError as error:
        raise Unreadable(f"the words of the index in {words} are damaged", hint=hint) from error
    if finder.is_bare:
        raise Unreadable(f"the words of the index are not in {words} any more", hint=hint)
    return finder


class Finder:
    """Looks for words in an index."""

    def __init__(self, connection: sqlite3.Connection, texts: Texts, when: When) -> None:
        self._connection = connection
        self._when = when
        self._schema = texts.schema
        texts.index.reload()
        self._searcher = texts.index.searcher()
        self.cut = cutter()

    @property
    def is_bare(self) -> bool:
        """Whether there are no words at all, although the tables know of some."""
        statement = "SELECT EXISTS (SELECT 1 FROM names) AND EXISTS (SELECT 1 FROM messages)"
        known = self._connection.execute(statement).fetchone()[0]
        return bool(known) and not self._searcher.num_docs

    def find(
        self,
        query: Query,
        order: Order = "newest",
        *,
        alone: bool = True,
        first: int | None = None,
    ) -> Found:
        """Return the messages that have what a query asks for, or the `first` so many of them.

        `alone`: nothing else is asked for, so a query must want something.

        Raises:
            BadRequest: it asks for nothing, or for what cannot be looked for.
        """
        scope = scope_of(self._connection, query.filters, self._when)
        wanted = self._wanted(query, wide=False)
        self._refuse_nothing(query, wanted, alone=alone)
        if scope.empty:
            return Found([], wanted, scope)
        try:
            messages = self._run(wanted, scope, order, first)
        except ValueError as error:
            raise _too_much(error) from error
        if messages or not wanted.groups:
            return Found(messages, wanted, scope)
        wider = self._wanted(query, wide=True)
        if wider.groups == wanted.groups:
            return Found([], wanted, scope)
        try:
            messages = self._run(wider, scope, order, first)
        except ValueError:
            # So many words have it inside that it says nothing.
            messages = []
        return Found(messages, wider if messages else wanted, scope, wide=bool(messages))

    def _wanted(self, query: Query, *, wide: bool) -> Wanted:
        """Return the forms of what is wanted; what is not wanted is never widened."""
        ignored: list[str] = []

        def forms(words: Sequence[Word], *, widen: bool) -> _Forms:
            found: list[Form] = []
            for word in words:
                made = forms_of(word, self.cut, wide=widen)
                if not made:
                    ignored.append(word.text)
                found += made
            return tuple(found)

        groups = [forms(group, widen=wide) for group in query.wanted]
        unwanted = [forms((word,), widen=False) for word in query.unwanted]
        return Wanted([g for g in groups if g], [u for u in unwanted if u], ignored)

    @staticmethod
    def _refuse_nothing(query: Query, wanted: Wanted, *, alone: bool) -> None:
        if sum(len(forms) for forms in (*wanted.groups, *wanted.unwanted)) > _MOST_WORDS:
            raise BadRequest(f"more than {_MOST_WORDS} words", hint="fewer find the same")
        if wanted.groups or not alone:
            return
        if wanted.ignored:
            raise BadRequest(why_ignored(wanted.ignored[0]), hint="--regex looks for anything")
        if query.unwanted and not query.filters:
            raise BadRequest(
                "only words to leave out",
                hint="a dash means `not`; in quotes it is a word: '\"-x\"'",
            )
        if not query.filters:
            raise BadRequest("nothing to look for", hint="steno search WORDS…")

    # The index

    def _run(
        self, wanted: Wanted, scope: Scope, order: Order, first: int | None = None
    ) -> list[int]:
        from tantivy import Occur, Query

        limits = [*scope.clauses(self._schema), *self._unfinished()]
        groups = [self._any(forms) for forms in wanted.groups]
        unwanted = [self._any(forms) for forms in wanted.unwanted]
        clauses = [(Occur.Must, each) for each in groups or [Query.all_query()]]
        clauses += [(Occur.MustNot, each) for each in unwanted]
        joins = len(groups) > 1 or bool(unwanted)
        picks = scope.messages is not None or bool(scope.no_messages)
        # Where some fall away or are put in between, the first ones are known only at the end.
        most = None if joins or picks else first
        found = self._ask([*clauses, *limits], order, most)
        if joins:
            self._join(found, groups, unwanted, limits, order)
        return [message for message in found if not picks or scope.takes(message)][:first]

    def _unfinished(self) -> "list[tuple[tantivy.Occur, tantivy.Query]]":
        """Leave out what a sync is just adding, or had added when it was cut off."""
        from tantivy import Occur, Query

        rows = self._connection.execute("SELECT id FROM batches WHERE open")
        return [(Occur.MustNot, Query.term_query(self._schema, "batch", n)) for (n,) in rows]

    def _any(self, forms: _Forms) -> "tantivy.Query":
        from tantivy import Occur, Query

        queries = [query_of(form, self._schema) for form in forms]
        if len(queries) == 1:
            return queries[0]
        return Query.boolean_query([(Occur.Should, query) for query in queries])

    def _ask(
        self,
        clauses: "list[tuple[tantivy.Occur, tantivy.Query]]",
        order: Order,
        first: int | None = None,
    ) -> dict[int, float]:
        """Return messages and what they are ordered by, in order."""
        # A message may have several parts, each of which is found.
        most = max(1, self._searcher.num_docs) if first is None else first * _PARTS
        if order == "oldest":
            dated, undated = self._by_date()
            hits = self._hits([*clauses, dated], order, most)
            if len(hits) < most:
                hits += self._hits([*clauses, undated], order, most - len(hits))
        else:
            hits = self._hits(clauses, order, most)
        places = [place for _, place in hits]
        messages = self._searcher.fast_field_values("message", places)
        found: dict[int, float] = {}
        for message, (value, _) in zip(messages, hits, strict=True):
            found.setdefault(int(message or 0), value or 0)
        return found

    def _by_date(self) -> "tuple[_Clause, _Clause]":
        """Return what has a time, and what has none: it bears a zero, which is not early."""
        from tantivy import FieldType, Occur, Query

        way = self._schema, "time", FieldType.Integer
        return (
            (Occur.Must, Query.range_query(*way, lower_bound=1)),
            (Occur.Must, Query.range_query(*way, upper_bound=0)),
        )

    def _hits(
        self, clauses: "list[_Clause]", order: Order, most: int
    ) -> "list[tuple[Any, tantivy.DocAddress]]":
        import tantivy

        query = tantivy.Query.boolean_query(clauses)
        if order == "rank":
            return self._searcher.search(query, most, count=False).hits
        way = tantivy.Order.Asc if order == "oldest" else tantivy.Order.Desc
        return self._searcher.search(
            query, most, count=False, order_by_field="time", order=way
        ).hits

    def _join(
        self,
        found: dict[int, float],
        groups: "list[tantivy.Query]",
        unwanted: "list[tantivy.Query]",
        limits: "list[tuple[tantivy.Occur, tantivy.Query]]",
        order: Order,
    ) -> None:
        """Join what stands in several parts of one message."""
        from tantivy import Occur, Query

        split = (Occur.Must, Query.term_query(self._schema, "tag", SPLIT))
        more: dict[int, float] = {}
        for number, each in enumerate(groups):
            some = self._ask([(Occur.Must, each), split, *limits], order)
            more = {at: more[at] for at in more if at in some} if number else some
            if not more:
                break
        less: set[int] = set()
        for each in unwanted:
            less.update(self._ask([(Occur.Must, each), split, *limits], order))
        for message in less.intersection(found):
            del found[message]
        fresh = {each: at for each, at in more.items() if each not in found and each not in less}
        if fresh:
            key, back = (_oldest, False) if order == "oldest" else (_value, True)
            ordered = sorted([*found.items(), *fresh.items()], key=key, reverse=back)
            found.clear()
            found.update(ordered)


def why_ignored(word: str) -> str:
    """Say why a word cannot be looked for."""
    if any(letter.isalnum() for letter in word):
        return f"{word[:_SAID]!r}… is longer than any word in the index"
    return f"no letter or digit in {word[:_SAID]!r}"


def _value(item: tuple[int, float]) -> float:
    return item[1]


def _oldest(item: tuple[int, float]) -> tuple[bool, float]:
    return item[1] <= 0, item[1]


def _too_much(error: ValueError) -> BadRequest:
    if "expansions" in str(error):
        return BadRequest(
            "too many words fit a part of this phrase", hint="write more letters of them"
        )
    return BadRequest("that cannot be looked for", hint="fewer or shorter words may do")
