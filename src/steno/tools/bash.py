"""Bash: runs commands, and looks after those that run in the background."""

import asyncio
import os
from typing import Any, Final

import msgspec

from steno.guard.paths import Place, is_inside
from steno.tools.base import Execution, ToolFailure, ToolResult
from steno.tools.catalogue import own_spec
from steno.tools.context import ToolContext
from steno.tools.inputs import taken
from steno.tools.missing_access import missing_access, was_refused
from steno.tools.output import LIMIT, Capture, harmless, persisted, save
from steno.tools.processes import Shell, exit_code, start
from steno.tools.shells import Task

__all__ = ["Bash", "TaskOutput", "TaskStop"]

USUAL: Final = 120_000
MOST: Final = 600_000
_SECOND: Final = 1000
_USUAL_WAIT: Final = 30_000
_NOTHING: Final = "(no output)"
_CONFINED: Final = (
    "[This command ran without approval, so it was confined: no writes, no network, no files outside "
    "the working folders.{needs}]"
)


class _Command(msgspec.Struct, frozen=True):
    command: str
    timeout: float = USUAL
    description: str = ""
    run_in_background: bool = False
    outside: bool = msgspec.field(default=False, name="dangerouslyDisableSandbox")


class _Run:
    """A command in the foreground, and what it has printed."""

    def __init__(self, context: ToolContext, call: str) -> None:
        self.out, self.err = Capture(), Capture()
        self._context = context
        self._call = call

    def take(self, stream: str, data: bytes) -> None:
        """Keep a piece, and show it to whoever watches."""
        text = (self.out if stream == "stdout" else self.err).take(data)
        if text:
            self._context.progress(self._call, text)

    def finish(self) -> None:
        """Bring out what was held back."""
        for capture in (self.out, self.err):
            capture.take(b"", last=True)

    def close(self) -> None:
        """Let go of what was printed."""
        self.out.close()
        self.err.close()

    async def outcome(self, first: str, *, interrupted: bool) -> ToolResult:
        """Return what the call came to; `first` is said before the output, of a failure."""
        out, err = (capture.text.rstrip("\n") for capture in (self.out, self.err))
        joined = "\n".join(filter(None, (out, err)))
        detail: dict[str, Any] = {
            "stdout": out[:LIMIT],
            "stderr": err[: max(LIMIT - len(out), 0)],
            "interrupted": interrupted,
            "isImage": False,
            "noOutputExpected": False,
        }
        if self.out.length + self.err.length > LIMIT:
            path, size = await asyncio.to_thread(self._save)
            joined = persisted(joined, path, size)
            detail |= {"persistedOutputPath": path, "persistedOutputSize": size}
        if not first:
            return ToolResult(joined or _NOTHING, detail)
        said = "\n".join(filter(None, (first, joined)))
        return ToolResult(said, detail if interrupted else f"Error: {said}", is_error=True)

    def _save(self) -> tuple[str, int]:
        pieces = (piece for each in (self.out, self.err) for piece in each.pieces())
        return save(self._context, self._call, pieces)


class Bash:
    """Runs a command with bash."""

    spec = own_spec(
        "Bash",
        description=(
            "Runs a command with bash and returns what it prints.\n\n"
            "- The working directory stays from call to call; variables, functions and options do "
            "not. Use absolute paths rather than `cd` where you can.\n"
            "- There is no input: a command that asks for something gets the end of the file.\n"
            "- Quote paths that have spaces. Join commands with `&&` where one needs the other; "
            "make several calls where they are independent.\n"
            "- To read, search or change files, use the tools made for it rather than cat, grep, "
            "find or sed.\n"
            f"- A command is ended after {USUAL} ms, or after `timeout`, at most {MOST} ms.\n"
            f"- Output of more than {LIMIT} characters is saved to a file, and you get its "
            "beginning.\n"
            "- For servers, watchers and long work set `run_in_background`: you are told when it "
            "ends, so do not wait with `sleep`."
        ),
        schema={
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "The command to run"},
                "timeout": {
                    "type": "number",
                    "description": f"Milliseconds until it is ended, at most {MOST}",
                },
                "description": {
                    "type": "string",
                    "description": "What the command does, in a few plain words",
                },
                "run_in_background": {
                    "type": "boolean",
                    "description": "Go on at once while the command runs",
                },
                "dangerouslyDisableSandbox": {
                    "type": "boolean",
                    "description": "Run it outside the sandbox, if there is one: only when it "
                    "failed because of the sandbox, and the user is asked first",
                },
            },
            "required": ["command"],
            "additionalProperties": False,
        },
    )

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        """Run it."""
        asked = taken(tool_input, _Command)
        if not asked.command.strip():
            raise ToolFailure("The command is empty.")
        if not asked.timeout > 0:
            raise ToolFailure("The timeout must be more than 0 milliseconds.")
        if asked.run_in_background:
            return await _in_background(asked, context, call)
        run = _Run(context, call)
        try:
            return await self._foreground(run, asked, context, call)
        finally:
            run.close()

    async def _foreground(
        self, run: _Run, asked: _Command, context: ToolContext, call: str
    ) -> ToolResult:
        execution = context.executions.get(call, Execution())
        shell = await start(asked.command, context, run.take, execution, outside=asked.outside)
        seconds = min(asked.timeout, MOST) / _SECOND
        try:
            code = await asyncio.wait_for(shell.wait(), seconds)
        except TimeoutError:
            await shell.end()
            run.finish()
            return await run.outcome(f"Command timed out after {seconds:g}s", interrupted=True)
        except asyncio.CancelledError:
            await shell.end()
            raise
        context.background.keep(shell)
        strayed = await asyncio.to_thread(_move, context, shell)
        run.finish()
        if strayed:
            run.take("stderr", f"Shell cwd was reset to {harmless(context.cwd)}\n".encode())
            run.finish()
        first = f"Exit code {exit_code(code)}" if code else ""
        outcome = await run.outcome(first, interrupted=False)
        if code and execution.isolation in {"read", "edit"} and was_refused(run.err.text):
            return _explained(outcome, missing_access(run.err.text))
        return outcome


def _explained(outcome: ToolResult, needs: str) -> ToolResult:
    """Tell the model that a failed command was confined, and what it seems to lack."""
    note = _CONFINED.format(needs=f" It seems to need {needs}." if needs else "")
    content = f"{outcome.content}\n{note}"
    return ToolResult(content, f"Error: {content}", is_error=True, needs=needs)


def _move(context: ToolContext, shell: Shell) -> bool:
    """Go where the command went, but not out of the working folders; say whether it left them.

    A link that leads to the same place stays as it was said.
    """
    there = shell.moved_to
    if not there or not os.path.isdir(there) or os.path.realpath(context.cwd) == there:
        return False
    if context.folders and not is_inside(Place.of(there), context.folders):
        return True
    context.cwd = there
    return False


async def _in_background(asked: _Command, context: ToolContext, call: str) -> ToolResult:
    shell = await context.background.start(
        asked.command, asked.description, context, call, outside=asked.outside
    )
    detail = {
        "stdout": "",
        "stderr": "",
        "interrupted": False,
        "isImage": False,
        "noOutputExpected": False,
        "backgroundTaskId": shell.id,
    }
    said = (
        f"Command running in background with ID: {shell.id}. "
        f"Output is being written to: {shell.log.path}. You will be told when it ends; "
        "read that file, or use TaskOutput, to see what it has printed so far."
    )
    return ToolResult(said, detail)


# Looking after them


class _Output(msgspec.Struct, frozen=True):
    task_id: str = ""
    bash_id: str = ""
    shell_id: str = ""
    block: bool = True
    timeout: float = _USUAL_WAIT


def _find(context: ToolContext, *names: str) -> Task:
    name = next(filter(None, names), "")
    if not name:
        raise ToolFailure("The input does not fit this tool: it needs a `task_id`.")
    task = context.background.tasks.get(name)
    if task is None:
        raise ToolFailure(f"No task found with ID: {harmless(name)}")
    return task


class TaskOutput:
    """Reads what a background task has printed since the last time."""

    spec = own_spec(
        "TaskOutput",
        description=(
            "Returns what a background task has printed since you last asked, its status and, "
            "when it has ended, its exit code. Waits for its end unless `block` is false."
        ),
        schema={
            "type": "object",
            "properties": {
                "task_id": {"type": "string", "description": "The id of the task"},
                "block": {"type": "boolean", "description": "Wait for its end; true if not given"},
                "timeout": {
                    "type": "number",
                    "description": f"Milliseconds to wait at most: {_USUAL_WAIT} if not given, "
                    f"never more than {MOST}",
                },
            },
            "required": ["task_id"],
        },
    )

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        """Read it."""
        del call
        asked = taken(tool_input, _Output)
        task = _find(context, asked.task_id, asked.bash_id)
        # The older tool, with its own name for the id, never waited.
        waits = asked.block and not asked.bash_id
        if waits and task.status == "running":
            await task.wait(max(min(asked.timeout, MOST), 0) / _SECOND)
        running = task.status == "running"
        retrieval = "success" if not running else "timeout" if waits else "not_ready"
        output = task.read()
        told = {
            "task_id": task.id,
            "task_type": task.kind,
            "status": task.status,
            "description": task.description,
            "output": output,
            "exitCode": task.exit_code,
        }
        parts = [
            f"<retrieval_status>{retrieval}</retrieval_status>",
            f"<task_id>{task.id}</task_id>",
            f"<task_type>{task.kind}</task_type>",
            f"<status>{task.status}</status>",
        ]
        if task.exit_code is not None:
            parts.append(f"<exit_code>{task.exit_code}</exit_code>")
        if output.strip():
            parts.append(f"<output>\n{output.rstrip()}\n</output>")
        return ToolResult("\n\n".join(parts), {"retrieval_status": retrieval, "task": told})


class TaskStop:
    """Ends a background task."""

    spec = own_spec(
        "TaskStop",
        description="Ends a background task, with every process it has started.",
        schema={
            "type": "object",
            "properties": {
                "task_id": {"type": "string", "description": "The id of the task"},
                "shell_id": {"type": "string", "description": "An older name for the same"},
            },
        },
    )

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        """End it."""
        del call
        asked = taken(tool_input, _Output)
        task = _find(context, asked.task_id, asked.shell_id, asked.bash_id)
        if task.status != "running":
            raise ToolFailure(f"Task {task.id} is not running (status: {task.status})")
        await task.stop()
        name = harmless(task.description or task.command)
        detail = {
            "message": f"Successfully stopped task: {task.id} ({name})",
            "task_id": task.id,
            "task_type": task.kind,
            "command": task.command,
        }
        return ToolResult(msgspec.json.encode(detail).decode(), detail)
