"""Runs a sync over and over, each time killed at its next step.

    python syncing.py ROOT FOLDER

A step is any call that changes the tables or the words; it is struck before it is made. A child
syncs a copy of a half-made index, and for each child a line is written: N and the step, or `-` when
the sync came through.
"""

import os
import shutil
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any, Final, NoReturn

from steno.index import database, text_index
from steno.index.database import IndexLocation
from steno.index.sync.updater import sync

_MOST: Final = 2_000
_KILLED: Final = -signal.SIGKILL
_WORDS: Final = (*("start_writing", "add_document", "remove_file", "remove_batch", "commit", "close"),)


class _Blow:
    """Falls at the n-th step."""

    def __init__(self, at: int, note: int) -> None:
        self._left = at
        self._note = note

    def step(self, name: str) -> None:
        self._left -= 1
        if not self._left:
            os.write(self._note, name.encode())
            os.kill(os.getpid(), signal.SIGKILL)


def _child(at: int, note: int, home: IndexLocation) -> NoReturn:
    blow = _Blow(at, note)

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, *rest: Any) -> sqlite3.Cursor:
            word = sql.split(None, 1)[0].lower()
            if word not in ("select", "pragma"):
                blow.step(word)
            return super().execute(sql, *rest)

        def executemany(self, sql: str, *rest: Any) -> sqlite3.Cursor:
            blow.step("many")
            return super().executemany(sql, *rest)

    connect = sqlite3.connect

    def struck(path: str, **options: Any) -> sqlite3.Connection:
        return connect(path, factory=Connection, **options)

    database.sqlite3.connect = struck
    for name in _WORDS:
        whole = getattr(text_index.TextIndex, name)

        def before(self: Any, *given: Any, _whole: Any = whole, _name: str = name, **named: Any) -> Any:
            blow.step(_name)
            return _whole(self, *given, **named)

        setattr(text_index.TextIndex, name, before)
    code = 9
    try:
        sync(home, workers=0)
        code = 0
    finally:
        os._exit(code)


def main(root: str, folder: Path) -> None:
    """Kill a sync at every step in turn."""
    for at in range(1, _MOST):
        home = IndexLocation(str(folder / str(at)), (root,))
        shutil.copytree(folder / "before", home.folder)
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            _child(at, writing, home)
        os.close(writing)
        with os.fdopen(reading) as note:
            struck = note.read()
        _, status = os.waitpid(child, 0)
        ended = os.waitstatus_to_exitcode(status)
        if ended not in (0, _KILLED):
            sys.exit(f"step {at}: ended with {ended}")
        sys.stdout.write(f"{at} {struck or '-'}\n")
        sys.stdout.flush()
        if not struck:
            return
    sys.exit(f"not done after {_MOST} steps")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
