"""Runs child processes of hooks and servers without API keys, and captures their output.

Unlike the programs that tools run, these are the user's: they may leave background processes,
read nothing, or print without end; none of that may block the agent.
"""

import asyncio
import contextlib
import os
import signal
import tempfile
import time
from collections.abc import Mapping
from typing import Final

import msgspec

_KEY_VARIABLES: Final = (
    *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS"),
    *("CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_OAUTH_REFRESH_TOKEN"),
)
_MIN_KEY_LENGTH: Final = 8


def remove_keys(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without keys, under whatever names they stand in it.

    >>> remove_keys({"ANTHROPIC_API_KEY": "k3y-of-ada", "COPY": "k3y-of-ada", "TERM": "x"})
    {'TERM': 'x'}
    """
    removed = variables_with_keys(env)
    return {name: value for name, value in env.items() if name not in removed}


def variables_with_keys(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the variables that hold a key, whatever they are called."""
    keys = [env[name] for name in _KEY_VARIABLES if len(env.get(name, "")) >= _MIN_KEY_LENGTH]
    return tuple(name for name in env if name in _KEY_VARIABLES or any(key in env[name] for key in keys))


_MAX_OUTPUT_BYTES: Final = 1 << 20
_GRACE_SECONDS: Final = 0.5


class PipeCapture(asyncio.Protocol):
    """Takes what comes through a pipe up to a cap; what is beyond it is read and dropped.

    `closed` is done when every holder of the other end has closed it.
    """

    def __init__(self, max_bytes: int, *, keep_last: bool = False) -> None:
        self._max_bytes = max_bytes
        self._keep_last = keep_last
        self._data = bytearray()
        self._transport: asyncio.BaseTransport | None = None
        self.dropped = 0
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember the pipe."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Keep the first bytes, or with `keep_last` the last ones."""
        self._data += data
        excess = len(self._data) - self._max_bytes
        if excess > 0:
            self.dropped += excess
            if self._keep_last:
                del self._data[:excess]
            else:
                del self._data[self._max_bytes :]

    def connection_lost(self, exc: Exception | None) -> None:
        """Say that nothing more will come."""
        del exc
        if not self.closed.done():
            self.closed.set_result(None)

    @property
    def text(self) -> str:
        """What was kept."""
        return self._data.decode("utf-8", "replace")

    def close(self) -> None:
        """Read no further."""
        if self._transport is not None:
            self._transport.close()

    @classmethod
    async def open(cls, max_bytes: int, *, keep_last: bool = False) -> "tuple[PipeCapture, int]":
        """Return a new capture and the end of its pipe to write to."""
        read_end, write_end = os.pipe()
        loop = asyncio.get_running_loop()
        _transport, capture = await loop.connect_read_pipe(
            lambda: cls(max_bytes, keep_last=keep_last), os.fdopen(read_end, "rb", buffering=0)
        )
        return capture, write_end


class ProcessResult(msgspec.Struct, frozen=True):
    """What a program came to."""

    code: int
    stdout: str = ""
    stderr: str = ""
    duration_ms: int = 0
    timed_out: bool = False


async def run_program(
    command: tuple[str, ...], stdin_data: bytes, *, cwd: str, env: Mapping[str, str], time_limit: float
) -> ProcessResult:
    """Run a program with something to read, and everything that it starts as one group.

    A program that cannot be started has the code 127, one that took too long is ended.
    """
    started_at = time.monotonic()
    timed_out = False
    try:
        stdout, stderr, process = await _start_process(command, stdin_data, cwd, env)
    except (OSError, ValueError) as error:
        return ProcessResult(127, stderr=f"cannot be started: {error}")
    try:
        try:
            await asyncio.wait_for(process.wait(), time_limit)
        except TimeoutError:
            timed_out = True
        finally:
            await _terminate(process)
        # Something it left in the background may hold the pipes: that is not waited for.
        await asyncio.wait({stdout.closed, stderr.closed}, timeout=_GRACE_SECONDS)
    finally:
        stdout.close()
        stderr.close()
    code = 1 if process.returncode is None else process.returncode
    error_text = f"{stderr.text}\nstopped after {time_limit:g} s".lstrip() if timed_out else stderr.text
    return ProcessResult(code, stdout.text, error_text, int((time.monotonic() - started_at) * 1000), timed_out)


async def _start_process(
    command: tuple[str, ...], stdin_data: bytes, cwd: str, env: Mapping[str, str]
) -> tuple[PipeCapture, PipeCapture, asyncio.subprocess.Process]:
    with contextlib.ExitStack() as on_error, contextlib.ExitStack() as cleanup:
        write_ends: list[int] = []
        captures: list[PipeCapture] = []
        for _stream in ("out", "err"):
            capture, write_end = await PipeCapture.open(_MAX_OUTPUT_BYTES)
            on_error.callback(capture.close)
            cleanup.callback(os.close, write_end)
            captures.append(capture)
            write_ends.append(write_end)
        # From a file, and not through a pipe: one that reads nothing cannot hold anybody up.
        file = cleanup.enter_context(tempfile.TemporaryFile())
        file.write(stdin_data)
        file.seek(0)
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=file,
            stdout=write_ends[0],
            stderr=write_ends[1],
            cwd=cwd,
            env=dict(env),
            start_new_session=True,
        )
        on_error.pop_all()
    return captures[0], captures[1], process


async def _terminate(process: asyncio.subprocess.Process) -> None:
    """End a program that still runs, and all that it started: asked first, then without asking."""
    if process.returncode is not None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        # The second time also where it has gone: what it started may have stayed.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _GRACE_SECONDS)
