"""The full-text index of all sessions, in tantivy, next to the tables.

A document is some text of one message: all of its thinking, or the input of one tool call. The text
itself is not stored and is read again from the file. Tokens are split at everything that is not a
letter or digit and lower-cased, so `src/auth/login.py` is the phrase `src auth login py`, and
`get_user_name` is `get user name`.
"""

import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from steno.errors import Unreadable, Unwritable
from steno.store.atomic import make_private_folder, unwritable_error

if TYPE_CHECKING:
    import tantivy


TEXT_FIELD: Final = "text"
"""The field with the words."""
MAX_TOKEN_SIZE: Final = 512
"""Words as long as this, in bytes, or longer are not found: they are data."""
SPLIT_TAG: Final = 0
"""The tag of documents that are not all their message says: it has several."""
FAILED_TAG: Final = 1
"""The tag of results that are errors; other tags are ids of `names`, which begin above it."""
_ANALYZER_NAME: Final = "words"
TEXT_FOLDER: Final = "words"
"""The folder of an index that holds them."""
DAMAGE_MESSAGES: Final = (
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
_LARGE_HEAP: Final = 128_000_000
_SMALL_HEAP: Final = 16_000_000


class TextIndexDamaged(Unreadable):
    """The words of an index cannot be read any more."""


def open_text_index(folder: str) -> "TextIndex":
    """Return the words in the folder of an index; they are made where there are none.

    Raises:
        WordsDamaged: they are damaged.
        Unwritable: there are none, and they cannot be made.
    """
    import tantivy

    path = os.path.join(folder, TEXT_FOLDER)
    hint = "`steno sync --rebuild` makes them anew"
    if os.path.lexists(path) and not os.path.isdir(path):
        raise TextIndexDamaged(f"{path} is not a folder", hint=hint)
    try:
        make_private_folder(path)
        index = tantivy.Index(_build_schema(), path=path, reuse=True)
    except OSError as error:
        raise unwritable_error(path, error) from error
    except ValueError as error:
        raise TextIndexDamaged(f"the words of the index in {path} are damaged", hint=hint) from error
    index.register_tokenizer(_ANALYZER_NAME, make_analyzer())
    return TextIndex(index)


def make_analyzer() -> "tantivy.TextAnalyzer":
    """Return what cuts texts, and queries, into words."""
    import tantivy

    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    return builder.filter(tantivy.Filter.remove_long(MAX_TOKEN_SIZE)).filter(tantivy.Filter.lowercase()).build()


def _build_schema() -> "tantivy.Schema":
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field(TEXT_FIELD, tokenizer_name=_ANALYZER_NAME, index_option="position")
    # What it is found by again: the message, and when it was said.
    builder.add_unsigned_field("message", fast=True, indexed=False)
    builder.add_integer_field("time", fast=True, indexed=True)
    # What it is filtered by: its file, and ids of `names` for its kind, tool, project and so on.
    builder.add_unsigned_field("file", indexed=True)
    builder.add_unsigned_field("tag", indexed=True)
    # What it is taken out again by, if a sync is cut off.
    builder.add_unsigned_field("batch", indexed=True)
    return builder.build()


class TextIndex:
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

    def start_writing(self, *, is_large: bool) -> None:
        """Get ready to write; a big batch takes more memory and both cores.

        Raises:
            Unwritable: the disk is full, or the words cannot be written.
        """
        if self._writer is None:
            heap, threads = (_LARGE_HEAP, 2) if is_large else (_SMALL_HEAP, 1)
            with _convert_engine_errors():
                self._writer = self.index.writer(heap_size=heap, num_threads=threads)

    def add_document(self, batch: int, file: int, message: int, time: int, tags: Iterable[int], text: str) -> None:
        """Add a document to the batch."""
        document = self._new_document()
        add_unsigned = document.add_unsigned
        add_unsigned("batch", batch)
        add_unsigned("file", file)
        add_unsigned("message", message)
        document.add_integer("time", time)
        for tag in tags:
            add_unsigned("tag", tag)
        document.add_text(TEXT_FIELD, text)
        try:
            self._active_writer().add_document(document)
        except ValueError as error:
            raise _engine_error(error) from error

    def remove_file(self, file: int) -> None:
        """Take out everything of a file that was added before."""
        self._remove_documents("file", file)

    def remove_batch(self, batch: int) -> None:
        """Take out what a sync added that was cut off."""
        self._remove_documents("batch", batch)

    def _remove_documents(self, field: str, value: int) -> None:
        import tantivy

        # `delete_documents_by_term` takes every number for a signed one, and finds nothing.
        query = tantivy.Query.term_query(self.schema, field, value)
        self._active_writer().delete_documents_by_query(query)

    def commit(self) -> None:
        """Make everything since the last commit lasting and visible, at once."""
        with _convert_engine_errors():
            self._active_writer().commit()

    def close(self) -> None:
        """Stop writing; what was not committed is forgotten, merges under way are finished."""
        if self._writer is not None:
            writer, self._writer = self._writer, None
            writer.wait_merging_threads()

    def _active_writer(self) -> "tantivy.IndexWriter":
        if self._writer is None:
            raise RuntimeError("begin has to come first")
        return self._writer


@contextmanager
def _convert_engine_errors() -> Generator[None, None, None]:
    try:
        yield
    except ValueError as error:
        raise _engine_error(error) from error


def _engine_error(error: ValueError) -> Unwritable | TextIndexDamaged:
    message = str(error).lower()
    if any(damage_message in message for damage_message in DAMAGE_MESSAGES):
        return TextIndexDamaged(f"the words of the index are damaged: {error}")
    hint = "make room and try again" if "no space left" in message else ""
    return Unwritable(f"cannot write the words of the index: {error}", hint=hint)
