"""What a tool gives back: the text the model sees and the `toolUseResult` beside it.

A builder keeps a small pretend folder (`Room`), so that a `Read` gives back what an earlier
`Write` put there and an `Edit` knows the file it changed.
"""

from collections.abc import Callable
from typing import Any, Final, cast

import msgspec
from tests.builders.blocks import UNSET, Answer, Json
from tests.builders.generations import Generation
from tests.builders.patches import patch

__all__ = ["Call", "Outcome", "Room", "outcome"]


class Call(msgspec.Struct):
    """A tool call that waits for its result; `line` is the uuid of the record that holds it."""

    id: str
    name: str
    input: Json
    line: str
    answered: bool = False


class Room(msgspec.Struct):
    """What the tools work on: files, a to-do list, tasks."""

    files: dict[str, str] = {}
    todos: list[Json] = []
    tasks: list[Json] = []


class Outcome(msgspec.Struct, frozen=True):
    """The result block and the `toolUseResult`, `UNSET` where the client writes none."""

    block: Json
    detail: Any


_Maker = Callable[[Generation, Call, str, Room], tuple[str, Any]]


def outcome(gen: Generation, call: Call, given: Answer, room: Room) -> Outcome:
    """Return what is written for the answer to a call."""
    if given.error:
        return _failure(call, given)
    if isinstance(given.content, list):
        detail = given.content if given.detail is UNSET else given.detail
        return Outcome(block=_block(call, given.content), detail=detail)
    maker = _MAKERS.get(call.name, _plain)
    words, detail = maker(gen, call, given.content or "", room)
    if given.content and call.name != "Read":
        words = given.content
    if given.detail is not UNSET:
        detail = given.detail
    return Outcome(block=_block(call, words), detail=detail)


def _block(call: Call, content: str | list[Json]) -> Json:
    block: Json = {"tool_use_id": call.id, "type": "tool_result", "content": content}
    if call.name == "Bash":
        block["is_error"] = False
    return block


def _failure(call: Call, given: Answer) -> Outcome:
    words = given.content if isinstance(given.content, str) else "failed"
    block: Json = {"type": "tool_result", "content": words, "is_error": True, "tool_use_id": call.id}
    detail = f"Error: {words}" if given.detail is UNSET else given.detail
    return Outcome(block=block, detail=detail)


def _numbered(gen: Generation, content: str, start: int) -> str:
    lines = content.split("\n")
    if gen.tabbed:
        return "\n".join(f"{n}\t{line}" for n, line in enumerate(lines, start))
    return "\n".join(f"{n:6d}→{line}" for n, line in enumerate(lines, start))


def _read(gen: Generation, call: Call, given: str, room: Room) -> tuple[str, Any]:
    path = str(call.input.get("file_path", ""))
    content = given or room.files.get(path, "")
    room.files.setdefault(path, content)
    start = int(call.input.get("offset") or 1)
    count = content.count("\n") + 1
    file = {
        "filePath": path,
        "content": content,
        "numLines": count,
        "startLine": start,
        "totalLines": count + start - 1,
    }
    return _numbered(gen, content, start), {"type": "text", "file": file}


def _write(gen: Generation, call: Call, _given: str, room: Room) -> tuple[str, Any]:
    path, content = str(call.input.get("file_path", "")), str(call.input.get("content", ""))
    before = room.files.get(path)
    room.files[path] = content
    detail: Json = {
        "type": "create" if before is None else "update",
        "filePath": path,
        "content": content,
        "structuredPatch": [] if before is None else patch(before, content),
    }
    if gen.version != "1.0.128":
        detail["originalFile"] = before
    if gen.tail:
        detail["userModified"] = False
    return f"{'Created' if before is None else 'Rewrote'} {path}", detail


def _edit(_gen: Generation, call: Call, _given: str, room: Room) -> tuple[str, Any]:
    path = str(call.input.get("file_path", ""))
    old, new = str(call.input.get("old_string", "")), str(call.input.get("new_string", ""))
    everywhere = bool(call.input.get("replace_all", False))
    before = room.files.get(path, old)
    after = before.replace(old, new) if everywhere else before.replace(old, new, 1)
    room.files[path] = after
    detail = {
        "filePath": path,
        "oldString": old,
        "newString": new,
        "originalFile": before,
        "structuredPatch": patch(before, after),
        "userModified": False,
        "replaceAll": everywhere,
    }
    return f"Changed {path}", detail


def _bash(gen: Generation, _call: Call, given: str, _room: Room) -> tuple[str, Any]:
    detail: Json = {"stdout": given, "stderr": "", "interrupted": False, "isImage": False}
    if gen.order >= (2, 1, 42):
        detail["noOutputExpected"] = False
    return given, detail


def _glob(gen: Generation, _call: Call, given: str, _room: Room) -> tuple[str, Any]:
    names = given.split("\n") if given else []
    detail: Json = {"filenames": names, "durationMs": 12, "numFiles": len(names), "truncated": False}
    if gen.tail:
        detail |= {"totalMatches": len(names), "countIsComplete": True}
    return given or "No files found", detail


def _grep(gen: Generation, call: Call, given: str, _room: Room) -> tuple[str, Any]:
    mode = str(call.input.get("output_mode", "files_with_matches"))
    lines = given.split("\n") if given else []
    names = lines if mode == "files_with_matches" else []
    detail: Json = {"mode": mode, "numFiles": len(names), "filenames": names, "content": given, "numLines": len(lines)}
    if gen.latest:
        detail["totalLines"] = len(lines)
    return given or "No matches found", detail


def _todo(_gen: Generation, call: Call, _given: str, room: Room) -> tuple[str, Any]:
    before, room.todos = room.todos, cast("list[Json]", call.input.get("todos", []))
    return "The list is up to date.", {"oldTodos": before, "newTodos": room.todos}


def _task_create(_gen: Generation, call: Call, _given: str, room: Room) -> tuple[str, Any]:
    number = str(len(room.tasks) + 1)
    room.tasks.append({"id": number, **call.input, "status": "pending", "blocks": [], "blockedBy": []})
    subject, description = call.input.get("subject", ""), call.input.get("description", "")
    detail = {"task": {"id": number, "subject": subject, "description": description}}
    return f"Task #{number} is on the list: {subject}", detail


def _task_update(_gen: Generation, call: Call, _given: str, room: Room) -> tuple[str, Any]:
    number = str(call.input.get("taskId", ""))
    task = next((task for task in room.tasks if task["id"] == number), {"status": "pending"})
    before, after = task["status"], call.input.get("status", "pending")
    task["status"] = after
    detail = {
        "success": True,
        "taskId": number,
        "updatedFields": ["status"],
        "statusChange": {"from": before, "to": after},
    }
    return f"Task #{number} is {str(after).replace('_', ' ')}.", detail


def _task_list(_gen: Generation, _call: Call, _given: str, room: Room) -> tuple[str, Any]:
    keys = ("id", "subject", "status", "blockedBy")
    tasks = [{key: task.get(key, "") for key in keys} for task in room.tasks]
    rows = [f"#{task['id']} [{task['status']}] {task['subject']}" for task in tasks]
    return "\n".join(rows), {"tasks": tasks}


def _plain(_gen: Generation, _call: Call, given: str, _room: Room) -> tuple[str, Any]:
    return given, given


_MAKERS: Final[dict[str, _Maker]] = {
    "Bash": _bash,
    "Edit": _edit,
    "Glob": _glob,
    "Grep": _grep,
    "Read": _read,
    "TaskCreate": _task_create,
    "TaskList": _task_list,
    "TaskUpdate": _task_update,
    "TodoWrite": _todo,
    "Write": _write,
}
