"""Which copy of a response counts is said twice, in SQL and in Python: both must say the same."""

import os
import sqlite3
from itertools import permutations, product
from pathlib import Path
from typing import Any

import pytest
from tests.report.usage_cases import SESSION, answer, both, explained, path_of, usage, write

from steno.index.usage_rows import copy_rank, update_counted_copies

_TABLES = """
CREATE TABLE files (id INTEGER PRIMARY KEY, path);
CREATE TABLE sessions (file INTEGER PRIMARY KEY, id TEXT, agent TEXT, started INTEGER);
CREATE TABLE usage (file INTEGER, key TEXT, output INTEGER, copied INTEGER, counts INTEGER);
"""
Copy = tuple[int, int, int | None, str, str, str]


def _winner(copies: tuple[Copy, ...]) -> Copy:
    connection = sqlite3.connect(":memory:")
    connection.executescript(_TABLES)
    for file, (output, copied, started, session, agent, path) in enumerate(copies):
        connection.execute("INSERT INTO files VALUES (?, ?)", (file, path))
        connection.execute("INSERT INTO sessions VALUES (?, ?, ?, ?)", (file, session, agent, started))
        connection.execute("INSERT INTO usage VALUES (?, 'k', ?, ?, 0)", (file, output, copied))
    update_counted_copies(connection, ["k"])
    ((file,),) = connection.execute("SELECT file FROM usage WHERE counts").fetchall()
    connection.close()
    return copies[file]


def _rank(copy: Copy) -> tuple[Any, ...]:
    output, copied, started, session, agent, path = copy
    row = (0, "k", 0, 1, 0, 0, "", "", "", 0, output, 0, 0, 0, 0, 0, 0, copied)
    return copy_rank(row, started, session, agent, path)


@pytest.mark.parametrize("starts", [(None, 0, 5), (-5_000, -1, 0)])
def test_sql_and_python_choose_the_same_copy(starts: tuple[int | None, ...]) -> None:
    names = [("a", "", "/x"), ("a", "", "/é"), ("a", "b", "/x"), ("b", "", "/x")]
    copies = [
        (output, copied, started, *name) for output, copied, started, name in product((5, 6), (0, 1), starts, names)
    ]
    for pair in permutations(copies, 2):
        assert _winner(pair) == min(pair, key=_rank)


@pytest.mark.parametrize("early", ["1969-12-31T23:59:59.999Z", "1960-01-01T00:00:00.000Z"])
@pytest.mark.parametrize("numbers", [(1, 2), (2, 1)])
def test_a_session_without_times_comes_before_one_of_any_time(
    tmp_path: Path, early: str, numbers: tuple[int, int]
) -> None:
    timeless, timed = numbers
    line = {"sessionId": SESSION.format(timeless), "timestamp": None}
    write(path_of(tmp_path, timeless), answer("msg_1", usage(5), **line))
    line = {"sessionId": SESSION.format(timed), "timestamp": early}
    write(path_of(tmp_path, timed), answer("msg_1", usage(5), **line))
    (row,) = both(tmp_path, "session").lines
    assert row.names == (SESSION.format(timeless),)


def test_of_equal_copies_the_one_with_a_readable_path_counts(tmp_path: Path) -> None:
    for folder in (b"a\xff", b"b"):
        path = tmp_path / "projects" / os.fsdecode(folder)
        try:
            write(path / f"{SESSION.format(1)}.jsonl", answer("msg_1", usage(5)))
        except OSError:
            pytest.skip("the file system has no such names")
    (response,) = explained(tmp_path).responses
    assert Path(response.lines[0].path).parent.name == "b"
    both(tmp_path)
