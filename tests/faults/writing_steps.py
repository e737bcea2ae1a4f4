"""A folder of steps and changes to its sessions, and runs of the sync that are cut off at a step.

    python writing_steps.py FAULT FOLDER

As `archiving.py`: each time in a folder of its own, a child brings a folder of steps up to date after
sessions were added, changed, emptied and removed, and is struck at its N-th step. `cut_off` does the
same in this process: from the N-th step on nothing has any effect.
"""

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn

from tests.builders.step_files import session_file, session_id, step_lines
from tests.faults.steps import STEPS, Fault, strike_every_step

from steno.errors import StenoError
from steno.report.export.steps_folder import StepsJob, StepsReport, sync_steps
from steno.sanitize.secret_masker import Masker

__all__ = ["CutOff", "cut_off", "prepare", "sync", "tree"]

_MORE: Final = ("mkdir", "rmdir", "fchmod")
_MOST: Final = 400


class CutOff(BaseException):
    """The process ended here."""


def prepare(folder: Path) -> None:
    """Write sessions, bring a folder of steps up to date, and change the sessions."""
    root = folder / "claude"
    for number in (1, 2, 3, 4, 5):
        session_file(root, number, 12)
    sync(folder)
    (folder / "out" / "notes.txt").write_text("mine")
    (folder / "out" / session_id(5) / "notes.txt").write_text("mine")
    paths = [root / "projects" / "-home-ada-tide" / f"{session_id(n)}.jsonl" for n in range(1, 6)]
    with paths[0].open("ab") as file:
        file.write(step_lines(session_id(1), 3, word="More"))
    paths[1].write_bytes(paths[1].read_bytes().replace(b"Go on 7", b"Go in 7"))
    paths[2].unlink()
    paths[4].write_bytes(b"")
    session_file(root, 6, 8)
    copy = root / "projects" / "-home-ada-a" / f"{session_id(1)}.jsonl"
    copy.parent.mkdir()
    copy.write_bytes(step_lines(session_id(1), 5))


def sync(folder: Path) -> StepsReport:
    """Bring the folder of steps up to date."""
    job = StepsJob(str(folder / "out"), (str(folder / "claude"),), Masker())
    return sync_steps(job)


def tree(folder: Path) -> dict[str, bytes | None]:
    """Return everything in a folder of steps; None for a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


@contextmanager
def cut_off(at: int) -> Generator[list[str], None, None]:
    """Let the N-th step and all that follow it raise; the list has the names of the steps taken."""
    taken: list[str] = []
    real = {name: getattr(os, name) for name in (*STEPS, *_MORE)}

    def around(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **named: Any) -> Any:
            if name == "open" and not _writes(arguments):
                return function(*arguments, **named)
            taken.append(name)
            if len(taken) >= at:
                raise CutOff(name)
            return function(*arguments, **named)

        return step

    for name, function in real.items():
        setattr(os, name, around(name, function))
    try:
        yield taken
    finally:
        for name, function in real.items():
            setattr(os, name, function)


def _writes(arguments: tuple[Any, ...]) -> bool:
    """Whether an open makes a file; reading leaves nothing behind."""
    return len(arguments) > 1 and bool(arguments[1] & (os.O_CREAT | os.O_WRONLY))


def _in_child(fault: Fault, folder: Path) -> NoReturn:
    code = 9
    try:
        # Its own copy of what is known of the sources, as a process of its own has.
        os.environ["STENO_HOME"] = str(folder / "steno")
        # A process that is killed loses nothing of what the disk has not been asked for.
        os.fsync = int
        prepare(folder)
        fault.install(links=True)
        for name in _MORE:
            setattr(os, name, fault._around(name, getattr(os, name)))
        sync(folder)
        code = 0
    except StenoError:
        code = 3
    finally:
        # Whatever else it was, it must not go on as if it were the parent.
        os._exit(code)


if __name__ == "__main__":
    strike_every_step(sys.argv[1], Path(sys.argv[2]), _MOST, _in_child)
