"""Starts confined commands through one long-lived helper process."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from steno.guard.confinement.helper_process import (
    MOST_REPLY,
    Command,
    HelperGone,
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
_PATIENCE = 10
# The field of a line of mountinfo.
_MOUNT_POINT = 4


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


def _mark_seen(future: "asyncio.Future[Any]") -> None:
    """Keep asyncio from complaining about an error that nobody was left to see."""
    if not future.cancelled():
        future.exception()


class _Helper:
    """The helper process as one event loop sees it."""

    def __init__(
        self, process: subprocess.Popen[bytes], control: socket.socket, mounts: bytes
    ) -> None:
        self.mounts = mounts
        """The mounts of this machine when the helper got a copy of them; empty if it has none."""
        self.process = process
        self.control = control
        self.loop = asyncio.get_running_loop()
        self.greeting: asyncio.Future[None] = self.loop.create_future()
        self.greeting.add_done_callback(_mark_seen)
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
        self._replaced: list[_Helper] = []
        """Helpers that still run commands and get no more."""
        self._count = 0
        self._starting: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None

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
        if sys.platform == "darwin":
            return await _start_with_seatbelt(command)
        try:
            return await self._start(command)
        except HelperGone:
            # It got nothing of the command, so a new one can run it.
            return await self._start(command)

    async def _start(self, command: Command) -> ConfinedProcess:
        helper = await self._running(command.policy)
        self._count += 1
        number = self._count
        started: asyncio.Future[int] = helper.loop.create_future()
        started.add_done_callback(_mark_seen)
        ended = helper.loop.create_future()
        helper.started[number], helper.ended[number] = started, ended
        try:
            send_command(helper.control, number, command)
            pid = await asyncio.shield(started)
        except ConfinementError as error:
            helper.started.pop(number, None)
            helper.ended.pop(number, None)
            if isinstance(error, HelperGone):
                helper.stop()
            raise
        except asyncio.CancelledError:
            # Nobody will own the process, so it must not go on.
            started.add_done_callback(_kill_started)
            raise
        return ConfinedProcess(pid, ended)

    async def _running(self, policy: Confinement) -> _Helper:
        """Return a helper of this event loop that sees the mounts of a policy as they are now."""
        loop = asyncio.get_running_loop()
        if self._starting is None or self._starting[0] is not loop:
            self._starting = (loop, asyncio.Lock())
        async with self._starting[1]:
            helper = self._helper
            # A supervisor may still hold the socket open, so the process itself is asked, too.
            gone = helper and (helper.dead or helper.process.poll() is not None)
            if helper and (gone or helper.loop is not loop):
                self._helper = None
                await self._retire(helper)
            elif helper and helper.mounts and _mounts_differ(helper.mounts, policy):
                self._helper = None
                self._replaced.append(helper)
            for old in [old for old in self._replaced if not old.ended]:
                self._replaced.remove(old)
                await self._retire(old)
            if self._helper is None:
                mechanisms = self._mechanisms or await asyncio.to_thread(_find_mechanisms)
                mounts = _read_mounts() if mechanisms.namespaces else b""
                self._helper = _Helper(*start_helper(mechanisms), mounts)
            helper = self._helper
            await asyncio.shield(helper.greeting)
            return helper

    async def close(self) -> None:
        """End the helper and everything it started."""
        helpers = [*self._replaced, *([self._helper] if self._helper else [])]
        self._replaced, self._helper = [], None
        for helper in helpers:
            await self._retire(helper)

    async def _retire(self, helper: _Helper) -> None:
        helper.stop()
        await asyncio.to_thread(_wait_for_helper, helper.process)


def _wait_for_helper(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        # A file system that does not answer holds it up; the kernel ends the commands.
        process.kill()
        process.wait()


def _read_mounts() -> bytes:
    with open("/proc/self/mountinfo", "rb") as file:
        return file.read()


def _mounts_differ(before: bytes, policy: Confinement) -> bool:
    """Whether mounts on the way to, or inside, the folders of a policy have changed."""
    now = _read_mounts()
    if now == before:
        return False
    folders = (policy.scratch, *policy.readable, *policy.writable, *policy.programs)
    real = {os.fsencode(os.path.realpath(folder)) for folder in folders}

    def relevant(table: bytes) -> list[bytes]:
        return [line for line in table.split(b"\n") if line and _concerns(line, real)]

    return relevant(now) != relevant(before)


def _concerns(line: bytes, folders: set[bytes]) -> bool:
    point = line.split(b" ")[_MOUNT_POINT].rstrip(b"/") + b"/"
    # An escaped name never equals a plain one, so it counts for every folder.
    return b"\\" in point or any(
        point.startswith(folder.rstrip(b"/") + b"/") or folder.startswith(point)
        for folder in folders
    )


def _kill_started(started: "asyncio.Future[int]") -> None:
    if not started.cancelled() and started.exception() is None:
        with suppress(ProcessLookupError):
            os.kill(started.result(), signal.SIGKILL)


async def _start_with_seatbelt(command: Command) -> ConfinedProcess:
    from steno.guard.confinement.seatbelt import confined_argv

    policy = command.policy
    try:
        process = await asyncio.create_subprocess_exec(
            *confined_argv(command.argv, policy),
            stdin=subprocess.DEVNULL,
            stdout=command.stdout,
            stderr=command.stderr,
            pass_fds=command.pass_fds,
            cwd=policy.cwd,
            env={**command.env, "TMPDIR": policy.scratch},
            start_new_session=True,
        )
    except OSError as error:
        raise ConfinementError(f"Not run: {error}") from error

    async def finish() -> int:
        code = await process.wait()
        # Other systems have no PID namespace; what left the group is not found.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        return code

    return ConfinedProcess(process.pid, asyncio.ensure_future(finish()))


def _find_mechanisms() -> Mechanisms:
    from steno.guard.confinement.probe import find_mechanisms, probe_confinement

    found = find_mechanisms()
    if found is None:
        raise ConfinementError(probe_confinement().summary)
    return found
