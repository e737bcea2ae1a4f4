"""Bash, TaskOutput and TaskStop: run shell commands and manage background tasks."""

import asyncio
import os
import re
from typing import Any, Final

import msgspec

from steno.permissions.paths import ResolvedPath, is_inside
from steno.tools.context import ToolContext
from steno.tools.output import MAX_OUTPUT_LENGTH, OutputCapture, escape_controls, save_output, saved_output_message
from steno.tools.processes import BackgroundTask, ShellProcess, shell_exit_code, start_shell
from steno.tools.protocol import Execution, ToolFailure, ToolResult, builtin_spec, parse_input

_SEARCHED_LENGTH: Final = 16_384
_REFUSAL_PATTERN: Final = r"(?:permission denied|operation not permitted|read-only file system)"
_WRITE_REFUSED: Final = re.compile(
    r"read-only file system"
    r"|(?:cannot|can't|can not|could not|couldn't|unable to|failed to)[^\n]{0,40}?"
    r"(?:creat|writ|touch|remov|delet|mkdir|make dir|renam|mov|link|lock|sav|updat|append|unlink|chmod"
    r"|copy)[^\n]{0,300}?" + _REFUSAL_PATTERN + r"|for writing[^\n]{0,300}?" + _REFUSAL_PATTERN,
    re.IGNORECASE,
)
_ANY_REFUSED: Final = re.compile(_REFUSAL_PATTERN, re.IGNORECASE)
_NETWORK_REFUSED: Final = re.compile(
    r"could ?n[o']t resolve|could not resolve host|temporary failure in name resolution"
    r"|name or service not known|network is unreachable|no address associated with hostname"
    r"|nodename nor servname|enotfound|eai_again|enetunreach|unknown host"
    r"|address family not supported|socket[^\n]{0,60}?" + _REFUSAL_PATTERN,
    re.IGNORECASE,
)


def find_missing_access(output: str) -> str:
    """Return the access that a sandboxed command seems to lack, or an empty string.

    >>> find_missing_access("touch: cannot touch 'x': Read-only file system")
    'to write files'
    >>> find_missing_access("curl: (6) Could not resolve host: example.org")
    'network access'
    >>> find_missing_access("cat: .env: Permission denied")
    ''
    """
    tail = output[-_SEARCHED_LENGTH:]
    if _NETWORK_REFUSED.search(tail):
        return "network access"
    return "to write files" if _WRITE_REFUSED.search(tail) else ""


def is_access_refused(output: str) -> bool:
    """Return whether the output reports that access was refused.

    >>> is_access_refused("cat: .env: Permission denied")
    True
    >>> is_access_refused("Files a and b differ")
    False
    """
    tail = output[-_SEARCHED_LENGTH:]
    return _ANY_REFUSED.search(tail) is not None or bool(find_missing_access(tail))


DEFAULT_TIMEOUT_MS: Final = 120_000
MAX_TIMEOUT_MS: Final = 600_000
_MS_PER_SECOND: Final = 1000
_DEFAULT_WAIT_MS: Final = 30_000
_NO_OUTPUT: Final = "(no output)"
_CONFINED_NOTE: Final = (
    "[This command ran without approval and was therefore sandboxed: no writes, no network access, no files "
    "outside the working directories.{needs}]"
)


class _BashInput(msgspec.Struct, frozen=True):
    command: str
    timeout: float = DEFAULT_TIMEOUT_MS
    description: str = ""
    run_in_background: bool = False
    outside: bool = msgspec.field(default=False, name="dangerouslyDisableSandbox")


class _ForegroundRun:
    """A foreground command and its output."""

    def __init__(self, context: ToolContext, call: str) -> None:
        self.stdout, self.stderr = OutputCapture(), OutputCapture()
        self._context = context
        self._call = call

    def add_output(self, stream: str, data: bytes) -> None:
        """Store a piece of output and report it as progress."""
        text = (self.stdout if stream == "stdout" else self.stderr).add(data)
        if text:
            self._context.on_progress(self._call, text)

    def finish(self) -> None:
        """Flush output that the decoders hold back."""
        for capture in (self.stdout, self.stderr):
            capture.add(b"", last=True)

    def close(self) -> None:
        """Release the captured output."""
        self.stdout.close()
        self.stderr.close()

    async def build_result(self, error_line: str, *, interrupted: bool) -> ToolResult:
        """Return the tool result; `error_line` precedes the output of a failed command."""
        out, err = (capture.text.rstrip("\n") for capture in (self.stdout, self.stderr))
        combined = "\n".join(filter(None, (out, err)))
        detail: dict[str, Any] = {
            "stdout": out[:MAX_OUTPUT_LENGTH],
            "stderr": err[: max(MAX_OUTPUT_LENGTH - len(out), 0)],
            "interrupted": interrupted,
            "isImage": False,
            "noOutputExpected": False,
        }
        if self.stdout.length + self.stderr.length > MAX_OUTPUT_LENGTH:
            path, size = await asyncio.to_thread(self._save_output)
            combined = saved_output_message(combined, path, size)
            detail |= {"persistedOutputPath": path, "persistedOutputSize": size}
        if not error_line:
            return ToolResult(combined or _NO_OUTPUT, detail)
        content = "\n".join(filter(None, (error_line, combined)))
        return ToolResult(content, detail if interrupted else f"Error: {content}", is_error=True)

    def _save_output(self) -> tuple[str, int]:
        pieces = (piece for capture in (self.stdout, self.stderr) for piece in capture.raw_chunks())
        return save_output(self._context, self._call, pieces)


class Bash:
    """Runs a command in bash."""

    spec = builtin_spec(
        "Bash",
        description=(
            "Runs a bash command and returns its output.\n\n"
            "- The working directory persists between calls; variables, functions and shell options do "
            "not. Prefer absolute paths to `cd`.\n"
            "- Standard input is empty: do not run commands that prompt for input.\n"
            "- Quote paths that contain spaces. Chain dependent commands with `&&`; "
            "use separate calls for independent commands.\n"
            "- To read, search or edit files, use the dedicated tools instead of cat, grep, "
            "find or sed.\n"
            f"- Commands time out after {DEFAULT_TIMEOUT_MS} ms; set `timeout` for up to {MAX_TIMEOUT_MS} ms.\n"
            f"- Output longer than {MAX_OUTPUT_LENGTH} characters is saved to a file; the result contains its "
            "beginning.\n"
            "- Use `run_in_background` for servers, watchers and long tasks. You are notified when the command "
            "ends, so do not poll with `sleep`."
        ),
        schema={
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "The command to run"},
                "timeout": {"type": "number", "description": f"Timeout in milliseconds, at most {MAX_TIMEOUT_MS}"},
                "description": {"type": "string", "description": "Short description of what the command does"},
                "run_in_background": {"type": "boolean", "description": "Run the command in the background"},
                "dangerouslyDisableSandbox": {
                    "type": "boolean",
                    "description": "Run outside the sandbox. Use only if the command failed because of the "
                    "sandbox; the user must approve the call",
                },
            },
            "required": ["command"],
            "additionalProperties": False,
        },
    )

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        """Run the command in the foreground or background."""
        bash_input = parse_input(tool_input, _BashInput)
        if not bash_input.command.strip():
            raise ToolFailure("The command is empty.")
        if not bash_input.timeout > 0:
            raise ToolFailure("The timeout must be greater than 0 milliseconds.")
        if bash_input.run_in_background:
            return await _start_background(bash_input, context, call)
        run = _ForegroundRun(context, call)
        try:
            return await self._run_foreground(run, bash_input, context, call)
        finally:
            run.close()

    async def _run_foreground(
        self, run: _ForegroundRun, bash_input: _BashInput, context: ToolContext, call: str
    ) -> ToolResult:
        execution = context.executions.get(call, Execution())
        shell = await start_shell(
            bash_input.command, context, run.add_output, execution, outside_sandbox=bash_input.outside
        )
        seconds = min(bash_input.timeout, MAX_TIMEOUT_MS) / _MS_PER_SECOND
        try:
            status = await asyncio.wait_for(shell.wait(), seconds)
        except TimeoutError:
            await shell.end()
            run.finish()
            return await run.build_result(f"Command timed out after {seconds:g}s", interrupted=True)
        except asyncio.CancelledError:
            await shell.end()
            raise
        context.background.keep_detached(shell)
        was_reset = await asyncio.to_thread(_follow_directory, context, shell)
        run.finish()
        if was_reset:
            run.add_output("stderr", f"Shell cwd was reset to {escape_controls(context.cwd)}\n".encode())
            run.finish()
        error_line = f"Exit code {shell_exit_code(status)}" if status else ""
        result = await run.build_result(error_line, interrupted=False)
        if status and execution.isolation in {"read", "edit"} and is_access_refused(run.stderr.text):
            return _explain_confinement(result, find_missing_access(run.stderr.text))
        return result


def _explain_confinement(result: ToolResult, missing: str) -> ToolResult:
    """Add a note to the result of a failed command: that it was sandboxed, and the access that it seems to lack."""
    note = _CONFINED_NOTE.format(needs=f" It seems to need {missing}." if missing else "")
    content = f"{result.content}\n{note}"
    return ToolResult(content, f"Error: {content}", is_error=True, needs=missing)


def _follow_directory(context: ToolContext, shell: ShellProcess) -> bool:
    """Set the working directory to that of the ended shell; return whether it left the working directories.

    A path through a link is kept if it leads to the same directory.
    """
    new_directory = shell.final_directory
    if not new_directory or not os.path.isdir(new_directory) or os.path.realpath(context.cwd) == new_directory:
        return False
    if context.folders and not is_inside(ResolvedPath.of(new_directory), context.folders):
        return True
    context.cwd = new_directory
    return False


async def _start_background(bash_input: _BashInput, context: ToolContext, call: str) -> ToolResult:
    shell = await context.background.start(
        bash_input.command, bash_input.description, context, call, outside_sandbox=bash_input.outside
    )
    detail = {
        "stdout": "",
        "stderr": "",
        "interrupted": False,
        "isImage": False,
        "noOutputExpected": False,
        "backgroundTaskId": shell.id,
    }
    content = (
        f"Command running in background with ID: {shell.id}. "
        f"Output is being written to: {shell.log.path}. You are notified when the command ends; "
        "to check its output earlier, read that file or use TaskOutput."
    )
    return ToolResult(content, detail)


# Background tasks


class _TaskInput(msgspec.Struct, frozen=True):
    task_id: str = ""
    bash_id: str = ""
    shell_id: str = ""
    block: bool = True
    timeout: float = _DEFAULT_WAIT_MS


def _find_task(context: ToolContext, *ids: str) -> BackgroundTask:
    task_id = next(filter(None, ids), "")
    if not task_id:
        raise ToolFailure("Invalid tool input: `task_id` is required.")
    task = context.background.tasks.get(task_id)
    if task is None:
        raise ToolFailure(f"No task found with ID: {escape_controls(task_id)}")
    return task


class TaskOutput:
    """Returns the new output of a background task."""

    spec = builtin_spec(
        "TaskOutput",
        description=(
            "Returns the status of a background task, its output since the last call and, "
            "if it has ended, its exit code. Waits for the task to end unless `block` is false."
        ),
        schema={
            "type": "object",
            "properties": {
                "task_id": {"type": "string", "description": "ID of the task"},
                "block": {"type": "boolean", "description": "Whether to wait for the task to end (default: true)"},
                "timeout": {
                    "type": "number",
                    "description": f"Maximum time to wait in milliseconds (default: {_DEFAULT_WAIT_MS}, "
                    f"maximum: {MAX_TIMEOUT_MS})",
                },
            },
            "required": ["task_id"],
        },
    )

    async def run(self, tool_input: dict[str, Any], context: ToolContext, _call: str) -> ToolResult:
        """Return the new output."""
        task_input = parse_input(tool_input, _TaskInput)
        task = _find_task(context, task_input.task_id, task_input.bash_id)
        # The older tool, which uses `bash_id`, never waits.
        should_wait = task_input.block and not task_input.bash_id
        if should_wait and task.status == "running":
            await task.wait(max(min(task_input.timeout, MAX_TIMEOUT_MS), 0) / _MS_PER_SECOND)
        running = task.status == "running"
        retrieval = "success" if not running else "timeout" if should_wait else "not_ready"
        output = task.read()
        task_detail = {
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
        return ToolResult("\n\n".join(parts), {"retrieval_status": retrieval, "task": task_detail})


class TaskStop:
    """Terminates a background task."""

    spec = builtin_spec(
        "TaskStop",
        description="Terminates a background task and all its processes.",
        schema={
            "type": "object",
            "properties": {
                "task_id": {"type": "string", "description": "ID of the task"},
                "shell_id": {"type": "string", "description": "Older name of `task_id`"},
            },
        },
    )

    async def run(self, tool_input: dict[str, Any], context: ToolContext, _call: str) -> ToolResult:
        """Terminate the task."""
        task_input = parse_input(tool_input, _TaskInput)
        task = _find_task(context, task_input.task_id, task_input.shell_id, task_input.bash_id)
        if task.status != "running":
            raise ToolFailure(f"Task {task.id} is not running (status: {task.status})")
        await task.stop()
        name = escape_controls(task.description or task.command)
        detail = {
            "message": f"Successfully stopped task: {task.id} ({name})",
            "task_id": task.id,
            "task_type": task.kind,
            "command": task.command,
        }
        return ToolResult(msgspec.json.encode(detail).decode(), detail)
