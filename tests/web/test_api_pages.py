"""Pagination of the session list: each session exactly once, even while sessions are added."""

import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from steno.index.database import IndexLocation, open_for_writing
from steno.index.sync.updater import sync
from steno.web.api.parameters import SessionParameters
from steno.web.api.session_endpoints import list_sessions_page
from steno.web.state.app_state import AppState

_SORTS = ("newest", "oldest", "longest", "turns", "largest", "added")
_TIMES = st.none() | st.integers(0, 5)
_SESSION = st.tuples(_TIMES, st.integers(0, 2), st.integers(0, 2), st.integers(0, 2))
"""When it ended, how long it worked, how many turns it has, how large it is; many are alike."""


def _add(connection: sqlite3.Connection, number: int, facts: tuple[Any, ...]) -> None:
    ended, worked, turns, size = facts
    connection.execute(
        "INSERT INTO files (id, root, path, size, mtime, device, inode, done) VALUES (?, '/r', ?, ?, 0, 1, ?, 0)",
        (number, f"/r/{number}.jsonl", size, number),
    )
    connection.execute(
        "INSERT INTO sessions (file, id, agent, project, branch, title, named, version, model, "
        "started, ended, worked, turns, messages, calls, failed, hidden, rewound, last_uuid, "
        "owner, ending, size) VALUES "
        "(?, ?, '', '/p', 'b', 't', 0, '2.1.0', 'm', 0, ?, ?, ?, 2, 0, 0, 0, 0, '', ?, "
        "'answered', ?)",
        (number, f"id{number}", ended, worked, turns, number, size),
    )


@settings(max_examples=30)
@given(
    st.lists(_SESSION, max_size=12),
    st.lists(st.lists(_SESSION, max_size=3), max_size=6),
    st.integers(1, 5),
    st.sampled_from(_SORTS),
)
def test_every_session_is_on_exactly_one_page_while_others_are_added(
    first: list[tuple[Any, ...]], later: list[list[tuple[Any, ...]]], limit: int, sort: Any
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = IndexLocation(folder, (str(Path(folder) / "nothing"),))
        sync(home)
        connection = open_for_writing(folder)
        for number, facts in enumerate(first, 1):
            _add(connection, number, facts)
        house = AppState(home)
        seen: list[str] = []
        number, more = len(first), list(later)
        parameters = SessionParameters(limit=limit, sort=sort)
        while True:
            page = list_sessions_page(house, {}, parameters)
            assert len(page.sessions) <= limit
            seen += [each.id for each in page.sessions]
            if page.next_cursor is None:
                break
            for facts in more.pop(0) if more else []:
                number += 1
                _add(connection, number, facts)
            parameters = msgspec.structs.replace(parameters, cursor=page.next_cursor)
        house.close()
        connection.close()
    assert len(seen) == len(set(seen))
    assert {f"id{each}" for each in range(1, len(first) + 1)} <= set(seen)


def test_a_list_needs_no_session_file(tmp_path: Path) -> None:
    home = IndexLocation(str(tmp_path), (str(tmp_path / "nothing"),))
    sync(home)
    connection = open_for_writing(home.folder)
    for number in range(1, 4):
        _add(connection, number, (number, 0, 1, 10))
    connection.close()
    house = AppState(home)
    assert [each.path for each in list_sessions_page(house, {}, SessionParameters()).sessions] == [
        "/r/3.jsonl",
        "/r/2.jsonl",
        "/r/1.jsonl",
    ]
    house.close()
