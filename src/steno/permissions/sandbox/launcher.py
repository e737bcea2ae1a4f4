"""Starts sandboxed commands through one long-lived helper process."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from steno.permissions.sandbox.mechanisms import (
    MAX_REPLY,
    HelperExited,
    Mechanisms,
    SandboxCommand,
    check_helper_greeting,
    decode_helper_reply,
    send_command,
    start_helper,
)
from steno.permissions.sandbox.path_plan import MOUNT_POINT
from steno.permissions.sandbox.policy import SandboxError, SandboxPolicy, deny_secrets

_KILLED_STATUS = -9
_EXIT_TIMEOUT = 10


class SandboxedProcess:
    """A running sandboxed command."""

    def __init__(self, pid: int, exit_future: "asyncio.Future[int]") -> None:
        self.pid = pid
        """Process ID, which is also its session ID and process group."""
        self.returncode: int | None = None
        self._exit_future = exit_future
        exit_future.add_done_callback(self._set_returncode)

    def _set_returncode(self, exit_future: "asyncio.Future[int]") -> None:
        if not exit_future.cancelled():
            self.returncode = exit_future.result()

    async def wait(self) -> int:
        """Return the exit code, negative for a signal, after all its processes have ended."""
        code = await asyncio.shield(self._exit_future)
        self.returncode = code
        return code


def _ignore_exception(future: "asyncio.Future[Any]") -> None:
    """Mark the exception of a future as retrieved, so that asyncio does not log it."""
    if not future.cancelled():
        future.exception()


class _HelperConnection:
    """The connection of one event loop to the helper process."""

    def __init__(self, process: subprocess.Popen[bytes], connection: socket.socket, mounts: bytes) -> None:
        self.mounts = mounts
        """The mount table when the helper copied the mounts; empty without mount namespaces."""
        self.process = process
        self.connection = connection
        self.loop = asyncio.get_running_loop()
        self.greeting: asyncio.Future[None] = self.loop.create_future()
        self.greeting.add_done_callback(_ignore_exception)
        self.start_futures: dict[int, asyncio.Future[int]] = {}
        self.exit_futures: dict[int, asyncio.Future[int]] = {}
        self.is_stopped = False
        connection.setblocking(False)
        self.loop.add_reader(connection, self._read)

    def _read(self) -> None:
        try:
            text = self.connection.recv(MAX_REPLY)
        except BlockingIOError:
            return
        except OSError:
            text = b""
        reply = decode_helper_reply(text)
        if not reply:
            self.stop()
        elif not self.greeting.done():
            try:
                check_helper_greeting(reply)
            except SandboxError as error:
                self.greeting.set_exception(error)
            else:
                self.greeting.set_result(None)
        else:
            self._dispatch(reply)

    def _dispatch(self, reply: dict[str, Any]) -> None:
        number = reply.get("id", 0)
        start_future, exit_future = self.start_futures.get(number), self.exit_futures.get(number)
        if start_future and not start_future.done():
            if "pid" in reply:
                start_future.set_result(reply["pid"])
            elif "error" in reply:
                start_future.set_exception(SandboxError(f"Not run: {reply['error']}"))
            elif "ended" in reply:
                start_future.set_exception(SandboxError("Not run: the supervisor ended"))
        if exit_future and not exit_future.done():
            if "status" in reply:
                exit_future.set_result(reply["status"])
            elif "ended" in reply:
                exit_future.set_result(_KILLED_STATUS)
        if "ended" in reply:
            self.start_futures.pop(number, None)
            self.exit_futures.pop(number, None)

    def stop(self) -> None:
        """Close the socket, which ends all commands of the helper, and complete all futures."""
        if self.is_stopped:
            return
        self.is_stopped = True
        if not self.loop.is_closed():
            self.loop.remove_reader(self.connection)
        self.connection.close()
        if self.loop.is_closed():
            return
        error = SandboxError("Not run: the sandbox helper ended")
        if not self.greeting.done():
            self.greeting.set_exception(error)
        for future in self.start_futures.values():
            if not future.done():
                future.set_exception(error)
        for future in self.exit_futures.values():
            if not future.done():
                future.set_result(_KILLED_STATUS)


class SandboxLauncher:
    """Owns the helper process, which is started on first use and restarted if it dies."""

    def __init__(self, mechanisms: Mechanisms | None = None) -> None:
        self._mechanisms = mechanisms
        self._helper: _HelperConnection | None = None
        self._replaced_helpers: list[_HelperConnection] = []
        """Helpers that still run commands but get no new ones."""
        self._request_count = 0
        self._start_lock: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None

    async def start(
        self,
        argv: Sequence[str],
        *,
        policy: SandboxPolicy,
        env: Mapping[str, str],
        stdout: int,
        stderr: int,
        pass_fds: Sequence[int] = (),
    ) -> SandboxedProcess:
        """Start a sandboxed command in a new session, with empty standard input.

        Raises:
            SandboxError: it could not be sandboxed or executed, and was not run.
        """
        policy.check()
        policy_without_secrets = deny_secrets(policy)
        command = SandboxCommand(
            argv=argv, policy=policy_without_secrets, env=env, stdout=stdout, stderr=stderr, pass_fds=pass_fds
        )
        if sys.platform == "darwin":
            return await _start_seatbelt(command)
        try:
            return await self._start(command)
        except HelperExited:
            # The helper did not receive the command, so a new helper can run it.
            return await self._start(command)

    async def _start(self, command: SandboxCommand) -> SandboxedProcess:
        helper = await self._ensure_helper(command.policy)
        self._request_count += 1
        number = self._request_count
        start_future: asyncio.Future[int] = helper.loop.create_future()
        start_future.add_done_callback(_ignore_exception)
        exit_future = helper.loop.create_future()
        helper.start_futures[number], helper.exit_futures[number] = start_future, exit_future
        try:
            send_command(helper.connection, number, command)
            pid = await asyncio.shield(start_future)
        except SandboxError as error:
            helper.start_futures.pop(number, None)
            helper.exit_futures.pop(number, None)
            if isinstance(error, HelperExited):
                helper.stop()
            raise
        except asyncio.CancelledError:
            # The process would have no owner, so it is killed.
            start_future.add_done_callback(_kill_started)
            raise
        return SandboxedProcess(pid, exit_future)

    async def _ensure_helper(self, policy: SandboxPolicy) -> _HelperConnection:
        """Return a helper of this event loop with the current mounts of the policy's directories."""
        loop = asyncio.get_running_loop()
        if self._start_lock is None or self._start_lock[0] is not loop:
            self._start_lock = (loop, asyncio.Lock())
        async with self._start_lock[1]:
            helper = self._helper
            # A supervisor may still hold the socket open, so also check the process.
            has_exited = helper and (helper.is_stopped or helper.process.poll() is not None)
            if helper and (has_exited or helper.loop is not loop):
                self._helper = None
                await self._stop_helper(helper)
            elif helper and helper.mounts and _mounts_differ(helper.mounts, policy):
                self._helper = None
                self._replaced_helpers.append(helper)
            for replaced in [old for old in self._replaced_helpers if not old.exit_futures]:
                self._replaced_helpers.remove(replaced)
                await self._stop_helper(replaced)
            if self._helper is None:
                mechanisms = self._mechanisms or await asyncio.to_thread(_find_mechanisms)
                mounts = _read_mounts() if mechanisms.namespaces else b""
                self._helper = _HelperConnection(*start_helper(mechanisms), mounts)
            helper = self._helper
            await asyncio.shield(helper.greeting)
            return helper

    async def close(self) -> None:
        """End the helper and all its processes."""
        helpers = [*self._replaced_helpers, *([self._helper] if self._helper else [])]
        self._replaced_helpers, self._helper = [], None
        for helper in helpers:
            await self._stop_helper(helper)

    async def _stop_helper(self, helper: _HelperConnection) -> None:
        helper.stop()
        await asyncio.to_thread(_wait_for_helper, helper.process)


def _wait_for_helper(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_EXIT_TIMEOUT)
    except subprocess.TimeoutExpired:
        # A file system that does not respond can block it; the kernel ends the commands.
        process.kill()
        process.wait()


def _read_mounts() -> bytes:
    with open("/proc/self/mountinfo", "rb") as file:
        return file.read()


def _mounts_differ(before: bytes, policy: SandboxPolicy) -> bool:
    """Whether mounts above or inside the directories of a policy have changed."""
    after = _read_mounts()
    if after == before:
        return False
    folders = (policy.scratch, *policy.readable, *policy.writable, *policy.programs)
    real_folders = {os.fsencode(os.path.realpath(folder)) for folder in folders}

    def relevant(table: bytes) -> list[bytes]:
        return [line for line in table.split(b"\n") if line and _affects_folders(line, real_folders)]

    return relevant(after) != relevant(before)


def _affects_folders(line: bytes, folders: set[bytes]) -> bool:
    mount_point = line.split(b" ")[MOUNT_POINT].rstrip(b"/") + b"/"
    # An escaped name never equals a plain one, so it counts as inside.
    return b"\\" in mount_point or any(
        mount_point.startswith(folder.rstrip(b"/") + b"/") or folder.startswith(mount_point) for folder in folders
    )


def _kill_started(start_future: "asyncio.Future[int]") -> None:
    if not start_future.cancelled() and start_future.exception() is None:
        with suppress(ProcessLookupError):
            os.kill(start_future.result(), signal.SIGKILL)


async def _start_seatbelt(command: SandboxCommand) -> SandboxedProcess:
    from steno.permissions.sandbox.mechanisms import seatbelt_argv

    policy = command.policy
    try:
        process = await asyncio.create_subprocess_exec(
            *seatbelt_argv(command.argv, policy),
            stdin=subprocess.DEVNULL,
            stdout=command.stdout,
            stderr=command.stderr,
            pass_fds=command.pass_fds,
            cwd=policy.cwd,
            env={**command.env, "TMPDIR": policy.scratch},
            start_new_session=True,
        )
    except OSError as error:
        raise SandboxError(f"Not run: {error}") from error

    async def finish() -> int:
        code = await process.wait()
        # Without a PID namespace, processes that left the group are not found.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        return code

    return SandboxedProcess(process.pid, asyncio.ensure_future(finish()))


def _find_mechanisms() -> Mechanisms:
    from steno.permissions.sandbox.mechanisms import find_mechanisms, probe_sandbox

    mechanisms = find_mechanisms()
    if mechanisms is None:
        raise SandboxError(probe_sandbox().summary)
    return mechanisms
