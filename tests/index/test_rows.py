"""What one small session becomes in the tables, row by row."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.builders import session, text, tool
from tests.index.searching import write

from steno.index.database import IndexLocation, open_for_reading

OFFSET = (1 << 40) - 1


@pytest.fixture
def rows(tmp_path: Path, make_index: Callable[[Path], IndexLocation]) -> Callable[[str], list[Any]]:
    made = session(seed="rows").user("Change it.")
    edit = tool("Edit", file_path="/a.py", old_string="x\ny", new_string="x\nz\nw")
    made.assistant(text("I look."), tool("Read", file_path="/a.py"), edit)
    made.results("1\tx", "done").assistant(tool("Bash", command="false"))
    made.result("no", error=True).assistant("It failed.").done().user("Again?").assistant("Yes.")
    write(tmp_path / "config", made)
    home = make_index(tmp_path / "config")
    connection = open_for_reading(home.folder)
    assert connection is not None
    return lambda sql: connection.execute(sql).fetchall()


def test_each_call_has_a_row_with_its_turn_its_file_and_how_it_went(rows: Callable[[str], list[Any]]) -> None:
    found = rows("SELECT turn, name, path, failed FROM tool_calls ORDER BY message, place")
    assert found == [(1, "Read", "/a.py", 0), (1, "Edit", "/a.py", 0), (1, "Bash", "", 1)]
    places = rows("SELECT place FROM tool_calls ORDER BY message, place")
    assert all(isinstance(place, int) for (place,) in places)
    ids = rows("SELECT call FROM tool_calls")
    assert len(set(ids)) == 3


def test_a_session_and_its_turns_count_messages_calls_and_failures(rows: Callable[[str], list[Any]]) -> None:
    assert rows("SELECT turns, calls, failed, agent, hidden, rewound FROM sessions") == [(2, 3, 1, "", 0, 0)]
    found = rows("SELECT number, calls, failed FROM turns WHERE number > 0 ORDER BY number")
    assert found == [(1, 3, 1), (2, 0, 0)]
    ((count,),) = rows("SELECT messages FROM sessions")
    ((summed,),) = rows("SELECT sum(messages) FROM turns")
    assert count == summed
    for started, ended in rows("SELECT started, ended FROM turns"):
        assert started <= ended


def test_a_message_says_where_it_lies(rows: Callable[[str], list[Any]]) -> None:
    ((path, file),) = rows("SELECT path, id FROM files")
    data = Path(path).read_bytes()
    for place, length in rows("SELECT id, length FROM messages"):
        assert place >> 40 == file
        start = place & OFFSET
        line = data[start : start + length]
        assert line.startswith(b"{")
        assert line.rstrip(b"\n").endswith(b"}")
        assert start == 0 or data[start - 1 : start] == b"\n"
