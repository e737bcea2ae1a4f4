"""Runs `steno repair SESSION --in-place` over and over, each time with a fault at the next step.

    python repairing.py FAULT FOLDER

As `steps.py`, but for the whole command: a child runs it on a broken session in a folder of its
own, and for each child a line is written: N, how it ended, and the step that was struck.
"""

import os
import sys
from functools import partial
from pathlib import Path
from typing import Final, NoReturn

from tests.builders import session, tool
from tests.faults.steps import Fault, in_a_child

from steno.cli.main import run

__all__ = ["MENDED", "NAME", "OLD", "main"]

_MOST: Final = 200
_MADE: Final = session(seed="faults").user("Where?").assistant(tool("Bash", command="ls"))
NAME: Final = f"{_MADE.session_id}.jsonl"
MENDED: Final = _MADE.result("a.py\n" * 2000).assistant("There.").bytes()
OLD: Final = MENDED + b'{"type":"user","mess'


def _in_child(fault: Fault, path: Path) -> NoReturn:
    code = 9
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    fault.install(links=True)
    try:
        run(["repair", str(path), "--in-place"])
    except SystemExit as left:
        code = int(left.code or 0)
    finally:
        # Whatever else it was, it must not go on as if it were the parent.
        os._exit(code)


def main(kind: str, folder: Path) -> None:
    """Strike at every step in turn."""
    for at in range(1, _MOST):
        place = folder / str(at) / "projects" / "-home-ada"
        place.mkdir(parents=True)
        path = place / NAME
        path.write_bytes(OLD)
        ended, struck = in_a_child(kind, at, partial(_in_child, path=path))
        sys.stdout.write(f"{at} {ended} {struck or '-'}\n")
        sys.stdout.flush()
        if not struck:
            return
    sys.exit(f"not done after {_MOST} steps")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
