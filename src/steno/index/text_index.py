"""The full-text index of all sessions, in tantivy, next to the database.

A document is some text of one message: all of its thinking, or the input of one tool call. The text itself is not
stored and is read again from the file. Tokens are split at every character that is not a letter or digit and
lower-cased, so `src/auth/login.py` is the phrase `src auth login py`, and `get_user_name` is `get user name`.
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
"""Name of the text field."""
MAX_TOKEN_SIZE: Final = 512
"""Size in bytes from which words are treated as data and not indexed."""
SPLIT_TAG: Final = 0
"""Tag of documents whose message has several documents."""
FAILED_TAG: Final = 1
"""Tag of failed tool results; the other tags are IDs of `names`, which are higher."""
_ANALYZER_NAME: Final = "words"
TEXT_FOLDER: Final = "words"
"""Name of the directory with the full-text index."""
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
"""Engine messages that mean damaged files."""
_LARGE_HEAP: Final = 128_000_000
_SMALL_HEAP: Final = 16_000_000


class TextIndexDamaged(Unreadable):
    """The full-text index is damaged."""


def open_text_index(folder: str) -> "TextIndex":
    """Open the full-text index in the directory of an index, creating it if needed.

    Raises:
        TextIndexDamaged: it is damaged.
        Unwritable: it does not exist and cannot be created.
    """
    import tantivy

    path = os.path.join(folder, TEXT_FOLDER)
    hint = "Run `steno sync --rebuild` to rebuild it."
    if os.path.lexists(path) and not os.path.isdir(path):
        raise TextIndexDamaged(f"{path} is not a directory", hint=hint)
    try:
        make_private_folder(path)
        index = tantivy.Index(_build_schema(), path=path, reuse=True)
    except OSError as error:
        raise unwritable_error(path, error) from error
    except ValueError as error:
        raise TextIndexDamaged(f"the full-text index in {path} is damaged", hint=hint) from error
    index.register_tokenizer(_ANALYZER_NAME, make_analyzer())
    return TextIndex(index)


def make_analyzer() -> "tantivy.TextAnalyzer":
    """Return the analyzer that splits texts and queries into tokens."""
    import tantivy

    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    return builder.filter(tantivy.Filter.remove_long(MAX_TOKEN_SIZE)).filter(tantivy.Filter.lowercase()).build()


def _build_schema() -> "tantivy.Schema":
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field(TEXT_FIELD, tokenizer_name=_ANALYZER_NAME, index_option="position")
    # Fields of a hit: its message and time.
    builder.add_unsigned_field("message", fast=True, indexed=False)
    builder.add_integer_field("time", fast=True, indexed=True)
    # Filters: the file, and IDs of `names` for kind, tool, project and so on.
    builder.add_unsigned_field("file", indexed=True)
    builder.add_unsigned_field("tag", indexed=True)
    # To remove the documents of an interrupted sync.
    builder.add_unsigned_field("batch", indexed=True)
    return builder.build()


class TextIndex:
    """A full-text index, written in batches and read by the search."""

    def __init__(self, index: "tantivy.Index") -> None:
        import tantivy

        self.index = index
        self._new_document = tantivy.Document
        self._writer: tantivy.IndexWriter | None = None

    @property
    def schema(self) -> "tantivy.Schema":
        """The schema of the index."""
        return self.index.schema

    def start_writing(self, *, is_large: bool) -> None:
        """Start writing; a large batch uses more memory and two threads.

        Raises:
            Unwritable: the disk is full, or the index cannot be written.
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
        """Remove all documents of a file."""
        self._remove_documents("file", file)

    def remove_batch(self, batch: int) -> None:
        """Remove the documents of an interrupted sync."""
        self._remove_documents("batch", batch)

    def _remove_documents(self, field: str, value: int) -> None:
        import tantivy

        # `delete_documents_by_term` treats numbers as signed and finds nothing.
        query = tantivy.Query.term_query(self.schema, field, value)
        self._active_writer().delete_documents_by_query(query)

    def commit(self) -> None:
        """Atomically make all changes since the last commit durable and visible."""
        with _convert_engine_errors():
            self._active_writer().commit()

    def close(self) -> None:
        """Stop writing; uncommitted changes are discarded, running merges are finished."""
        if self._writer is not None:
            writer, self._writer = self._writer, None
            writer.wait_merging_threads()

    def _active_writer(self) -> "tantivy.IndexWriter":
        if self._writer is None:
            raise RuntimeError("start_writing() was not called")
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
        return TextIndexDamaged(f"the full-text index is damaged: {error}")
    hint = "Free disk space and run the command again." if "no space left" in message else ""
    return Unwritable(f"cannot write the full-text index: {error}", hint=hint)
