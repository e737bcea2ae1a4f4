"""Runs the small programs of hooks, and hears what a program prints.

Unlike those that the tools run for themselves, these are the user's: they may leave something in
the background, may read nothing, may print without end, and none of that may hold anybody up.
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

__all__ = ["Capture", "Finished", "run_program"]

_MOST: Final = 1 << 20
_GRACE: Final = 0.5


class Capture(asyncio.Protocol):
    """Takes what comes through a pipe up to a cap; what is beyond it is read and dropped.

    `ended` is done when every holder of the other end has closed it.
    """

    def __init__(self, most: int, *, last: bool = False) -> None:
        self._most = most
        self._last = last
        self._data = bytearray()
        self._transport: asyncio.BaseTransport | None = None
        self.dropped = 0
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember the pipe."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Keep the first bytes, or with `last` the last ones."""
        self._data += data
        over = len(self._data) - self._most
        if over > 0:
            self.dropped += over
            if self._last:
                del self._data[:over]
            else:
                del self._data[self._most :]

    def connection_lost(self, exc: Exception | None) -> None:
        """Say that nothing more will come."""
        del exc
        if not self.ended.done():
            self.ended.set_result(None)

    @property
    def text(self) -> str:
        """What was kept."""
        return self._data.decode("utf-8", "replace")

    def close(self) -> None:
        """Read no further."""
        if self._transport is not None:
            self._transport.close()

    @classmethod
    async def open(cls, most: int, *, last: bool = False) -> "tuple[Capture, int]":
        """Return a new capture and the end of its pipe to write to."""
        reading, writing = os.pipe()
        loop = asyncio.get_running_loop()
        _transport, capture = await loop.connect_read_pipe(
            lambda: cls(most, last=last), os.fdopen(reading, "rb", buffering=0)
        )
        return capture, writing


class Finished(msgspec.Struct, frozen=True):
    """What a program came to."""

    code: int
    out: str = ""
    err: str = ""
    duration_ms: int = 0
    timed_out: bool = False


async def run_program(
    line: tuple[str, ...], given: bytes, *, cwd: str, env: Mapping[str, str], seconds: float
) -> Finished:
    """Run a program with something to read, and everything that it starts as one group.

    A program that cannot be started has the code 127, one that took too long is ended.
    """
    started = time.monotonic()
    timed_out = False
    try:
        out, err, process = await _spawned(line, given, cwd, env)
    except (OSError, ValueError) as error:
        return Finished(127, err=f"cannot be started: {error}")
    try:
        try:
            await asyncio.wait_for(process.wait(), seconds)
        except TimeoutError:
            timed_out = True
        finally:
            await _ended(process)
        # Something it left in the background may hold the pipes: that is not waited for.
        await asyncio.wait({out.ended, err.ended}, timeout=_GRACE)
    finally:
        out.close()
        err.close()
    code = 1 if process.returncode is None else process.returncode
    words = f"{err.text}\nstopped after {seconds:g} s".lstrip() if timed_out else err.text
    return Finished(code, out.text, words, int((time.monotonic() - started) * 1000), timed_out)


async def _spawned(
    line: tuple[str, ...], given: bytes, cwd: str, env: Mapping[str, str]
) -> tuple[Capture, Capture, asyncio.subprocess.Process]:
    with contextlib.ExitStack() as unless, contextlib.ExitStack() as after:
        ends: list[int] = []
        captures: list[Capture] = []
        for _stream in ("out", "err"):
            capture, end = await Capture.open(_MOST)
            unless.callback(capture.close)
            after.callback(os.close, end)
            captures.append(capture)
            ends.append(end)
        # From a file, and not through a pipe: one that reads nothing cannot hold anybody up.
        file = after.enter_context(tempfile.TemporaryFile())
        file.write(given)
        file.seek(0)
        process = await asyncio.create_subprocess_exec(
            *line,
            stdin=file,
            stdout=ends[0],
            stderr=ends[1],
            cwd=cwd,
            env=dict(env),
            start_new_session=True,
        )
        unless.pop_all()
    return captures[0], captures[1], process


async def _ended(process: asyncio.subprocess.Process) -> None:
    """End a program that still runs, and all that it started: asked first, then without asking."""
    if process.returncode is not None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        # The second time also where it has gone: what it started may have stayed.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _GRACE)
