"""Does one thing to a file over and over, each time with a fault at the next step.

    python steps.py OPERATION FAULT FOLDER

A child process does the thing in a folder of its own; at its N-th step the fault strikes, N = 1,
2, 3 … until the thing is done before the fault comes. For each child a line is written: N, how it
ended (`done`, `refused`, `killed`), and the name of the step that was struck.
"""

import errno
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NoReturn

from steno.errors import StenoError
from steno.store.atomic import TempFile, file_identity
from steno.store.replace import place_new, swap, undo

__all__ = ["NAME", "NEW", "OLD", "main", "operate", "strike_every_step"]

NAME: Final = "5f0e1d2c-0000-4000-8000-000000000001.jsonl"
OLD: Final = b'{"type":"user","text":"old"}\n' * 900 + b'{"type":"assis'
NEW: Final = b'{"type":"user","text":"new"}\n' * 700
STEPS: Final = ("open", "write", "fsync", "link", "replace", "rename", "unlink", "chmod", "utime")
FAILURES: Final = {name: getattr(errno, name) for name in ("ENOSPC", "EFBIG", "EIO", "EROFS")}
_MOST: Final = 200
_write: Final = os.write


def operate(operation: str, path: str) -> None:
    """Do the thing itself."""
    if operation == "undo":
        undo(path)
        return
    seen = file_identity(path) if operation == "swap" else None
    with TempFile(path) as scratch:
        scratch.write(NEW[at : at + 8192] for at in range(0, len(NEW), 8192))
        if seen is None:
            place_new(scratch, path)
        else:
            swap(scratch, path, seen)


def prepare(operation: str, folder: Path) -> str:
    """Make a folder in which the thing can be done."""
    folder.mkdir()
    path = folder / NAME
    if operation != "keep_new":
        path.write_bytes(OLD)
    if operation == "undo":
        operate("swap", str(path))
    return str(path)


class Fault:
    """Strikes at the N-th step, and reports that step's name."""

    def __init__(self, kind: str, at: int, report: int) -> None:
        self._kind, self._at, self._report = kind, at, report
        self._count = 0

    def install(self, *, links: bool) -> None:
        """Put a trap around every step."""
        for name in STEPS:
            setattr(os, name, self._around(name, getattr(os, name)))
        if not links:
            os.link = _no_link

    def _around(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **named: Any) -> Any:
            self._count += 1
            if self._count != self._at:
                return real(*arguments, **named)
            _write(self._report, name.encode())
            if self._kind == "half" and name == "write":
                real(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
            if self._kind == "short" and name == "write":
                return real(arguments[0], bytes(arguments[1])[:1])
            if self._kind in FAILURES:
                code = FAILURES[self._kind]
                raise OSError(code, os.strerror(code))
            if self._kind != "short":
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **named)

        return step


def _no_link(*_: object, **__: object) -> None:
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))


def attempt(operation: str, kind: str, at: int, path: str) -> tuple[str, str]:
    """Do the thing in a child, with a fault at a step; return how it ended and where."""
    links = not operation.endswith("-without-links")
    operation = operation.removesuffix("-without-links")
    return in_a_child(kind, at, lambda fault: _in_child(operation, fault, path, links=links))


def in_a_child(kind: str, at: int, work: Callable[["Fault"], NoReturn]) -> tuple[str, str]:
    """Let a child do something with a fault at a step; return how it ended and where."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        work(Fault(kind, at, writing))
    os.close(writing)
    with os.fdopen(reading) as report:
        struck = report.read()
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return "killed", struck
    return {0: "done", 3: "refused"}.get(os.WEXITSTATUS(status), "broken"), struck


def strike_every_step(kind: str, folder: Path, most: int, work: Callable[["Fault", Path], NoReturn]) -> None:
    """Let a child do something again and again, with a fault at one step later each time."""
    for at in range(1, most):
        place = folder / str(at)
        place.mkdir(parents=True)
        ended, struck = in_a_child(kind, at, lambda fault, place=place: work(fault, place))
        sys.stdout.write(f"{at} {ended} {struck or '-'}\n")
        sys.stdout.flush()
        if not struck:
            return
    sys.exit(f"not done after {most} steps")


def _in_child(operation: str, fault: Fault, path: str, *, links: bool) -> NoReturn:
    fault.install(links=links)
    code = 9
    try:
        operate(operation, path)
        code = 0
    except StenoError:
        code = 3
    finally:
        # Whatever else it was, it must not go on as if it were the parent.
        os._exit(code)


def main(operation: str, kind: str, folder: Path) -> None:
    """Strike at every step in turn."""
    for at in range(1, _MOST):
        path = prepare(operation.removesuffix("-without-links"), folder / str(at))
        ended, struck = attempt(operation, kind, at, path)
        sys.stdout.write(f"{at} {ended} {struck or '-'}\n")
        if not struck:
            return
    sys.exit(f"not done after {_MOST} steps")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
