"""Starts confined commands through one long-lived helper process."""

import asyncio
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from steno.guard.confinement.helper_process import (
    MOST_REPLY,
    Command,
    Mechanisms,
    check_greeting,
    decode_reply,
    send_command,
    start_helper,
)
from steno.guard.confinement.policy import Confinement, ConfinementError
from steno.guard.confinement.secret_paths import with_secrets_denied

__all__ = ["ConfinedProcess", "ConfinementError", "Launcher"]

_KILLED = -9


class ConfinedProcess:
    """A confined command that was started."""

    def __init__(self, pid: int, ended: "asyncio.Future[int]") -> None:
        self.pid = pid
        """Its process number, which is also its session and process group."""
        self.returncode: int | None = None
        self._ended = ended
        ended.add_done_callback(self._set_returncode)

    def _set_returncode(self, ended: "asyncio.Future[int]") -> None:
        if not ended.cancelled():
            self.returncode = ended.result()

    async def wait(self) -> int:
        """Return the exit code, negative for a signal, when all its processes have ended."""
        code = await asyncio.shield(self._ended)
        self.returncode = code
        return code


class _Helper:
    """The helper process as one event loop sees it."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket) -> None:
        self.process = process
        self.control = control
        self.loop = asyncio.get_running_loop()
        self.greeting: asyncio.Future[None] = self.loop.create_future()
        self.started: dict[int, asyncio.Future[int]] = {}
        self.ended: dict[int, asyncio.Future[int]] = {}
        self.dead = False
        control.setblocking(False)
        self.loop.add_reader(control, self._read)

    def _read(self) -> None:
        try:
            text = self.control.recv(MOST_REPLY)
        except BlockingIOError:
            return
        except OSError:
            text = b""
        reply = decode_reply(text)
        if not reply:
            self.stop()
        elif not self.greeting.done():
            try:
                check_greeting(reply)
            except ConfinementError as error:
                self.greeting.set_exception(error)
            else:
                self.greeting.set_result(None)
        else:
            self._dispatch(reply)

    def _dispatch(self, reply: dict[str, Any]) -> None:
        number = reply.get("id", 0)
        started, ended = self.started.get(number), self.ended.get(number)
        if started and not started.done():
            if "pid" in reply:
                started.set_result(reply["pid"])
            elif "error" in reply:
                started.set_exception(ConfinementError(f"Not run: {reply['error']}"))
            elif "ended" in reply:
                started.set_exception(ConfinementError("Not run: its supervisor ended"))
        if ended and not ended.done():
            if "status" in reply:
                ended.set_result(reply["status"])
            elif "ended" in reply:
                ended.set_result(_KILLED)
        if "ended" in reply:
            self.started.pop(number, None)
            self.ended.pop(number, None)

    def stop(self) -> None:
        """Close the socket, on which the helper ends everything; answer all who wait."""
        if self.dead:
            return
        self.dead = True
        if not self.loop.is_closed():
            self.loop.remove_reader(self.control)
        self.control.close()
        if self.loop.is_closed():
            return
        error = ConfinementError("Not run: the confinement helper ended")
        if not self.greeting.done():
            self.greeting.set_exception(error)
        for waiting in self.started.values():
            if not waiting.done():
                waiting.set_exception(error)
        for waiting in self.ended.values():
            if not waiting.done():
                waiting.set_result(_KILLED)


class Launcher:
    """Owns the helper process; it is started at first use, and again if it dies."""

    def __init__(self, mechanisms: Mechanisms | None = None) -> None:
        self._mechanisms = mechanisms
        self._helper: _Helper | None = None
        self._lock: asyncio.Lock | None = None
        self._count = 0

    async def start(
        self,
        argv: Sequence[str],
        *,
        policy: Confinement,
        env: Mapping[str, str],
        stdout: int,
        stderr: int,
        pass_fds: Sequence[int] = (),
    ) -> ConfinedProcess:
        """Start a command confined, in a session of its own, with nothing on its input.

        Raises:
            ConfinementError: it could not be confined or executed; nothing was run.
        """
        policy.check()
        denying = with_secrets_denied(policy)
        command = Command(
            argv=argv, policy=denying, env=env, stdout=stdout, stderr=stderr, pass_fds=pass_fds
        )
        helper = await self._running()
        self._count += 1
        number = self._count
        started = helper.loop.create_future()
        ended = helper.loop.create_future()
        helper.started[number], helper.ended[number] = started, ended
        try:
            send_command(helper.control, number, command)
            pid = await asyncio.shield(started)
        except ConfinementError:
            helper.started.pop(number, None)
            helper.ended.pop(number, None)
            raise
        return ConfinedProcess(pid, ended)

    async def _running(self) -> _Helper:
        helper = self._helper
        loop = asyncio.get_running_loop()
        if helper and not helper.dead and helper.loop is loop:
            await asyncio.shield(helper.greeting)
            return helper
        if helper:
            await self._retire(helper)
        mechanisms = self._mechanisms or await asyncio.to_thread(_find_mechanisms)
        helper = self._helper = _Helper(*start_helper(mechanisms))
        await asyncio.shield(helper.greeting)
        return helper

    async def close(self) -> None:
        """End the helper and everything it started."""
        helper, self._helper = self._helper, None
        if helper:
            await self._retire(helper)

    async def _retire(self, helper: _Helper) -> None:
        helper.stop()
        with suppress(ConfinementError, asyncio.CancelledError):
            if helper.greeting.done():
                helper.greeting.exception()
        await asyncio.to_thread(helper.process.wait)


def _find_mechanisms() -> Mechanisms:
    from steno.guard.confinement.probe import find_mechanisms, probe_confinement

    found = find_mechanisms()
    if found is None:
        raise ConfinementError(probe_confinement().summary)
    return found
