"""Kinds of sub-agents."""

import json
from pathlib import Path

import pytest

from steno.agent.config.project_files import ConfigNote
from steno.agent.subagents import BUILT_IN_SUBAGENTS, SubagentDefinition, discover_definitions, parse_definition

REVIEWER = """\
---
name: reviewer
description: Reviews code
tools: Read, Grep, Bash(git diff:*)
disallowedTools: Grep
model: haiku
maxTurns: 7
background: true
---
You review code.
"""


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def find(
    tmp_path: Path, *, trusted: bool = True, flags: str = ""
) -> tuple[dict[str, SubagentDefinition], tuple[ConfigNote, ...]]:
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path / "config")}
    found, notes = discover_definitions(str(tmp_path / "work"), trusted=trusted, agents_json=flags, env=env)
    return {one.name: one for one in found}, notes


def test_there_are_two_without_any_file(tmp_path: Path) -> None:
    found, notes = find(tmp_path)
    assert sorted(found) == ["Explore", "general-purpose"]
    assert not notes
    assert found["general-purpose"].may_use("Write")
    assert found["Explore"].may_use("Read")
    assert not found["Explore"].may_use("Write")
    assert not found["Explore"].may_use("Edit")
    assert not found["Explore"].may_use("Agent")
    assert all(one.prompt and one.description for one in BUILT_IN_SUBAGENTS)


def test_a_file_says_what_a_sub_agent_is(tmp_path: Path) -> None:
    path = write(tmp_path / "config/agents/sub/r.md", REVIEWER)
    assert find(tmp_path)[0]["reviewer"] == SubagentDefinition(
        name="reviewer",
        description="Reviews code",
        prompt="You review code.",
        tools=("Read", "Grep", "Bash(git diff:*)"),
        disallowed_tools=("Grep",),
        model="haiku",
        max_turns=7,
        background=True,
        origin="user",
        path=str(path),
    )


def test_the_nearest_of_one_name_counts(tmp_path: Path) -> None:
    write(tmp_path / "config/agents/r.md", REVIEWER)
    write(tmp_path / "config/agents/e.md", REVIEWER.replace("reviewer", "Explore"))
    write(tmp_path / "work/.claude/agents/r.md", REVIEWER)
    assert find(tmp_path)[0]["reviewer"].origin == "project"
    assert find(tmp_path)[0]["Explore"].origin == "user"
    assert find(tmp_path, trusted=False)[0]["reviewer"].origin == "user"
    flags = json.dumps({"reviewer": {"description": "d", "prompt": "p", "tools": ["Read"]}})
    of_flags = find(tmp_path, flags=flags)[0]["reviewer"]
    assert (of_flags.origin, of_flags.prompt, of_flags.tools) == ("flags", "p", ("Read",))


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("no head", ""),
        ("---\nname: x\n---\nbody", ""),
        ("---\ndescription: x\n---\nbody", ""),
        (REVIEWER, "{"),
        (REVIEWER, '{"x": {"description": "d"}}'),
        (REVIEWER, '{"x": 5}'),
    ],
)
def test_what_is_not_complete_is_noted_and_left_out(tmp_path: Path, text: str, flags: str) -> None:
    write(tmp_path / "config/agents/x.md", text)
    found, notes = find(tmp_path, flags=flags)
    assert "x" not in found
    assert len(notes) == 1


def test_a_project_cannot_lift_all_limits() -> None:
    text = REVIEWER.replace("model: haiku", "permissionMode: bypassPermissions")
    notes: list[ConfigNote] = []
    of_user = parse_definition(text, "p", "user", notes)
    assert of_user is not None
    assert of_user.permission_mode == "bypassPermissions"
    of_project = parse_definition(text, "p", "project", notes)
    assert of_project is not None
    assert of_project.permission_mode == ""
    assert len(notes) == 1


@pytest.mark.parametrize(
    ("tools", "tool", "may"),
    [
        (None, "Bash", True),
        (("*",), "Bash", True),
        ((), "Bash", False),
        (("Bash(git:*)",), "Bash", True),
        (("Task",), "Agent", True),
        (("mcp__a",), "mcp__a__x", True),
        (("mcp__a__*",), "mcp__a__x", True),
        (("mcp__a__x",), "mcp__a__y", False),
        (("mcp__a",), "mcp__ab__x", False),
    ],
)
def test_a_sub_agent_may_use_its_own_tools(tools: tuple[str, ...] | None, tool: str, *, may: bool) -> None:
    assert SubagentDefinition(name="x", description="", prompt="", tools=tools).may_use(tool) is may
    denied = SubagentDefinition(name="x", description="", prompt="", tools=None, disallowed_tools=tools or ())
    assert denied.may_use(tool) is (not may or tools is None)
