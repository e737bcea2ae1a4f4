"""Commands that run: each in a session of its own, with an end that nothing of it outlives.

shell = await start("make test", context, take)      # take(stream, bytes) while it runs
code = await shell.wait()                           # or: await shell.end()

A command's processes are found by their session and group, by whose children they are and, where
there is `/proc`, by a mark in their environment and by the pipes that they can print to: so also
those that left the group, the family and the environment behind.
"""

import asyncio
import os
import shlex
import signal
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from steno.errors import StenoError
from steno.tools.base import Execution, Process, Streams, ToolFailure
from steno.tools.output import new_id

if TYPE_CHECKING:
    from steno.tools.context import ToolContext

__all__ = ["GRACE", "MARK", "Shell", "Take", "exit_code", "kin", "start"]

Take: TypeAlias = Callable[[str, bytes], None]
"""Called with `stdout` or `stderr` and a piece of what a command printed."""

GRACE: Final = 1.0
"""How many seconds a command has between being asked to end and being killed."""
MARK: Final = "STENO_CALL"
_PIECE: Final = 1 << 16
# What is still read after a command's end, where a child goes on printing without end.
_LAST_PIECES: Final = 64
_CWD_DESCRIPTOR: Final = 200
_KILLS: Final = 100
_PAUSE: Final = 0.01
_LONGEST_PAUSE: Final = 0.2

# The shell tells its directory at every change, since a command may end in `exec`, in a trap of
# its own or by a signal; and once more at the end, for changes that went round the functions.
# All on one line, so that bash counts the command's own lines from 1.
_HERE: Final = (
    '__steno_here() {{ [[ $BASHPID != "$$" ]] || '
    "{{ builtin pwd -P && builtin printf '\\0'; }} >&{fd} 2>/dev/null || :; }}"
)
_MOVE: Final = '{} {{ {{ local - && set +x; }} 2>/dev/null; builtin {} "$@" && __steno_here; }}'
_MOVES: Final = "; ".join(_MOVE.format(f"{name}()", name) for name in ("cd", "pushd", "popd"))
_TRAP: Final = "trap '{ __steno_here; } 2>/dev/null' EXIT"


class _Pipe:
    """The end of a pipe that we read, as long as anything has the other end."""

    def __init__(self, take: Callable[[bytes], None], done: Callable[[], None]) -> None:
        self.take = take
        self._done = done
        self._loop = asyncio.get_running_loop()
        self._read, self.write = os.pipe()
        self.name = f"pipe:[{os.fstat(self._read).st_ino}]"
        """What the system calls it, for whoever has the other end; asked for by other threads."""
        os.set_blocking(self._read, False)
        self._loop.add_reader(self._read, self._ready)

    @property
    def open(self) -> bool:
        return self._read >= 0

    def spawned(self) -> None:
        """Let go of the end that the command has now."""
        os.close(self.write)

    def drain(self) -> None:
        """Read what is there at this moment."""
        for _ in range(_LAST_PIECES):
            if not self._ready():
                return

    def _ready(self) -> bool:
        if self._read < 0:
            return False
        try:
            data = os.read(self._read, _PIECE)
        except BlockingIOError:
            return False
        if data:
            self.take(data)
            return True
        self.close()
        return False

    def close(self) -> None:
        if self._read < 0:
            return
        self._loop.remove_reader(self._read)
        os.close(self._read)
        self._read = -1
        self._done()


class Shell:
    """One command that was started."""

    def __init__(self, take: Take, mark: str) -> None:
        self.moved_to: str | None = None
        """The directory it was in when it ended, if it told."""
        self.mark = mark
        self.on_quiet: Callable[[], None] = lambda: None
        """Called when nothing can print any more."""
        self._cwd = bytearray()
        self._pipes = (
            _Pipe(partial(take, "stdout"), self._closed),
            _Pipe(partial(take, "stderr"), self._closed),
        )
        self._where = _Pipe(self._told, lambda: None)
        self._process: Process | None = None
        self._exit: asyncio.Task[int] | None = None

    async def launch(
        self, command: str, context: "ToolContext", execution: Execution, *, outside: bool = False
    ) -> None:
        """Start it, confined as its execution says; raises `ToolFailure` if that fails.

        `outside` asks for a start outside the sandbox that the settings ask for.
        """
        import fcntl

        descriptor = fcntl.fcntl(self._where.write, fcntl.F_DUPFD_CLOEXEC, _CWD_DESCRIPTOR)
        out, err = self._pipes
        marks = ",".join(filter(None, (context.env.get(MARK), self.mark)))
        try:
            env = {**context.env, MARK: marks}
            if context.runner is not None:
                env = await context.runner.environment(command, context.cwd, execution, env)
                env[MARK] = marks
            if execution.isolation in {"read", "edit"}:
                streams = Streams(out.write, err.write, (descriptor,))
                process = await _confined(command, streams, context, execution, env)
            else:
                process = await asyncio.create_subprocess_exec(
                    *_argv(command, descriptor, context, outside=outside),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=out.write,
                    stderr=err.write,
                    cwd=context.cwd,
                    env=env,
                    start_new_session=True,
                    pass_fds=(descriptor,),
                )
        except BaseException as error:
            self.let_go()
            if not isinstance(error, OSError | ValueError | StenoError):
                raise
            said = getattr(error, "strerror", None) or str(error)
            raise ToolFailure(f"The command could not be started: {said.lower()}") from error
        finally:
            os.close(descriptor)
            for pipe in (*self._pipes, self._where):
                pipe.spawned()
        self._process = process
        self._exit = asyncio.create_task(process.wait())

    @property
    def quiet(self) -> bool:
        """Whether nothing can print any more."""
        return not any(pipe.open for pipe in self._pipes)

    async def wait(self) -> int:
        """Wait for its end and read the rest; return the exit code, negative for a signal."""
        if self._exit is None:
            raise RuntimeError("the command was never started")
        code = await asyncio.shield(self._exit)
        for pipe in self._pipes:
            pipe.drain()
        self._where.drain()
        self._where.close()
        told = bytes(self._cwd).split(b"\0")
        if len(told) > 1:
            self.moved_to = os.fsdecode(told[-2].removesuffix(b"\n"))
        return code

    async def end(self, grace: float = GRACE) -> int:
        """End it with everything it started; return the exit code.

        A cancel while it does so only takes the time from those that do not want to end.
        """
        ending = asyncio.create_task(self._end(grace))
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            await asyncio.to_thread(self._signal, signal.SIGKILL)
            raise
        code = await self.wait()
        self.let_go()
        return code

    def leave(self) -> None:
        """Go on reading, for nobody, what it left running."""
        for pipe in self._pipes:
            pipe.take = _nothing

    def let_go(self) -> None:
        """Stop reading."""
        for pipe in (*self._pipes, self._where):
            pipe.close()

    def _told(self, data: bytes) -> None:
        self._cwd += data
        # Only the last of what was told counts.
        if len(self._cwd) > _PIECE:
            del self._cwd[:-_PIECE]

    def _closed(self) -> None:
        if self.quiet:
            self.on_quiet()

    async def _end(self, grace: float) -> None:
        """Ask all of them to end, then kill what is left until nothing is."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + grace
        # What was stopped cannot end before it goes on.
        lives = await asyncio.to_thread(self._signal, signal.SIGTERM, signal.SIGCONT)
        pause, kills = _PAUSE, 0
        while lives and kills < _KILLS:
            await self._pause(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
            late = clock() >= deadline
            kills += late
            lives = await asyncio.to_thread(self._signal, signal.SIGKILL if late else 0)

    async def _pause(self, seconds: float) -> None:
        if self._exit is not None and not self._exit.done():
            await asyncio.wait({self._exit}, timeout=seconds)
        else:
            await asyncio.sleep(seconds)

    def _signal(self, *numbers: int) -> bool:
        """Send signals to all its processes; say whether there were any."""
        leader = self._leader()
        pids = kin(self.mark, leader, {pipe.name for pipe in self._pipes if pipe.open})
        for number in numbers:
            if leader is not None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(leader, number)
            for pid in pids:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
        return bool(pids) or leader is not None

    def _leader(self) -> int | None:
        """Return the id of the shell itself, as long as no other process can have it."""
        if self._process is None or self._process.returncode is not None:
            return None
        return self._process.pid


def _nothing(_data: bytes) -> None:
    pass


def exit_code(code: int) -> int:
    """Return an exit code as a shell says it: 128 and the signal, where one ended it."""
    return code if code >= 0 else 128 - code


async def _confined(
    command: str,
    streams: Streams,
    context: "ToolContext",
    execution: Execution,
    env: dict[str, str],
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


def _argv(command: str, descriptor: int, context: "ToolContext", *, outside: bool) -> list[str]:
    argv = _bash_argv(command, descriptor, context)
    if context.sandbox is None:
        return argv
    return list(context.sandbox(argv, command=command, cwd=context.cwd, outside=outside))


def _bash_argv(command: str, descriptor: int, context: "ToolContext") -> list[str]:
    bash = "/bin/bash"
    if not os.path.exists(bash):
        import shutil

        bash = shutil.which("bash", path=context.env.get("PATH"))
    if bash is None:
        raise ToolFailure("There is no bash on this machine, so no command can be run.")
    parts = (_HERE.format(fd=descriptor), _MOVES, _TRAP, f"eval {shlex.quote(command)}")
    return [bash, "-c", "; ".join(parts), bash]


async def start(
    command: str, context: "ToolContext", take: Take, execution: Execution, *, outside: bool = False
) -> Shell:
    """Start a command in a conversation's directory.

    Raises:
        ToolFailure: it cannot be started.
    """
    if not await asyncio.to_thread(os.path.isdir, context.cwd):
        gone, context.cwd = context.cwd, context.project
        raise ToolFailure(
            f"The working directory {gone} is no longer there, so nothing was run. "
            f"The next command starts in {context.project}."
        )
    shell = Shell(take, new_id("c"))
    await shell.launch(command, context, execution, outside=outside)
    return shell


# Finding processes


def kin(mark: str, leader: int | None, pipes: Collection[str] = ()) -> set[int]:
    """Return the processes that bear a mark, are of a leader's session, or descend from such.

    Those that have one of the `pipes` open belong to them as well.

    Nothing where there is no `/proc`. What has ended, but was not yet fetched, does not count.
    """
    found: set[int] = set()
    children: dict[int, list[int]] = {}
    ended: set[int] = set()
    wanted = mark.encode()
    try:
        names = os.listdir("/proc")
    except OSError:
        return found
    for pid in map(int, filter(str.isdigit, names)):
        try:
            state, *numbers = _file(f"/proc/{pid}/stat").rpartition(b")")[2].split()[:4]
            parent, group, session = map(int, numbers)
        except ValueError:
            # It has ended since.
            continue
        children.setdefault(parent, []).append(pid)
        if state in b"ZX":
            ended.add(pid)
        elif leader in {group, session} or wanted in _marks(pid) or _holds(pid, pipes):
            found.add(pid)
    waiting = list(found)
    while waiting:
        below = [pid for pid in children.get(waiting.pop(), ()) if pid not in found]
        found.update(below)
        waiting.extend(below)
    return found - ended - {os.getpid()}


def _marks(pid: int) -> list[bytes]:
    for entry in _file(f"/proc/{pid}/environ").split(b"\0"):
        name, _, value = entry.partition(b"=")
        if name == MARK.encode():
            return value.split(b",")
    return []


def _holds(pid: int, pipes: Collection[str]) -> bool:
    """Whether a process has one of the pipes open; we ourselves read all of them."""
    if not pipes or pid == os.getpid():
        return False
    with suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                if os.readlink(f"/proc/{pid}/fd/{name}") in pipes:
                    return True
    return False


def _file(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
