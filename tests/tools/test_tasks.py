"""Tasks in files that other clients read."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from steno.tools.base import Around, Outcome, Tool, ToolFailure
from steno.tools.tasks import TaskCreate, TaskGet, TaskList, TaskUpdate, other_tools


def make(tmp_path: Path) -> Around:
    kept = {"tasks_folder": str(tmp_path / "tasks" / "s")}
    return Around(cwd="/", project="/", session_id="s", folder="/none", env={}, kept=kept)


def run(tool: Tool, around: Around, **given: Any) -> Outcome:
    return asyncio.run(tool.run(given, around, "toolu_1"))


def create(around: Around, subject: str) -> Outcome:
    return run(TaskCreate(), around, subject=subject, description=f"Do {subject}")


def test_the_words_and_details_are_those_of_the_client(tmp_path: Path) -> None:
    around = make(tmp_path)
    made = run(TaskCreate(), around, subject="First", description="Do it", activeForm="Doing it")
    assert made.content == "Task #1 created successfully: First"
    assert made.detail == {"task": {"id": "1", "subject": "First", "description": "Do it"}}
    create(around, "Second")
    changed = run(TaskUpdate(), around, taskId="1", status="in_progress")
    assert changed.content == "Updated task #1 status"
    assert changed.detail == {
        "success": True,
        "taskId": "1",
        "updatedFields": ["status"],
        "statusChange": {"from": "pending", "to": "in_progress"},
    }
    listed = run(TaskList(), around)
    assert listed.content == "#1 [in_progress] First\n#2 [pending] Second"
    assert listed.detail["tasks"][1] == {
        "id": "2",
        "subject": "Second",
        "status": "pending",
        "blockedBy": [],
    }
    got = run(TaskGet(), around, taskId="1")
    assert got.content == "Task #1: First\nStatus: in_progress\nDescription: Do it"
    assert got.detail["task"]["blocks"] == []


def test_the_files_are_those_of_the_client(tmp_path: Path) -> None:
    around = make(tmp_path)
    run(TaskCreate(), around, subject="First", description="Do it", activeForm="Doing it")
    folder = tmp_path / "tasks" / "s"
    assert (folder / "1.json").read_text("utf-8") == (
        '{\n  "id": "1",\n  "subject": "First",\n  "description": "Do it",\n'
        '  "activeForm": "Doing it",\n  "status": "pending",\n  "blocks": [],\n  "blockedBy": []\n}'
    )
    assert (folder / "1.json").stat().st_mode & 0o777 == 0o600
    assert sorted(each.name for each in folder.iterdir()) == [".lock", "1.json"]


def test_tasks_that_wait_for_each_other_name_each_other(tmp_path: Path) -> None:
    around = make(tmp_path)
    for subject in ("a", "b", "c"):
        create(around, subject)
    run(TaskUpdate(), around, taskId="1", addBlocks=["2", "9", "1"])
    run(TaskUpdate(), around, taskId="3", addBlockedBy=["1"])
    assert run(TaskGet(), around, taskId="1").detail["task"]["blocks"] == ["2", "3"]
    assert run(TaskList(), around).content == (
        "#1 [pending] a\n#2 [pending] b [blocked by #1]\n#3 [pending] c [blocked by #1]"
    )
    run(TaskUpdate(), around, taskId="1", status="completed")
    assert "blocked" not in str(run(TaskList(), around).content)


def test_a_deleted_task_is_gone_and_its_number_not_used_again(tmp_path: Path) -> None:
    around = make(tmp_path)
    create(around, "a")
    create(around, "b")
    run(TaskUpdate(), around, taskId="1", addBlockedBy=["2"])
    run(TaskUpdate(), around, taskId="2", status="deleted")
    assert run(TaskGet(), around, taskId="2").detail == {"task": None}
    assert run(TaskGet(), around, taskId="1").detail["task"]["blockedBy"] == []
    assert create(around, "c").detail["task"]["id"] == "3"


def test_metadata_is_merged_and_null_takes_away(tmp_path: Path) -> None:
    around = make(tmp_path)
    run(TaskCreate(), around, subject="a", description="", metadata={"x": 1, "y": 2})
    run(TaskUpdate(), around, taskId="1", metadata={"x": None, "z": 3}, owner="ada")
    kept = json.loads((tmp_path / "tasks" / "s" / "1.json").read_text("utf-8"))
    assert kept["metadata"] == {"y": 2, "z": 3}
    assert run(TaskList(), around).content == "#1 [pending] a (ada)"


@pytest.mark.parametrize("number", ["9", "../../x", "", "1/../1", "01"])
def test_a_task_that_is_not_there_is_said_so(tmp_path: Path, number: str) -> None:
    around = make(tmp_path)
    create(around, "a")
    outcome = run(TaskUpdate(), around, taskId=number, subject="new")
    assert outcome.content == "Task not found"
    assert outcome.detail["success"] is False
    assert run(TaskGet(), around, taskId=number).detail == {"task": None}


def test_files_that_are_no_tasks_are_passed_by(tmp_path: Path) -> None:
    around = make(tmp_path)
    create(around, "a")
    folder = tmp_path / "tasks" / "s"
    (folder / "2.json").write_text("{torn", "utf-8")
    (folder / "3.json").write_text('{"id": 3}', "utf-8")
    (folder / "notes.txt").write_text("x", "utf-8")
    assert run(TaskList(), around).content == "#1 [pending] a"
    assert create(around, "b").detail["task"]["id"] == "4"


def test_two_sessions_that_write_at_once_use_no_number_twice(tmp_path: Path) -> None:
    def several(name: int) -> None:
        around = make(tmp_path)
        for number in range(10):
            create(around, f"{name}.{number}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(several, range(4)))
    assert len(run(TaskList(), make(tmp_path)).detail["tasks"]) == 40


def test_without_a_folder_there_are_no_tasks() -> None:
    around = Around(cwd="/", project="/", session_id="s", folder="/none", env={})
    with pytest.raises(ToolFailure, match="no place"):
        run(TaskList(), around)


def test_an_empty_list_says_so(tmp_path: Path) -> None:
    assert run(TaskList(), make(tmp_path)).content == "No tasks found"


def test_every_tool_has_a_name_of_its_own_and_a_schema() -> None:
    specs = [tool.spec for tool in other_tools()]
    names = [name for spec in specs for name in (spec.name, *spec.aliases)]
    assert len(set(names)) == len(names)
    for spec in specs:
        assert spec.schema["type"] == "object"
        assert set(spec.schema.get("required", ())) <= set(spec.schema["properties"])
        assert spec.description
