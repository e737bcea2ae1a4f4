"""Shell commands, in the foreground and background, each in its own session and ended completely.

shell = await start_shell("make test", context, on_output, execution)   # on_output(stream, data) while it runs
exit_code = await shell.wait()                         # or: await shell.end()

shell = await context.background.start("make watch", "Watch", context, call)
await shell.wait(10); shell.status, shell.exit_code, shell.read()
await context.background.close()                       # ends everything

The processes of a command are found by session and group, by parent and, where there is `/proc`, by a
marker in the environment and by open pipes: so also those that left group, parent and environment.
Other background work can be added to `context.background.tasks` as a `BackgroundTask`.
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
"""Called with `stdout` or `stderr` and a piece of what a command printed."""

GRACE_SECONDS: Final = 1.0
"""How many seconds a command has between being asked to end and being killed."""
CALL_VARIABLE: Final = "STENO_CALL"
_READ_SIZE: Final = 1 << 16
# What is still read after a command's end, where a child goes on printing without end.
_MAX_FINAL_READS: Final = 64
_CWD_DESCRIPTOR: Final = 200
_MAX_KILLS: Final = 100
_FIRST_PAUSE: Final = 0.01
_MAX_PAUSE: Final = 0.2

# The shell tells its directory at every change, since a command may end in `exec`, in a trap of
# its own or by a signal; and once more at the end, for changes that went round the functions.
# All on one line, so that bash counts the command's own lines from 1.
_REPORT_CWD_FUNCTION: Final = (
    '__steno_here() {{ [[ $BASHPID != "$$" ]] || '
    "{{ builtin pwd -P && builtin printf '\\0'; }} >&{fd} 2>/dev/null || :; }}"
)
_CD_FUNCTION: Final = '{} {{ {{ local - && set +x; }} 2>/dev/null; builtin {} "$@" && __steno_here; }}'
_CD_FUNCTIONS: Final = "; ".join(_CD_FUNCTION.format(f"{name}()", name) for name in ("cd", "pushd", "popd"))
_EXIT_TRAP: Final = "trap '{ __steno_here; } 2>/dev/null' EXIT"


class _OutputPipe:
    """The end of a pipe that we read, as long as anything has the other end."""

    def __init__(self, on_data: Callable[[bytes], None], on_close: Callable[[], None]) -> None:
        self.on_data = on_data
        self._on_close = on_close
        self._loop = asyncio.get_running_loop()
        self._read_descriptor, self.write_descriptor = os.pipe()
        self.proc_name = f"pipe:[{os.fstat(self._read_descriptor).st_ino}]"
        """What the system calls it, for whoever has the other end; asked for by other threads."""
        os.set_blocking(self._read_descriptor, False)
        self._loop.add_reader(self._read_descriptor, self._read_available)

    @property
    def is_open(self) -> bool:
        return self._read_descriptor >= 0

    def close_write_end(self) -> None:
        """Let go of the end that the command has now."""
        os.close(self.write_descriptor)

    def drain(self) -> None:
        """Read what is there at this moment."""
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
    """One command that was started."""

    def __init__(self, on_output: OnOutput, call_mark: str) -> None:
        self.final_directory: str | None = None
        """The directory it was in when it ended, if it told."""
        self.call_mark = call_mark
        self.on_quiet: Callable[[], None] = lambda: None
        """Called when nothing can print any more."""
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
        """Start it, confined as its execution says; raises `ToolFailure` if that fails.

        `outside_sandbox` asks for a start outside the sandbox that the settings ask for.
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
            raise ToolFailure(f"The command could not be started: {message.lower()}") from error
        finally:
            os.close(descriptor)
            for pipe in (*self._pipes, self._cwd_pipe):
                pipe.close_write_end()
        self._process = process
        self._exit_task = asyncio.create_task(process.wait())

    @property
    def is_quiet(self) -> bool:
        """Whether nothing can print any more."""
        return not any(pipe.is_open for pipe in self._pipes)

    async def wait(self) -> int:
        """Wait for its end and read the rest; return the exit code, negative for a signal."""
        if self._exit_task is None:
            raise RuntimeError("the command was never started")
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
        """End it with everything it started; return the exit code.

        A cancel while it does so only takes the time from those that do not want to end.
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
        """Go on reading, for nobody, what it left running."""
        for pipe in self._pipes:
            pipe.on_data = _discard

    def close_pipes(self) -> None:
        """Stop reading."""
        for pipe in (*self._pipes, self._cwd_pipe):
            pipe.close()

    def _add_cwd_report(self, data: bytes) -> None:
        self._cwd_reports += data
        # Only the last of what was told counts.
        if len(self._cwd_reports) > _READ_SIZE:
            del self._cwd_reports[:-_READ_SIZE]

    def _on_pipe_closed(self) -> None:
        if self.is_quiet:
            self.on_quiet()

    async def _terminate_all(self, grace: float) -> None:
        """Ask all of them to end, then kill what is left until nothing is."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + grace
        # What was stopped cannot end before it goes on.
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
        """Send signals to all its processes; say whether there were any."""
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
        """Return the id of the shell itself, as long as no other process can have it."""
        if self._process is None or self._process.returncode is not None:
            return None
        return self._process.pid


def _discard(_data: bytes) -> None:
    pass


def shell_exit_code(code: int) -> int:
    """Return an exit code as a shell says it: 128 and the signal, where one ended it."""
    return code if code >= 0 else 128 - code


async def _start_confined(
    command: str, streams: Streams, context: "ToolContext", execution: Execution, env: dict[str, str]
) -> Process:
    if context.runner is None:
        raise ToolFailure("The command was not run: nothing here can confine it.")
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
        raise ToolFailure("There is no bash on this machine, so no command can be run.")
    parts = (_REPORT_CWD_FUNCTION.format(fd=descriptor), _CD_FUNCTIONS, _EXIT_TRAP, f"eval {shlex.quote(command)}")
    return [bash, "-c", "; ".join(parts), bash]


async def start_shell(
    command: str, context: "ToolContext", on_output: OnOutput, execution: Execution, *, outside_sandbox: bool = False
) -> ShellProcess:
    """Start a command in a conversation's directory.

    Raises:
        ToolFailure: it cannot be started.
    """
    if not await asyncio.to_thread(os.path.isdir, context.cwd):
        missing, context.cwd = context.cwd, context.project
        raise ToolFailure(
            f"The working directory {missing} is no longer there, so nothing was run. "
            f"The next command starts in {context.project}."
        )
    shell = ShellProcess(on_output, new_id("c"))
    await shell.launch(command, context, execution, outside_sandbox=outside_sandbox)
    return shell


# Finding processes


def find_processes(call_mark: str, leader: int | None, pipes: Collection[str] = ()) -> set[int]:
    """Return the processes that bear a mark, are of a leader's session, or descend from such.

    Those that have one of the `pipes` open belong to them as well.

    Nothing where there is no `/proc`. What has ended, but was not yet fetched, does not count.
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
            # It has ended since.
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
    """Whether a process has one of the pipes open; we ourselves read all of them."""
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
    """Something that runs in the background: a command, or whatever others add."""

    id: str
    kind: str
    """What it is called in the session: `local_bash`, `local_agent`."""
    description: str
    command: str
    status: str
    """`running`, `completed`, `failed` or `killed`."""
    exit_code: int | None

    def read(self) -> str:
        """Return what it said since the last time."""
        ...

    async def wait(self, seconds: float) -> None:
        """Wait for its end, but no longer than that."""
        ...

    async def stop(self) -> None:
        """End it."""
        ...


class BackgroundShell:
    """A command that runs while the conversation goes on."""

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
        """Start it, confined as its execution says."""

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
            # Whoever waits for it at this moment is told right there.
            if not self.waiting_count:
                notify(self.notification())

    def _set_finished(self, status: str, status_code: int) -> None:
        self.status = status
        self.exit_code = shell_exit_code(status_code)
        self._finished.set()

    def notification(self) -> str:
        """Return the notice that it has ended."""
        name = escape_controls(self.description or self.command)
        ended = f"{self.status} (exit code {self.exit_code})"
        return (
            f"<task-notification>\n<task-id>{self.id}</task-id>\n"
            f"<tool-use-id>{self.call}</tool-use-id>\n"
            f"<output-file>{self.log.path}</output-file>\n<status>{self.status}</status>\n"
            f'<summary>Background command "{name}" {ended}</summary>\n</task-notification>'
        )

    def read(self) -> str:
        """Return what it printed since the last time."""
        return self.log.read_new(last=self.status != "running")

    async def wait(self, seconds: float) -> None:
        """Wait for its end, but no longer than that."""
        self.waiting_count += 1
        try:
            await asyncio.wait_for(self._finished.wait(), seconds)
        except TimeoutError:
            pass
        finally:
            self.waiting_count -= 1

    async def stop(self) -> None:
        """End it, with everything it started."""
        if self._shell is None or (self._finished.is_set() and self._shell.is_quiet):
            return
        if self.status == "running":
            self.status = "killed"
        code = await self._shell.end()
        if not self._finished.is_set():
            self._set_finished("killed", code)
        self.log.close()


class BackgroundTasks:
    """Everything that a conversation has running."""

    def __init__(self) -> None:
        self.tasks: dict[str, BackgroundTask] = {}
        """What runs or ran in the background, by its id."""
        self._detached_shells: set[ShellProcess] = set()

    def keep_detached(self, shell: ShellProcess) -> None:
        """Remember a command that has ended, but left something that may still print."""
        if shell.is_quiet:
            return
        shell.discard_output()
        self._detached_shells.add(shell)
        shell.on_quiet = partial(self._detached_shells.discard, shell)

    async def start(
        self, command: str, description: str, context: "ToolContext", call: str, *, outside_sandbox: bool = False
    ) -> BackgroundShell:
        """Start a command that runs while the conversation goes on, as its call was allowed.

        Raises:
            ToolFailure: it cannot be started.
        """
        try:
            path = os.path.join(make_results_folder(context), f"{new_id('b')}.txt")
            log = OutputLog(path)
        except OSError as error:
            raise ToolFailure(f"There is no place for the output: {error_message(error)}") from error
        shell = BackgroundShell(call, command, description, log)
        execution = context.executions.get(call, Execution())
        await shell.launch(context, execution, outside_sandbox=outside_sandbox)
        self.tasks[shell.id] = shell
        return shell

    async def close(self) -> None:
        """End all of them, at the end of the conversation.

        A daemon that has detached itself, with none of our pipes open, keeps running on purpose.
        """
        endings: list[Any] = [task.stop() for task in self.tasks.values()]
        endings += [shell.end() for shell in tuple(self._detached_shells)]
        await asyncio.gather(*endings)
