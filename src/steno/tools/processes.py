"""Shell commands in the foreground and background, each in its own session and terminated completely.

shell = await start_shell("make test", context, on_output, execution)   # calls on_output(stream, data)
exit_code = await shell.wait()                         # or: await shell.end()

shell = await context.background.start("make watch", "Watch", context, call)
await shell.wait(10); shell.status, shell.exit_code, shell.read()
await context.background.close()                       # terminates everything

The processes of a command are found by session, process group and parent. Where `/proc` exists, they are
also found by a marker in the environment and by open pipes, even if they have left the session and the
process group. Other background work can be added to `context.background.tasks` as a `BackgroundTask`.
"""

import asyncio
import os
import shlex
import signal
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from steno.errors import StenoError
from steno.tools.output import OutputLog, error_message, escape_controls, make_results_folder, new_id
from steno.tools.protocol import Execution, Process, Streams, ToolFailure

if TYPE_CHECKING:
    from steno.tools.context import ToolContext


OnOutput: TypeAlias = Callable[[str, bytes], None]
"""Called with `stdout` or `stderr` and a piece of output."""

GRACE_SECONDS: Final = 1.0
"""Seconds between SIGTERM and SIGKILL."""
CALL_VARIABLE: Final = "STENO_CALL"
_READ_SIZE: Final = 1 << 16
# Limits the reads after a command has ended, since a child may keep printing.
_MAX_FINAL_READS: Final = 64
_CWD_DESCRIPTOR: Final = 200
_MAX_KILLS: Final = 100
_FIRST_PAUSE: Final = 0.01
_MAX_PAUSE: Final = 0.2

# The shell reports its directory at every change, because a command may end by `exec`, by its own
# trap or by a signal, and once at exit for changes that bypass the functions.
# All on one line, so that bash numbers the lines of the command from 1.
_REPORT_CWD_FUNCTION: Final = (
    '__steno_here() {{ [[ $BASHPID != "$$" ]] || '
    "{{ builtin pwd -P && builtin printf '\\0'; }} >&{fd} 2>/dev/null || :; }}"
)
_CD_FUNCTION: Final = '{} {{ {{ local - && set +x; }} 2>/dev/null; builtin {} "$@" && __steno_here; }}'
_CD_FUNCTIONS: Final = "; ".join(_CD_FUNCTION.format(f"{name}()", name) for name in ("cd", "pushd", "popd"))
_EXIT_TRAP: Final = "trap '{ __steno_here; } 2>/dev/null' EXIT"


class _OutputPipe:
    """The read end of a pipe, open as long as a process has the write end open."""

    def __init__(self, on_data: Callable[[bytes], None], on_close: Callable[[], None]) -> None:
        self.on_data = on_data
        self._on_close = on_close
        self._loop = asyncio.get_running_loop()
        self._read_descriptor, self.write_descriptor = os.pipe()
        self.proc_name = f"pipe:[{os.fstat(self._read_descriptor).st_ino}]"
        """Name of the pipe in `/proc/PID/fd`; read by other threads."""
        os.set_blocking(self._read_descriptor, False)
        self._loop.add_reader(self._read_descriptor, self._read_available)

    @property
    def is_open(self) -> bool:
        return self._read_descriptor >= 0

    def close_write_end(self) -> None:
        """Close our copy of the write end, once the command has inherited it."""
        os.close(self.write_descriptor)

    def drain(self) -> None:
        """Read the data that is available now."""
        for _ in range(_MAX_FINAL_READS):
            if not self._read_available():
                return

    def _read_available(self) -> bool:
        if self._read_descriptor < 0:
            return False
        try:
            data = os.read(self._read_descriptor, _READ_SIZE)
        except BlockingIOError:
            return False
        if data:
            self.on_data(data)
            return True
        self.close()
        return False

    def close(self) -> None:
        if self._read_descriptor < 0:
            return
        self._loop.remove_reader(self._read_descriptor)
        os.close(self._read_descriptor)
        self._read_descriptor = -1
        self._on_close()


class ShellProcess:
    """A started shell command."""

    def __init__(self, on_output: OnOutput, call_mark: str) -> None:
        self.final_directory: str | None = None
        """The directory of the shell when it ended; None if it was not reported."""
        self.call_mark = call_mark
        self.on_quiet: Callable[[], None] = lambda: None
        """Called when all output pipes are closed."""
        self._cwd_reports = bytearray()
        self._pipes = (
            _OutputPipe(partial(on_output, "stdout"), self._on_pipe_closed),
            _OutputPipe(partial(on_output, "stderr"), self._on_pipe_closed),
        )
        self._cwd_pipe = _OutputPipe(self._add_cwd_report, lambda: None)
        self._process: Process | None = None
        self._exit_task: asyncio.Task[int] | None = None

    async def launch(
        self, command: str, context: "ToolContext", execution: Execution, *, outside_sandbox: bool = False
    ) -> None:
        """Start the command, sandboxed as its execution requires; raises `ToolFailure` on failure.

        `outside_sandbox` requests a run outside the sandbox of the settings.
        """
        import fcntl

        descriptor = fcntl.fcntl(self._cwd_pipe.write_descriptor, fcntl.F_DUPFD_CLOEXEC, _CWD_DESCRIPTOR)
        stdout, stderr = self._pipes
        marks = ",".join(filter(None, (context.env.get(CALL_VARIABLE), self.call_mark)))
        try:
            env = {**context.env, CALL_VARIABLE: marks}
            if context.runner is not None:
                env = await context.runner.environment(command, context.cwd, execution, env)
                env[CALL_VARIABLE] = marks
            if execution.isolation in {"read", "edit"}:
                streams = Streams(stdout.write_descriptor, stderr.write_descriptor, (descriptor,))
                process = await _start_confined(command, streams, context, execution, env)
            else:
                process = await asyncio.create_subprocess_exec(
                    *_sandboxed_argv(command, descriptor, context, outside_sandbox=outside_sandbox),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=stdout.write_descriptor,
                    stderr=stderr.write_descriptor,
                    cwd=context.cwd,
                    env=env,
                    start_new_session=True,
                    pass_fds=(descriptor,),
                )
        except BaseException as error:
            self.close_pipes()
            if not isinstance(error, OSError | ValueError | StenoError):
                raise
            message = getattr(error, "strerror", None) or str(error)
            raise ToolFailure(f"Cannot start the command: {message.lower()}") from error
        finally:
            os.close(descriptor)
            for pipe in (*self._pipes, self._cwd_pipe):
                pipe.close_write_end()
        self._process = process
        self._exit_task = asyncio.create_task(process.wait())

    @property
    def is_quiet(self) -> bool:
        """Whether all output pipes are closed."""
        return not any(pipe.is_open for pipe in self._pipes)

    async def wait(self) -> int:
        """Wait for the command and read its remaining output; return the exit code, negative for a signal."""
        if self._exit_task is None:
            raise RuntimeError("the command was not started")
        code = await asyncio.shield(self._exit_task)
        for pipe in self._pipes:
            pipe.drain()
        self._cwd_pipe.drain()
        self._cwd_pipe.close()
        reports = bytes(self._cwd_reports).split(b"\0")
        if len(reports) > 1:
            self.final_directory = os.fsdecode(reports[-2].removesuffix(b"\n"))
        return code

    async def end(self, grace: float = GRACE_SECONDS) -> int:
        """Terminate the command and all its processes; return the exit code.

        If cancelled meanwhile, kills the remaining processes at once.
        """
        ending = asyncio.create_task(self._terminate_all(grace))
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            await asyncio.to_thread(self._send_signals, signal.SIGKILL)
            raise
        code = await self.wait()
        self.close_pipes()
        return code

    def discard_output(self) -> None:
        """Keep reading the output of remaining processes, without storing it."""
        for pipe in self._pipes:
            pipe.on_data = _discard

    def close_pipes(self) -> None:
        """Close all pipes."""
        for pipe in (*self._pipes, self._cwd_pipe):
            pipe.close()

    def _add_cwd_report(self, data: bytes) -> None:
        self._cwd_reports += data
        # Only the last report is used.
        if len(self._cwd_reports) > _READ_SIZE:
            del self._cwd_reports[:-_READ_SIZE]

    def _on_pipe_closed(self) -> None:
        if self.is_quiet:
            self.on_quiet()

    async def _terminate_all(self, grace: float) -> None:
        """Send SIGTERM to all processes, then SIGKILL until none is left."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + grace
        # Stopped processes cannot handle SIGTERM before SIGCONT.
        any_alive = await asyncio.to_thread(self._send_signals, signal.SIGTERM, signal.SIGCONT)
        pause, kills = _FIRST_PAUSE, 0
        while any_alive and kills < _MAX_KILLS:
            await self._wait_briefly(pause)
            pause = min(pause * 2, _MAX_PAUSE)
            is_late = clock() >= deadline
            kills += is_late
            any_alive = await asyncio.to_thread(self._send_signals, signal.SIGKILL if is_late else 0)

    async def _wait_briefly(self, seconds: float) -> None:
        if self._exit_task is not None and not self._exit_task.done():
            await asyncio.wait({self._exit_task}, timeout=seconds)
        else:
            await asyncio.sleep(seconds)

    def _send_signals(self, *signals: int) -> bool:
        """Send signals to all processes of the command; return whether any was found."""
        leader = self._leader_pid()
        pids = find_processes(self.call_mark, leader, {pipe.proc_name for pipe in self._pipes if pipe.is_open})
        for number in signals:
            if leader is not None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(leader, number)
            for pid in pids:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
        return bool(pids) or leader is not None

    def _leader_pid(self) -> int | None:
        """Return the process ID of the shell until it has been waited for; afterwards it may be reused."""
        if self._process is None or self._process.returncode is not None:
            return None
        return self._process.pid


def _discard(_data: bytes) -> None:
    pass


def shell_exit_code(code: int) -> int:
    """Return the exit code as a shell reports it: 128 plus the signal number for a signal."""
    return code if code >= 0 else 128 - code


async def _start_confined(
    command: str, streams: Streams, context: "ToolContext", execution: Execution, env: dict[str, str]
) -> Process:
    if context.runner is None:
        raise ToolFailure("The command was not run: no sandbox is available.")
    return await context.runner.start(
        _bash_argv(command, streams.more[0], context),
        command=command,
        cwd=context.cwd,
        edits=execution.isolation == "edit",
        env=env,
        streams=streams,
    )


def _sandboxed_argv(command: str, descriptor: int, context: "ToolContext", *, outside_sandbox: bool) -> list[str]:
    argv = _bash_argv(command, descriptor, context)
    if context.sandbox is None:
        return argv
    return list(context.sandbox(argv, command=command, cwd=context.cwd, outside=outside_sandbox))


def _bash_argv(command: str, descriptor: int, context: "ToolContext") -> list[str]:
    bash = "/bin/bash"
    if not os.path.exists(bash):
        import shutil

        bash = shutil.which("bash", path=context.env.get("PATH"))
    if bash is None:
        raise ToolFailure("Cannot run commands: bash is not installed.")
    parts = (_REPORT_CWD_FUNCTION.format(fd=descriptor), _CD_FUNCTIONS, _EXIT_TRAP, f"eval {shlex.quote(command)}")
    return [bash, "-c", "; ".join(parts), bash]


async def start_shell(
    command: str, context: "ToolContext", on_output: OnOutput, execution: Execution, *, outside_sandbox: bool = False
) -> ShellProcess:
    """Start a command in the working directory of the conversation.

    Raises:
        ToolFailure: The command cannot be started.
    """
    if not await asyncio.to_thread(os.path.isdir, context.cwd):
        missing, context.cwd = context.cwd, context.project
        raise ToolFailure(
            f"The working directory {missing} no longer exists, so the command was not run. "
            f"The next command runs in {context.project}."
        )
    shell = ShellProcess(on_output, new_id("c"))
    await shell.launch(command, context, execution, outside_sandbox=outside_sandbox)
    return shell


# Finding processes


def find_processes(call_mark: str, leader: int | None, pipes: Collection[str] = ()) -> set[int]:
    """Return the IDs of processes that have the mark, belong to the leader's session, or have one of the pipes open.

    Includes all descendants. Empty without `/proc`. Excludes zombies.
    """
    matching: set[int] = set()
    children: dict[int, list[int]] = {}
    ended: set[int] = set()
    mark_value = call_mark.encode()
    try:
        names = os.listdir("/proc")
    except OSError:
        return matching
    for pid in map(int, filter(str.isdigit, names)):
        try:
            state, *numbers = _read_file(f"/proc/{pid}/stat").rpartition(b")")[2].split()[:4]
            parent, group, session = map(int, numbers)
        except ValueError:
            # The process has ended.
            continue
        children.setdefault(parent, []).append(pid)
        if state in b"ZX":
            ended.add(pid)
        elif leader in {group, session} or mark_value in _call_marks(pid) or _has_open_pipe(pid, pipes):
            matching.add(pid)
    waiting = list(matching)
    while waiting:
        descendants = [pid for pid in children.get(waiting.pop(), ()) if pid not in matching]
        matching.update(descendants)
        waiting.extend(descendants)
    return matching - ended - {os.getpid()}


def _call_marks(pid: int) -> list[bytes]:
    for entry in _read_file(f"/proc/{pid}/environ").split(b"\0"):
        name, _, value = entry.partition(b"=")
        if name == CALL_VARIABLE.encode():
            return value.split(b",")
    return []


def _has_open_pipe(pid: int, pipes: Collection[str]) -> bool:
    """Return whether another process has one of the pipes open."""
    if not pipes or pid == os.getpid():
        return False
    with suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                if os.readlink(f"/proc/{pid}/fd/{name}") in pipes:
                    return True
    return False


def _read_file(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


class BackgroundTask(Protocol):
    """A background task, such as a shell command or a sub-agent."""

    id: str
    kind: str
    """Type in the session file: `local_bash` or `local_agent`."""
    description: str
    command: str
    status: str
    """`running`, `completed`, `failed` or `killed`."""
    exit_code: int | None

    def read(self) -> str:
        """Return the output since the last call."""
        ...

    async def wait(self, seconds: float) -> None:
        """Wait for the end of the task, at most `seconds`."""
        ...

    async def stop(self) -> None:
        """Terminate the task."""
        ...


class BackgroundShell:
    """A shell command that runs in the background."""

    kind = "local_bash"

    def __init__(self, call: str, command: str, description: str, log: OutputLog) -> None:
        self.id = os.path.splitext(os.path.basename(log.path))[0]
        self.call = call
        self.command = command
        self.description = description
        self.log = log
        self.status = "running"
        self.exit_code: int | None = None
        self.waiting_count = 0
        self._shell: ShellProcess | None = None
        self._finished = asyncio.Event()
        self._watch_task: asyncio.Task[None] | None = None

    async def launch(self, context: "ToolContext", execution: Execution, *, outside_sandbox: bool = False) -> None:
        """Start the command, sandboxed as its execution requires."""

        def on_output(_stream: str, data: bytes) -> None:
            self.log.add(data)

        try:
            self._shell = await start_shell(
                self.command, context, on_output, execution, outside_sandbox=outside_sandbox
            )
        except StenoError:
            self.log.close()
            raise
        self._watch_task = asyncio.create_task(self._wait_until_finished(self._shell, context.notify))

    async def _wait_until_finished(self, shell: ShellProcess, notify: Callable[[str], None]) -> None:
        code = await shell.wait()
        shell.on_quiet = self.log.close
        if shell.is_quiet:
            self.log.close()
        if self.status == "running":
            self._set_finished("completed" if code == 0 else "failed", code)
            # A call that is waiting for the task reports its end itself.
            if not self.waiting_count:
                notify(self.notification())

    def _set_finished(self, status: str, status_code: int) -> None:
        self.status = status
        self.exit_code = shell_exit_code(status_code)
        self._finished.set()

    def notification(self) -> str:
        """Return the notification for the model that the task has ended."""
        name = escape_controls(self.description or self.command)
        ended = f"{self.status} (exit code {self.exit_code})"
        return (
            f"<task-notification>\n<task-id>{self.id}</task-id>\n"
            f"<tool-use-id>{self.call}</tool-use-id>\n"
            f"<output-file>{self.log.path}</output-file>\n<status>{self.status}</status>\n"
            f'<summary>Background command "{name}" {ended}</summary>\n</task-notification>'
        )

    def read(self) -> str:
        """Return the output since the last call."""
        return self.log.read_new(last=self.status != "running")

    async def wait(self, seconds: float) -> None:
        """Wait for the end of the command, at most `seconds`."""
        self.waiting_count += 1
        try:
            await asyncio.wait_for(self._finished.wait(), seconds)
        except TimeoutError:
            pass
        finally:
            self.waiting_count -= 1

    async def stop(self) -> None:
        """Terminate the command and all its processes."""
        if self._shell is None or (self._finished.is_set() and self._shell.is_quiet):
            return
        if self.status == "running":
            self.status = "killed"
        code = await self._shell.end()
        if not self._finished.is_set():
            self._set_finished("killed", code)
        self.log.close()


class BackgroundTasks:
    """All background tasks and detached processes of a conversation."""

    def __init__(self) -> None:
        self.tasks: dict[str, BackgroundTask] = {}
        """Running and finished tasks, by ID."""
        self._detached_shells: set[ShellProcess] = set()

    def keep_detached(self, shell: ShellProcess) -> None:
        """Track a finished command whose remaining processes may still print."""
        if shell.is_quiet:
            return
        shell.discard_output()
        self._detached_shells.add(shell)
        shell.on_quiet = partial(self._detached_shells.discard, shell)

    async def start(
        self, command: str, description: str, context: "ToolContext", call: str, *, outside_sandbox: bool = False
    ) -> BackgroundShell:
        """Start a background command, sandboxed as its call was approved.

        Raises:
            ToolFailure: The command cannot be started.
        """
        try:
            path = os.path.join(make_results_folder(context), f"{new_id('b')}.txt")
            log = OutputLog(path)
        except OSError as error:
            raise ToolFailure(f"Cannot create the output file: {error_message(error)}") from error
        shell = BackgroundShell(call, command, description, log)
        execution = context.executions.get(call, Execution())
        await shell.launch(context, execution, outside_sandbox=outside_sandbox)
        self.tasks[shell.id] = shell
        return shell

    async def close(self) -> None:
        """Terminate all tasks at the end of the conversation.

        A daemon that detached itself and closed our pipes keeps running on purpose.
        """
        endings: list[Any] = [task.stop() for task in self.tasks.values()]
        endings += [shell.end() for shell in tuple(self._detached_shells)]
        await asyncio.gather(*endings)
