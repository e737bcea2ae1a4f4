"""Tasks in files that other clients read."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from steno.tools.builtin.tasks import TaskCreate, TaskGet, TaskList, TaskUpdate
from steno.tools.context import TaskStore, ToolContext
from steno.tools.protocol import Tool, ToolFailure, ToolResult
from steno.tools.registry import builtin_tools


def make(tmp_path: Path) -> ToolContext:
    tasks = TaskStore(str(tmp_path / "tasks" / "s"))
    return ToolContext(cwd="/", project="/", session_id="s", folder="/none", env={}, tasks=tasks)


def run(tool: Tool, context: ToolContext, **given: Any) -> ToolResult:
    return asyncio.run(tool.run(given, context, "toolu_1"))


def create(context: ToolContext, subject: str) -> ToolResult:
    return run(TaskCreate(), context, subject=subject, description=f"Do {subject}")


def test_the_words_and_details_are_those_of_the_client(tmp_path: Path) -> None:
    context = make(tmp_path)
    made = run(TaskCreate(), context, subject="First", description="Do it", activeForm="Doing it")
    assert made.content == "Task #1 created successfully: First"
    assert made.detail == {"task": {"id": "1", "subject": "First", "description": "Do it"}}
    create(context, "Second")
    changed = run(TaskUpdate(), context, taskId="1", status="in_progress")
    assert changed.content == "Updated task #1 status"
    assert changed.detail == {
        "success": True,
        "taskId": "1",
        "updatedFields": ["status"],
        "statusChange": {"from": "pending", "to": "in_progress"},
    }
    listed = run(TaskList(), context)
    assert listed.content == "#1 [in_progress] First\n#2 [pending] Second"
    assert listed.detail["tasks"][1] == {"id": "2", "subject": "Second", "status": "pending", "blockedBy": []}
    got = run(TaskGet(), context, taskId="1")
    assert got.content == "Task #1: First\nStatus: in_progress\nDescription: Do it"
    assert got.detail["task"]["blocks"] == []


def test_the_files_are_those_of_the_client(tmp_path: Path) -> None:
    context = make(tmp_path)
    run(TaskCreate(), context, subject="First", description="Do it", activeForm="Doing it")
    folder = tmp_path / "tasks" / "s"
    assert (folder / "1.json").read_text("utf-8") == (
        '{\n  "id": "1",\n  "subject": "First",\n  "description": "Do it",\n'
        '  "activeForm": "Doing it",\n  "status": "pending",\n  "blocks": [],\n  "blockedBy": []\n}'
    )
    assert (folder / "1.json").stat().st_mode & 0o777 == 0o600
    assert sorted(each.name for each in folder.iterdir()) == [".lock", "1.json"]


def test_tasks_that_wait_for_each_other_name_each_other(tmp_path: Path) -> None:
    context = make(tmp_path)
    for subject in ("a", "b", "c"):
        create(context, subject)
    run(TaskUpdate(), context, taskId="1", addBlocks=["2", "9", "1"])
    run(TaskUpdate(), context, taskId="3", addBlockedBy=["1"])
    assert run(TaskGet(), context, taskId="1").detail["task"]["blocks"] == ["2", "3"]
    assert run(TaskList(), context).content == (
        "#1 [pending] a\n#2 [pending] b [blocked by #1]\n#3 [pending] c [blocked by #1]"
    )
    run(TaskUpdate(), context, taskId="1", status="completed")
    assert "blocked" not in str(run(TaskList(), context).content)


def test_a_deleted_task_is_gone_and_its_number_not_used_again(tmp_path: Path) -> None:
    context = make(tmp_path)
    create(context, "a")
    create(context, "b")
    run(TaskUpdate(), context, taskId="1", addBlockedBy=["2"])
    run(TaskUpdate(), context, taskId="2", status="deleted")
    assert run(TaskGet(), context, taskId="2").detail == {"task": None}
    assert run(TaskGet(), context, taskId="1").detail["task"]["blockedBy"] == []
    assert create(context, "c").detail["task"]["id"] == "3"


def test_metadata_is_merged_and_null_takes_away(tmp_path: Path) -> None:
    context = make(tmp_path)
    run(TaskCreate(), context, subject="a", description="", metadata={"x": 1, "y": 2})
    run(TaskUpdate(), context, taskId="1", metadata={"x": None, "z": 3}, owner="ada")
    kept = json.loads((tmp_path / "tasks" / "s" / "1.json").read_text("utf-8"))
    assert kept["metadata"] == {"y": 2, "z": 3}
    assert run(TaskList(), context).content == "#1 [pending] a (ada)"


@pytest.mark.parametrize("number", ["9", "../../x", "", "1/../1", "01"])
def test_a_task_that_is_not_there_is_said_so(tmp_path: Path, number: str) -> None:
    context = make(tmp_path)
    create(context, "a")
    outcome = run(TaskUpdate(), context, taskId=number, subject="new")
    assert outcome.content == "Task not found"
    assert outcome.detail["success"] is False
    assert run(TaskGet(), context, taskId=number).detail == {"task": None}


def test_files_that_are_no_tasks_are_passed_by(tmp_path: Path) -> None:
    context = make(tmp_path)
    create(context, "a")
    folder = tmp_path / "tasks" / "s"
    (folder / "2.json").write_text("{torn", "utf-8")
    (folder / "3.json").write_text('{"id": 3}', "utf-8")
    (folder / "notes.txt").write_text("x", "utf-8")
    assert run(TaskList(), context).content == "#1 [pending] a"
    assert create(context, "b").detail["task"]["id"] == "4"


def test_two_sessions_that_write_at_once_use_no_number_twice(tmp_path: Path) -> None:
    def several(name: int) -> None:
        context = make(tmp_path)
        for number in range(10):
            create(context, f"{name}.{number}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(several, range(4)))
    assert len(run(TaskList(), make(tmp_path)).detail["tasks"]) == 40


def test_without_a_folder_there_are_no_tasks() -> None:
    context = ToolContext(cwd="/", project="/", session_id="s", folder="/none", env={})
    with pytest.raises(ToolFailure, match="not available"):
        run(TaskList(), context)


def test_an_empty_list_says_so(tmp_path: Path) -> None:
    assert run(TaskList(), make(tmp_path)).content == "No tasks found"


def test_every_tool_has_a_name_of_its_own_and_a_schema() -> None:
    specs = [tool.spec for tool in builtin_tools()]
    names = [name for spec in specs for name in (spec.name, *spec.aliases)]
    assert len(set(names)) == len(names)
    for spec in specs:
        assert spec.schema["type"] == "object"
        assert set(spec.schema.get("required", ())) <= set(spec.schema["properties"])
        assert spec.description
