"""The cost of a list page does not grow with the number of sessions."""

import os
import sqlite3
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import pytest
from tests.builders import session, tool
from tests.web.hostile_queries import App
from tests.web.sessions import last_record, written

from steno.index.database import IndexLocation, open_for_writing
from steno.index.sync.updater import sync
from steno.web.state.app_state import AppState

_NOW = 1_800_000_000.0
_MOST_BYTES = 200_000
_PAGES = (
    *("/", "/?status=live", "/?status=finished", "/?view=project", "/?open=branch", "/live"),
    *("/api/v1/sessions", "/api/v1/sessions?status=finished&project=p1&sort=longest"),
)


class Work(msgspec.Struct, frozen=True):
    """What one request cost."""

    statements: int
    calls: int
    size: int


def _fill(home: IndexLocation, number: int, *, live: bool) -> None:
    """Put sessions into an index, as a sync of that many files would; all files are fresh."""
    sync(home)
    connection = open_for_writing(home.folder)
    ended = int(_NOW * 1000) - (60_000 if live else 30 * 86_400_000)
    files = [(n, f"/r/{n}.jsonl", 4096, int(_NOW * 1e9), 1, n, 4096) for n in range(1, number + 1)]
    rows = [
        (n, f"id{n}", f"/home/p{n % 300}", f"b{n % 900}", f"title {n}", ended - n, ended - n, n)
        for n in range(1, number + 1)
    ]
    connection.execute("BEGIN")
    connection.executemany(
        "INSERT INTO files (id, root, path, size, mtime, device, inode, done) VALUES (?, '/r', ?, ?, ?, ?, ?, ?)", files
    )
    connection.executemany(
        "INSERT INTO sessions (file, id, agent, project, branch, title, named, version, model, "
        "started, ended, turns, messages, calls, failed, hidden, rewound, last_uuid, owner, ending, "
        "size) VALUES (?, ?, '', ?, ?, ?, 0, '2.1.0', 'm', ?, ?, 1, 2, 0, 0, 0, 0, '', ?, "
        "'answered', 4096)",
        rows,
    )
    connection.execute("COMMIT")
    connection.close()


@contextmanager
def _counted(statements: list[str], calls: list[int]) -> Generator[None]:
    """Count the SQL statements and the Python calls of all threads that start here."""
    connect = sqlite3.connect

    def connected(*arguments: Any, **options: Any) -> sqlite3.Connection:
        made: sqlite3.Connection = connect(*arguments, **options)
        made.set_trace_callback(statements.append)
        return made

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            calls[0] += 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sqlite3.connect", connected)
        threading.setprofile(count)
        try:
            yield
        finally:
            threading.setprofile(None)


def _work(folder: Path, number: int, address: str, *, live: bool) -> Work:
    home = IndexLocation(str(folder / f"index{number}"), (str(folder / "nothing"),))
    _fill(home, number, live=live)
    house = AppState(home, now=lambda: _NOW)
    path, _, query = address.partition("?")
    warm = App(house)
    warm.get(path, query)
    warm.close()
    house.index_cache = type(house.index_cache)()
    statements: list[str] = []
    calls = [0]
    with _counted(statements, calls):
        app = App(house)
        reply = app.get(path, query)
        app.close()
    house.close()
    assert reply.status == 200
    return Work(len(statements), calls[0], len(reply.body))


@pytest.mark.parametrize("state", ["live", "old"])
@pytest.mark.parametrize("address", _PAGES)
def test_ten_times_the_sessions_are_no_more_work(tmp_path: Path, address: str, state: str) -> None:
    few = _work(tmp_path, 600, address, live=state == "live")
    many = _work(tmp_path, 6_000, address, live=state == "live")
    assert many.size <= _MOST_BYTES
    assert many.statements <= few.statements + 5
    assert many.calls <= few.calls * 1.2 + 500
    assert many.size <= few.size * 1.2 + 2_000


def test_the_time_of_a_file_alone_does_not_make_a_session_live(tmp_path: Path) -> None:
    made = session(seed="old", full=True).user("go").assistant(tool("Bash", command="make"))
    path = written(made, tmp_path / "config")
    last = last_record(path)
    home = IndexLocation(str(tmp_path / "index"), (str(tmp_path / "config"),))
    now = last + 86_400 * 3
    os.utime(path, (now, now))
    sync(home)
    house = AppState(home, now=lambda: now)
    app = App(house)
    assert b"Live now" not in app.get("/").body
    with path.open("ab") as file:
        file.write(b'{"type":"mode","mode":"default","sessionId":"x"}\n')
    os.utime(path, (now, now))
    sync(home)
    # It was seen growing.
    assert b"Live now" in app.get("/").body
    app.close()
    house.close()


def test_five_live_sessions_are_on_top_and_the_others_one_filter_away(tmp_path: Path) -> None:
    home = IndexLocation(str(tmp_path / "index"), (str(tmp_path / "nothing"),))
    _fill(home, 70, live=True)
    house = AppState(home, now=lambda: _NOW)
    app = App(house)
    text = app.get("/").body.decode()
    box = text[text.index('class="livebox"') : text.index("</section>", text.index('class="livebox"'))]
    assert box.count("data-key=") == 5
    assert ">70 sessions<" in box
    assert '<a class="link" href="/?status=live">65 more live</a>' in box
    assert app.get("/", "status=live").body.count(b"data-key=") == 50
    app.close()
    house.close()
