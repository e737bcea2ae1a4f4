"""Plans before work."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from steno.tools.builtin.plan_mode import EnterPlanMode, ExitPlanMode
from steno.tools.context import ToolContext
from steno.tools.protocol import Tool, ToolFailure, ToolResult, UserAnswer


def make(answer: UserAnswer | None, seen: list[Any], file: str | None = None) -> ToolContext:
    async def answered(kind: str, what: dict[str, Any]) -> UserAnswer | None:
        seen.append((kind, what))
        return answer

    context = ToolContext(cwd="/", project="/", session_id="s", folder="/", env={}, ask=answered)
    context.plan.file = file
    return context


def run(tool: Tool, context: ToolContext, **given: Any) -> ToolResult:
    return asyncio.run(tool.run(given, context, "toolu_1"))


def test_entering_asks_and_requests_the_mode() -> None:
    seen: list[Any] = []
    context = make({"approved": True}, seen, file="/p.md")
    outcome = run(EnterPlanMode(), context)
    assert context.plan.permission_mode == "plan"
    assert "/p.md" in str(outcome.content)
    assert list(outcome.detail) == ["message"]
    what = {"step": "enter", "plan": None, "file": "/p.md", "call": "toolu_1"}
    assert seen == [("plan", what)]


def test_leaving_shows_the_file_and_requests_the_mode_that_was_chosen(tmp_path: Path) -> None:
    path = tmp_path / "plan.md"
    path.write_text("# Plan\n\n1. Do it.\n", "utf-8")
    seen: list[Any] = []
    context = make({"approved": True, "mode": "acceptEdits"}, seen, file=str(path))
    outcome = run(ExitPlanMode(), context)
    assert seen[0][1]["plan"] == "# Plan\n\n1. Do it."
    assert context.plan.permission_mode == "acceptEdits"
    assert str(outcome.content).startswith("User has approved exiting plan mode.")
    assert outcome.detail == {"plan": "# Plan\n\n1. Do it.", "isAgent": False, "filePath": str(path)}


def test_without_a_file_the_plan_is_nothing(tmp_path: Path) -> None:
    context = make({"approved": True}, [], file=str(tmp_path / "none.md"))
    outcome = run(ExitPlanMode(), context)
    assert outcome.detail["plan"] is None
    assert outcome.content == "User has approved exiting plan mode. You can now proceed."
    assert context.plan.permission_mode == "default"


def test_a_plan_in_the_call_is_written_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "plans" / "plan.md"
    context = make({"approved": True}, [], file=str(path))
    run(ExitPlanMode(), context, plan="# Mine")
    assert path.read_text("utf-8") == "# Mine"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["plan.md"]


@pytest.mark.parametrize("tool", [EnterPlanMode(), ExitPlanMode()])
def test_a_refusal_is_an_error_with_the_users_words(tool: Tool) -> None:
    context = make({"approved": False, "words": "smaller steps"}, [])
    outcome = run(tool, context)
    assert outcome.is_error
    assert outcome.detail == "User rejected tool use"
    assert "smaller steps" in str(outcome.content)
    assert not context.plan.permission_mode


@pytest.mark.parametrize("tool", [EnterPlanMode(), ExitPlanMode()])
def test_nobody_there_is_a_failure_in_words(tool: Tool) -> None:
    with pytest.raises(ToolFailure, match="No user is available"):
        run(tool, make(None, []))
    with pytest.raises(ToolFailure, match="No user is available"):
        run(tool, ToolContext(cwd="/", project="/", session_id="s", folder="/", env={}))


def test_a_file_that_cannot_be_written_is_a_failure_in_words(tmp_path: Path) -> None:
    (tmp_path / "plans").write_text("not a directory", "utf-8")
    context = make({"approved": True}, [], file=str(tmp_path / "plans" / "p.md"))
    with pytest.raises(ToolFailure, match="Cannot write"):
        run(ExitPlanMode(), context, plan="x")
