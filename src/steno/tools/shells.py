"""What a conversation has running in the background, and its end.

shell = await context.background.start("make watch", "Watch", context, call)
await shell.wait(10); shell.status, shell.exit_code, shell.read()
await context.background.close()                    # ends everything

Whatever else runs in the background can be added to `context.background.tasks` as a `Task`.
"""

import asyncio
import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from steno.errors import StenoError
from steno.tools.base import Execution, ToolFailure
from steno.tools.output import Log, folder_for_results, harmless, new_id
from steno.tools.processes import Shell, exit_code, start
from steno.tools.words import worded

if TYPE_CHECKING:
    from steno.tools.context import ToolContext

__all__ = ["BackgroundShell", "BackgroundTasks", "Task"]


class Task(Protocol):
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

    def __init__(self, call: str, command: str, description: str, log: Log) -> None:
        self.id = os.path.splitext(os.path.basename(log.path))[0]
        self.call = call
        self.command = command
        self.description = description
        self.log = log
        self.status = "running"
        self.exit_code: int | None = None
        self.watched = 0
        self._shell: Shell | None = None
        self._over = asyncio.Event()
        self._watch: asyncio.Task[None] | None = None

    async def launch(
        self, context: "ToolContext", execution: Execution, *, outside: bool = False
    ) -> None:
        """Start it, confined as its execution says."""

        def take(_stream: str, data: bytes) -> None:
            self.log.take(data)

        try:
            self._shell = await start(self.command, context, take, execution, outside=outside)
        except StenoError:
            self.log.close()
            raise
        self._watch = asyncio.create_task(self._until_over(self._shell, context.notify))

    async def _until_over(self, shell: Shell, notify: Callable[[str], None]) -> None:
        code = await shell.wait()
        shell.on_quiet = self.log.close
        if shell.quiet:
            self.log.close()
        if self.status == "running":
            self._is_over("completed" if code == 0 else "failed", code)
            # Whoever waits for it at this moment is told right there.
            if not self.watched:
                notify(self.words())

    def _is_over(self, status: str, code: int) -> None:
        self.status = status
        self.exit_code = exit_code(code)
        self._over.set()

    def words(self) -> str:
        """Return the notice that it has ended."""
        name = harmless(self.description or self.command)
        ended = f"{self.status} (exit code {self.exit_code})"
        return (
            f"<task-notification>\n<task-id>{self.id}</task-id>\n"
            f"<tool-use-id>{self.call}</tool-use-id>\n"
            f"<output-file>{self.log.path}</output-file>\n<status>{self.status}</status>\n"
            f'<summary>Background command "{name}" {ended}</summary>\n</task-notification>'
        )

    def read(self) -> str:
        """Return what it printed since the last time."""
        return self.log.unread(last=self.status != "running")

    async def wait(self, seconds: float) -> None:
        """Wait for its end, but no longer than that."""
        self.watched += 1
        try:
            await asyncio.wait_for(self._over.wait(), seconds)
        except TimeoutError:
            pass
        finally:
            self.watched -= 1

    async def stop(self) -> None:
        """End it, with everything it started."""
        if self._shell is None or (self._over.is_set() and self._shell.quiet):
            return
        if self.status == "running":
            self.status = "killed"
        code = await self._shell.end()
        if not self._over.is_set():
            self._is_over("killed", code)
        self.log.close()


class BackgroundTasks:
    """Everything that a conversation has running."""

    def __init__(self) -> None:
        self.tasks: dict[str, Task] = {}
        """What runs or ran in the background, by its id."""
        self._strays: set[Shell] = set()

    def keep(self, shell: Shell) -> None:
        """Remember a command that has ended, but left something that may still print."""
        if shell.quiet:
            return
        shell.leave()
        self._strays.add(shell)
        shell.on_quiet = partial(self._strays.discard, shell)

    async def start(
        self,
        command: str,
        description: str,
        context: "ToolContext",
        call: str,
        *,
        outside: bool = False,
    ) -> BackgroundShell:
        """Start a command that runs while the conversation goes on, as its call was allowed.

        Raises:
            ToolFailure: it cannot be started.
        """
        try:
            path = os.path.join(folder_for_results(context), f"{new_id('b')}.txt")
            log = Log(path)
        except OSError as error:
            raise ToolFailure(f"There is no place for the output: {worded(error)}") from error
        shell = BackgroundShell(call, command, description, log)
        execution = context.executions.get(call, Execution())
        await shell.launch(context, execution, outside=outside)
        self.tasks[shell.id] = shell
        return shell

    async def close(self) -> None:
        """End all of them, at the end of the conversation.

        A daemon that has detached itself, with none of our pipes open, keeps running on purpose.
        """
        endings: list[Any] = [task.stop() for task in self.tasks.values()]
        endings += [shell.end() for shell in tuple(self._strays)]
        await asyncio.gather(*endings)
