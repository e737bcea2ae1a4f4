"""Run child processes of hooks and servers without API keys, and capture their output.

Unlike the programs that tools run, these are configured by the user: they may leave background
processes, read no input, or print without end. None of that may block the agent.
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
    """Return an environment without API keys, whatever variables contain them.

    >>> remove_keys({"ANTHROPIC_API_KEY": "k3y-of-ada", "COPY": "k3y-of-ada", "TERM": "x"})
    {'TERM': 'x'}
    """
    removed = variables_with_keys(env)
    return {name: value for name, value in env.items() if name not in removed}


def variables_with_keys(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of all variables whose value contains a key."""
    keys = [env[name] for name in _KEY_VARIABLES if len(env.get(name, "")) >= _MIN_KEY_LENGTH]
    return tuple(name for name in env if name in _KEY_VARIABLES or any(key in env[name] for key in keys))


_MAX_OUTPUT_BYTES: Final = 1 << 20
_GRACE_SECONDS: Final = 0.5


class PipeCapture(asyncio.Protocol):
    """Captures data from a pipe up to a limit and discards the rest.

    `closed` is done when all processes have closed the write end.
    """

    def __init__(self, max_bytes: int, *, keep_last: bool = False) -> None:
        self._max_bytes = max_bytes
        self._keep_last = keep_last
        self._data = bytearray()
        self._transport: asyncio.BaseTransport | None = None
        self.dropped = 0
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Keep the first bytes, or with `keep_last` the last bytes."""
        self._data += data
        excess = len(self._data) - self._max_bytes
        if excess > 0:
            self.dropped += excess
            if self._keep_last:
                del self._data[:excess]
            else:
                del self._data[self._max_bytes :]

    def connection_lost(self, exc: Exception | None) -> None:
        """Mark the capture as complete."""
        del exc
        if not self.closed.done():
            self.closed.set_result(None)

    @property
    def text(self) -> str:
        """The captured text."""
        return self._data.decode("utf-8", "replace")

    def close(self) -> None:
        """Stop reading."""
        if self._transport is not None:
            self._transport.close()

    @classmethod
    async def open(cls, max_bytes: int, *, keep_last: bool = False) -> "tuple[PipeCapture, int]":
        """Return a new capture and the write end of its pipe."""
        read_end, write_end = os.pipe()
        loop = asyncio.get_running_loop()
        _transport, capture = await loop.connect_read_pipe(
            lambda: cls(max_bytes, keep_last=keep_last), os.fdopen(read_end, "rb", buffering=0)
        )
        return capture, write_end


class ProcessResult(msgspec.Struct, frozen=True):
    """Exit code and output of a program."""

    code: int
    stdout: str = ""
    stderr: str = ""
    duration_ms: int = 0
    timed_out: bool = False


async def run_program(
    command: tuple[str, ...], stdin_data: bytes, *, cwd: str, env: Mapping[str, str], time_limit: float
) -> ProcessResult:
    """Run a program in a new process group with `stdin_data` as standard input.

    The exit code is 127 if the program cannot be started. It is terminated at the time limit.
    """
    started_at = time.monotonic()
    timed_out = False
    try:
        stdout, stderr, process = await _start_process(command, stdin_data, cwd, env)
    except (OSError, ValueError) as error:
        return ProcessResult(127, stderr=f"cannot start the program: {error}")
    try:
        try:
            await asyncio.wait_for(process.wait(), time_limit)
        except TimeoutError:
            timed_out = True
        finally:
            await _terminate(process)
        # Background processes may hold the pipes open; do not wait for them.
        await asyncio.wait({stdout.closed, stderr.closed}, timeout=_GRACE_SECONDS)
    finally:
        stdout.close()
        stderr.close()
    code = 1 if process.returncode is None else process.returncode
    error_text = f"{stderr.text}\ntimed out after {time_limit:g} s".lstrip() if timed_out else stderr.text
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
        # A file instead of a pipe: a program that does not read its input cannot block the agent.
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
    """Terminate a running program and its process group, first with SIGTERM, then with SIGKILL."""
    if process.returncode is not None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        # SIGKILL is sent even if the program has ended: its child processes may remain.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _GRACE_SECONDS)
