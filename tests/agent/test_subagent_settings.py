"""Kinds of sub-agents have what their files say: a mode, skills, a place in the background."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.agent.headless_harness import House

from steno.llm.testserver.responders import tool
from steno.llm.testserver.scripted_responder import ScriptedResponder


def _house(folder: Path, head: str, *answers: Any, mode: str = "") -> House:
    script = ScriptedResponder().on("dig", *answers[:1])
    for answer in answers[1:]:
        script.then(answer)
    given = {"description": "a task", "prompt": "dig", "subagent_type": "digger"}
    script.on("go", tool("Agent", **given)).then("Done.").on("task-notification", "Told.")
    house = House(folder, script)
    house.options.mode = mode
    house.write("~/agents/digger.md", f"---\nname: digger\ndescription: digs\n{head}\n---\nDig.")
    return house


def _write(house_folder: Path) -> Any:
    return tool("Write", file_path=str(house_folder / "project" / "new.txt"), content="x")


@pytest.mark.parametrize(
    ("session", "own", "written"),
    [
        ("default", "", False),
        ("default", "acceptEdits", True),
        ("acceptEdits", "plan", False),
        ("acceptEdits", "default", False),
        ("dontAsk", "acceptEdits", False),
        ("plan", "acceptEdits", False),
        ("bypassPermissions", "default", True),
    ],
)
def test_a_sub_agent_works_in_its_own_mode_where_the_session_leaves_room(
    tmp_path: Path, session: str, own: str, *, written: bool
) -> None:
    head = f"permissionMode: {own}" if own else "color: red"
    house = _house(tmp_path, head, _write(tmp_path), "Dug.", mode=session)
    assert house.say("go") == 0
    assert (house.project / "new.txt").exists() is written
    house.check()


def test_no_sub_agent_lifts_limits_that_may_not_be_lifted(tmp_path: Path) -> None:
    house = _house(tmp_path, "permissionMode: bypassPermissions", _write(tmp_path), "Dug.")
    off = {"permissions": {"disableBypassPermissionsMode": "disable"}}
    house.write("~/settings.json", json.dumps(off))
    house.say("go")
    assert not (house.project / "new.txt").exists()


def test_a_kind_for_the_background_is_not_waited_for_by_its_caller(tmp_path: Path) -> None:
    house = _house(tmp_path, "background: true", "Dug.")
    house.say("go")
    assert "is running in the background" in json.dumps(house.sent())
    house.check()


def test_a_sub_agent_has_its_skills_from_the_beginning(tmp_path: Path) -> None:
    house = _house(tmp_path, "skills: spades, rakes", "Dug.")
    head = "---\nname: spades\ndescription: about spades\n---\n"
    house.write("~/skills/spades/SKILL.md", f"{head}Hold it with both hands.")
    house.talk("go")
    (asked,) = [each.body for each in house.server.requests if each.body["messages"][0] == _prompt(each)]
    assert "Hold it with both hands." in json.dumps(asked["system"])
    assert any("rakes" in str(event) for event in house.events)


def _prompt(request: Any) -> Any:
    first = request.body["messages"][0]
    return first if first["content"][0]["text"] == "dig" else None
