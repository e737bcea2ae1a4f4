"""The door: what was asked for → which messages have it.

Words must all stand in one message: one record of a file, be it in several parts of it. Filters
choose which parts are looked at. A word is found as it is typed; when no message has all of them
so, those inside longer words are taken.
"""

import os
import sqlite3
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec

from steno.errors import BadRequest
from steno.index.opened import Index
from steno.index.search.language import Query, TooComplex, Word
from steno.index.search.scope import Scope, When, scope_of
from steno.index.search.terms import (
    Form,
    cutter,
    forms_of,
    insides,
    is_slow,
    query_of,
    shortest,
)
from steno.index.state import SHIFT
from steno.index.texts import DAMAGE_SIGNS, FOLDER, SPLIT, Texts, WordsDamaged

if TYPE_CHECKING:
    import tantivy

    Clause: TypeAlias = tuple[tantivy.Occur, tantivy.Query]

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


def open_finder(index: Index, when: When, absent: set[str] | None = None) -> "Finder":
    """Return what looks for words in an index.

    `absent` keeps which letters stand in no word, for as long as the index does not change.

    Raises:
        WordsDamaged: the words are damaged, or gone.
    """
    words = os.path.join(index.home.folder, FOLDER)
    hint = f"remove {words}, then `steno sync --rebuild`"
    try:
        finder = Finder(index.connection, index.texts, when, absent)
    except ValueError as error:
        raise WordsDamaged(f"the words of the index in {words} are damaged", hint=hint) from error
    if finder.is_bare:
        raise WordsDamaged(f"the words of the index are not in {words} any more", hint=hint)
    return finder


class Finder:
    """Looks for words in an index."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        texts: Texts,
        when: When,
        absent: set[str] | None = None,
    ) -> None:
        self._connection = connection
        self._absent = set[str]() if absent is None else absent
        self._when = when
        self.schema = texts.schema
        texts.index.reload()
        self._searcher = texts.index.searcher()
        self.cut = cutter()

    @property
    def has_split(self) -> bool:
        """Whether any message has several documents."""
        return self._searcher.doc_freq("tag", SPLIT) > 0

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
        messages = self._run(wanted, scope, order, first)
        if messages or not wanted.groups:
            return Found(messages, wanted, scope)
        wider = self._wanted(query, wide=True)
        if wider.groups == wanted.groups:
            return Found([], wanted, scope)
        try:
            messages = self._run_apart(wider, scope, order)[:first]
        except TooComplex:
            # So many words have it inside that it says nothing.
            messages = []
        return Found(messages, wider if messages else wanted, scope, wide=bool(messages))

    # What a survey asks for

    def plain(self, query: Query) -> "tuple[Found, list[Clause]] | None":
        """Return a query as the engine alone can answer it; None where it cannot, or only slowly.

        Raises:
            BadRequest: it asks for nothing, or for what cannot be looked for.
        """
        from tantivy import Occur, Query

        scope = scope_of(self._connection, query.filters, self._when)
        wanted = self._wanted(query, wide=False)
        self._refuse_nothing(query, wanted, alone=True)
        joins = len(wanted.groups) > 1 or bool(wanted.unwanted)
        forms = [form for some in (*wanted.groups, *wanted.unwanted) for form in some]
        if scope.empty or scope.picks or (joins and self.has_split) or any(map(is_slow, forms)):
            return None
        groups = [self._any(some) for some in wanted.groups] or [Query.all_query()]
        clauses = [(Occur.Must, each) for each in groups]
        clauses += [(Occur.MustNot, self._any(some)) for some in wanted.unwanted]
        return Found([], wanted, scope), [*clauses, *self._limits(scope)]

    def counts(self, clauses: "Sequence[Clause]") -> dict[int, int]:
        """Return how many documents fit, for each file."""
        from tantivy import Query

        asked = {"field": "message", "interval": float(1 << SHIFT), "min_doc_count": 1}
        query = Query.boolean_query(list(clauses))
        searcher: Any = self._searcher
        with _refusals():
            made = searcher.aggregate(query, {"files": {"histogram": asked}})
        buckets: list[dict[str, float]] = made["files"]["buckets"]
        return {int(each["key"]) >> SHIFT: int(each["doc_count"]) for each in buckets}

    def messages(
        self, clauses: "Sequence[Clause]", order: Order, first: int | None = None
    ) -> list[int]:
        """Return the messages that fit, or the `first` so many of them, in order."""
        return list(self._first(clauses, order, first))[:first]

    def within(self, files: Iterable[int]) -> "Clause":
        """Return the condition that something stands in one of some files."""
        from tantivy import Occur, Query

        return Occur.Must, Query.term_set_query(self.schema, "file", sorted(files))

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
            hint = "`steno search --regex` looks for anything"
            raise BadRequest(why_ignored(wanted.ignored[0]), hint=hint)
        if query.unwanted and not query.filters:
            raise BadRequest(
                "only words to leave out",
                hint="a dash means `not`; in quotes it is a word: '\"-x\"'",
            )
        if not query.filters:
            raise BadRequest("nothing to look for", hint="steno search WORDS…")

    def _run(
        self, wanted: Wanted, scope: Scope, order: Order, first: int | None = None
    ) -> list[int]:
        from tantivy import Occur, Query

        limits = self._limits(scope)
        groups = [self._any(forms) for forms in wanted.groups]
        unwanted = [self._any(forms) for forms in wanted.unwanted]
        clauses = [(Occur.Must, each) for each in groups or [Query.all_query()]]
        clauses += [(Occur.MustNot, each) for each in unwanted]
        joins = (len(groups) > 1 or bool(unwanted)) and self.has_split
        # Where some fall away or are put in between, the first ones are known only at the end.
        number = None if joins or scope.picks else first
        found = self._first([*clauses, *limits], order, number)
        if joins:
            self._join(found, groups, unwanted, limits, order)
        return [message for message in found if not scope.picks or scope.takes(message)][:first]

    def _run_apart(self, wanted: Wanted, scope: Scope, order: Order) -> list[int]:
        """Ask for one word after the other, each once: what is inside others takes long to find.

        The longest is the least likely, and where there is none the others need not be asked for.
        """
        from tantivy import Occur

        limits = self._limits(scope)
        found: dict[int, float] = {}
        for number, forms in enumerate(sorted(wanted.groups, key=shortest, reverse=True)):
            if self._is_absent(forms):
                return []
            some = self._ask([(Occur.Must, self._any(forms)), *limits], order)
            if not (some or limits):
                self._absent.update(insides(forms))
            if number:
                more = order == "rank"
                some = {at: some[at] + found[at] * more for at in found if at in some}
            found = some
            if not found:
                return []
        for forms in wanted.unwanted:
            for message in self._ask([(Occur.Must, self._any(forms)), *limits], order):
                found.pop(message, None)
        several = order == "rank" and len(wanted.groups) > 1
        ordered = sorted(found, key=found.__getitem__, reverse=True) if several else found
        return [message for message in ordered if not scope.picks or scope.takes(message)]

    def _is_absent(self, forms: _Forms) -> bool:
        """Whether each form has letters in it that stand in no word: who types on need not wait."""
        known = tuple(self._absent)
        return bool(known) and all(
            any(letters in part for _, piece in form.pieces for part in piece for letters in known)
            for form in forms
        )

    def _limits(self, scope: Scope) -> "list[Clause]":
        return [*scope.clauses(self.schema), *self._unfinished()]

    def _unfinished(self) -> "list[Clause]":
        """Leave out what a sync is just adding, or had added when it was cut off."""
        from tantivy import Occur, Query

        rows = self._connection.execute("SELECT id FROM batches WHERE open")
        return [(Occur.MustNot, Query.term_query(self.schema, "batch", n)) for (n,) in rows]

    def _any(self, forms: _Forms) -> "tantivy.Query":
        from tantivy import Occur, Query

        with _refusals():
            queries = [query_of(form, self.schema) for form in forms]
        if len(queries) == 1:
            return queries[0]
        return Query.boolean_query([(Occur.Should, query) for query in queries])

    def _first(
        self, clauses: "Sequence[Clause]", order: Order, number: int | None
    ) -> dict[int, float]:
        """Return at least the first so many messages that fit, and what they are ordered by."""
        # A message may have several documents, each of which is found.
        most = number * _PARTS if number and self.has_split else number
        found = self._ask(clauses, order, most)
        if number and 0 < len(found) < number:
            return self._ask(clauses, order)
        return found

    def _ask(
        self, clauses: "Sequence[Clause]", order: Order, most: int | None = None
    ) -> dict[int, float]:
        """Return the messages of the first documents that fit, and what they are ordered by."""
        most = max(1, self._searcher.num_docs) if most is None else most
        if most < 1:
            return {}  # the engine cannot be asked for none
        if order == "oldest":
            dated, undated = self._by_date()
            hits = self._hits([*clauses, dated], order, most)
            if len(hits) < most:
                hits += self._hits([*clauses, undated], order, most - len(hits))
        else:
            hits = self._hits([*clauses], order, most)
        places = [place for _, place in hits]
        messages = [int(each or 0) for each in self._searcher.fast_field_values("message", places)]
        values = [value or 0 for value, _ in hits]
        found: dict[int, float] = dict(zip(messages, values, strict=True))
        if len(found) < len(values):
            # The first document of a message says where it stands.
            found.clear()
            for message, value in zip(messages, values, strict=True):
                found.setdefault(message, value)
        return found

    def _by_date(self) -> "tuple[Clause, Clause]":
        """Return what has a time, and what has none: it bears a zero, which is not early."""
        from tantivy import FieldType, Occur, Query

        way = self.schema, "time", FieldType.Integer
        return (
            (Occur.Must, Query.range_query(*way, lower_bound=1)),
            (Occur.Must, Query.range_query(*way, upper_bound=0)),
        )

    def _hits(
        self, clauses: "list[Clause]", order: Order, most: int
    ) -> "list[tuple[Any, tantivy.DocAddress]]":
        import tantivy

        query = tantivy.Query.boolean_query(clauses)
        with _refusals():
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

        split = (Occur.Must, Query.term_query(self.schema, "tag", SPLIT))
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


@contextmanager
def _refusals() -> Generator[None]:
    """Raise what the engine refuses as a query that is too complex."""
    try:
        yield
    except ValueError as error:
        if any(sign in str(error).lower() for sign in DAMAGE_SIGNS):
            raise WordsDamaged(f"the words of the index are damaged: {error}") from error
        if "expansions" in str(error):
            raise TooComplex(
                "too many words fit a part of this phrase", hint="write more letters of them"
            ) from error
        raise TooComplex(
            "The query is too complex", hint="Use fewer or shorter words, or fewer wildcards."
        ) from error
