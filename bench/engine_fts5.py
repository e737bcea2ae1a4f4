"""SQLite FTS5 as a search engine: contentless, with a table of times."""

import re
import sqlite3
from collections.abc import Iterable
from pathlib import Path

TOP = 20
BATCH = 20_000
ALTERNATIVES = 500
ORDERS = {
    "ranked": "select rowid from f where f match ? order by rank limit ?",
    "newest": "select d.id from f join d on d.id = f.rowid where f match ? order by d.time desc limit ?",
    "last in": "select rowid from f where f match ? order by rowid desc limit ?",
}
SCHEMA = """
create virtual table f using fts5(x, content='', tokenize='unicode61 remove_diacritics 2');
create virtual table v using fts5vocab(f, row);
create table d(id integer primary key, time integer not null);
create index by_time on d(time);
"""


class Fts5:
    """An index in one database file."""

    def __init__(self, folder: Path, *, new: bool = False) -> None:
        self.base = sqlite3.connect(folder / "index.db", isolation_level=None)
        self.base.execute("pragma journal_mode=wal")
        self.base.execute("pragma synchronous=normal")
        if new:
            self.base.executescript(SCHEMA)
            # The default of 1 MB creates an index segment every few hundred documents.
            self.base.execute(f"insert into f(f, rank) values('hashsize', {64 << 20})")

    def build(self, documents: Iterable[tuple[int, str]]) -> None:
        """Add documents, one transaction per batch."""
        batch = list[tuple[int, int, str]]()
        for number, (time, text) in enumerate(documents, 1):
            batch.append((number, time, text))
            if len(batch) == BATCH:
                self._insert(batch)
                batch.clear()
        self._insert(batch)

    def _insert(self, batch: list[tuple[int, int, str]]) -> None:
        self.base.execute("begin")
        times = ((number, time) for number, time, _ in batch)
        texts = ((number, text) for number, _, text in batch)
        self.base.executemany("insert into d(id, time) values(?, ?)", times)
        self.base.executemany("insert into f(rowid, x) values(?, ?)", texts)
        self.base.execute("commit")

    def add(self, documents: list[tuple[int, int, str]]) -> None:
        """Add documents (number, time, text) and commit."""
        self._insert(documents)

    def close(self) -> None:
        """Checkpoint and close the database."""
        self.base.execute("pragma wal_checkpoint(truncate)")
        self.base.close()

    def find(self, kind: str, words: str, order: str) -> list[int]:
        """Return the first 20 documents for a `prefix`, a word or a phrase."""
        match = f'"{words}"*' if kind == "prefix" else f'"{words}"'
        return self._ask(order, match)

    def contains(self, part: str, order: str = "ranked") -> list[int]:
        """Return documents that contain a part of a word, using the vocabulary table."""
        first, *more = re.findall(r"\w+", part.lower().replace("_", " "))
        like = f"%{first}" if more else f"%{first}%"
        asked = "select term from v where term like ? limit ?"
        terms = self.base.execute(asked, (like, ALTERNATIVES)).fetchall()
        star = "*" if more else ""
        matches = [f'"{" ".join([term, *more])}"{star}' for (term,) in terms]
        return self._ask(order, " OR ".join(matches)) if matches else []

    def _ask(self, order: str, match: str) -> list[int]:
        return [each for (each,) in self.base.execute(ORDERS[order], (match, TOP))]

    def count(self, word: str) -> int:
        """Return the number of documents that contain a word."""
        asked = "select count(*) from f where f match ?"
        return self.base.execute(asked, (f'"{word}"',)).fetchone()[0]
