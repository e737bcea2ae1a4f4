"""tantivy as a search engine: nothing stored, number and time as columns."""

import re
from collections.abc import Iterable
from pathlib import Path

import tantivy
from tantivy import Document, Filter, Occur, Query, Tokenizer

TOP = 20
HEAP = 128_000_000
EXPANDED = 64
# Parts of a word: getUserName → get user name.
PARTS = r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^\x00-\x7f]"


class Tantivy:
    """An index in a directory."""

    def __init__(self, folder: Path, *, new: bool = False, threads: int = 1, parts: bool = False) -> None:
        tokenizer = Tokenizer.regex(PARTS) if parts else Tokenizer.simple()
        self.analyzer = tantivy.TextAnalyzerBuilder(tokenizer).filter(Filter.lowercase()).build()
        self.threads = threads
        if new:
            builder = tantivy.SchemaBuilder()
            builder.add_unsigned_field("id", fast=True, indexed=True)
            builder.add_integer_field("time", fast=True)
            builder.add_text_field("x", tokenizer_name="words")
            self.index = tantivy.Index(builder.build(), path=str(folder))
        else:
            self.index = tantivy.Index.open(str(folder))
        self.index.register_tokenizer("words", self.analyzer)
        self.schema = self.index.schema
        self.searcher = self.index.searcher()

    def build(self, documents: Iterable[tuple[int, str]]) -> None:
        """Add documents and commit once."""
        writer = self.index.writer(heap_size=HEAP, num_threads=self.threads)
        for number, (time, text) in enumerate(documents, 1):
            writer.add_document(_document(number, time, text))
        writer.commit()
        writer.wait_merging_threads()

    def add(self, documents: list[tuple[int, int, str]]) -> None:
        """Add documents (number, time, text) and commit."""
        writer = self.index.writer(heap_size=15_000_000, num_threads=1)
        for document in documents:
            writer.add_document(_document(*document))
        writer.commit()
        writer.wait_merging_threads()

    def close(self) -> None:
        """Does nothing: a commit writes everything."""

    def reload(self) -> None:
        """Load the last commit."""
        self.index.reload()
        self.searcher = self.index.searcher()

    def find(self, kind: str, words: str, order: str) -> list[int]:
        """Return the first 20 documents for a `prefix`, a word or a phrase."""
        *before, last = self.analyzer.analyze(words)
        if kind != "prefix":
            query = self._phrase([*before, last]) if before else self._term(last)
        elif before:
            query = Query.phrase_prefix_query(self.schema, "x", [*before, last])
        elif order == "ranked":
            # All matches of an automaton have the same score, unlike terms.
            terms = self.searcher.terms_with_prefix("x", last, limit=EXPANDED)
            query = Query.boolean_query([(Occur.Should, self._term(term)) for term, _ in terms])
        else:
            query = Query.regex_query(self.schema, "x", f"{re.escape(last)}.*")
        return self._ask(query, order)

    def contains(self, part: str, order: str = "ranked") -> list[int]:
        """Return documents that contain a part of a word."""
        first, *more = self.analyzer.analyze(part)
        if not more:
            return self._ask(Query.regex_query(self.schema, "x", f".*{re.escape(first)}.*"), order)
        *between, last = more
        words: list[str | tuple[int, str]] = [f".*{re.escape(first)}", *map(re.escape, between), f"{re.escape(last)}.*"]
        return self._ask(Query.regex_phrase_query(self.schema, "x", words), order)

    def count(self, word: str) -> int:
        """Return the number of documents that contain a word."""
        return self.searcher.doc_freq("x", word)

    def _term(self, word: str) -> Query:
        return Query.term_query(self.schema, "x", word)

    def _phrase(self, words: list[str]) -> Query:
        return Query.phrase_query(self.schema, "x", [*words])

    def _ask(self, query: Query, order: str) -> list[int]:
        by = None if order == "ranked" else "time" if order == "newest" else "id"
        hits = self.searcher.search(query, TOP, count=False, order_by_field=by).hits
        found = self.searcher.fast_field_values("id", [address for _, address in hits])
        return [int(each) for each in found if each is not None]


def _document(number: int, time: int, text: str) -> Document:
    made = Document()
    made.add_unsigned("id", number)
    made.add_integer("time", time)
    made.add_text("x", text)
    return made
