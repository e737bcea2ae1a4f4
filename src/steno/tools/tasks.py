"""TaskCreate, TaskGet, TaskList, TaskUpdate: a list of tasks that other clients can read.

Each task is a file `<n>.json` in the folder that the conversation names as `tasks_folder`
(`tasks/<session>` in the config folder); `.lock` keeps two writers apart.
"""

import asyncio
import os
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any, Final, Literal, TypeVar

import msgspec

from steno.tools.base import ToolFailure, ToolResult
from steno.tools.catalogue import own_spec
from steno.tools.context import ToolContext
from steno.tools.inputs import taken
from steno.tools.output import harmless, put_file
from steno.tools.words import worded

__all__ = ["TaskCreate", "TaskGet", "TaskList", "TaskUpdate"]

_FILE: Final = re.compile(r"([1-9][0-9]{0,8})\.json")
_BIGGEST: Final = 1 << 20
_Status = Literal["pending", "in_progress", "completed", "deleted"]
_T = TypeVar("_T")


class _Task(msgspec.Struct, rename="camel", omit_defaults=False):
    id: str
    subject: str
    description: str = ""
    active_form: str | msgspec.UnsetType = msgspec.UNSET
    owner: str | msgspec.UnsetType = msgspec.UNSET
    status: str = "pending"
    blocks: list[str] = []
    blocked_by: list[str] = []
    metadata: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


class _Folder:
    """The tasks of one session, while nobody else writes them."""

    def __init__(self, path: str) -> None:
        self._path = path

    def numbers(self) -> list[int]:
        found = map(_FILE.fullmatch, os.listdir(self._path))
        return sorted(int(match[1]) for match in found if match)

    def get(self, number: str) -> _Task | None:
        name = f"{number}.json"
        if not _FILE.fullmatch(name):
            return None
        try:
            with open(os.path.join(self._path, name), "rb") as file:
                task = msgspec.json.decode(file.read(_BIGGEST), type=_Task)
        except (OSError, msgspec.DecodeError):
            # Somebody else's file that is no task, or not there: as if it were not.
            return None
        # What it says of itself must not lead its next writing elsewhere.
        task.id = number
        return task

    def all(self) -> list[_Task]:
        return [task for number in self.numbers() if (task := self.get(str(number)))]

    def put(self, task: _Task) -> None:
        data = msgspec.json.format(msgspec.json.encode(task), indent=2)
        put_file(os.path.join(self._path, f"{task.id}.json"), (data,))

    def drop(self, number: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(self._path, f"{number}.json"))
        for task in self.all():
            if number in task.blocks or number in task.blocked_by:
                task.blocks = [each for each in task.blocks if each != number]
                task.blocked_by = [each for each in task.blocked_by if each != number]
                self.put(task)


@contextmanager
def _locked(path: str) -> Generator[_Folder]:
    import fcntl

    os.makedirs(path, mode=0o700, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    descriptor = os.open(os.path.join(path, ".lock"), flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield _Folder(path)
    finally:
        os.close(descriptor)


async def _with(context: ToolContext, work: Callable[[_Folder], _T]) -> _T:
    """Do something with the tasks of a conversation."""
    path = context.tasks.folder
    if not path:
        raise ToolFailure("There is no place for tasks in this session.")

    def do() -> _T:
        with _locked(path) as folder:
            return work(folder)

    try:
        return await asyncio.to_thread(do)
    except OSError as error:
        raise ToolFailure(f"The tasks cannot be read or written: {worded(error)}") from error


# Creating


class _New(msgspec.Struct, frozen=True, rename="camel"):
    subject: str
    description: str
    active_form: str | msgspec.UnsetType = msgspec.UNSET
    metadata: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


class TaskCreate:
    """Adds a task."""

    spec = own_spec(
        "TaskCreate",
        description=(
            "Adds a task to the list of this session, as pending. Use it for work of three steps "
            "or more, or when the user names several things to do."
        ),
        schema={
            "type": "object",
            "properties": {
                "subject": {"type": "string", "description": "A short title: Run the tests"},
                "description": {"type": "string", "description": "What is to be done"},
                "activeForm": {
                    "type": "string",
                    "description": "The title while it is done: Running the tests",
                },
                "metadata": {"type": "object", "description": "Anything else to keep with it"},
            },
            "required": ["subject", "description"],
        },
    )

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        """Add it."""
        del call
        new = taken(tool_input, _New)

        def add(folder: _Folder) -> _Task:
            # A number is not given twice, even where its task was deleted.
            last = max((context.tasks.last_number, *folder.numbers()))
            context.tasks.last_number = last + 1
            task = _Task(
                id=str(last + 1),
                subject=new.subject,
                description=new.description,
                active_form=new.active_form,
                metadata=new.metadata,
            )
            folder.put(task)
            return task

        task = await _with(context, add)
        detail = {"id": task.id, "subject": task.subject, "description": task.description}
        words = f"Task #{task.id} created successfully: {harmless(task.subject)}"
        return ToolResult(words, {"task": detail})


# Looking


class _Which(msgspec.Struct, frozen=True, rename="camel"):
    task_id: str


_WHICH: Final = {"type": "string", "description": "The number of the task"}


class TaskGet:
    """Shows one task."""

    spec = own_spec(
        "TaskGet",
        description="Returns one task of this session with its description and what it waits for.",
        schema={"type": "object", "properties": {"taskId": _WHICH}, "required": ["taskId"]},
    )

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        """Show it."""
        del call
        asked = taken(tool_input, _Which)
        task = await _with(context, lambda folder: folder.get(asked.task_id))
        if task is None:
            return ToolResult("Task not found", {"task": None})
        lines = [
            f"Task #{task.id}: {task.subject}",
            f"Status: {task.status}",
            f"Description: {task.description}",
        ]
        if task.blocked_by:
            lines.append(f"Blocked by: {_numbers(task.blocked_by)}")
        if task.blocks:
            lines.append(f"Blocks: {_numbers(task.blocks)}")
        detail = {
            "id": task.id,
            "subject": task.subject,
            "description": task.description,
            "status": task.status,
            "blocks": task.blocks,
            "blockedBy": task.blocked_by,
        }
        return ToolResult(harmless("\n".join(lines)), {"task": detail})


def _numbers(numbers: list[str]) -> str:
    return ", ".join(f"#{number}" for number in numbers)


class TaskList:
    """Shows all tasks."""

    spec = own_spec(
        "TaskList",
        description="Returns all tasks of this session with status, owner and what they wait for.",
        schema={"type": "object", "properties": {}},
    )

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        """Show them."""
        del tool_input, call
        tasks = await _with(context, _Folder.all)
        done = {task.id for task in tasks if task.status == "completed"}
        lines: list[str] = []
        rows: list[dict[str, Any]] = []
        for task in tasks:
            waits = [number for number in task.blocked_by if number not in done]
            owner = {} if task.owner is msgspec.UNSET else {"owner": task.owner}
            row = {"id": task.id, "subject": task.subject, "status": task.status}
            rows.append({**row, **owner, "blockedBy": waits})
            by = f" ({task.owner})" if owner else ""
            behind = f" [blocked by {_numbers(waits)}]" if waits else ""
            lines.append(f"#{task.id} [{task.status}] {task.subject}{by}{behind}")
        return ToolResult(harmless("\n".join(lines)) or "No tasks found", {"tasks": rows})


# Changing


class _Change(msgspec.Struct, frozen=True, rename="camel"):
    task_id: str
    subject: str | None = None
    description: str | None = None
    active_form: str | None = None
    status: _Status | None = None
    owner: str | None = None
    add_blocks: list[str] = []
    add_blocked_by: list[str] = []
    metadata: dict[str, Any] | None = None


class TaskUpdate:
    """Changes a task."""

    spec = own_spec(
        "TaskUpdate",
        description=(
            "Changes a task: its status (`in_progress` when you begin, `completed` when it is "
            "wholly done, `deleted` to remove it), its words, its owner, or what it waits for."
        ),
        schema={
            "type": "object",
            "properties": {
                "taskId": _WHICH,
                "subject": {"type": "string"},
                "description": {"type": "string"},
                "activeForm": {"type": "string"},
                "status": {
                    "type": "string",
                    "enum": ["pending", "in_progress", "completed", "deleted"],
                },
                "addBlocks": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Tasks that wait for this one",
                },
                "addBlockedBy": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Tasks that this one waits for",
                },
                "owner": {"type": "string"},
                "metadata": {
                    "type": "object",
                    "description": "Keys to add; a key with null is taken away",
                },
            },
            "required": ["taskId"],
        },
    )

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        """Change it."""
        del call
        asked = taken(tool_input, _Change)
        detail = await _with(context, lambda folder: _change(folder, asked))
        if not detail["success"]:
            return ToolResult(detail["error"], detail)
        words = f"Updated task #{asked.task_id} {', '.join(detail['updatedFields'])}".rstrip()
        return ToolResult(words, detail)


def _change(folder: _Folder, asked: _Change) -> dict[str, Any]:
    detail: dict[str, Any] = {"success": False, "taskId": asked.task_id, "updatedFields": []}
    task = folder.get(asked.task_id)
    if task is None:
        return {**detail, "error": "Task not found"}
    before = task.status
    detail |= {"success": True, "updatedFields": _set(task, asked)}
    if asked.status not in {None, before}:
        detail["statusChange"] = {"from": before, "to": asked.status}
    if asked.status == "deleted":
        folder.drop(task.id)
        return {**detail, "updatedFields": ["deleted"]}
    for field, ours, theirs, numbers in (
        ("blocks", task.blocks, "blocked_by", asked.add_blocks),
        ("blockedBy", task.blocked_by, "blocks", asked.add_blocked_by),
    ):
        if _tie(folder, task, ours, theirs, numbers):
            detail["updatedFields"].append(field)
    folder.put(task)
    return detail


def _set(task: _Task, asked: _Change) -> list[str]:
    """Set the plain fields that were given and differ; return their names."""
    changed: list[str] = []
    for field, name in (
        ("subject", "subject"),
        ("description", "description"),
        ("active_form", "activeForm"),
        ("owner", "owner"),
        ("status", "status"),
    ):
        value = getattr(asked, field)
        if value is not None and value != getattr(task, field):
            setattr(task, field, value)
            changed.append(name)
    if asked.metadata is not None:
        kept = {} if task.metadata is msgspec.UNSET else task.metadata
        merged = {**kept, **asked.metadata}
        task.metadata = {key: value for key, value in merged.items() if value is not None}
        changed.append("metadata")
    return changed


def _tie(folder: _Folder, task: _Task, ours: list[str], theirs: str, numbers: list[str]) -> bool:
    """Have a task and others name each other; those that are not there are left out."""
    tied = False
    for number in numbers:
        other = folder.get(number)
        if other is None or number == task.id or number in ours:
            continue
        ours.append(number)
        back: list[str] = getattr(other, theirs)
        if task.id not in back:
            back.append(task.id)
            folder.put(other)
        tied = True
    return tied
