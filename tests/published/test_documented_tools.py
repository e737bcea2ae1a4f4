"""The tools that 001, 002 and 003 list, and the names of what `drift` finds."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.published.client_form import ClientForm
from tests.published.conftest import OnDisk
from tests.published.documented import Json, steps
from tests.published.surfaces import listed_by, steno
from tests.published.test_client_fields import drifts, records_of

from steno.format.catalogue import catalogue
from steno.format.source import BytesSource
from steno.session.session import Session
from steno.session.transcript import load

TOOLS: dict[str, dict[str, str]] = {
    "001.B": {
        "Read": "file_path offset limit",
        "Write": "file_path content",
        "Edit": "file_path old_string new_string replace_all",
        "Bash": "command description timeout",
        "Glob": "pattern path",
        "Grep": "pattern path glob output_mode",
        "Task": "description subagent_type prompt model",
        "TodoWrite": "todos",
        "WebSearch": "query",
        "WebFetch": "url prompt",
    },
    "002.tools": {
        "Bash": "command description timeout run_in_background",
        "Read": "file_path offset limit",
        "Write": "file_path content",
        "Edit": "file_path old_string new_string replace_all",
        "Glob": "pattern path",
        "Grep": "pattern path glob type output_mode",
        "Task": "prompt description subagent_type model run_in_background resume",
        "TaskOutput": "task_id block timeout",
        "WebFetch": "url prompt",
        "WebSearch": "query allowed_domains blocked_domains",
        "TodoWrite": "todos",
        "AskUserQuestion": "questions",
        "Skill": "skill args",
        "BashOutput": "bash_id",
        "SlashCommand": "command",
    },
    "003.tools": {
        "Bash": "command description timeout",
        "Read": "file_path offset limit",
        "Write": "file_path content",
        "Edit": "file_path old_string new_string replace_all",
        "Glob": "pattern path",
        "Grep": "pattern path glob output_mode",
        "Task": "description prompt subagent_type model",
        "TaskCreate": "subject description",
        "TaskUpdate": "taskId status",
        "WebFetch": "url prompt",
        "WebSearch": "query",
        "Skill": "skill args",
        "EnterPlanMode": "",
        "ExitPlanMode": "",
        "AskUserQuestion": "questions",
    },
}
CALLED = [
    pytest.param(tool, keys, id=f"{document}.{tool}")
    for document, tools in TOOLS.items()
    for tool, keys in tools.items()
]


@pytest.mark.parametrize(("tool", "keys"), CALLED)
def test_a_tool_with_its_documented_input_is_nothing_new(tool: str, keys: str) -> None:
    facts = catalogue().tools[tool].input
    values: dict[str, Any] = {"str": "x", "num": 1, "bool": True, "arr": [], "obj": {}}
    given = {key: values[next(iter(facts[key].types))] for key in keys.split()}
    made = ClientForm(version="2.1.29")
    made.user("Use it")
    made.answer({"type": "tool_use", "id": "toolu_01x", "name": tool, "input": given})
    made.result("toolu_01x", "Done.")
    data = [json.loads(line) for line in made.data().splitlines()]
    new = {each for each in drifts(data) if each[0] in ("NEW_TOOL", "NEW_FIELD", "TYPE_MISMATCH")}
    assert new == set()
    (step,) = steps(Session(load(BytesSource(made.data()))))
    assert step.state == "ok"


CHANGES: dict[str, Callable[[Json], Any]] = {
    "UNKNOWN_TYPE": lambda record: record.update(type="new-type"),
    "NEW_FIELD": lambda record: record.update(newField=1),
    "TYPE_MISMATCH": lambda record: record.update(cwd=7),
    "MISSING_FIELD": lambda record: record.pop("userType"),
}


@pytest.mark.parametrize("code", CHANGES)
def test_a_change_of_the_format_has_the_documented_name(code: str) -> None:
    records = records_of("command_turn")
    CHANGES[code](records[2])
    assert code in {each[0] for each in drifts(records)}


def test_drift_takes_a_file_or_a_folder(on_disk: OnDisk) -> None:
    path = on_disk.paths["command_turn"]
    assert b"1 file" in steno("drift", path)
    assert b"file" in steno("drift", path.parent, code=1)


def test_the_folders_of_the_client_hold_sessions_only_where_documented(on_disk: OnDisk) -> None:
    """What lies beside sessions (agents, saved outputs, backups) is no session of its own."""
    listed_paths = {each.path for each in listed_by(on_disk.explorer)}
    assert listed_paths == {str(path) for path in on_disk.paths.values()}
