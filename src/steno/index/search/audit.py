"""Every byte of every file: searched, or why not. The sums are the sizes of the files.

Each string of each record is taken by its place in the record, and what that makes of it is held
against what the index was given: where the two do not agree, it is said.
"""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from steno.errors import Unreadable
from steno.format.records import Gap, Record
from steno.index.harvest import lines_of
from steno.index.lines import line_of
from steno.index.scan import path_from
from steno.index.search.leaves import Leaves, leaves_of, reason_of_silence
from steno.index.sources import open_file
from steno.index.state import SHIFT
from steno.index.texts import LONGEST_WORD, Texts
from steno.index.words import parts_of
from steno.store.archive.opened import open_anywhere

if TYPE_CHECKING:
    from steno.format.source import Source
    from steno.index.lines import Line

__all__ = ["REASONS", "Account", "audit"]

REASONS: Final = {
    "words": "searched: prompts, answers, thinking, inputs, outputs, notes, titles, summaries",
    "form": "not words: keys, ids, times, figures, the signs of JSON",
    "repeat": "the client's own copy of results, which of an edit holds the whole file before; "
    "the last prompt",
    "progress": "what sub-agents and commands printed on the way; where the sub-agent's file is "
    "missing this is the only copy",
    "state": "state of the client: file snapshots, modes, fields beside a message",
    "base64": "pictures, documents, signatures",
    "data": "strings of more than 4,096 letters without a space",
    "long": f"words of {LONGEST_WORD} bytes or more",
    "unread": "behind the last whole line that was read: the next sync reads on from there",
    "unreadable": "lines that hold no record: torn, zero bytes, longer than 64 MiB; `steno check`",
    "missing": "records that should be in the index and are not: `steno sync --rebuild`",
    "gone": "files that are gone and not archived: still found, but cannot be shown",
}
"""What becomes of bytes; everything but `words` and `form` is worth a look."""


class Account(msgspec.Struct):
    """What became of the bytes of one file."""

    path: str
    size: int
    bytes: Counter[str]
    records: Counter[str]
    documents: int = 0
    """How many texts of it the index should hold."""
    indexed: int = 0
    """How many it holds."""
    odd: int = 0
    """Records in which another length was indexed than was found to be words."""
    gone: bool = False
    problem: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether all that can be searched in it is."""
        lacking = sum(self.bytes[name] for name in ("unread", "unreadable", "missing", "gone"))
        return not lacking and self.documents == self.indexed and not self.odd


def audit(
    connection: sqlite3.Connection, texts: Texts, step: Callable[[int], None]
) -> Iterator[Account]:
    """Yield one account for each file, in the order of their paths."""
    from tantivy import Query

    texts.index.reload()
    searcher = texts.index.searcher()
    most = max(1, searcher.num_docs)
    rows = connection.execute("SELECT id, path, size, done, gone FROM files ORDER BY path")
    for file, kept, size, done, gone in rows.fetchall():
        account = Account(path_from(kept), 0, Counter(), Counter(), gone=gone is not None)
        ids = connection.execute(
            "SELECT id FROM messages WHERE id >= ? AND id < ?", (file << SHIFT, file + 1 << SHIFT)
        )
        counting = _Counting(account, {number - (file << SHIFT) for (number,) in ids})
        _read(connection, file, counting, size, done)
        mine = Query.term_query(texts.schema, "file", file)
        account.indexed = len(searcher.search(mine, most, count=False).hits)
        if account.bytes["gone"]:
            account.documents = account.indexed
        step(account.size)
        yield account


def _read(
    connection: sqlite3.Connection, file: int, counting: "_Counting", size: int, done: int
) -> None:
    account = counting.account
    try:
        source = open_file(connection, file) or open_anywhere(account.path)
    except Unreadable as error:
        account.problem = str(error)
        account.size = max(size, 0)
        account.bytes["gone"] = account.size
        return
    with source:
        account.size = source.size
        account.bytes["unread"] = max(0, source.size - done)
        counting.run(source, done)


class _Counting:
    """Counts the bytes of one file."""

    def __init__(self, account: Account, known: set[int]) -> None:
        self.account = account
        self._known = known

    def run(self, source: "Source", done: int) -> None:
        """Count everything up to where the index has read."""
        bytes_, records = self.account.bytes, self.account.records
        for piece in lines_of(source):
            if isinstance(piece, Gap):
                if piece.offset < done:
                    # A blank line is damaged in no way.
                    bytes_["unreadable" if piece.damage else "form"] += piece.length
                    records["unreadable"] += bool(piece.damage)
            elif isinstance(piece, Record):
                if piece.offset < done:
                    self._take(line_of(piece), piece.line, piece.offset, piece.length)
            elif piece[2] < done:
                line, raw, offset, ended = piece
                self._take(line, raw, offset, len(raw) + ended)

    def _take(self, line: "Line", raw: bytes, offset: int, length: int) -> None:
        account = self.account
        silence = reason_of_silence(line)
        if silence:
            account.bytes[silence] += length
            account.records[silence] += 1
            return
        parts = parts_of(line, raw)
        if offset not in self._known and (parts or line.type in ("user", "assistant")):
            account.bytes["missing"] += length
            account.records["missing"] += 1
            return
        account.documents += len(parts)
        said = "\n".join(part.text for part in parts)
        self._sum(leaves_of(line, raw, said), length)
        account.records["words" if said else "form"] += 1

    def _sum(self, found: Leaves, length: int) -> None:
        """Share out the bytes of a record; what is no string is its form."""
        account = self.account
        account.odd += found.odd
        for reason, size in found.sizes.items():
            taken = min(size, length)
            account.bytes[reason] += taken
            length -= taken
        account.bytes["form"] += length
