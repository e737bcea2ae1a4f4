"""Skills, and the tool that opens them."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from steno.agent.config.skills import Skill, SkillTool, discover_skills, list_skills, parse_command, take_opened_skills
from steno.tools.context import ToolContext
from steno.tools.protocol import Tool, ToolFailure, ToolResult

DEMO = "---\nname: demo\ndescription: a demo skill\nwhen_to_use: for demos\n---\n# Demo skill\nDo the demo.\n"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def found(tmp_path: Path, *, trusted: bool = True) -> tuple[Skill, ...]:
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path / "config")}
    return discover_skills(str(tmp_path / "work"), trusted=trusted, env=env)[0]


def context(tmp_path: Path) -> ToolContext:
    place = str(tmp_path)
    return ToolContext(cwd=place, project=place, session_id="s-1", folder=place, env={})


def call(tool: Tool, place: ToolContext, **given: Any) -> ToolResult:
    return asyncio.run(tool.run(given, place, "toolu_1"))


def test_skills_are_found_by_the_name_of_their_folder(tmp_path: Path) -> None:
    write(tmp_path / "config/skills/demo/SKILL.md", DEMO)
    write(tmp_path / "work/.claude/skills/demo/SKILL.md", "other")
    write(tmp_path / "work/.claude/skills/ours/SKILL.md", "---\ndescription: x\n---\n")
    write(tmp_path / "work/.claude/skills/none/README.md", "no skill")
    skills = found(tmp_path)
    assert [(skill.name, skill.scope) for skill in skills] == [("demo", "user"), ("ours", "project")]
    assert skills[0].description == "a demo skill"
    assert [skill.name for skill in found(tmp_path, trusted=False)] == ["demo"]


def test_the_listing_has_a_line_for_each_that_the_model_may_open(tmp_path: Path) -> None:
    write(tmp_path / "config/skills/demo/SKILL.md", DEMO)
    hidden = "---\ndescription: y\ndisable-model-invocation: true\n---\n"
    write(tmp_path / "config/skills/mine/SKILL.md", hidden)
    commands = [
        parse_command("---\ndescription: c\n---\n", "hello"),
        parse_command("---\ndescription: taken\n---\n", "demo"),
        parse_command("---\ndescription: also\n---\n", "mine"),
    ]
    assert list_skills(found(tmp_path), commands) == "- demo: a demo skill for demos\n- hello: c"
    assert list_skills(()) == ""


def test_a_long_listing_gets_shorter_but_keeps_every_name() -> None:
    skills = [Skill(name=f"skill-{number}", folder="", path="", description="d" * 2000) for number in range(100)]
    text = list_skills(skills)
    assert len(text) < 17_000
    assert all(f"- {skill.name}: d" in text for skill in skills)


def test_opening_a_skill_gives_its_text_as_sessions_keep_it(tmp_path: Path) -> None:
    path = write(tmp_path / "config/skills/demo/SKILL.md", DEMO)
    place = context(tmp_path)
    tool = SkillTool(found(tmp_path))
    outcome = call(tool, place, skill="demo", args="one two")
    assert outcome.content == "Launching skill: demo"
    assert outcome.detail == {"success": True, "commandName": "demo"}
    (loaded,) = take_opened_skills(place)
    assert loaded.call == "toolu_1"
    assert loaded.text == (
        f"Base directory for this skill: {path.parent}\n\n# Demo skill\nDo the demo.\n\n\nARGUMENTS: one two"
    )
    assert take_opened_skills(place) == ()


def test_the_text_is_read_when_the_skill_is_opened(tmp_path: Path) -> None:
    path = write(tmp_path / "config/skills/demo/SKILL.md", DEMO)
    place = context(tmp_path)
    tool = SkillTool(found(tmp_path))
    body = "---\ndescription: d\n---\nnew in ${CLAUDE_SKILL_DIR} of ${CLAUDE_SESSION_ID}"
    write(path, body)
    call(tool, place, skill="/demo")
    assert take_opened_skills(place)[0].text.endswith(f"new in {path.parent} of s-1")
    path.unlink()
    with pytest.raises(ToolFailure, match="does not exist"):
        call(tool, place, skill="demo")


def test_commands_in_a_skill_run_through_whoever_judges_them(tmp_path: Path) -> None:
    write(tmp_path / "config/skills/demo/SKILL.md", "Now: !`date $0`")

    async def shell(line: str) -> str:
        return f"<{line}>"

    place = context(tmp_path)
    call(SkillTool(found(tmp_path), run_shell=shell), place, skill="demo", args="-u")
    assert take_opened_skills(place)[0].text.endswith("\n\nNow: <date -u>")


def test_a_command_can_be_opened_too(tmp_path: Path) -> None:
    text = "---\ndescription: d\nallowed-tools: Read\nmodel: haiku\n---\nHi $0"
    place = context(tmp_path)
    tool = SkillTool((), [parse_command(text, "web:hello")])
    assert call(tool, place, skill="web:hello", args="you").content == "Launching skill: web:hello"
    (loaded,) = take_opened_skills(place)
    assert (loaded.text, loaded.allowed_tools, loaded.model) == ("Hi you", ("Read",), "haiku")


def test_what_is_not_there_or_not_for_the_model_is_refused(tmp_path: Path) -> None:
    hidden = "---\ndescription: y\ndisable-model-invocation: true\n---\n"
    write(tmp_path / "config/skills/mine/SKILL.md", hidden)
    tool = SkillTool(found(tmp_path), [parse_command(hidden, "also")])
    place = context(tmp_path)
    with pytest.raises(ToolFailure, match="Available: also, mine"):
        call(tool, place, skill="nosuch")
    for name in ("mine", "also"):
        with pytest.raises(ToolFailure, match="by the user"):
            call(tool, place, skill=name)
    assert take_opened_skills(place) == ()


def test_the_tool_asks_for_a_name() -> None:
    spec = SkillTool(()).spec
    assert spec.name == "Skill"
    assert spec.schema["required"] == ["skill"]
    assert set(spec.schema["properties"]) == {"skill", "args"}
