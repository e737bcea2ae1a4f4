"""The words of all sessions, in a tantivy index beside the tables.

A document is some words of one message: all the text it thinks, or what it gives to a tool. Nothing
of it is stored but what it is found, filtered and ordered by; the words themselves are read again
from the file. Words are cut at whatever is no letter or digit and made lower case, so that
`src/auth/login.py` is the phrase `src auth login py`, and `get_user_name` is `get user name`.
"""

import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from steno.errors import Unreadable, Unwritable
from steno.store.disk import make_folder
from steno.store.scratch import unwritable

if TYPE_CHECKING:
    import tantivy

__all__ = [
    "FAILED",
    "FOLDER",
    "LONGEST_WORD",
    "SPLIT",
    "TEXT",
    "Texts",
    "WordsDamaged",
    "analyzer",
    "open_texts",
]

TEXT: Final = "text"
"""The field with the words."""
LONGEST_WORD: Final = 512
"""Words as long as this, in bytes, or longer are not found: they are data."""
SPLIT: Final = 0
"""The tag of documents that are not all their message says: it has several."""
FAILED: Final = 1
"""The tag of results that are errors; other tags are ids of `names`, which begin above it."""
_ANALYZER: Final = "words"
FOLDER: Final = "words"
"""The folder of an index that holds them."""
DAMAGE_SIGNS: Final = (
    "corrupt",
    "does not exist",
    "no such file",
    "is a directory",
    "incompatible",
    "footer",
    "unexpected end",
    "unexpectedeof",
    "malformed",
    "expected value",
    "eof while",
    "invalid",
)
"""What the engine says of files that are not as it wrote them."""
_HEAP: Final = 128_000_000
_SMALL_HEAP: Final = 16_000_000


class WordsDamaged(Unreadable):
    """The words of an index cannot be read any more."""


def open_texts(folder: str) -> "Texts":
    """Return the words in the folder of an index; they are made where there are none.

    Raises:
        WordsDamaged: they are damaged.
        Unwritable: there are none, and they cannot be made.
    """
    import tantivy

    path = os.path.join(folder, FOLDER)
    hint = "`steno sync --rebuild` makes them anew"
    if os.path.lexists(path) and not os.path.isdir(path):
        raise WordsDamaged(f"{path} is not a folder", hint=hint)
    try:
        make_folder(path)
        index = tantivy.Index(_schema(), path=path, reuse=True)
    except OSError as error:
        raise unwritable(path, error) from error
    except ValueError as error:
        raise WordsDamaged(f"the words of the index in {path} are damaged", hint=hint) from error
    index.register_tokenizer(_ANALYZER, analyzer())
    return Texts(index)


def analyzer() -> "tantivy.TextAnalyzer":
    """Return what cuts texts, and queries, into words."""
    import tantivy

    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    return (
        builder.filter(tantivy.Filter.remove_long(LONGEST_WORD))
        .filter(tantivy.Filter.lowercase())
        .build()
    )


def _schema() -> "tantivy.Schema":
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field(TEXT, tokenizer_name=_ANALYZER, index_option="position")
    # What it is found by again: the message, and when it was said.
    builder.add_unsigned_field("message", fast=True, indexed=False)
    builder.add_integer_field("time", fast=True, indexed=True)
    # What it is filtered by: its file, and ids of `names` for its kind, tool, project and so on.
    builder.add_unsigned_field("file", indexed=True)
    builder.add_unsigned_field("tag", indexed=True)
    # What it is taken out again by, if a sync is cut off.
    builder.add_unsigned_field("batch", indexed=True)
    return builder.build()


class Texts:
    """The words: written in batches, read by the search."""

    def __init__(self, index: "tantivy.Index") -> None:
        import tantivy

        self.index = index
        self._new_document = tantivy.Document
        self._writer: tantivy.IndexWriter | None = None

    @property
    def schema(self) -> "tantivy.Schema":
        """The fields there are."""
        return self.index.schema

    def begin(self, *, big: bool) -> None:
        """Get ready to write; a big batch takes more memory and both cores.

        Raises:
            Unwritable: the disk is full, or the words cannot be written.
        """
        if self._writer is None:
            heap, threads = (_HEAP, 2) if big else (_SMALL_HEAP, 1)
            with _telling():
                self._writer = self.index.writer(heap_size=heap, num_threads=threads)

    def add(
        self, batch: int, file: int, message: int, time: int, tags: Iterable[int], text: str
    ) -> None:
        """Add a document to the batch."""
        document = self._new_document()
        number = document.add_unsigned
        number("batch", batch)
        number("file", file)
        number("message", message)
        document.add_integer("time", time)
        for tag in tags:
            number("tag", tag)
        document.add_text(TEXT, text)
        try:
            self._open().add_document(document)
        except ValueError as error:
            raise _unwritable(error) from error

    def drop_file(self, file: int) -> None:
        """Take out everything of a file that was added before."""
        self._drop("file", file)

    def drop_batch(self, batch: int) -> None:
        """Take out what a sync added that was cut off."""
        self._drop("batch", batch)

    def _drop(self, field: str, value: int) -> None:
        import tantivy

        # `delete_documents_by_term` takes every number for a signed one, and finds nothing.
        query = tantivy.Query.term_query(self.schema, field, value)
        self._open().delete_documents_by_query(query)

    def commit(self) -> None:
        """Make everything since the last commit lasting and visible, at once."""
        with _telling():
            self._open().commit()

    def close(self) -> None:
        """Stop writing; what was not committed is forgotten, merges under way are finished."""
        if self._writer is not None:
            writer, self._writer = self._writer, None
            writer.wait_merging_threads()

    def _open(self) -> "tantivy.IndexWriter":
        if self._writer is None:
            raise RuntimeError("begin has to come first")
        return self._writer


@contextmanager
def _telling() -> Generator[None, None, None]:
    """Say in our own words what the engine has to complain of."""
    try:
        yield
    except ValueError as error:
        raise _unwritable(error) from error


def _unwritable(error: ValueError) -> Unwritable | WordsDamaged:
    said = str(error).lower()
    if any(sign in said for sign in DAMAGE_SIGNS):
        return WordsDamaged(f"the words of the index are damaged: {error}")
    hint = "make room and try again" if "no space left" in said else ""
    return Unwritable(f"cannot write the words of the index: {error}", hint=hint)
