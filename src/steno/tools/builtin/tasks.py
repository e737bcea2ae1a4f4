"""Task lists: TodoWrite, and TaskCreate, TaskGet, TaskList and TaskUpdate.

Each task is a file `<n>.json` in `context.tasks.folder` (`tasks/<session>` in the config directory), which
Claude Code can read; `.lock` excludes concurrent writers.
"""

import asyncio
import os
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any, Final, Literal, TypeVar

import msgspec

from steno.store.atomic import write_atomic
from steno.tools.context import TodoEntry, ToolContext
from steno.tools.output import error_message, escape_controls
from steno.tools.protocol import ToolFailure, ToolResult, builtin_spec, parse_input


class _TodoWriteInput(msgspec.Struct, frozen=True):
    todos: tuple[TodoEntry, ...]


class TodoWrite:
    """Replaces the to-do list in `context.todos`."""

    spec = builtin_spec(
        "TodoWrite",
        description=(
            "Replaces your to-do list. Use it for tasks with three or more steps, so that you and the user "
            "can follow the progress. Keep exactly one item in progress, and mark an item completed only when "
            "it is finished."
        ),
        schema={
            "type": "object",
            "properties": {
                "todos": {
                    "type": "array",
                    "description": "The complete list",
                    "items": {
                        "type": "object",
                        "properties": {
                            "content": {
                                "type": "string",
                                "minLength": 1,
                                "description": "The item in imperative form, for example: Run the tests",
                            },
                            "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
                            "activeForm": {
                                "type": "string",
                                "minLength": 1,
                                "description": "The item in present continuous form, for example: Running the tests",
                            },
                        },
                        "required": ["content", "status", "activeForm"],
                        "additionalProperties": False,
                    },
                }
            },
            "required": ["todos"],
            "additionalProperties": False,
        },
    )

    async def run(self, tool_input: dict[str, Any], context: ToolContext, _call: str) -> ToolResult:
        """Replace the list."""
        todos = parse_input(tool_input, _TodoWriteInput).todos
        detail = {"oldTodos": msgspec.to_builtins(list(context.todos)), "newTodos": msgspec.to_builtins(list(todos))}
        # A completed list is cleared, so that the next one starts empty.
        all_completed = all(todo.status == "completed" for todo in todos)
        context.todos = () if all_completed else todos
        content = "Updated the to-do list. Keep it current and continue with the item in progress."
        return ToolResult(content, detail)


_TASK_FILE_NAME: Final = re.compile(r"([1-9][0-9]{0,8})\.json")
_MAX_TASK_SIZE: Final = 1 << 20
_TaskStatus = Literal["pending", "in_progress", "completed", "deleted"]
_Result = TypeVar("_Result")


class _TaskRecord(msgspec.Struct, rename="camel", omit_defaults=False):
    id: str
    subject: str
    description: str = ""
    active_form: str | msgspec.UnsetType = msgspec.UNSET
    owner: str | msgspec.UnsetType = msgspec.UNSET
    status: str = "pending"
    blocks: list[str] = []
    blocked_by: list[str] = []
    metadata: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


class _TaskFolder:
    """The task files of one session, used while its lock is held."""

    def __init__(self, path: str) -> None:
        self._path = path

    def numbers(self) -> list[int]:
        name_matches = map(_TASK_FILE_NAME.fullmatch, os.listdir(self._path))
        return sorted(int(match[1]) for match in name_matches if match)

    def read_task(self, number: str) -> _TaskRecord | None:
        name = f"{number}.json"
        if not _TASK_FILE_NAME.fullmatch(name):
            return None
        try:
            with open(os.path.join(self._path, name), "rb") as file:
                task = msgspec.json.decode(file.read(_MAX_TASK_SIZE), type=_TaskRecord)
        except (OSError, msgspec.DecodeError):
            # A missing file, or one that is not a task.
            return None
        # The ID in the file must not determine the path of the next write.
        task.id = number
        return task

    def read_all(self) -> list[_TaskRecord]:
        return [task for number in self.numbers() if (task := self.read_task(str(number)))]

    def write_task(self, task: _TaskRecord) -> None:
        data = msgspec.json.format(msgspec.json.encode(task), indent=2)
        write_atomic(os.path.join(self._path, f"{task.id}.json"), (data,), sync=False)

    def delete_task(self, number: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(self._path, f"{number}.json"))
        for task in self.read_all():
            if number in task.blocks or number in task.blocked_by:
                task.blocks = [other_number for other_number in task.blocks if other_number != number]
                task.blocked_by = [each for each in task.blocked_by if each != number]
                self.write_task(task)


@contextmanager
def _lock_folder(path: str) -> Generator[_TaskFolder]:
    import fcntl

    os.makedirs(path, mode=0o700, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    descriptor = os.open(os.path.join(path, ".lock"), flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield _TaskFolder(path)
    finally:
        os.close(descriptor)


async def _with_tasks(context: ToolContext, action: Callable[[_TaskFolder], _Result]) -> _Result:
    path = context.tasks.folder
    if not path:
        raise ToolFailure("Tasks are not available in this session.")

    def run_locked() -> _Result:
        with _lock_folder(path) as folder:
            return action(folder)

    try:
        return await asyncio.to_thread(run_locked)
    except OSError as error:
        raise ToolFailure(f"Cannot read or write the tasks: {error_message(error)}") from error


# Creating


class _TaskCreateInput(msgspec.Struct, frozen=True, rename="camel"):
    subject: str
    description: str
    active_form: str | msgspec.UnsetType = msgspec.UNSET
    metadata: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


class TaskCreate:
    """Creates a task."""

    spec = builtin_spec(
        "TaskCreate",
        description=(
            "Creates a pending task in the task list of this session. Use it for tasks with three or more "
            "steps, or when the user requests several things."
        ),
        schema={
            "type": "object",
            "properties": {
                "subject": {"type": "string", "description": "Short title, for example: Run the tests"},
                "description": {"type": "string", "description": "What needs to be done"},
                "activeForm": {
                    "type": "string",
                    "description": "Title while in progress, for example: Running the tests",
                },
                "metadata": {"type": "object", "description": "Additional data to store with the task"},
            },
            "required": ["subject", "description"],
        },
    )

    async def run(self, tool_input: dict[str, Any], context: ToolContext, _call: str) -> ToolResult:
        """Create the task."""
        task_input = parse_input(tool_input, _TaskCreateInput)

        def add_task(folder: _TaskFolder) -> _TaskRecord:
            # Numbers of deleted tasks are not reused.
            last = max((context.tasks.last_number, *folder.numbers()))
            context.tasks.last_number = last + 1
            task = _TaskRecord(
                id=str(last + 1),
                subject=task_input.subject,
                description=task_input.description,
                active_form=task_input.active_form,
                metadata=task_input.metadata,
            )
            folder.write_task(task)
            return task

        task = await _with_tasks(context, add_task)
        detail = {"id": task.id, "subject": task.subject, "description": task.description}
        content = f"Task #{task.id} created successfully: {escape_controls(task.subject)}"
        return ToolResult(content, {"task": detail})


# Showing


class _TaskGetInput(msgspec.Struct, frozen=True, rename="camel"):
    task_id: str


_TASK_ID_SCHEMA: Final = {"type": "string", "description": "ID of the task"}


class TaskGet:
    """Returns one task."""

    spec = builtin_spec(
        "TaskGet",
        description="Returns one task of this session with its description and dependencies.",
        schema={"type": "object", "properties": {"taskId": _TASK_ID_SCHEMA}, "required": ["taskId"]},
    )

    async def run(self, tool_input: dict[str, Any], context: ToolContext, _call: str) -> ToolResult:
        """Return the task."""
        task_input = parse_input(tool_input, _TaskGetInput)
        task = await _with_tasks(context, lambda folder: folder.read_task(task_input.task_id))
        if task is None:
            return ToolResult("Task not found", {"task": None})
        lines = [f"Task #{task.id}: {task.subject}", f"Status: {task.status}", f"Description: {task.description}"]
        if task.blocked_by:
            lines.append(f"Blocked by: {_format_numbers(task.blocked_by)}")
        if task.blocks:
            lines.append(f"Blocks: {_format_numbers(task.blocks)}")
        detail = {
            "id": task.id,
            "subject": task.subject,
            "description": task.description,
            "status": task.status,
            "blocks": task.blocks,
            "blockedBy": task.blocked_by,
        }
        return ToolResult(escape_controls("\n".join(lines)), {"task": detail})


def _format_numbers(numbers: list[str]) -> str:
    return ", ".join(f"#{number}" for number in numbers)


class TaskList:
    """Returns all tasks."""

    spec = builtin_spec(
        "TaskList",
        description="Returns all tasks of this session with status, owner and dependencies.",
        schema={"type": "object", "properties": {}},
    )

    async def run(self, _tool_input: dict[str, Any], context: ToolContext, _call: str) -> ToolResult:
        """Return the tasks."""
        tasks = await _with_tasks(context, _TaskFolder.read_all)
        completed_ids = {task.id for task in tasks if task.status == "completed"}
        lines: list[str] = []
        rows: list[dict[str, Any]] = []
        for task in tasks:
            open_blockers = [number for number in task.blocked_by if number not in completed_ids]
            owner = {} if task.owner is msgspec.UNSET else {"owner": task.owner}
            row = {"id": task.id, "subject": task.subject, "status": task.status}
            rows.append({**row, **owner, "blockedBy": open_blockers})
            owner_suffix = f" ({task.owner})" if owner else ""
            blocked_suffix = f" [blocked by {_format_numbers(open_blockers)}]" if open_blockers else ""
            lines.append(f"#{task.id} [{task.status}] {task.subject}{owner_suffix}{blocked_suffix}")
        return ToolResult(escape_controls("\n".join(lines)) or "No tasks found", {"tasks": rows})


# Updating


class _TaskUpdateInput(msgspec.Struct, frozen=True, rename="camel"):
    task_id: str
    subject: str | None = None
    description: str | None = None
    active_form: str | None = None
    status: _TaskStatus | None = None
    owner: str | None = None
    add_blocks: list[str] = []
    add_blocked_by: list[str] = []
    metadata: dict[str, Any] | None = None


class TaskUpdate:
    """Updates a task."""

    spec = builtin_spec(
        "TaskUpdate",
        description=(
            "Updates a task: its status (`in_progress` when you start, `completed` when it is "
            "finished, `deleted` to remove it), text, owner or dependencies."
        ),
        schema={
            "type": "object",
            "properties": {
                "taskId": _TASK_ID_SCHEMA,
                "subject": {"type": "string"},
                "description": {"type": "string"},
                "activeForm": {"type": "string"},
                "status": {"type": "string", "enum": ["pending", "in_progress", "completed", "deleted"]},
                "addBlocks": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "IDs of tasks that this task blocks",
                },
                "addBlockedBy": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "IDs of tasks that block this task",
                },
                "owner": {"type": "string"},
                "metadata": {"type": "object", "description": "Keys to set; null removes a key"},
            },
            "required": ["taskId"],
        },
    )

    async def run(self, tool_input: dict[str, Any], context: ToolContext, _call: str) -> ToolResult:
        """Update the task."""
        task_input = parse_input(tool_input, _TaskUpdateInput)
        detail = await _with_tasks(context, lambda folder: _update_task(folder, task_input))
        if not detail["success"]:
            return ToolResult(detail["error"], detail)
        content = f"Updated task #{task_input.task_id} {', '.join(detail['updatedFields'])}".rstrip()
        return ToolResult(content, detail)


def _update_task(folder: _TaskFolder, task_input: _TaskUpdateInput) -> dict[str, Any]:
    detail: dict[str, Any] = {"success": False, "taskId": task_input.task_id, "updatedFields": []}
    task = folder.read_task(task_input.task_id)
    if task is None:
        return {**detail, "error": "Task not found"}
    old_status = task.status
    detail |= {"success": True, "updatedFields": _set_fields(task, task_input)}
    if task_input.status not in {None, old_status}:
        detail["statusChange"] = {"from": old_status, "to": task_input.status}
    if task_input.status == "deleted":
        folder.delete_task(task.id)
        return {**detail, "updatedFields": ["deleted"]}
    for field, own_numbers, inverse_field, numbers in (
        ("blocks", task.blocks, "blocked_by", task_input.add_blocks),
        ("blockedBy", task.blocked_by, "blocks", task_input.add_blocked_by),
    ):
        if _link_tasks(folder, task, own_numbers, inverse_field, numbers):
            detail["updatedFields"].append(field)
    folder.write_task(task)
    return detail


def _set_fields(task: _TaskRecord, task_input: _TaskUpdateInput) -> list[str]:
    """Set the given fields that differ; return their names."""
    changed: list[str] = []
    for field, name in (
        ("subject", "subject"),
        ("description", "description"),
        ("active_form", "activeForm"),
        ("owner", "owner"),
        ("status", "status"),
    ):
        value = getattr(task_input, field)
        if value is not None and value != getattr(task, field):
            setattr(task, field, value)
            changed.append(name)
    if task_input.metadata is not None:
        existing = {} if task.metadata is msgspec.UNSET else task.metadata
        merged = {**existing, **task_input.metadata}
        task.metadata = {key: value for key, value in merged.items() if value is not None}
        changed.append("metadata")
    return changed


def _link_tasks(
    folder: _TaskFolder, task: _TaskRecord, own_numbers: list[str], inverse_field: str, numbers: list[str]
) -> bool:
    """Link tasks in both directions, ignoring missing tasks; return whether anything changed."""
    changed = False
    for number in numbers:
        other = folder.read_task(number)
        if other is None or number == task.id or number in own_numbers:
            continue
        own_numbers.append(number)
        inverse_numbers: list[str] = getattr(other, inverse_field)
        if task.id not in inverse_numbers:
            inverse_numbers.append(task.id)
            folder.write_task(other)
        changed = True
    return changed
