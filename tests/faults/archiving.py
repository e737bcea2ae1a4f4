"""Runs `steno archive` over and over, each time with a fault at the next step.

    python archiving.py FAULT FOLDER

As `repairing.py`: in a folder of its own a child archives a session that grew since it was kept,
a small file that was rewritten, and one that is new.
"""

import os
import sys
from pathlib import Path
from typing import Final, NoReturn

from tests.faults.steps import Fault, strike_every_step

from steno.cli.main import run

__all__ = ["AFTER", "BEFORE", "NAME", "home"]

NAME: Final = "5f0e1d2c-0000-4000-8000-000000000001"
_MORE: Final = ("ftruncate", "truncate", "mkdir", "fchmod")
_MOST: Final = 300
_LINE: Final = b'{"type":"user","uuid":"%d","message":{"content":"x"}}\n'
_SESSION: Final = f"projects/-home-ada/{NAME}.jsonl"
_TODO: Final = f"todos/{NAME}-agent-{NAME}.json"
_RESULT: Final = f"projects/-home-ada/{NAME}/tool-results/one.txt"
_OLD: Final = b"".join(_LINE % number for number in range(300))
BEFORE: Final = {_SESSION: _OLD, _TODO: b'[{"content":"one"}]'}
AFTER: Final = {
    _SESSION: _OLD + b"".join(_LINE % number for number in range(300, 500)),
    _TODO: b'[{"content":"two"}]',
    _RESULT: b"much\n" * 5000,
}


def home(folder: Path) -> None:
    """Let everything of this process happen in a folder."""
    os.environ["HOME"] = str(folder)
    os.environ["CLAUDE_CONFIG_DIR"] = str(folder / "config")
    os.environ["STENO_HOME"] = str(folder / "steno")


def _write(folder: Path, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        path = folder / "config" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _archive() -> int:
    try:
        run(["archive"])
    except SystemExit as left:
        return int(left.code or 0)
    return 9


def _in_child(fault: Fault, folder: Path) -> NoReturn:
    code = 9
    try:
        home(folder)
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        _write(folder, BEFORE)
        if _archive() == 0:
            _write(folder, AFTER)
            fault.install(links=True)
            for name in _MORE:
                setattr(os, name, fault._around(name, getattr(os, name)))
            code = _archive()
    finally:
        # Whatever else it was, it must not go on as if it were the parent.
        os._exit(code)


if __name__ == "__main__":
    strike_every_step(sys.argv[1], Path(sys.argv[2]), _MOST, _in_child)
