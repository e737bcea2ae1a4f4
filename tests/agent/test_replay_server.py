"""Recorded sessions of the real client, played again through the engine by the replay server."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.agent.loop_harness import Stage

from steno.agent.loop import Agent
from steno.llm.testserver.replay_responder import ReplayResponder
from steno.session.session import Session
from steno.session.transcript import load
from steno.store.file_source import FileSource
from steno.store.session_lookup import open_session
from steno.tools.context import ToolContext
from steno.tools.protocol import ToolResult, ToolSpec
from steno.tools.registry import ToolRegistry

SCENES = ("plain", "multi", "thinking", "thinktool", "todo", "bigout", "think_on", "slugs")


class Recalls:
    """A tool that gives back what the record says it gave."""

    def __init__(self, name: str, results: dict[str, ToolResult]) -> None:
        self.spec = ToolSpec(name=name, description="Recalls.", schema={"type": "object"})
        self._results = results

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        assert context.cwd
        assert tool_input is not None
        return self._results[call]


def calls_of(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for message in messages:
        for block in message["content"]:
            if block.get("type") == "tool_use":
                yield block


def results_of(messages: list[dict[str, Any]]) -> dict[str, ToolResult]:
    return {
        str(block["tool_use_id"]): ToolResult(block.get("content") or "", is_error=bool(block.get("is_error")))
        for message in messages
        for block in message["content"]
        if block.get("type") == "tool_result"
    }


def shape(messages: list[dict[str, Any]]) -> list[tuple[str, list[Any]]]:
    """Return who said what kind of thing, reminders and words of the client's own left out."""
    return [
        (
            message["role"],
            [
                (block["type"], block.get("name"), block.get("input"), block.get("tool_use_id"))
                for block in message["content"]
                if block["type"] in ("tool_use", "tool_result")
            ],
        )
        for message in messages
        if message["role"] == "assistant" or any(block["type"] == "tool_result" for block in message["content"])
    ]


def recorded(shared: Path, scene: str) -> list[Path]:
    folder = shared / "corpus" / "real-client" / "2.1.325" / scene / "projects"
    return sorted(path for path in folder.glob("*/*.jsonl") if path.stat().st_size)


@pytest.mark.parametrize("scene", SCENES)
def test_the_engine_makes_the_recorded_calls_again(tmp_path: Path, shared: Path, scene: str) -> None:
    played = 0
    for number, path in enumerate(recorded(shared, scene)):
        with open_session(path) as session:
            prompts = [turn.prompt.text for turn in session.turns() if turn.prompt is not None]
            before = session.messages()
            if not prompts or not any(message["role"] == "assistant" for message in before):
                continue
            folder = tmp_path / str(number)
            folder.mkdir()
            after = replayed(folder, session, prompts, before)
        assert [(call["name"], call["input"]) for call in calls_of(after)] == [
            (call["name"], call["input"]) for call in calls_of(before)
        ]
        assert shape(after) == shape(before)
        played += 1
    assert played


def replayed(folder: Path, session: Session, prompts: list[str], before: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Say the recorded prompts to the engine, with the recorded answers; return what came of it."""
    stage = Stage(folder, ReplayResponder([session]), strict=True)
    results = results_of(before)
    names = {str(call["name"]) for call in calls_of(before)}

    async def act(agent: Agent) -> None:
        agent.executor.tools = ToolRegistry([Recalls(name, results) for name in sorted(names)])
        for prompt in prompts:
            await agent.run_turn(prompt)

    stage.play(act)
    stage.check()
    return Session(load(FileSource(stage.path)), name=Path(stage.path).stem).messages()
