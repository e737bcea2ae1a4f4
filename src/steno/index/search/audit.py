"""Classifies every byte of every file: searched, or the reason why not. The sums equal the file sizes.

Each string is classified by its position in the record, independently of `steno.index.searchable_text`, and the result
is compared with the text in the index.
"""

import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from steno.errors import Unreadable
from steno.format.records import Gap, Record
from steno.index.line_decoder import IndexedLine, line_from_record
from steno.index.searchable_text import ENVELOPE_FIELDS, TITLE_TYPES, decode_json, is_binary, is_result_copy, text_parts
from steno.index.session_stats import FILE_ID_SHIFT
from steno.index.sync.extract import decoded_lines, open_indexed_file
from steno.index.sync.scan import path_from_column
from steno.index.text_index import MAX_TOKEN_SIZE, TextIndex
from steno.store.archive.file_access import open_transcript

if TYPE_CHECKING:
    from steno.format.source import Source


_UNSEARCHED_REASONS: Final = {
    "progress": "progress",
    "last-prompt": "repeat",
    "file-history-snapshot": "state",
    "mode": "state",
}
_TITLE_FIELDS: Final = ("customTitle", "aiTitle", "summary")
_BINARY_BLOCK_TYPES: Final = frozenset(("image", "document"))
# A word of 512 bytes has at least 128 characters.
_LONG_WORD: Final = re.compile(r"[^\W_]{128,}")


class ClassifiedStrings(msgspec.Struct):
    """Bytes of the strings in a record, by classification."""

    sizes: Counter[str]
    is_mismatched: bool = False
    """Whether the classified text differs from the indexed text."""


def unsearched_reason(line: IndexedLine) -> str:
    """Return why a record is not searched; empty for most records."""
    return _UNSEARCHED_REASONS.get(line.type or "", "") if line.message is None else ""


def classify_strings(line: IndexedLine, data: bytes, searched_text: str) -> ClassifiedStrings:
    """Classify the strings of a record by comparison with its `searched_text`."""
    fields = decode_json(data)
    classified = list(_classify_fields(line, fields, searched_text))
    character_count = sum(_character_count(string) for reason, string in classified if reason == "words")
    is_mismatched = character_count != _character_count(searched_text)
    if is_mismatched:
        # Not structured like a message: in a dialect, or damaged.
        classified = [("words" if leaf in searched_text else "state", leaf) for leaf in _iter_strings(fields)]
    sizes: Counter[str] = Counter()
    for reason, leaf in classified:
        size = len(leaf.encode("utf-8", "replace"))
        sizes[reason] += size
        if reason == "words" and size >= MAX_TOKEN_SIZE:
            long_size = sum(map(_long_word_size, _LONG_WORD.findall(leaf)))
            sizes["long"] += long_size
            sizes["words"] -= long_size
    expected = len(searched_text.replace("\n", "").encode("utf-8", "replace"))
    return ClassifiedStrings(sizes, is_mismatched and sizes["words"] + sizes["long"] < expected)


def _character_count(text: str) -> int:
    """Return the number of characters except newlines, which may have been added between strings."""
    return len(text) - text.count("\n")


def _long_word_size(word: str) -> int:
    size = len(word.encode("utf-8", "replace"))
    return size if size >= MAX_TOKEN_SIZE else 0


def _classify_fields(line: IndexedLine, fields: Any, searched_text: str) -> Iterator[tuple[str, str]]:
    if not isinstance(fields, dict):
        return
    for name, value in cast("dict[str, Any]", fields).items():
        if name in ENVELOPE_FIELDS:
            continue
        if line.message is None:
            yield from _classify_note(line, name, value)
        elif name == "message":
            if isinstance(value, dict):
                yield from _classify_content(cast("dict[str, Any]", value).get("content"))
        elif name == "toolUseResult":
            yield from _classify_result_copy(line, value, searched_text)
        else:
            yield from _classify_as("state", value)


def _classify_note(line: IndexedLine, name: str, value: Any) -> Iterator[tuple[str, str]]:
    if line.type in TITLE_TYPES and (line.custom_title or line.ai_title or line.summary):
        title = name in _TITLE_FIELDS and value
        yield from _classify_as("words" if title else "state", value)
        return
    yield from _classify_text(value)


def _classify_result_copy(line: IndexedLine, value: Any, searched_text: str) -> Iterator[tuple[str, str]]:
    """Classify the strings in the structured copy of a tool result."""
    if is_result_copy(line.tool_use_result) or not _has_tool_result(line):
        yield from _classify_as("repeat", value)
        return
    content = line.message.content if line.message is not None else None
    results = [block for block in content or () if not isinstance(block, str)]
    texts = ["\n".join(_inner_texts(block.content)) for block in results]
    for string in _iter_strings(value):
        if is_binary(string):
            yield "data", string
        else:
            # It was added to each result that does not contain it.
            for block, text in zip(results, texts, strict=True):
                if block.type == "tool_result" and string not in text:
                    yield "words", string
            if string in searched_text and all(string in text for text in texts):
                yield "repeat", string


def _inner_texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [inner.text for inner in content or () if inner.text]


def _has_tool_result(line: IndexedLine) -> bool:
    content = line.message.content if line.message is not None else None
    return isinstance(content, list) and any(block.type == "tool_result" for block in content)


def _classify_content(content: Any) -> Iterator[tuple[str, str]]:
    if isinstance(content, str):
        yield "words", content
        return
    for block in cast("list[Any]", content) if isinstance(content, list) else ():
        if isinstance(block, dict):
            yield from _classify_block(cast("dict[str, Any]", block))


def _classify_block(block: dict[str, Any]) -> Iterator[tuple[str, str]]:
    kind = block.get("type")
    for name, value in block.items():
        if name in ("type", "id", "name", "tool_use_id", "is_error", "cache_control"):
            continue
        if (kind, name) in (("text", "text"), ("thinking", "thinking")):
            yield from _classify_as("words", value)
        elif kind in ("tool_use", "server_tool_use") and name == "input":
            yield from _classify_text(value)
        elif kind == "tool_result" and name == "content":
            yield from _classify_result(value)
        elif kind in _BINARY_BLOCK_TYPES or (kind, name) == ("thinking", "signature") or kind == "redacted_thinking":
            yield from _classify_as("base64", value)
        else:
            yield from _classify_as("state", value)


def _classify_result(content: Any) -> Iterator[tuple[str, str]]:
    if isinstance(content, str):
        yield "words", content
        return
    for inner in cast("list[Any]", content) if isinstance(content, list) else ():
        if not isinstance(inner, dict):
            continue
        block = cast("dict[str, Any]", inner)
        is_binary_block = block.get("type") in _BINARY_BLOCK_TYPES
        for name, value in block.items():
            if name == "text":
                yield from _classify_as("words", value)
            elif name != "type":
                yield from _classify_as("base64" if is_binary_block else "state", value)


def _classify_text(value: Any) -> Iterator[tuple[str, str]]:
    return (("data" if is_binary(string) else "words", string) for string in _iter_strings(value))


def _classify_as(reason: str, value: Any) -> Iterator[tuple[str, str]]:
    return ((reason, string) for string in _iter_strings(value))


def _iter_strings(value: Any) -> Iterator[str]:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            stack.extend(cast("dict[str, Any]", item).values())
        elif isinstance(item, list):
            stack.extend(cast("list[Any]", item))


AUDIT_REASONS: Final = {
    "words": "searched: prompts, answers, thinking, inputs, outputs, notes, titles, summaries",
    "form": "not text: keys, IDs, times, numbers, JSON syntax",
    "repeat": "structured copies of tool results (for an edit, the whole original file); the last prompt",
    "progress": "progress output of sub-agents and commands; the only copy if the sub-agent's file is missing",
    "state": "state of Claude Code: file snapshots, modes, fields outside the message",
    "base64": "images, documents, signatures",
    "data": "strings of more than 4,096 characters without a space",
    "long": f"words of {MAX_TOKEN_SIZE} bytes or more",
    "unread": "after the last complete line read; the next sync continues from there",
    "unreadable": "lines without a record: incomplete, zero bytes, longer than 64 MiB; run `steno check`",
    "missing": "records missing from the index; run `steno sync --rebuild`",
    "gone": "deleted files that are not archived: found, but cannot be shown",
}
"""Classification of bytes; all except `words` and `form` deserve attention."""


class FileAudit(msgspec.Struct):
    """The classified bytes of one file."""

    path: str
    size: int
    bytes: Counter[str]
    records: Counter[str]
    documents: int = 0
    """Number of texts expected in the index."""
    indexed: int = 0
    """Number of texts in the index."""
    mismatched: int = 0
    """Number of records whose indexed text differs in length from the classified text."""
    gone: bool = False
    problem: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether all searchable text of the file is indexed."""
        lacking = sum(self.bytes[name] for name in ("unread", "unreadable", "missing", "gone"))
        return not lacking and self.documents == self.indexed and not self.mismatched


def audit_index(
    connection: sqlite3.Connection, texts: TextIndex, on_progress: Callable[[int], None]
) -> Iterator[FileAudit]:
    """Yield the audit of each file, sorted by path."""
    from tantivy import Query

    texts.index.reload()
    searcher = texts.index.searcher()
    max_hits = max(1, searcher.num_docs)
    rows = connection.execute("SELECT id, path, size, done, gone FROM files ORDER BY path")
    for file, column_path, size, end, gone in rows.fetchall():
        account = FileAudit(path_from_column(column_path), 0, Counter(), Counter(), gone=gone is not None)
        ids = connection.execute(
            "SELECT id FROM messages WHERE id >= ? AND id < ?", (file << FILE_ID_SHIFT, file + 1 << FILE_ID_SHIFT)
        )
        counter = _ByteCounter(account, {number - (file << FILE_ID_SHIFT) for (number,) in ids})
        _audit_file(connection, file, counter, size, end)
        file_query = Query.term_query(texts.schema, "file", file)
        account.indexed = len(searcher.search(file_query, max_hits, count=False).hits)
        if account.bytes["gone"]:
            account.documents = account.indexed
        on_progress(account.size)
        yield account


def _audit_file(connection: sqlite3.Connection, file: int, counter: "_ByteCounter", size: int, end: int) -> None:
    account = counter.account
    try:
        source = open_indexed_file(connection, file) or open_transcript(account.path)
    except Unreadable as error:
        account.problem = str(error)
        account.size = max(size, 0)
        account.bytes["gone"] = account.size
        return
    with source:
        account.size = source.size
        account.bytes["unread"] = max(0, source.size - end)
        counter.run(source, end)


class _ByteCounter:
    def __init__(self, account: FileAudit, message_offsets: set[int]) -> None:
        self.account = account
        self._message_offsets = message_offsets

    def run(self, source: "Source", end: int) -> None:
        """Count all bytes that the index has read."""
        bytes_, records = self.account.bytes, self.account.records
        for piece in decoded_lines(source):
            if isinstance(piece, Gap):
                if piece.offset < end:
                    # A blank line is not damaged.
                    bytes_["unreadable" if piece.damage else "form"] += piece.length
                    records["unreadable"] += bool(piece.damage)
            elif isinstance(piece, Record):
                if piece.offset < end:
                    self._count_record(line_from_record(piece), piece.line, piece.offset, piece.length)
            elif piece[2] < end:
                line, raw, offset, ended = piece
                self._count_record(line, raw, offset, len(raw) + ended)

    def _count_record(self, line: "IndexedLine", raw: bytes, offset: int, length: int) -> None:
        account = self.account
        reason = unsearched_reason(line)
        if reason:
            account.bytes[reason] += length
            account.records[reason] += 1
            return
        parts = text_parts(line, raw)
        if offset not in self._message_offsets and (parts or line.type in ("user", "assistant")):
            account.bytes["missing"] += length
            account.records["missing"] += 1
            return
        account.documents += len(parts)
        searched_text = "\n".join(part.text for part in parts)
        self._count_strings(classify_strings(line, raw, searched_text), length)
        account.records["words" if searched_text else "form"] += 1

    def _count_strings(self, classified: ClassifiedStrings, length: int) -> None:
        """Add the bytes of a record to the totals; bytes outside strings count as form."""
        account = self.account
        account.mismatched += classified.is_mismatched
        for reason, size in classified.sizes.items():
            counted = min(size, length)
            account.bytes[reason] += counted
            length -= counted
        account.bytes["form"] += length
